//! Help: the way out of an error, in the words of the surface that shows it.

use std::io;
use std::path::Path;

use freewheel_trace::Format;

use crate::control::CONTROL_VARIABLE;
use crate::error_kind::{ErrorKind, is_not_a_file};
use crate::files::{FileKind, did_you_mean};

/// Surfaces by which people use Freewheel: each has names of its own for what an error is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Surface {
    /// Options of the command line.
    Options,
    /// Keys of an experiment, which `--set` overrides.
    Experiment,
    /// Arguments in Python.
    Python,
}

impl ErrorKind {
    /// The way out of such an error in the words of a surface, where one is known.
    pub fn help(&self, surface: Surface) -> Option<String> {
        let (words, of_file, simple) = match surface {
            Surface::Options => (&BY_OPTIONS, option_file_help(self), option_help(self)),
            Surface::Experiment => (&BY_KEYS, key_file_help(self), key_help(self)),
            Surface::Python => (&BY_ARGUMENTS, argument_file_help(self), argument_help(self)),
        };
        let known = of_file.or_else(|| trace_help(self, words));
        known.or_else(|| simple.map(str::to_owned))
    }
}

/// A way out, with the file of the folder that was probably meant in place of a missing one.
fn with_near_file(help: &str, path: &Path) -> String {
    help.to_owned() + &did_you_mean(path)
}

/// Names of drives that may be meant, after an unknown one; `from` is the folder from which a path counts.
fn drive_help(kind: &ErrorKind, from: &str) -> Option<String> {
    match kind {
        ErrorKind::UnknownDrive => Some("`freewheel drive list` shows them".into()),
        ErrorKind::Unreadable { wanted: FileKind::Drive, path, .. } => Some(with_near_file(
            &format!(
                "give the path of a drive file, {from}, or the name of a drive that ships with \
                 Freewheel: `freewheel drive list` shows them"
            ),
            path,
        )),
        _ => None,
    }
}

/// The way out where a trace is not there; `from` is the folder from which its path counts.
fn no_trace_help(kind: &ErrorKind, from: &str) -> Option<String> {
    match kind {
        ErrorKind::Unreadable { wanted: FileKind::Trace, path, reason }
            if is_not_a_file(*reason) =>
        {
            Some(with_near_file(
                &format!(
                    "give the path of a trace, {from}: it is one file, and `freewheel trace formats` \
                     says what can be read"
                ),
                path,
            ))
        }
        _ => None,
    }
}

/// Names of the settings by which a trace is read otherwise.
struct ReadingWords {
    /// Setting that passes over malformed records, and reads a damaged trace up to the damage.
    lenient: &'static str,
    /// Setting that names the format.
    format: &'static str,
    /// Text before the format's name there.
    before_format: &'static str,
    /// Text before a unit of time.
    before_time_unit: &'static str,
    /// Setting that makes numbers addresses.
    addresses: &'static str,
    /// Setting that names the layer.
    layer: &'static str,
}

const BY_OPTIONS: ReadingWords = ReadingWords {
    lenient: "--lenient",
    format: "--format",
    before_format: "--format ",
    before_time_unit: "--time-unit ",
    addresses: "--addresses",
    layer: "--layer",
};

const BY_KEYS: ReadingWords = ReadingWords {
    lenient: "--set workload.lenient=true",
    format: "workload.format",
    before_format: "--set workload.format=",
    before_time_unit: "--set workload.time_unit=",
    addresses: "--set workload.numbers=addresses",
    layer: "workload.layer",
};

const BY_ARGUMENTS: ReadingWords = ReadingWords {
    lenient: "lenient=True",
    format: "format",
    before_format: "format=",
    before_time_unit: "time_unit=",
    addresses: "numbers=\"addresses\"",
    layer: "layer",
};

/// The way out where a trace is damaged, malformed or not certain, or holds too little.
fn trace_help(kind: &ErrorKind, words: &ReadingWords) -> Option<String> {
    damage_help(kind, words).or_else(|| contents_help(kind, words))
}

/// The way out where a trace is damaged or malformed.
fn damage_help(kind: &ErrorKind, words: &ReadingWords) -> Option<String> {
    let ReadingWords { lenient, format, before_format, .. } = words;
    Some(match kind {
        ErrorKind::MalformedHeader => format!(
            "change its first line; if only names differ, and the columns are these in this order, \
             {lenient} skips that line"
        ),
        ErrorKind::DamagedHeader => format!(
            "copy or record the file again: nothing can be read without its header; if it is one of \
             another format, name that: {before_format}NAME"
        ),
        ErrorKind::OtherFormat { read_as, looks_like } => format!(
            "it was read as {read_as}, but looks like {looks_like}: leave {format} out; or {lenient} \
             counts and skips malformed records"
        ),
        ErrorKind::MalformedRecord { compression: Some(compression) } => format!(
            "the {compression} data may be damaged: copy or download the file again; if that does \
             not help, mend that record, or {lenient} counts and skips malformed records"
        ),
        ErrorKind::MalformedRecord { compression: None } => {
            format!("mend that record; or {lenient} counts and skips malformed records")
        }
        ErrorKind::DamagedTrace { records: 0 } => {
            "copy or download the file again: no part of it can be read".into()
        }
        ErrorKind::DamagedTrace { .. } => format!(
            "copy or download the file again; or {lenient} reads the records before that, and says \
             that the rest is left out"
        ),
        _ => return None,
    })
}

/// The way out where a trace holds too little, or it is not certain how to read it.
fn contents_help(kind: &ErrorKind, words: &ReadingWords) -> Option<String> {
    let ReadingWords { before_format, before_time_unit, addresses, layer, .. } = words;
    Some(match kind {
        ErrorKind::EmptyTrace => {
            "it may not have been written to its end: record or copy it again, or give another trace"
                .into()
        }
        ErrorKind::NoTrace { way_out } => (*way_out).into(),
        ErrorKind::UncertainFormat { choices: [first, second] } => {
            format!("name it: {before_format}{first}, or {before_format}{second}")
        }
        ErrorKind::UncertainTimeUnit { units } => {
            let ways = units.iter().map(|unit| format!("{before_time_unit}{unit}"));
            format!("say which it is: {}", ways.collect::<Vec<_>>().join(", or "))
        }
        ErrorKind::FixedTimeUnit => "leave the unit of time out".into(),
        ErrorKind::FixedNumbers => format!("leave {addresses} or its opposite out"),
        ErrorKind::FixedLayer => format!(
            "leave {layer} out: it chooses in traces of blkparse, blktrace and ftrace alone"
        ),
        ErrorKind::NothingRecorded { format: Format::Blkparse | Format::Blktrace } => {
            "record the queueing and the issue of requests, too: `blktrace -d DEVICE` without \
             `-a complete` does"
                .into()
        }
        ErrorKind::NothingRecorded { format: Format::Ftrace } => {
            "record the events block_bio_queue and block_rq_issue, too".into()
        }
        ErrorKind::CacheHitsOnly => {
            "`freewheel cache` counts the requests that a cache in front of the disk served".into()
        }
        ErrorKind::TemporaryFile => "TMPDIR=FOLDER names a folder with room for it".into(),
        ErrorKind::NothingRecorded { .. } => {
            "record the trace while the disk is in use, or give another one".into()
        }
        ErrorKind::ObjectsOnly => format!(
            "`freewheel cache` says what memory such a trace is worth; if its numbers are those of \
             blocks of 512 bytes, {addresses} says so"
        ),
        ErrorKind::NoTiming => {
            "give a trace with the times of its requests: `freewheel trace info` says what is in this \
             one"
            .into()
        }
        _ => return None,
    })
}

/// Folder from which a path of the command line counts.
const HERE: &str = "from the folder you are in";

/// The way out where the system does not give a file, in options.
fn option_file_help(kind: &ErrorKind) -> Option<String> {
    let known = drive_help(kind, HERE).or_else(|| no_trace_help(kind, HERE));
    known.or_else(|| match kind {
        ErrorKind::Unreadable {
            wanted: FileKind::Trace,
            reason: io::ErrorKind::PermissionDenied,
            ..
        } => Some("its owner permits it with chmod o+r, or copies it for you".into()),
        ErrorKind::Unreadable { wanted: FileKind::Snapshot, path, reason }
            if is_not_a_file(*reason) =>
        {
            Some(with_near_file(SNAPSHOT_HELP, path))
        }
        ErrorKind::NoServer => Some(format!(
            "--control PATH names another control socket; without it, {CONTROL_VARIABLE} does"
        )),
        _ => None,
    })
}

/// Description of a snapshot, and a sample.
const SNAPSHOT_HELP: &str = "`freewheel plan place --schema` describes snapshots, and examples/jbod.toml in Freewheel's source is one";

/// The ways out in options that depend on the error alone.
fn option_help(kind: &ErrorKind) -> Option<&'static str> {
    Some(match kind {
        ErrorKind::NothingRead => {
            "record or copy the trace again; or name its format with --format: `freewheel trace \
             formats` says what a record of each looks like"
        }
        ErrorKind::NotOfKind { wanted: FileKind::Trace, .. } => {
            "`freewheel trace formats` says what a record of each looks like, and the header line of a \
             CSV of your own; --format names one of them"
        }
        ErrorKind::NotOfKind { wanted: FileKind::Snapshot, .. } => SNAPSHOT_HELP,
        ErrorKind::SeveralDevices => "--device N keeps only device N",
        ErrorKind::TraceTooLarge => {
            "choose a larger drive (--drive NAME), fold the addresses onto this one (--wrap), \
             squeeze them onto it (--scale), or take one device of the trace (--device N)"
        }
        ErrorKind::ScrubEffort => "`--no-scrub` leaves the estimate out",
        ErrorKind::NoCountedReads => "`--warm-up 0%` counts all reads",
        ErrorKind::TooFewResponses => {
            "leave out --fit, or take a trace that records when requests completed"
        }
        ErrorKind::NoRequests => {
            "give a trace with reads or writes: `freewheel trace info` says what is in one"
        }
        ErrorKind::Device { reason: io::ErrorKind::PermissionDenied } => {
            "what is served is opened for writing too: a file needs chmod u+w, a device its group or \
             root"
        }
        ErrorKind::Device { reason: io::ErrorKind::NotFound } => {
            "`lsblk` lists the disks of this machine; `truncate --size 1G FILE` makes a file that can \
             be served, and emulated:NAME needs none"
        }
        _ => return None,
    })
}

/// Folder from which a path of an experiment counts.
const FROM: &str = "in an experiment from its folder, by --set from the folder you are in";

/// The way out where a file of an experiment is not there.
fn key_file_help(kind: &ErrorKind) -> Option<String> {
    let known = drive_help(kind, FROM).or_else(|| no_trace_help(kind, FROM));
    known.or_else(|| match kind {
        ErrorKind::Unreadable { wanted: FileKind::Experiment, path, .. } => Some(with_near_file(
            "give the path of an experiment, from the folder you are in: it is one TOML file, as \
             those in `examples/` of Freewheel's source are, and `freewheel sim --schema` prints \
             every key there is",
            path,
        )),
        _ => None,
    })
}

/// The way out in a key of the experiment.
fn key_help(kind: &ErrorKind) -> Option<&'static str> {
    Some(match kind {
        ErrorKind::NoDevice | ErrorKind::TraceTooLarge => {
            "in an experiment: --set drive=NAME, --set workload.fit=wrap, \
             --set workload.fit=scale, or --set workload.device=N"
        }
        ErrorKind::NotOfKind { wanted: FileKind::Trace, .. } => {
            "`freewheel trace formats` lists them, and --set workload.format=NAME names one of them"
        }
        ErrorKind::Unordered => {
            "one of them alone: --set array.layout=striped --set array.drives=1 and --seed with its \
             seed in the document of --json, for a trace also --set workload.device=N"
        }
        ErrorKind::NotOfKind { wanted: FileKind::Experiment, .. }
        | ErrorKind::ExperimentOverride
        | ErrorKind::ExperimentValue => {
            "`freewheel sim --schema` prints every key with its meaning"
        }
        _ => return None,
    })
}

/// The way out where the system does not give a file, in Python.
fn argument_file_help(kind: &ErrorKind) -> Option<String> {
    match kind {
        ErrorKind::Unreadable { wanted: FileKind::Drive, path, .. } => {
            let says = "give the path of a drive file, or the name of a drive that ships with Freewheel: \
                        freewheel.drives() has them";
            Some(with_near_file(says, path))
        }
        ErrorKind::Unreadable { path, reason: io::ErrorKind::NotFound, .. } => {
            Some(with_near_file("give the path of a file, from the folder you are in", path))
        }
        _ => None,
    }
}

/// The ways out in Python that depend on the error alone.
fn argument_help(kind: &ErrorKind) -> Option<&'static str> {
    Some(match kind {
        ErrorKind::UnknownDrive => "freewheel.drives() has them",
        ErrorKind::UnknownClaim => "freewheel.claims() has them",
        ErrorKind::UnknownFormat | ErrorKind::NotOfKind { wanted: FileKind::Trace, .. } => {
            "freewheel.formats() says what can be read, and format=NAME names one of them"
        }
        ErrorKind::NotOfKind { wanted: FileKind::Experiment, .. }
        | ErrorKind::ExperimentOverride
        | ErrorKind::ExperimentValue => "freewheel.schema() has every key with its meaning",
        ErrorKind::NotOfKind { wanted: FileKind::Drive, .. } => {
            "freewheel.schema(\"drive\") has every key with its meaning"
        }
        ErrorKind::SeveralDevices => "device=N keeps only device N",
        ErrorKind::TraceTooLarge | ErrorKind::NoDevice => {
            "choose a larger drive (drive=NAME), fold the addresses onto this one (fit=\"wrap\"), squeeze \
             them onto it (fit=\"scale\"), or take one device of the trace (device=N)"
        }
        ErrorKind::Unordered => {
            "leave completions=True out, or run one of the drives alone: overrides={\"array.layout\": \
             \"striped\", \"array.drives\": 1}"
        }
        ErrorKind::OtherJournal => "remove the journal to begin anew, or choose another output",
        ErrorKind::DiskSim { .. } => {
            "give DiskSim's parameter files of a disk, with those that they name in the same folder; \
             `freewheel drive import` says more"
        }
        ErrorKind::ScrubEffort => "scrub=False leaves the estimate out",
        ErrorKind::NoCountedReads => "warm_up=0 counts all reads",
        ErrorKind::TooFewResponses => {
            "leave out fit_drive, or take a trace that records when requests completed"
        }
        ErrorKind::NoRequests => {
            "give a trace with reads or writes: Trace.open(...).info() says what is in one"
        }
        ErrorKind::ScaleFactor { .. } => "a factor is 0.01 to 100",
        _ => return None,
    })
}
