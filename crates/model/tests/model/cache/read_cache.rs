//! The read cache against a map of valid sectors.

use std::collections::BTreeMap;

use freewheel_model::cache::{
    BlockRange, CachePolicy, HitCounts, KeyCache, POLICIES, PrefetchCounts, PrefetchKind,
    PrefetchTally, ReadCache, ReadCacheSpec,
};
use freewheel_units::{Blocks, Op, Prng, VolumeBlock};
use proptest::prelude::*;

use super::policies::keys;

fn range(start: u64, blocks: u64) -> BlockRange<VolumeBlock> {
    BlockRange::new(VolumeBlock::new(start), Blocks::new(blocks))
}

/// A read that brings in what is missing; what that was.
fn read(
    cache: &mut ReadCache<VolumeBlock>,
    wanted: BlockRange<VolumeBlock>,
) -> Vec<BlockRange<VolumeBlock>> {
    let mut missing = Vec::new();
    cache.access(wanted, Op::Read, &mut missing);
    missing.iter().for_each(|&fetched| cache.insert(fetched));
    missing
}

fn blocks(range: BlockRange<VolumeBlock>) -> std::ops::Range<u64> {
    range.start.get()..range.end().get()
}

/// The valid blocks of a cache block, with how those came that no read has asked for yet.
type Valid = BTreeMap<u64, Option<PrefetchKind>>;

/// LRU over cache blocks, each with a map of its valid blocks: the longest unused one comes first.
struct Plain {
    spec: ReadCacheSpec,
    cached: Vec<(u64, Valid)>,
    prefetched: PrefetchTally,
}

impl Plain {
    /// The cache block, which becomes the last used one.
    fn renew(&mut self, key: u64) -> Option<&mut Valid> {
        let at = self.cached.iter().position(|row| row.0 == key)?;
        let row = self.cached.remove(at);
        self.cached.push(row);
        self.cached.last_mut().map(|row| &mut row.1)
    }

    fn valid(&mut self, block: u64) -> Option<&mut Valid> {
        let key = block / self.spec.cache_block.get();
        self.cached.iter_mut().find(|row| row.0 == key).map(|row| &mut row.1)
    }

    fn put(&mut self, block: u64, came: Option<PrefetchKind>) {
        if self.valid(block).is_none() && self.spec.capacity > 0 {
            if self.cached.len() == self.spec.capacity as usize {
                let evicted = self.cached.remove(0).1;
                evicted.into_values().flatten().for_each(|kind| self.prefetched[kind].wasted += 1);
            }
            let key = block / self.spec.cache_block.get();
            self.cached.push((key, BTreeMap::new()));
        }
        let was_valid = self.valid(block).is_some_and(|valid| valid.contains_key(&block));
        if let Some(kind) = came.filter(|_| !was_valid) {
            self.prefetched[kind].brought += 1;
            self.prefetched[kind].wasted += u64::from(self.spec.capacity == 0);
        }
        self.valid(block).map(|valid| valid.entry(block).or_insert(came));
    }

    /// Takes the mark of a block.
    fn unmark(&mut self, block: u64) -> Option<PrefetchKind> {
        self.valid(block)?.get_mut(&block)?.take()
    }

    fn mark_used(&mut self, block: u64) {
        if let Some(kind) = self.unmark(block) {
            self.prefetched[kind].used += 1;
        }
    }

    fn mark_lost(&mut self, block: u64) {
        if let Some(kind) = self.unmark(block) {
            self.prefetched[kind].wasted += 1;
        }
    }

    /// Blocks that are missing.
    fn access(&mut self, wanted: BlockRange<VolumeBlock>, op: Op) -> Vec<u64> {
        let mut missing = Vec::new();
        let allocates = self.spec.write_allocate;
        for block in blocks(wanted) {
            let key = block / self.spec.cache_block.get();
            if op == Op::Read || op == Op::Write && allocates {
                self.renew(key);
            }
            match op {
                Op::Read => self.mark_used(block),
                Op::Write | Op::Trim => self.mark_lost(block),
                Op::Flush => {}
            }
            match op {
                Op::Read if self.valid(block).is_some_and(|valid| valid.contains_key(&block)) => {}
                Op::Read => missing.push(block),
                Op::Write if allocates => self.put(block, None),
                Op::Write => _ = self.valid(block).map(|valid| valid.insert(block, None)),
                Op::Trim => _ = self.valid(block).map(|valid| valid.remove(&block)),
                Op::Flush => {}
            }
        }
        if op == Op::Trim {
            self.cached.retain(|row| !row.1.is_empty());
        }
        missing
    }
}

fn random_range(prng: &mut Prng, spec: &ReadCacheSpec) -> BlockRange<VolumeBlock> {
    let unit = spec.cache_block.get();
    let volume = unit * (u64::from(spec.capacity) * 2 + 3);
    let start = prng.below(volume);
    range(start, 1 + prng.below((3 * unit).min(volume - start)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn read_cache_misses_as_map_of_blocks(
        seed: u64, capacity in 0u32..12, cache_block in prop::sample::select(vec![1u64, 3, 8, 128]),
        write_allocate: bool
    ) {
        let cache_block = Blocks::new(cache_block);
        let spec = ReadCacheSpec { cache_block, write_allocate, ..ReadCacheSpec::tr03(capacity) };
        let mut cache = ReadCache::new(spec);
        let mut plain = Plain { spec, cached: Vec::new(), prefetched: PrefetchTally::default() };
        let prng = &mut Prng::new(seed, "requests");
        let mut missing = Vec::new();
        for _ in 0..300 {
            let wanted = random_range(prng, &spec);
            let op = [Op::Read, Op::Read, Op::Write, Op::Trim, Op::Flush][prng.below(5) as usize];
            cache.access(wanted, op, &mut missing);
            let expected = plain.access(wanted, op);
            let found: Vec<u64> = missing.iter().flat_map(|&run| blocks(run)).collect();
            prop_assert_eq!(&found, &expected);
            let are_apart = missing.windows(2).all(|two| two[0].end() < two[1].start);
            prop_assert!(are_apart, "neighbours are not joined: {:?}", missing);
            // Now and then the data never come, or a prefetch does.
            if prng.chance(0.9) {
                missing.iter().for_each(|&run| cache.insert(run));
                expected.into_iter().for_each(|block| plain.put(block, None));
            }
            if prng.chance(0.3) {
                let prefetched = random_range(prng, &spec);
                let kind = PrefetchKind::ALL[prng.below(4) as usize];
                cache.prefetch(prefetched, kind);
                blocks(prefetched).for_each(|block| plain.put(block, Some(kind)));
                if prng.chance(0.2) {
                    cache.prefetch_was_used(wanted);
                    blocks(wanted).for_each(|block| plain.mark_used(block));
                }
            }
            prop_assert_eq!(cache.prefetched(), plain.prefetched);
            prop_assert_eq!(cache.len() as usize, plain.cached.len());
            let probe = random_range(prng, &spec);
            let is_there = |block: u64| plain.valid(block).is_some_and(|v| v.contains_key(&block));
            prop_assert_eq!(cache.contains(probe), blocks(probe).all(is_there));
        }
    }
}

#[test]
fn whole_cache_blocks_hit_as_keys() {
    for row in POLICIES {
        let spec = ReadCacheSpec { policy: row.policy, ..ReadCacheSpec::tr03(50) };
        let (mut cache, mut keyed) = (ReadCache::new(spec), KeyCache::new(row.policy, 50));
        for key in keys(11, 120, 20_000) {
            let is_hit = read(&mut cache, range(key * 8, 8)).is_empty();
            assert_eq!(is_hit, keyed.process(key), "{}", row.name);
        }
        assert!(cache.reads().hits > 1_000);
    }
}

#[test]
fn prefetched_blocks_are_read_lost_or_held() {
    for row in POLICIES {
        let spec = ReadCacheSpec { policy: row.policy, ..ReadCacheSpec::tr03(50) };
        let mut cache = ReadCache::new(spec);
        let prng = &mut Prng::new(3, row.name);
        for key in keys(11, 120, 20_000) {
            read(&mut cache, range(key * 8 + prng.below(8), 4));
            if prng.chance(0.2) {
                let kind = PrefetchKind::ALL[prng.below(4) as usize];
                cache.prefetch(range(prng.below(1_200), 1 + prng.below(40)), kind);
            }
        }
        let tally = cache.prefetched();
        let there = |counts: PrefetchCounts| counts.brought - counts.used - counts.wasted;
        let expected: u64 = PrefetchKind::ALL.iter().map(|&kind| there(tally[kind])).sum();
        assert!(PrefetchKind::ALL.iter().all(|&kind| tally[kind].wasted > 100), "{}", row.name);
        // A read of everything uses what is still there.
        cache.access(range(0, 1_300), Op::Read, &mut Vec::new());
        let used = |tally: PrefetchTally| PrefetchKind::ALL.iter().map(|&k| tally[k].used).sum();
        let (before, after): (u64, u64) = (used(tally), used(cache.prefetched()));
        assert_eq!(after - before, expected, "{}", row.name);
    }
}

#[test]
fn hits_counted_by_request_and_block() {
    let mut cache = ReadCache::new(ReadCacheSpec::tr03(4));
    assert_eq!(read(&mut cache, range(0, 10)), [range(0, 10)]);
    assert_eq!(read(&mut cache, range(2, 4)), []);
    assert_eq!(read(&mut cache, range(8, 4)), [range(10, 2)]);
    let reads = HitCounts { requests: 3, hits: 1, blocks: 18, hit_blocks: 6 };
    assert_eq!(cache.reads(), reads);
    assert_eq!(reads.miss_ratio(), Some(2.0 / 3.0));
    let mut missing = vec![range(0, 1)];
    cache.access(range(12, 8), Op::Write, &mut missing);
    assert_eq!(missing, []);
    // Four blocks lie in a cache block that is there, four in one that is not.
    let writes = HitCounts { requests: 1, hits: 0, blocks: 8, hit_blocks: 4 };
    assert_eq!((cache.reads(), cache.writes()), (reads, writes));
    assert_eq!(read(&mut cache, range(8, 16)), [range(16, 8)]);
    cache.reset_counts();
    assert_eq!((cache.reads(), cache.reads().miss_ratio()), (HitCounts::default(), None));
}

#[test]
fn cache_of_size_0_holds_nothing() {
    for row in POLICIES {
        let spec =
            ReadCacheSpec { policy: row.policy, write_allocate: true, ..ReadCacheSpec::tr03(0) };
        let mut cache = ReadCache::new(spec);
        for _ in 0..3 {
            assert_eq!(read(&mut cache, range(5, 20)), [range(5, 20)]);
            cache.access(range(5, 20), Op::Write, &mut Vec::new());
            cache.access(range(5, 20), Op::Trim, &mut Vec::new());
        }
        assert!(cache.is_empty() && !cache.contains(range(5, 1)));
        assert_eq!((cache.reads().hit_blocks, cache.writes().hit_blocks), (0, 0));
    }
}

#[test]
fn write_without_allocate_is_no_use() {
    let evicted_first = |write_allocate| {
        let mut cache = ReadCache::new(ReadCacheSpec { write_allocate, ..ReadCacheSpec::tr03(2) });
        read(&mut cache, range(0, 8));
        read(&mut cache, range(8, 8));
        cache.access(range(0, 8), Op::Write, &mut Vec::new());
        read(&mut cache, range(16, 8));
        [0, 8].map(|start| cache.contains(range(start, 8)))
    };
    assert_eq!((evicted_first(false), evicted_first(true)), ([false, true], [true, false]));
    assert_eq!(ReadCacheSpec::tr03(2).policy, CachePolicy::Lru);
}
