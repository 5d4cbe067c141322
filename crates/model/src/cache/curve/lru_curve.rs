//! The exact miss-ratio curve of LRU.

use super::stack_distances::StackDistances;

/// Uses of keys, counted by the smallest LRU cache in which each hits.
#[derive(Debug, Clone, Default)]
pub struct LruCurve {
    distances: StackDistances,
    histogram: DistanceHistogram,
}

impl LruCurve {
    /// A use of `key`.
    pub fn process(&mut self, key: u64) {
        let distance = self.distances.process(key);
        self.histogram.add(distance);
    }

    /// Uses so far.
    pub fn uses(&self) -> u64 {
        self.histogram.uses()
    }

    /// Distinct keys so far: no larger cache misses less.
    pub fn distinct(&self) -> u32 {
        self.distances.len()
    }

    /// Misses of an LRU cache of `capacity` keys.
    pub fn misses(&self, capacity: u32) -> u64 {
        self.histogram.misses(capacity)
    }

    /// Misses of LRU caches of 0, 1, 2, ... keys, up to the size from which on there are no fewer.
    pub fn all_misses(&self) -> impl Iterator<Item = u64> {
        self.histogram.all_misses()
    }
}

/// Uses by their distance, and first uses, which have none.
#[derive(Debug, Clone, Default)]
pub(super) struct DistanceHistogram {
    /// At each distance - 1.
    counts: Vec<u64>,
    first_uses: u64,
}

impl DistanceHistogram {
    pub fn add(&mut self, distance: Option<u32>) {
        let Some(distance) = distance else {
            self.first_uses += 1;
            return;
        };
        let at = distance as usize - 1;
        if at >= self.counts.len() {
            self.counts.resize(at + 1, 0);
        }
        self.counts[at] += 1;
    }

    pub fn uses(&self) -> u64 {
        self.first_uses + self.counts.iter().sum::<u64>()
    }

    pub fn misses(&self, capacity: u32) -> u64 {
        self.first_uses + self.counts.iter().skip(capacity as usize).sum::<u64>()
    }

    pub fn all_misses(&self) -> impl Iterator<Item = u64> {
        let hits = self.counts.iter().scan(self.uses(), |misses, count| {
            *misses -= count;
            Some(*misses)
        });
        std::iter::once(self.uses()).chain(hits)
    }
}
