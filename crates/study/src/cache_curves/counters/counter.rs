//! Operations of every counter.

use freewheel_model::cache::BlockRange;
use freewheel_units::{BLOCK_BYTES, VolumeBlock};

use crate::cache_curves::result::MissRatio;
use crate::cache_curves::sizes::CACHE_BLOCK_BYTES;

/// A read or a write of the volume.
#[derive(Debug, Clone, Copy)]
pub(in crate::cache_curves) struct Access {
    pub range: BlockRange<VolumeBlock>,
    pub is_read: bool,
}

/// A use of a cache block by a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Use {
    /// Number of the cache block.
    pub key: u64,
    /// Blocks of 512 bytes that are read of it.
    pub blocks: u8,
    /// True for the first cache block of a read.
    pub is_first: bool,
}

/// The cache blocks that reads use, in order.
pub(super) fn uses(accesses: &[Access]) -> impl Iterator<Item = Use> {
    const BLOCKS: u64 = CACHE_BLOCK_BYTES / BLOCK_BYTES;
    let reads = accesses.iter().filter(|access| access.is_read);
    reads.flat_map(|access| {
        let (start, end) = (access.range.start.get(), access.range.end().get());
        (start / BLOCKS..end.div_ceil(BLOCKS)).map(move |key| {
            let from = start.max(key * BLOCKS);
            let blocks = end.min((key + 1) * BLOCKS) - from;
            Use { key, blocks: blocks as u8, is_first: from == start }
        })
    })
}

/// Caches of one policy that see all accesses in order.
pub(in crate::cache_curves) trait Counter: Send {
    fn process(&mut self, accesses: &[Access]);

    /// The warm-up ends: later accesses count.
    fn begin_counting(&mut self);

    /// Miss ratios since then: one for each capacity, ascending.
    fn miss_ratios(&mut self) -> Vec<MissRatio>;
}
