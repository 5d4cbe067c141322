//! Formats of packed binary records.
//!
//! Goals: a record cut off by the end of the file is malformed, not lost; where the format marks
//! the beginning of a record, reading resumes at the next mark after damage.
//! Non-goals: records longer than [`RECORD_BYTES_MAX`].

use std::io::{self, Read};

use super::{LeftOutRows, Position, Source, Stop};
use crate::Record;
use crate::fault::Fault;
use crate::input::Stream;

/// The longest record of any binary format here.
pub(crate) const RECORD_BYTES_MAX: usize = 128;
/// Bytes that a format may look at to tell a record's length; no record is shorter.
const PREFIX_BYTES: usize = 8;

/// Reads the records of one binary format.
pub(crate) trait BinaryDecoder: Send {
    /// Reads the header at the start of the trace; returns its length in bytes.
    fn begin(&mut self, head: &[u8]) -> Result<usize, Fault>;

    /// The length of the record that begins with `prefix`, from 8 to [`RECORD_BYTES_MAX`] bytes;
    /// `None` when no record can begin so.
    fn record_bytes(&self, prefix: &[u8; PREFIX_BYTES]) -> Option<usize>;

    /// True if there is a request in the record, and not the size 0, `bytes`, as long as `record_bytes`
    /// said.
    fn holds_request(&self, _bytes: &[u8]) -> bool {
        true
    }

    /// The record in `bytes`, as long as `record_bytes` said.
    fn parse(&mut self, bytes: &[u8]) -> Result<Record, Fault>;
}

/// The records of a binary trace.
pub(crate) struct BinarySource<D> {
    stream: Stream,
    decoder: D,
    buffer: [u8; RECORD_BYTES_MAX],
    next_offset: u64,
    at: Position,
    /// Bytes at the start of `buffer` that were read but belong to the next record.
    kept: usize,
    /// Records of size 0.
    empty: u64,
}

impl<D: BinaryDecoder> BinarySource<D> {
    /// Passes over the header.
    pub fn new(head: &[u8], mut stream: Stream, mut decoder: D) -> Result<Self, Stop> {
        let header_bytes = decoder.begin(head)? as u64;
        io::copy(&mut Read::take(&mut stream, header_bytes), &mut io::sink())?;
        let at = Position { offset_bytes: Some(0), ..Position::default() };
        let buffer = [0; RECORD_BYTES_MAX];
        Ok(Self { stream, decoder, buffer, next_offset: header_bytes, at, kept: 0, empty: 0 })
    }

    /// Fills the buffer up to `length` bytes; returns the number that it holds.
    fn fill_to(&mut self, length: usize) -> Result<usize, Stop> {
        while self.kept < length {
            match self.stream.read(&mut self.buffer[self.kept..length]) {
                Ok(0) => break,
                Ok(count) => self.kept += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(self.kept)
    }

    fn prefix(&self) -> &[u8; PREFIX_BYTES] {
        self.buffer.first_chunk().expect("the buffer is longer")
    }

    /// Marks `length` bytes as consumed.
    fn consume(&mut self, length: usize) {
        self.next_offset += length as u64;
        self.kept = 0;
    }

    /// Reads one record into the buffer and returns its length; `None` at the end.
    fn advance(&mut self) -> Result<Option<usize>, Stop> {
        if self.fill_to(PREFIX_BYTES)? == 0 {
            return Ok(None);
        }
        let offset_bytes = Some(self.next_offset);
        self.at = Position { record: self.at.record + 1, line: None, offset_bytes };
        if self.kept < PREFIX_BYTES {
            return self.cut_off();
        }
        let Some(length) = self.decoder.record_bytes(self.prefix()) else {
            return Err(self.resynchronise()?);
        };
        match self.fill_to(length) {
            Ok(kept) if kept < length => return self.cut_off(),
            Ok(_) => {}
            Err(stop) => {
                self.at.record -= 1;
                return Err(stop);
            }
        }
        self.consume(length);
        Ok(Some(length))
    }

    /// Error of a record that the end of the stream cuts off; end of the trace after damage, which is
    /// reported itself.
    fn cut_off(&mut self) -> Result<Option<usize>, Stop> {
        let found = self.kept;
        self.consume(found);
        if self.stream.ended_at_damage() {
            self.at.record -= 1;
            return Ok(None);
        }
        let reason = "the file ends within this record";
        Err(Fault::new("record", &self.buffer[..found], reason).into())
    }

    /// Skips bytes until a record may begin.
    #[cold]
    fn resynchronise(&mut self) -> Result<Stop, Stop> {
        let found = *self.prefix();
        while self.kept == PREFIX_BYTES && self.decoder.record_bytes(self.prefix()).is_none() {
            // Each step keeps the last seven bytes, so a record that begins at any byte is found.
            self.buffer.copy_within(1..PREFIX_BYTES, 0);
            self.kept -= 1;
            self.next_offset += 1;
            self.fill_to(PREFIX_BYTES)?;
        }
        if self.kept < PREFIX_BYTES {
            self.consume(self.kept);
        }
        Ok(Fault::new("record", &found, "no record of this format begins so").into())
    }
}

impl<D: BinaryDecoder> Source for BinarySource<D> {
    fn next(&mut self) -> Result<Option<Record>, Stop> {
        while let Some(length) = self.advance()? {
            let bytes = &self.buffer[..length];
            if self.decoder.holds_request(bytes) {
                return Ok(Some(self.decoder.parse(bytes)?.checked()?));
            }
            self.empty += 1;
        }
        Ok(None)
    }

    fn position(&self) -> Position {
        self.at
    }

    fn left_out(&self) -> LeftOutRows {
        LeftOutRows { empty: self.empty, ..LeftOutRows::default() }
    }
}
