//! Objects of unlike sizes under every policy that is defined for them, against plain lists.

use std::collections::BTreeMap;

use freewheel_model::cache::{CachePolicy, KeyCache, ObjectCache, POLICIES};
use freewheel_units::Prng;
use proptest::prelude::*;

use super::policies::keys;

/// An object in a list, with a count of uses as its policy counts them.
#[derive(Debug, Clone, Copy)]
struct Object {
    key: u64,
    bytes: u64,
    uses: u32,
}

/// A cache of one list, the next victim first, as far as marks do not spare it.
#[derive(Debug)]
struct Plain {
    policy: CachePolicy,
    capacity: u64,
    list: Vec<Object>,
    /// SIEVE's hand: the key at which the next search begins.
    hand: Option<u64>,
}

fn bytes(list: &[Object]) -> u64 {
    list.iter().map(|object| object.bytes).sum()
}

impl Plain {
    fn hit(&mut self, at: usize) {
        match self.policy {
            CachePolicy::Fifo => {}
            CachePolicy::Clock | CachePolicy::Sieve => self.list[at].uses = 1,
            _ => {
                let object = self.list.remove(at);
                self.list.push(Object { uses: object.uses + 1, ..object });
            }
        }
    }

    fn evict(&mut self) {
        match self.policy {
            CachePolicy::Clock => {
                while self.list[0].uses > 0 {
                    let passed = self.list.remove(0);
                    self.list.push(Object { uses: 0, ..passed });
                }
                self.list.remove(0);
            }
            CachePolicy::Sieve => {
                let start = self.hand.and_then(|key| self.list.iter().position(|o| o.key == key));
                let mut at = start.unwrap_or(0);
                while self.list[at].uses > 0 {
                    self.list[at].uses = 0;
                    at = (at + 1) % self.list.len();
                }
                self.list.remove(at);
                self.hand = self.list.get(at).map(|object| object.key);
            }
            CachePolicy::Lfu => {
                let fewest = self.list.iter().map(|object| object.uses).min().unwrap();
                let at = self.list.iter().position(|object| object.uses == fewest).unwrap();
                self.list.remove(at);
            }
            _ => drop(self.list.remove(0)),
        }
    }

    fn process(&mut self, key: u64, size: u64) -> bool {
        if let Some(at) = self.list.iter().position(|object| object.key == key) {
            self.hit(at);
            return true;
        }
        if size <= self.capacity {
            while bytes(&self.list) + size > self.capacity {
                self.evict();
            }
            self.list.push(Object { key, bytes: size, uses: 0 });
        }
        false
    }
}

/// libCacheSim's S3-FIFO: three lists with limits in bytes.
#[derive(Debug, Default)]
struct S3Fifo {
    capacity: u64,
    small: Vec<Object>,
    main: Vec<Object>,
    ghosts: Vec<Object>,
    has_evicted: bool,
}

impl S3Fifo {
    fn evict(&mut self) {
        self.has_evicted = true;
        if bytes(&self.main) > self.capacity - self.capacity / 10 || self.small.is_empty() {
            while self.main[0].uses > 0 {
                let object = self.main.remove(0);
                self.main.push(Object { uses: object.uses.min(3) - 1, ..object });
            }
            self.main.remove(0);
            return;
        }
        while let Some(object) = (!self.small.is_empty()).then(|| self.small.remove(0)) {
            if object.uses >= 2 {
                self.main.push(Object { uses: 0, ..object });
                continue;
            }
            let room = self.capacity * 9 / 10;
            if object.bytes <= room {
                while bytes(&self.ghosts) + object.bytes > room {
                    self.ghosts.remove(0);
                }
                self.ghosts.push(object);
            }
            return;
        }
    }

    fn process(&mut self, key: u64, size: u64) -> bool {
        let held = self.small.iter_mut().chain(&mut self.main);
        if let Some(object) = held.into_iter().find(|object| object.key == key) {
            object.uses += 1;
            return true;
        }
        let before = self.ghosts.len();
        self.ghosts.retain(|object| object.key != key);
        let was_ghost = self.ghosts.len() < before;
        if size < self.capacity / 10 {
            while bytes(&self.small) + bytes(&self.main) + size > self.capacity {
                self.evict();
            }
            let is_full = bytes(&self.small) >= self.capacity / 10 && !self.has_evicted;
            let list = if was_ghost || is_full { &mut self.main } else { &mut self.small };
            list.push(Object { key, bytes: size, uses: 0 });
        }
        false
    }
}

fn oracle(policy: CachePolicy, capacity: u64) -> Box<dyn FnMut(u64, u64) -> bool> {
    if policy == CachePolicy::S3Fifo {
        let mut cache = S3Fifo { capacity, ..S3Fifo::default() };
        return Box::new(move |key, size| cache.process(key, size));
    }
    let mut cache = Plain { policy, capacity, list: Vec::new(), hand: None };
    Box::new(move |key, size| cache.process(key, size))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn objects_hit_and_miss_as_on_paper(seed: u64, capacity in 20u64..4_000) {
        let keys = keys(seed, 60, 1_500);
        let prng = &mut Prng::new(seed, "sizes");
        // Some are larger than the cache, and many smaller than a tenth of it.
        let mut sizes = BTreeMap::new();
        let mut defined = 0;
        for row in POLICIES {
            let Some(mut cache) = ObjectCache::new(row.policy, capacity) else { continue };
            defined += 1;
            let mut oracle = oracle(row.policy, capacity);
            for &key in &keys {
                let largest = if prng.chance(0.02) { 2 * capacity } else { 60 };
                let size = *sizes.entry(key).or_insert_with(|| 1 + prng.below(largest));
                prop_assert_eq!(cache.process(key, size), oracle(key, size), "{}", row.name);
                prop_assert!(cache.held_bytes() <= capacity);
            }
        }
        prop_assert_eq!(defined, 6);
    }
}

#[test]
fn objects_of_one_byte_are_keys() {
    let keys = keys(9, 300, 20_000);
    for row in POLICIES {
        let Some(mut objects) = ObjectCache::new(row.policy, 100) else { continue };
        let hits = keys.iter().filter(|&&key| objects.process(key, 1)).count() as u64;
        assert_eq!(hits, KeyCache::new(row.policy, 100).process_all(&keys), "{}", row.name);
        assert_eq!((objects.len(), objects.held_bytes()), (100, 100));
    }
}

#[test]
fn objects_keep_first_size_huge_stay_outside() {
    let mut cache = ObjectCache::new(CachePolicy::Lru, 100).unwrap();
    assert!(!cache.process(1, 40) && cache.process(1, 90) && cache.held_bytes() == 40);
    assert!(!cache.process(2, 101) && !cache.process(2, 101) && cache.len() == 1);
    assert!(cache.process(1, 40), "nothing was evicted for it");
}
