//! Page references of the LIRS paper, `.trc`: the number of a page a line, and lines of `*`.
//!
//! Source: Jiang and Zhang, "LIRS: An Efficient Low Inter-reference Recency Set Replacement Policy to
//! Improve Buffer Cache Performance", SIGMETRICS 2002, and the layout of the traces published with it. A
//! `*` marks a place in the trace, not a reference. A trace has neither times nor operations, and does not
//! say how large a page is. Every request is a read at time 0, and a page counts as 4 KiB.
//!
//! libCacheSim's text has the number of an object a line too (`libcachesim-txt`). A trace with a `*` is of
//! this format; without one either will do for a cache, and it counts as a trace of objects.

use super::{Clock, Format, Row, Timing};
use crate::fault::Fault;
use crate::record::{Extent, Record};
use crate::scan::{Number, Token};
use crate::source::{LineDecoder, LineSource, parsed_lines, whole_lines};
use freewheel_units::{Op, SimTime};

/// Blocks of 512 bytes in a page.
const PAGE_BLOCKS: u64 = 8;
const MARK: &[u8] = b"*";

pub(super) const ROW: Row = Row {
    format: Format::LirsTrc,
    name: "lirs-trc",
    description: "text, for caches only: number of a page (as of 4 KiB), or *; no times",
    rebased: false,
    clock: Clock::FromStart,
    timing: Timing::None,
    unit: None,
    may_be_objects: false,
    detect,
    open: Some(|input, _| Ok(Box::new(LineSource::new(input.into_stream(), LirsTrc)))),
};

fn detect(head: &[u8]) -> bool {
    let lines = whole_lines(head).count();
    let marks = whole_lines(head).filter(|&line| line == MARK).count();
    let pages = parsed_lines(head, &mut LirsTrc).len();
    marks > 0 && pages > 0 && (pages + marks) * 2 >= lines
}

struct LirsTrc;

impl LineDecoder for LirsTrc {
    fn take_other(&mut self, line: &[u8]) -> Result<bool, Fault> {
        Ok(line == MARK)
    }

    fn parse(&mut self, line: &[u8]) -> Result<Record, Fault> {
        let page = Token { name: "page", text: line }.number()?;
        let start = page.value.checked_mul(PAGE_BLOCKS).ok_or_else(|| page.too_far())?;
        let count = Number { name: page.name, value: PAGE_BLOCKS };
        let extent = Extent::of_blocks(Number { value: start, ..page }, count)?;
        Ok(extent.request(SimTime::ZERO, Op::Read, 0))
    }
}
