//! Files made from the blocks of a task: a manifest of checksums, and a copy of the drive.

mod error;
mod files;
mod image;
mod manifest;

pub use error::BackupError;
pub use image::Backup;
pub use manifest::{
    Cause, Change, ChangesByCause, Manifest, ManifestError, REGION_BLOCKS, UnexpectedField,
};
