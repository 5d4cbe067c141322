//! Errors of a trace, with the place and the way out.
//!
//! Goals: a person finds the offending byte from the message alone; a program can match on the variant.
//! Non-goals: recovery, which belongs to the reader (`OpenOptions::lenient`).

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::path::Path;

use freewheel_units::grouped;
use thiserror::Error;

use crate::fault::Fault;
use crate::format::{Format, UnitRate};
use crate::input::{Compression, Damage};
use crate::source::{LeftOutRows, Position};

/// Endings for the name of a trace to write, for messages.
pub(crate) const EXTENSIONS: &str = ".parquet, .csv, .csv.zst, .csv.gz";

/// Reason why a trace could not be read or written.
#[derive(Debug, Error)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum TraceError {
    /// The file, or the compressed stream in it, could not be read or written.
    #[error("{file}: {source}")]
    Io {
        file: String,
        /// Error of the operating system or the decompressor.
        source: io::Error,
    },
    /// A temporary file that reading needs could not be written or read.
    #[error("{file}: a temporary file in {folder} fails: {source}")]
    TemporaryFile {
        file: String,
        folder: String,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The file to write could not be written.
    #[error("{file}: {source}")]
    Write {
        file: String,
        /// Error of the operating system.
        source: io::Error,
    },
    /// A record breaks the rules of its format.
    #[error(transparent)]
    Malformed(Box<Malformed>),
    /// The compressed bytes are damaged or cut off.
    #[error(transparent)]
    Damaged(Box<Damaged>),
    /// The file has no bytes.
    #[error("{file}: is empty: it holds no requests")]
    Empty { file: String },
    /// The file holds a trace that has to be unpacked first.
    #[error(
        "{file}: is {is}: unpack it and give the trace itself, plain or compressed once by gzip or zstd"
    )]
    Packed { file: String, is: &'static str },
    /// No format accepts how the file begins.
    #[error(
        "{file}: its format was not recognised: {found}; it fits none of the {count} formats{near}",
        count = Format::ALL.len(),
        near = some_lines(*.nearest)
    )]
    UnknownFormat {
        file: String,
        /// Beginning of the file.
        found: String,
        /// The format that fits more of its first lines than others do, but less than half.
        nearest: Option<Format>,
    },
    /// The file is of a kind that is often taken for a trace, and holds no requests.
    #[error("{file}: is no trace, but {is}")]
    NoTrace {
        file: String,
        is: &'static str,
        /// Way to record or write a trace instead.
        way_out: &'static str,
    },
    /// The file fits two formats that differ by a factor.
    #[error("{file}: its format is not certain: {question}?")]
    UncertainFormat {
        file: String,
        /// Question that tells the two apart.
        question: &'static str,
        choices: [Format; 2],
    },
    /// The times of the file may be in several units, which differ by a factor of 1,000 at least.
    #[error("{file}: the unit of its times is not certain: {}", rates_in_words(rates))]
    UncertainTimeUnit {
        file: String,
        /// The units, with the rate of requests that each would mean.
        rates: Vec<UnitRate>,
    },
    #[error("{file}: a unit of time was named, and {format} says the unit of its times")]
    FixedTimeUnit { file: String, format: Format },
    /// The meaning of numbers was named for a format whose numbers have one.
    #[error("{file}: what numbers name was said, and in {format} they have one meaning")]
    FixedNumbers { file: String, format: Format },
    /// A layer was named for a format that has one.
    #[error("{file}: a layer was named, and {format} has the requests of one alone")]
    FixedLayer { file: String, format: Format },
    /// No request comes from the file, though it can be read.
    #[error("{file}: no request comes from it: {holds}")]
    NoRequests {
        file: String,
        format: Format,
        /// Content of the file.
        holds: String,
        /// Rows among that, which are no requests to the disk.
        left_out: LeftOutRows,
    },
    /// A Parquet trace came from something that cannot seek.
    #[error("{file}: a Parquet trace is read from a file, not from a stream")]
    ParquetNeedsFile {
        /// The name given to the stream.
        file: String,
    },
    /// A Parquet trace was compressed as a whole.
    #[error(
        "{file}: is a Parquet trace inside of {compression}: decompress it first; Parquet is \
         compressed inside already"
    )]
    CompressedParquet { file: String, compression: Compression },
    /// Every record is malformed, so that lenient reading delivers none.
    #[error(
        "{file}: none of its records can be read: all {skipped} are malformed; the first: {first}",
        skipped = grouped(*.skipped)
    )]
    NothingRead {
        file: String,
        skipped: u64,
        /// Fault of the first of them.
        first: String,
    },
    /// The trace has no requests to the device that is to be kept.
    #[error("{file}: the trace has no device {device}: its devices are {devices}")]
    NoDevice { file: String, device: u32, devices: String },
    /// The Parquet file is damaged, or its columns are not those of a trace.
    #[error("{file}: {reason}")]
    Parquet {
        file: String,
        /// Fault that the Parquet library reported, or missing column.
        reason: String,
    },
    /// A line of a web log breaks the rules of its format.
    #[error("{file}: line {line}: {field} is `{value}`: {reason}; lenient reading leaves it out")]
    WebLogLine {
        file: String,
        /// Number of the line, from 1.
        line: u64,
        field: &'static str,
        /// The start of the value found, made printable.
        value: String,
        /// Fault of the value.
        reason: String,
    },
    /// A web log without a request of a file.
    #[error(
        "{file}: none of its {lines} lines is a GET that was answered with 200 or 206 and at least a byte"
    )]
    NoWebRequest {
        file: String,
        /// Lines with an entry, malformed ones included.
        lines: u64,
    },
    /// Most of its first lines belong to no known format of web logs.
    #[error(
        "{file}: is no web log: it should be in Common, Combined or W3C Extended Log Format, hold one JSON \
         object a line, or be Wikipedia's caching data of 2019; plain, or compressed by gzip or zstd{}",
        looks_like.as_ref().map_or_else(String::new, |like| format!(". It looks like {like}"))
    )]
    NoWebLog {
        file: String,
        /// The kind of log that it resembles, and which fields are missing.
        looks_like: Option<String>,
    },
    /// The name of the output does not say in which form to write.
    #[error(
        "{file}: the name of a trace to write must end in one of {allowed}",
        allowed = EXTENSIONS
    )]
    UnknownExtension {
        /// The output asked for.
        file: String,
    },
    /// A trace was to be written over itself.
    #[error("{file}: is what is read, and would be written over: choose another name")]
    SameFile { file: String },
    /// Our CSV has no device column and the trace has more than one device.
    #[error(
        "{file}: CSV holds one device, and the trace has requests to device {first} and device \
         {second}: write Parquet, or choose one device"
    )]
    NeedsOneDevice {
        /// The output asked for.
        file: String,
        first: u32,
        /// Another device met later.
        second: u32,
    },
    /// A record to write does not fit the form written.
    #[error("{file}: record {record} cannot be written: {field} {value} is above {max}")]
    TooLargeToWrite {
        file: String,
        /// Number of the record, from 1.
        record: u64,
        field: &'static str,
        value: u64,
        /// The largest value the column holds.
        max: u64,
    },
}

fn rates_in_words(rates: &[UnitRate]) -> String {
    rates
        .iter()
        .map(|it| {
            let UnitRate { unit, per_second } = *it;
            format!(
                "in {unit} they mean {} requests a second on each device",
                two_digits(per_second)
            )
        })
        .collect::<Vec<_>>()
        .join(", ")
}

/// A number above 0 with two digits that count.
fn two_digits(value: f64) -> String {
    let (mut decimals, mut scaled) = (0, value);
    while scaled < 9.95 && decimals < 9 {
        (decimals, scaled) = (decimals + 1, scaled * 10.0);
    }
    if value >= 1000.0 { grouped(value.round() as u64) } else { format!("{value:.decimals$}") }
}

impl TraceError {
    pub(crate) fn io(file: &str, source: io::Error) -> Self {
        Self::Io { file: file.to_owned(), source }
    }

    pub(crate) fn temporary_file(file: &str, source: io::Error) -> Self {
        let folder = path_text(&std::env::temp_dir());
        Self::TemporaryFile { file: file.to_owned(), folder, source }
    }

    pub(crate) fn write(file: &str, source: io::Error) -> Self {
        Self::Write { file: file.to_owned(), source }
    }
}

/// Place and reason of a malformed record.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub struct Malformed {
    /// The file.
    pub file: String,
    /// The format it was read as.
    pub format: Format,
    /// The format that the file looks like, which may be another one where the format was named.
    pub looks_like: Option<Format>,
    /// Compression of the file, if any: then damage of it may be the reason.
    pub compression: Option<Compression>,
    /// Number of the record in the file, from 1; headers, comments and blank lines do not count.
    /// 0 when the header itself is wrong.
    pub record: u64,
    /// Line of the decompressed text, from 1, all lines counted; `None` in binary formats.
    pub line: Option<u64>,
    /// Byte of the decompressed stream at which the record begins; `None` in Parquet.
    pub offset_bytes: Option<u64>,
    /// The field, by its name in the format.
    pub field: &'static str,
    /// The start of the value found, made printable.
    pub value: String,
    /// Fault of the record.
    pub reason: Cow<'static, str>,
}

impl fmt::Display for Malformed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: ", self.file)?;
        match (self.record, self.line, self.offset_bytes) {
            (0, _, _) => {}
            (record, Some(line), Some(offset)) => {
                write!(out, "line {line} (record {record}, byte {offset}): ")?;
            }
            (record, None, Some(offset)) => write!(out, "record {record} at byte {offset}: ")?,
            (record, _, None) => write!(out, "record {record}: ")?,
        }
        write!(out, "{} is `{}`: {}", self.field, self.value, self.reason)
    }
}

/// A compressed trace that can be read in part only.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub struct Damaged {
    /// The file.
    pub file: String,
    /// Place in the file, and fault.
    pub damage: Damage,
    /// Records before it, malformed ones included.
    pub records: u64,
}

impl Damaged {
    /// Damage, and records that reading leaves out for it.
    pub fn in_words(&self) -> String {
        format!("{self}; {}", self.damage.consequence())
    }
}

impl fmt::Display for Damaged {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, damage, records } = self;
        write!(out, "{file}: {damage}; ")?;
        match records {
            0 => out.write_str("no record comes before that"),
            1 => out.write_str("1 record comes before that"),
            some => write!(out, "{} records come before that", grouped(*some)),
        }
    }
}

/// The file of the records, and its format.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    pub file: String,
    /// The format it is read as, named or recognised.
    pub format: Format,
    /// The format recognised by the content, also where another one was named.
    pub looks_like: Option<Format>,
    pub compression: Option<Compression>,
}

impl Fault {
    /// The public error, once it is known where.
    pub fn at(self, origin: &Origin, position: Position) -> TraceError {
        let Self { field, value, reason } = self;
        let Origin { file, format, looks_like, compression } = origin.clone();
        let Position { record, line, offset_bytes } = position;
        TraceError::Malformed(Box::new(Malformed {
            file,
            format,
            looks_like,
            compression,
            record,
            line,
            offset_bytes,
            field,
            value,
            reason,
        }))
    }
}

/// Words about the format that fits some lines of a file.
fn some_lines(nearest: Option<Format>) -> String {
    nearest.map_or(String::new(), |format| format!("; some of its first lines look like {format}"))
}

/// A path for messages.
pub(crate) fn path_text(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_record_names_place_and_reason() {
        let (file, format) = ("a.csv".into(), Format::Spc);
        let origin = Origin { file, format, looks_like: None, compression: None };
        let text_at = |line| {
            let position = Position { record: 3, line, offset_bytes: Some(77) };
            Fault::new("Size", b"-1", "not a whole number").at(&origin, position).to_string()
        };
        let says = "Size is `-1`: not a whole number";
        assert_eq!(text_at(Some(5)), format!("a.csv: line 5 (record 3, byte 77): {says}"));
        assert_eq!(text_at(None), format!("a.csv: record 3 at byte 77: {says}"));
    }

    #[test]
    fn unknown_format_names_count_and_nearest() {
        let says = |nearest| {
            let (file, found) = ("x".into(), "it begins with `y`".into());
            TraceError::UnknownFormat { file, found, nearest }.to_string()
        };
        let tried = format!("fits none of the {} formats", Format::ALL.len());
        assert!(says(None).ends_with(&tried), "{}", says(None));
        let near = says(Some(Format::Spc));
        assert!(near.contains(&tried) && near.ends_with("lines look like spc"), "{near}");
    }
}
