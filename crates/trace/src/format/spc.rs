//! The trace file of the Storage Performance Council: `ASU,LBA,Size,Opcode,Timestamp`.
//!
//! Source: SPC trace file format specification, as used by the UMass trace repository. The ASU
//! (application storage unit) is the device. The LBA counts blocks of 512 bytes, and `Size` is in
//! bytes. `Opcode` is `r` or `w` in either case. `Timestamp` is in seconds and made relative to the
//! first record. Further columns, which the specification allows, are ignored.

use super::plausible::most_lines_are_blocks;
use super::{Clock, Format, Row, Timing, UnitFound};
use crate::fault::Fault;
use crate::record::{Extent, Record};
use crate::scan::{Fields, TimeUnit, Token};
use crate::source::{LineDecoder, LineSource};
use freewheel_units::Op;

pub(super) const ROW: Row = Row {
    format: Format::Spc,
    name: "spc",
    description: "CSV: ASU, LBA (512 B), size in bytes, r or w, arrival in s",
    rebased: true,
    clock: Clock::FromStart,
    timing: Timing::Recorded,
    unit: Some(|_, _| UnitFound::Sure(TimeUnit::Seconds)),
    may_be_objects: false,
    detect: |head| most_lines_are_blocks(head, &mut Spc { unit: TimeUnit::Seconds }),
    open: Some(|input, how| {
        Ok(Box::new(LineSource::new(input.into_stream(), Spc { unit: how.unit })))
    }),
};

struct Spc {
    unit: TimeUnit,
}

impl LineDecoder for Spc {
    fn parse(&mut self, line: &[u8]) -> Result<Record, Fault> {
        let mut fields = Fields::comma(line);
        let device = fields.next("ASU")?.number()?.to_u32()?;
        let (start, size) = (fields.next("LBA")?.number()?, fields.next("Size")?.number()?);
        let extent = Extent::of_block_and_bytes(start, size)?;
        let op = op(fields.next("Opcode")?)?;
        let arrival = fields.next("Timestamp")?.time(self.unit)?;
        Ok(extent.request(arrival, op, device))
    }
}

fn op(token: Token) -> Result<Op, Fault> {
    match token.text {
        b"r" | b"R" => Ok(Op::Read),
        b"w" | b"W" => Ok(Op::Write),
        _ => Err(token.fault("write r (read) or w (write)")),
    }
}
