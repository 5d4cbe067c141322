//! Cuts a stream into records: by line or by fixed layout. (The Parquet format has its own source
//! beside its schema.)
//!
//! Goals: a decoder of a format sees the bytes of one record only; after a malformed record the source
//! continues with the next.
//! Non-goals: time bases, lenience and counting, which belong to the reader.

mod binary;
mod block_event;
mod event_source;
mod lines;
mod merging;
mod order;
mod pairing;
mod recordings;
mod reorder;
mod runs;
mod spans;

use std::io;

use serde::Serialize;

pub(crate) use binary::{BinaryDecoder, BinarySource};
pub(crate) use block_event::{BlockEvent, Stage, Transfer};
pub(crate) use event_source::{Deliver, EventOrder, EventSource, EventStream};
pub(crate) use lines::{
    LineDecoder, LineSource, Lines, first_line, most_lines_parse, parsed_lines, whole_lines,
};
pub use merging::LayerCounts;
pub(crate) use order::{Ordered, TimeOrder, Window};
pub(crate) use recordings::Recordings;
pub(crate) use runs::{ClockRuns, Found, RunOptions};

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
    /// A temporary file failed, in which records are sorted.
    TemporaryFile(io::Error),
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

    /// Place of that record.
    fn position(&self) -> Position;

    /// True if a header came again in front of that record, or the end of another recording.
    fn begins_run(&self) -> bool {
        false
    }

    /// Rows so far that hold no request to the disk.
    fn left_out(&self) -> LeftOutRows {
        LeftOutRows::default()
    }

    /// Times of the source's events, where it orders these itself.
    fn event_times(&self) -> Option<EventTimes> {
        None
    }

    /// Counts of requests at a block layer so far, where the source counts them.
    fn layers(&self) -> Option<LayerCounts> {
        None
    }

    /// Words for what is there instead, where no request comes.
    fn holds(&self) -> Option<String> {
        None
    }
}

impl Source for Box<dyn Source> {
    fn next(&mut self) -> Result<Option<Record>, Stop> {
        (**self).next()
    }

    fn position(&self) -> Position {
        (**self).position()
    }

    fn begins_run(&self) -> bool {
        (**self).begins_run()
    }

    fn left_out(&self) -> LeftOutRows {
        (**self).left_out()
    }

    fn event_times(&self) -> Option<EventTimes> {
        (**self).event_times()
    }

    fn layers(&self) -> Option<LayerCounts> {
        (**self).layers()
    }

    fn holds(&self) -> Option<String> {
        (**self).holds()
    }
}

/// Rows of a trace that are no request to the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct LeftOutRows {
    /// Requests that a cache in front of the disk served.
    pub cache_hits: u64,
    /// Requests of no byte.
    pub empty: u64,
}

impl LeftOutRows {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.cache_hits + self.empty
    }
}

/// Order of a source's events in time.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct EventTimes {
    /// Recordings, one after another in the file.
    pub runs: u64,
    /// Beginning of the second recording.
    pub second: Option<Position>,
    /// True if an event came too late for the window.
    pub needs_merge: bool,
}
