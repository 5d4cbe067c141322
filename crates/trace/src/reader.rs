//! Reads a trace of any format as a stream of records.
//!
//! Goals: one record at a time, no allocation for each record, progress for the caller.
//! Non-goals: sorting. A trace whose arrivals step back is delivered so.

use std::fmt;
use std::io::Read;
use std::path::Path;

use freewheel_units::SimTime;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{Damaged, Origin, TraceError, path_text};
use crate::fault::{Fault, printable};
use crate::format::Question;
use crate::format::blktrace::{open_processors, other_processors};
use crate::format::parquet::{ParquetSource, is_parquet};
use crate::input::{Damage, DamageMet, Input, Progress};
use crate::no_trace::{self, NoTrace};
use crate::read_error::{IN_UTF_16, plain};
use crate::source::{Position, Source, Stop};
use crate::{Format, Record};

/// Records between two reports of progress.
pub(crate) const REPORT_RECORDS: u64 = 1 << 16;

/// Receives the reader of a trace now and then: how far it is says how far the work on the trace is.
pub type Report<'a> = &'a mut dyn FnMut(&TraceReader);

/// Options for reading a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct OpenOptions {
    /// The format; `None` recognises it by the content.
    pub format: Option<Format>,
    /// Whether malformed records are counted and skipped, and a damaged compressed file is read up to
    /// the damage. Otherwise the first of these ends reading with an error.
    pub lenient: bool,
}

/// Reads a trace: an iterator of its records in file order.
///
/// Arrivals may step back, since traces are often logged by completion or merged from several sources. They
/// are delivered so, and counted in [`arrival_regressions`](Self::arrival_regressions); a caller that
/// needs order must sort, clamp or reject them. In a format whose first record is time 0, a record
/// before that has no valid time and is malformed.
///
/// After an error the iterator ends.
pub struct TraceReader {
    origin: Origin,
    lenient: bool,
    source: Box<dyn Source>,
    progress: Progress,
    damage: DamageMet,
    ended: bool,
    /// Subtracted from every time; known from the first record on.
    base: Option<SimTime>,
    last_arrival: SimTime,
    arrival_regressions: u64,
    skipped: u64,
    first_skipped: Option<TraceError>,
}

impl TraceReader {
    /// Opens the trace at `path`. Gzip and zstd are decompressed under any file name.
    pub fn open(path: &Path, options: &OpenOptions) -> Result<Self, TraceError> {
        let name = path_text(path);
        let input = Input::open(path, options.lenient);
        let input = input.map_err(|error| TraceError::io(&name, plain(error)))?;
        let origin = origin(name, &input, options)?;
        if origin.format == Format::Parquet {
            check_parquet(&origin.file, &input)?;
            let source = ParquetSource::open(path);
            let source = source.map_err(|stop| stop_error(&origin, stop, Position::default()))?;
            let progress = source.progress();
            let damage = DamageMet::default();
            return Ok(Self::new(origin, options, Box::new(source), progress, damage));
        }
        if origin.format == Format::Blktrace {
            return Self::start_processors(path, origin, options, input);
        }
        Self::start(origin, options, input)
    }

    /// Reads the files of all processors of a binary blktrace.
    fn start_processors(
        path: &Path,
        origin: Origin,
        options: &OpenOptions,
        input: Input,
    ) -> Result<Self, TraceError> {
        let others = other_processors(path);
        let damage = input.damage();
        let opened = others.and_then(|others| {
            let progress = input.progress.clone().with(&others)?;
            Ok((open_processors(input, &others, &progress)?, progress))
        });
        let (source, progress) = opened.map_err(|error| TraceError::io(&origin.file, error))?;
        Ok(Self::new(origin, options, source, progress, damage))
    }

    /// Reads a trace from any stream but Parquet; `name` is for messages.
    pub fn from_reader(
        name: &str,
        stream: impl Read + Send + 'static,
        options: &OpenOptions,
    ) -> Result<Self, TraceError> {
        let input = Input::new(stream, Progress::default(), options.lenient);
        let input = input.map_err(|error| TraceError::io(name, error))?;
        let origin = origin(name.to_owned(), &input, options)?;
        Self::start(origin, options, input)
    }

    fn start(origin: Origin, options: &OpenOptions, input: Input) -> Result<Self, TraceError> {
        let Some(open) = origin.format.row().open else {
            return Err(TraceError::ParquetNeedsFile { file: origin.file });
        };
        let (progress, damage) = (input.progress.clone(), input.damage());
        let source = open(input).map_err(|stop| stop_error(&origin, stop, Position::default()))?;
        Ok(Self::new(origin, options, source, progress, damage))
    }

    fn new(
        origin: Origin,
        options: &OpenOptions,
        source: Box<dyn Source>,
        progress: Progress,
        damage: DamageMet,
    ) -> Self {
        Self {
            damage,
            lenient: options.lenient,
            source,
            progress,
            ended: false,
            base: (!origin.format.is_rebased()).then_some(SimTime::ZERO),
            last_arrival: SimTime::ZERO,
            arrival_regressions: 0,
            skipped: 0,
            first_skipped: None,
            origin,
        }
    }

    /// Name of the trace, for messages.
    pub(crate) fn file(&self) -> &str {
        &self.origin.file
    }

    /// The format, named or recognised.
    pub fn format(&self) -> Format {
        self.origin.format
    }

    /// Malformed records skipped so far; always 0 in strict reading.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Error of the first skipped record.
    pub fn first_skipped(&self) -> Option<&TraceError> {
        self.first_skipped.as_ref()
    }

    /// The damage that ended lenient reading. Strict reading fails there instead.
    pub fn damaged(&self) -> Option<Damaged> {
        let damage = self.damage.get().filter(|_| self.lenient && self.ended)?;
        Some(damaged(&self.origin.file, damage, self.source.position()))
    }

    /// Shows every remaining record to `observe`, and the reader to `report` every 65,536 records, for a
    /// progress bar.
    pub fn read_through(
        &mut self,
        mut observe: impl FnMut(&Record),
        report: Report<'_>,
    ) -> Result<(), TraceError> {
        let mut records = 0u64;
        while let Some(record) = self.next().transpose()? {
            observe(&record);
            records += 1;
            if records.is_multiple_of(REPORT_RECORDS) {
                report(self);
            }
        }
        Ok(())
    }

    /// Records so far that arrived before their predecessor.
    pub fn arrival_regressions(&self) -> u64 {
        self.arrival_regressions
    }

    /// Bytes consumed of the file as it is on disk; in Parquet, the row groups begun.
    pub fn compressed_bytes_read(&self) -> u64 {
        self.progress.read()
    }

    /// Bytes of the file as it is on disk; 0 for a stream, whose length is unknown.
    pub fn compressed_bytes_total(&self) -> u64 {
        self.progress.total
    }

    /// Makes the times of `record` relative and notes its arrival.
    #[inline]
    fn admit(&mut self, record: Record) -> Result<Record, Fault> {
        let base = *self.base.get_or_insert(record.arrival);
        let Some(arrival) = record.arrival.ns().checked_sub(base.ns()) else {
            let reason = "before the first record, which is time 0 in this format";
            return Err(Fault::number("arrival in ns", record.arrival.ns(), reason));
        };
        let arrival = SimTime::from_ns(arrival);
        self.arrival_regressions += u64::from(arrival < self.last_arrival);
        self.last_arrival = arrival;
        // A completion is never below the base: every decoder checks that it follows the arrival.
        let completion = record.completion.map(|time| SimTime::from_ns(time.ns() - base.ns()));
        Ok(Record { arrival, completion, ..record })
    }

    /// The next record, or why there is none.
    fn step(&mut self) -> Result<Option<Record>, Stop> {
        let Some(record) = self.source.next()? else { return Ok(None) };
        Ok(Some(self.admit(record)?))
    }

    /// Whether reading may continue after `stop`, with its record counted as skipped.
    #[cold]
    fn pass_over(&mut self, stop: Stop) -> Result<(), TraceError> {
        let can_go_on = self.lenient && matches!(stop, Stop::Fault(_));
        let keep_error = !can_go_on || self.first_skipped.is_none();
        if can_go_on {
            self.skipped += 1;
        }
        if keep_error {
            let position = self.source.position();
            let error = match (stop, self.damage.get()) {
                (Stop::Io(_), Some(damage)) => {
                    TraceError::Damaged(Box::new(damaged(&self.origin.file, damage, position)))
                }
                (stop, _) => stop_error(&self.origin, stop, position),
            };
            if !can_go_on {
                return Err(error);
            }
            self.first_skipped = Some(error);
        }
        Ok(())
    }
}

impl fmt::Debug for TraceReader {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Origin { file, format, .. } = &self.origin;
        out.debug_struct("TraceReader")
            .field("file", file)
            .field("format", format)
            .finish_non_exhaustive()
    }
}

impl Iterator for TraceReader {
    type Item = Result<Record, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.ended {
            match self.step() {
                Ok(Some(record)) => return Some(Ok(record)),
                Ok(None) => self.ended = true,
                Err(stop) => {
                    if let Err(error) = self.pass_over(stop) {
                        self.ended = true;
                        return Some(Err(error));
                    }
                }
            }
        }
        None
    }
}

fn origin(file: String, input: &Input, options: &OpenOptions) -> Result<Origin, TraceError> {
    if let Some(is) = archive(&input.head) {
        return Err(TraceError::Packed { file, is });
    }
    let looks_like = Format::detect(&input.head);
    if let Some(format) = options.format.or(looks_like) {
        return Ok(Origin { file, format, looks_like, compression: input.compression() });
    }
    Err(match input.damage().get() {
        Some(damage) => TraceError::Damaged(Box::new(damaged(&file, damage, Position::default()))),
        None if input.head.is_empty() => TraceError::Empty { file },
        None => unknown_format(file, &input.head),
    })
}

fn unknown_format(file: String, head: &[u8]) -> TraceError {
    match Format::question(head) {
        Some(Question { says: question, choices, .. }) => {
            TraceError::UncertainFormat { file, question, choices: *choices }
        }
        None => match no_trace::recognise(head) {
            Some(NoTrace { is, way_out }) => TraceError::NoTrace { file, is, way_out },
            None => {
                let nearest = Format::nearest(head);
                TraceError::UnknownFormat { file, found: beginning(head), nearest }
            }
        },
    }
}

fn damaged(name: &str, damage: &Damage, last: Position) -> Damaged {
    Damaged { file: name.to_owned(), damage: damage.clone(), records: last.record }
}

/// Err with the way out for bytes that cannot be Parquet.
fn check_parquet(name: &str, input: &Input) -> Result<(), TraceError> {
    let file = name.to_owned();
    if let Some(compression) = input.compression() {
        return Err(TraceError::CompressedParquet { file, compression });
    }
    if !is_parquet(&input.head) {
        let reason =
            "is no Parquet file, which begins with `PAR1`: do not name the format, and it \
                      is recognised"
                .to_owned();
        return Err(TraceError::Parquet { file, reason });
    }
    Ok(())
}

/// First bytes of files that hold others, with their offset.
const ARCHIVES: [(&str, usize, &[u8]); 7] = [
    ("a zip archive", 0, b"PK\x03\x04"),
    ("a 7z archive", 0, b"7z\xbc\xaf\x27\x1c"),
    ("a tar archive", 257, b"ustar"),
    ("compressed by bzip2", 0, b"BZh"),
    ("compressed by xz", 0, b"\xfd7zXZ\0"),
    ("compressed twice", 0, b"\x1f\x8b"),
    ("compressed twice", 0, b"\x28\xb5\x2f\xfd"),
];

/// Kind of archive that must be unpacked first.
fn archive(head: &[u8]) -> Option<&'static str> {
    let is = |(_, at, magic): &(&str, usize, &[u8])| {
        head.get(*at..).is_some_and(|from| from.starts_with(magic))
    };
    ARCHIVES.into_iter().find(is).map(|(name, _, _)| name)
}

/// Description of the first bytes of an unknown format.
fn beginning(head: &[u8]) -> String {
    if head.starts_with(&[0xff, 0xfe]) || head.starts_with(&[0xfe, 0xff]) {
        return format!("it {IN_UTF_16}");
    }
    let line = head.split(|&byte| byte == b'\n').next().unwrap_or(head);
    format!("it begins with `{}`", printable(line))
}

/// The public error of `stop` at the source's position; the default position means its header.
fn stop_error(origin: &Origin, stop: Stop, position: Position) -> TraceError {
    match stop {
        Stop::Io(error) => TraceError::io(&origin.file, error),
        Stop::Broken(reason) => TraceError::Parquet { file: origin.file.clone(), reason },
        Stop::Fault(fault) => fault.at(origin, position),
    }
}
