//! A drive of the library held against a trace measured on the real one.

mod angles;
mod circular;
mod exchange;
mod fio;
mod fit;
mod phase;
mod rates;
mod spindle;

use std::sync::Arc;

use freewheel_model::drive::spec::DriveSpec;
use freewheel_model::electronics::DriveUnit;
use freewheel_model::stats::demerit;
use freewheel_sim::config::{ConfigError, TraceWorkload, open};
use freewheel_sim::library;
use freewheel_trace::Record;
use freewheel_units::{Lbn, Op, SimTime};
use serde::Serialize;
use thiserror::Error;

pub use angles::{AngleChange, AngleFit};
pub use circular::Coherence;
use exchange::{Exchange, Request, replay, with_gaps_one_later};
pub use fio::{FioFigures, FioRow, FioValidation, is_fio, validate_fio};
pub use fit::{FittedValue, ValidationFit};
pub use phase::{
    GapReading, PhaseAnalysis, PhaseClass, PhaseDistance, PhaseHistogram, PhaseLag, PhaseOperations,
};
pub use rates::{LeftOut, RateValidation, ZoneRate, is_rates, validate_rates};
pub use spindle::Distance;

/// Results of a validation. Times in milliseconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Validation {
    /// Name of the drive.
    pub drive: String,
    /// Path of the trace.
    pub trace: String,
    /// Number of requests that were compared.
    pub requests: u64,
    /// Mean of the measured response times.
    pub measured_mean_ms: f64,
    /// Mean of ours.
    pub simulated_mean_ms: f64,
    /// Deviation of our mean, as a share of the measured.
    pub mean_error_share: f64,
    /// To which request each gap was taken to belong.
    pub gaps: GapReading,
    /// Reason for that reading.
    pub gaps_because: GapsBecause,
    /// Root mean square of the horizontal distance between the two distributions (Ruemmler and
    /// Wilkes 1994).
    pub demerit_ms: f64,
    /// Demerit with the gaps read the other way.
    pub demerit_other_gaps_ms: f64,
    /// Demerit as a share of the measured mean.
    pub demerit_share: f64,
    /// Standard deviation of ours less measured, request by request.
    pub per_request_error_sd_ms: f64,
    /// Parts of the trace.
    pub parts: Vec<Part>,
    /// Points of both distributions.
    pub quantiles: Vec<Quantile>,
    /// Phase of the spindle in the trace, and the floor of the error without it.
    pub phase: PhaseAnalysis,
    /// Response time in ms against the share of requests in %: measured and ours.
    #[serde(skip)]
    pub curves: [Vec<(f64, f64)>; 2],
}

/// Reasons why the gaps of a trace were read in one way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum GapsBecause {
    /// The caller asked for it.
    Asked,
    /// So read, the trace keeps the spindle's phase.
    Phase,
    /// The phase is of no use, and the format says so.
    Format,
}

impl Validation {
    /// Reading of the gaps and its reason, and the demerit if they are read the other way, in a sentence.
    pub fn gaps_in_words(&self) -> String {
        let because = match self.gaps_because {
            GapsBecause::Asked => "as asked for",
            GapsBecause::Phase => "as the spindle's phase tells",
            GapsBecause::Format => "as the format says: the spindle's phase does not tell",
        };
        let other = match self.gaps {
            GapReading::AsRecorded => GapReading::OneLater,
            GapReading::OneLater => GapReading::AsRecorded,
        };
        format!(
            "Each delay is taken for the one {} its request, {because}. Taken for the one {}, the demerit is {:.3} ms.",
            self.gaps.side(),
            other.side(),
            self.demerit_other_gaps_ms
        )
    }
}

/// The requests that our model serves alike.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Part {
    /// Reads or writes, hits or misses.
    pub name: &'static str,
    /// Number of requests.
    pub requests: u64,
    /// Mean of the measured response times.
    pub measured_mean_ms: f64,
    /// Mean of ours.
    pub simulated_mean_ms: f64,
    /// Standard deviation of the difference, request by request.
    pub per_request_error_sd_ms: f64,
}

/// A point of both distributions.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Quantile {
    /// Share of the requests that take no longer.
    pub share: f64,
    /// The measured response time at this share.
    pub measured_ms: f64,
    /// The simulated response time at this share.
    pub simulated_ms: f64,
}

/// Reason why a validation failed.
#[derive(Debug, Error)]
#[allow(missing_docs)]
pub enum ValidateError {
    /// The drive, or the trace.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The trace is not of a kind that can be held against.
    #[error("{trace}: record {record}: {reason}")]
    Unsuitable {
        trace: String,
        /// Number of the record, from 1.
        record: u64,
        /// Fault, and what is needed.
        reason: &'static str,
    },
    /// fio's output cannot be compared.
    #[error("{file}: {reason}")]
    Fio {
        file: String,
        /// Fault of the file.
        reason: String,
    },
    /// A measurement of sequential rates cannot be compared.
    #[error("{file}: {reason}")]
    Rates {
        file: String,
        /// Fault of the file.
        reason: String,
    },
    /// The trace has no request.
    #[error("{trace}: it has no requests")]
    Empty { trace: String },
}

/// A request's two response times.
struct Pair {
    part: usize,
    measured_ms: f64,
    simulated_ms: f64,
}

impl Pair {
    fn of(exchange: &Exchange) -> Self {
        Self {
            part: part_number(exchange),
            measured_ms: exchange.request.measured().as_ms_f64(),
            simulated_ms: exchange.simulated.as_ms_f64(),
        }
    }
}

const PARTS: [&str; 4] = [
    "reads from the buffer",
    "reads from the media",
    "writes to the buffer",
    "writes to the media",
];

/// Sends the requests of a trace to a drive, each as long after our completion of the one before
/// as in the trace, and compares the response times. `gaps` says to which request each gap of the trace
/// belongs; None leaves that to the spindle's phase.
pub fn validate(
    drive: &str,
    trace: &TraceWorkload,
    gaps: Option<GapReading>,
) -> Result<Validation, ValidateError> {
    let (spec, unit, requests) = measured(drive, trace)?;
    let recorded = replay(unit.restarted(), &requests);
    let later = replay(unit.restarted(), &with_gaps_one_later(&requests));
    let readings = phase::Readings::new(unit.drive(), &recorded);
    let (taken, because) = reading(gaps, &readings);
    let (exchanges, others) = match taken {
        GapReading::AsRecorded => (&recorded, &later),
        GapReading::OneLater => (&later, &recorded),
    };
    let phase = readings.analyse(&unit, exchanges, &PARTS, part_number);
    let [pairs, others] = [exchanges, others].map(|all| all.iter().map(Pair::of).collect());
    let file = trace.shown().file.display().to_string();
    Ok(compare(&spec, file, [&pairs, &others], (taken, because), phase))
}

/// Looks for values of the drive with which the first half of a trace comes nearer, and judges them on the
/// second. `gaps` is as in [`validate`].
pub fn fit(
    drive: &str,
    trace: &TraceWorkload,
    gaps: Option<GapReading>,
) -> Result<ValidationFit, ValidateError> {
    let (spec, unit, requests) = measured(drive, trace)?;
    let recorded = replay(unit.restarted(), &requests);
    let (taken, _) = reading(gaps, &phase::Readings::new(unit.drive(), &recorded));
    Ok(match taken {
        GapReading::AsRecorded => fit::fit(&spec, &requests),
        GapReading::OneLater => fit::fit(&spec, &with_gaps_one_later(&requests)),
    })
}

/// A drive on the bus of the host that measured, and the requests of a trace.
fn measured(
    drive: &str,
    trace: &TraceWorkload,
) -> Result<(DriveSpec, DriveUnit, Vec<Request>), ValidateError> {
    let (spec, built) = library::drive(drive).map_err(ConfigError::from)?;
    let unit = DriveUnit::new(&Arc::new(built), &spec.electronics_as_measured())
        .map_err(ConfigError::from)?;
    let file = trace.file.display().to_string();
    let requests = requests(trace, &file, &unit)?;
    if requests.is_empty() {
        return Err(ValidateError::Empty { trace: file });
    }
    Ok((spec, unit, requests))
}

/// Side of a request on which its gap lies, and the reason.
fn reading(gaps: Option<GapReading>, readings: &phase::Readings) -> (GapReading, GapsBecause) {
    match (gaps, readings.tell()) {
        (Some(asked), _) => (asked, GapsBecause::Asked),
        (None, Some(told)) => (told, GapsBecause::Phase),
        (None, None) => (GapReading::AsRecorded, GapsBecause::Format),
    }
}

/// The traces are of one request at a time, which no step of a clock brings together.
const ANY_SEED: u64 = 1;

fn requests(
    trace: &TraceWorkload,
    file: &str,
    unit: &DriveUnit,
) -> Result<Vec<Request>, ValidateError> {
    let mut before: Option<SimTime> = None;
    let mut requests = Vec::new();
    for (index, record) in open(trace, ANY_SEED)?.enumerate() {
        let record = record.map_err(ConfigError::from)?;
        let completion = check(&record, before, unit).map_err(|reason| {
            ValidateError::Unsuitable { trace: file.to_owned(), record: index as u64 + 1, reason }
        })?;
        requests.push(Request {
            op: record.op,
            start: Lbn::new(record.start.get()),
            blocks: record.blocks.get() as u32,
            fua: record.fua,
            arrival: record.arrival,
            completion,
        });
        before = Some(completion);
    }
    Ok(requests)
}

/// Index into [`PARTS`].
fn part_number(exchange: &Exchange) -> usize {
    usize::from(exchange.request.op == Op::Write) * 2 + usize::from(!exchange.served.hit)
}

/// The record's completion, when it is one to compare.
fn check(
    record: &Record,
    before: Option<SimTime>,
    unit: &DriveUnit,
) -> Result<SimTime, &'static str> {
    if !record.op.moves_data() {
        return Err("only reads and writes can be compared");
    }
    if unit.drive().actuators() > 1 {
        return Err("the drive has several actuators; a drive with one is needed");
    }
    if record.end().get() > unit.drive().blocks().get() {
        return Err("it lies beyond the drive's end: the trace is of a larger drive");
    }
    if before.is_some_and(|before| record.arrival < before) {
        return Err("it arrives before the one in front is done; one request at a time is needed");
    }
    record.completion.ok_or("its response time was not recorded")
}

/// `others` are the same requests with the gaps read the other way.
fn compare(
    spec: &DriveSpec,
    trace: String,
    [pairs, others]: [&Vec<Pair>; 2],
    (gaps, gaps_because): (GapReading, GapsBecause),
    phase: PhaseAnalysis,
) -> Validation {
    let all: Vec<&Pair> = pairs.iter().collect();
    let measured = sorted(pairs, &|pair| pair.measured_ms);
    let [simulated, simulated_others] =
        [pairs, others].map(|pairs| sorted(pairs, &|pair| pair.simulated_ms));
    let demerit_ms = demerit(&measured, &simulated);
    let (measured_mean_ms, simulated_mean_ms) = means(&all);
    Validation {
        drive: spec.name.clone(),
        trace,
        requests: pairs.len() as u64,
        measured_mean_ms,
        simulated_mean_ms,
        mean_error_share: simulated_mean_ms / measured_mean_ms - 1.0,
        gaps,
        gaps_because,
        demerit_ms,
        demerit_other_gaps_ms: demerit(&measured, &simulated_others),
        demerit_share: demerit_ms / measured_mean_ms,
        per_request_error_sd_ms: error_sd(&all),
        parts: (0..PARTS.len()).filter_map(|part| part_of(pairs, part)).collect(),
        quantiles: quantiles(&measured, &simulated),
        phase,
        curves: [curve(&measured), curve(&simulated)],
    }
}

fn sorted(pairs: &[Pair], value: &dyn Fn(&Pair) -> f64) -> Vec<f64> {
    let mut list: Vec<f64> = pairs.iter().map(value).collect();
    list.sort_by(f64::total_cmp);
    list
}

fn means(pairs: &[&Pair]) -> (f64, f64) {
    let n = pairs.len() as f64;
    let measured: f64 = pairs.iter().map(|pair| pair.measured_ms).sum();
    let simulated: f64 = pairs.iter().map(|pair| pair.simulated_ms).sum();
    (measured / n, simulated / n)
}

fn error_sd(pairs: &[&Pair]) -> f64 {
    let (measured, simulated) = means(pairs);
    let bias = simulated - measured;
    (pairs.iter().map(|pair| (pair.simulated_ms - pair.measured_ms - bias).powi(2)).sum::<f64>()
        / pairs.len() as f64)
        .sqrt()
}

fn part_of(pairs: &[Pair], part: usize) -> Option<Part> {
    let of_part: Vec<&Pair> = pairs.iter().filter(|pair| pair.part == part).collect();
    if of_part.is_empty() {
        return None;
    }
    let (measured_mean_ms, simulated_mean_ms) = means(&of_part);
    Some(Part {
        name: PARTS[part],
        requests: of_part.len() as u64,
        measured_mean_ms,
        simulated_mean_ms,
        per_request_error_sd_ms: error_sd(&of_part),
    })
}

fn quantiles(measured: &[f64], simulated: &[f64]) -> Vec<Quantile> {
    let last = measured.len() - 1;
    [0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99]
        .map(|share| {
            let rank = (share * last as f64).round() as usize;
            Quantile { share, measured_ms: measured[rank], simulated_ms: simulated[rank] }
        })
        .to_vec()
}

/// Response time in ms against the share of requests in %, thinned to what a chart can show.
fn curve(sorted: &[f64]) -> Vec<(f64, f64)> {
    let step = sorted.len().div_ceil(400);
    let n = sorted.len() as f64;
    sorted
        .iter()
        .enumerate()
        .step_by(step)
        .map(|(i, &ms)| (ms, (i + 1) as f64 * 100.0 / n))
        .collect()
}
