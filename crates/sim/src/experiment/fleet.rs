//! Independent drives side by side, each a separate simulation, on all cores.
//!
//! Goals: the same bytes with any number of threads. The result of a drive depends on the experiment's
//! seed and the drive's number, and not on the number of drives. Memory grows by a line for each drive,
//! and with the threads.
//! Non-goals: drives that affect each other.

use std::sync::{Mutex, PoisonError};

use freewheel_trace::TraceInfo;
use freewheel_units::Prng;
use rayon::prelude::*;

use super::Progress;
use crate::config::{ConfigError, DRIVES_MAX, SimConfig, Workload};
use crate::result::{DriveResult, RunResult, Tally};
use crate::source::PlacementError;

/// One of several independent drives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Member {
    /// From zero; with a trace, the place of its device among all devices of the trace.
    pub number: u32,
    /// Seed of its random streams.
    pub seed: u64,
    /// The device of the trace that it serves.
    pub device: Option<u32>,
}

impl Member {
    /// Seeds have 53 bits: every reader of JSON keeps them, and TOML holds them.
    fn new(experiment_seed: u64, number: u32, device: Option<u32>) -> Self {
        let seed = Prng::new(experiment_seed, &format!("drive {number}")).next_u64() >> 11;
        Self { number, seed, device }
    }
}

/// The independent drives of an experiment, in order of their numbers: one for each device of its trace
/// that takes part, else the number that its array gives.
pub(crate) fn members(
    config: &SimConfig,
    trace: Option<&TraceInfo>,
) -> Result<Vec<Member>, ConfigError> {
    let asked = config.array.drives;
    let (Workload::Trace(workload), Some(info)) = (&config.workload, trace) else {
        let numbers = 0..asked.unwrap_or(1);
        return Ok(numbers.map(|number| Member::new(config.seed, number, None)).collect());
    };
    let chosen = |device: &u32| workload.device.is_none_or(|chosen| chosen == *device);
    let members: Vec<Member> = (0..)
        .zip(info.devices.keys().copied())
        .filter(|(_, device)| chosen(device))
        .map(|(number, device)| Member::new(config.seed, number, Some(device)))
        .collect();
    if let Some(device) = workload.device.filter(|_| members.is_empty()) {
        return Err(PlacementError::no_device(device, info.devices.keys().copied()).into());
    }
    let count = members.len() as u64;
    let wrong = |message: String| Err(ConfigError::Array { message });
    match asked {
        Some(asked) if u64::from(asked) != count => wrong(format!(
            "`drives` is {asked}, but each of the trace's {count} devices that take part has one drive: {count} or no `drives` at all is needed"
        )),
        _ if count > u64::from(DRIVES_MAX) => {
            wrong(format!("the trace has {count} devices: at most {DRIVES_MAX} are allowed"))
        }
        _ => Ok(members),
    }
}

/// Simulates every drive with `simulate`, and sums them up in the order given.
///
/// `progress` counts all drives together, each as much as any other. Of several errors the one of
/// the first drive is returned.
pub(crate) fn run(
    members: &[Member],
    progress: Progress<'_>,
    simulate: impl Fn(&Member, Progress<'_>) -> Result<Tally, ConfigError> + Sync,
) -> Result<RunResult, ConfigError> {
    let progress = Mutex::new(FleetProgress { done: 0, drives: members.len() as u64, progress });
    let simulate = |member: &Member| -> Result<Sum, ConfigError> {
        let mut before = 0;
        let tally = simulate(member, &mut |done, total| {
            let mut together = progress.lock().unwrap_or_else(PoisonError::into_inner);
            together.add(done - before, total);
            before = done;
        })?;
        let drive = tally.drive_result(member.number, member.seed, member.device);
        Ok(Sum { tally, drives: vec![drive] })
    };
    // One drive at a time, for drives may differ in how long they take.
    let sums = members.par_iter().with_max_len(1).map(simulate);
    let nothing = || Ok(Sum::default());
    let sum = sums.reduce(nothing, |left, right| Ok(left?.and(right?)))?;
    Ok(sum.tally.result_of(sum.drives))
}

/// Progress of all drives together.
struct FleetProgress<'a> {
    done: u64,
    drives: u64,
    progress: Progress<'a>,
}

impl FleetProgress<'_> {
    /// Adds `done` to the progress of a drive. `total` is the same for every drive.
    fn add(&mut self, done: u64, total: u64) {
        self.done += done;
        (self.progress)(self.done, total * self.drives);
    }
}

/// Neighbouring drives summed up.
#[derive(Default)]
struct Sum {
    tally: Tally,
    drives: Vec<DriveResult>,
}

impl Sum {
    /// Together with the drives that follow.
    fn and(mut self, next: Self) -> Self {
        self.tally.add(&next.tally);
        self.drives.extend(next.drives);
        self
    }
}
