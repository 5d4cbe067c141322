//! The papers' claims: run again, and held against the published numbers.

use std::io;
use std::path::Path;
use std::process::Command;

use freewheel_live::stopwatch::timed;
use freewheel_live::trial::{self, Outcome};
use freewheel_sim::config::Experiment;
use freewheel_units::{BLOCK_BYTES, SimDuration};

use crate::Error;

pub use freewheel_report::claims_html;
pub use freewheel_reproduce::{
    BEYOND, CLAIMS, Claim, Comparison, Counts, REAL_TIME, RealTimeRun, ReproduceOptions,
    Reproduction, Row, Verdict,
};

/// Runs the experiment behind a claim. `progress` receives done and total, from several threads.
///
/// ```
/// use freewheel::claims::ReproduceOptions;
/// use freewheel::reproduce;
///
/// let options = ReproduceOptions { quick: true, seed: 1, recordings: None };
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

/// A run by the clock: its numbers, and the text that the drive's process printed at its end.
pub struct RealTimeOutcome {
    /// Numbers of the run. Only the drive's own process knows how late its replies were: 0 here.
    pub run: RealTimeRun,
    /// The printed text.
    pub printed: String,
}

/// Runs the claim [`REAL_TIME`] by the clock for `length`, without its scan or with it. `emulator` makes
/// the command that serves the experiment's drive at a Unix socket, the second path, until `SIGTERM`; the
/// first path is a folder that it may put files into. The command prints a line on stderr when it serves.
pub fn run_in_real_time(
    seed: u64,
    scans: bool,
    length: SimDuration,
    emulator: impl FnOnce(&Experiment, &Path, &Path) -> io::Result<Command>,
) -> Result<RealTimeOutcome, Error> {
    // How many requests there are is found out by the clock.
    let experiment = freewheel_reproduce::real_time_experiment(seed, scans, 1)?;
    let command = |folder: &Path, socket: &Path| emulator(&experiment, folder, socket);
    let Outcome { played, report, drive } = trial::run(&experiment, length, command)?;
    let seconds = played.elapsed.as_secs_f64().max(f64::MIN_POSITIVE);
    let scanned: u64 = report.tasks.iter().map(|task| task.delivered.get()).sum();
    let run = RealTimeRun {
        requests: played.requests,
        requests_per_second: played.requests as f64 / seconds,
        mean_response_ms: played.responses.summary().mean_ns / 1e6,
        scan_mb_per_second: (scanned * BLOCK_BYTES) as f64 / seconds / 1e6,
        late_us_p50: 0.0,
        late_us_p99: 0.0,
    };
    Ok(RealTimeOutcome { run, printed: drive })
}

/// Compares the runs without the scan and with it with the same requests in virtual time.
pub fn beside_virtual_time(
    seed: u64,
    without: RealTimeRun,
    with: RealTimeRun,
) -> Result<Vec<Comparison>, Error> {
    Ok(freewheel_reproduce::beside_virtual_time(seed, without, with)?)
}
