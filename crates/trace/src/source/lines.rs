//! Formats of one record a line.
//!
//! Goals: one line buffer for the whole trace; a line too long to be a record costs no memory.
//! Non-goals: records over several lines.

use std::io::{BufRead, Read};

use super::{Position, Source, Stop};
use crate::Record;
use crate::error::Fault;
use crate::input::{HEAD_BYTES, Stream, without_byte_order_mark};

/// The longest line that is read; a longer one is malformed and skipped to its end.
const LINE_BYTES_MAX: usize = 4096;

/// Reads the lines of one format.
pub(crate) trait LineDecoder: Send {
    /// Whether `line`, the first of the trace, names columns instead of holding a record.
    fn is_header(&self, _line: &[u8]) -> bool {
        false
    }

    /// Fault of `line`, the first of the trace, if it names columns but is not the header.
    fn header_fault(&self, _line: &[u8]) -> Option<Fault> {
        None
    }

    /// The record in `line`, which has no line end, no blanks around it and is not empty.
    fn parse(&mut self, line: &[u8]) -> Result<Record, Fault>;
}

/// The records of a text trace. Blank lines and lines that begin with `#` hold none.
pub(crate) struct LineSource<D> {
    stream: Stream,
    decoder: D,
    line: Vec<u8>,
    next_offset: u64,
    at: Position,
    at_first_line: bool,
}

impl<D: LineDecoder> LineSource<D> {
    pub fn new(stream: Stream, decoder: D) -> Self {
        let line = Vec::with_capacity(LINE_BYTES_MAX);
        let at = Position { record: 0, line: Some(0), offset_bytes: Some(0) };
        Self { stream, decoder, line, next_offset: 0, at, at_first_line: true }
    }

    /// Reads one line into the buffer; `false` at the end. A line that damage cuts off does not count.
    fn read_line(&mut self) -> Result<bool, Stop> {
        self.line.clear();
        self.at.line = self.at.line.map(|line| line + 1);
        self.at.offset_bytes = Some(self.next_offset);
        // The limit keeps memory bounded when a file without line ends is read as text.
        let mut limited = Read::take(&mut self.stream, LINE_BYTES_MAX as u64);
        let length = limited.read_until(b'\n', &mut self.line)?;
        self.next_offset += length as u64;
        if length == LINE_BYTES_MAX && self.line.last() != Some(&b'\n') {
            return Err(self.skip_long_line()?.into());
        }
        if self.line.last() != Some(&b'\n') && self.stream.ended_at_damage() {
            return Ok(false);
        }
        if self.at.line == Some(1) {
            self.drop_byte_order_mark();
        }
        Ok(length > 0)
    }

    #[cold]
    fn drop_byte_order_mark(&mut self) {
        let mark = self.line.len() - without_byte_order_mark(&self.line).len();
        self.line.drain(..mark);
    }

    #[cold]
    fn skip_long_line(&mut self) -> Result<Fault, Stop> {
        self.at.record += 1;
        self.next_offset += self.stream.skip_until(b'\n')? as u64;
        Ok(Fault::new("line", &self.line, "longer than 4096 bytes"))
    }

    /// Whether the line is the header and so no record; Err for a wrong header.
    fn take_header(&mut self) -> Result<bool, Fault> {
        if !std::mem::take(&mut self.at_first_line) {
            return Ok(false);
        }
        let line = self.line.trim_ascii();
        self.decoder.header_fault(line).map_or(Ok(self.decoder.is_header(line)), Err)
    }
}

impl<D: LineDecoder> Source for LineSource<D> {
    fn next(&mut self) -> Result<Option<Record>, Stop> {
        while self.read_line()? {
            if !holds_record(self.line.trim_ascii()) || self.take_header()? {
                continue;
            }
            self.at.record += 1;
            return Ok(Some(self.decoder.parse(self.line.trim_ascii())?));
        }
        Ok(None)
    }

    fn position(&self) -> Position {
        self.at
    }
}

#[inline]
fn holds_record(line: &[u8]) -> bool {
    !matches!(line.first(), None | Some(b'#'))
}

/// The lines of `head` that may hold records, with the header, without an incomplete last line.
fn whole_lines(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    let is_cut = head.len() >= HEAD_BYTES;
    let head = without_byte_order_mark(head);
    let end = head.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    let whole = if is_cut { &head[..end] } else { head };
    whole.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| holds_record(line))
}

/// The records that `decoder` finds at the beginning of a trace.
pub(crate) fn parsed_lines(head: &[u8], decoder: &mut dyn LineDecoder) -> Vec<Record> {
    whole_lines(head).filter_map(|line| decoder.parse(line).ok()).collect()
}

/// Whether at least half of the lines at the start of `head`, and at least one, are records of
/// `decoder`. Half suffices so that a dirty trace is recognised, and its first malformed record is
/// reported as such.
pub(crate) fn most_lines_parse(head: &[u8], decoder: &mut dyn LineDecoder) -> bool {
    let has_header = whole_lines(head).next().is_some_and(|line| decoder.is_header(line));
    let lines = whole_lines(head).count() - usize::from(has_header);
    let parsed = parsed_lines(head, decoder).len();
    parsed > 0 && parsed * 2 >= lines
}
