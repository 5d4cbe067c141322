//! Cuts of public traces as published by the Heimdall and FlashNet projects:
//! `ms device byte_offset bytes 1=read`, between blanks.
//!
//! The columns look like DiskSim's, but addresses are in bytes. So detection requires of *every* record
//! of the first 64 KiB: offset and size are multiples of 512, and the last column is 0 or 1. Otherwise
//! the format is DiskSim's. Only a DiskSim trace whose first thousand requests are whole multiples of
//! 256 KiB on 256 KiB boundaries is mistaken; its format must be named. Times stay as they are.

use super::{Clock, Format, Row, Timing, five_columns};
use crate::fault::Fault;
use crate::record::{Extent, Record};
use crate::scan::{Fields, TimeUnit};
use crate::source::{LineDecoder, LineSource, most_lines_parse, parsed_lines};
use freewheel_units::BLOCK_BYTES;

pub(super) const ROW: Row = Row {
    format: Format::HeimdallText,
    name: "heimdall-text",
    description: "text: arrival in ms, device, offset in bytes, size in bytes, 1 read or 0 write",
    rebased: false,
    clock: Clock::FromStart,
    timing: Timing::Recorded,
    unit: Some(|head, is_named| {
        five_columns::unit(head, TimeUnit::Milliseconds, &five_columns::OF_A_DISK, is_named)
    }),
    may_be_objects: false,
    detect,
    open: Some(|input, how| {
        let decoder = HeimdallText { unit: how.unit, ..ANY_BYTES };
        Ok(Box::new(LineSource::new(input.into_stream(), decoder)))
    }),
};

struct HeimdallText {
    /// True if an offset or a size that splits a block is a fault, as in detection.
    whole_blocks: bool,
    unit: TimeUnit,
}

const ANY_BYTES: HeimdallText = HeimdallText { whole_blocks: false, unit: TimeUnit::Milliseconds };
const WHOLE_BLOCKS: HeimdallText = HeimdallText { whole_blocks: true, ..ANY_BYTES };

fn detect(head: &[u8]) -> bool {
    // Equality of both readings means that no record splits a block; one that does is missing in the
    // second.
    most_lines_parse(head, &mut { ANY_BYTES })
        && parsed_lines(head, &mut { ANY_BYTES }) == parsed_lines(head, &mut { WHOLE_BLOCKS })
}

impl LineDecoder for HeimdallText {
    fn parse(&mut self, line: &[u8]) -> Result<Record, Fault> {
        let mut fields = Fields::blank(line);
        let arrival = fields.next("arrival_ms")?.time(self.unit)?;
        let device = fields.next("device")?.number()?.to_u32()?;
        let (offset, size) = (fields.next("offset")?.number()?, fields.next("size")?.number()?);
        let extent = Extent::of_bytes(offset, size)?;
        if self.whole_blocks && (offset.value | size.value) % BLOCK_BYTES != 0 {
            return Err(size.fault("not in whole blocks"));
        }
        let op = five_columns::op(fields.next("is_read")?)?;
        fields.end()?;
        Ok(extent.request(arrival, op, device))
    }
}
