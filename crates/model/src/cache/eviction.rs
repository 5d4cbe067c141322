//! Operations of every eviction policy.

use std::fmt;

use super::keys::Keys;

/// Outcome for a key that was admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Admission {
    /// Slot of the key.
    pub slot: u32,
    /// Slot of the key that was evicted for it. If that key was forgotten, the two may be the same.
    pub evicted: Option<u32>,
}

/// A policy of eviction, with the keys that it knows: resident ones, and ghosts, of which only the key is
/// left.
///
/// A resident key keeps its slot until it is evicted. An admitted key is resident when `admit` returns.
///
/// The caller guarantees that `hit` and `remove` get slots of resident keys, and `admit` a key that is not
/// resident. `fifo.rs` is the shortest policy.
pub(super) trait Eviction: Send + fmt::Debug {
    /// The keys that are known.
    fn keys(&self) -> &Keys;

    /// True if the key in this slot is resident, and no ghost.
    fn is_resident(&self, slot: u32) -> bool;

    /// A resident key is used.
    fn hit(&mut self, slot: u32);

    /// Makes a key resident, and evicts another if the cache is full. `ghost` is the slot of the key if
    /// it is known as a ghost.
    fn admit(&mut self, key: u64, ghost: Option<u32>) -> Admission;

    /// Takes a resident key out, as if it had never been there.
    fn remove(&mut self, slot: u32);

    /// Resident keys.
    fn len(&self) -> u32;

    /// Brings the memory of a key that will be used very soon near the processor.
    fn warm_lines(&self, key: u64);

    /// Announces what the next eviction will need.
    fn warm_victim(&self);

    /// Slot of a resident key.
    #[inline]
    fn resident(&self, key: u64) -> Option<u32> {
        self.keys().find(key).filter(|&slot| self.is_resident(slot))
    }

    /// A use of `key` if it is resident; its slot.
    #[inline]
    fn use_resident(&mut self, key: u64) -> Option<u32> {
        let slot = self.resident(key)?;
        self.hit(slot);
        Some(slot)
    }

    /// Makes `key` resident without a use. Err is its slot if it was resident before.
    #[inline]
    fn enter(&mut self, key: u64) -> Result<Admission, u32> {
        match self.keys().find(key) {
            Some(slot) if self.is_resident(slot) => Err(slot),
            ghost => Ok(self.admit(key, ghost)),
        }
    }

    /// A use of `key`, which is resident afterwards; whether it was before.
    #[inline]
    fn process(&mut self, key: u64) -> bool {
        match self.keys().find(key) {
            Some(slot) if self.is_resident(slot) => {
                self.hit(slot);
                true
            }
            ghost => {
                self.admit(key, ghost);
                false
            }
        }
    }

    /// Uses of many keys, in order; how many of them were hits.
    fn process_all(&mut self, keys: &[u64]) -> u64 {
        let mut hits = 0;
        for (at, &key) in keys.iter().enumerate() {
            // The table's cell first, then what the cell leads to: each takes a while to arrive.
            if let Some(&later) = keys.get(at + CELL_AHEAD) {
                self.keys().warm_lines(later);
            }
            if let Some(&soon) = keys.get(at + SLOT_AHEAD) {
                self.warm_lines(soon);
            }
            self.warm_victim();
            hits += u64::from(self.process(key));
        }
        hits
    }
}

/// Operations of the policies that are defined for objects of unlike sizes: room is made for an object before
/// it comes.
pub(super) trait ObjectEviction: Eviction {
    /// Evicts a key; its slot. None when none is resident.
    fn evict(&mut self) -> Option<u32>;

    /// Makes a key resident for which there is room. `was_ghost` is true if it was known as a ghost.
    fn insert(&mut self, key: u64, bytes: u64, was_ghost: bool) -> u32;

    /// Forgets a ghost, which is wanted now.
    fn forget_ghost(&mut self, _slot: u32) {}

    /// True if an object of this size may come in, if only there is room.
    fn admits(&self, _bytes: u64) -> bool {
        true
    }
}

/// Keys between the announcement of a cell and its use.
const CELL_AHEAD: usize = 16;
/// Keys between the announcement of a slot and its use.
const SLOT_AHEAD: usize = 6;
