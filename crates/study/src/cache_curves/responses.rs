//! Runs of the trace against a drive, with caches of each size in front.

use freewheel_model::cache::{CachePolicy, StorageCacheSpec};
use freewheel_sim::config::{ConfigError, SimConfig, check_timing};
use freewheel_sim::experiment::Experiment;
use freewheel_trace::{Format, TraceInfo};
use freewheel_units::Bytes;
use rayon::prelude::*;

use super::error::CacheCurvesError;
use super::options::{CacheCurvesOptions, ResponseRuns};
use super::progress::{CacheProgress, CacheProgressSink};
use super::result::{
    Counted, MissRatio, PolicyCurve, PolicyResponses, ResponsePoint, Responses, SimulatedResponses,
};
use crate::ratio::mean;
use crate::trace_runs::{has_growing_queue, trace_on_drive};

/// Store that serves the misses.
pub(super) enum MissStore {
    /// A drive that the trace fits.
    Drive(Box<Experiment>),
    /// No drive, as the trace has no times, or no places on a disk.
    NoTiming(Format),
    /// No drive, as it was not asked for.
    NotAsked,
}

impl MissStore {
    /// Err for a drive that cannot be built. Quick: no trace is read.
    pub fn check(options: &CacheCurvesOptions) -> Result<(), CacheCurvesError> {
        match options.responses {
            ResponseRuns::None => Ok(()),
            _ => Ok(Experiment::check(&config(options, StorageCacheSpec::default()))?),
        }
    }

    pub fn new(options: &CacheCurvesOptions, trace: &TraceInfo) -> Result<Self, CacheCurvesError> {
        if options.responses == ResponseRuns::None {
            return Ok(Self::NotAsked);
        }
        let file = &options.trace.file;
        if check_timing(trace.format, trace.survey.as_ref(), file).is_err() {
            return Ok(Self::NoTiming(trace.format));
        }
        let config = config(options, StorageCacheSpec::default());
        let experiment = Experiment::with_trace_info(config, Some(trace.clone()))?;
        Ok(Self::Drive(Box::new(experiment)))
    }
}

/// The trace on the drive as it is used today: the drive's own command queue decides about misses.
fn config(options: &CacheCurvesOptions, cache: StorageCacheSpec) -> SimConfig {
    let on_drive =
        trace_on_drive(&options.trace, &options.drive, options.electronics, options.seed);
    let cache = Some(StorageCacheSpec { queue_depth: options.cache_depth, ..cache });
    SimConfig { cache, warm_up: options.warm_up, ..on_drive }
}

/// A run: a cache in front of the drive.
#[derive(Debug, Clone, Copy)]
struct Run {
    policy: CachePolicy,
    /// 0 for no cache.
    size_bytes: u64,
}

/// Runs the drive without a cache and behind caches of each size, on all cores.
pub(super) fn responses(
    options: &CacheCurvesOptions,
    setting: MissStore,
    curves: &[PolicyCurve],
    counted: &Counted,
    progress: CacheProgressSink<'_>,
) -> Result<Responses, CacheCurvesError> {
    let experiment = match setting {
        MissStore::Drive(experiment) => *experiment,
        MissStore::NoTiming(format) => return Ok(Responses::NoTiming { format }),
        MissStore::NotAsked => return Ok(Responses::NotAsked),
    };
    let (chosen, bench) = (chosen(options, curves), Bench { experiment, counted, progress });
    let runs: Vec<Run> = runs(&chosen, curves);
    let points = runs.par_iter().map(|&run| bench.point(run)).collect::<Result<Vec<_>, _>>()?;
    Ok(Responses::Simulated(Box::new(SimulatedResponses {
        drive: bench.experiment.spec.name.clone(),
        model: bench.experiment.spec.model.clone(),
        arms: bench.experiment.striping.arms(),
        dependent_replay: bench.experiment.is_dependent(),
        without_cache: points[0],
        policies: chosen
            .iter()
            .map(|&policy| PolicyResponses {
                policy,
                title: policy.row().title,
                points: points_of(policy, &runs, &points),
            })
            .collect(),
    })))
}

/// The policies that run with a drive: of those that ship.
fn chosen(options: &CacheCurvesOptions, curves: &[PolicyCurve]) -> Vec<CachePolicy> {
    let shipped = || curves.iter().filter_map(|curve| Some((curve.policy.shipped()?, curve)));
    if options.responses == ResponseRuns::All {
        return shipped().map(|(policy, _)| policy).collect();
    }
    let others = shipped().filter(|(policy, _)| !is_lru(*policy));
    let best = others.min_by(|(_, a), (_, b)| misses(a).total_cmp(&misses(b)));
    let lru = shipped().filter(|(policy, _)| is_lru(*policy));
    lru.chain(best).map(|(policy, _)| policy).collect()
}

fn misses(curve: &PolicyCurve) -> f64 {
    mean(&curve.miss_ratios, MissRatio::main)
}

fn is_lru(policy: CachePolicy) -> bool {
    policy == CachePolicy::Lru
}

/// First the drive without a cache, then every policy at every size. All curves have the same sizes.
fn runs(chosen: &[CachePolicy], curves: &[PolicyCurve]) -> Vec<Run> {
    let sizes = curves.first().map_or(&[][..], |curve| &curve.miss_ratios);
    let without = Run { policy: CachePolicy::default(), size_bytes: 0 };
    std::iter::once(without)
        .chain(chosen.iter().flat_map(|&policy| {
            sizes.iter().map(move |at| Run { policy, size_bytes: at.size_bytes })
        }))
        .collect()
}

fn points_of(policy: CachePolicy, runs: &[Run], points: &[ResponsePoint]) -> Vec<ResponsePoint> {
    let pairs = runs.iter().zip(points);
    pairs
        .filter(|(run, _)| run.policy == policy && run.size_bytes > 0)
        .map(|(_, &point)| point)
        .collect()
}

/// Bench on which runs take place.
struct Bench<'a> {
    experiment: Experiment,
    counted: &'a Counted,
    progress: CacheProgressSink<'a>,
}

impl Bench<'_> {
    /// One run. It is alone on its thread, and no other run changes it.
    fn point(&self, run: Run) -> Result<ResponsePoint, ConfigError> {
        let mut experiment = self.experiment.clone();
        let size = Bytes::new(run.size_bytes / u64::from(experiment.striping.arms()));
        let cache = experiment.config.cache.expect("the bench has a cache");
        let cache = StorageCacheSpec { size, policy: run.policy, ..cache };
        // An empty one would still read once for all requests that wait for the same block.
        experiment.config.cache = (run.size_bytes > 0).then_some(cache);
        let name = run.name();
        let result = experiment
            .new_run()
            .with_progress(&mut |done, total| {
                (self.progress)(CacheProgress::Running { run: &name, done, total })
            })
            .simulate()?;
        Ok(ResponsePoint {
            size_bytes: run.size_bytes,
            reads: result.read_response,
            writes: result.write_response,
            all: result.response,
            queue_grows: has_growing_queue(
                experiment.is_dependent(),
                self.counted.span_ns,
                &result,
            ),
        })
    }
}

impl Run {
    fn name(self) -> String {
        match self.size_bytes {
            0 => "no cache".into(),
            size => format!("{}, {}", self.policy.row().title, Bytes::new(size)),
        }
    }
}
