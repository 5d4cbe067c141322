//! Traces of a virtual desktop infrastructure, SYSTOR '17:
//! `Timestamp,Response,IOType,LUN,Offset,Size`.
//!
//! Source: Lee et al., "Understanding Storage Traffic Characteristics on Enterprise Virtual Desktop
//! Infrastructure", SYSTOR 2017, and the columns of the traces in the SNIA IOTTA repository.
//! `Timestamp` is the arrival in seconds since 1970, `Response` is in seconds and gives the completion;
//! it may be empty. `IOType` is `R` or `W`, `Offset` and `Size` are in bytes, the LUN is the device.
//!
//! Records are in order of completion: in the published trace the ends rise, the timestamps do not. They
//! are put in order of arrival, and times are made relative to the first one. A header line is passed
//! over.

use super::plausible::most_lines_are_blocks;
use super::{Clock, Format, Row, Timing};
use crate::fault::Fault;
use crate::record::{Extent, Record, completion_later};
use crate::scan::{Fields, TimeUnit, Token};
use crate::source::{LineDecoder, LineSource};
use freewheel_units::{Op, SimTime};

pub(super) const ROW: Row = Row {
    format: Format::Systor17,
    name: "systor17",
    description: "CSV: arrival and response in s, R or W, LUN, offset and size in bytes",
    rebased: true,
    clock: Clock::Absolute,
    timing: Timing::Recorded,
    unit: None,
    may_be_objects: false,
    detect: |head| most_lines_are_blocks(head, &mut Systor17),
    open: Some(|input, _| Ok(Box::new(LineSource::new(input.into_stream(), Systor17)))),
};

struct Systor17;

impl LineDecoder for Systor17 {
    fn take_header(&mut self, line: &[u8]) -> Result<bool, Fault> {
        Ok(line.starts_with(b"Timestamp,Response,"))
    }

    fn parse(&mut self, line: &[u8]) -> Result<Record, Fault> {
        let mut fields = Fields::comma(line);
        let arrival = fields.next("Timestamp")?.time(TimeUnit::Seconds)?;
        let completion = completion(arrival, fields.next("Response")?)?;
        let op = op(fields.next("IOType")?)?;
        let device = fields.next("LUN")?.number()?.to_u32()?;
        let (offset, size) = (fields.next("Offset")?.number()?, fields.next("Size")?.number()?);
        let extent = Extent::of_bytes(offset, size)?;
        fields.end()?;
        Ok(Record { completion, ..extent.request(arrival, op, device) })
    }
}

#[inline]
fn completion(arrival: SimTime, response: Token) -> Result<Option<SimTime>, Fault> {
    if response.text.is_empty() {
        return Ok(None);
    }
    completion_later(arrival, response, TimeUnit::Seconds).map(Some)
}

#[inline]
fn op(token: Token) -> Result<Op, Fault> {
    match token.text {
        b"R" => Ok(Op::Read),
        b"W" => Ok(Op::Write),
        _ => Err(token.fault("write R (read) or W (write)")),
    }
}
