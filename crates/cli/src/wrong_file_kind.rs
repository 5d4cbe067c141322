//! A file of another kind than expected: its kind, and the verb that takes it.

use std::path::Path;

use freewheel::trace::{OpenOptions, TraceReader, read_text};

use crate::failure::Failure;

/// What a file is meant as, right or wrong.
enum Kind {
    Trace,
    Experiment,
    Drive,
}

/// No experiment and no drive file is longer: what is need not be read to be told apart.
const DOCUMENT_BYTES_MAX: u64 = 1 << 20;

fn kind(path: &Path) -> Option<Kind> {
    let file = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    if TraceReader::open(path, &OpenOptions::default()).is_ok() {
        return Some(Kind::Trace);
    }
    if file.len() > DOCUMENT_BYTES_MAX {
        return None;
    }
    let document: toml::Table = read_text(path).ok()?.parse().ok()?;
    // A table that one of them cannot do without and the other does not have.
    let tables = [("workload", Kind::Experiment), ("zones", Kind::Drive)];
    let found = tables.into_iter().find(|(table, _)| document.contains_key(*table));
    found.map(|(_, kind)| kind)
}

/// Of a file that is no experiment: that it is something else, if it is.
pub fn for_an_experiment(path: &Path) -> Option<Failure> {
    let file = path.display();
    let (is, help) = match kind(path)? {
        Kind::Experiment => return None,
        Kind::Trace => (
            "a trace",
            format!(
                "`freewheel study {file}` says what would help it; `freewheel sim examples/replay.toml \
                 --set workload.file={file}`, with the experiment in Freewheel's source, replays it"
            ),
        ),
        Kind::Drive => ("a drive file", takes_drive("sim EXPERIMENT --set drive=", path)),
    };
    Some(Failure::failed(format!("{file}: is {is}, and an experiment is wanted")).with_help(help))
}

/// The same of one that is no trace.
pub fn for_a_trace(path: &Path) -> Option<Failure> {
    let file = path.display();
    let (is, help) = match kind(path)? {
        Kind::Trace => return None,
        Kind::Experiment => ("an experiment", format!("`freewheel sim {file}` runs it")),
        Kind::Drive => ("a drive file", takes_drive("study TRACE --drive ", path)),
    };
    Some(Failure::failed(format!("{file}: is {is}, and a trace is wanted")).with_help(help))
}

/// How to get a drive file.
const DRIVE_HELP: &str = "`freewheel drive list` shows the drives that ship with Freewheel; \
                          `freewheel drive show NAME --toml` prints a drive file to begin with";

/// The same for a file that is no drive file; also for one of an unknown kind that is not TOML.
pub fn for_a_drive(path: &Path) -> Option<Failure> {
    let is = match kind(path) {
        Some(Kind::Drive) => return None,
        Some(Kind::Trace) => "is a trace".to_owned(),
        Some(Kind::Experiment) => "is an experiment".to_owned(),
        None => is_no_toml(path)?,
    };
    let says = format!("{}: {is}, and a drive is wanted", path.display());
    Some(Failure::failed(says).with_help(DRIVE_HELP))
}

/// None where it is TOML by its name or by its contents: then the parser reports its errors.
fn is_no_toml(path: &Path) -> Option<String> {
    if path.extension().is_some_and(|ending| ending == "toml") {
        return None;
    }
    let error = read_text(path).ok()?.parse::<toml::Table>().err()?.to_string();
    Some(format!("is no TOML document ({})", error.lines().next()?))
}

fn takes_drive(verb: &str, path: &Path) -> String {
    let file = path.display();
    format!(
        "`freewheel {verb}{file}` runs an experiment on that drive, `freewheel drive show {file}` shows its values"
    )
}
