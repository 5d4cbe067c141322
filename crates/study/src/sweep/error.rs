//! Why a sweep fails.

use freewheel_sim::config::ConfigError;
use thiserror::Error;

use crate::table::TableError;

/// Why a sweep failed.
#[derive(Debug, Error)]
#[allow(missing_docs)]
pub enum SweepError {
    /// The experiment, or one of its configurations.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// What is to be swept is not written as a key and its values.
    #[error("`{text}` is no key with its values: {reason}")]
    Over {
        text: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// More configurations than anyone waits for.
    #[error("the sweep has {count} configurations: at most {most} are allowed")]
    TooMany { count: u128, most: u128 },
    /// No threads to run on.
    #[error("threads for the sweep: {reason}")]
    Threads {
        /// What the system says.
        reason: String,
    },
    /// The table or its journal.
    #[error(transparent)]
    Table(#[from] TableError),
    /// A process elsewhere has another version of the program.
    #[error(
        "this worker has Freewheel {own}, and the sweep was begun by {wanted}: install that on the worker"
    )]
    OtherVersion {
        /// Version of this process.
        own: String,
        /// Version of the process that began the sweep.
        wanted: String,
    },
    /// A file here is not the one that the sweep was begun with.
    #[error(
        "{file} on this worker is not the file that the sweep was begun with: bring that file there"
    )]
    OtherFile { file: String },
}

impl SweepError {
    /// As an experiment that cannot be written as TOML.
    pub(super) fn experiment(error: toml::ser::Error) -> Self {
        let (file, reason) = ("the experiment".to_owned(), error.to_string());
        TableError::File { file, reason }.into()
    }
}
