//! One cache of one policy.

use freewheel_model::cache::{BlockRange, CachePolicy, KeyPolicy, ReadCache, ReadCacheSpec};
use freewheel_units::{Op, VolumeBlock};

use super::counter::{Access, Counter};
use crate::cache_curves::result::MissRatio;
use crate::cache_curves::sizes::CACHE_BLOCK_BYTES;
use crate::ratio::ratio;

/// A read cache that gets missing blocks at once.
pub(in crate::cache_curves) struct CountedCache {
    cache: ReadCache<VolumeBlock>,
    missing: Vec<BlockRange<VolumeBlock>>,
}

impl CountedCache {
    pub fn new(policy: CachePolicy, capacity: u32) -> Self {
        let spec = ReadCacheSpec { policy, ..ReadCacheSpec::tr03(capacity) };
        Self { cache: ReadCache::new(spec), missing: Vec::new() }
    }

    pub fn with_policy(policy: Box<dyn KeyPolicy>, capacity: u32) -> Self {
        let cache = ReadCache::with_policy(ReadCacheSpec::tr03(capacity), policy);
        Self { cache, missing: Vec::new() }
    }
}

impl Counter for CountedCache {
    fn process(&mut self, accesses: &[Access]) {
        for access in accesses {
            let op = if access.is_read { Op::Read } else { Op::Write };
            self.cache.access(access.range, op, &mut self.missing);
            self.missing.drain(..).for_each(|fetched| self.cache.insert(fetched));
        }
    }

    fn begin_counting(&mut self) {
        self.cache.reset_counts();
    }

    fn miss_ratios(&mut self) -> Vec<MissRatio> {
        let reads = self.cache.reads();
        vec![MissRatio {
            size_bytes: u64::from(self.cache.spec().capacity) * CACHE_BLOCK_BYTES,
            requests: Some(ratio((reads.requests - reads.hits) as f64, reads.requests as f64)),
            bytes: ratio((reads.blocks - reads.hit_blocks) as f64, reads.blocks as f64),
            standard_error: None,
        }]
    }
}
