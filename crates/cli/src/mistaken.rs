//! A file of one kind given where one of another is wanted: what it is, and what takes it.

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

/// The same of one that is no drive file.
pub fn for_a_drive(path: &Path) -> Option<Failure> {
    let file = path.display();
    let is = match kind(path)? {
        Kind::Drive => return None,
        Kind::Trace => "a trace",
        Kind::Experiment => "an experiment",
    };
    let help = "`freewheel drive list` shows the drives that ship with Freewheel; \
                `freewheel drive show NAME --toml` prints a drive file to begin with";
    Some(Failure::failed(format!("{file}: is {is}, and a drive is wanted")).with_help(help))
}

fn takes_drive(verb: &str, path: &Path) -> String {
    let file = path.display();
    format!(
        "`freewheel {verb}{file}` runs something on that drive, `freewheel drive show {file}` says what it is"
    )
}
