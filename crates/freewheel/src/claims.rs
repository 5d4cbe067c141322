//! The papers' claims: run again, and held against the published numbers.

use std::io;
use std::path::Path;
use std::process::Command;

use freewheel_live::stopwatch::timed;
use freewheel_live::trial::{self, Outcome};
use freewheel_reproduce::RealTimeRun;
use freewheel_sim::experiment::Experiment;
use freewheel_units::{BLOCK_BYTES, SimDuration};

use crate::Error;

pub use freewheel_report::ClaimsReport;
pub use freewheel_reproduce::{
    CLAIMS, Claim, Comparison, Kind, REAL_TIME, ReproduceOptions, Reproduction, Row, SEEDS, Verdict,
};

/// Runs the experiment behind a claim, and compares its numbers with the paper's.
///
/// `progress` receives done and total, from several threads.
///
/// ```
/// use freewheel::claims::ReproduceOptions;
/// use freewheel::reproduce;
///
/// let options = ReproduceOptions { quick: true, seeds: vec![1], recordings: None };
/// let done = reproduce("fast02.fig4", &options, &|_, _| {})?;
/// assert!(done.rows.iter().all(|row| row.verdict.passes()));
/// # Ok::<(), freewheel::Error>(())
/// ```
pub fn reproduce(
    id: &str,
    options: &ReproduceOptions,
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<Reproduction, Error> {
    Ok(freewheel_reproduce::reproduce(id, options, &|call| timed(call), progress)?)
}

/// Runs the claim [`REAL_TIME`] by the clock, for `length` without its scan and again with it, and compares
/// it with the same requests in virtual time.
///
/// `emulator` makes the command that serves the experiment's drive at a Unix socket, the second path, until
/// `SIGTERM`; the first path is a folder that it may put files into. The command prints a line on stderr
/// when it serves. `lateness_us` finds in the text that it prints at its end how late replies were, in
/// microseconds: the median, and what 99 % did not exceed.
pub fn run_in_real_time<E: From<Error>>(
    seed: u64,
    length: SimDuration,
    emulator: impl Fn(&Experiment, &Path, &Path) -> io::Result<Command>,
    mut lateness_us: impl FnMut(&str) -> Result<[f64; 2], E>,
) -> Result<Vec<Comparison>, E> {
    let mut run = |scans| {
        let outcome = by_the_clock(seed, scans, length, &emulator)?;
        let lateness_us = lateness_us(&outcome.drive)?;
        Ok::<_, E>(seen(&outcome, lateness_us))
    };
    let (without, with) = (run(false)?, run(true)?);
    let rows = freewheel_reproduce::beside_virtual_time(seed, without, with);
    rows.map_err(|error| Error::from(error).into())
}

fn by_the_clock(
    seed: u64,
    scans: bool,
    length: SimDuration,
    emulator: impl Fn(&Experiment, &Path, &Path) -> io::Result<Command>,
) -> Result<Outcome, Error> {
    // How many requests there are is found out by the clock.
    let experiment = freewheel_reproduce::real_time_experiment(seed, scans, 1)?;
    Ok(trial::run(&experiment, length, |folder, socket| emulator(&experiment, folder, socket))?)
}

fn seen(outcome: &Outcome, [late_us_p50, late_us_p99]: [f64; 2]) -> RealTimeRun {
    let Outcome { played, report, .. } = outcome;
    let seconds = played.elapsed.as_secs_f64().max(f64::MIN_POSITIVE);
    let scanned: u64 = report.tasks.iter().map(|task| task.delivered.get()).sum();
    RealTimeRun {
        requests: played.requests,
        requests_per_second: played.requests as f64 / seconds,
        mean_response_ms: played.responses.summary().mean_ns / 1e6,
        scan_mb_per_second: (scanned * BLOCK_BYTES) as f64 / seconds / 1e6,
        late_us_p50,
        late_us_p99,
    }
}
