//! Kinds of errors, by which programs decide.

use std::io;
use std::path::PathBuf;

use freewheel_disksim::ImportCause;
use freewheel_trace::{Format, TimeUnit};

use crate::files::FileKind;

/// Kinds of an [`Error`](crate::Error), with the data that a program needs to advise on it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs)]
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
        path: PathBuf,
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
    UncertainFormat { choices: [Format; 2] },
    /// The times of a trace may be in several units.
    UncertainTimeUnit { units: Vec<TimeUnit> },
    /// A unit was named for times whose format says the unit.
    FixedTimeUnit,
    /// A meaning was named for numbers whose format says the meaning.
    FixedNumbers,
    /// A layer was named for requests of a format that has one.
    FixedLayer,
    /// No request comes from a trace, though it can be read.
    NothingRecorded { format: Format },
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
    Device { reason: io::ErrorKind },
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

impl ErrorKind {
    /// Key of an experiment that such an error is about; see [`Error::key`](crate::Error::key).
    pub fn key(&self) -> Option<&'static str> {
        match self {
            ErrorKind::ExperimentValue => Some(""),
            ErrorKind::Unordered => Some("array: "),
            ErrorKind::UnknownDrive | ErrorKind::Unreadable { wanted: FileKind::Drive, .. } => {
                Some("drive: ")
            }
            ErrorKind::Unreadable { wanted: FileKind::Trace, reason, .. }
                if is_not_a_file(*reason) =>
            {
                Some("workload: `file`: ")
            }
            ErrorKind::NoTiming | ErrorKind::ObjectsOnly => Some("workload: `file`: "),
            ErrorKind::UnknownPolicy => Some("scheduler: "),
            ErrorKind::UnknownFormat => Some("workload: `format`: "),
            ErrorKind::NoDevice | ErrorKind::TraceTooLarge => Some("workload: "),
            _ => None,
        }
    }
}

/// True if there is no file at a path that was to be read, by the system's error.
pub(crate) fn is_not_a_file(reason: io::ErrorKind) -> bool {
    matches!(reason, io::ErrorKind::NotFound | io::ErrorKind::IsADirectory)
}
