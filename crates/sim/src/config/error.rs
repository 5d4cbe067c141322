//! Reason why an experiment cannot be run.

use std::path::{Path, PathBuf};

use freewheel_model::electronics::spec::QUEUE_DEPTH_MAX;
use freewheel_model::sched::ParsePolicyError;
use freewheel_trace::{
    Format, MISSING_COMPLETIONS_ONE_IN, TraceError, TraceInfo, UnknownFormatName,
};
use freewheel_units::grouped;
use thiserror::Error;

use crate::library::DriveError;
use crate::source::{PlacementError, SourceError};

/// Reason why an experiment cannot be run.
#[derive(Debug, Error)]
#[allow(missing_docs)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{}: {source}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    /// The text is not an experiment.
    #[error("{origin}: {message}")]
    Parse {
        /// The file, or what else the text came from.
        origin: String,
        /// Line, key and what is wrong.
        message: String,
    },
    /// An override is not `key=value`, or its key leads nowhere.
    #[error("--set {text}: {message}")]
    Override {
        text: String,
        /// Fault, and the allowed values.
        message: String,
    },
    /// A value of the array does not fit.
    #[error("array: {message}")]
    Array {
        /// Key, value and what is allowed.
        message: String,
    },
    /// Completions cannot be shown.
    #[error(
        "independent drives run at the same time: their completions have no common order in which \
         they could be written down"
    )]
    Unordered,
    /// A value of the storage system's cache does not fit.
    #[error("cache: {message}")]
    Cache {
        /// Key, value and what is allowed.
        message: String,
    },
    /// The host's marks for the drive's queue do not fit.
    #[error("commands: {message}")]
    Commands {
        /// Key, value and what is allowed.
        message: String,
    },
    /// A value of the background work does not fit.
    #[error("freeblock: {message}")]
    Freeblock {
        /// Key, value and what is allowed.
        message: String,
    },
    /// A value of the scheduler outside the drive does not fit.
    #[error("host: {message}")]
    Host {
        /// Key, value and what is allowed.
        message: String,
    },
    /// The drive's queue cannot be of this depth.
    #[error("`queue_depth` is {depth}: 1 to {QUEUE_DEPTH_MAX} commands can be held")]
    QueueDepth { depth: u32 },
    /// A key asks for what the experiment does not have.
    #[error("{message}")]
    WithoutEffect {
        /// Key, value, the reason why it has no effect, and the way out.
        message: String,
    },
    /// The drive cannot be scaled so.
    #[error("scale: {message}")]
    Scale {
        /// Key, value and what is allowed.
        message: String,
    },
    /// `warm_up` or `slices` does not fit.
    #[error("{message}")]
    Measured {
        /// Key, value and what is allowed.
        message: String,
    },
    /// A value of the workload does not fit.
    #[error("workload: {message}")]
    Workload {
        /// Key, value and what is allowed.
        message: String,
    },
    /// The trace's times are no times of requests to a disk.
    #[error("{}: its format, {format}, {lacks}: no response time of a disk can be told from it", .file.display())]
    NoTiming {
        file: PathBuf,
        format: Format,
        /// Missing property of the trace.
        lacks: &'static str,
    },
    #[error(transparent)]
    Drive(#[from] DriveError),
    #[error(transparent)]
    Policy(#[from] ParsePolicyError),
    #[error(transparent)]
    Format(#[from] UnknownFormatName),
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// Trace and drive together.
    #[error(transparent)]
    Placement(#[from] PlacementError),
}

impl ConfigError {
    /// Too few completions of `trace` to tell which request waited for which.
    pub(crate) fn missing_completions(file: &Path, trace: &TraceInfo) -> Self {
        let message = format!(
            "{} records of {} of its {} requests when they completed, and less than one in {MISSING_COMPLETIONS_ONE_IN} may lack that: take a trace with completions",
            file.display(),
            grouped(trace.completions),
            grouped(trace.requests)
        );
        Self::Workload { message }
    }
}

impl From<SourceError> for ConfigError {
    fn from(error: SourceError) -> Self {
        match error {
            SourceError::Trace(error) => Self::Trace(error),
            SourceError::Placement(error) => Self::Placement(error),
            SourceError::OutOfReach { .. } => Self::Freeblock { message: error.to_string() },
        }
    }
}
