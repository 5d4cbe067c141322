//! A run of requests to files.

use std::sync::Arc;

use freewheel_model::drive::spec::DriveSpec;
use freewheel_model::drive::{BuildDriveError, Drive};
use freewheel_model::sched::{ParsePolicyError, PolicySpec};
use freewheel_model::stats::{Distribution, Summary};
use freewheel_units::{SimDuration, SimTime};
use serde::Serialize;

use super::cooling::{COPY, CooledRequests, Cooling, CoolingWork};
use super::requests::{FileLoad, FileRequests};
use crate::arm_executor::{ArmExecutor, SeekErrors};
use crate::completion::Completion;
use crate::config::ConfigError;
use crate::device::{Device, Mechanics};
use crate::engine::{self, Arm, RunParts, VolumeLayout};
use crate::file_map::FileMap;
use crate::result::Tally;
use crate::source::Source;

/// How much longer a turn of the last disk takes than that of the first: 0.3 %. Spindles of an array are
/// not synchronised: each turns at a rate of its own, so any two drift through all angles.
const DRIFT: (u64, u64) = (3, 1000);

/// Files, disks and requests.
pub struct FilesExperiment<'a> {
    /// The disks. Each is one arm with its own drive; they may be unlike.
    pub disks: &'a [Arc<Drive>],
    /// Where the files lie.
    pub map: &'a FileMap,
    /// How each is used.
    pub loads: &'a [FileLoad],
    /// Order of each disk's queue.
    pub policy: PolicySpec,
    /// Share of reads.
    pub read_share: f64,
    /// Requests in all.
    pub requests: u64,
    /// Share of them that counts in no response.
    pub warm_up: f64,
    /// Seed of arrivals.
    pub seed: u64,
}

/// What clients saw and disks did.
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

/// What a disk did in a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct DiskUse {
    /// Share of the time in which it was busy.
    pub utilisation: f64,
    /// Share of the time in which it moved the arm.
    pub seek: f64,
    /// Share of the time in which it waited for rotation.
    pub rotate: f64,
    /// Share of the time in which data passed its heads.
    pub transfer: f64,
}

/// Disks of one kind whose spindles are not synchronised.
pub fn unsynchronised(spec: &DriveSpec, disks: u32) -> Result<Vec<Arc<Drive>>, BuildDriveError> {
    let disk = |number: u32| {
        let turn = spec.rotation_period;
        let whole = DRIFT.1 * u64::from(disks);
        let longer = SimDuration::from_ns(turn.ns() * DRIFT.0 * u64::from(number) / whole);
        let own = DriveSpec { rotation_period: turn + longer, ..spec.clone() };
        Drive::build(&own).map(Arc::new)
    };
    (0..disks).map(disk).collect()
}

/// Runs all requests, and shows every completion after the warm-up to `observer`.
pub fn simulate(
    experiment: &FilesExperiment<'_>,
    observer: &mut dyn FnMut(&Completion),
) -> Result<FilesResult, ConfigError> {
    simulate_source(experiment, &mut requests(experiment), observer)
}

/// Runs all requests while the array is cooled. The experiment's map has the last places afterwards.
/// Panics unless all requests are reads, and for `queue_veto`: the daemon has no view of the queues.
pub fn simulate_cooled(
    experiment: &FilesExperiment<'_>,
    cooling: Cooling,
    observer: &mut dyn FnMut(&Completion),
) -> Result<(FilesResult, CoolingWork), ConfigError> {
    assert!(experiment.read_share >= 1.0, "writes to extents that move are not simulated");
    assert!(!cooling.daemon.queue_veto, "the daemon has no view of the queues");
    let mut source = CooledRequests::new(requests(experiment), experiment.map, cooling);
    let result = simulate_source(experiment, &mut source, observer)?;
    Ok((result, source.work()))
}

fn requests<'a>(experiment: &FilesExperiment<'a>) -> FileRequests<'a> {
    let FilesExperiment { map, loads, read_share, requests, seed, .. } = *experiment;
    FileRequests::new(map, loads, read_share, requests, seed)
}

/// Runs the requests of any source over the experiment's disks and files. Copies are no client's
/// requests, so responses are counted here.
fn simulate_source<S: Source>(
    experiment: &FilesExperiment<'_>,
    source: &mut S,
    observer: &mut dyn FnMut(&Completion),
) -> Result<FilesResult, ConfigError> {
    let mut arms = arms(experiment)?;
    let warm_up = (experiment.requests as f64 * experiment.warm_up) as u64;
    let mut responses = Distribution::default();
    let mut observe = |done: &Completion| {
        if (warm_up..COPY).contains(&done.request.tag) {
            responses.record(done.response());
            observer(done);
        }
    };
    let layout = VolumeLayout::Files(experiment.map);
    let parts = RunParts::whole();
    let tally = engine::tally(layout, None, &mut arms, source, parts, &mut observe)?;
    Ok(FilesResult { response: responses.summary(), ..result(tally, &arms) })
}

fn arms<'p>(experiment: &FilesExperiment<'_>) -> Result<Vec<Arm<Mechanics<'p>>>, ParsePolicyError> {
    let arm = |(number, drive): (usize, &Arc<Drive>)| {
        let errors = SeekErrors::new(drive, experiment.seed, number as u32);
        let device = Mechanics::new(drive, ArmExecutor::new(errors));
        Ok(Arm { drive: Arc::clone(drive), policy: experiment.policy.build()?, device })
    };
    experiment.disks.iter().enumerate().map(arm).collect()
}

fn result<D: Device>(tally: Tally, arms: &[Arm<D>]) -> FilesResult {
    let result = tally.result();
    let elapsed = result.elapsed_ns;
    let end = SimTime::from_ns(elapsed);
    let of_arm = |arm: &Arm<D>| {
        let work = arm.device.work(end);
        let share = |time: SimDuration| time.ns() as f64 / elapsed.max(1) as f64;
        let head = work.head_time;
        DiskUse {
            utilisation: share(work.busy),
            seek: share(head.seek),
            rotate: share(head.rotate),
            transfer: share(head.transfer),
        }
    };
    FilesResult {
        response: result.response,
        disks: arms.iter().map(of_arm).collect(),
        elapsed_ns: elapsed,
        result_hash: result.result_hash,
    }
}
