//! Every policy against its paper's rules, key by key.

use freewheel_model::cache::{CachePolicy, KeyCache, POLICIES};
use freewheel_units::Prng;
use proptest::prelude::*;

use super::naive::naive;

/// A use of a key, or its removal.
#[derive(Debug, Clone, Copy)]
enum Event {
    Use(u64),
    Remove(u64),
}

/// Uses of keys as caches meet them: hot keys, loops that are longer than the cache, scans of new keys.
/// Keys lie as far apart as blocks of a volume may.
pub fn keys(seed: u64, universe: u64, count: usize) -> Vec<u64> {
    let prng = &mut Prng::new(seed, "keys");
    let (mut keys, mut fresh) = (Vec::new(), 1 << 40);
    while keys.len() < count {
        let length = 1 + prng.below(2 * universe);
        match prng.below(3) {
            0 => keys.extend((0..length).map(|_| prng.below(1 + prng.clone().below(universe)))),
            1 => keys.extend((0..length).map(|at| at % (1 + universe * 2 / 3))),
            _ => {
                fresh += length;
                keys.extend(fresh - length / 2..fresh);
            }
        }
    }
    keys.truncate(count);
    keys
}

/// Some of the keys are removed in place of their use.
fn events(seed: u64, universe: u64, removals: f64) -> Vec<Event> {
    let prng = &mut Prng::new(seed, "removals");
    let event = |key| if prng.chance(removals) { Event::Remove(key) } else { Event::Use(key) };
    keys(seed, universe, 1_500).into_iter().map(event).collect()
}

fn follows_its_paper(policy: CachePolicy, capacity: u32, events: &[Event]) {
    let mut cache = KeyCache::new(policy, capacity);
    let mut oracle = naive(policy, capacity as usize);
    for (at, &event) in events.iter().enumerate() {
        match event {
            Event::Use(key) => {
                let expected = oracle.process(key);
                assert_eq!(cache.contains(key), expected, "{policy} of {capacity}, {at}: {key}");
                assert_eq!(cache.process(key), expected);
            }
            Event::Remove(key) => {
                cache.remove(key);
                oracle.remove(key);
                assert!(!cache.contains(key));
            }
        }
        assert_eq!(cache.len() as usize, oracle.len(), "{policy} of {capacity}, {at}");
        assert!(cache.len() <= capacity);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn policies_hit_and_miss_as_papers_say(
        seed: u64, capacity in 1u32..40, room in 1u64..4
    ) {
        for row in POLICIES {
            let universe = 2 + u64::from(capacity) * room;
            for removals in [0.0, 0.05] {
                follows_its_paper(row.policy, capacity, &events(seed, universe, removals));
            }
        }
    }
}

#[test]
fn policies_with_per_cent_shares_follow_papers() {
    for row in POLICIES {
        for (seed, capacity) in [(1, 250), (2, 399), (3, 400)] {
            follows_its_paper(row.policy, capacity, &events(seed, 700, 0.001));
            let long: Vec<Event> = keys(seed, 900, 12_000).into_iter().map(Event::Use).collect();
            follows_its_paper(row.policy, capacity, &long);
        }
    }
}

#[test]
fn keys_in_long_slice_hit_as_single() {
    for row in POLICIES {
        let keys = keys(5, 5_000, 50_000);
        let (mut one, mut all) = [(); 2].map(|()| KeyCache::new(row.policy, 1_000)).into();
        let hits = keys.iter().filter(|&&key| one.process(key)).count();
        assert_eq!(all.process_all(&keys), hits as u64);
        assert_eq!(one.len(), 1_000);
    }
}

#[test]
fn cache_of_no_keys_stores_none() {
    for row in POLICIES {
        let mut cache = KeyCache::new(row.policy, 0);
        assert_eq!(cache.process_all(&[7, 7, 7]), 0);
        assert!(!cache.process(7) && !cache.contains(7) && cache.is_empty());
        cache.remove(7);
    }
}

#[test]
fn scan_resistant_policies_beat_lru() {
    // 60 hot keys, and scans that would flush a cache of 100.
    let mut keys = Vec::new();
    for round in 0..200u64 {
        keys.extend((0..3).flat_map(|_| 0..60));
        keys.extend((0..70).map(|at| 1_000_000 + round * 70 + at));
    }
    let hits = |policy| KeyCache::new(policy, 100).process_all(&keys);
    // These look no farther back than LRU does.
    let simple = [CachePolicy::Lru, CachePolicy::Fifo, CachePolicy::Clock];
    for row in POLICIES.iter().filter(|row| !simple.contains(&row.policy)) {
        assert!(hits(row.policy) > hits(CachePolicy::Lru) + 5_000, "{}", row.name);
    }
}
