//! The miss-ratio curve of any policy, at given sizes.

use super::sample::SpatialSample;
use crate::cache::{CachePolicy, KeyCache};

/// Caches of several capacities side by side. With a sample of the keys, each is smaller by the sample's
/// share: a miniature simulation (Waldspurger, Saemundsson, Ahmad and Park, USENIX ATC 2017).
#[derive(Debug)]
pub struct SimulatedCurve {
    sample: SpatialSample,
    caches: Vec<SimulatedCache>,
    /// Sampled keys that the caches have not seen yet.
    waiting: Vec<u64>,
    uses: u64,
}

#[derive(Debug)]
struct SimulatedCache {
    /// As given; the cache is smaller if keys are sampled.
    capacity: u32,
    cache: KeyCache,
    misses: u64,
}

/// Keys that one cache takes after the other: many enough that a cache stays close to the processor.
const BATCH: usize = 4096;

impl SimulatedCurve {
    /// Empty caches of these capacities.
    pub fn new(policy: CachePolicy, capacities: &[u32], sample: SpatialSample) -> Self {
        Self::with(capacities, sample, |capacity| KeyCache::new(policy, capacity))
    }

    /// Like [`Self::new`], with caches that `make` makes.
    pub fn with(capacities: &[u32], sample: SpatialSample, make: impl Fn(u32) -> KeyCache) -> Self {
        let caches = capacities
            .iter()
            .map(|&capacity| {
                let sampled = (f64::from(capacity) * sample.share()).round() as u32;
                // A cache that stores something has a place in the sample too.
                let sampled = sampled.max(u32::from(capacity > 0));
                SimulatedCache { capacity, cache: make(sampled), misses: 0 }
            })
            .collect();
        Self { sample, caches, waiting: Vec::with_capacity(BATCH), uses: 0 }
    }

    /// A use of `key`.
    pub fn process(&mut self, key: u64) {
        self.uses += 1;
        if self.sample.contains(key) {
            self.waiting.push(key);
            if self.waiting.len() == BATCH {
                self.run();
            }
        }
    }

    fn run(&mut self) {
        for SimulatedCache { cache, misses, .. } in &mut self.caches {
            *misses += self.waiting.len() as u64 - cache.process_all(&self.waiting);
        }
        self.waiting.clear();
    }

    /// Uses so far, sampled or not.
    pub fn uses(&self) -> u64 {
        self.uses
    }

    /// Each capacity with its misses, in the order given. Of a sample they are estimates: misses scaled up by its
    /// share, never more than the uses.
    pub fn misses(&mut self) -> Vec<(u32, f64)> {
        self.run();
        let share = self.sample.share();
        let uses = self.uses as f64;
        self.caches.iter().map(|cache| (cache.capacity, misses(cache, share, uses))).collect()
    }
}

fn misses(cache: &SimulatedCache, share: f64, uses: f64) -> f64 {
    (cache.misses as f64 / share).min(uses)
}
