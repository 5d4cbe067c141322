//! The one error of this library: what went wrong in words, and of which kind it is.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::path::PathBuf;

use freewheel_disksim::ImportError;
use freewheel_extract::validate::ValidateError;
use freewheel_extract::{ExtractError, JournalError};
use freewheel_live::TooLittleMemory;
use freewheel_live::backup::{BackupError, ManifestError, UnexpectedField};
use freewheel_live::black_box::RealDriveError;
use freewheel_live::control::{ControlError, ControlServerError};
use freewheel_live::emulate::EmulateError;
use freewheel_live::extents::{ExtentListError, FileSystemError, FilesError};
use freewheel_live::nbd::{ListenError, TlsError};
use freewheel_live::serve::backend::{ExportError, OpenError};
use freewheel_live::serve::{FinishError, ServeError};
use freewheel_live::trial::TrialError;
use freewheel_model::drive::scale::ScaleError;
use freewheel_model::sched::ParsePolicyError;
use freewheel_reproduce::ReproduceError;
use freewheel_sim::black_box::EmulatedDriveError;
use freewheel_sim::config::ConfigError;
use freewheel_sim::library::DriveError;
use freewheel_sim::log::LogError;
use freewheel_sim::source::PlacementError;
use freewheel_study::fleet::{FleetError, NotAFleet};
use freewheel_study::plan::PlanError;
use freewheel_study::sweep::SweepError;
use freewheel_study::table::TableError;
use freewheel_study::{
    CacheCurvesError, ObjectCurvesError, ParseCacheSizeError, ParseComparedPolicyError, StudyError,
};
use freewheel_trace::{Malformed, TraceError, UnknownFormatName, UnknownTimeUnit};

use crate::error_kind::ErrorKind;
use crate::files::FileKind;
use crate::help::Surface;
use crate::wrong_file_kind::WrongFileKind;

/// An error of this library. Its message names file, key and value.
///
/// Every error of a function or method of this library converts to it by `?`.
///
/// ```
/// use freewheel::{Error, ErrorKind, drives};
///
/// let error: Error = drives::load("atlas11k").unwrap_err();
/// assert_eq!(*error.kind(), ErrorKind::UnknownDrive);
/// assert!(error.to_string().contains("did you mean `atlas10k`"), "{error}");
/// ```
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    inner: Box<dyn StdError + Send + Sync>,
    /// That a file is of another kind than was wanted, where that is known: it says more than the parser.
    wrong: Option<WrongFileKind>,
}

impl Error {
    fn new(kind: ErrorKind, inner: impl StdError + Send + Sync + 'static) -> Self {
        let wrong = match &kind {
            ErrorKind::NotOfKind { wanted, path } => WrongFileKind::of(*wanted, path),
            // A binary trace is no text, which is all that the reader of experiments says.
            ErrorKind::Unreadable { wanted: FileKind::Experiment, path, .. } => {
                WrongFileKind::of(FileKind::Experiment, path)
            }
            _ => None,
        };
        Self { kind, inner: Box::new(inner), wrong }
    }

    /// Kind of the error: programs decide by it.
    pub fn kind(&self) -> &ErrorKind {
        &self.kind
    }

    /// The way out in the words of a surface, where one is known.
    pub fn help(&self, surface: Surface) -> Option<String> {
        let by_command = surface != Surface::Python;
        let wrong = self.wrong.as_ref().filter(|_| by_command);
        wrong.map(|wrong| wrong.help.clone()).or_else(|| self.kind.help(surface))
    }

    /// Key of an experiment that the error is about, as the beginning of a message that lacks it. Empty where
    /// the message names key or overrides itself; None where it names a file of its own.
    pub fn key(&self) -> Option<&'static str> {
        if self.wrong.is_some() { None } else { self.kind.key() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.wrong {
            Some(wrong) => wrong.message.fmt(out),
            None => self.inner.fmt(out),
        }
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.inner.source()
    }
}

/// Conversions into [`Error`], each with the function that tells the kind.
macro_rules! errors {
    ($($error:ty => $kind:expr,)*) => {$(
        impl From<$error> for Error {
            fn from(error: $error) -> Self {
                let kind: fn(&$error) -> ErrorKind = $kind;
                Self::new(kind(&error), error)
            }
        }
    )*};
}

errors! {
    BackupError => |_| ErrorKind::Other,
    CacheCurvesError => cache_curves,
    ConfigError => config,
    ControlError => control,
    ControlServerError => |_| ErrorKind::Other,
    DriveError => drive,
    EmulateError => emulate,
    EmulatedDriveError => |_| ErrorKind::Other,
    ExportError => export,
    FileSystemError => |_| ErrorKind::Other,
    ExtentListError => |_| ErrorKind::Other,
    ExtractError => extract,
    FilesError => |_| ErrorKind::Other,
    ImportError => |error: &ImportError| ErrorKind::DiskSim { cause: error.cause.clone() },
    JournalError => |_| ErrorKind::OtherJournal,
    ListenError => |_| ErrorKind::Other,
    LogError => |_| ErrorKind::Other,
    ManifestError => |_| ErrorKind::Other,
    ObjectCurvesError => object_curves,
    OpenError => open,
    ParseCacheSizeError => |_| ErrorKind::Other,
    ParseComparedPolicyError => |_| ErrorKind::UnknownPolicy,
    ParsePolicyError => |_| ErrorKind::UnknownPolicy,
    PlanError => plan,
    RealDriveError => real_drive,
    ReproduceError => reproduce,
    ScaleError => scale,
    ServeError => |_| ErrorKind::Other,
    FinishError => |_| ErrorKind::Other,
    FleetError => |error: &FleetError| match error {
        FleetError::Table(error) => table(error),
        _ => ErrorKind::Other,
    },
    NotAFleet => |error: &NotAFleet| match error {
        NotAFleet::Trace(error) => trace(error),
        _ => ErrorKind::Other,
    },
    StudyError => study,
    SweepError => sweep,
    TableError => table,
    TlsError => |_| ErrorKind::Other,
    TooLittleMemory => |_| ErrorKind::Other,
    TraceError => trace,
    TrialError => |_| ErrorKind::Other,
    UnexpectedField => |_| ErrorKind::Other,
    UnknownFormatName => |_| ErrorKind::UnknownFormat,
    UnknownTimeUnit => |_| ErrorKind::UnknownFormat,
    ValidateError => validate,
}

fn trace(error: &TraceError) -> ErrorKind {
    match error {
        TraceError::UnknownExtension { .. } => ErrorKind::UnknownEnding,
        TraceError::Malformed(malformed) => self::malformed(malformed),
        TraceError::Damaged(damaged) => ErrorKind::DamagedTrace { records: damaged.records },
        TraceError::Empty { .. } => ErrorKind::EmptyTrace,
        TraceError::NothingRead { .. } => ErrorKind::NothingRead,
        TraceError::Io { file, source } => unreadable(FileKind::Trace, file, source),
        TraceError::UnknownFormat { file, .. } => not_of_kind(FileKind::Trace, file),
        TraceError::NoTrace { way_out, .. } => ErrorKind::NoTrace { way_out },
        TraceError::UncertainFormat { choices, .. } => {
            ErrorKind::UncertainFormat { choices: *choices }
        }
        TraceError::UncertainTimeUnit { rates, .. } => {
            ErrorKind::UncertainTimeUnit { units: rates.iter().map(|rate| rate.unit).collect() }
        }
        TraceError::FixedTimeUnit { .. } => ErrorKind::FixedTimeUnit,
        TraceError::FixedNumbers { .. } => ErrorKind::FixedNumbers,
        TraceError::FixedLayer { .. } => ErrorKind::FixedLayer,
        TraceError::NoRequests { left_out, .. } if left_out.cache_hits > 0 => {
            ErrorKind::CacheHitsOnly
        }
        TraceError::NoRequests { format, .. } => ErrorKind::NothingRecorded { format: *format },
        TraceError::TemporaryFile { .. } => ErrorKind::TemporaryFile,
        TraceError::NeedsOneDevice { .. } => ErrorKind::SeveralDevices,
        _ => ErrorKind::Other,
    }
}

fn malformed(malformed: &Malformed) -> ErrorKind {
    let looks_like = malformed.looks_like.unwrap_or(malformed.format);
    if looks_like != malformed.format {
        return ErrorKind::OtherFormat { read_as: malformed.format, looks_like };
    }
    match (malformed.record, malformed.line) {
        (0, Some(_)) => ErrorKind::MalformedHeader,
        (0, None) => ErrorKind::DamagedHeader,
        _ => ErrorKind::MalformedRecord {
            compression: malformed.compression.map(|compression| compression.to_string()),
        },
    }
}

fn drive(error: &DriveError) -> ErrorKind {
    match error {
        DriveError::Unknown { .. } => ErrorKind::UnknownDrive,
        DriveError::Read { path, source } => unreadable(FileKind::Drive, path, source),
        DriveError::Parse { origin, .. } => not_of_kind(FileKind::Drive, origin),
        DriveError::Build { .. } | DriveError::Emulated(_) => ErrorKind::Other,
    }
}

fn config(error: &ConfigError) -> ErrorKind {
    match error {
        ConfigError::Read { path, source } => unreadable(FileKind::Experiment, path, source),
        ConfigError::Parse { origin, .. } => not_of_kind(FileKind::Experiment, origin),
        ConfigError::Override { .. } => ErrorKind::ExperimentOverride,
        ConfigError::Unordered => ErrorKind::Unordered,
        ConfigError::Array { .. }
        | ConfigError::Cache { .. }
        | ConfigError::Commands { .. }
        | ConfigError::Freeblock { .. }
        | ConfigError::Measured { .. }
        | ConfigError::Host { .. }
        | ConfigError::QueueDepth { .. }
        | ConfigError::Scale { .. }
        | ConfigError::WithoutEffect { .. }
        | ConfigError::Workload { .. } => ErrorKind::ExperimentValue,
        ConfigError::NoTiming { format, .. } if format.may_hold_objects() => ErrorKind::ObjectsOnly,
        ConfigError::NoTiming { .. } => ErrorKind::NoTiming,
        ConfigError::Drive(error) => drive(error),
        ConfigError::Policy(_) => ErrorKind::UnknownPolicy,
        ConfigError::Format(_) => ErrorKind::UnknownFormat,
        ConfigError::Trace(error) => trace(error),
        ConfigError::Placement(PlacementError::NoDevice { .. }) => ErrorKind::NoDevice,
        ConfigError::Placement(_) => ErrorKind::TraceTooLarge,
    }
}

fn study(error: &StudyError) -> ErrorKind {
    match error {
        StudyError::Config(error) => config(error),
        StudyError::ScrubEffort { .. } => ErrorKind::ScrubEffort,
        StudyError::TooFewResponses { .. } => ErrorKind::TooFewResponses,
        StudyError::Empty { .. } => ErrorKind::NoRequests,
    }
}

fn sweep(error: &SweepError) -> ErrorKind {
    match error {
        SweepError::Config(error) => config(error),
        SweepError::Table(error) => table(error),
        SweepError::Over { .. } => ErrorKind::ExperimentOverride,
        _ => ErrorKind::Other,
    }
}

fn table(error: &TableError) -> ErrorKind {
    match error {
        TableError::OtherJournal { .. } => ErrorKind::OtherJournal,
        _ => ErrorKind::Other,
    }
}

fn cache_curves(error: &CacheCurvesError) -> ErrorKind {
    match error {
        CacheCurvesError::Config(error) => config(error),
        CacheCurvesError::NoReads { .. } => ErrorKind::NoRequests,
        CacheCurvesError::NoCountedReads { .. } => ErrorKind::NoCountedReads,
        CacheCurvesError::Size { .. } => ErrorKind::CacheSize,
        CacheCurvesError::NoPolicy | CacheCurvesError::WarmUp { .. } => ErrorKind::Other,
    }
}

fn object_curves(error: &ObjectCurvesError) -> ErrorKind {
    match error {
        ObjectCurvesError::Config(error) => config(error),
        ObjectCurvesError::NoUses { .. } => ErrorKind::NoRequests,
        ObjectCurvesError::Policy { .. } => ErrorKind::UnknownPolicy,
    }
}

fn plan(error: &PlanError) -> ErrorKind {
    match error {
        PlanError::Read { path, source } => unreadable(FileKind::Snapshot, path, source),
        PlanError::Parse { path, .. } => not_of_kind(FileKind::Snapshot, path),
        PlanError::Config(error) => config(error),
        PlanError::Drive(error) => drive(error),
        PlanError::Option { .. } => ErrorKind::Other,
    }
}

fn validate(error: &ValidateError) -> ErrorKind {
    match error {
        ValidateError::Config(error) => config(error),
        _ => ErrorKind::Other,
    }
}

fn reproduce(error: &ReproduceError) -> ErrorKind {
    match error {
        ReproduceError::Unknown { .. } => ErrorKind::UnknownClaim,
        ReproduceError::Config(_) => ErrorKind::Other,
    }
}

fn scale(error: &ScaleError) -> ErrorKind {
    match error {
        ScaleError::Factor { name, .. } => ErrorKind::ScaleFactor { name },
        ScaleError::Original(_) | ScaleError::Scaled(_) => ErrorKind::Other,
    }
}

fn emulate(error: &EmulateError) -> ErrorKind {
    match error {
        EmulateError::Drive(error) => drive(error),
        _ => ErrorKind::Other,
    }
}

fn open(error: &OpenError) -> ErrorKind {
    match error {
        OpenError::System { source, .. } => ErrorKind::Device { reason: source.kind() },
        _ => ErrorKind::Other,
    }
}

fn export(error: &ExportError) -> ErrorKind {
    match error {
        ExportError::ReadOnly { .. } => ErrorKind::ReadOnlyExport,
        ExportError::Connect(_) | ExportError::Thread { .. } => ErrorKind::Other,
    }
}

fn real_drive(error: &RealDriveError) -> ErrorKind {
    match error {
        RealDriveError::Export(error) => export(error),
        _ => ErrorKind::Other,
    }
}

fn extract(error: &ExtractError) -> ErrorKind {
    match error {
        error if error.leaves_it_open() => ErrorKind::Interrupted,
        ExtractError::OtherJournal { .. } => ErrorKind::OtherJournal,
        ExtractError::NoTurn { .. } | ExtractError::NoRotation => ErrorKind::NoRotation,
        _ => ErrorKind::Other,
    }
}

fn control(error: &ControlError) -> ErrorKind {
    match error {
        ControlError::Connect { .. } => ErrorKind::NoServer,
        error if error.is_gone() => ErrorKind::ServerGone,
        _ => ErrorKind::Other,
    }
}

fn unreadable(wanted: FileKind, path: impl Into<PathBuf>, source: &io::Error) -> ErrorKind {
    ErrorKind::Unreadable { wanted, path: path.into(), reason: source.kind() }
}

fn not_of_kind(wanted: FileKind, path: impl Into<PathBuf>) -> ErrorKind {
    ErrorKind::NotOfKind { wanted, path: path.into() }
}
