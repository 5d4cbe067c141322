//! Files made from the blocks of a task: a manifest of checksums, and a copy of the drive; and the way
//! back.

mod chain;
mod error;
mod files;
mod image;
mod manifest;
mod names;
mod read_back;
mod restore;

pub use chain::{Chain, Link};
pub use error::BackupError;
pub use image::Backup;
pub use manifest::{
    Cause, Change, ChangesByCause, Manifest, ManifestError, Parent, REGION_BLOCKS, UnexpectedField,
};
pub use restore::{Damage, Restore, Restored};
