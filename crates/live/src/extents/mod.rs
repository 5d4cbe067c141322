//! Bytes of a drive that a task wants, as extents: from a list, from files, or from the bitmaps of a file
//! system.
//!
//! ```text
//!   list       the text of a list, or the output of `filefrag -v`        pure
//!   fiemap     a file of a mounted file system                           asks the system
//!   allocated  tells the file system by its first bytes                  pure
//!   ext4       the block bitmaps of an ext2, ext3 or ext4                pure
//!   xfs        the trees of free space of an XFS                         pure
//!   ntfs       the bitmap of an NTFS                                     pure
//!   ranges     merges extents, and widens them to whole blocks           pure
//! ```

mod allocated;
mod ext4;
mod fiemap;
mod file_system;
mod list;
mod ntfs;
mod parts;
mod ranges;
#[cfg(test)]
mod testing;
mod xfs;

pub use fiemap::{FileExtents, FilesError};
pub use file_system::{Allocated, FileSystemError};
pub use list::ExtentListError;
pub use parts::Parts;
pub use ranges::{ByteRange, Extents};
