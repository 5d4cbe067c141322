//! Events of Linux's block layer as `blkparse` prints them in its own format.
//!
//! `8,16 5 2 0.000001850 18615 Q R 1444645666 + 256 [java]`: device, processor, number, time in seconds
//! since the trace began, process, action, kind, first block and blocks of 512 bytes. Source: the manual
//! page of blkparse, sections "Trace actions", "RWBS" and "Default output".
//!
//! Read are `Q` (queued: the arrival), `M` and `F` (merged with a waiting request behind or before it), `I`
//! (inserted into the scheduler), `D` (issued) and `C` (completed); `pairing` and `merging` say how they become
//! requests. The process's name is not needed. The kind has `R`, `W` or `D` (trim), an `F` before it for a
//! flush and after it for FUA. Events of other kinds (`N`), and commands without a place, are no requests.
//! The summary at the end is passed over; where events follow, another recording begins. The device is its
//! major number times 2^20 plus its minor number. Times stay as they are.

use super::block_kind::{block_event, device, kind};
use super::{Clock, Format, Row, Timing};
use crate::fault::Fault;
use crate::input::Stream;
use crate::record::Extent;
use crate::scan::{Fields, TimeUnit, Token};
use crate::source::{
    BlockEvent, EventSource, EventStream, Lines, Position, Stage, Stop, whole_lines,
};
use freewheel_units::VolumeBlock;

pub(super) const ROW: Row = Row {
    format: Format::Blkparse,
    name: "blkparse",
    description: "text of blkparse: device, CPU, number, s, process, Q M D or C, kind, block + blocks (512 B)",
    rebased: false,
    clock: Clock::FromStart,
    timing: Timing::Recorded,
    unit: None,
    may_be_objects: false,
    detect,
    open: Some(|input, how| {
        Ok(Box::new(EventSource::new(Blkparse::new(input.into_stream()), how.event_order())))
    }),
};

struct Blkparse {
    lines: Lines,
    /// True if a summary was met that no event has followed.
    in_summary: bool,
    /// True if a summary was met, and no event since.
    after_summary: bool,
    /// True if it stands in front of the event given last.
    begins_run: bool,
    /// True if lines end with the name of a process in brackets: the first event says.
    has_names: Option<bool>,
}

impl Blkparse {
    fn new(stream: Stream) -> Self {
        Self {
            lines: Lines::new(stream),
            in_summary: false,
            after_summary: false,
            begins_run: false,
            has_names: None,
        }
    }

    /// Err for a line without the name that the lines before it have: it is cut off, and its number may be.
    fn check_name(&mut self, stage: Stage) -> Result<(), Fault> {
        let has_name = self.lines.line().ends_with(b"]");
        if !has_name && self.has_names == Some(true) {
            let reason = "the line has no name in brackets, as those before it: it is cut off";
            return Err(Fault::new("process name", self.lines.line(), reason));
        }
        // What a completion has in brackets is its error number.
        if matches!(stage, Stage::Queued | Stage::Issued) {
            self.has_names.get_or_insert(has_name);
        }
        Ok(())
    }

    /// True if the line may hold an event: a summary lasts until one does.
    fn holds_event(&mut self) -> bool {
        let line = self.lines.line();
        self.in_summary |= is_summary(line);
        if line.is_empty() || line.starts_with(b"#") {
            return false;
        }
        !self.in_summary || Fields::blank(line).next("device").and_then(device).is_ok()
    }
}

impl EventStream for Blkparse {
    fn next(&mut self) -> Result<Option<BlockEvent>, Stop> {
        while self.lines.advance()? {
            if !self.holds_event() {
                continue;
            }
            self.after_summary |= std::mem::take(&mut self.in_summary);
            self.lines.at.record += 1;
            let Some(event) = parse(self.lines.line())? else { continue };
            self.check_name(event.stage)?;
            self.begins_run = std::mem::take(&mut self.after_summary);
            return Ok(Some(event));
        }
        Ok(None)
    }

    fn begins_run(&self) -> bool {
        self.begins_run
    }

    fn position(&self) -> Position {
        self.lines.at
    }
}

fn detect(head: &[u8]) -> bool {
    let parsed = whole_lines(head)
        .take_while(|line| !is_summary(line))
        .filter(|line| parse(line).is_ok())
        .count();
    parsed > 0 && parsed * 2 >= whole_lines(head).take_while(|line| !is_summary(line)).count()
}

/// True if the line begins the sums over processors that `blkparse` prints last.
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
    Ok(block_event((time, device), stage, &kind, extent))
}

/// `None` for an action that is not part of the way of a request.
fn stage(action: Token) -> Result<Option<Stage>, Fault> {
    match action.text {
        b"Q" => Ok(Some(Stage::Queued)),
        b"M" => Ok(Some(Stage::MergedBehind)),
        b"F" => Ok(Some(Stage::MergedBefore)),
        b"I" => Ok(Some(Stage::Inserted)),
        b"D" => Ok(Some(Stage::Issued)),
        b"C" => Ok(Some(Stage::Completed)),
        [letter] if letter.is_ascii_alphabetic() => Ok(None),
        b"UT" => Ok(None),
        _ => Err(action.fault("not one of blkparse's actions")),
    }
}

/// The blocks `FIRST + COUNT`; none of a request of several commands that has ended, as
/// `C WSM FIRST [0]`; `None` where the rest of the line is something else.
fn extent(fields: &mut Fields, stage: Stage) -> Result<Option<Extent>, Fault> {
    let start = fields.next("block")?;
    let Ok(start) = start.number() else { return closed(start).map(|()| None) };
    let plus = fields.next("+")?;
    if plus.text != b"+" {
        if stage != Stage::Completed {
            return Ok(None);
        }
        closed(plus)?;
        return Ok(Some(Extent { start: VolumeBlock::new(start.value), ..Extent::NONE }));
    }
    Ok(Some(Extent::of_blocks(start, fields.next("blocks")?.number()?)?))
}

/// Checks that a name or an error number in brackets begins here.
fn closed(token: Token) -> Result<(), Fault> {
    match token.text.first() {
        Some(b'[' | b'(') => Ok(()),
        _ => Err(token.fault("neither a block nor a name in brackets")),
    }
}
