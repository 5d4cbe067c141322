//! Content of a trace, found in one pass: counts, span, bytes, footprint, devices.
//!
//! Goals: the numbers that tell whether a trace fits a drive; memory bounded by the footprint.
//! Non-goals: how the load behaves, which is `characterize`.

use std::collections::BTreeMap;

use freewheel_units::{Op, SimTime};
use serde::Serialize;

use crate::error::TraceError;
use crate::input::Damage;
use crate::regions::{Footprint, PAGE_BYTES, Regions, Touched};
use crate::scan::TimeUnit;
use crate::source::LeftOutRows;
use crate::survey::Survey;
use crate::{Format, Record, Report, TraceReader};

/// A replay by dependence needs the completions of all requests but less than one in this many. A tracer
/// that stops loses those of the requests under way; more say that completions were not recorded.
pub const MISSING_COMPLETIONS_ONE_IN: u64 = 100;

/// Content of a trace. Sums of bytes that pass 2^64 stay at 2^64 - 1.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct TraceInfo {
    /// The format it was read from.
    pub format: Format,
    /// All requests, flushes and trims included.
    pub requests: u64,
    pub reads: u64,
    pub writes: u64,
    pub flushes: u64,
    pub trims: u64,
    /// Reads with force unit access (FUA).
    pub fua_reads: u64,
    /// Writes with force unit access (FUA).
    pub fua_writes: u64,
    /// From the earliest arrival to the latest.
    pub span_ns: u64,
    pub bytes: u64,
    pub bytes_read: u64,
    pub bytes_written: u64,
    /// Distinct blocks of 4 KiB that were read or written, in bytes, over all devices; absent when
    /// it was not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub footprint_bytes: Option<u64>,
    pub devices: BTreeMap<u32, DeviceInfo>,
    /// Results of the first pass over the trace's times and numbers; absent where a collector saw records
    /// of no reader.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub survey: Option<Survey>,
    /// Unit of its times, in formats that come with several, and where it is another than the format has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_unit: Option<TimeUnit>,
    /// Rows that are no request to the disk.
    pub left_out: LeftOutRows,
    /// Malformed records passed over.
    pub skipped: u64,
    /// Damage of the compressed file; records after it are left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub damage: Option<Damage>,
    /// Requests that were widened to whole blocks of 512 bytes.
    pub widened: u64,
    /// Requests with a completion time.
    pub completions: u64,
    /// True if every request has a completion time (and there is one at least).
    pub has_completions: bool,
}

/// Device of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct DeviceInfo {
    /// Requests, flushes and trims included.
    pub requests: u64,
    /// End of the highest block with a request, in blocks of 512 bytes: the least size of the device.
    pub end_block: u64,
    /// Read and written.
    pub bytes: u64,
}

impl TraceInfo {
    /// Requests without a completion time.
    pub fn missing_completions(&self) -> u64 {
        self.requests - self.completions
    }

    /// True if enough requests have a completion time to tell which request waited for which: all but less
    /// than one in [`MISSING_COMPLETIONS_ONE_IN`].
    pub fn tells_dependence(&self) -> bool {
        let missing = u128::from(self.missing_completions());
        missing * u128::from(MISSING_COMPLETIONS_ONE_IN) < u128::from(self.requests)
    }

    /// Reads the rest of `reader`.
    pub fn scan(reader: &mut TraceReader) -> Result<Self, TraceError> {
        Self::scan_watched(reader, &mut |_| {})
    }

    /// Like [`Self::scan`], with reports of progress.
    pub fn scan_watched(reader: &mut TraceReader, report: Report<'_>) -> Result<Self, TraceError> {
        InfoCollector::new(reader.format()).collect(reader, report)
    }

    /// Like [`Self::scan_watched`] without the footprint, the count of which takes memory that grows
    /// with it.
    pub fn scan_without_footprint(
        reader: &mut TraceReader,
        report: Report<'_>,
    ) -> Result<Self, TraceError> {
        InfoCollector::without_footprint(reader.format()).collect(reader, report)
    }

    /// In words, how a trace with this share of completion times is replayed where dependence is to be
    /// detected.
    pub fn replay_in_words(&self) -> String {
        if self.tells_dependence() {
            "no request is taken to have waited for the others".to_owned()
        } else {
            format!(
                "replayed by arrival, as think times need all but less than one in \
                 {MISSING_COMPLETIONS_ONE_IN}"
            )
        }
    }

    /// Adds the records that `reader` has left out so far.
    pub fn as_read_by(self, reader: &TraceReader) -> Self {
        let damage = reader.damaged().map(|damaged| damaged.damage);
        let (survey, left_out) = (reader.surveyed().copied(), reader.left_out());
        let (skipped, time_unit) = (reader.skipped(), reader.time_unit());
        Self { skipped, damage, survey, left_out, time_unit, ..self }
    }
}

/// Collects a [`TraceInfo`] record by record. Counting the footprint takes memory for every MiB of which
/// parts are touched, and for every request that covers several whole ones; [`Self::without_footprint`]
/// does without.
#[derive(Debug)]
pub struct InfoCollector {
    info: TraceInfo,
    regions: Regions,
    earliest: SimTime,
    latest: SimTime,
    counts_footprint: bool,
}

impl InfoCollector {
    /// A collector for a trace of this format.
    pub fn new(format: Format) -> Self {
        Self {
            info: empty(format),
            regions: Regions::default(),
            earliest: SimTime::MAX,
            latest: SimTime::ZERO,
            counts_footprint: true,
        }
    }

    /// A collector without footprint: its memory grows with the devices only.
    pub fn without_footprint(format: Format) -> Self {
        Self { counts_footprint: false, ..Self::new(format) }
    }

    /// Takes the rest of `reader`, and counts the records that it left out.
    pub fn collect(
        mut self,
        reader: &mut TraceReader,
        report: Report<'_>,
    ) -> Result<TraceInfo, TraceError> {
        reader.read_through(|record| self.observe(record), report)?;
        Ok(self.finish().as_read_by(reader))
    }

    /// Takes the next record.
    pub fn observe(&mut self, record: &Record) {
        self.observe_pages(record);
    }

    /// As `observe`, and tells which pages a read or a write covered.
    pub(crate) fn observe_pages(&mut self, record: &Record) -> Touched {
        self.note_time(record);
        self.note_device(record);
        self.note_op(record);
        if record.op.moves_data() && self.counts_footprint {
            self.regions.touch(record)
        } else {
            Touched::default()
        }
    }

    /// The counts so far.
    pub fn finish(self) -> TraceInfo {
        let requests = self.info.requests;
        TraceInfo {
            span_ns: self.latest.saturating_since(self.earliest).ns(),
            footprint_bytes: self
                .counts_footprint
                .then(|| self.regions.footprint().pages * PAGE_BYTES),
            has_completions: requests > 0 && self.info.completions == requests,
            ..self.info
        }
    }

    pub(crate) fn footprint(&self) -> Footprint {
        self.regions.footprint()
    }

    pub(crate) fn regions(&self) -> &Regions {
        &self.regions
    }

    fn note_time(&mut self, record: &Record) {
        self.earliest = self.earliest.min(record.arrival);
        self.latest = self.latest.max(record.arrival);
        self.info.completions += u64::from(record.completion.is_some());
    }

    fn note_device(&mut self, record: &Record) {
        let device = self.info.devices.entry(record.device).or_default();
        device.requests += 1;
        device.end_block = device.end_block.max(record.end().get());
        if record.op.moves_data() {
            add(&mut device.bytes, record);
        }
    }

    fn note_op(&mut self, record: &Record) {
        let info = &mut self.info;
        info.requests += 1;
        info.widened += u64::from(record.widened);
        match record.op {
            Op::Read => {
                info.reads += 1;
                info.fua_reads += u64::from(record.fua);
                add(&mut info.bytes_read, record);
                add(&mut info.bytes, record);
            }
            Op::Write => {
                info.writes += 1;
                info.fua_writes += u64::from(record.fua);
                add(&mut info.bytes_written, record);
                add(&mut info.bytes, record);
            }
            Op::Flush => info.flushes += 1,
            Op::Trim => info.trims += 1,
        }
    }
}

fn add(sum: &mut u64, record: &Record) {
    *sum = sum.saturating_add(record.bytes().get());
}

fn empty(format: Format) -> TraceInfo {
    TraceInfo {
        format,
        requests: 0,
        reads: 0,
        writes: 0,
        flushes: 0,
        trims: 0,
        fua_reads: 0,
        fua_writes: 0,
        span_ns: 0,
        bytes: 0,
        bytes_read: 0,
        bytes_written: 0,
        footprint_bytes: None,
        devices: BTreeMap::new(),
        survey: None,
        time_unit: None,
        left_out: LeftOutRows::default(),
        skipped: 0,
        damage: None,
        widened: 0,
        completions: 0,
        has_completions: false,
    }
}
