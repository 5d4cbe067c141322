//! A run of requests to files.

use std::sync::Arc;

use freewheel_array::cooling::MoverSpec;
use freewheel_array::files::{
    ArmMover, Choice, Clients, CooledRequests, Cooling, CoolingWork, FileLoad, FileMap,
    FileRequest, FileRequests, GapMovedRequests, GapMover, GapWork, TracedRequests,
};
use freewheel_array::placement::ExtentId;
use freewheel_freeblock::Planner;
use freewheel_model::cache::{StorageCache, StorageCacheSpec};
use freewheel_model::drive::{Drive, Sectors};
use freewheel_model::sched::{MarkedFirst, ParsePolicyError, Policy, PolicySpec};
use freewheel_model::stats::{Distribution, Summary};
use freewheel_units::Op;
use serde::Serialize;

use crate::arm_executor::ArmExecutor;
use crate::cached_arm::behind_cache;
use crate::completion::Completion;
use crate::config::ConfigError;
use crate::device::{Device, Mechanics};
use crate::engine::{self, Arm, RunParts, VolumeLayout};
use crate::result::{DiskUse, RunResult};
use crate::seek_errors::SeekErrors;
use crate::source::Source;

/// Files, disks and requests.
pub struct FilesExperiment<'a> {
    /// The disks. Each is one arm with its own drive; they may be unlike.
    pub disks: &'a [Arc<Drive>],
    /// Places of the files.
    pub map: &'a FileMap,
    /// Clients' requests.
    pub arrivals: Arrivals<'a>,
    /// Order of each disk's queue.
    pub policy: PolicySpec,
    /// The storage system's cache in front of each disk.
    pub cache: Option<&'a StorageCacheSpec>,
    /// Share of the requests that counts in no response.
    pub warm_up: f64,
    /// Seed of arrivals.
    pub seed: u64,
}

/// Clients' requests.
#[derive(Debug, Clone, Copy)]
pub enum Arrivals<'a> {
    /// Independent of each other.
    Poisson {
        /// Use of each file.
        loads: &'a [FileLoad],
        /// Requests in all.
        requests: u64,
    },
    /// Requests of a trace.
    Traced {
        /// By arrival.
        requests: &'a [FileRequest],
        /// Factor by which times become shorter.
        speedup: f64,
    },
}

impl Arrivals<'_> {
    fn count(&self) -> u64 {
        match self {
            Self::Poisson { requests, .. } => *requests,
            Self::Traced { requests, .. } => requests.len() as u64,
        }
    }

    fn read_share(&self) -> f64 {
        match self {
            Self::Poisson { loads, .. } => {
                let sum = |of: fn(&FileLoad) -> f64| loads.iter().map(of).sum::<f64>();
                sum(|load| load.rate * load.reads) / sum(|load| load.rate)
            }
            Self::Traced { requests, .. } => {
                let reads = requests.iter().filter(|request| request.op == Op::Read).count();
                reads as f64 / requests.len().max(1) as f64
            }
        }
    }
}

/// Observations of clients, and work of disks.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FilesResult {
    /// Response times of clients after the warm-up.
    pub response: Summary,
    /// Each disk.
    pub disks: Vec<DiskUse>,
    /// Virtual time of the run.
    pub elapsed_ns: u64,
    /// Hash over all completions.
    pub result_hash: String,
}

impl FilesExperiment<'_> {
    fn clients(&self) -> Clients<'_> {
        match self.arrivals {
            Arrivals::Poisson { loads, requests } => {
                let clients = FileRequests::new(self.map, loads, requests, self.seed);
                Clients::Poisson(Box::new(clients))
            }
            Arrivals::Traced { requests, speedup } => {
                Clients::Traced(TracedRequests::new(self.map, requests, speedup))
            }
        }
    }
}

/// Runs all requests, and shows every completion after the warm-up to `observer`.
pub fn simulate(
    experiment: &FilesExperiment<'_>,
    observer: &mut dyn FnMut(&Completion),
) -> Result<FilesResult, ConfigError> {
    let arms = arms(experiment, std::iter::repeat_with(|| None), false)?;
    simulate_on(experiment, arms, &mut experiment.clients(), observer)
}

/// Runs all requests while the array is cooled. The experiment's map has the last places afterwards.
pub fn simulate_cooled(
    experiment: &FilesExperiment<'_>,
    cooling: Cooling,
    observer: &mut dyn FnMut(&Completion),
) -> Result<(FilesResult, CoolingWork), ConfigError> {
    let FilesExperiment { disks, map, .. } = *experiment;
    let choice = Choice::daemon(cooling, disks, map, experiment.arrivals.read_share());
    moved(experiment, choice, cooling.mover, observer)
}

/// Runs all requests while extents move to other disks, one after the other, by reads and writes among
/// those of clients. The experiment's map has the last places afterwards.
pub fn simulate_moved(
    experiment: &FilesExperiment<'_>,
    moves: &[(ExtentId, u32)],
    mover: MoverSpec,
    observer: &mut dyn FnMut(&Completion),
) -> Result<(FilesResult, CoolingWork), ConfigError> {
    moved(experiment, Choice::List(moves.iter().copied().collect()), mover, observer)
}

fn moved(
    experiment: &FilesExperiment<'_>,
    choice: Choice,
    mover: MoverSpec,
    observer: &mut dyn FnMut(&Completion),
) -> Result<(FilesResult, CoolingWork), ConfigError> {
    check_cache(experiment, false)?;
    let mut source = CooledRequests::new(experiment.clients(), experiment.map, choice, mover);
    let is_marked = source.puts_copies_first();
    let arms = arms(experiment, std::iter::repeat_with(|| None), is_marked)?;
    let result = simulate_on(experiment, arms, &mut source, observer)?;
    Ok((result, source.end().1))
}

/// Runs all requests while extents move to other disks in rotational gaps, all at once. The experiment's map
/// has the last places afterwards. A move that requests leave too few gaps for is not
/// complete at the end.
pub fn simulate_moved_in_gaps(
    experiment: &FilesExperiment<'_>,
    moves: &[(ExtentId, u32)],
    observer: &mut dyn FnMut(&Completion),
) -> Result<(FilesResult, GapWork), ConfigError> {
    check_cache(experiment, true)?;
    let mover = GapMover::shared(experiment.disks);
    let mut planners = ArmMover::all(&mover, None);
    let planners = planners.iter_mut().map(|planner| Some(planner as &mut dyn Planner));
    let arms = arms(experiment, planners, false)?;
    let mut source = GapMovedRequests::new(experiment.clients(), experiment.map, mover, moves);
    let result = simulate_on(experiment, arms, &mut source, observer)?;
    Ok((result, source.work()))
}

/// Err for a cache that would answer requests which a move has to know of.
fn check_cache(experiment: &FilesExperiment<'_>, is_in_gaps: bool) -> Result<(), ConfigError> {
    let Some(cache) = experiment.cache else { return Ok(()) };
    let message = match (is_in_gaps, cache.write_buffer.is_some()) {
        (true, _) => {
            "moves in gaps exclude a cache, whose requests they do not see: leave `cache` out"
        }
        (false, true) => {
            "moves exclude a write buffer, which holds back what they copy: leave `write_buffer` out"
        }
        (false, false) => return Ok(()),
    };
    Err(ConfigError::Cache { message: message.into() })
}

/// Simulation on these arms, behind caches if there are any.
fn simulate_on<S: Source>(
    experiment: &FilesExperiment<'_>,
    arms: Vec<Arm<Mechanics<'_>>>,
    source: &mut S,
    observer: &mut dyn FnMut(&Completion),
) -> Result<FilesResult, ConfigError> {
    let Some(cache) = experiment.cache else {
        return simulate_devices(experiment, arms, source, observer);
    };
    let arms = arms
        .into_iter()
        .map(|arm| {
            let cache = StorageCache::new(*cache, arm.drive.blocks());
            behind_cache(arm, cache, experiment.policy.build()?, Sectors::default())
        })
        .collect::<Result<_, ConfigError>>()?;
    simulate_devices(experiment, arms, source, observer)
}

fn simulate_devices<D: Device, S: Source>(
    experiment: &FilesExperiment<'_>,
    mut arms: Vec<Arm<D>>,
    source: &mut S,
    observer: &mut dyn FnMut(&Completion),
) -> Result<FilesResult, ConfigError> {
    let warm_up = (experiment.arrivals.count() as f64 * experiment.warm_up) as u64;
    let mut responses = Distribution::default();
    let layout = VolumeLayout::Files(experiment.map);
    let parts = RunParts::whole();
    let tally = engine::tally(layout, None, &mut arms, source, parts, &mut |done: &Completion| {
        if done.request.tag >= warm_up {
            responses.record(done.response());
            observer(done);
        }
    })?;
    let RunResult { disks, elapsed_ns, result_hash, .. } = tally.result();
    Ok(FilesResult { response: responses.summary(), disks, elapsed_ns, result_hash })
}

/// One arm a disk; each may have a planner for its gaps. Marked requests go first if some are.
fn arms<'p>(
    experiment: &FilesExperiment<'_>,
    planners: impl Iterator<Item = Option<&'p mut dyn Planner>>,
    is_marked: bool,
) -> Result<Vec<Arm<Mechanics<'p>>>, ParsePolicyError> {
    experiment
        .disks
        .iter()
        .enumerate()
        .zip(planners)
        .map(|((number, drive), planner)| {
            let errors = SeekErrors::new(drive, experiment.seed, number as u32);
            let executor = ArmExecutor::new(errors);
            let executor = match planner {
                Some(planner) => executor.with_planner(planner),
                None => executor,
            };
            let device = Mechanics::new(drive, executor);
            let policy = experiment.policy.build()?;
            let policy: Box<dyn Policy> =
                if is_marked { Box::new(MarkedFirst::new(policy)) } else { policy };
            Ok(Arm { drive: Arc::clone(drive), policy, device })
        })
        .collect()
}
