//! Reason why there is no plan.

use std::path::PathBuf;

use freewheel_sim::config::ConfigError;
use freewheel_sim::library::DriveError;
use thiserror::Error;

/// Err for options or input that there is no plan for.
pub(super) fn wrong<T>(message: impl Into<String>) -> Result<T, PlanError> {
    Err(PlanError::Option { message: message.into() })
}

/// Reason why there is no plan.
#[derive(Debug, Error)]
#[allow(missing_docs)]
pub enum PlanError {
    /// The file cannot be read.
    #[error("{}: {source}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    /// The file is no snapshot.
    #[error("{}: {message}", path.display())]
    Parse {
        path: PathBuf,
        /// Line, key, value and what is allowed.
        message: String,
    },
    /// An option does not fit the snapshot.
    #[error("{message}")]
    Option {
        /// Fault, and the way out.
        message: String,
    },
    #[error(transparent)]
    Drive(#[from] DriveError),
    #[error(transparent)]
    Config(#[from] ConfigError),
}
