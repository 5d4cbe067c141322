//! Room of a file system for all that may be written to a file of it.

use std::fs::File;
use std::os::unix::fs::MetadataExt;

use freewheel_units::{BLOCK_BYTES, Bytes};
use rustix::fs::fstatvfs;

/// Free bytes of a file system, and the bytes that it may need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FreeSpace {
    /// Free bytes for users other than root.
    pub left: Bytes,
    /// Largest number of bytes that may come: zeros may take none.
    pub wanted: Bytes,
}

impl FreeSpace {
    /// For `wanted` more bytes in this file; None where its file system does not report its free bytes.
    pub(crate) fn for_more(file: &File, wanted: Bytes) -> Option<Self> {
        let system = fstatvfs(file).ok()?;
        let left = Bytes::new(system.f_bavail.saturating_mul(system.f_frsize));
        // One without a limit, as tmpfs with size=0, says that it has no size at all.
        (system.f_blocks > 0).then_some(Self { left, wanted })
    }

    /// For all the holes of this file, likewise.
    pub(crate) fn for_holes(file: &File) -> Option<Self> {
        let metadata = file.metadata().ok()?;
        // The system counts in units of 512 B, for any block size of the file system (stat(2)).
        let holes = metadata.len().saturating_sub(metadata.blocks() * BLOCK_BYTES);
        Self::for_more(file, Bytes::new(holes))
    }

    /// True if less is free than may come.
    pub fn is_short(&self) -> bool {
        self.left < self.wanted
    }

    /// True if the file system is full while it may need more.
    pub fn is_used_up(&self) -> bool {
        self.left == Bytes::new(0) && self.is_short()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    #[test]
    fn free_space_short_below_possible_growth() {
        let says = |left, wanted| {
            let room = FreeSpace { left: Bytes::new(left), wanted: Bytes::new(wanted) };
            (room.is_short(), room.is_used_up())
        };
        assert_eq!(says(0, 0), (false, false), "a file without holes");
        assert_eq!(says(0, 1), (true, true));
        assert_eq!(says(1, 2), (true, false));
        assert_eq!(says(2, 2), (false, false));
    }

    #[test]
    fn free_space_growth_is_file_holes() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(8 << 20).unwrap();
        let wanted = || FreeSpace::for_holes(&file).map(|room| room.wanted.get());
        let Some(all) = wanted() else {
            return println!("skipped: the file system of {:?} has no limit", std::env::temp_dir());
        };
        assert!(all > 7 << 20, "{all}");
        file.write_all_at(&vec![1; 6 << 20], 1 << 20).unwrap();
        file.sync_all().unwrap();
        assert!(wanted().unwrap() <= 2 << 20, "{:?}", wanted());
    }
}
