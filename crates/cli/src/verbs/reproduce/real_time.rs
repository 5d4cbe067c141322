//! The scan during transactions by the clock, beside virtual time.

use std::io;
use std::path::Path;
use std::process::Command;

use freewheel::Experiment;
use freewheel::claims::{Comparison, REAL_TIME, run_in_real_time};
use freewheel::emulation::{JitterShape, Replies};
use freewheel::measures::{SimDuration, Text};
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::{itself, output};

/// Shorter runs are over before the clients have met.
const SHORTEST: SimDuration = SimDuration::from_secs(1);

/// Length of a run that the bands are meant for.
const LONG_ENOUGH: SimDuration = SimDuration::from_secs(60);

/// Longer ones need no number of nanoseconds.
const LONGEST: SimDuration = SimDuration::from_secs(86_400);

#[derive(Serialize)]
struct Document {
    id: &'static str,
    length_ns: u64,
    rows: Vec<Comparison>,
    /// Replies of the drive, without the scan and with it.
    replies: Vec<Replies>,
}

/// Part of the document of `freewheel emulate` that is read.
#[derive(Deserialize)]
struct Printed {
    drives: Vec<Replies>,
}

/// Runs it for `length` without the scan and for as long with it.
pub fn run(ids: &[String], length: SimDuration, seed: u64, json: bool) -> Result<(), Failure> {
    if ids.iter().any(|id| id != REAL_TIME) {
        return Err(Failure::wrong_use(format!(
            "--real-time: of all claims {REAL_TIME} alone can be run in real time"
        )));
    }
    if !(SHORTEST..=LONGEST).contains(&length) {
        return Err(Failure::wrong_use(format!(
            "--real-time {length}: {SHORTEST} to {LONGEST} are allowed"
        )));
    }
    output::note(&format!("two runs of {length} in real time: without the scan, and with it"));
    let mut both = Vec::new();
    let rows = run_in_real_time(seed, length, emulator, |printed| {
        let replies = replies(printed)?;
        let late = replies.lateness.summary;
        both.push(replies);
        Ok::<_, Failure>([late.p50_ns, late.p99_ns].map(|ns| ns as f64 / 1e3))
    })?;
    let document = Document { id: REAL_TIME, length_ns: length.ns(), rows, replies: both };
    if json {
        output::print_document(&document)?
    } else {
        output::print(&text(&document, length))?
    }
    judge(&document.rows, length)
}

/// The replies that the drive's process has printed.
fn replies(printed: &str) -> Result<Replies, Failure> {
    let wrong = |what| Failure::failed(format!("what the drive's process says: {what}"));
    let printed: Printed =
        serde_json::from_str(printed).map_err(|error| wrong(error.to_string()))?;
    let [replies] = <[Replies; 1]>::try_from(printed.drives)
        .map_err(|drives| wrong(format!("{} drives", drives.len())))?;
    Ok(replies)
}

/// This program as the experiment's drive.
fn emulator(experiment: &Experiment, folder: &Path, socket: &Path) -> io::Result<Command> {
    let file = folder.join("drive.toml");
    let text = toml::to_string(&experiment.spec).map_err(io::Error::other)?;
    std::fs::write(&file, text)?;
    let host = experiment.config.host.unwrap_or_default();
    let mut command = itself::command()?;
    command.arg("emulate").arg(&file).arg("--socket").arg(socket).arg("--json");
    command.args(["--write-cache", "off"]);
    command.args(["--queue-depth", &host.scheduler.queue_depth.to_string()]);
    command.args(["--seed", &experiment.config.seed.to_string()]);
    if let Some(jitter) = host.behaviour.seek_jitter {
        command.args(["--seek-jitter", &jitter.to_string()]);
    }
    if host.behaviour.seek_jitter_shape == JitterShape::Normal {
        command.args(["--seek-jitter-shape", "normal"]);
    }
    Ok(command)
}

fn text(document: &Document, length: SimDuration) -> String {
    let when = ["replies without the scan", "replies with the scan"];
    let replies = document.replies.iter().zip(when).map(|(replies, when)| replies.tables(when));
    format!(
        "{}: in real time, {length} each, the drive in another process; virtual time with the same number of \
         requests of the same clients\n\n{}\n{}",
        document.id,
        document.rows.text(),
        replies.collect::<Vec<String>>().join("\n"),
    )
}

fn judge(rows: &[Comparison], length: SimDuration) -> Result<(), Failure> {
    let outside: Vec<&str> =
        rows.iter().filter(|row| !row.inside).map(|row| row.quantity).collect();
    if outside.is_empty() {
        return Ok(());
    }
    let list = outside.join("; ");
    let failure =
        Failure::failed(format!("{} outside the band in real time: {list}", outside.len()));
    Err(failure.with_help(if length < LONG_ENOUGH {
        "so short a run differs by chance from the next: the bands apply to 60s"
    } else {
        "see how late the drive's replies were: the bands apply to an idle machine. Was this one busy?"
    }))
}
