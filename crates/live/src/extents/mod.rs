//! Bytes of a drive that a task wants, as extents: from a list, from files, or from the bitmaps of a file
//! system.
//!
//! ```text
//!   list       the text of a list, or the output of `filefrag -v`        pure
//!   fiemap     a file of a mounted file system                           asks the system
//!   ext4       the block bitmaps of an ext2, ext3 or ext4                pure
//!   ranges     merges extents, and widens them to whole blocks           pure
//! ```

mod ext4;
mod fiemap;
mod list;
mod parts;
mod ranges;

pub use ext4::{Allocated, Ext4Error};
pub use fiemap::{FileExtents, FilesError};
pub use list::ExtentListError;
pub use parts::Parts;
pub use ranges::{ByteRange, Extents};
