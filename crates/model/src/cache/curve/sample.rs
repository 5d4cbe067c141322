//! A sample of keys that is the same at every use.

use crate::cache::index::hash;

/// Keys whose hash lies below a threshold: about a share of the keys, each with all of its uses. A cache
/// smaller by that share misses about as often (Waldspurger et al., FAST 2015, section 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpatialSample {
    /// Sampled keys have a hash below it; of 2^32.
    threshold: u64,
}

const ALL: u64 = 1 << 32;
/// Keeps the sample apart from the hash tables' own use of the hash.
const SALT: u64 = 0xa409_3822_299f_31d0;

impl SpatialSample {
    /// Every key.
    pub const ALL: Self = Self { threshold: ALL };

    /// A sample of this share of the keys. Panics unless the share is in (0, 1].
    pub fn new(share: f64) -> Self {
        assert!(share > 0.0 && share <= 1.0, "a share of {share}");
        Self { threshold: ((ALL as f64 * share) as u64).max(1) }
    }

    /// True if `key` belongs to the sample.
    #[inline]
    pub fn contains(self, key: u64) -> bool {
        u64::from(Self::rank(key)) < self.threshold
    }

    /// The share of keys in the sample.
    pub fn share(self) -> f64 {
        self.threshold as f64 / ALL as f64
    }

    /// A key's hash: it belongs to samples whose threshold is above.
    #[inline]
    pub(super) fn rank(key: u64) -> u32 {
        (hash(key ^ SALT) >> 32) as u32
    }

    /// The largest sample without keys of this rank.
    pub(super) fn below(rank: u32) -> Self {
        Self { threshold: rank.into() }
    }

    /// Number of the part of all keys that `key` belongs to. Each part is a sample too.
    #[inline]
    pub(super) fn part(key: u64) -> usize {
        (hash(key ^ SALT) % PARTS as u64) as usize
    }
}

/// Parts that [`SpatialSample::part`] divides keys into.
pub(super) const PARTS: usize = 8;
