//! Why a copy is not made, said of the file in whose way something is.

use std::io;
use std::path::PathBuf;

use freewheel_trace::NotOwn;
use freewheel_units::Bytes;
use thiserror::Error;

use super::manifest::{ManifestError, UnexpectedField};
use crate::control::BlockRange;

/// Why there is no copy.
#[derive(Debug, Error)]
pub enum BackupError {
    /// The system refuses.
    #[error("{}: {source}", path.display())]
    System {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// There is one.
    #[error("{}: is there already: choose another name, or remove it", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// No file is allowed there to be as large as the drive.
    #[error("{}: no file here may have {bytes}: choose another file system, or raise ulimit -f", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The size of the drive.
        bytes: Bytes,
    },
    /// There is another file where one is made.
    #[error(
        "{}: is not the rest of a backup: choose another name, or remove it", path.display()
    )]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The file of a copy that continues may be another user's.
    #[error(
        "{}: {source}, and the data of a backup are for its maker alone: choose another name, or remove \
         it to begin anew",
        path.display()
    )]
    NotOwn {
        /// The file.
        path: PathBuf,
        /// Why.
        source: NotOwn,
    },
    /// Another process makes it.
    #[error("{}: another backup writes it", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// The record of what is there is none, or of something else.
    #[error("{}: {source}: remove it and begin anew", path.display())]
    Manifest {
        /// The file.
        path: PathBuf,
        /// Why.
        source: ManifestError,
    },
    /// What was written is not what came.
    #[error(
        "{}: {count} ranges read back differ from what was written, the first from block {} on: the \
         disk that it is on is not to be trusted",
        path.display(), first.first_block
    )]
    Differs {
        /// The file.
        path: PathBuf,
        /// The first range.
        first: BlockRange,
        /// How many.
        count: usize,
    },
    /// The server sent blocks that were not requested.
    #[error(transparent)]
    UnexpectedField(#[from] UnexpectedField),
    /// Blocks have not come.
    #[error("{missing} blocks have not come: {} is not complete", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
        /// How many blocks.
        missing: u64,
    },
    /// Blocks came more than once, so that their checksums are void.
    #[error("{extra} blocks have come twice: {} is not sound", path.display())]
    Twice {
        /// The file.
        path: PathBuf,
        /// How many blocks.
        extra: u64,
    },
}
