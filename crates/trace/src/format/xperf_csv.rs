//! Disk I/O of Windows as `xperf -a dumper` prints it, one event a line, with the names of the columns
//! in a line of each kind of event:
//!
//! `DiskRead, TimeStamp, Process Name ( PID), ThreadID, IrpPtr, ByteOffset, IOSize, ElapsedTime, DiskNum,
//! IrpFlags, DiskSvcTime, I/O Pri, VolSnap, FileObject, FileName`. A `DiskFlush` has neither `ByteOffset`
//! nor `IOSize`. Newer versions have a column `CPU`. So columns are found by name, and where a trace
//! names none they are those above.
//!
//! Source: Microsoft's documentation of the classes `DiskIo`, `DiskIo_TypeGroup1` and `DiskIo_TypeGroup3`
//! of Event Tracing for Windows; Kavalanekar et al., "Characterization of Storage Workload Traces from
//! Production Windows Servers", IISWC 2008, and the traces of it in the SNIA IOTTA repository.
//! `TimeStamp` and `ElapsedTime` are in microseconds. The event of an I/O is written when it completes:
//! it carries the time from initiation to completion, and its beginning is a separate event
//! (`DiskReadInit`). So `TimeStamp` is the completion, and the arrival lies `ElapsedTime` before it.
//! `ByteOffset` and `IOSize` are in bytes, in hexadecimal after `0x`; `DiskNum` is the device.
//!
//! Records are put in order of arrival, and times are made relative to the first one. Events of other
//! kinds are passed over.

use super::columns::{Columns, required};
use super::completed::{Stay, stay};
use super::{Clock, Format, Row, Timing};
use crate::fault::Fault;
use crate::record::{Extent, Record};
use crate::scan::{Fields, TimeUnit, Token};
use crate::source::{LineDecoder, LineSource, whole_lines};
use freewheel_units::Op;

const NAMES: [&str; 5] = ["TimeStamp", "ElapsedTime", "DiskNum", "ByteOffset", "IOSize"];
/// The columns of an event without a place.
const FLUSH: usize = 3;
/// The columns of a trace that does not name them.
const PUBLISHED: &[u8] =
    b"DiskRead,TimeStamp,Process Name ( PID),ThreadID,IrpPtr,ByteOffset,IOSize,\
                           ElapsedTime,DiskNum";
const PUBLISHED_FLUSH: &[u8] =
    b"DiskFlush,TimeStamp,Process Name ( PID),ThreadID,IrpPtr,ElapsedTime,DiskNum";

pub(super) const ROW: Row = Row {
    format: Format::XperfCsv,
    name: "xperf-csv",
    description: "xperf's dumper of Windows: DiskRead, DiskWrite or DiskFlush, end in us, bytes in hex, us",
    rebased: true,
    clock: Clock::FromStart,
    timing: Timing::Recorded,
    unit: None,
    may_be_objects: false,
    detect,
    open: Some(|input, _| Ok(Box::new(LineSource::new(input.into_stream(), XperfCsv::default())))),
};

/// True if a line names the columns of reads, or all lines are about disks and one is a request. The names
/// of all kinds of events, and other events, may fill the beginning of a trace.
fn detect(head: &[u8]) -> bool {
    let mut decoder = XperfCsv::default();
    whole_lines(head).any(|line| {
        line.starts_with(b"Disk")
            && line[4..].starts_with(b"Read,")
            && decoder.take_other(line) == Ok(true)
    }) || whole_lines(head).all(|line| line.starts_with(b"Disk"))
        && whole_lines(head).any(|line| XperfCsv::default().parse(line).is_ok())
}

struct XperfCsv {
    transfer: Columns<5>,
    flush: Columns<5>,
}

impl Default for XperfCsv {
    fn default() -> Self {
        Self {
            transfer: Columns::find(PUBLISHED, NAMES, NAMES.len()).expect("it has these columns"),
            flush: Columns::find(PUBLISHED_FLUSH, NAMES, FLUSH).expect("it has these columns"),
        }
    }
}

/// The kind of a line that is a request.
fn op(event: &[u8]) -> Option<Op> {
    match event {
        b"DiskRead" => Some(Op::Read),
        b"DiskWrite" => Some(Op::Write),
        b"DiskFlush" => Some(Op::Flush),
        _ => None,
    }
}

impl LineDecoder for XperfCsv {
    fn take_other(&mut self, line: &[u8]) -> Result<bool, Fault> {
        let mut fields = Fields::comma(line);
        let event = fields.next("event")?;
        let names_columns = fields.next("TimeStamp").is_ok_and(|field| field.text == b"TimeStamp");
        match op(event.text) {
            Some(Op::Flush) if names_columns => self.flush = Columns::find(line, NAMES, FLUSH)?,
            Some(_) if names_columns => self.transfer = Columns::find(line, NAMES, NAMES.len())?,
            Some(_) => return Ok(false),
            // An event of another kind, its columns, or a line about the whole trace.
            None => return Ok(event.text.first().is_some_and(u8::is_ascii_alphabetic)),
        }
        Ok(true)
    }

    fn parse(&mut self, line: &[u8]) -> Result<Record, Fault> {
        let event = Fields::comma(line).next("event")?;
        let op = op(event.text).ok_or_else(|| event.fault("not the name of an event"))?;
        let columns = if op == Op::Flush { &self.flush } else { &self.transfer };
        let [stamp, elapsed, disk, offset, size] = columns.pick(line)?;
        let extent = match op {
            Op::Flush => Extent::NONE,
            _ => extent(required(offset), required(size))?,
        };
        let Stay { arrival, completion } = times(required(stamp), required(elapsed))?;
        let device = required(disk).number()?.to_u32()?;
        Ok(Record { completion: Some(completion), ..extent.request(arrival, op, device) })
    }
}

fn extent(offset: Token, size: Token) -> Result<Extent, Fault> {
    Extent::of_bytes(offset.number_or_hex()?, size.number_or_hex()?)
}

fn times(stamp: Token, elapsed: Token) -> Result<Stay, Fault> {
    let us = TimeUnit::Microseconds;
    stay(stamp.time(us)?, elapsed.time(us)?, elapsed)
}
