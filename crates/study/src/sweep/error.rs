//! Why a sweep fails.

use freewheel_sim::config::ConfigError;
use thiserror::Error;

/// Why a sweep failed.
#[derive(Debug, Error)]
pub enum SweepError {
    /// The experiment, or one of its configurations.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// What is to be swept is not written as a key and its values.
    #[error("`{text}` is no key with its values: {reason}")]
    Over {
        /// As given.
        text: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// More configurations than anyone waits for.
    #[error("the sweep has {count} configurations: at most {most} are allowed")]
    TooMany {
        /// All combinations.
        count: u128,
        /// The limit.
        most: u128,
    },
    /// No threads to run on.
    #[error("threads for the sweep: {reason}")]
    Threads {
        /// What the system says.
        reason: String,
    },
    /// The journal is that of another sweep.
    #[error(
        "{file} belongs to another experiment, other values, another trace or another version of the program"
    )]
    OtherJournal {
        /// The journal.
        file: String,
    },
    /// A file could not be read or written.
    #[error("{file}: {reason}")]
    File {
        /// The file.
        file: String,
        /// What the system or the Parquet library says.
        reason: String,
    },
}
