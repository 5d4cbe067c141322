//! Block traces of Alibaba Cloud: `device_id,opcode,offset,length,timestamp`.
//!
//! Source: README of the published traces (2020), section "Schema"; Li et al., "An In-Depth Analysis of
//! Cloud Block Storage Workloads in Large-Scale Production", IISWC 2020. `opcode` is `R` or `W`,
//! `offset` and `length` are in bytes, `timestamp` is in microseconds since 1970. Times are made
//! relative to the first record. A header line is passed over.

use super::plausible::most_lines_are_blocks;
use super::{Clock, Format, Row, Timing};
use crate::fault::Fault;
use crate::record::{Extent, Record};
use crate::scan::{Fields, Token};
use crate::source::{LineDecoder, LineSource};
use freewheel_units::Op;

const MICROSECOND_NS: u64 = 1000;

pub(super) const ROW: Row = Row {
    format: Format::AlibabaCsv,
    name: "alibaba-csv",
    description: "CSV: device, R or W, offset and length in bytes, arrival in us",
    rebased: true,
    clock: Clock::Absolute,
    timing: Timing::Recorded,
    unit: None,
    may_be_objects: false,
    detect: |head| most_lines_are_blocks(head, &mut AlibabaCsv),
    open: Some(|input, _| Ok(Box::new(LineSource::new(input.into_stream(), AlibabaCsv)))),
};

struct AlibabaCsv;

impl LineDecoder for AlibabaCsv {
    fn take_header(&mut self, line: &[u8]) -> Result<bool, Fault> {
        Ok(line.starts_with(b"device_id,"))
    }

    fn parse(&mut self, line: &[u8]) -> Result<Record, Fault> {
        let mut fields = Fields::comma(line);
        let device = fields.next("device_id")?.number()?.to_u32()?;
        let op = op(fields.next("opcode")?)?;
        let (offset, length) = (fields.next("offset")?.number()?, fields.next("length")?.number()?);
        let extent = Extent::of_bytes(offset, length)?;
        let arrival = fields.next("timestamp")?.number()?.time(MICROSECOND_NS)?;
        fields.end()?;
        Ok(extent.request(arrival, op, device))
    }
}

#[inline]
fn op(token: Token) -> Result<Op, Fault> {
    match token.text {
        b"R" => Ok(Op::Read),
        b"W" => Ok(Op::Write),
        _ => Err(token.fault("write R (read) or W (write)")),
    }
}
