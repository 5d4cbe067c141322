//! A file of another kind than expected: its kind, and the verb that takes it.

use std::path::Path;

use crate::files::{FileKind, read_text};

/// That a file is of another kind, and the way out.
#[derive(Debug)]
pub(crate) struct WrongFileKind {
    pub message: String,
    pub help: String,
}

impl WrongFileKind {
    /// Kind of the file at `path`, if it is known and another one than `wanted`.
    pub(crate) fn of(wanted: FileKind, path: &Path) -> Option<Self> {
        match wanted {
            FileKind::Experiment => for_an_experiment(path),
            FileKind::Trace => for_a_trace(path),
            FileKind::Drive => for_a_drive(path),
            FileKind::Snapshot => for_a_snapshot(path),
            FileKind::WebLog => None,
        }
    }
}

/// Kind of a file that is no experiment, if it is known.
fn for_an_experiment(path: &Path) -> Option<WrongFileKind> {
    let file = path.display();
    let (is, help) = match FileKind::of(path)? {
        FileKind::Experiment => return None,
        FileKind::Trace => (
            "a trace",
            format!(
                "`freewheel study {file}` says what would help it; `freewheel sim examples/replay.toml \
                 --set workload.file={file}`, with the experiment in Freewheel's source, replays it"
            ),
        ),
        FileKind::Drive => ("a drive file", takes_drive("sim EXPERIMENT --set drive=", path)),
        FileKind::Snapshot => ("a snapshot of disks", takes_snapshot(path)),
        FileKind::WebLog => ("a log of a web server", takes_web_log(path)),
    };
    let message = format!("{file}: is {is}, and an experiment is wanted");
    Some(WrongFileKind { message, help })
}

/// Kind of a file that is no trace, if it is known.
fn for_a_trace(path: &Path) -> Option<WrongFileKind> {
    let file = path.display();
    let Some(kind) = FileKind::of(path) else { return nearly_a_web_log(path) };
    let (is, help) = match kind {
        FileKind::Trace => return None,
        FileKind::Experiment => ("an experiment", format!("`freewheel sim {file}` runs it")),
        FileKind::Drive => ("a drive file", takes_drive("study TRACE --drive ", path)),
        FileKind::Snapshot => ("a snapshot of disks", takes_snapshot(path)),
        FileKind::WebLog => ("a log of a web server", takes_web_log(path)),
    };
    let message = format!("{file}: is {is}, and a trace is wanted");
    Some(WrongFileKind { message, help })
}

/// Message about a file of no kind that looks like a web server's log and lacks something.
fn nearly_a_web_log(path: &Path) -> Option<WrongFileKind> {
    let looks_like = FileKind::nearly_a_web_log(path)?;
    let message = format!(
        "{}: is neither a trace nor a log of a web server that is read: it looks like {looks_like}",
        path.display()
    );
    let help = "logs are read in Common, Combined or W3C Extended Log Format, or with one JSON object \
                a line; `freewheel trace formats` lists traces";
    Some(WrongFileKind { message, help: help.to_owned() })
}

/// Kind of a file that is no snapshot of disks, if it is known.
fn for_a_snapshot(path: &Path) -> Option<WrongFileKind> {
    let file = path.display();
    let (is, help) = match FileKind::of(path)? {
        FileKind::Snapshot => return None,
        FileKind::Trace => ("a trace", format!("`freewheel study {file}` says what would help it")),
        FileKind::Experiment => ("an experiment", format!("`freewheel sim {file}` runs it")),
        FileKind::Drive => ("a drive file", "name it as the `drive` of a disk".to_owned()),
        FileKind::WebLog => ("a log of a web server", takes_web_log(path)),
    };
    let message = format!("{file}: is {is}, and a snapshot of disks and files is wanted");
    Some(WrongFileKind { message, help })
}

fn takes_snapshot(path: &Path) -> String {
    format!("`freewheel plan place {}` says which files to move", path.display())
}

fn takes_web_log(path: &Path) -> String {
    format!(
        "`freewheel plan place {} --disks N` says on which of N disks its files go",
        path.display()
    )
}

/// Ways to get a drive file.
const DRIVE_HELP: &str = "`freewheel drive list` shows the drives that ship with Freewheel; \
                          `freewheel drive show NAME --toml` prints a drive file to begin with";

/// Kind of a file that is no drive file, if it is known; also for one of an unknown kind that is not TOML.
fn for_a_drive(path: &Path) -> Option<WrongFileKind> {
    let is = match FileKind::of(path) {
        Some(FileKind::Drive) => return None,
        Some(FileKind::Trace) => "is a trace".to_owned(),
        Some(FileKind::Experiment) => "is an experiment".to_owned(),
        Some(FileKind::Snapshot) => "is a snapshot of disks".to_owned(),
        Some(FileKind::WebLog) => "is a log of a web server".to_owned(),
        None => is_no_toml(path)?,
    };
    let message = format!("{}: {is}, and a drive is wanted", path.display());
    Some(WrongFileKind { message, help: DRIVE_HELP.to_owned() })
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
