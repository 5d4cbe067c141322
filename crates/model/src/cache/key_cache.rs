//! A cache of keys alone: one key an object, each of the same size.

use super::eviction::Eviction;
use super::key_policy::{ByKey, KeyPolicy};
use super::spec::CachePolicy;

/// A policy of eviction over keys, for miss-ratio curves and comparisons of policies.
///
/// A use of a key brings it into the cache. What [`super::ReadCache`] adds is which sectors of a block are
/// there.
#[derive(Debug)]
pub struct KeyCache {
    /// None: a cache of capacity 0.
    eviction: Option<Box<dyn Eviction>>,
    capacity: u32,
}

impl KeyCache {
    /// An empty cache of at most `capacity` keys. One of 0 stores none.
    pub fn new(policy: CachePolicy, capacity: u32) -> Self {
        Self { eviction: policy.build(capacity), capacity }
    }

    /// Like [`Self::new`], with a policy from outside this crate.
    pub fn with_policy(capacity: u32, policy: Box<dyn KeyPolicy>) -> Self {
        let eviction: Box<dyn Eviction> = Box::new(ByKey::new(capacity, policy));
        Self { eviction: (capacity > 0).then_some(eviction), capacity }
    }

    /// A use of `key`: whether it was in the cache.
    pub fn process(&mut self, key: u64) -> bool {
        self.eviction.as_mut().is_some_and(|eviction| eviction.process(key))
    }

    /// Uses of many keys, in order: how many were hits. Long slices are the fastest: memory is asked for
    /// the next keys ahead of their use.
    pub fn process_all(&mut self, keys: &[u64]) -> u64 {
        self.eviction.as_mut().map_or(0, |eviction| eviction.process_all(keys))
    }

    /// True if `key` is in the cache; no use of it.
    pub fn contains(&self, key: u64) -> bool {
        self.eviction.as_ref().is_some_and(|eviction| eviction.resident(key).is_some())
    }

    /// Takes `key` out, if it is in the cache.
    pub fn remove(&mut self, key: u64) {
        if let Some(eviction) = &mut self.eviction
            && let Some(slot) = eviction.resident(key)
        {
            eviction.remove(slot);
        }
    }

    /// Keys in the cache.
    pub fn len(&self) -> u32 {
        self.eviction.as_ref().map_or(0, |eviction| eviction.len())
    }

    /// True if no key is in the cache.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The most keys that the cache holds.
    pub fn capacity(&self) -> u32 {
        self.capacity
    }
}
