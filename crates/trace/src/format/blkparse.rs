//! Events of Linux's block layer as `blkparse` prints them in its own format.
//!
//! `8,16 5 2 0.000001850 18615 Q R 1444645666 + 256 [java]`: device, processor, number, time in seconds
//! since the trace began, process, action, kind, first block and blocks of 512 bytes. Source: the manual page of
//! blkparse, sections "Trace actions", "RWBS" and "Default output".
//!
//! Read are `Q` (queued: the arrival), `D` (issued) and `C` (completed); `pairing` says how they become
//! requests. The kind has `R`, `W` or `D` (trim), an `F` before it for a flush and after it for FUA. Events
//! of other kinds (`N`), and commands without a place, are no requests. The summary at the end is passed over.
//! The device is its major number times 2^20 plus its minor number. Times stay as they are.

use super::{Format, Row, Timing};
use crate::fault::Fault;
use crate::input::Stream;
use crate::record::Extent;
use crate::scan::{Fields, TimeUnit, Token};
use crate::source::{
    BlockEvent, EventSource, EventStream, Lines, Position, Stage, Stop, Transfer, whole_lines,
};
use freewheel_units::Op;

const MINOR_BITS: u32 = 20;

pub(super) const ROW: Row = Row {
    format: Format::Blkparse,
    name: "blkparse",
    description: "text of blkparse: device, CPU, number, s, process, Q D or C, kind, block + blocks (512 B)",
    rebased: false,
    timing: Timing::Recorded,
    detect,
    open: Some(|input| Ok(Box::new(EventSource::new(Blkparse::new(input.into_stream()))))),
};

struct Blkparse {
    lines: Lines,
    /// Whether the summary has begun.
    is_over: bool,
}

impl Blkparse {
    fn new(stream: Stream) -> Self {
        Self { lines: Lines::new(stream), is_over: false }
    }
}

impl EventStream for Blkparse {
    fn next(&mut self) -> Result<Option<BlockEvent>, Stop> {
        while !self.is_over && self.lines.advance()? {
            let line = self.lines.line();
            self.is_over = is_summary(line);
            if self.is_over || line.is_empty() || line.starts_with(b"#") {
                continue;
            }
            self.lines.at.record += 1;
            if let Some(event) = parse(self.lines.line())? {
                return Ok(Some(event));
            }
        }
        Ok(None)
    }

    fn position(&self) -> Position {
        self.lines.at
    }
}

fn detect(head: &[u8]) -> bool {
    let lines = || whole_lines(head).take_while(|line| !is_summary(line));
    let parsed = lines().filter(|line| parse(line).is_ok()).count();
    parsed > 0 && parsed * 2 >= lines().count()
}

/// Whether the line begins the sums over processors that `blkparse` prints last.
fn is_summary(line: &[u8]) -> bool {
    line.starts_with(b"CPU") || line.starts_with(b"Total")
}

/// The event in a line; `None` where it is about no request.
fn parse(line: &[u8]) -> Result<Option<BlockEvent>, Fault> {
    let mut fields = Fields::blank(line);
    let device = device(fields.next("device")?)?;
    fields.next("cpu")?.number()?;
    fields.next("sequence")?.number()?;
    let time = fields.next("time")?.time(TimeUnit::Seconds)?;
    fields.next("process")?.number()?;
    let stage = stage(fields.next("action")?)?;
    let kind = kind(fields.next("rwbs")?)?;
    let Some(stage) = stage else { return Ok(None) };
    let extent = extent(&mut fields, stage)?;
    let data = kind.op.zip(extent).map(|(op, extent)| Transfer { op, extent, fua: kind.fua });
    let is_request = data.is_some() || kind.flushes;
    Ok(is_request.then_some(BlockEvent { time, device, stage, data, flushes: kind.flushes }))
}

fn device(token: Token) -> Result<u32, Fault> {
    let mut parts = token.text.split(|&byte| byte == b',');
    let mut part = || parts.next().and_then(|text| Token { text, ..token }.number().ok());
    match (part(), part()) {
        (Some(major), Some(minor)) if major.value < 1 << 12 && minor.value < 1 << MINOR_BITS => {
            Ok((major.value as u32) << MINOR_BITS | minor.value as u32)
        }
        _ => Err(token.fault("not the two numbers of a device, as in 8,16")),
    }
}

/// `None` for an action that tells nothing about arrival or completion.
fn stage(action: Token) -> Result<Option<Stage>, Fault> {
    match action.text {
        b"Q" => Ok(Some(Stage::Queued)),
        b"D" => Ok(Some(Stage::Issued)),
        b"C" => Ok(Some(Stage::Completed)),
        [letter] if letter.is_ascii_alphabetic() => Ok(None),
        b"UT" => Ok(None),
        _ => Err(action.fault("not one of blkparse's actions")),
    }
}

/// What the letters of a kind say.
struct Kind {
    op: Option<Op>,
    flushes: bool,
    fua: bool,
}

fn kind(rwbs: Token) -> Result<Kind, Fault> {
    if !rwbs.text.iter().all(u8::is_ascii_uppercase) {
        return Err(rwbs.fault("not the letters of a kind, as R, WS or FWFS"));
    }
    let (flushes, rest) = match rwbs.text.strip_prefix(b"F") {
        Some(rest) => (true, rest),
        None => (false, rwbs.text),
    };
    let op = match rest.first() {
        Some(b'R') => Some(Op::Read),
        Some(b'W') => Some(Op::Write),
        Some(b'D') => Some(Op::Trim),
        _ => None,
    };
    Ok(Kind { op, flushes, fua: op.is_some() && rest[1..].contains(&b'F') })
}

/// The blocks `FIRST + COUNT`; `None` where the rest of the line is something else. The end of a
/// process's name is no place for a line to end, so a line that was cut off has no `]`.
fn extent(fields: &mut Fields, stage: Stage) -> Result<Option<Extent>, Fault> {
    let start = fields.next("block")?;
    let Ok(start) = start.number() else { return closed(start).map(|()| None) };
    let plus = fields.next("+")?;
    if plus.text != b"+" {
        return if stage == Stage::Completed { closed(plus).map(|()| None) } else { Ok(None) };
    }
    let extent = Extent::of_blocks(start, fields.next("blocks")?.number()?)?;
    fields.next("process name")?;
    Ok(Some(extent))
}

/// Checks that a name or an error number in brackets begins here.
fn closed(token: Token) -> Result<(), Fault> {
    match token.text.first() {
        Some(b'[' | b'(') => Ok(()),
        _ => Err(token.fault("neither a block nor a name in brackets")),
    }
}
