//! S3-FIFO: a small queue that keys must pass, a main queue, and ghosts of the small one (Yang et al.,
//! SOSP 2023, algorithm 1).

use super::eviction::{Admission, Eviction};
use super::keys::Keys;
use super::queues::{Queue, Queues};

/// Three queues in order of arrival. Uses are counted up to 3, from 0 in each queue.
///
/// ```text
/// new key -> small (a tenth) -> used twice or more: main               else: ghost
/// ghost   -> main            -> used: newest in main, one use less     else: out
/// ```
///
/// Where the paper is silent, this follows libCacheSim 0.3.5, by the same authors. A wanted ghost leaves
/// the ghosts before others are evicted. Main gives up a key when it is over nine tenths. Until the first
/// eviction, new keys go to main when the small queue has its tenth. There a small queue of 0 or 1 keys
/// admits none; here it has at least one key and admits it.
#[derive(Debug)]
pub(super) struct S3Fifo {
    capacity: u32,
    small_capacity: u32,
    ghost_capacity: u32,
    has_evicted: bool,
    queues: Queues<3>,
}

const SMALL: Queue = 0;
const MAIN: Queue = 1;
const GHOST: Queue = 2;
const USES_MAX: u8 = 3;
/// Uses in the small queue that earn a place in main.
const USES_TO_MAIN: u8 = 2;

impl S3Fifo {
    pub fn new(capacity: u32) -> Self {
        Self {
            capacity,
            small_capacity: (capacity / 10).max(1),
            ghost_capacity: (u64::from(capacity) * 9 / 10) as u32,
            has_evicted: false,
            queues: Queues::new(),
        }
    }

    /// Evicts a key; returns its slot.
    fn evict(&mut self) -> Option<u32> {
        self.has_evicted = true;
        let is_main_too_large = self.queues.len(MAIN) > self.capacity - self.small_capacity;
        if is_main_too_large || self.queues.len(SMALL) == 0 {
            self.evict_from_main()
        } else {
            self.evict_from_small()
        }
    }

    /// Moves keys on until one becomes a ghost or the queue is empty.
    fn evict_from_small(&mut self) -> Option<u32> {
        while let Some(slot) = self.queues.oldest(SMALL) {
            if self.queues.uses(slot) < USES_TO_MAIN {
                self.queues.move_to(slot, GHOST);
                if self.queues.len(GHOST) > self.ghost_capacity {
                    self.queues.remove_oldest(GHOST);
                }
                return Some(slot);
            }
            self.queues.move_to(slot, MAIN);
        }
        None
    }

    fn evict_from_main(&mut self) -> Option<u32> {
        while let Some(slot) = self.queues.oldest(MAIN) {
            let uses = self.queues.uses(slot);
            if uses == 0 {
                self.queues.remove(slot);
                return Some(slot);
            }
            self.queues.set_uses(slot, uses - 1);
            self.queues.renew(slot);
        }
        None
    }
}

impl Eviction for S3Fifo {
    fn keys(&self) -> &Keys {
        self.queues.keys()
    }

    fn is_resident(&self, slot: u32) -> bool {
        self.queues.queue(slot) != GHOST
    }

    fn hit(&mut self, slot: u32) {
        let uses = self.queues.uses(slot);
        self.queues.set_uses(slot, (uses + 1).min(USES_MAX));
    }

    fn admit(&mut self, key: u64, ghost: Option<u32>) -> Admission {
        // The wanted ghost must not be trimmed while room is made for it.
        if let Some(slot) = ghost {
            self.queues.remove(slot);
        }
        // The keys of the small queue may all move to main, which takes a second round.
        let mut evicted = None;
        while self.len() == self.capacity {
            evicted = self.evict();
        }
        let is_small_full = self.queues.len(SMALL) >= self.small_capacity;
        let is_to_main = ghost.is_some() || !self.has_evicted && is_small_full;
        let queue = if is_to_main { MAIN } else { SMALL };
        Admission { slot: self.queues.insert(key, queue), evicted }
    }

    fn remove(&mut self, slot: u32) {
        self.queues.remove(slot);
    }

    fn len(&self) -> u32 {
        self.queues.len(SMALL) + self.queues.len(MAIN)
    }

    fn prefetch(&self, key: u64) {
        self.queues.prefetch_slot(key);
    }

    fn prefetch_victim(&self) {
        self.queues.prefetch_oldest(GHOST);
        self.queues.prefetch_oldest(MAIN);
    }
}
