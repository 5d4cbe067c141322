//! Format that fio writes with `--write_lat_log` and `--log_offset=1`: `time, latency, direction, size,
//! offset, priority, issue`, where the last two may be missing.
//!
//! Source: fio's documentation, "Log File Formats", and the options `write_lat_log`, `log_offset`,
//! `log_prio` and `log_issue_time`. The time is in whole milliseconds, the latency in nanoseconds (of fio
//! before 3.0 in microseconds, which cannot be told), the direction 0 for a read, 1 for a write and 2 for
//! a trim; `size` and `offset` are in bytes. An entry is written when a request completes: it arrived its
//! latency before. With `--log_issue_time=1` the log of completions (`clat`) has the time of issue in
//! nanoseconds, and the request arrives then.
//!
//! Logs of bandwidth and of IOPS have the same columns, with another value for the latency. A log of
//! averages (`--log_avg_msec`) has the size 0. Records are put in order of arrival, and times are made
//! relative to the first one.
//!
//! Six numbers with blanks between them may be anything. They are taken for this format where most sizes
//! and offsets are whole blocks of 512 bytes, most latencies began within the log, latencies and offsets
//! vary, and times seldom fall.

use super::completed::{Stay, stay};
use super::{Clock, Format, Row, Timing};
use crate::fault::Fault;
use crate::record::{Extent, Record, completion_after};
use crate::scan::{Fields, Number, Token};
use crate::source::{LineDecoder, LineSource, most_lines_parse, whole_lines};
use freewheel_units::{BLOCK_BYTES, Op, SimTime};

const MILLISECOND_NS: u64 = 1_000_000;
const NANOSECOND_NS: u64 = 1;
/// Columns with an offset; in front of the priority, which newer versions write.
const WITH_OFFSET: usize = 5;
const WITH_PRIORITY: usize = 6;

pub(super) const ROW: Row = Row {
    format: Format::FioLatLog,
    name: "fio-lat-log",
    description: "fio's log of latencies with offsets: end in ms, latency in ns, 0 read 1 write 2 trim, bytes, offset",
    rebased: true,
    clock: Clock::FromStart,
    timing: Timing::Recorded,
    unit: None,
    may_be_objects: false,
    detect: |head| {
        has_offsets(head)
            && has_latencies(head)
            && most_lines_parse(head, &mut FioLatLog)
            && is_plausible(head)
    },
    open: Some(|input, _| Ok(Box::new(LineSource::new(input.into_stream(), FioLatLog)))),
};

/// True if the lines are fio's, and their fifth column is no priority: that is 0 or 1, or hexadecimal.
fn has_offsets(head: &[u8]) -> bool {
    // fio writes a blank after each comma, other formats of such columns do not.
    whole_lines(head).all(|line| line.windows(2).any(|pair| pair == b", "))
        && whole_lines(head).any(|line| {
            let fifth = line.split(|&byte| byte == b',').nth(WITH_OFFSET - 1).unwrap_or_default();
            line.split(|&byte| byte == b',').count() >= WITH_PRIORITY
                || !matches!(fifth.trim_ascii(), b"0" | b"1")
        })
}

/// True if the values are no count: in a log of IOPS all are 1.
fn has_latencies(head: &[u8]) -> bool {
    whole_lines(head)
        .any(|line| second_column(line).is_some_and(|value| value.trim_ascii() != b"1"))
}

fn second_column(line: &[u8]) -> Option<&[u8]> {
    <[u8]>::split(line, |&byte| byte == b',').nth(1)
}

/// Entries among which one may be earlier than that before it, as where logs were joined.
const FALLS_EVERY: usize = 4;

/// True if the numbers are those of a log: see above.
fn is_plausible(head: &[u8]) -> bool {
    let entries: Vec<[u64; WITH_OFFSET]> = whole_lines(head).filter_map(numbers).collect();
    let falls = entries.windows(2).filter(|pair| pair[1][0] < pair[0][0]).count();
    most(|[_, _, _, size, offset]| (size | offset).is_multiple_of(BLOCK_BYTES), &entries)
        // The end is cut to whole milliseconds.
        && most(|[end, latency, ..]| latency / MILLISECOND_NS <= *end, &entries)
        && varies(1, &entries)
        && varies(WITH_OFFSET - 1, &entries)
        && falls * FALLS_EVERY <= entries.len()
}

fn most(is: fn(&&[u64; WITH_OFFSET]) -> bool, entries: &[[u64; 5]]) -> bool {
    entries.iter().filter(is).count() * 2 >= entries.len()
}

fn varies(column: usize, entries: &[[u64; 5]]) -> bool {
    entries.len() == 1 || entries.windows(2).any(|pair| pair[0][column] != pair[1][column])
}

/// The columns up to the offset.
fn numbers(line: &[u8]) -> Option<[u64; WITH_OFFSET]> {
    let mut fields = Fields::comma(line);
    let mut numbers = [0; WITH_OFFSET];
    for number in &mut numbers {
        *number = fields.next("column").and_then(Token::number).ok()?.value;
    }
    Some(numbers)
}

struct FioLatLog;

impl LineDecoder for FioLatLog {
    fn parse(&mut self, line: &[u8]) -> Result<Record, Fault> {
        let mut fields = Fields::comma(line);
        let time = fields.next("time")?.number()?.time(MILLISECOND_NS)?;
        let latency = fields.next("latency")?;
        let op = op(fields.next("direction")?)?;
        let size = size(fields.next("size")?)?;
        let offset = fields.next("offset")?.number()?;
        let extent = Extent::of_bytes(offset, size)?;
        if let Ok(priority) = fields.next("priority") {
            priority.number_or_hex()?;
        }
        let issue = fields.next("issue").ok();
        fields.end()?;
        let Stay { arrival, completion } = times(time, latency, issue)?;
        Ok(Record { completion: Some(completion), ..extent.request(arrival, op, 0) })
    }
}

fn times(time: SimTime, latency: Token, issue: Option<Token>) -> Result<Stay, Fault> {
    let ns = latency.number()?;
    let response = ns.time(NANOSECOND_NS)?;
    let issue = issue.map_or(Ok(0), |issue| issue.number().map(|issue| issue.value))?;
    if issue == 0 {
        return stay(time, response, latency);
    }
    let arrival = SimTime::from_ns(issue);
    let end = issue.checked_add(ns.value).ok_or_else(|| ns.too_long())?;
    let completion = completion_after(arrival, Number { value: end, ..ns })?;
    Ok(Stay { arrival, completion })
}

fn size(token: Token) -> Result<Number, Fault> {
    let size = token.number()?;
    if size.value == 0 {
        return Err(size.fault("an average over requests: leave out --log_avg_msec"));
    }
    Ok(size)
}

#[inline]
fn op(token: Token) -> Result<Op, Fault> {
    match token.text {
        b"0" => Ok(Op::Read),
        b"1" => Ok(Op::Write),
        b"2" => Ok(Op::Trim),
        _ => Err(token.fault("write 0 for a read, 1 for a write or 2 for a trim")),
    }
}
