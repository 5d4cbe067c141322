//! Characterises a load: rate, burstiness, sizes, locality, queueing.
//!
//! Goals: one pass; memory bounded by footprint, devices and outstanding requests; the same records
//! give the same bytes of JSON. Names of numbers carry their units. A share is from 0 to 1, and 0 of an
//! empty whole.
//! Non-goals: fitting generators, plots.
//!
//! Where arrivals step back, a record counts as arriving with the latest so far. Quantiles have three
//! significant digits, rounded down.

mod burst;
mod depth;
mod flush;
mod locality;
mod quantiles;
mod rate;
mod sequence;
mod sizes;

use freewheel_units::SimTime;
use serde::Serialize;

pub use burst::Burstiness;
pub use depth::{DepthSummary, ResponseTimes};
pub use flush::FlushBehaviour;
pub use locality::{Reuse, Skew};
pub use quantiles::DurationSummary;
pub use rate::{RateBin, RateOverTime};
pub use sequence::{JumpSummary, Sequentiality};
pub use sizes::{Mix, SizeBucket, SizeSummary, Sizes};

use crate::error::TraceError;
use crate::{Format, InfoCollector, Record, Report, TraceInfo, TraceReader};

/// Character of a trace's load.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct Character {
    /// Counts, span, bytes, footprint, devices.
    pub info: TraceInfo,
    /// Requests and bytes over time.
    pub rate: RateOverTime,
    pub burstiness: Burstiness,
    pub mix: Mix,
    pub sizes: Sizes,
    /// Requests that continue where another ended.
    pub sequentiality: Sequentiality,
    /// Distances of jumps between requests.
    pub jump: JumpSummary,
    pub reuse: Reuse,
    /// Skew of accesses over the regions touched.
    pub skew: Skew,
    /// Requests outstanding at an arrival; `None` without completion times.
    pub queue_depth: Option<DepthSummary>,
    /// Response times of the traced device, where recorded.
    pub response: ResponseTimes,
    pub flush: FlushBehaviour,
}

impl Character {
    /// Reads the rest of `reader` and characterises its load.
    pub fn scan(reader: &mut TraceReader, report: Report<'_>) -> Result<Self, TraceError> {
        let mut characterizer = Characterizer::new(reader.format());
        reader.read_through(|record| characterizer.observe(record), report)?;
        Ok(characterizer.finish().as_read_by(reader))
    }

    /// Adds the records that `reader` has left out so far.
    pub fn as_read_by(self, reader: &TraceReader) -> Self {
        Self { info: self.info.as_read_by(reader), ..self }
    }
}

/// Collects a [`Character`] record by record.
#[derive(Debug)]
pub struct Characterizer {
    info: InfoCollector,
    rate: rate::RateCollector,
    burst: burst::BurstCollector,
    sizes: sizes::SizeCollector,
    sequence: sequence::SequenceCollector,
    reuse: locality::ReuseCollector,
    depth: depth::DepthCollector,
    flush: flush::FlushCollector,
    first: Option<SimTime>,
    latest: SimTime,
}

impl Characterizer {
    /// A collector for a trace of this format.
    pub fn new(format: Format) -> Self {
        Self {
            info: InfoCollector::new(format),
            rate: Default::default(),
            burst: Default::default(),
            sizes: Default::default(),
            sequence: Default::default(),
            reuse: Default::default(),
            depth: Default::default(),
            flush: Default::default(),
            first: None,
            latest: SimTime::ZERO,
        }
    }

    /// Takes the next record.
    pub fn observe(&mut self, record: &Record) {
        let first = *self.first.get_or_insert(record.arrival);
        self.latest = self.latest.max(record.arrival);
        let since_first_ns = self.latest.saturating_since(first).ns();
        let touched = self.info.observe_pages(record);
        self.rate.observe(since_first_ns, record);
        self.burst.observe(since_first_ns);
        self.sizes.observe(record);
        self.sequence.observe(record);
        self.reuse.observe(record.op, touched);
        self.depth.observe(self.latest, record);
        self.flush.observe(since_first_ns, record.op);
    }

    /// The character of the records so far.
    pub fn finish(self) -> Character {
        let footprint = self.info.footprint();
        let skew = Skew::of(&self.info.regions().sorted_accesses());
        let info = self.info.finish();
        let (sequentiality, jump) = self.sequence.finish();
        let (queue_depth, response) = self.depth.finish();
        Character {
            rate: self.rate.finish(self.first.unwrap_or(SimTime::ZERO)),
            burstiness: self.burst.finish(),
            mix: Mix::of(&info),
            sizes: self.sizes.finish(),
            sequentiality,
            jump,
            reuse: self.reuse.finish(footprint),
            skew,
            queue_depth,
            response,
            flush: self.flush.finish(),
            info,
        }
    }
}

/// Reads the rest of `reader` and characterises its load.
pub fn characterize(reader: &mut TraceReader) -> Result<Character, TraceError> {
    Character::scan(reader, &mut |_| {})
}

/// `part / whole`; 0 for an empty whole.
fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
