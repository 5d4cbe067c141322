//! A read cache over the blocks of a volume or of a drive.

use std::marker::PhantomData;
use std::ops::Range;

use freewheel_units::{BlockAddress, Blocks, Op};

use super::eviction::Admission;
use super::key_policy::KeyPolicy;
use super::prefetch_counts::{PrefetchKind, PrefetchTally};
use super::residents::Residents;
use super::spec::CachePolicy;
use super::unread_marks::{Evicted, Slot, UnreadMarks};
use super::valid_bits::ValidBits;
use crate::drive::Divisor;

/// Blocks of a volume or of a drive, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockRange<A> {
    /// The first one.
    pub start: A,
    /// Number of blocks.
    pub blocks: Blocks,
}

impl<A: BlockAddress> BlockRange<A> {
    /// `blocks` blocks from `start` on.
    pub fn new(start: A, blocks: Blocks) -> Self {
        Self { start, blocks }
    }

    /// The block after the last one.
    pub fn end(self) -> A {
        self.start + self.blocks
    }
}

/// Settings of a read cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadCacheSpec {
    /// Eviction policy.
    pub policy: CachePolicy,
    /// Cache blocks in memory; 0 for no cache.
    pub capacity: u32,
    /// Blocks of 512 bytes in a cache block: the unit of eviction.
    pub cache_block: Blocks,
    /// True if a write brings its blocks into the cache and counts as a use. Without, a write only updates
    /// cache blocks that are there.
    pub write_allocate: bool,
}

impl ReadCacheSpec {
    /// tr03 section 4.1: LRU, cache blocks of 4 KiB; writes go to a buffer of their own.
    pub const fn tr03(capacity: u32) -> Self {
        Self {
            policy: CachePolicy::Lru,
            capacity,
            cache_block: Blocks::new(8),
            write_allocate: false,
        }
    }
}

/// Requests of one kind, and how many of them the cache held.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HitCounts {
    /// Requests.
    pub requests: u64,
    /// Requests whose blocks were all in the cache: reads that need no physical I/O.
    pub hits: u64,
    /// Blocks of 512 bytes.
    pub blocks: u64,
    /// Blocks that were in the cache.
    pub hit_blocks: u64,
}

impl HitCounts {
    /// Requests with a block that was not in the cache, as a share of all; None without requests.
    pub fn miss_ratio(&self) -> Option<f64> {
        let misses = self.requests - self.hits;
        (self.requests > 0).then(|| misses as f64 / self.requests as f64)
    }

    fn add(&mut self, blocks: u64, missing: u64) {
        self.requests += 1;
        self.hits += u64::from(missing == 0);
        self.blocks += blocks;
        self.hit_blocks += blocks - missing;
    }
}

/// Cache blocks with a valid bit for each block of 512 bytes (tr03 section 4.1).
#[derive(Debug)]
pub struct ReadCache<A> {
    spec: ReadCacheSpec,
    /// Blocks in a cache block.
    size: Divisor,
    residents: Residents,
    valid: ValidBits,
    reads: HitCounts,
    writes: HitCounts,
    /// None until something is prefetched.
    unread: Option<UnreadMarks>,
    addresses: PhantomData<A>,
}

/// The part of a range that lies in one cache block.
#[derive(Debug, Clone)]
pub(super) struct CacheBlockPart {
    /// Number of the cache block.
    pub key: u64,
    /// Blocks of 512 bytes within it.
    pub sectors: Range<u64>,
}

/// A cache block in memory.
struct Admitted {
    slot: u32,
    /// Set if the block was not in memory before.
    is_new: bool,
}

/// A range, cache block by cache block.
#[inline]
pub(super) fn pieces<A: BlockAddress>(range: BlockRange<A>, cache_block: Divisor) -> Pieces {
    let (at, end) = (range.start.number(), range.end().number());
    let (key, within) = cache_block.divide(at);
    Pieces { at, end, key, first: at - within, size: cache_block.get() }
}

/// Iterates over the cache blocks of a range.
#[derive(Debug, Clone)]
pub(super) struct Pieces {
    /// First address that has not been passed.
    at: u64,
    end: u64,
    /// The next cache block, and its first block.
    key: u64,
    first: u64,
    size: u64,
}

impl Iterator for Pieces {
    type Item = CacheBlockPart;

    #[inline]
    fn next(&mut self) -> Option<CacheBlockPart> {
        if self.at >= self.end {
            return None;
        }
        let behind = self.first + self.size;
        let stop = behind.min(self.end);
        let piece =
            CacheBlockPart { key: self.key, sectors: self.at - self.first..stop - self.first };
        (self.at, self.first) = (stop, behind);
        self.key += 1;
        Some(piece)
    }
}

/// Adds blocks to ascending ranges, to the last one if it ends there.
fn append<A: BlockAddress>(ranges: &mut Vec<BlockRange<A>>, start: u64, blocks: u64) {
    match ranges.last_mut() {
        Some(last) if last.end().number() == start => last.blocks += Blocks::new(blocks),
        _ => ranges.push(BlockRange::new(A::from_number(start), Blocks::new(blocks))),
    }
}

impl<A: BlockAddress> ReadCache<A> {
    /// An empty cache. Panics for cache blocks of 0 bytes.
    pub fn new(spec: ReadCacheSpec) -> Self {
        Self::of(spec, Residents::new(spec.policy, spec.capacity))
    }

    /// Like [`Self::new`], with this policy in place of the specification's. Keys are numbers of cache blocks.
    pub fn with_policy(spec: ReadCacheSpec, policy: Box<dyn KeyPolicy>) -> Self {
        Self::of(spec, Residents::with_policy(spec.capacity, policy))
    }

    fn of(spec: ReadCacheSpec, residents: Residents) -> Self {
        assert!(spec.cache_block > Blocks::ZERO, "cache blocks hold at least one block");
        Self {
            spec,
            size: Divisor::new(spec.cache_block.get()),
            residents,
            valid: ValidBits::new(spec.cache_block.get()),
            reads: HitCounts::default(),
            writes: HitCounts::default(),
            unread: None,
            addresses: PhantomData,
        }
    }

    /// Settings of the cache.
    pub fn spec(&self) -> ReadCacheSpec {
        self.spec
    }

    /// Cache blocks in memory.
    pub fn len(&self) -> u32 {
        self.residents.len()
    }

    /// True if no cache block is in memory.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reads so far.
    pub fn reads(&self) -> HitCounts {
        self.reads
    }

    /// Writes so far; their hits are updates of blocks in the cache.
    pub fn writes(&self) -> HitCounts {
        self.writes
    }

    /// Counts from here on, after a warm-up.
    pub fn reset_counts(&mut self) {
        (self.reads, self.writes) = (HitCounts::default(), HitCounts::default());
    }

    /// A request arrives. A read is a use of its cache blocks in memory, and `missing` becomes the
    /// blocks that must be read, in ascending order, neighbours joined: pass them to [`Self::insert`]
    /// when they are here. A write leaves `missing` empty; a trim invalidates.
    pub fn access(&mut self, range: BlockRange<A>, op: Op, missing: &mut Vec<BlockRange<A>>) {
        missing.clear();
        match op {
            Op::Read => self.read(range, missing),
            Op::Write => self.write(range),
            Op::Trim => self.invalidate(range),
            Op::Flush => {}
        }
    }

    fn read(&mut self, range: BlockRange<A>, missing: &mut Vec<BlockRange<A>>) {
        for piece in pieces(range, self.size) {
            let first = piece.key * self.size.get();
            let mut miss =
                |run: Range<u64>| append(missing, first + run.start, run.end - run.start);
            match self.residents.use_resident(piece.key) {
                Some(slot) => {
                    if let Some(unread) = &mut self.unread {
                        unread.used(slot, piece.sectors.clone());
                    }
                    self.valid.missing(slot, piece.sectors, miss);
                }
                None => miss(piece.sectors),
            }
        }
        let missing = missing.iter().map(|range| range.blocks.get()).sum();
        self.reads.add(range.blocks.get(), missing);
    }

    fn write(&mut self, range: BlockRange<A>) {
        let mut missing = 0;
        for piece in pieces(range, self.size) {
            let slot = if self.spec.write_allocate {
                self.residents.use_resident(piece.key)
            } else {
                self.residents.resident(piece.key)
            };
            match slot {
                Some(slot) => {
                    if let Some(unread) = &mut self.unread {
                        unread.lost(slot, piece.sectors.clone());
                    }
                    self.valid.set(slot, piece.sectors);
                }
                None => {
                    missing += piece.sectors.end - piece.sectors.start;
                    if self.spec.write_allocate {
                        self.fill(piece);
                    }
                }
            }
        }
        self.writes.add(range.blocks.get(), missing);
    }

    /// Data were read from the disk, as missing blocks or as a prefetch: the blocks are valid now. Cache
    /// blocks that are not in memory come in as new ones, and evict others. Cache blocks in memory are
    /// not used by that.
    pub fn insert(&mut self, range: BlockRange<A>) {
        pieces(range, self.size).for_each(|piece| self.fill(piece));
    }

    fn fill(&mut self, CacheBlockPart { key, sectors }: CacheBlockPart) {
        match self.admit(key) {
            Some(Admitted { slot, is_new: true }) => self.valid.put(slot, sectors),
            Some(Admitted { slot, .. }) => self.valid.set(slot, sectors),
            None => {}
        }
    }

    /// A cache block that is in memory from now on; None when no memory is there. What a new one holds is
    /// to be [put](ValidBits::put).
    #[inline]
    fn admit(&mut self, key: u64) -> Option<Admitted> {
        let Self { residents, unread, .. } = self;
        match residents.enter(key)? {
            Err(slot) => Some(Admitted { slot, is_new: false }),
            Ok(Admission { slot, evicted }) => {
                if let (Some(unread), Some(evicted)) = (unread, evicted) {
                    unread.evicted(evicted);
                }
                Some(Admitted { slot, is_new: true })
            }
        }
    }

    /// Like [`Self::insert`], of data that no read has asked for. [`Self::prefetched`] describes those
    /// that were not valid before.
    pub fn prefetch(&mut self, range: BlockRange<A>, kind: PrefetchKind) {
        let Self { size, residents, unread, valid, .. } = self;
        let unread = unread.get_or_insert_with(|| UnreadMarks::new(size.get()));
        for CacheBlockPart { key, sectors } in pieces(range, *size) {
            match residents.enter(key) {
                None => unread.brought(None, kind, sectors),
                Some(Err(slot)) => {
                    let slot_of_key = Some(Slot { slot, key });
                    valid.missing(slot, sectors.clone(), |run| {
                        unread.brought(slot_of_key, kind, run);
                    });
                    valid.set(slot, sectors);
                }
                Some(Ok(Admission { slot, evicted })) => {
                    if let Some(evicted) = evicted {
                        unread.evicted(evicted);
                    }
                    unread.brought(Some(Slot { slot, key }), kind, sectors.clone());
                    valid.put(slot, sectors);
                }
            }
        }
    }

    /// A read has waited for these blocks, which have just been prefetched. That is no further use of
    /// their cache blocks.
    pub fn prefetch_was_used(&mut self, range: BlockRange<A>) {
        for CacheBlockPart { key, sectors } in pieces(range, self.size) {
            if let (Some(slot), Some(unread)) = (self.residents.resident(key), &mut self.unread) {
                unread.used(slot, sectors);
            }
        }
    }

    /// Keeps the prefetched blocks that are evicted unread from now on, for [`Self::take_in_vain`].
    pub fn keep_in_vain(&mut self) {
        let size = self.size.get();
        self.unread.get_or_insert_with(|| UnreadMarks::new(size)).keep_in_vain();
    }

    /// Calls `found` with each cache block of which blocks that were prefetched with reads have been
    /// evicted unread since the last call. The range is as long as there are such blocks.
    pub fn take_in_vain(&mut self, mut found: impl FnMut(BlockRange<A>)) {
        let Some(unread) = &mut self.unread else { return };
        for Evicted { key, sectors } in unread.take_in_vain() {
            let start = A::from_number(key * self.size.get());
            found(BlockRange::new(start, Blocks::new(sectors)));
        }
    }

    /// Outcome of prefetched blocks.
    pub fn prefetched(&self) -> PrefetchTally {
        self.unread.as_ref().map(UnreadMarks::tally).unwrap_or_default()
    }

    /// Blocks are no longer what the cache holds. A cache block without a valid block leaves.
    pub fn invalidate(&mut self, range: BlockRange<A>) {
        for CacheBlockPart { key, sectors } in pieces(range, self.size) {
            let Some(slot) = self.residents.resident(key) else { continue };
            if let Some(unread) = &mut self.unread {
                unread.lost(slot, sectors.clone());
            }
            if self.valid.unset(slot, sectors).is_empty {
                self.residents.remove(slot);
            }
        }
    }

    /// Calls `found` with the parts of a range in cache blocks that have not all of it in memory,
    /// neighbours joined. That is no use of them.
    pub fn incomplete(&self, range: BlockRange<A>, mut found: impl FnMut(BlockRange<A>)) {
        let size = self.size.get();
        let mut run = range.start.number()..range.start.number();
        let mut pass = |run: &Range<u64>| {
            if !run.is_empty() {
                let blocks = Blocks::new(run.end - run.start);
                found(BlockRange::new(A::from_number(run.start), blocks));
            }
        };
        for CacheBlockPart { key, sectors } in pieces(range, self.size) {
            let end = key * size + sectors.end;
            if self.has_all(key, sectors) {
                pass(&run);
                run.start = end;
            }
            run.end = end;
        }
        pass(&run);
    }

    fn has_all(&self, key: u64, sectors: Range<u64>) -> bool {
        self.residents.resident(key).is_some_and(|slot| self.valid.has_all(slot, sectors))
    }

    /// True if all blocks of a range are in memory; no use of them.
    pub fn contains(&self, range: BlockRange<A>) -> bool {
        pieces(range, self.size).all(|CacheBlockPart { key, sectors }| self.has_all(key, sectors))
    }
}
