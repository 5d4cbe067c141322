//! A scrub from outside whose commands the drive's queue tells from those of clients: by NCQ priority, or by
//! Command Duration Limits (CDL).
//!
//! The scrub always has one read at the drive. By priority, clients go first until it has waited for
//! [`SCRUB_WAIT`]. By CDL, the commands of clients carry a short limit, and its reads one of [`SCRUB_WAIT`].

use freewheel_model::electronics::{DurationLimit, LimitPolicy};
use freewheel_sim::RunResult;
use freewheel_sim::config::{
    CommandsConfig, ConfigError, MarksConfig, OutsideScrubConfig, SimConfig,
};
use freewheel_sim::experiment::Experiment;
use freewheel_units::{Bytes, SimDuration};
use rayon::prelude::*;
use serde::Serialize;

use crate::progress::WorkCounter;

/// A run with such a scrub.
pub(super) struct MarkedRun {
    pub marks: CommandMarks,
    pub result: RunResult,
    /// Bytes that the scrub has read.
    pub read: u64,
    /// Bytes a nanosecond that it reads while no client is there.
    pub steady: f64,
}

/// Way in which a drive tells the commands of a scrub from those of clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "marks", rename_all = "kebab-case")]
pub enum CommandMarks {
    /// Clients have NCQ priority.
    Priority,
    /// Clients name a duration limit.
    DurationLimit {
        /// Inactive time of the scrub's commands.
        inactive_ns: u64,
    },
}

/// Longest wait of the scrub's reads in the drive, which keeps it going beside any load.
const SCRUB_WAIT: SimDuration = SimDuration::from_secs(1);

/// Limits of clients that are tried.
const LIMITS: [SimDuration; 3] =
    [SimDuration::from_ms(20), SimDuration::from_ms(50), SimDuration::from_ms(100)];

/// Number of [`marked_runs`].
pub(super) const MARKED_RUNS: usize = 1 + LIMITS.len();

/// Runs an experiment with such scrubs, each of at most this number of reads of `run`. None for a drive
/// without a queue that chooses, and where something stands between clients and drive.
pub(super) fn marked_runs(
    experiment: &Experiment,
    (run_bytes, reads_max): (Bytes, u64),
    work: &WorkCounter<'_>,
) -> Result<Vec<MarkedRun>, ConfigError> {
    let SimConfig { host, cache, scheduler, .. } = &experiment.config;
    let depth = experiment.spec.electronics.queue.unwrap_or_default().depth;
    let is_direct = host.is_none() && cache.is_none() && !scheduler.is_linux();
    if !experiment.has_electronics() || depth == 1 || !is_direct {
        work.forgo(MARKED_RUNS);
        return Ok(Vec::new());
    }
    let half = experiment.striping.blocks().bytes().get() / 2;
    let scrub = OutsideScrubConfig {
        run: run_bytes,
        start: Bytes::new(half / run_bytes.get() * run_bytes.get()),
        reads_max: Some(reads_max),
        ..OutsideScrubConfig::default()
    };
    let limits = LIMITS.map(|limit| CommandMarks::DurationLimit { inactive_ns: limit.ns() });
    let all: Vec<CommandMarks> = [CommandMarks::Priority].into_iter().chain(limits).collect();
    all.par_iter()
        .map(|&marks| {
            let run = work.begin(1);
            let commands = Some(commands(marks, scrub));
            let config = SimConfig { commands, ..experiment.config.clone() };
            let with = experiment.with_config(config)?;
            let result =
                with.new_run().with_progress(&mut |done, total| run.at(done, total)).simulate()?;
            let scrub = result.outside_scrub.as_ref().expect("the host scrubs");
            // Half of the reads and more meet no client wherever time is left out.
            let steady = run_bytes.get() as f64 / scrub.response.p50_ns.max(1) as f64;
            Ok(MarkedRun { marks, read: scrub.read_bytes, steady, result })
        })
        .collect()
}

/// Marks of clients' commands and of the scrub's.
fn commands(marks: CommandMarks, scrub: OutsideScrubConfig) -> CommandsConfig {
    match marks {
        CommandMarks::Priority => CommandsConfig {
            high_priority_first: Some(SCRUB_WAIT),
            clients: MarksConfig { high_priority: true, ..MarksConfig::default() },
            scrub: Some(scrub),
            ..CommandsConfig::default()
        },
        CommandMarks::DurationLimit { inactive_ns } => {
            let short = limit(SimDuration::from_ns(inactive_ns));
            CommandsConfig {
                read_limits: vec![short, limit(SCRUB_WAIT)],
                write_limits: vec![short],
                clients: MarksConfig { read_limit: 1, write_limit: 1, ..MarksConfig::default() },
                scrub: Some(OutsideScrubConfig { read_limit: 2, ..scrub }),
                ..CommandsConfig::default()
            }
        }
    }
}

fn limit(inactive: SimDuration) -> DurationLimit {
    DurationLimit { inactive: Some(inactive), active: None, policy: LimitPolicy::Complete }
}
