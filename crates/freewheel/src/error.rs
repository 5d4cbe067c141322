//! The one error of this library: what went wrong in words, and of which kind it is.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::path::PathBuf;

use freewheel_disksim::{ImportCause, ImportError};
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
use freewheel_trace::{
    Format, Malformed, TimeUnit, TraceError, UnknownFormatName, UnknownTimeUnit,
};

use crate::files::FileKind;

/// Message of the error. It displays as one message that names file, key and value.
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
}

impl Error {
    fn new(kind: ErrorKind, inner: impl StdError + Send + Sync + 'static) -> Self {
        Self { kind, inner: Box::new(inner) }
    }

    /// Kind of the error: programs decide by it.
    pub fn kind(&self) -> &ErrorKind {
        &self.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(out)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.inner.source()
    }
}

/// Kinds of an [`Error`], with the data that a program needs to advise on it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// No shipped drive and no file has the name.
    UnknownDrive,
    /// No scheduling policy, or no cache policy, has the name.
    UnknownPolicy,
    /// No format of traces has the name.
    UnknownFormat,
    /// The ending of an output's name is no format's.
    UnknownEnding,
    /// No claim has the name.
    UnknownClaim,
    /// The system does not give a file.
    Unreadable {
        /// Kind that the file was wanted as.
        wanted: FileKind,
        /// The file.
        path: PathBuf,
        /// Error of the system.
        reason: io::ErrorKind,
    },
    /// The contents of a file are not of the kind that is wanted.
    NotOfKind {
        /// Kind that the file was wanted as.
        wanted: FileKind,
        /// The file, or what else the text came from.
        path: PathBuf,
    },
    /// A value of an experiment is out of its range.
    ExperimentValue,
    /// An override of an experiment is not `key=value`, or its key leads nowhere.
    ExperimentOverride,
    /// Completions of independent drives have no common order.
    Unordered,
    /// The header of a trace names other columns.
    MalformedHeader,
    /// The binary header of a trace is damaged, or is one of another format.
    DamagedHeader,
    /// A record of a trace is malformed.
    MalformedRecord {
        /// Compression of the trace, if any: its data may be damaged.
        compression: Option<String>,
    },
    /// A record is malformed, and the trace looks like one of another format.
    OtherFormat {
        /// The format it was read as.
        read_as: Format,
        /// The format it looks like.
        looks_like: Format,
    },
    /// A file is of a kind that is often taken for a trace.
    NoTrace {
        /// Way to record or write a trace instead.
        way_out: &'static str,
    },
    /// A trace fits two formats that differ by a factor.
    UncertainFormat {
        /// The formats.
        choices: [Format; 2],
    },
    /// The times of a trace may be in several units.
    UncertainTimeUnit {
        /// The units.
        units: Vec<TimeUnit>,
    },
    /// A unit was named for times whose format says the unit.
    FixedTimeUnit,
    /// A meaning was named for numbers whose format says the meaning.
    FixedNumbers,
    /// A layer was named for requests of a format that has one.
    FixedLayer,
    /// No request comes from a trace, though it can be read.
    NothingRecorded {
        /// Format of the trace.
        format: Format,
    },
    /// A cache in front of the disk served all requests of a trace.
    CacheHitsOnly,
    /// A temporary file could not be written or read.
    TemporaryFile,
    /// A trace names objects, which have no places on a disk.
    ObjectsOnly,
    /// A compressed trace is damaged.
    DamagedTrace {
        /// Records before the damage.
        records: u64,
    },
    /// A trace has no bytes.
    EmptyTrace,
    /// Every record of a trace is malformed.
    NothingRead,
    /// A trace has several devices, where one is wanted.
    SeveralDevices,
    /// A trace has no requests to the device that is wanted.
    NoDevice,
    /// A trace does not fit onto the drive.
    TraceTooLarge,
    /// The times of a trace, if any, are too coarse to replay it.
    NoTiming,
    /// A trace has no read and no write, or no read for a cache.
    NoRequests,
    /// The trace records too few responses to fit a drive to them.
    TooFewResponses,
    /// The estimate of a scrub was to take too little or too much.
    ScrubEffort,
    /// A cache is too large.
    CacheSize,
    /// The trace has no read after the warm-up of the caches.
    NoCountedReads,
    /// A drive cannot be scaled by a factor.
    ScaleFactor {
        /// Name of the dimension, as in [`Scaling`](crate::Scaling).
        name: &'static str,
    },
    /// The parameters of DiskSim make no drive.
    DiskSim {
        /// Kind of mistake in them.
        cause: ImportCause,
    },
    /// The device to be served cannot be opened.
    Device {
        /// Error of the system.
        reason: io::ErrorKind,
    },
    /// The NBD export is read-only.
    ReadOnlyExport,
    /// The extraction of a drive was interrupted: its journal is sound, so it can go on.
    Interrupted,
    /// The journal of an extraction or a sweep belongs to another one, or to another version.
    OtherJournal,
    /// The device whose parameters were to be found does not turn.
    NoRotation,
    /// No server answers at the control socket.
    NoServer,
    /// A server that has answered before has gone.
    ServerGone,
    /// Everything else: the message says what.
    Other,
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
        | ConfigError::PredictiveScheduler { .. }
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
