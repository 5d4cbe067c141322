//! Events of Linux's block layer, binary, as `blktrace` writes them: a file a processor, or a stream.
//!
//! | bytes, version 7 | version 8 | field | |
//! |---|---|---|---|
//! | 0..4 | 0..4 | magic | 0x656174 and the version, in the byte order of the traced machine |
//! | 8..16 | 8..16 | time | nanoseconds |
//! | 16..24 | 16..24 | sector | block of 512 bytes |
//! | 24..28 | 24..28 | bytes | |
//! | 28..32 | 32..40 | action | what happened; its kind in the bits from 16 on |
//! | 36..40 | 40..44 | device | major number times 2^20, plus the minor number |
//! | 46..48 | 50..52 | pdu_len | bytes that follow the event |
//!
//! An event has 48 bytes in version 7 and 64 in version 8. Source: `include/uapi/linux/blktrace_api.h` of
//! Linux. Read are queueing, merging, insertion, issue and
//! completion; `pairing` and `merging` say how they become requests. Commands of
//! pass-through, and messages, are no requests.
//!
//! Each processor has a file, `sda.blktrace.0` and so on. Opening one of them opens all that lie beside
//! it: a request may be queued on one processor and completed on another. Times are made relative to the first
//! record.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::{Clock, Format, How, Row, Timing};
use crate::fault::Fault;
use crate::input::{BytesConsumed, Input, Stream};
use crate::record::Extent;
use crate::scan::Number;
use crate::source::{
    BlockEvent, EventSource, EventStream, Position, Source, Stage, Stop, Transfer,
};
use freewheel_units::{Op, SimTime, VolumeBlock};

/// The upper three bytes of the magic number.
const MAGIC: u32 = 0x0065_6174;
const MAGIC_BYTES: usize = 4;
const EVENT_BYTES_MAX: usize = 64;

/// Bits of an action: the kind of the request.
const READ: u64 = 1 << 16;
const WRITE: u64 = 1 << 17;
const FLUSH: u64 = 1 << 18;
const PASS_THROUGH: u64 = 1 << 25;
const NOTIFY: u64 = 1 << 26;
const DISCARD: u64 = 1 << 29;
const FUA: u64 = 1 << 31;
/// Bits of the number without the mark of a control group.
const NUMBER: u64 = 0xff;

pub(super) const ROW: Row = Row {
    format: Format::Blktrace,
    name: "blktrace",
    description: "binary events of blktrace, versions 7 and 8: one file a CPU, all read together, or a stream",
    rebased: true,
    clock: Clock::Absolute,
    timing: Timing::Recorded,
    unit: None,
    may_be_objects: false,
    detect: |head| head.first_chunk().is_some_and(|magic| BlktraceLayout::of(magic).is_some()),
    open: Some(|input, how| Ok(source(vec![input], how))),
};

fn source(inputs: Vec<Input>, how: &How) -> Box<dyn Source> {
    let processors = inputs.into_iter().map(|input| Processor::new(input.into_stream())).collect();
    Box::new(EventSource::new(Processors { processors, last: 0 }, how.event_order()))
}

/// The files of the other processors beside the one at `path`.
pub(crate) fn other_processors(path: &Path) -> io::Result<Vec<PathBuf>> {
    let Some(trace) = path.file_name().and_then(|name| trace_name(name.to_str()?)) else {
        return Ok(Vec::new());
    };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut others = Vec::new();
    for entry in fs::read_dir(folder.unwrap_or(Path::new(".")))? {
        let name = entry?.file_name();
        let is_other = Some(name.as_os_str()) != path.file_name();
        if is_other && name.to_str().and_then(trace_name) == Some(trace) {
            others.push(path.with_file_name(name));
        }
    }
    others.sort();
    Ok(others)
}

/// `sda` of `sda.blktrace.0`, also of `sda.blktrace.0.gz`.
fn trace_name(file: &str) -> Option<&str> {
    let (trace, rest) = file.rsplit_once(".blktrace.")?;
    let processor = rest.strip_suffix(".gz").or(rest.strip_suffix(".zst")).unwrap_or(rest);
    processor.bytes().all(|byte| byte.is_ascii_digit()).then_some(trace)
}

/// Opens these files as one trace with the one of `first`. Their damage is an error, lenient or not.
pub(crate) fn open_processors(
    first: Input,
    others: &[PathBuf],
    progress: &BytesConsumed,
    how: &How,
) -> io::Result<Box<dyn Source>> {
    let mut inputs = vec![first];
    for path in others {
        inputs.push(Input::new(fs::File::open(path)?, progress.clone(), false)?);
    }
    Ok(source(inputs, how))
}

/// Places of the fields in a version of the format.
#[derive(Debug, Clone, Copy)]
struct BlktraceLayout {
    is_big_endian: bool,
    bytes: usize,
    action: usize,
    action_bytes: usize,
    device: usize,
    pdu_len: usize,
}

impl BlktraceLayout {
    /// The layout of an event that begins with `magic`.
    fn of(magic: &[u8; MAGIC_BYTES]) -> Option<Self> {
        let little = u32::from_le_bytes(*magic);
        let big = u32::from_be_bytes(*magic);
        let (is_big_endian, word) = match (little >> 8, big >> 8) {
            (MAGIC, _) => (false, little),
            (_, MAGIC) => (true, big),
            _ => return None,
        };
        let (bytes, action, action_bytes, device, pdu_len) = match word & 0xff {
            7 => (48, 28, 4, 36, 46),
            8 => (64, 32, 8, 40, 50),
            _ => return None,
        };
        Some(Self { is_big_endian, bytes, action, action_bytes, device, pdu_len })
    }

    fn number(self, event: &[u8], at: usize, width: usize) -> u64 {
        let bytes = event[at..at + width].iter();
        if self.is_big_endian { bytes.fold(0, add) } else { bytes.rev().fold(0, add) }
    }

    /// Request of an event; `None` if it has none.
    fn parse(self, event: &[u8]) -> Result<Option<BlockEvent>, Fault> {
        let action = self.number(event, self.action, self.action_bytes);
        let Some(stage) = stage(action) else { return Ok(None) };
        let (sector, bytes) = (
            Number { name: "sector", value: self.number(event, 16, 8) },
            Number { name: "bytes", value: self.number(event, 24, 4) },
        );
        let flushes = action & FLUSH != 0;
        // A flush alone is marked as a read of no byte.
        let is_end = stage == Stage::Completed && bytes.value == 0;
        let has_ended = is_end && op(action).is_some_and(|op| op != Op::Read);
        let extent = match op(action) {
            None => None,
            Some(_) if has_ended => {
                Some(Extent { start: VolumeBlock::new(sector.value), ..Extent::NONE })
            }
            Some(_) if bytes.value == 0 => None,
            Some(_) => Some(Extent::of_block_and_bytes(sector, bytes)?),
        };
        let stage = if has_ended { Stage::Ended } else { stage };
        let fua = action & FUA != 0;
        let data = op(action).zip(extent).map(|(op, extent)| Transfer { op, extent, fua });
        let event = BlockEvent {
            time: SimTime::from_ns(self.number(event, 8, 8)),
            device: self.number(event, self.device, 4) as u32,
            stage,
            data,
            flushes,
        };
        Ok((data.is_some() || flushes).then_some(event))
    }
}

fn add(value: u64, &byte: &u8) -> u64 {
    value << 8 | u64::from(byte)
}

fn stage(action: u64) -> Option<Stage> {
    match action & NUMBER {
        _ if action & (PASS_THROUGH | NOTIFY) != 0 => None,
        1 => Some(Stage::Queued),
        2 => Some(Stage::MergedBehind),
        3 => Some(Stage::MergedBefore),
        7 => Some(Stage::Issued),
        8 => Some(Stage::Completed),
        12 => Some(Stage::Inserted),
        _ => None,
    }
}

fn op(action: u64) -> Option<Op> {
    if action & DISCARD != 0 {
        Some(Op::Trim)
    } else if action & WRITE != 0 {
        Some(Op::Write)
    } else {
        (action & READ != 0).then_some(Op::Read)
    }
}

/// The events of one processor.
struct Processor {
    stream: Stream,
    buffer: [u8; EVENT_BYTES_MAX],
    /// Bytes at the start of `buffer` that were read.
    kept: usize,
    next_offset: u64,
    at: Position,
    /// The next event, which is at `at`.
    head: Option<BlockEvent>,
    has_ended: bool,
}

impl Processor {
    fn new(stream: Stream) -> Self {
        let at = Position { offset_bytes: Some(0), ..Position::default() };
        let buffer = [0; EVENT_BYTES_MAX];
        Self { stream, buffer, kept: 0, next_offset: 0, at, head: None, has_ended: false }
    }

    /// Reads on to the next event that is about a request, unless one waits already.
    fn look_ahead(&mut self) -> Result<(), Stop> {
        while self.head.is_none() && !self.has_ended {
            let Some(layout) = self.advance()? else {
                self.has_ended = true;
                break;
            };
            self.head = layout.parse(&self.buffer)?;
        }
        Ok(())
    }

    /// Fills the buffer up to `length` bytes; whether the stream has this number.
    fn fill_to(&mut self, length: usize) -> Result<bool, Stop> {
        while self.kept < length {
            match self.stream.read(&mut self.buffer[self.kept..length]) {
                Ok(0) => return Ok(false),
                Ok(count) => self.kept += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(true)
    }

    /// Reads one event into the buffer, and passes over what follows it; `None` at the end.
    fn advance(&mut self) -> Result<Option<BlktraceLayout>, Stop> {
        let has_magic = self.fill_to(MAGIC_BYTES)?;
        if self.kept == 0 {
            return Ok(None);
        }
        let offset_bytes = Some(self.next_offset);
        self.at = Position { record: self.at.record + 1, line: None, offset_bytes };
        if !has_magic {
            return self.cut_off();
        }
        let Some(layout) = self.layout() else { return Err(self.resynchronise()?) };
        // An event in damaged bytes does not count.
        if !self.fill_to(layout.bytes).inspect_err(|_| self.at.record -= 1)? {
            return self.cut_off();
        }
        let pdu_bytes = layout.number(&self.buffer, layout.pdu_len, 2);
        let passed_over = io::copy(&mut Read::take(&mut self.stream, pdu_bytes), &mut io::sink())?;
        if passed_over < pdu_bytes {
            return self.cut_off();
        }
        self.consume(layout.bytes as u64 + pdu_bytes);
        Ok(Some(layout))
    }

    fn layout(&self) -> Option<BlktraceLayout> {
        BlktraceLayout::of(self.buffer.first_chunk()?)
    }

    fn consume(&mut self, bytes: u64) {
        self.next_offset += bytes;
        self.kept = 0;
    }

    /// Error of an event that the end of the stream cuts off; end of the trace after damage, which is
    /// reported itself.
    fn cut_off(&mut self) -> Result<Option<BlktraceLayout>, Stop> {
        let found = self.kept;
        self.consume(found as u64);
        if self.stream.ended_at_damage() {
            self.at.record -= 1;
            return Ok(None);
        }
        Err(Fault::new("event", &self.buffer[..found], "the file ends within this event").into())
    }

    /// Skips bytes until an event may begin.
    #[cold]
    fn resynchronise(&mut self) -> Result<Stop, Stop> {
        let fault = Fault::new("magic", &self.buffer[..MAGIC_BYTES], "no event begins so");
        while self.kept == MAGIC_BYTES && self.layout().is_none() {
            // Each step keeps the last three bytes, so an event that begins at any byte is found.
            self.buffer.copy_within(1..MAGIC_BYTES, 0);
            self.kept -= 1;
            self.next_offset += 1;
            self.fill_to(MAGIC_BYTES)?;
        }
        if self.kept < MAGIC_BYTES {
            self.consume(self.kept as u64);
        }
        Ok(fault.into())
    }
}

/// The events of all processors, by time as far as each one's are.
struct Processors {
    processors: Vec<Processor>,
    /// The one whose event was given last.
    last: usize,
}

impl Processors {
    /// The processor with the earliest event.
    fn earliest(&self) -> Option<usize> {
        let time = |index: &usize| self.processors[*index].head.map(|event| event.time);
        let with_event = (0..self.processors.len()).filter(|index| time(index).is_some());
        with_event.min_by_key(time)
    }
}

impl EventStream for Processors {
    fn next(&mut self) -> Result<Option<BlockEvent>, Stop> {
        for index in 0..self.processors.len() {
            self.last = index;
            self.processors[index].look_ahead()?;
        }
        let Some(earliest) = self.earliest() else { return Ok(None) };
        self.last = earliest;
        Ok(self.processors[earliest].head.take())
    }

    fn position(&self) -> Position {
        self.processors[self.last].at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_file_known_by_name() {
        assert_eq!(trace_name("sda.blktrace.0"), Some("sda"));
        assert_eq!(trace_name("sda.blktrace.12.zst"), Some("sda"));
        for other in ["sda.blktrace", "sda.blktrace.x", "sda.0"] {
            assert_eq!(trace_name(other), None, "{other}");
        }
    }

    #[test]
    fn magic_number_tells_order_and_version() {
        let layout =
            |magic: &[u8; 4]| BlktraceLayout::of(magic).map(|it| (it.is_big_endian, it.bytes));
        assert_eq!(layout(b"\x07\x74\x61\x65"), Some((false, 48)));
        assert_eq!(layout(b"\x65\x61\x74\x08"), Some((true, 64)));
        assert_eq!(layout(b"\x65\x61\x74\x09"), None);
    }
}
