//! The cache blocks of a read cache that are in memory.

use super::eviction::{Admission, Eviction};
use super::grouped_lru::GroupedLru;
use super::key_policy::{ByKey, KeyPolicy};
use super::spec::CachePolicy;

/// Cache blocks in memory, in numbered slots.
#[derive(Debug)]
pub(super) enum Residents {
    /// No memory.
    None,
    /// The policy of most caches, found without an indirect call.
    Lru(GroupedLru),
    /// Another one.
    Other(Box<dyn Eviction>),
}

impl Residents {
    /// Room for `capacity` cache blocks.
    pub fn new(policy: CachePolicy, capacity: u32) -> Self {
        match policy {
            CachePolicy::Lru if capacity > 0 => Self::Lru(GroupedLru::new(capacity)),
            _ => policy.build(capacity).map_or(Self::None, Self::Other),
        }
    }

    /// Room for `capacity` cache blocks under a policy from outside this crate.
    pub fn with_policy(capacity: u32, policy: Box<dyn KeyPolicy>) -> Self {
        match capacity {
            0 => Self::None,
            _ => Self::Other(Box::new(ByKey::new(capacity, policy))),
        }
    }

    /// Number of resident cache blocks.
    pub fn len(&self) -> u32 {
        match self {
            Self::None => 0,
            Self::Lru(lru) => lru.len(),
            Self::Other(eviction) => eviction.len(),
        }
    }

    /// Slot of a cache block in memory.
    #[inline]
    pub fn resident(&self, key: u64) -> Option<u32> {
        match self {
            Self::None => None,
            Self::Lru(lru) => lru.resident(key),
            Self::Other(eviction) => eviction.resident(key),
        }
    }

    /// A use of a cache block if it is in memory; its slot.
    #[inline]
    pub fn use_resident(&mut self, key: u64) -> Option<u32> {
        match self {
            Self::None => None,
            Self::Lru(lru) => lru.use_resident(key),
            Self::Other(eviction) => eviction.use_resident(key),
        }
    }

    /// Brings a cache block into memory, without a use. Err is its slot if it was there before. None
    /// when there is no memory.
    // Inlined, as are the steps of it: a prefetch does it for each cache block in a loop.
    #[inline(always)]
    pub fn enter(&mut self, key: u64) -> Option<Result<Admission, u32>> {
        match self {
            Self::None => None,
            Self::Lru(lru) => Some(lru.enter(key)),
            Self::Other(eviction) => Some(eviction.enter(key)),
        }
    }

    /// Takes a cache block out, as if it had never been there.
    pub fn remove(&mut self, slot: u32) {
        match self {
            Self::None => {}
            Self::Lru(lru) => lru.remove(slot),
            Self::Other(eviction) => eviction.remove(slot),
        }
    }
}
