//! Format of the program `biosnoop` of BCC, one completed request a line: `TIME(s) COMM PID DISK T SECTOR
//! BYTES QUE(ms) LAT(ms)`.
//!
//! Source: BCC's `tools/biosnoop.py`, its examples, and `libbpf-tools/biosnoop.c`. `TIME` is the
//! completion, in seconds since the first line. `LAT` is the time from issue to completion, and `QUE`,
//! which only `-Q` prints, the time from insertion to issue: so a request arrives `QUE` and `LAT` before
//! `TIME`. `SECTOR` counts 512 bytes. `T` is `R` or `W`, or in the second program the letters of
//! blktrace. `COMM` may have blanks, so the line is read from its end. `-P` adds a letter after `BYTES`.
//!
//! A flush has no bytes, and the sector 2^64 - 1. Programs before 2022 print `?` for requests that no
//! process is known of, as flushes are, and then neither disk nor sector: such a flush counts for the first
//! disk, and another request has no place and is malformed. A command without data is no request (`N`).
//! Disks are numbered in the order they appear. Records are put in order of arrival, and times are made
//! relative to the first one.

use super::completed::{Stay, stay};
use super::last_fields::LastFields;
use super::names::Names;
use super::{Clock, Format, Row, Timing};
use crate::fault::Fault;
use crate::record::{Extent, Record};
use crate::scan::{Fields, TimeUnit, Token, whole_number};
use crate::source::{LineDecoder, LineSource, most_lines_parse};
use freewheel_units::{Op, SimTime};

/// The sector of a request that has none: the second program prints it with a sign.
const NO_SECTOR: [&[u8]; 2] = [b"18446744073709551615", b"-1"];
/// The disk of a flush that names none.
const FIRST_DISK: u32 = 0;
/// Value that `-Q` of the second program prints for a request that was not queued.
const NOT_QUEUED: &[u8] = b"-1.000";

pub(super) const ROW: Row = Row {
    format: Format::Biosnoop,
    name: "biosnoop",
    description: "text of BCC's biosnoop: end in s, process, pid, disk, R or W, block (512 B), bytes, latency in ms",
    rebased: true,
    clock: Clock::FromStart,
    timing: Timing::Recorded,
    unit: None,
    may_be_objects: false,
    detect: |head| most_lines_parse(head, &mut Biosnoop::default()),
    open: Some(|input, _| Ok(Box::new(LineSource::new(input.into_stream(), Biosnoop::default())))),
};

#[derive(Default)]
struct Biosnoop {
    disks: Names,
}

/// The columns that are read.
struct Columns<'a> {
    time: Token<'a>,
    /// Missing where the program does not know it.
    disk: Option<Token<'a>>,
    kind: Token<'a>,
    sector: Token<'a>,
    bytes: Token<'a>,
    queued: Option<Token<'a>>,
    latency: Token<'a>,
}

impl LineDecoder for Biosnoop {
    fn take_header(&mut self, line: &[u8]) -> Result<bool, Fault> {
        Ok(is_header(line))
    }

    fn take_other(&mut self, line: &[u8]) -> Result<bool, Fault> {
        // A program that starts again prints its header again.
        Ok(is_header(line)
            || columns(line).is_ok_and(|columns| columns.kind.text.starts_with(b"N")))
    }

    fn parse(&mut self, line: &[u8]) -> Result<Record, Fault> {
        let columns = columns(line)?;
        let (op, fua) = kind(columns.kind)?;
        let bytes = columns.bytes.number()?;
        let has_no_place = columns.disk.is_none() || has_no_sector(columns.sector);
        let is_flush = op == Op::Flush || bytes.value == 0 && has_no_place;
        let Stay { arrival, completion } = times(&columns)?;
        let extent = if is_flush {
            Extent::NONE
        } else {
            Extent::of_block_and_bytes(columns.sector.number()?, bytes)?
        };
        let device = match columns.disk {
            Some(disk) => self.disks.number(disk)?,
            None if is_flush => FIRST_DISK,
            None => return Err(Fault::new("DISK", b"", "the disk and sector are not known")),
        };
        let op = if is_flush { Op::Flush } else { op };
        let fua = fua && !is_flush;
        Ok(Record { completion: Some(completion), fua, ..extent.request(arrival, op, device) })
    }
}

fn is_header(line: &[u8]) -> bool {
    line.starts_with(b"TIME(s)") || line.starts_with(b"Tracing block")
}

fn has_no_sector(sector: Token) -> bool {
    NO_SECTOR.contains(&sector.text)
}

fn columns(line: &[u8]) -> Result<Columns<'_>, Fault> {
    let mut last = LastFields::new(line);
    let latency = last.next("LAT(ms)")?;
    if !latency.text.contains(&b'.') {
        return Err(latency.fault("not a latency with a point"));
    }
    let queued = match last.peek() {
        Some(word) if word.contains(&b'.') => Some(last.next("QUE(ms)")?),
        _ => None,
    };
    if last.peek().is_some_and(|word| matches!(word, b"S" | b"R" | b"?")) {
        last.next("P")?;
    }
    let (bytes, sector) = (last.next("BYTES")?, last.next("SECTOR")?);
    let kind = last.next("T")?;
    let disk = last.peek().is_some_and(is_disk).then(|| last.next("DISK")).transpose()?;
    last.next("PID")?.number()?;
    let mut first = Fields::blank(last.rest());
    let time = first.next("TIME(s)")?;
    first.next("COMM")?;
    Ok(Columns { time, disk, kind, sector, bytes, queued, latency })
}

/// No disk is called by a number, so one in its place is that of the process.
fn is_disk(word: &[u8]) -> bool {
    whole_number(word).is_none()
}

/// The operation, and whether it is forced to the media. A flush before a write is a separate line.
fn kind(kind: Token) -> Result<(Op, bool), Fault> {
    let rest = kind.text.strip_prefix(b"F").filter(|rest| !rest.is_empty()).unwrap_or(kind.text);
    let op = match rest.first() {
        Some(b'R') => Op::Read,
        Some(b'W') => Op::Write,
        Some(b'D') => Op::Trim,
        Some(b'F') => Op::Flush,
        _ => return Err(kind.fault("not R or W, nor the letters of a kind, as WS or FF")),
    };
    Ok((op, rest[1..].contains(&b'F')))
}

fn times(columns: &Columns) -> Result<Stay, Fault> {
    let time = columns.time.time(TimeUnit::Seconds)?;
    let latency = columns.latency.time(TimeUnit::Milliseconds)?;
    let queued = match columns.queued {
        Some(queued) if queued.text != NOT_QUEUED => queued.time(TimeUnit::Milliseconds)?,
        _ => SimTime::ZERO,
    };
    let sum = latency.ns().checked_add(queued.ns());
    let sum =
        sum.ok_or_else(|| columns.latency.fault("with the time in the queue past 2^64 ns"))?;
    stay(time, SimTime::from_ns(sum), columns.latency)
}
