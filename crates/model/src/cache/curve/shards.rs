//! SHARDS: the miss-ratio curve of LRU from a sample of the keys.

use std::collections::BTreeMap;

use super::sample::{PARTS, SpatialSample};
use super::stack_distances::StackDistances;

/// An estimated miss ratio.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Misses as a share of the uses.
    pub miss_ratio: f64,
    /// Standard error of the miss ratio, from the spread of eight parts of the sample.
    pub standard_error: f64,
}

/// Stack distances of sampled keys, scaled up (Waldspurger et al., FAST 2015).
///
/// Each sampled use counts as one over the share of keys that was sampled at that time, which is the
/// paper's rescaling of earlier counts. Misses are divided by all uses, not by the sum of sampled counts.
/// This is the paper's correction (SHARDS-adj): the sample may have too many or too few hot keys. Their
/// uses hit in the smallest caches, so the difference counts as such hits.
///
/// The error comes from the spread of eight parts of the sample, each with a separate curve.
#[derive(Debug, Clone)]
pub struct Shards {
    sample: SpatialSample,
    /// The most keys in the sample; above it the sample shrinks.
    keys_max: usize,
    /// Keys in the sample by rank, if it may shrink.
    ranked: BTreeMap<(u32, u64), ()>,
    uses: u64,
    whole: ScaledDistances,
    parts: [ScaledDistances; PARTS],
}

impl Shards {
    /// A sample of a fixed share of the keys. Panics unless the share is in (0, 1].
    pub fn with_share(share: f64) -> Self {
        Self::new(SpatialSample::new(share), usize::MAX)
    }

    /// A sample of all keys that shrinks to at most `keys_max` keys, so memory is bounded. Panics for 0.
    pub fn with_keys(keys_max: usize) -> Self {
        assert!(keys_max > 0, "a sample holds at least one key");
        Self::new(SpatialSample::ALL, keys_max)
    }

    fn new(sample: SpatialSample, keys_max: usize) -> Self {
        let parts = [(); PARTS].map(|()| ScaledDistances::default());
        let (ranked, whole) = (BTreeMap::new(), ScaledDistances::default());
        Self { sample, keys_max, ranked, uses: 0, whole, parts }
    }

    /// A use of `key`.
    #[inline]
    pub fn process(&mut self, key: u64) {
        self.uses += 1;
        if self.sample.contains(key) {
            self.process_sampled(key);
        }
    }

    fn process_sampled(&mut self, key: u64) {
        let scale = 1.0 / self.sample.share();
        let is_new = self.whole.process(key, scale);
        self.parts[SpatialSample::part(key)].process(key, scale * PARTS as f64);
        if is_new && self.keys_max < usize::MAX {
            self.ranked.insert((SpatialSample::rank(key), key), ());
            while self.ranked.len() > self.keys_max {
                self.shrink();
            }
        }
    }

    /// Gives up the keys of the highest rank.
    fn shrink(&mut self) {
        let Some((&(rank, _), ())) = self.ranked.last_key_value() else { return };
        self.sample = SpatialSample::below(rank);
        for ((_, key), ()) in self.ranked.split_off(&(rank, 0)) {
            self.whole.distances.remove(key);
            self.parts[SpatialSample::part(key)].distances.remove(key);
        }
    }

    /// Uses so far, sampled or not.
    pub fn uses(&self) -> u64 {
        self.uses
    }

    /// The sample as it is now.
    pub fn sample(&self) -> SpatialSample {
        self.sample
    }

    /// Keys in the sample.
    pub fn sampled_keys(&self) -> u32 {
        self.whole.distances.len()
    }

    /// The miss ratio of an LRU cache of `capacity` keys; None without a use.
    pub fn miss_ratio(&self, capacity: u64) -> Option<Estimate> {
        let uses = self.uses as f64;
        let parts = self.parts.each_ref().map(|scaled| miss_ratio(scaled, capacity, uses));
        let mean = parts.iter().sum::<f64>() / PARTS as f64;
        let squares: f64 = parts.iter().map(|part| (part - mean) * (part - mean)).sum();
        // The variance of a mean is that of its eight terms, of which one degree of freedom is spent.
        let standard_error = (squares / ((PARTS - 1) * PARTS) as f64).sqrt();
        let miss_ratio = miss_ratio(&self.whole, capacity, uses).min(1.0);
        (self.uses > 0).then_some(Estimate { miss_ratio, standard_error })
    }
}

fn miss_ratio(scaled: &ScaledDistances, capacity: u64, uses: f64) -> f64 {
    scaled.misses(capacity) / uses
}

/// Stack distances among sampled keys as they would be among all.
#[derive(Debug, Clone, Default)]
struct ScaledDistances {
    distances: StackDistances,
    /// Uses that hit from a capacity on.
    hits_from: BTreeMap<u64, f64>,
    first_uses: f64,
}

impl ScaledDistances {
    /// A sampled use, which counts as `scale` uses; whether it is the key's first.
    fn process(&mut self, key: u64, scale: f64) -> bool {
        let distance = self.distances.process(key);
        match distance {
            Some(distance) => {
                let capacity = rounded_up((f64::from(distance) * scale).ceil() as u64);
                *self.hits_from.entry(capacity).or_default() += scale;
            }
            None => self.first_uses += scale,
        }
        distance.is_none()
    }

    fn misses(&self, capacity: u64) -> f64 {
        self.first_uses + self.hits_from.range(capacity + 1..).map(|row| row.1).sum::<f64>()
    }
}

/// The next number of at most nine significant bits: at most 0.4 % more, so that few numbers differ.
fn rounded_up(capacity: u64) -> u64 {
    let shift = capacity.checked_ilog2().unwrap_or(0).saturating_sub(8);
    capacity.div_ceil(1 << shift) << shift
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capacities_round_up_below_256th() {
        let rows =
            [(0, 0), (1, 1), (511, 511), (512, 512), (513, 514), (1023, 1024), (100_001, 100_096)];
        for (capacity, rounded) in rows {
            assert_eq!(rounded_up(capacity), rounded);
        }
        assert!((1..100_000).all(|capacity| rounded_up(capacity) - capacity <= capacity / 256));
    }
}
