//! A cache of objects that have sizes of their own.

use super::eviction::ObjectEviction;
use super::spec::CachePolicy;

/// A policy of eviction over objects, each with a size in bytes: a cache of the kind that libCacheSim simulates.
///
/// A use of an object brings it into the cache, and others are evicted until there is room. An object that is
/// larger than the cache stays outside. One that comes with another size keeps that with which it was admitted.
#[derive(Debug)]
pub struct ObjectCache {
    eviction: Box<dyn ObjectEviction>,
    capacity_bytes: u64,
    held_bytes: u64,
    /// Size of the object in each slot.
    sizes: Vec<u64>,
}

impl ObjectCache {
    /// An empty cache. None for a policy that is not defined for sizes.
    pub fn new(policy: CachePolicy, capacity_bytes: u64) -> Option<Self> {
        let eviction = policy.row().build_for_objects?(capacity_bytes);
        Some(Self { eviction, capacity_bytes, held_bytes: 0, sizes: Vec::new() })
    }

    /// A use of an object: whether it was in the cache.
    pub fn process(&mut self, key: u64, bytes: u64) -> bool {
        let known = self.eviction.keys().find(key);
        match known {
            Some(slot) if self.eviction.is_resident(slot) => {
                self.eviction.hit(slot);
                return true;
            }
            Some(ghost) => self.eviction.forget_ghost(ghost),
            None => {}
        }
        if bytes <= self.capacity_bytes && self.eviction.admits(bytes) {
            self.make_room(bytes);
            self.put(key, bytes, known.is_some());
        }
        false
    }

    fn make_room(&mut self, bytes: u64) {
        while self.held_bytes + bytes > self.capacity_bytes
            && let Some(slot) = self.eviction.evict()
        {
            self.held_bytes -= self.sizes[slot as usize];
        }
    }

    fn put(&mut self, key: u64, bytes: u64, was_ghost: bool) {
        let slot = self.eviction.insert(key, bytes, was_ghost) as usize;
        if slot >= self.sizes.len() {
            self.sizes.resize(slot + 1, 0);
        }
        self.sizes[slot] = bytes;
        self.held_bytes += bytes;
    }

    /// Objects in the cache.
    pub fn len(&self) -> u32 {
        self.eviction.len()
    }

    /// True if no object is in the cache.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of the objects in the cache.
    pub fn held_bytes(&self) -> u64 {
        self.held_bytes
    }
}
