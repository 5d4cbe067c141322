//! Layout and cleaning of a log-structured disk.

use freewheel_units::{Blocks, Lbn};

/// Layout, memory and cleaning of a log-structured logical disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogDiskSpec {
    /// First block of the drive that belongs to it.
    pub start: Lbn,
    /// Number of segments, one after the other.
    pub segments: u32,
    /// Blocks of a segment, of which the last holds the summary.
    pub segment_blocks: u32,
    /// Size of such a block on the drive.
    pub block: Blocks,
    /// Blocks of the buffer cache.
    pub cache_blocks: u32,
    /// The foreground cleaner works whenever fewer segments than these are free.
    pub free_min: u32,
    /// Size of the foreground cleaner's reads. In segments that freeblock reads have begun to clean it
    /// reads the live blocks that are left, each alone.
    pub clean_reads: CleanReads,
    /// Who cleans before it comes to that.
    pub cleaner: Cleaner,
}

/// Size of the foreground cleaner's reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CleanReads {
    /// One block, live or dead, from the first of the segment to its last live one.
    EveryBlock,
    /// One live block.
    Block,
    /// Live blocks side by side.
    Run,
    /// Everything from the first live block to the last.
    Segment,
}

/// Who cleans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cleaner {
    /// Only the foreground cleaner (osdi00's ORIGINAL).
    Foreground,
    /// Freeblock reads, as long as they keep up (osdi00's FREEBLOCK).
    Freeblock {
        /// Freeblock reads begin when fewer segments than these are free.
        free_below: u32,
        /// Segments that are being cleaned at once.
        segments: u32,
    },
}

impl Cleaner {
    /// Freeblock reads as in osdi00 section 5.1, which says that they begin at a certain threshold
    /// and clean several segments at once. Both numbers are assumed: with them the foreground
    /// cleaner has no work on an Atlas 10K until the log is 85 % full, and half or double the number
    /// changes little (`freewheel reproduce osdi00.fig7`).
    pub const OSDI00_FREEBLOCK: Self = Self::Freeblock { free_below: 20, segments: 12 };
}

impl LogDiskSpec {
    /// Segments of 128 blocks of 4 KiB and a cleaner that is invoked when fewer than two of them
    /// are free (osdi00 section 5.2), on the first 400 MiB of the drive.
    ///
    /// The cache of 32 MiB is derived: osdi00 section 5.3 says that it absorbs all activity below
    /// 8 % of the capacity. That every block of a segment is read, one at a time, is inferred from
    /// figure 7: what cleaning costs there is a turn of the disk a block.
    pub const OSDI00: Self = Self {
        start: Lbn::ZERO,
        segments: 800,
        segment_blocks: 128,
        block: Blocks::new(8),
        cache_blocks: 8192,
        free_min: 2,
        clean_reads: CleanReads::EveryBlock,
        cleaner: Cleaner::Foreground,
    };

    /// Blocks of a segment that hold data.
    pub fn slots(&self) -> u32 {
        self.segment_blocks - 1
    }

    /// Blocks of data that fit on the disk, those that cleaning needs included. So many may have
    /// names, but only those of `segments - free_min - 1` segments may be in the log at once: the
    /// others are the one under construction and those that stay free. With more a write may panic,
    /// since no segment is free and cleaning frees none.
    pub fn capacity_blocks(&self) -> u32 {
        self.segments * self.slots()
    }
}
