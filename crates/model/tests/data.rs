//! Caches on a real trace, which may not be redistributed.
//!
//! The misses are those that libCacheSim 0.3.5 counts with sizes ignored: its Python package's
//! `process_trace` with `ignore_obj_size`. They begin at 20 keys: below, libCacheSim's S3-FIFO admits no key, as
//! its small queue has room for none.
//!
//! Two policies have no row. In the source of 2024, a hit of LIRS outside the stack demotes a LIR key, which
//! the paper does not say, and the stack is limited instead of the ghosts. W-TinyLFU has another sketch, counts hits
//! of the main cache only, and admits no key below 100.
#![allow(missing_docs)]

use freewheel_model::cache::curve::LruCurve;
use freewheel_model::cache::{CachePolicy, KeyCache};
use freewheel_testkit::data;

/// The keys of the trace in order: records of 24 bytes, the key at 4.
fn keys() -> Vec<u64> {
    let path = data::file("traces/cloudPhysicsIO.oracleGeneral.bin.zst");
    let bytes = zstd::decode_all(std::fs::File::open(path).unwrap()).unwrap();
    let key = |record: &[u8]| u64::from_le_bytes(record[4..12].try_into().unwrap());
    bytes.chunks_exact(24).map(key).collect()
}

fn misses(policy: CachePolicy, size: u32, keys: &[u64]) -> u64 {
    keys.len() as u64 - KeyCache::new(policy, size).process_all(keys)
}

/// Cache sizes, and misses of each policy at each.
const SIZES: [u32; 11] = [20, 25, 64, 100, 500, 1000, 2048, 5000, 10_000, 20_000, 40_000];

const MISSES: [(CachePolicy, [u64; 11]); 5] = [
    (
        CachePolicy::Lru,
        [105561, 105036, 101578, 100215, 95398, 94823, 94156, 91527, 79438, 72053, 48994],
    ),
    (
        CachePolicy::Arc,
        [103955, 102522, 98595, 97330, 94218, 94027, 92752, 87770, 79413, 64422, 48999],
    ),
    (
        CachePolicy::S3Fifo,
        [103988, 102456, 98443, 97332, 94559, 94005, 92926, 85689, 75564, 59311, 49354],
    ),
    (
        CachePolicy::Sieve,
        [104258, 103992, 99232, 98130, 94379, 93975, 93365, 89798, 81059, 64431, 48999],
    ),
    (
        CachePolicy::TwoQ,
        [103769, 101930, 98041, 97458, 94565, 94117, 93025, 87879, 78831, 72103, 49142],
    ),
];

#[test]
fn policies_miss_exactly_as_libcachesim() {
    let keys = keys();
    assert_eq!(keys.len(), 113_872);
    for (policy, misses) in MISSES {
        for (size, misses) in SIZES.into_iter().zip(misses) {
            assert_eq!(self::misses(policy, size, &keys), misses, "{policy} of {size}");
        }
    }
}

#[test]
fn lru_curve_matches_caches() {
    let keys = keys();
    let mut curve = LruCurve::default();
    keys.iter().for_each(|&key| curve.process(key));
    assert_eq!(curve.distinct(), 48_974);
    for size in [1, 100, 2_048, 10_000, 40_000, 48_974] {
        assert_eq!(curve.misses(size), misses(CachePolicy::Lru, size, &keys), "{size}");
    }
}
