//! Allocated blocks of a file system, which is told by its first bytes.

use super::ext4;
use super::file_system::{Allocated, FileSystemError, HEAD, take};
use super::ntfs;
use super::parts::Parts;
use super::ranges::{ByteRange, Extents};
use super::xfs;

impl Allocated {
    /// Finds what is allocated on `size_bytes` of a drive, with what `read` reads of it.
    pub fn find<E: From<FileSystemError>>(
        size_bytes: u64,
        mut read: impl FnMut(&Extents) -> Result<Parts, E>,
    ) -> Result<Self, E> {
        let head = ByteRange::new(0, HEAD.length_bytes.min(size_bytes));
        let first = take(&read(&Extents::new(vec![head]))?, head)?;
        let found = if first.starts_with(xfs::NAME) {
            xfs::find(&first, size_bytes, read)
        } else if first.get(3..).is_some_and(|rest| rest.starts_with(ntfs::NAME)) {
            ntfs::find(&first, size_bytes, read)
        } else {
            ext4::find(&first, size_bytes, read)
        };
        let mut found = found?;
        let metadata = found.metadata.ranges().iter().copied().chain([head]);
        found.metadata = Extents::new(metadata.collect());
        Ok(found)
    }
}
