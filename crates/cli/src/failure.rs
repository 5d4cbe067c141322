//! What a person reads when something went wrong, and the exit code.
//!
//! Wrong use (exit 2) is a command line that cannot be understood, or that names a drive, format,
//! policy or claim that does not exist. Everything else is a failure (exit 1), also an experiment in
//! which something is wrong, be it in its file or in what overrides that.

use std::fmt::Display;
use std::fs::DirEntry;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;

use freewheel::live::backup::BackupError;
use freewheel::live::control::ControlServerError;
use freewheel::live::emulate::EmulateError;
use freewheel::live::nbd::{ListenError, TlsError};
use freewheel::live::serve::ServeError;
use freewheel::live::serve::backend::{ExportError, OpenError};
use freewheel::live::trial::TrialError;
use freewheel::reproduce::ReproduceError;
use freewheel::sim::config::ConfigError;
use freewheel::sim::library::DriveError;
use freewheel::sim::log::LogError;
use freewheel::sim::source::PlacementError;
use freewheel::study::StudyError;
use freewheel::trace::{Damaged, Malformed, TraceError};
use freewheel::units::did_you_mean;
use miette::{GraphicalReportHandler, GraphicalTheme, MietteDiagnostic};

use crate::wrong_file_kind;

const FAILED: u8 = 1;
const WRONG_USE: u8 = 2;

/// Why a verb failed.
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
    pub fn report(self) -> ExitCode {
        // A closed stderr leaves only the exit code to tell.
        let _ = std::io::stderr().write_all(self.render().as_bytes());
        ExitCode::from(self.exit_code)
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
    let colours = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let mut theme =
        if colours { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
    theme.characters.error = "error:".into();
    theme
}

/// Whether there is no file at a path that was to be read.
pub fn is_not_a_file(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::IsADirectory)
}

/// A way out, and behind it of a file that is not there which other one of its folder was probably meant.
pub fn with_near_file(help: &str, path: &Path, error: &io::Error) -> String {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let names: Vec<String> = match std::fs::read_dir(folder.unwrap_or(Path::new("."))) {
        Ok(entries) if error.kind() == ErrorKind::NotFound => {
            let name = |entry: io::Result<DirEntry>| entry.ok()?.file_name().into_string().ok();
            let mut names: Vec<String> = entries.filter_map(name).collect();
            names.sort();
            names
        }
        _ => Vec::new(),
    };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    help.to_owned() + &did_you_mean(&name, names.iter().map(String::as_str))
}

/// How to name a drive, after an unknown name; `from` is the folder from which a path counts.
pub fn drive_help(error: &DriveError, from: &str) -> Option<String> {
    match error {
        DriveError::Unknown { .. } => Some("`freewheel drive list` shows them".into()),
        DriveError::Read { path, source } => Some(with_near_file(
            &format!(
                "give the path of a drive file, {from}, or the name of a drive that ships with \
                 Freewheel: `freewheel drive list` shows them"
            ),
            path,
            source,
        )),
        _ => None,
    }
}

/// The way out where a trace is empty.
pub const EMPTY_HELP: &str =
    "it may not have been written to its end: record or copy it again, or give another trace";

/// The way out where a trace tells the order of requests, and not their times.
pub const NO_TIMING_HELP: &str =
    "give a trace with the times of its requests: `freewheel trace info` says what is in this one";

/// The way out where a record is malformed; `lenient` is how to pass over it, and `format` how the
/// format was named, if it was.
pub fn malformed_help(malformed: &Malformed, lenient: &str, format: &str) -> String {
    let is_like_that = malformed.looks_like.is_none_or(|like| like == malformed.format);
    if malformed.record == 0 && malformed.line.is_some() && is_like_that {
        return format!(
            "change its first line; if only names differ, and the columns are these in this order, \
             {lenient} skips that line"
        );
    }
    match malformed.looks_like.filter(|like| *like != malformed.format) {
        Some(like) => format!(
            "it was read as {}, but looks like {like}: leave {format} out; or {lenient} counts and \
             skips malformed records",
            malformed.format
        ),
        None => match malformed.compression {
            Some(compression) => format!(
                "the {compression} data may be damaged: copy or download the file again; if that does \
                 not help, mend that record, or {lenient} counts and skips malformed records"
            ),
            None => format!("mend that record; or {lenient} counts and skips malformed records"),
        },
    }
}

/// The way out where a compressed trace is damaged; `lenient` is how to ask for what can be read.
pub fn damaged_help(damaged: &Damaged, lenient: &str) -> String {
    match damaged.records {
        0 => "copy or download the file again: no part of it can be read".into(),
        _ => format!(
            "copy or download the file again; or {lenient} reads the records before that, and says \
             that the rest is left out"
        ),
    }
}

impl From<TraceError> for Failure {
    fn from(error: TraceError) -> Self {
        match &error {
            // The ending of the output is how its form is named.
            TraceError::UnknownExtension { .. } => Self::wrong_use(error),
            TraceError::Malformed(malformed) => {
                let help = malformed_help(malformed, "--lenient", "--format");
                Self::failed(error).with_help(help)
            }
            TraceError::Damaged(damaged) => {
                let help = damaged_help(damaged, "--lenient");
                Self::failed(error).with_help(help)
            }
            TraceError::Empty { .. } => Self::failed(error).with_help(EMPTY_HELP),
            TraceError::NothingRead { .. } => Self::failed(error).with_help(
                "record or copy the trace again; or name its format with --format: `freewheel trace \
                 formats` says what a record of each looks like",
            ),
            TraceError::Io { file, source } if is_not_a_file(source) => {
                let help = with_near_file(
                    "give the path of a trace, from the folder you are in: it is one file, and \
                     `freewheel trace formats` says what can be read",
                    Path::new(file),
                    source,
                );
                Self::failed(error).with_help(help)
            }
            TraceError::Io { source, .. } if source.kind() == ErrorKind::PermissionDenied => {
                Self::failed(error)
                    .with_help("its owner permits it with chmod o+r, or copies it for you")
            }
            TraceError::UnknownFormat { file, .. } => wrong_file_kind::for_a_trace(Path::new(file))
                .unwrap_or_else(|| {
                    Self::failed(&error).with_help(
                        "if it is one of these, name it with --format; `freewheel trace formats` \
                         says what a record of each looks like, and the header line of a CSV of your own",
                    )
                }),
            TraceError::UncertainFormat { choices: [first, second], .. } => {
                let help = format!("name it: --format {first}, or --format {second}");
                Self::failed(error).with_help(help)
            }
            TraceError::NeedsOneDevice { .. } => {
                Self::failed(error).with_help("--device N keeps only device N")
            }
            _ => Self::failed(error),
        }
    }
}

impl From<DriveError> for Failure {
    fn from(error: DriveError) -> Self {
        if let DriveError::Parse { origin, .. } = &error
            && let Some(failure) = wrong_file_kind::for_a_drive(Path::new(origin))
        {
            return failure;
        }
        let help = drive_help(&error, "from the folder you are in");
        let failure = match error {
            DriveError::Unknown { .. } => Self::wrong_use(error),
            _ => Self::failed(error),
        };
        match help {
            Some(help) => failure.with_help(help),
            None => failure,
        }
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        match error {
            ConfigError::Drive(error) => error.into(),
            ConfigError::Trace(error) => error.into(),
            ConfigError::Policy(_) | ConfigError::Format(_) => Self::wrong_use(error),
            ConfigError::NoTiming { .. } => Self::failed(error).with_help(NO_TIMING_HELP),
            ConfigError::Placement(PlacementError::NoDevice { .. }) => Self::failed(error),
            ConfigError::Placement(_) => Self::failed(error).with_help(
                "choose a larger drive (--drive NAME), fold the addresses onto this one (--wrap), \
                 squeeze them onto it (--scale), or take one device of the trace (--device N)",
            ),
            _ => Self::failed(error),
        }
    }
}

impl From<StudyError> for Failure {
    fn from(error: StudyError) -> Self {
        match error {
            StudyError::Config(error) => error.into(),
            StudyError::ScrubEffort { .. } => Self::wrong_use(error)
                .of_option("--scrub-effort:")
                .with_help("`--no-scrub` leaves the estimate out"),
            StudyError::Empty { .. } => Self::failed(error).with_help(
                "give a trace with reads or writes: `freewheel trace info` says what is in one",
            ),
        }
    }
}

impl From<ReproduceError> for Failure {
    fn from(error: ReproduceError) -> Self {
        Self::failed(error)
    }
}

impl From<EmulateError> for Failure {
    fn from(error: EmulateError) -> Self {
        match error {
            EmulateError::Drive(error) => error.into(),
            _ => Self::failed(error),
        }
    }
}

impl From<ServeError> for Failure {
    fn from(error: ServeError) -> Self {
        Self::failed(error)
    }
}

impl From<TrialError> for Failure {
    fn from(error: TrialError) -> Self {
        Self::failed(error)
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        match &error {
            OpenError::System { source, .. } if source.kind() == ErrorKind::PermissionDenied => {
                Self::failed(error).with_help(
                    "what is served is opened for writing too: a file needs chmod u+w, a device its \
                     group or root",
                )
            }
            OpenError::System { source, .. } if source.kind() == ErrorKind::NotFound => {
                Self::failed(error).with_help(
                    "`lsblk` lists the disks of this machine; `truncate --size 1G FILE` makes a file that \
                     can be served, and emulated:NAME needs none",
                )
            }
            _ => Self::failed(error),
        }
    }
}

impl From<ExportError> for Failure {
    fn from(error: ExportError) -> Self {
        Self::failed(error)
    }
}

impl From<ListenError> for Failure {
    fn from(error: ListenError) -> Self {
        Self::failed(error)
    }
}

impl From<TlsError> for Failure {
    fn from(error: TlsError) -> Self {
        Self::failed(error)
    }
}

impl From<LogError> for Failure {
    fn from(error: LogError) -> Self {
        Self::failed(error)
    }
}

impl From<ControlServerError> for Failure {
    fn from(error: ControlServerError) -> Self {
        Self::failed(error)
    }
}

impl From<BackupError> for Failure {
    fn from(error: BackupError) -> Self {
        Self::failed(error)
    }
}
