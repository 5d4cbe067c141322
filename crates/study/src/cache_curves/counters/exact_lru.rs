//! LRU, exact at every size.

use freewheel_model::cache::curve::ReadCurve;
use freewheel_units::Blocks;

use super::counter::{Access, Counter};
use crate::cache_curves::result::MissRatio;
use crate::cache_curves::sizes::CACHE_BLOCK_BYTES;
use crate::ratio::ratio;

/// Misses of LRU caches of these capacities, from stack distances.
pub(in crate::cache_curves) struct ExactLru {
    curve: ReadCurve,
    capacities: Vec<u32>,
    /// Misses of each capacity in the warm-up.
    warm_up: Vec<Misses>,
}

/// Misses of a cache, and how much was asked for.
#[derive(Debug, Clone, Copy, Default)]
struct Misses {
    requests: u64,
    missed_requests: u64,
    blocks: u64,
    missed_blocks: u64,
}

impl ExactLru {
    pub fn new(capacities: Vec<u32>) -> Self {
        let cache_block = Blocks::new(CACHE_BLOCK_BYTES / freewheel_units::BLOCK_BYTES);
        let warm_up = vec![Misses::default(); capacities.len()];
        Self { curve: ReadCurve::new(cache_block), capacities, warm_up }
    }

    fn misses(&self, capacity: u32) -> Misses {
        Misses {
            requests: self.curve.requests(),
            missed_requests: self.curve.missed_requests(capacity),
            blocks: self.curve.blocks(),
            missed_blocks: self.curve.missed_blocks(capacity),
        }
    }
}

impl Counter for ExactLru {
    fn process(&mut self, accesses: &[Access]) {
        for access in accesses {
            if access.is_read {
                self.curve.read(access.range)
            } else {
                self.curve.write(access.range)
            }
        }
    }

    fn begin_counting(&mut self) {
        self.warm_up = self.capacities.iter().map(|&capacity| self.misses(capacity)).collect();
    }

    fn miss_ratios(&mut self) -> Vec<MissRatio> {
        self.capacities
            .iter()
            .zip(&self.warm_up)
            .map(|(&capacity, before)| {
                let now = self.misses(capacity);
                MissRatio {
                    size_bytes: u64::from(capacity) * CACHE_BLOCK_BYTES,
                    requests: Some(ratio(
                        (now.missed_requests - before.missed_requests) as f64,
                        (now.requests - before.requests) as f64,
                    )),
                    bytes: ratio(
                        (now.missed_blocks - before.missed_blocks) as f64,
                        (now.blocks - before.blocks) as f64,
                    ),
                    standard_error: None,
                }
            })
            .collect()
    }
}
