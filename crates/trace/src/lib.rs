//! Block-I/O traces: reading the formats people already have, writing ours, describing what is in
//! them.
//!
//! Goals: memory does not grow with the length of a trace; what a reader cannot understand is a
//! typed error naming file, record, byte, field, value and reason; the same file gives the same
//! records, and the same description, on every machine.
//! Non-goals: replaying a trace (`sim`), repairing one, drives and their parameters.
//!
//! ```no_run
//! use freewheel_trace::{OpenOptions, TraceReader};
//!
//! let mut reader = TraceReader::open("pgbench.csv.zst".as_ref(), &OpenOptions::default())?;
//! for record in &mut reader {
//!     println!("{}", record?.start);
//! }
//! # Ok::<(), freewheel_trace::TraceError>(())
//! ```
//!
//! To add a format: one file in `format/`, ending in a `ROW`; one variant and one line in the
//! registry of `format/mod.rs`; one folder of samples in `fuzz/corpus/`.

mod bytes;
mod characterize;
mod convert;
mod error;
mod fault;
mod format;
mod info;
mod input;
mod no_trace;
mod objects;
mod own_file;
mod pending_file;
mod read_error;
mod reader;
mod record;
mod regions;
mod row;
mod scan;
mod source;
mod split;
mod spool;
mod spread;
mod survey;
mod survey_words;
mod temporary_names;
mod timed;
mod web_log;
mod write;

pub use characterize::{
    Burstiness, Character, Characterizer, DepthSummary, DurationSummary, FlushBehaviour,
    JumpSummary, Mix, RateBin, RateOverTime, ResponseTimes, Reuse, Sequentiality, SizeBucket,
    SizeSummary, Sizes, Skew, characterize,
};
pub use convert::{ConvertOptions, Converted, convert, convert_stream, is_same_file};
pub use error::{Damaged, Malformed, TraceError};
pub use format::{Clock, Format, Layer, Numbers, Timing, UnitRate, UnknownFormatName};
pub use info::{DeviceInfo, InfoCollector, MISSING_COMPLETIONS_ONE_IN, TraceInfo};
pub use input::{Compression, Damage};
pub use objects::ObjectUse;
pub use own_file::{NotOwn, Others, open_own};
pub use pending_file::PendingFile;
pub use read_error::{read_text, read_text_up_to};
pub use reader::{OpenOptions, Report, TraceReader};
pub use record::{DATA_BLOCKS_MAX, REQUEST_BLOCKS_MAX, Record, VOLUME_BLOCKS_MAX};
pub use row::{TraceRow, write_rows};
pub use scan::{TimeUnit, UnknownTimeUnit};
pub use source::{LayerCounts, LeftOutRows};
pub use split::{DeviceTrace, split_devices};
pub use spool::SpooledTrace;
pub use survey::{LayersFound, NumbersFound, NumbersReason, Survey};
pub use temporary_names::remove_temporary_files;
pub use web_log::{LeftOut, PartAnswers, WebFile, WebLog, WebRequest};
pub use write::{CsvWriter, ParquetWriter, TraceWriter};
