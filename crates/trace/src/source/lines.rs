//! Formats of one record a line.
//!
//! Goals: one line buffer for the whole trace; a line too long to be a record costs no memory.
//! Non-goals: records over several lines.

use std::io::{BufRead, Read};

use super::{LeftOutRows, Position, Source, Stop};
use crate::Record;
use crate::fault::Fault;
use crate::input::{HEAD_BYTES, Stream, without_byte_order_mark};

/// The longest line that is read; a longer one is malformed and skipped to its end.
const LINE_BYTES_MAX: usize = 4096;

/// Reads the lines of one format.
pub(crate) trait LineDecoder: Send {
    /// Takes `line` if it names columns: called until a line is taken or holds a record, for comments
    /// too. Err for names that are not those of the format.
    fn take_header(&mut self, _line: &[u8]) -> Result<bool, Fault> {
        Ok(false)
    }

    /// Takes `line` if it holds something else than a request.
    fn take_other(&mut self, _line: &[u8]) -> Result<bool, Fault> {
        Ok(false)
    }

    /// Rows so far that it took as other than requests to the disk.
    fn left_out(&self) -> LeftOutRows {
        LeftOutRows::default()
    }

    /// The record in `line`, which has no line end, no blanks around it and is not empty.
    fn parse(&mut self, line: &[u8]) -> Result<Record, Fault>;
}

/// The lines of a text, one at a time, and where they are.
pub(crate) struct Lines {
    stream: Stream,
    line: Vec<u8>,
    /// The longest line that is read.
    bytes_max: usize,
    next_offset: u64,
    /// Place of the line read last. Who finds a record in it counts that.
    pub at: Position,
}

impl Lines {
    pub fn new(stream: Stream) -> Self {
        Self::up_to(stream, LINE_BYTES_MAX)
    }

    /// Lines of up to `bytes_max` bytes; a longer one is malformed.
    pub fn up_to(stream: Stream, bytes_max: usize) -> Self {
        let line = Vec::with_capacity(LINE_BYTES_MAX);
        let at = Position { record: 0, line: Some(0), offset_bytes: Some(0) };
        Self { stream, line, bytes_max, next_offset: 0, at }
    }

    /// Reads one line; `false` at the end. A line that damage cuts off does not count.
    pub fn advance(&mut self) -> Result<bool, Stop> {
        self.line.clear();
        self.at.line = self.at.line.map(|line| line + 1);
        self.at.offset_bytes = Some(self.next_offset);
        // The limit keeps memory bounded when a file without line ends is read as text.
        let mut limited = Read::take(&mut self.stream, self.bytes_max as u64);
        let length = limited.read_until(b'\n', &mut self.line)?;
        self.next_offset += length as u64;
        if length == self.bytes_max && self.line.last() != Some(&b'\n') {
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

    /// The line read last, without its end and the blanks around it.
    #[inline]
    pub fn line(&self) -> &[u8] {
        self.line.trim_ascii()
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
        let reason = format!("longer than {} bytes", self.bytes_max);
        Ok(Fault::new("line", &self.line, reason))
    }
}

/// The records of a text trace. Blank lines and lines that begin with `#` hold none. The header may come
/// again, where files were joined.
pub(crate) struct LineSource<D> {
    lines: Lines,
    decoder: D,
    at_first_line: bool,
    /// The line that names the columns, or the format.
    header: Option<Vec<u8>>,
    /// True if the header has come again, and no record since.
    header_again: bool,
    /// True if it came in front of the record given last.
    begins_run: bool,
}

impl<D: LineDecoder> LineSource<D> {
    pub fn new(stream: Stream, decoder: D) -> Self {
        let lines = Lines::new(stream);
        Self {
            lines,
            decoder,
            at_first_line: true,
            header: None,
            header_again: false,
            begins_run: false,
        }
    }

    /// True if the line is no record; Err for a wrong header.
    #[inline]
    fn take_other(&mut self) -> Result<bool, Fault> {
        let line = self.lines.line();
        if self.at_first_line && !line.is_empty() {
            // A comment before the header leaves the next line the first.
            self.at_first_line = line.starts_with(b"#");
            if self.decoder.take_header(line)? {
                self.at_first_line = false;
                self.header = Some(line.to_vec());
                return Ok(true);
            }
        }
        // Files that were joined may have a byte order mark each.
        if self.header.as_deref() == Some(without_byte_order_mark(line)) {
            self.header_again = true;
            return Ok(true);
        }
        Ok(!holds_record(line) || self.decoder.take_other(line)?)
    }
}

impl<D: LineDecoder> Source for LineSource<D> {
    fn next(&mut self) -> Result<Option<Record>, Stop> {
        while self.lines.advance()? {
            if self.take_other()? {
                continue;
            }
            self.lines.at.record += 1;
            let record = self.decoder.parse(self.lines.line())?.checked()?;
            self.begins_run = std::mem::take(&mut self.header_again);
            return Ok(Some(record));
        }
        Ok(None)
    }

    fn position(&self) -> Position {
        self.lines.at
    }

    fn begins_run(&self) -> bool {
        self.begins_run
    }

    fn left_out(&self) -> LeftOutRows {
        self.decoder.left_out()
    }
}

#[inline]
fn holds_record(line: &[u8]) -> bool {
    !matches!(line.first(), None | Some(b'#'))
}

/// The lines of `head` that may hold records, with the header, without an incomplete last line.
pub(crate) fn whole_lines(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    let is_cut = head.len() >= HEAD_BYTES;
    let head = without_byte_order_mark(head);
    let end = head.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    let whole = if is_cut { &head[..end] } else { head };
    whole.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| holds_record(line))
}

/// The first line of `head`, be it a comment.
pub(crate) fn first_line(head: &[u8]) -> &[u8] {
    let head = without_byte_order_mark(head);
    head.split(|&byte| byte == b'\n').next().unwrap_or_default().trim_ascii()
}

/// The records that `decoder` finds at the beginning of a trace.
pub(crate) fn parsed_lines(head: &[u8], decoder: &mut dyn LineDecoder) -> Vec<Record> {
    whole_lines(head).filter_map(|line| decoder.parse(line).ok()).collect()
}

/// True if at least half of the lines at the start of `head`, and at least one, are records of `decoder`.
/// Half suffices so that a dirty trace is recognised, and its first malformed record is reported as such.
pub(crate) fn most_lines_parse(head: &[u8], decoder: &mut dyn LineDecoder) -> bool {
    let mut first = whole_lines(head).take(1);
    let has_header = first.any(|line| decoder.take_header(line) == Ok(true));
    let lines = whole_lines(head).count() - usize::from(has_header);
    let parsed = parsed_lines(head, decoder).len();
    parsed > 0 && parsed * 2 >= lines
}
