//! Page references of the ARC paper, `.lis`: `start count ignored number`, between blanks.
//!
//! Source: Megiddo and Modha, "ARC: A Self-Tuning, Low Overhead Replacement Cache", FAST 2003, and the
//! layout of the traces published with it: `count` pages from page `start` are referenced; the third
//! column is 0, the fourth the number of the request. A trace has neither times nor operations, and does
//! not say how large a page is. Every request is a read at time 0, and a page counts as 4 KiB.

use super::{Clock, Format, Row, Timing};
use crate::fault::Fault;
use crate::record::{Extent, Record};
use crate::scan::{Fields, Number};
use crate::source::{LineDecoder, LineSource, most_lines_parse};
use freewheel_units::{Op, SimTime};

/// Blocks of 512 bytes in a page.
const PAGE_BLOCKS: u64 = 8;

pub(super) const ROW: Row = Row {
    format: Format::ArcLis,
    name: "arc-lis",
    description: "text, for caches only: first page, pages (as of 4 KiB), 0, number; no times",
    rebased: false,
    clock: Clock::FromStart,
    timing: Timing::None,
    unit: None,
    may_be_objects: false,
    detect: |head| most_lines_parse(head, &mut ArcLis { is_strict: true }),
    open: Some(|input, _| {
        Ok(Box::new(LineSource::new(input.into_stream(), ArcLis { is_strict: false })))
    }),
};

struct ArcLis {
    /// True if the third column must be 0, as in detection.
    is_strict: bool,
}

impl LineDecoder for ArcLis {
    fn parse(&mut self, line: &[u8]) -> Result<Record, Fault> {
        let mut fields = Fields::blank(line);
        let (start, count) = (fields.next("start")?.number()?, fields.next("count")?.number()?);
        let ignored = fields.next("ignored")?.number()?;
        fields.next("number")?.number()?;
        fields.end()?;
        if self.is_strict && ignored.value != 0 {
            return Err(ignored.fault("not 0"));
        }
        let extent = Extent::of_blocks(blocks(start)?, blocks(count)?)?;
        Ok(extent.request(SimTime::ZERO, Op::Read, 0))
    }
}

#[inline]
fn blocks(pages: Number) -> Result<Number, Fault> {
    let blocks = pages.value.checked_mul(PAGE_BLOCKS).ok_or_else(|| pages.too_far())?;
    Ok(Number { value: blocks, ..pages })
}
