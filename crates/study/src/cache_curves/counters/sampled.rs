//! Caches that see a sample of the cache blocks. Writes are no uses there, and leave no valid block behind.

use freewheel_model::cache::KeyCache;
use freewheel_model::cache::curve::{Shards, SimulatedCurve, SpatialSample};

use super::counter::{Access, Counter, uses};
use crate::cache_curves::result::MissRatio;
use crate::cache_curves::sizes::{CACHE_BLOCK_BYTES, Share};

/// LRU by SHARDS.
pub(in crate::cache_curves) struct SampledLru {
    shards: Shards,
    capacities: Vec<u32>,
    /// As it was when the warm-up ended.
    warm_up: Shards,
}

impl SampledLru {
    pub fn new(capacities: Vec<u32>, share: Share) -> Self {
        let shards = Shards::with_share(share.get());
        Self { warm_up: shards.clone(), shards, capacities }
    }
}

/// Misses with their standard error.
#[derive(Debug, Clone, Copy, Default)]
struct EstimatedMisses {
    misses: f64,
    error: f64,
}

fn misses(shards: &Shards, capacity: u32) -> EstimatedMisses {
    let uses = shards.uses() as f64;
    let estimate = shards.miss_ratio(capacity.into());
    estimate.map_or_else(EstimatedMisses::default, |estimate| EstimatedMisses {
        misses: estimate.miss_ratio * uses,
        error: estimate.standard_error * uses,
    })
}

impl Counter for SampledLru {
    fn process(&mut self, accesses: &[Access]) {
        uses(accesses).for_each(|of| self.shards.process(of.key));
    }

    fn begin_counting(&mut self) {
        self.warm_up = self.shards.clone();
    }

    fn miss_ratios(&mut self) -> Vec<MissRatio> {
        let counted = ((self.shards.uses() - self.warm_up.uses()) as f64).max(1.0);
        self.capacities
            .iter()
            .map(|&capacity| {
                let (now, before) =
                    (misses(&self.shards, capacity), misses(&self.warm_up, capacity));
                // Both contain the warm-up's misses, so the error of the difference is no larger than this.
                let error = (now.error * now.error + before.error * before.error).sqrt();
                MissRatio {
                    size_bytes: u64::from(capacity) * CACHE_BLOCK_BYTES,
                    requests: None,
                    bytes: ((now.misses - before.misses) / counted).clamp(0.0, 1.0),
                    standard_error: Some(error / counted),
                }
            })
            .collect()
    }
}

/// Any policy in miniature.
pub(in crate::cache_curves) struct SampledPolicy {
    curve: SimulatedCurve,
    /// Uses and misses of each capacity in the warm-up.
    warm_up_uses: u64,
    warm_up: Vec<f64>,
}

impl SampledPolicy {
    /// Caches that `make` makes of their capacity.
    pub fn new(capacities: &[u32], share: Share, make: impl Fn(u32) -> KeyCache) -> Self {
        let curve = SimulatedCurve::with(capacities, SpatialSample::new(share.get()), make);
        Self { curve, warm_up_uses: 0, warm_up: vec![0.0; capacities.len()] }
    }
}

impl Counter for SampledPolicy {
    fn process(&mut self, accesses: &[Access]) {
        uses(accesses).for_each(|of| self.curve.process(of.key));
    }

    fn begin_counting(&mut self) {
        self.warm_up_uses = self.curve.uses();
        self.warm_up = self.curve.misses().into_iter().map(|(_, misses)| misses).collect();
    }

    fn miss_ratios(&mut self) -> Vec<MissRatio> {
        let counted = ((self.curve.uses() - self.warm_up_uses) as f64).max(1.0);
        let all = self.curve.misses().into_iter().zip(&self.warm_up);
        all.map(|((capacity, misses), before)| MissRatio {
            size_bytes: u64::from(capacity) * CACHE_BLOCK_BYTES,
            requests: None,
            bytes: ((misses - before) / counted).clamp(0.0, 1.0),
            standard_error: None,
        })
        .collect()
    }
}
