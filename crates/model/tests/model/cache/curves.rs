//! Curves against caches that are simulated one by one.

use freewheel_model::cache::curve::{LruCurve, ReadCurve, Shards, SimulatedCurve, SpatialSample};
use freewheel_model::cache::{
    BlockRange, CachePolicy, KeyCache, POLICIES, ReadCache, ReadCacheSpec,
};
use freewheel_units::{Blocks, Op, Prng, VolumeBlock};

use super::policies::keys;

fn misses(policy: CachePolicy, capacity: u32, keys: &[u64]) -> u64 {
    keys.len() as u64 - KeyCache::new(policy, capacity).process_all(keys)
}

/// Keys that follow a power of about 1: key k is used about as often as 1 / k.
fn skewed(seed: u64, universe: u64, count: usize) -> Vec<u64> {
    let prng = &mut Prng::new(seed, "skewed");
    let key = |prng: &mut Prng| libm::pow(universe as f64, prng.unit()) as u64;
    (0..count).map(|_| key(prng)).collect()
}

#[test]
fn lru_curve_matches_caches_of_every_size() {
    for seed in 0..10 {
        let keys = keys(seed, 60, 4_000);
        let mut curve = LruCurve::default();
        keys.iter().for_each(|&key| curve.process(key));
        let sizes = 0..=curve.distinct() + 1;
        let simulated: Vec<u64> = sizes.map(|size| misses(CachePolicy::Lru, size, &keys)).collect();
        let found: Vec<u64> = (0..simulated.len() as u32).map(|size| curve.misses(size)).collect();
        assert_eq!((found, curve.uses()), (simulated.clone(), 4_000));
        let all: Vec<u64> = curve.all_misses().collect();
        assert_eq!(all, simulated[..all.len()]);
        assert_eq!(all.last(), simulated.last());
    }
}

/// A read cache that takes a request cache block by cache block.
struct BlockByBlock {
    cache: ReadCache<VolumeBlock>,
    missed_requests: u64,
    missed_blocks: u64,
}

impl BlockByBlock {
    fn new(capacity: u32) -> Self {
        let cache = ReadCache::new(ReadCacheSpec::tr03(capacity));
        Self { cache, missed_requests: 0, missed_blocks: 0 }
    }

    fn access(&mut self, range: BlockRange<VolumeBlock>, op: Op) {
        let (mut missing, mut missed) = (Vec::new(), 0);
        let (mut at, end) = (range.start.get(), range.end().get());
        while at < end {
            let next = end.min((at / 8 + 1) * 8);
            let piece = BlockRange::new(VolumeBlock::new(at), Blocks::new(next - at));
            self.cache.access(piece, op, &mut missing);
            missing.iter().for_each(|&fetched| self.cache.insert(fetched));
            missed += missing.iter().map(|run| run.blocks.get()).sum::<u64>();
            at = next;
        }
        self.missed_requests += u64::from(missed > 0);
        self.missed_blocks += missed;
    }
}

#[test]
fn read_curve_matches_caches_of_every_size() {
    for seed in 0..8 {
        let mut curve = ReadCurve::new(Blocks::new(8));
        let mut caches: Vec<BlockByBlock> = (0..45).map(BlockByBlock::new).collect();
        let prng = &mut Prng::new(seed, "reads and writes");
        let mut reads = 0;
        for _ in 0..3_000 {
            let start = prng.below(1 + prng.clone().below(320));
            let range = BlockRange::new(VolumeBlock::new(start), Blocks::new(1 + prng.below(20)));
            let op = if prng.chance(0.7) { Op::Read } else { Op::Write };
            match op {
                Op::Read => curve.read(range),
                _ => curve.write(range),
            }
            reads += u64::from(op == Op::Read);
            caches.iter_mut().for_each(|cache| cache.access(range, op));
        }
        assert_eq!(curve.requests(), reads);
        assert!((curve.distinct() as usize) < caches.len());
        for (size, cache) in caches.iter().enumerate() {
            let found = (curve.missed_requests(size as u32), curve.missed_blocks(size as u32));
            assert_eq!(found, (cache.missed_requests, cache.missed_blocks), "{seed}: {size}");
        }
        assert_eq!(curve.missed_blocks(0), curve.blocks());
    }
}

/// Errors of an estimated curve over many sizes.
#[derive(Debug, Default)]
struct Errors {
    mean: f64,
    mean_standard_error: f64,
    worst_in_standard_errors: f64,
}

fn errors(shards: &Shards, exact: &LruCurve) -> Errors {
    let mut errors = Errors::default();
    for size in (100..=20_000).step_by(100) {
        let estimate = shards.miss_ratio(size).unwrap();
        let exact = exact.misses(size as u32) as f64 / exact.uses() as f64;
        let error = (estimate.miss_ratio - exact).abs();
        errors.mean += error / 200.0;
        errors.mean_standard_error += estimate.standard_error / 200.0;
        let in_standard_errors = error / estimate.standard_error;
        errors.worst_in_standard_errors = errors.worst_in_standard_errors.max(in_standard_errors);
    }
    errors
}

#[test]
fn sampled_lru_curve_within_stated_error() {
    for seed in 0..6 {
        let keys = skewed(seed, 100_000, 400_000);
        let mut exact = LruCurve::default();
        let (mut share, mut fixed) = (Shards::with_share(0.05), Shards::with_keys(2_000));
        for &key in &keys {
            exact.process(key);
            share.process(key);
            fixed.process(key);
        }
        assert!(fixed.sampled_keys() <= 2_000 && fixed.sample().share() < 0.1);
        for shards in [share, fixed] {
            let errors = errors(&shards, &exact);
            assert!(errors.mean < 0.01 && errors.mean_standard_error < 0.01, "{errors:?}");
            assert!(errors.worst_in_standard_errors < 4.0, "{errors:?}");
        }
    }
}

#[test]
fn sample_of_all_keys_is_exact() {
    let keys = skewed(3, 5_000, 50_000);
    let (mut exact, mut shards) = (LruCurve::default(), Shards::with_share(1.0));
    for &key in &keys {
        exact.process(key);
        shards.process(key);
    }
    // Sizes of nine significant bits, to which distances are rounded up.
    for size in (0..512).chain((512..1024).step_by(2)).chain((2048..4096).step_by(8)) {
        let expected = exact.misses(size) as f64 / 50_000.0;
        assert_eq!(shards.miss_ratio(size.into()).unwrap().miss_ratio, expected, "{size}");
    }
    assert_eq!(Shards::with_keys(9).miss_ratio(1), None);
}

#[test]
fn bounded_sample_memory_does_not_grow() {
    let mut shards = Shards::with_keys(100);
    for key in 0..200_000 {
        shards.process(key);
        assert!(shards.sampled_keys() <= 100);
    }
    // A share of 100 in 200,000, and every use a miss.
    assert!((2.5e-4..1e-3).contains(&shards.sample().share()));
    let estimate = shards.miss_ratio(1_000_000).unwrap();
    assert!(estimate.miss_ratio > 0.9, "{estimate:?}");
}

#[test]
fn simulated_curves_match_single_caches() {
    let keys = keys(8, 400, 30_000);
    let sizes = [0, 1, 10, 100, 300, 1_000];
    for row in POLICIES {
        let mut curve = SimulatedCurve::new(row.policy, &sizes, SpatialSample::ALL);
        keys.iter().for_each(|&key| curve.process(key));
        let single = sizes.map(|size| (size, misses(row.policy, size, &keys) as f64));
        assert_eq!((curve.misses(), curve.uses()), (single.to_vec(), 30_000));
    }
}

#[test]
fn sampled_simulation_near_whole_every_policy() {
    let keys = skewed(4, 200_000, 1_000_000);
    for row in POLICIES {
        let sizes = [2_000, 20_000];
        let mut curve = SimulatedCurve::new(row.policy, &sizes, SpatialSample::new(0.1));
        keys.iter().for_each(|&key| curve.process(key));
        for (size, estimate) in curve.misses() {
            let error = (estimate - misses(row.policy, size, &keys) as f64) / keys.len() as f64;
            assert!(error.abs() < 0.02, "{} of {size}: {error}", row.name);
        }
    }
}
