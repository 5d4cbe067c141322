//! What the readers of file systems share: their result, their errors, and numbers at their places.

use thiserror::Error;

use super::parts::Parts;
use super::ranges::{ByteRange, Extents};

/// Bytes that are read first: superblocks, and the places of other file systems' names.
pub(super) const HEAD: ByteRange = ByteRange::new(0, 72 << 10);

/// Names of other things that a drive may begin with: where, and what.
pub(super) const OTHERS: [(usize, &[u8], &str); 7] = [
    (3, b"EXFAT   ", "an exFAT"),
    (0x10040, b"_BHRfS_M", "a Btrfs"),
    (0x400, b"\x10\x20\xf5\xf2", "an F2FS"),
    (0, b"LUKS\xba\xbe", "an encrypted volume (LUKS)"),
    (512, b"LABELONE", "a volume of LVM"),
    (512, b"EFI PART", "a partition table: give the partition's beginning by --offset"),
    (510, b"\x55\xaa", "a partition table, or a FAT: give a partition's beginning by --offset"),
];

/// Reasons why allocated blocks are not known.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[allow(missing_docs)]
pub enum FileSystemError {
    /// The device holds no file system that is known.
    #[error("there is no ext2, ext3, ext4, XFS or NTFS there, but {found}")]
    Other { found: &'static str },
    /// The file system has a feature that is not known here.
    #[error("the file system has {what}, which is not supported: use --extents or --files")]
    Unsupported { what: String },
    /// The numbers of the file system contradict each other.
    #[error(
        "the file system is damaged, or its metadata were written meanwhile: {what}; check it with {check}"
    )]
    Damaged {
        what: String,
        /// Command that checks such a file system.
        check: &'static str,
    },
    /// The reader gave less than the wanted bytes.
    #[error("{} bytes at byte {} of the file system could not be read", range.length_bytes, range.offset_bytes)]
    Unread {
        /// Range that could not be read.
        range: ByteRange,
    },
}

/// Allocated ranges of a file system; places are from its beginning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allocated {
    /// Ranges in use, with metadata.
    pub extents: Extents,
    /// Size of the file system.
    pub size_bytes: u64,
    /// True if it was unmounted cleanly, or is an ext4 that is frozen: otherwise newer metadata may be in its
    /// journal, or in the memory of the machine that has it mounted.
    pub is_clean: bool,
    /// Metadata that were read for the result.
    pub metadata: Extents,
}

/// These bytes of the parts that were read.
pub(super) fn take(parts: &Parts, range: ByteRange) -> Result<Vec<u8>, FileSystemError> {
    parts.get(range).ok_or(FileSystemError::Unread { range })
}

/// A number of `bytes` at a place, the most significant byte first; 0 behind the end.
pub(super) fn big_endian(data: &[u8], at: usize, bytes: usize) -> u64 {
    let found = data.get(at..at + bytes).unwrap_or_default();
    found.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// A number of `bytes` at a place, the least significant byte first; 0 behind the end.
pub(super) fn little_endian(data: &[u8], at: usize, bytes: usize) -> u64 {
    let found = data.get(at..at + bytes).unwrap_or_default();
    found.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Ranges of `all` between free ones, which are in ascending order and apart.
pub(super) fn between(free: &Extents, all: ByteRange) -> Extents {
    let starts =
        std::iter::once(all.offset_bytes).chain(free.ranges().iter().map(|free| free.end()));
    let ends = free.ranges().iter().map(|free| free.offset_bytes).chain([all.end()]);
    let used = starts.zip(ends).map(|(from, to)| ByteRange::new(from, to.saturating_sub(from)));
    Extents::new(used.collect())
}
