//! Benefit of prefetching: blocks that were read, and blocks that were waited for.

use std::ops::{AddAssign, Index, IndexMut};

/// Causes of a prefetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PrefetchKind {
    /// Prefetching with and behind the fetches of reads: units, read-ahead, runs, streams.
    WithReads,
    /// Reading on by an idle disk.
    Idle,
    /// Blocks that pass the head before those of a fetch.
    FreeBlocks,
    /// Blocks that the head reads because it leaves its track late.
    JustInTimeSeek,
}

impl PrefetchKind {
    /// All kinds.
    pub const ALL: [Self; 4] =
        [Self::WithReads, Self::Idle, Self::FreeBlocks, Self::JustInTimeSeek];
}

/// Results of one kind of prefetching.
///
/// Each block that memory did not have counts once each time it is brought. It is read, or leaves
/// memory, or is still there: `brought - used - wasted`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PrefetchCounts {
    /// Blocks that memory did not have before.
    pub brought: u64,
    /// Blocks that a read asked for while they were in memory or on their way.
    pub used: u64,
    /// Blocks that were evicted, overwritten or trimmed before a read asked for them.
    pub wasted: u64,
    /// Reads that waited for blocks on their way. They needed no access of their own for these.
    pub late_reads: u64,
}

impl AddAssign for PrefetchCounts {
    fn add_assign(&mut self, other: Self) {
        self.brought += other.brought;
        self.used += other.used;
        self.wasted += other.wasted;
        self.late_reads += other.late_reads;
    }
}

/// The counts of every kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PrefetchTally([PrefetchCounts; 4]);

impl Index<PrefetchKind> for PrefetchTally {
    type Output = PrefetchCounts;

    fn index(&self, kind: PrefetchKind) -> &PrefetchCounts {
        &self.0[kind as usize]
    }
}

impl IndexMut<PrefetchKind> for PrefetchTally {
    fn index_mut(&mut self, kind: PrefetchKind) -> &mut PrefetchCounts {
        &mut self.0[kind as usize]
    }
}

impl AddAssign for PrefetchTally {
    fn add_assign(&mut self, other: Self) {
        PrefetchKind::ALL.into_iter().for_each(|kind| self[kind] += other[kind]);
    }
}
