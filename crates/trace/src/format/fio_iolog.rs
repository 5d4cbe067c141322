//! Format that fio writes with `--write_iolog`, versions 2 and 3.
//!
//! Source: fio's documentation, "Trace file format"; for the unit of times, logs of fio 3.33. The first
//! line is `fio version 3 iolog`. Then come lines `us file action`, for `add`, `open` and `close`, and
//! `us file action offset length` in bytes. Version 2 has no times, but lines with the action `wait`, whose
//! offset is a pause in microseconds; fio 3.30 and earlier write version 2.
//!
//! `sync`, `datasync` and `syncfs` are flushes. Files are numbered in the order they appear: the file is the
//! device. Times stay as they are, and count from the start of the job. In version 2 they are the sums of
//! the pauses: no record of when requests came.

use super::names::Names;
use super::{Clock, Format, Row, Timing};
use crate::fault::Fault;
use crate::record::{Extent, Record};
use crate::scan::{Fields, Token};
use crate::source::{LineDecoder, LineSource, first_line};
use freewheel_units::{Op, SimTime};

const MICROSECOND_NS: u64 = 1000;
const HEADER_V2: &[u8] = b"fio version 2 iolog";
const HEADER_V3: &[u8] = b"fio version 3 iolog";

pub(super) const ROW: Row = Row {
    format: Format::FioIolog,
    name: "fio-iolog",
    description: "fio's iolog version 3: arrival in us, file, action, offset and length in bytes",
    rebased: false,
    clock: Clock::FromStart,
    timing: Timing::Recorded,
    unit: None,
    may_be_objects: false,
    detect: |head| first_line(head) == HEADER_V3,
    open: Some(|input, _| Ok(Box::new(LineSource::new(input.into_stream(), FioIolog::new(true))))),
};

pub(super) const V2_ROW: Row = Row {
    format: Format::FioIologV2,
    name: "fio-iolog-v2",
    description: "fio's iolog version 2, for caches only: file, action, offset and length; no times",
    rebased: false,
    clock: Clock::FromStart,
    timing: Timing::None,
    unit: None,
    may_be_objects: false,
    detect: |head| first_line(head) == HEADER_V2,
    open: Some(|input, _| Ok(Box::new(LineSource::new(input.into_stream(), FioIolog::new(false))))),
};

struct FioIolog {
    /// True if lines begin with a time: version 3.
    has_times: bool,
    files: Names,
    /// Sum of the pauses of version 2.
    paused: SimTime,
}

impl FioIolog {
    fn new(has_times: bool) -> Self {
        Self { has_times, files: Names::default(), paused: SimTime::ZERO }
    }

    /// The time, the file and the action of a line.
    fn begin<'a>(&mut self, fields: &mut Fields<'a>) -> Result<(SimTime, u32, Token<'a>), Fault> {
        let time = if self.has_times {
            fields.next("timestamp")?.number()?.time(MICROSECOND_NS)?
        } else {
            self.paused
        };
        let file = self.files.number(fields.next("filename")?)?;
        Ok((time, file, fields.next("action")?))
    }

    /// Adds a pause of version 2.
    fn pause(&mut self, length: Token) -> Result<(), Fault> {
        let length = length.number()?;
        let sum = self.paused.ns().checked_add(length.time(MICROSECOND_NS)?.ns());
        self.paused = SimTime::from_ns(sum.ok_or_else(|| length.fault("past 2^64 ns"))?);
        Ok(())
    }
}

impl LineDecoder for FioIolog {
    // fio appends to a log that is there, so the header may come again: the clock of another job begins.
    fn take_header(&mut self, line: &[u8]) -> Result<bool, Fault> {
        Ok(line == HEADER_V2 || line == HEADER_V3)
    }

    fn take_other(&mut self, line: &[u8]) -> Result<bool, Fault> {
        let mut fields = Fields::blank(line);
        let Ok((_, _, action)) = self.begin(&mut fields) else { return Ok(false) };
        match action.text {
            b"add" | b"open" | b"close" | b"sync_file_range" => Ok(true),
            b"wait" if !self.has_times => self.pause(fields.next("offset")?).map(|()| true),
            _ => Ok(false),
        }
    }

    fn parse(&mut self, line: &[u8]) -> Result<Record, Fault> {
        let mut fields = Fields::blank(line);
        let (arrival, device, action) = self.begin(&mut fields)?;
        let op = op(action)?;
        if op == Op::Flush {
            return Ok(Extent::NONE.request(arrival, op, device));
        }
        let (offset, length) = (fields.next("offset")?.number()?, fields.next("length")?.number()?);
        fields.end()?;
        Ok(Extent::of_bytes(offset, length)?.request(arrival, op, device))
    }
}

#[inline]
fn op(action: Token) -> Result<Op, Fault> {
    match action.text {
        b"read" => Ok(Op::Read),
        b"write" => Ok(Op::Write),
        b"sync" | b"datasync" | b"syncfs" => Ok(Op::Flush),
        b"trim" => Ok(Op::Trim),
        _ => Err(action.fault("not an action of this version of fio's log")),
    }
}
