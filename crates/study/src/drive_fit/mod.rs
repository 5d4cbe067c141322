//! A drive fitted to the responses that a trace records.
//!
//! Requests come as the study replays them. Seek times, speed, command overhead and write cache are searched
//! on the first half of the requests for the smallest demerit; the second half, which the search never sees, says how
//! good the drive is. The drive file stays as it is where that half does not get nearer.
//!
//! Non-goals: the layout, the buffer and the order of the queue; they show too little in responses alone. For those
//! there is `extract`, which asks the drive itself.

mod halves;
mod search;
mod values;

use freewheel_model::drive::spec::DriveSpec;
use freewheel_sim::Completion;
use freewheel_sim::config::{ConfigError, Experiment, TraceWorkload, open};
use freewheel_sim::source::KeptRecords;
use freewheel_trace::Record;
use rayon::prelude::*;
use serde::Serialize;

pub use halves::{HalfFit, HalfResponses};
pub use values::FittedValues;

use self::halves::{Recorded, is_data};
use self::search::search;
use crate::progress::{Amount, ProgressSink, StudyProgress};
use crate::trace_runs::REQUESTS_MIN;

/// Requests that a fit looks at, from the beginning of the trace on.
const REQUESTS_MAX: usize = 60_000;
/// The second half has to get this much nearer, as a share of its demerit, or the drive stays as it is.
const GAIN_MIN: f64 = 0.02;
/// A demerit up to this share of the recorded mean is that of a drive like the recorded one: assumed.
pub const GOOD_SHARE: f64 = 0.3;

/// How a drive was fitted.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DriveFit {
    /// The drive as it was named.
    pub drive: String,
    /// The best values of the search.
    pub values: FittedValues,
    /// Drives that were tried.
    pub drives_tried: u64,
    /// The drive as its file says, on the half that is fitted and on the other.
    pub before: [HalfFit; 2],
    /// With the values of the search.
    pub after: [HalfFit; 2],
    /// The drive with them.
    #[serde(skip)]
    pub spec: DriveSpec,
}

impl DriveFit {
    /// Whether the half that the search has not seen got nearer: only then the drive is used.
    pub fn is_nearer(&self) -> bool {
        self.after[1].demerit_ns < (1.0 - GAIN_MIN) * self.before[1].demerit_ns
    }

    /// The other half with the drive that is used.
    pub fn judged(&self) -> &HalfFit {
        if self.is_nearer() { &self.after[1] } else { &self.before[1] }
    }

    /// Whether the drive that is used answers like the recorded one.
    pub fn is_good(&self) -> bool {
        self.judged().demerit_share() <= GOOD_SHARE
    }
}

/// Fits the drive of an experiment that replays a trace on a drive alone. None where too few responses are recorded.
pub(crate) fn fit(
    experiment: &Experiment,
    workload: &TraceWorkload,
    progress: ProgressSink<'_>,
) -> Result<Option<DriveFit>, ConfigError> {
    let Some(bench) = FitBench::new(experiment, workload)? else { return Ok(None) };
    let (spec, electronics) = (&experiment.spec, experiment.has_electronics());
    let own = FittedValues::of(spec);
    let neighbours = |values: &FittedValues, step| values.neighbours(spec, electronics, step);
    let grid = FittedValues::grid(spec, electronics);
    let most = search::most_costs(&grid, |values| values.rpm, neighbours(&own, 1.0).len()) as u64;
    let mut tried: Vec<(FittedValues, Option<[HalfFit; 2]>)> = Vec::new();
    let costs = |all: &[FittedValues]| {
        let runs = all.par_iter().map(|values| bench.try_values(values));
        let runs = runs.collect::<Result<Vec<_>, ConfigError>>()?;
        tried.extend(all.iter().copied().zip(runs.iter().copied()));
        progress(StudyProgress::Fitting(Amount { done: tried.len() as u64, total: most }));
        let cost = |run: &Option<[HalfFit; 2]>| run.map_or(f64::INFINITY, |run| run[0].demerit_ns);
        Ok::<_, ConfigError>(runs.iter().map(cost).collect())
    };
    let best = search(&grid, |values| values.rpm, neighbours, costs)?;
    progress(StudyProgress::Fitting(Amount { done: most, total: most }));
    let of = |values: &FittedValues| {
        let run = tried.iter().find(|(other, _)| other == values);
        run.and_then(|(_, halves)| *halves).expect("the search starts on it or has chosen it")
    };
    Ok(Some(DriveFit {
        drive: experiment.config.drive.clone(),
        values: best,
        drives_tried: tried.len() as u64,
        before: of(&own),
        after: of(&best),
        spec: bench.drive(&best).expect("it has run"),
    }))
}

/// Where drives are tried.
struct FitBench {
    experiment: Experiment,
    recorded: Recorded,
    trace: String,
}

impl FitBench {
    /// None where too few responses are recorded.
    fn new(experiment: &Experiment, workload: &TraceWorkload) -> Result<Option<Self>, ConfigError> {
        let is_wanted =
            |record: &Record| workload.device.is_none_or(|device| device == record.device);
        let mut records = Vec::new();
        for record in open(workload, experiment.config.seed)?.take(REQUESTS_MAX) {
            let record = record?;
            records.extend(Some(record).filter(is_wanted));
        }
        let Some(recorded) = Recorded::of(records.iter(), REQUESTS_MIN as usize) else {
            return Ok(None);
        };
        let mut experiment = experiment.clone();
        experiment.keep_records(KeptRecords::from(records));
        let name = workload.file.file_name().unwrap_or(workload.file.as_os_str());
        Ok(Some(Self { experiment, recorded, trace: name.display().to_string() }))
    }

    fn drive(&self, values: &FittedValues) -> Option<DriveSpec> {
        values.apply(&self.experiment.spec, &self.trace)
    }

    /// Both halves on the drive with these values; None where it cannot be.
    fn try_values(&self, values: &FittedValues) -> Result<Option<[HalfFit; 2]>, ConfigError> {
        let Some(spec) = self.drive(values) else { return Ok(None) };
        let experiment = self.experiment.on_drive(spec)?;
        let mut simulated = vec![None; self.recorded.requests()];
        let mut observe = |completion: &Completion| {
            if is_data(completion.request.op) {
                let response = completion.response().ns() as f64;
                simulated[completion.request.tag as usize] = Some(response);
            }
        };
        experiment.run_observed(Some(&mut observe), &mut |_, _| {})?;
        Ok(Some(self.recorded.compare(&simulated)))
    }
}
