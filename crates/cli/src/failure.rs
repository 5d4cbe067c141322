//! Error of a verb for a person, and the exit code.
//!
//! Wrong use (exit 2) is a command line that cannot be understood, or that names a drive, format,
//! policy or claim that does not exist. Everything else is a failure (exit 1), also an experiment in
//! which something is wrong, be it in its file or in what overrides that.

use std::fmt::Display;
use std::io::{self, Write};
use std::path::Path;

use freewheel::files::{FileKind, did_you_mean};
use freewheel::traces::Format;
use freewheel::{Error, ErrorKind};
use miette::{GraphicalReportHandler, GraphicalTheme, MietteDiagnostic};

use crate::terminal;
use crate::wrong_file_kind::{self, WrongFileKind};

const FAILED: u8 = 1;
const WRONG_USE: u8 = 2;

/// Reason why a verb failed.
#[derive(Debug)]
pub struct Failure {
    exit_code: u8,
    diagnostic: Box<MietteDiagnostic>,
}

impl Failure {
    /// The command was understood, but it failed.
    pub fn failed(message: impl Display) -> Self {
        let diagnostic = Box::new(MietteDiagnostic::new(message.to_string()));
        Self { exit_code: FAILED, diagnostic }
    }

    /// The command line itself is wrong.
    pub fn wrong_use(message: impl Display) -> Self {
        Self { exit_code: WRONG_USE, ..Self::failed(message) }
    }

    /// The way out, instead of any that was known before.
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.diagnostic.help = Some(help.into());
        self
    }

    /// Calls what is at `path` by a name that people know.
    pub fn naming(mut self, path: &Path, name: &str) -> Self {
        let message = &mut self.diagnostic.message;
        *message = message.replace(&path.display().to_string(), name);
        self
    }

    /// Puts the option whose value is to blame before the message.
    pub fn of_option(mut self, option: &str) -> Self {
        self.diagnostic.message = format!("{option} {}", self.diagnostic.message);
        self
    }

    /// Tells the person and gives the exit code.
    pub fn report(self) -> u8 {
        // A closed stderr leaves only the exit code to tell.
        let _ = std::io::stderr().write_all(self.render().as_bytes());
        self.exit_code
    }

    fn render(&self) -> String {
        let handler = GraphicalReportHandler::new_themed(theme()).with_wrap_lines(false);
        let mut text = String::new();
        match handler.render_report(&mut text, &*self.diagnostic) {
            Ok(()) => text.trim_start().to_owned(),
            Err(_) => format!("error: {}\n", self.diagnostic.message),
        }
    }
}

/// `error:` instead of a symbol, as clap prints it; colours for terminals only.
fn theme() -> GraphicalTheme {
    let mut theme = if terminal::has_colours(&io::stderr()) {
        GraphicalTheme::unicode()
    } else {
        GraphicalTheme::unicode_nocolor()
    };
    theme.characters.error = "error:".into();
    theme
}

/// Variable of the environment that names the server.
pub const CONTROL: &str = "FREEWHEEL_CONTROL";

/// True if there is no file at a path that was to be read, by what the system said.
pub fn is_not_a_file(reason: io::ErrorKind) -> bool {
    matches!(reason, io::ErrorKind::NotFound | io::ErrorKind::IsADirectory)
}

/// A way out, and behind it of a file that is not there which other one of its folder was probably meant.
pub fn with_near_file(help: &str, path: &Path) -> String {
    help.to_owned() + &did_you_mean(path)
}

/// Names of drives that may be meant, after an unknown one; `from` is the folder from which a path counts.
pub fn drive_help(kind: &ErrorKind, from: &str) -> Option<String> {
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

/// Options that make a verb read a trace otherwise.
pub struct ReadingWords {
    /// Option that passes over malformed records, and reads a damaged trace up to the damage.
    pub lenient: &'static str,
    /// Option that names the format.
    pub format: &'static str,
    /// Text before the format's name there.
    pub before_format: &'static str,
    /// Text before a unit of time.
    pub before_time_unit: &'static str,
    /// Option that makes numbers addresses.
    pub addresses: &'static str,
    /// Option that names the layer.
    pub layer: &'static str,
}

/// As options.
const BY_OPTIONS: ReadingWords = ReadingWords {
    lenient: "--lenient",
    format: "--format",
    before_format: "--format ",
    before_time_unit: "--time-unit ",
    addresses: "--addresses",
    layer: "--layer",
};

/// The way out where a trace is damaged, malformed or not certain.
pub fn trace_help(kind: &ErrorKind, words: &ReadingWords) -> Option<String> {
    let ReadingWords { lenient, format, before_format, before_time_unit, addresses, layer } = words;
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

/// The way out of an error, in options.
fn help(kind: &ErrorKind) -> Option<String> {
    let known = drive_help(kind, "from the folder you are in");
    let known = known.or_else(|| trace_help(kind, &BY_OPTIONS));
    let known = known.or_else(|| file_help(kind));
    known.or_else(|| simple_help(kind).map(str::to_owned))
}

/// The way out where the system does not give a file.
fn file_help(kind: &ErrorKind) -> Option<String> {
    match kind {
        ErrorKind::Unreadable { wanted: FileKind::Trace, path, reason }
            if is_not_a_file(*reason) =>
        {
            Some(with_near_file(
                "give the path of a trace, from the folder you are in: it is one file, and \
                 `freewheel trace formats` says what can be read",
                path,
            ))
        }
        ErrorKind::Unreadable {
            wanted: FileKind::Trace,
            reason: io::ErrorKind::PermissionDenied,
            ..
        } => Some("its owner permits it with chmod o+r, or copies it for you".into()),
        ErrorKind::NoServer => {
            Some(format!("--control PATH names another control socket; without it, {CONTROL} does"))
        }
        _ => None,
    }
}

/// The ways out that depend on the error alone.
fn simple_help(kind: &ErrorKind) -> Option<&'static str> {
    Some(match kind {
        ErrorKind::NothingRead => {
            "record or copy the trace again; or name its format with --format: `freewheel trace \
             formats` says what a record of each looks like"
        }
        ErrorKind::NotOfKind { wanted: FileKind::Trace, .. } => {
            "`freewheel trace formats` says what a record of each looks like, and the header line of a \
             CSV of your own; --format names one of them"
        }
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

/// True if an error is in the command line itself: it names what does not exist.
fn is_wrong_use(kind: &ErrorKind) -> bool {
    use ErrorKind::{
        CacheSize, ScrubEffort, UnknownClaim, UnknownDrive, UnknownEnding, UnknownFormat,
        UnknownPolicy,
    };
    // The ending of an output is how its form is named.
    matches!(
        kind,
        UnknownDrive
            | UnknownPolicy
            | UnknownFormat
            | UnknownEnding
            | UnknownClaim
            | ScrubEffort
            | CacheSize
    )
}

/// That a file is of another kind than wanted, if it is.
fn of_another_kind(kind: &ErrorKind) -> Option<WrongFileKind> {
    match kind {
        ErrorKind::NotOfKind { wanted: FileKind::Trace, path } => {
            wrong_file_kind::for_a_trace(path)
        }
        ErrorKind::NotOfKind { wanted: FileKind::Drive, path } => {
            wrong_file_kind::for_a_drive(path)
        }
        _ => None,
    }
}

impl From<WrongFileKind> for Failure {
    fn from(wrong: WrongFileKind) -> Self {
        Self::failed(wrong.message).with_help(wrong.help)
    }
}

impl<E: Into<Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        let error = error.into();
        if let Some(wrong) = of_another_kind(error.kind()) {
            return wrong.into();
        }
        let failure = match is_wrong_use(error.kind()) {
            true => Self::wrong_use(&error),
            false => Self::failed(&error),
        };
        let failure = match error.kind() {
            ErrorKind::CacheSize => failure.of_option("--size:"),
            ErrorKind::ScrubEffort => failure.of_option("--scrub-effort:"),
            _ => failure,
        };
        match help(error.kind()) {
            Some(help) => failure.with_help(help),
            None => failure,
        }
    }
}
