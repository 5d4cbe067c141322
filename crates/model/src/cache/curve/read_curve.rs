//! The exact curve of an LRU read cache with valid bits.

use freewheel_units::{Blocks, VolumeBlock};

use super::lru_curve::DistanceHistogram;
use super::stack_distances::StackDistances;
use crate::cache::read_cache::{BlockRange, CacheBlockPart, pieces};
use crate::drive::Divisor;

/// Reads and writes of a volume, counted by the smallest LRU [`ReadCache`](crate::cache::ReadCache) in
/// which each read hits: whole requests, and blocks of 512 bytes one by one.
///
/// A block is valid in a cache if its cache block was there at every use since the block was fetched. So
/// the cache must be as large as the largest of those distances, which is kept for each block.
///
/// Cache blocks of a request are used and fetched one after the other. A `ReadCache` uses all first, and its
/// misses come in later; for requests within one cache block the two are equal.
#[derive(Debug, Clone)]
pub struct ReadCurve {
    cache_block: Divisor,
    distances: StackDistances,
    /// Largest distance since the fetch of each block of each slot's cache block, or NEVER.
    needed: Vec<u32>,
    requests: DistanceHistogram,
    blocks: DistanceHistogram,
}

/// Not fetched: valid in no cache. Above every distance.
const NEVER: u32 = u32::MAX;
/// Fetched, and not used since. Below every distance.
const FETCHED: u32 = 0;

impl ReadCurve {
    /// No requests; cache blocks of `cache_block` blocks of 512 bytes, at least one.
    pub fn new(cache_block: Blocks) -> Self {
        assert!(cache_block > Blocks::ZERO, "cache blocks hold at least one block");
        Self {
            cache_block: Divisor::new(cache_block.get()),
            distances: StackDistances::default(),
            needed: Vec::new(),
            requests: DistanceHistogram::default(),
            blocks: DistanceHistogram::default(),
        }
    }

    /// A read, which fetches what is missing.
    pub fn read(&mut self, range: BlockRange<VolumeBlock>) {
        let pieces = pieces(range, self.cache_block);
        let needed = pieces.map(|piece| self.read_piece(piece)).max();
        if let Some(needed) = needed {
            self.requests.add(distance(needed));
        }
    }

    /// The largest distance that the piece's blocks need.
    fn read_piece(&mut self, CacheBlockPart { key, sectors }: CacheBlockPart) -> u32 {
        let (slot, used) = self.distances.locate(key);
        let at = slot as usize * self.cache_block.get() as usize;
        if at == self.needed.len() {
            self.needed.resize(at + self.cache_block.get() as usize, NEVER);
        }
        let row = &mut self.needed[at..at + self.cache_block.get() as usize];
        row.iter_mut().for_each(|needed| *needed = (*needed).max(used.unwrap_or(NEVER)));
        let mut largest = 0;
        for needed in &mut row[sectors.start as usize..sectors.end as usize] {
            self.blocks.add(distance(*needed));
            largest = largest.max(*needed);
            *needed = FETCHED;
        }
        largest
    }

    /// A write, which updates the cache blocks that are there and is no use of them.
    pub fn write(&mut self, range: BlockRange<VolumeBlock>) {
        for CacheBlockPart { key, sectors } in pieces(range, self.cache_block) {
            if let Some(slot) = self.distances.slot(key) {
                let at = slot as usize * self.cache_block.get() as usize;
                // Valid in each cache that holds the cache block now: the next use adds the distance.
                self.needed[at + sectors.start as usize..at + sectors.end as usize].fill(FETCHED);
            }
        }
    }

    /// Reads so far.
    pub fn requests(&self) -> u64 {
        self.requests.uses()
    }

    /// Blocks of 512 bytes read so far.
    pub fn blocks(&self) -> u64 {
        self.blocks.uses()
    }

    /// Reads that need physical I/O with a cache of `capacity` cache blocks.
    pub fn missed_requests(&self, capacity: u32) -> u64 {
        self.requests.misses(capacity)
    }

    /// Blocks of 512 bytes that are not in a cache of `capacity` cache blocks.
    pub fn missed_blocks(&self, capacity: u32) -> u64 {
        self.blocks.misses(capacity)
    }

    /// Distinct cache blocks so far: no larger cache misses less.
    pub fn distinct(&self) -> u32 {
        self.distances.len()
    }
}

fn distance(needed: u32) -> Option<u32> {
    (needed != NEVER).then_some(needed)
}
