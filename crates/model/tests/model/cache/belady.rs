//! MIN against its rule, and against every other choice of victims.

use freewheel_model::cache::{KeyCache, KnownFuture, POLICIES};
use freewheel_units::Prng;
use proptest::prelude::*;

use super::policies::keys;

/// Hits of the rule itself: looks ahead from every eviction, key by key. A cache of `capacity`.
fn by_rule(capacity: u64, uses: &[(u64, u64)]) -> Vec<bool> {
    let mut held: Vec<(u64, u64)> = Vec::new();
    let mut hits = Vec::new();
    for (at, &(key, size)) in uses.iter().enumerate() {
        let hit = held.iter().any(|(other, _)| *other == key);
        hits.push(hit);
        if hit || size > capacity {
            continue;
        }
        // Of keys that are never used again, the one that was used last leaves first.
        let next = |of: u64| {
            let ahead = uses[at..].iter().position(|(other, _)| *other == of);
            let last = uses.iter().rposition(|(other, _)| *other == of).unwrap();
            ahead.unwrap_or(uses.len() + last)
        };
        while held.iter().map(|(_, size)| size).sum::<u64>() + size > capacity {
            let farthest = (0..held.len()).max_by_key(|&at| next(held[at].0)).unwrap();
            held.remove(farthest);
        }
        held.push((key, size));
    }
    hits
}

/// The fewest misses that any choice of victims leads to.
fn fewest(capacity: usize, held: &[u64], uses: &[u64]) -> usize {
    let Some((&key, later)) = uses.split_first() else { return 0 };
    if held.contains(&key) {
        return fewest(capacity, held, later);
    }
    let with = |held: &[u64]| 1 + fewest(capacity, &[held, &[key]].concat(), later);
    if held.len() < capacity {
        return with(held);
    }
    let without = |victim: &u64| held.iter().copied().filter(|key| key != victim).collect();
    held.iter().map(|victim| with(Vec::<u64>::as_slice(&without(victim)))).min().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn min_follows_rule_for_keys_and_objects(seed: u64, capacity in 1u64..30) {
        let keys = keys(seed, 2 * capacity, 400);
        let prng = &mut Prng::new(seed, "sizes");
        let sizes: Vec<u64> = keys.iter().map(|_| 1 + prng.below(2 * capacity)).collect();
        let future = KnownFuture::new(&keys);
        for (capacity, sizes) in [(capacity, vec![1; keys.len()]), (5 * capacity, sizes)] {
            let mut hits = Vec::new();
            future.run(capacity, |at| sizes[at], |at, hit| {
                assert_eq!(at, hits.len());
                hits.push(hit);
            });
            let uses: Vec<(u64, u64)> = keys.iter().copied().zip(sizes.iter().copied()).collect();
            prop_assert_eq!(hits, by_rule(capacity, &uses));
        }
    }

    #[test]
    fn min_misses_least_of_all_choices(seed: u64, capacity in 1u32..4) {
        let prng = &mut Prng::new(seed, "few keys");
        let keys: Vec<u64> = (0..12).map(|_| prng.below(6)).collect();
        let fewest = fewest(capacity as usize, &[], &keys) as u64;
        prop_assert_eq!(KnownFuture::new(&keys).misses(capacity), fewest);
    }
}

#[test]
fn min_misses_no_more_than_policies() {
    let keys = keys(3, 3_000, 60_000);
    let future = KnownFuture::new(&keys);
    for capacity in [1, 10, 100, 1_000, 4_000] {
        let least = future.misses(capacity);
        for row in POLICIES {
            let misses = keys.len() as u64 - KeyCache::new(row.policy, capacity).process_all(&keys);
            assert!(least <= misses, "{} of {capacity}: {misses}, and MIN {least}", row.name);
        }
    }
    assert_eq!(KnownFuture::new(&[]).misses(5), 0);
    assert_eq!(KnownFuture::new(&[4, 4, 4]).misses(0), 3, "a cache of no keys");
}
