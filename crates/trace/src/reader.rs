//! Reads a trace of any format as a stream of records by arrival.
//!
//! Goals: one record at a time, no allocation for each record, progress for the caller.
//! Non-goals: how records are put in order (`source`), and what has to be known for that (`survey`).

use std::fmt;
use std::io::Read;
use std::path::Path;

use freewheel_units::{SimDuration, SimTime, grouped};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bytes::TraceBytes;
use crate::error::{Damaged, Origin, TraceError, path_text};
use crate::fault::{Fault, printable};
use crate::format::blktrace::{open_processors, other_processors};
use crate::format::parquet::{ParquetSource, is_parquet};
use crate::format::{Clock, How, Layer, Numbers, Question, Timing, UnitFound};
use crate::input::{BytesConsumed, Damage, DamageMet, Input};
use crate::no_trace::{self, NoTrace};
use crate::read_error::{IN_UTF_16, plain};
use crate::scan::TimeUnit;
use crate::source::{Deliver, LeftOutRows, Ordered, Position, Recordings, Source, Stop, TimeOrder};
use crate::spread::Spread;
use crate::survey::{self, NumbersQuestion, RecordOrder, Survey};
use crate::timed::Timed;
use crate::{Format, Record};

const SECOND_NS: u64 = 1_000_000_000;
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
    /// True to count and skip malformed records, and to read a damaged compressed file up to the damage.
    /// Otherwise the first of these ends reading with an error.
    pub lenient: bool,
    /// Unit of the times, in formats that leave a choice; `None` finds it out, or asks.
    pub time_unit: Option<TimeUnit>,
    /// Origin of times; `None` takes what the format says.
    pub clock: Option<Clock>,
    /// Meaning of numbers in formats of cache simulators; `None` finds it out.
    pub numbers: Option<Numbers>,
    /// True if requests count that a cache in front of the traced disk served.
    pub cache_hits: bool,
    /// Layer of a block layer's trace whose requests are read; other formats have one layer only.
    pub layer: Layer,
    /// Spreads requests evenly over the granule of a coarse clock, with this seed; `None` leaves them where
    /// the trace has them.
    pub spread: Option<u64>,
}

/// Reads a trace: an iterator of its records by arrival; of equal arrivals the first in the file comes first.
///
/// A first pass over the file tells how far its records lie out of order, and whether its clock starts
/// again: see [`survey`](Self::survey). It happens with the first record, unless another reader of the
/// same file has done it.
///
/// After an error the iterator ends.
pub struct TraceReader {
    origin: Origin,
    options: OpenOptions,
    bytes: TraceBytes,
    how: How,
    survey: Option<Survey>,
    /// From the first record on.
    reading: Option<Reading>,
    /// Progress of the first pass, if this reader makes it.
    surveyed: Option<BytesConsumed>,
    delivered: u64,
    ended: bool,
    /// Subtracted from every time; known from the first record on.
    base: Option<SimTime>,
    last_arrival: SimTime,
    skipped: u64,
    first_skipped: Option<TraceError>,
}

/// The records of a trace, by arrival.
struct Reading {
    source: Box<dyn Source>,
    progress: BytesConsumed,
    damage: DamageMet,
}

impl TraceReader {
    /// Opens the trace at `path`. Gzip and zstd are decompressed under any file name.
    pub fn open(path: &Path, options: &OpenOptions) -> Result<Self, TraceError> {
        let name = path_text(path);
        let bytes = TraceBytes::at(&name, path)?;
        Self::new(name, bytes, options)
    }

    /// Opens the trace at `path`, over which a reader with the same options has passed.
    pub fn open_surveyed(
        path: &Path,
        options: &OpenOptions,
        survey: Survey,
    ) -> Result<Self, TraceError> {
        let reader = Self::open(path, options)?;
        Ok(Self { survey: Some(survey), ..reader })
    }

    /// Reads a trace from any stream but Parquet, to its end; `name` is for messages.
    pub fn from_reader(
        name: &str,
        stream: impl Read,
        options: &OpenOptions,
    ) -> Result<Self, TraceError> {
        let bytes = TraceBytes::of_stream(name, stream)?;
        let reader = Self::new(name.to_owned(), bytes, options)?;
        match reader.format() {
            Format::Parquet => Err(TraceError::ParquetNeedsFile { file: reader.origin.file }),
            _ => Ok(reader),
        }
    }

    fn new(file: String, bytes: TraceBytes, options: &OpenOptions) -> Result<Self, TraceError> {
        let input = bytes.open(options.lenient);
        let input = input.map_err(|error| TraceError::io(&file, plain(error)))?;
        let origin = origin(file, &input, options)?;
        let how = how(&origin, &input.head, options)?;
        let reader = Self {
            options: *options,
            bytes,
            how,
            survey: None,
            reading: None,
            surveyed: None,
            delivered: 0,
            ended: false,
            base: (!origin.format.is_rebased()).then_some(SimTime::ZERO),
            last_arrival: SimTime::ZERO,
            skipped: 0,
            first_skipped: None,
            origin,
        };
        if reader.origin.format == Format::Parquet {
            check_parquet(&reader.origin.file, &input)?;
        }
        // A wrong header is an error when the file is opened.
        if reader.origin.format != Format::Parquet || reader.bytes.path().is_some() {
            reader.source(&reader.how)?;
        }
        Ok(reader)
    }

    /// The records as they stand in the file.
    fn source(&self, how: &How) -> Result<Reading, TraceError> {
        let file = &self.origin.file;
        let failed = |stop| stop_error(&self.origin, stop, Position::default());
        if let (Format::Parquet, Some(path)) = (self.origin.format, self.bytes.path()) {
            let source = ParquetSource::open(path).map_err(failed)?;
            let (progress, damage) = (source.progress(), DamageMet::default());
            return Ok(Reading { source: Box::new(source), progress, damage });
        }
        let Some(open) = self.origin.format.row().open else {
            return Err(TraceError::ParquetNeedsFile { file: file.clone() });
        };
        let input = self.bytes.open(self.options.lenient);
        let input = input.map_err(|error| TraceError::io(file, plain(error)))?;
        let (mut progress, damage) = (input.progress.clone(), input.damage());
        let source = match (self.origin.format, &self.bytes) {
            // A request may be queued on one processor and completed on another.
            (Format::Blktrace, TraceBytes::File(path)) => {
                let opened = other_processors(path).and_then(|others| {
                    progress = progress.clone().with(&others)?;
                    open_processors(input, &others, &progress, how)
                });
                opened.map_err(|error| TraceError::io(file, error))?
            }
            _ => open(input, how).map_err(failed)?,
        };
        Ok(Reading { source, progress, damage })
    }

    /// Passes over the file once, unless that was done; shows the reader to `report` every 65,536 records.
    pub(crate) fn prepare(&mut self, report: Report<'_>) -> Result<(), TraceError> {
        if self.survey.is_none() {
            let survey = self.pass(report)?;
            // Events that lie far out of order give other requests once they are in order.
            self.survey = Some(survey);
            if survey.events_need_merge {
                let again = self.pass(report)?;
                self.survey = Some(Survey { events_need_merge: true, ..again });
            }
            // Its times are those of the requests that are read.
            let survey = self.survey.unwrap_or(survey);
            if survey.reads_issued() && self.how.deliver != Deliver::Issued {
                let of_issued = self.pass(report)?;
                let events_need_merge = survey.events_need_merge;
                self.survey = Some(Survey { events_need_merge, ..of_issued });
            }
        }
        Ok(())
    }

    fn pass(&mut self, report: Report<'_>) -> Result<Survey, TraceError> {
        let mut how = self.survey.map_or(self.how, |survey| survey.instruct(self.how));
        // Where the queued requests are read, those merged and issued are counted beside them.
        if how.deliver == Deliver::Queued {
            how.deliver = Deliver::QueuedCounted;
        }
        let Reading { mut source, progress, .. } = self.source(&how)?;
        self.surveyed = Some(progress);
        let numbers =
            self.origin.format.may_hold_objects().then(|| {
                self.options.numbers.map_or(NumbersQuestion::Open, NumbersQuestion::Answered)
            });
        let (mut records, lenient) = (0u64, self.options.lenient);
        Ok(Survey::of(&mut *source, &how, lenient, numbers, || {
            records += 1;
            if records.is_multiple_of(REPORT_RECORDS) {
                report(self);
            }
        }))
    }

    /// Starts the pass that delivers records.
    fn begin(&mut self) -> Result<(), TraceError> {
        self.prepare(&mut |_| {})?;
        let survey = self.survey.expect("the first pass is done");
        let how = survey.instruct(self.how);
        let mut reading = self.source(&how)?;
        reading.source = in_order(reading.source, &how, &survey, self.options.spread);
        self.reading = Some(reading);
        Ok(())
    }

    /// Starts a pass over objects, in the order of the file.
    pub(crate) fn begin_objects(&mut self) -> Result<(), TraceError> {
        let how = How { exact_objects: true, ..self.how };
        self.reading = Some(self.source(&how)?);
        Ok(())
    }

    /// The next record of such a pass; None at the end.
    pub(crate) fn next_object(&mut self) -> Result<Option<Record>, TraceError> {
        loop {
            let reading = self.reading.as_mut().expect("a pass over objects has begun");
            match reading.source.next() {
                Ok(Some(record)) => {
                    self.delivered += 1;
                    return Ok(Some(record));
                }
                Ok(None) => return self.finish().map(|()| None),
                Err(stop) => self.pass_over(stop)?,
            }
        }
    }

    /// Results of the first pass. It happens here if it has not yet; `report` is shown the reader every
    /// 65,536 records.
    pub fn survey(&mut self, report: Report<'_>) -> Result<&Survey, TraceError> {
        self.prepare(report)?;
        Ok(self.survey.as_ref().expect("the first pass is done"))
    }

    /// Results of the first pass, if it has happened.
    pub fn surveyed(&self) -> Option<&Survey> {
        self.survey.as_ref()
    }

    /// Name of the trace, for messages.
    pub(crate) fn file(&self) -> &str {
        &self.origin.file
    }

    /// The format, named or recognised.
    pub fn format(&self) -> Format {
        self.origin.format
    }

    /// The unit of its times, in formats that several programs write with units of their own, and where it is
    /// another than the format has.
    pub fn time_unit(&self) -> Option<TimeUnit> {
        if matches!(self.format(), Format::DisksimAscii | Format::HeimdallText | Format::Mqsim) {
            return Some(self.how.unit);
        }
        // A format that is named has its own unit.
        let own = self.format().row().unit.map(|find| find(b"", true));
        let is_other = own.is_some_and(|own| own != UnitFound::Sure(self.how.unit));
        is_other.then_some(self.how.unit)
    }

    /// Malformed records skipped so far; always 0 in strict reading.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Error of the first skipped record.
    pub fn first_skipped(&self) -> Option<&TraceError> {
        self.first_skipped.as_ref()
    }

    /// Rows so far that are no requests to the disk.
    pub fn left_out(&self) -> LeftOutRows {
        self.reading.as_ref().map_or_else(LeftOutRows::default, |it| it.source.left_out())
    }

    /// The damage that ended lenient reading. Strict reading fails there instead.
    pub fn damaged(&self) -> Option<Damaged> {
        let reading = self.reading.as_ref()?;
        let damage = reading.damage.get().filter(|_| self.options.lenient && self.ended)?;
        Some(damaged(&self.origin.file, damage, reading.source.position()))
    }

    /// Shows every remaining record to `observe`, and the reader to `report` every 65,536 records, for a
    /// progress bar.
    pub fn read_through(
        &mut self,
        mut observe: impl FnMut(&Record),
        report: Report<'_>,
    ) -> Result<(), TraceError> {
        self.prepare(report)?;
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

    /// Bytes consumed of the file as it is on disk, the mean of both passes where this reader makes both; in
    /// Parquet, the row groups begun.
    pub fn compressed_bytes_read(&self) -> u64 {
        let read = self.reading.as_ref().map_or(0, |reading| reading.progress.read());
        match &self.surveyed {
            Some(surveyed) => u64::midpoint(surveyed.read(), read),
            None => read,
        }
    }

    /// Bytes of the file as it is on disk, with those of other processors.
    pub fn compressed_bytes_total(&self) -> u64 {
        let reading = self.reading.as_ref().map(|reading| &reading.progress);
        reading.or(self.surveyed.as_ref()).map_or(0, |progress| progress.total)
    }

    /// Makes the times of `record` relative.
    #[inline]
    fn admit(&mut self, record: Record) -> Result<Record, Fault> {
        let base = *self.base.get_or_insert(record.arrival);
        if record.arrival < self.last_arrival {
            let reason = "before the record in front of it: the file has changed while it was read";
            return Err(Fault::number("arrival in ns", record.arrival.ns(), reason));
        }
        self.last_arrival = record.arrival;
        self.delivered += 1;
        Ok(record.shifted(|time| SimTime::from_ns(time.ns() - base.ns())))
    }

    /// The next record, or why there is none.
    fn step(&mut self) -> Result<Option<Record>, Stop> {
        let reading = self.reading.as_mut().expect("reading has begun");
        let Some(record) = reading.source.next()? else { return Ok(None) };
        Ok(Some(self.admit(record)?))
    }

    /// True if reading may continue after `stop`, with its record counted as skipped.
    #[cold]
    fn pass_over(&mut self, stop: Stop) -> Result<(), TraceError> {
        let can_go_on = self.options.lenient && matches!(stop, Stop::Fault(_));
        let keep_error = !can_go_on || self.first_skipped.is_none();
        if can_go_on {
            self.skipped += 1;
        }
        if keep_error {
            let reading = self.reading.as_ref().expect("reading has begun");
            let position = reading.source.position();
            let error = match (stop, reading.damage.get()) {
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

    /// The end; Err where no request has come.
    #[cold]
    fn finish(&mut self) -> Result<(), TraceError> {
        self.ended = true;
        if self.delivered > 0 {
            return Ok(());
        }
        let (file, format, left_out) = (self.origin.file.clone(), self.format(), self.left_out());
        let holds = self.reading.as_ref().and_then(|reading| reading.source.holds());
        let rows = left_out.in_words().map(|rows| format!("its rows were left out: {rows}"));
        let held = holds.or(rows);
        if let (Some(first), None) = (&self.first_skipped, &held) {
            let (skipped, first) = (self.skipped, first.to_string());
            return Err(TraceError::NothingRead { file, skipped, first });
        }
        if let Some(damaged) = self.damaged() {
            return Err(TraceError::Damaged(Box::new(damaged)));
        }
        let holds = held.unwrap_or_else(|| "it holds no record of one".to_owned());
        let malformed = match self.skipped {
            0 => String::new(),
            some => format!("; malformed: {}", grouped(some)),
        };
        Err(TraceError::NoRequests { file, format, holds: holds + &malformed, left_out })
    }
}

/// The records of `source` by arrival.
fn in_order(
    mut source: Box<dyn Source>,
    how: &How,
    survey: &Survey,
    spread: Option<u64>,
) -> Box<dyn Source> {
    let are_events = source.event_times().is_some();
    if !are_events && how.clock == Clock::FromStart && survey.recordings > 1 {
        source = Box::new(Recordings::new(source, how.clock_runs()));
    }
    source = match survey.order {
        RecordOrder::InOrder => source,
        RecordOrder::Window => {
            Box::new(Ordered::new(source, TimeOrder::window(survey::WINDOW_RECORDS)))
        }
        RecordOrder::Merge => Box::new(Ordered::new(source, TimeOrder::merge())),
    };
    match survey.granule_ns.zip(spread) {
        Some((granule, seed)) => Box::new(Spread::new(source, SimDuration::from_ns(granule), seed)),
        None => source,
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
        if self.reading.is_none()
            && !self.ended
            && let Err(error) = self.begin()
        {
            self.ended = true;
            return Some(Err(error));
        }
        while !self.ended {
            match self.step() {
                Ok(Some(record)) => return Some(Ok(record)),
                Ok(None) => {
                    if let Err(error) = self.finish() {
                        return Some(Err(error));
                    }
                }
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

/// Way to read a trace that begins with `head`. Err where its unit is not certain, and for options that its
/// format does not take.
fn how(origin: &Origin, head: &[u8], options: &OpenOptions) -> Result<How, TraceError> {
    let row = origin.format.row();
    let (file, format) = (origin.file.clone(), origin.format);
    let unit = match (options.time_unit, row.unit) {
        (Some(unit), Some(_)) => unit,
        (Some(_), None) => return Err(TraceError::FixedTimeUnit { file, format }),
        (None, None) => TimeUnit::Nanoseconds,
        (None, Some(find)) => match find(head, options.format.is_some()) {
            UnitFound::Sure(unit) => unit,
            UnitFound::Ask(rates) => return Err(TraceError::UncertainTimeUnit { file, rates }),
        },
    };
    if options.numbers.is_some() && !row.may_be_objects {
        return Err(TraceError::FixedNumbers { file, format });
    }
    let layer = options.layer;
    if layer != Layer::Auto && !format.has_layers() {
        return Err(TraceError::FixedLayer { file, format });
    }
    Ok(How {
        unit,
        clock: options.clock.unwrap_or(row.clock),
        clock_is_asked: options.clock.is_some(),
        granule: SimDuration::ZERO,
        known_step_ns: (row.timing == Timing::Seconds).then_some(SECOND_NS),
        needs_merge: false,
        cache_hits: options.cache_hits,
        layer,
        deliver: match layer {
            Layer::Issued => Deliver::Issued,
            Layer::Auto | Layer::Queued => Deliver::QueuedCounted,
        },
        objects: None,
        exact_objects: false,
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
    ARCHIVES
        .into_iter()
        .find(|(_, at, magic)| head.get(*at..).is_some_and(|from| from.starts_with(magic)))
        .map(|(name, _, _)| name)
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
        Stop::TemporaryFile(error) => TraceError::temporary_file(&origin.file, error),
        Stop::Broken(reason) => TraceError::Parquet { file: origin.file.clone(), reason },
        Stop::Fault(fault) => fault.at(origin, position),
    }
}
