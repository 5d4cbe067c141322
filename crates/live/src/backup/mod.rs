//! What is made of the blocks of a task: checksums of a drive, and a copy of it.

mod backup;
mod error;
mod files;
mod manifest;

pub use backup::Backup;
pub use error::BackupError;
pub use manifest::{Cause, Change, Manifest, ManifestError, REGION_BLOCKS, UnexpectedField};
