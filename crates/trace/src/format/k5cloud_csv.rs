//! Block traces of the cloud service FUJITSU K5: `volume,time,operation,offset,size`.
//!
//! Source: the traces in the SNIA IOTTA repository, and how two cache simulators read them. The time is
//! in seconds, with a fraction; the operation is `R` or `W`; `offset` and `size` are in bytes; the volume
//! is the device. Records are put in order of arrival, and times are made relative to the first one.
//!
//! Other tools write such columns in other units. So a trace is recognised where most times have a
//! fraction, as seconds have, most offsets and sizes are whole blocks of 512 bytes, and a volume occurs
//! twice, which a running index never does.

use super::plausible::{most, most_are_blocks};
use super::{Clock, Format, Row, Timing};
use crate::fault::Fault;
use crate::record::{Extent, Record};
use crate::scan::{Fields, TimeUnit, Token};
use crate::source::{LineDecoder, LineSource, most_lines_parse, parsed_lines};
use freewheel_units::Op;
use std::collections::BTreeSet;

pub(super) const ROW: Row = Row {
    format: Format::K5cloudCsv,
    name: "k5cloud-csv",
    description: "CSV of FUJITSU K5: volume, arrival in s, R or W, offset and size in bytes",
    rebased: true,
    clock: Clock::Absolute,
    timing: Timing::Recorded,
    unit: None,
    may_be_objects: false,
    detect: |head| most_lines_parse(head, &mut K5cloudCsv) && is_in_its_units(head),
    open: Some(|input, _| Ok(Box::new(LineSource::new(input.into_stream(), K5cloudCsv)))),
};

/// True if most records have fractions of seconds and whole blocks, and a volume occurs twice.
fn is_in_its_units(head: &[u8]) -> bool {
    let records = parsed_lines(head, &mut K5cloudCsv);
    let volumes: BTreeSet<u32> = records.iter().map(|record| record.device).collect();
    most(&records, |record| !record.arrival.ns().is_multiple_of(TimeUnit::Seconds.ns()))
        && most_are_blocks(&records)
        && volumes.len() < records.len()
}

struct K5cloudCsv;

impl LineDecoder for K5cloudCsv {
    fn parse(&mut self, line: &[u8]) -> Result<Record, Fault> {
        let mut fields = Fields::comma(line);
        let device = fields.next("volume")?.number()?.to_u32()?;
        let arrival = fields.next("time")?.time(TimeUnit::Seconds)?;
        let op = op(fields.next("operation")?)?;
        let (offset, size) = (fields.next("offset")?.number()?, fields.next("size")?.number()?);
        let extent = Extent::of_bytes(offset, size)?;
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
