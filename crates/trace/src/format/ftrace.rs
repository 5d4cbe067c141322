//! Events of Linux's block layer as ftrace prints them (`/sys/kernel/tracing/trace`), `trace-cmd report`, and
//! `perf script`.
//!
//! `dd-77 [001] d..1 12.345678: block_rq_issue: 8,0 WS 4096 () 2048 + 8 [dd]`: process, processor, flags, time
//! in seconds, event, device, kind, bytes, command, first block and blocks of 512 bytes. Source: Linux's
//! `include/trace/events/block.h` and `Documentation/trace/ftrace.rst`; the manual pages of trace-cmd. Since
//! Linux 6.5 the priority comes after the blocks (`none,0,0`).
//!
//! Read are `block_bio_queue` (queued: the arrival), `block_bio_backmerge` and `block_bio_frontmerge`,
//! `block_rq_insert` and `block_rq_issue` (the arrival of what was not seen being queued), and
//! `block_rq_complete`. `pairing` and `merging` say how they become requests. The kind
//! has `R`, `W` or `D` (trim), an `F` before it for a flush and after it for FUA; other kinds (`N`) are no
//! requests. Other events are passed over. The device is its major number times 2^20 plus its minor number.
//! Times are made relative to the first record.

use super::block_kind::{block_event, device, kind};
use super::{Clock, Format, Row, Timing};
use crate::fault::Fault;
use crate::input::Stream;
use crate::record::Extent;
use crate::scan::{Fields, TimeUnit, Token};
use crate::source::{
    BlockEvent, EventSource, EventStream, Lines, Position, Stage, Stop, first_line, whole_lines,
};
use freewheel_units::VolumeBlock;

/// Beginning of the kernel's own file: events of other kinds may fill its start.
const HEADER: &[u8] = b"# tracer: nop";

pub(super) const ROW: Row = Row {
    format: Format::Ftrace,
    name: "ftrace",
    description: "text of ftrace and trace-cmd: process, CPU, s, block_rq_issue: device, kind, block + blocks (512 B)",
    rebased: true,
    clock: Clock::Absolute,
    timing: Timing::Recorded,
    unit: None,
    may_be_objects: false,
    detect: |head| {
        first_line(head) == HEADER
            || whole_lines(head).any(|line| matches!(parse(line), Ok(Some(_))))
    },
    open: Some(|input, how| {
        Ok(Box::new(EventSource::new(Ftrace::new(input.into_stream()), how.event_order())))
    }),
};

struct Ftrace {
    lines: Lines,
}

impl Ftrace {
    fn new(stream: Stream) -> Self {
        Self { lines: Lines::new(stream) }
    }
}

impl EventStream for Ftrace {
    fn next(&mut self) -> Result<Option<BlockEvent>, Stop> {
        while self.lines.advance()? {
            let line = self.lines.line();
            if line.is_empty() || line.starts_with(b"#") || is_about_all(line) {
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

/// True if a line is about the whole trace, as trace-cmd prints them first.
fn is_about_all(line: &[u8]) -> bool {
    [&b"cpus="[..], b"version = ", b"CPU "].iter().any(|begin| line.starts_with(begin))
}

/// The event in a line; `None` where it is about no request.
fn parse(line: &[u8]) -> Result<Option<BlockEvent>, Fault> {
    let Some(Event { time, name, rest: mut fields }) = Event::of_block_layer(line) else {
        return if is_other_event(line) { Ok(None) } else { Err(no_event(line)) };
    };
    let Some(stage) = stage(name) else { return Ok(None) };
    let time = time.time(TimeUnit::Seconds)?;
    let device = device(fields.next("device")?)?;
    let kind = kind(fields.next("rwbs")?)?;
    let extent = extent(&mut fields)?;
    Ok(block_event((time, device), stage, &kind, extent))
}

/// The parts of a line with an event of the block layer.
struct Event<'a> {
    time: Token<'a>,
    /// Without `block_`.
    name: &'a [u8],
    rest: Fields<'a>,
}

impl<'a> Event<'a> {
    /// The event behind a word that ends as a time does; the words before it may be those of a name.
    fn of_block_layer(line: &'a [u8]) -> Option<Self> {
        let mut rest = Fields::blank(line);
        let mut before = Token { name: "time", text: b"" };
        while let Ok(word) = rest.next("event") {
            if let (Some(text), Some(name)) = (before.text.strip_suffix(b":"), event(word.text)) {
                return Some(Self { time: Token { text, ..before }, name, rest });
            }
            before.text = word.text;
        }
        None
    }
}

/// The name of an event of the block layer; `perf script` puts its group before it.
fn event(word: &[u8]) -> Option<&[u8]> {
    let name = word.strip_prefix(b"block:").unwrap_or(word);
    name.strip_prefix(b"block_")?.strip_suffix(b":")
}

fn position(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}

/// True if a line has an event of another kind: a processor in brackets, and a colon behind it.
fn is_other_event(line: &[u8]) -> bool {
    let is_lost = position(line, b"LOST ").is_some() || position(line, b"EVENTS DROPPED").is_some();
    let after_processor = position(line, b"] ").map(|at| &line[at..]);
    !is_lost && after_processor.is_some_and(|rest| position(rest, b": ").is_some())
}

#[cold]
fn no_event(line: &[u8]) -> Fault {
    let reason = match position(line, b"LOST ").or_else(|| position(line, b"EVENTS DROPPED")) {
        Some(_) => "events were lost here: record again with a larger buffer",
        None => "not an event with a processor in brackets, a time and a name",
    };
    Fault::new("line", line, reason)
}

/// `None` for an event that is not part of the way of a request.
fn stage(event: &[u8]) -> Option<Stage> {
    match event {
        b"bio_queue" => Some(Stage::Queued),
        b"bio_backmerge" => Some(Stage::MergedBehind),
        b"bio_frontmerge" => Some(Stage::MergedBefore),
        b"rq_insert" => Some(Stage::Inserted),
        b"rq_issue" => Some(Stage::Issued),
        b"rq_complete" => Some(Stage::Completed),
        _ => None,
    }
}

/// The blocks `FIRST + COUNT`, after the bytes and the command of some events. A request of several commands
/// ends with a completion of no blocks; `None` for no place.
fn extent(fields: &mut Fields) -> Result<Option<Extent>, Fault> {
    let mut start = fields.next("block")?;
    let mut next = fields.next("+")?;
    while next.text != b"+" {
        start = Token { text: next.text, ..start };
        next = fields.next("+")?;
    }
    let count = fields.next("blocks")?.number()?;
    // A line that was cut off has neither a name nor an error in brackets.
    while !fields.next("process name or error")?.text.starts_with(b"[") {}
    match start.number() {
        Ok(start) if count.value == 0 => {
            Ok(Some(Extent { start: VolumeBlock::new(start.value), ..Extent::NONE }))
        }
        // What has no blocks may have no place either.
        Err(_) if count.value == 0 => Ok(None),
        start => Extent::of_blocks(start?, count).map(Some),
    }
}
