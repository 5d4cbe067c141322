//! Cuts a stream into records: by line or by fixed layout. (The Parquet format has its own source
//! beside its schema.)
//!
//! Goals: a decoder of a format sees the bytes of one record only; after a malformed record the source
//! continues with the next.
//! Non-goals: time bases, lenience and counting, which belong to the reader.

mod binary;
mod lines;
mod pairing;
mod reorder;

use std::io;

pub(crate) use binary::{BinaryDecoder, BinarySource};
pub(crate) use lines::{
    LineDecoder, LineSource, Lines, first_line, most_lines_parse, parsed_lines, whole_lines,
};
pub(crate) use pairing::{BlockEvent, EventSource, EventStream, Stage, Transfer};
pub(crate) use reorder::{ReorderBuffer, Reordered};

use crate::Record;
use crate::fault::Fault;

/// Reason for which a source gave no record.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The stream failed and ends.
    Io(io::Error),
    /// One record is malformed; the next call continues after it.
    Fault(Fault),
    /// The container is damaged and ends.
    Broken(String),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// Place of the record last delivered, or last found malformed.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Position {
    /// Number in the trace, from 1.
    pub record: u64,
    /// Line of the decompressed stream, from 1; `None` where records are no lines.
    pub line: Option<u64>,
    /// First byte in the decompressed stream; `None` in Parquet.
    pub offset_bytes: Option<u64>,
}

/// A stream of records with the arrivals as the format has them.
pub(crate) trait Source: Send {
    /// The next record; `None` at the end.
    fn next(&mut self) -> Result<Option<Record>, Stop>;

    /// Where that was.
    fn position(&self) -> Position;
}
