//! A drive fitted to the responses that a trace records.
//!
//! Requests come as the study replays them. Seek times, speed, command overhead and write cache are searched
//! on every other slice of the requests for the smallest demerit; the slices between, which the search
//! never sees, say how good the drive is. The drive file stays as it is where the fit is not much nearer.
//!
//! What is found answers like the recorded drive, but need not be it: longer seeks answer much like a
//! slower spindle.
//!
//! Non-goals: the layout, the buffer and the order of the queue; they show too little in responses alone.
//! For those there is `extract`, which asks the drive itself.

mod halves;
mod search;
mod values;

use freewheel_model::drive::spec::DriveSpec;
use freewheel_sim::Completion;
use freewheel_sim::config::{ConfigError, TraceWorkload, open};
use freewheel_sim::experiment::Experiment;
use freewheel_sim::source::KeptRecords;
use freewheel_trace::Record;
use rayon::prelude::*;
use serde::Serialize;

pub use halves::{HalfFit, HalfResponses, LEFT_OUT, SLICES};
pub use values::{FITTED, FittedValues};

use self::halves::{Recorded, is_data};
use self::search::{ROUNDS_MAX, search};
use crate::progress::{Amount, ProgressSink, StudyProgress};
use crate::trace_runs::REQUESTS_MIN;

/// Requests that a fit looks at, from the beginning of the trace on.
pub const REQUESTS_MAX: usize = 60_000;
/// Drives that are tried at once, and of those before them, mechanics that are kept: each takes tens of
/// megabytes.
const AT_ONCE: usize = 12;
/// The half that is fitted has to come within this share of its demerit, or become alike, or the drive
/// stays as it is: assumed. A drive that no data sheet knows is not worth a little less.
pub const USED_WITHIN: f64 = 0.5;
/// A demerit up to this share of the recorded mean is that of a drive like the recorded one: assumed.
pub const GOOD_SHARE: f64 = 0.3;

/// Fit of a drive.
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
    /// True if the fitted drive is used. The half that is fitted decides: so only the number hangs on the
    /// other.
    pub fn is_used(&self) -> bool {
        let [own, fitted] = [&self.before[0], &self.after[0]];
        let is_much_nearer = fitted.demerit_ns <= USED_WITHIN * own.demerit_ns;
        let becomes_alike = own.demerit_share > GOOD_SHARE && fitted.demerit_share <= GOOD_SHARE;
        fitted.demerit_ns < own.demerit_ns && (is_much_nearer || becomes_alike)
    }

    /// Both halves with the drive that is used.
    pub fn used(&self) -> &[HalfFit; 2] {
        if self.is_used() { &self.after } else { &self.before }
    }

    /// The half that is not fitted with the drive that is used.
    pub fn judged(&self) -> &HalfFit {
        &self.used()[1]
    }

    /// True if the drive that is used answers like the recorded one, in both halves.
    pub fn is_good(&self) -> bool {
        self.used().iter().all(|half| half.demerit_share <= GOOD_SHARE)
    }
}

/// Fits the drive of an experiment that replays a trace on a drive alone. None where too few responses are
/// recorded.
pub(crate) fn fit(
    experiment: &Experiment,
    workload: &TraceWorkload,
    progress: ProgressSink<'_>,
) -> Result<Option<DriveFit>, ConfigError> {
    let Some(mut bench) = FitBench::new(experiment, workload)? else { return Ok(None) };
    let (spec, electronics) = (&experiment.spec, experiment.has_electronics());
    let own = FittedValues::of(spec);
    let neighbours = |values: &FittedValues, step| values.neighbours(spec, electronics, step);
    let grid = FittedValues::grid(spec, electronics);
    let valleys = FittedValues::speeds(spec).count();
    let most = grid.len() + valleys * ROUNDS_MAX * neighbours(&own, 1.0).len();
    let report = |done: usize| {
        progress(StudyProgress::Fitting(Amount { done: done as u64, total: most as u64 }));
    };
    let best = search(
        &grid,
        |values| values.rpm,
        neighbours,
        |all| {
            let mut costs = Vec::new();
            for some in all.chunks(AT_ONCE) {
                costs.extend(bench.try_values(some)?);
                report(bench.tried.len());
            }
            Ok::<_, ConfigError>(costs)
        },
    )?;
    report(most);
    let of = |values: &FittedValues| {
        let run = bench.tried.iter().find(|(other, _)| other == values);
        run.and_then(|(_, halves)| *halves).expect("the search starts on it or has chosen it")
    };
    Ok(Some(DriveFit {
        drive: experiment.config.drive.clone(),
        values: best,
        drives_tried: bench.tried.len() as u64,
        before: of(&own),
        after: of(&best),
        spec: best.apply(spec, &bench.trace).expect("it has run"),
    }))
}

/// Bench on which drives are tried.
struct FitBench {
    experiment: Experiment,
    recorded: Recorded,
    trace: String,
    /// Every drive so far with both halves; None of one that cannot be.
    tried: Vec<(FittedValues, Option<[HalfFit; 2]>)>,
    /// The last ones with their mechanics. Drives that differ in the electronics alone share them.
    mechanics: Vec<([f64; 2], Option<Experiment>)>,
}

impl FitBench {
    /// None where too few responses are recorded.
    fn new(experiment: &Experiment, workload: &TraceWorkload) -> Result<Option<Self>, ConfigError> {
        let mut records = Vec::new();
        for record in open(workload, experiment.config.seed)? {
            let record = record?;
            records.extend(Some(record).filter(|record| is_wanted(record, workload)));
            if records.len() == REQUESTS_MAX {
                break;
            }
        }
        let Some(recorded) = Recorded::of(records.iter(), REQUESTS_MIN as usize) else {
            return Ok(None);
        };
        let mut experiment = experiment.clone();
        experiment.keep_records(KeptRecords::from(records));
        let name = workload.file.file_name().unwrap_or(workload.file.as_os_str());
        let trace = name.display().to_string();
        Ok(Some(Self { experiment, recorded, trace, tried: Vec::new(), mechanics: Vec::new() }))
    }

    /// Runs drives with these values, and says what each costs: the demerit of the half that is fitted.
    fn try_values(&mut self, all: &[FittedValues]) -> Result<Vec<f64>, ConfigError> {
        self.build_mechanics(all);
        let runs: Vec<Option<[HalfFit; 2]>> =
            all.par_iter().map(|values| self.halves(values)).collect::<Result<_, ConfigError>>()?;
        self.tried.extend(all.iter().copied().zip(runs.iter().copied()));
        Ok(runs.iter().map(|run| run.map_or(f64::INFINITY, |run| run[0].demerit_ns)).collect())
    }

    fn build_mechanics(&mut self, all: &[FittedValues]) {
        self.mechanics.drain(..self.mechanics.len().saturating_sub(AT_ONCE));
        let mut missing: Vec<FittedValues> = Vec::new();
        for values in all {
            let of = values.mechanics();
            let is_known = self.mechanics.iter().any(|(other, _)| *other == of)
                || missing.iter().any(|other| other.mechanics() == of);
            missing.extend(Some(*values).filter(|_| !is_known));
        }
        let built: Vec<_> = missing
            .par_iter()
            .map(|values| {
                let spec = values.with_mechanics(&self.experiment.spec);
                (values.mechanics(), spec.and_then(|spec| self.experiment.on_drive(spec).ok()))
            })
            .collect();
        self.mechanics.extend(built);
    }

    /// Both halves on the drive with these values, whose mechanics are built; None where it cannot be.
    fn halves(&self, values: &FittedValues) -> Result<Option<[HalfFit; 2]>, ConfigError> {
        let mechanics = self.mechanics.iter().find(|(of, _)| *of == values.mechanics());
        let Some((_, Some(mechanics))) = mechanics else { return Ok(None) };
        let experiment = mechanics.on_drive(values.with_electronics(mechanics.spec.clone()))?;
        let mut simulated = vec![None; self.recorded.requests()];
        experiment
            .new_run()
            .with_observer(&mut |completion: &Completion| {
                if is_data(completion.request.op) {
                    let response = completion.response().ns() as f64;
                    if let Some(of_request) = simulated.get_mut(completion.request.tag as usize) {
                        *of_request = Some(response);
                    }
                }
            })
            .simulate()?;
        Ok(Some(self.recorded.compare(&simulated)))
    }
}

fn is_wanted(record: &Record, workload: &TraceWorkload) -> bool {
    workload.device.is_none_or(|device| device == record.device)
}
