//! S3-FIFO: a small queue that keys must pass, a main queue, and ghosts of the small one (Yang et al.,
//! SOSP 2023, algorithm 1).

use super::eviction::{Admission, Eviction, ObjectEviction};
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
///
/// Of [objects](ByBytes) the queues' bytes are limited in place of their keys. As in libCacheSim, an object as
/// large as the small queue is not admitted, and one that is larger than all ghosts becomes none.
#[derive(Debug)]
pub(super) struct S3Fifo<W> {
    capacity: u64,
    small_capacity: u64,
    ghost_capacity: u64,
    has_evicted: bool,
    queues: Queues<3>,
    weights: W,
}

/// Weights of keys, and of the queues that hold them.
pub(super) trait Weights: std::fmt::Debug + Send + Default {
    fn of(&self, slot: u32) -> u64;
    fn of_queue(&self, queue: Queue, keys: u32) -> u64;
    fn set(&mut self, _slot: u32, _weight: u64) {}
    fn came(&mut self, _slot: u32, _queue: Queue) {}
    fn left(&mut self, _slot: u32, _queue: Queue) {}
}

/// Every key weighs 1.
#[derive(Debug, Default)]
pub(super) struct EachKey;

/// Every object weighs its bytes.
#[derive(Debug, Default)]
pub(super) struct ByBytes {
    slots: Vec<u64>,
    queues: [u64; 3],
}

impl Weights for EachKey {
    #[inline]
    fn of(&self, _: u32) -> u64 {
        1
    }

    #[inline]
    fn of_queue(&self, _: Queue, keys: u32) -> u64 {
        keys.into()
    }
}

impl Weights for ByBytes {
    fn of(&self, slot: u32) -> u64 {
        self.slots[slot as usize]
    }

    fn of_queue(&self, queue: Queue, _: u32) -> u64 {
        self.queues[usize::from(queue)]
    }

    fn set(&mut self, slot: u32, weight: u64) {
        if slot as usize >= self.slots.len() {
            self.slots.resize(slot as usize + 1, 0);
        }
        self.slots[slot as usize] = weight;
    }

    fn came(&mut self, slot: u32, queue: Queue) {
        self.queues[usize::from(queue)] += self.slots[slot as usize];
    }

    fn left(&mut self, slot: u32, queue: Queue) {
        self.queues[usize::from(queue)] -= self.slots[slot as usize];
    }
}

const SMALL: Queue = 0;
const MAIN: Queue = 1;
const GHOST: Queue = 2;
const USES_MAX: u8 = 3;
/// Uses in the small queue that earn a place in main.
const USES_TO_MAIN: u8 = 2;

impl<W: Weights> S3Fifo<W> {
    pub fn new(capacity: u64) -> Self {
        Self {
            capacity,
            small_capacity: (capacity / 10).max(1),
            ghost_capacity: (u128::from(capacity) * 9 / 10) as u64,
            has_evicted: false,
            queues: Queues::new(),
            weights: W::default(),
        }
    }

    #[inline]
    fn weight(&self, queue: Queue) -> u64 {
        self.weights.of_queue(queue, self.queues.len(queue))
    }

    #[inline]
    fn move_to(&mut self, slot: u32, queue: Queue) {
        self.weights.left(slot, self.queues.queue(slot));
        self.queues.move_to(slot, queue);
        self.weights.came(slot, queue);
    }

    /// Evicts a key and returns its slot, or moves all keys of the small queue to main.
    fn evict_or_move(&mut self) -> Option<u32> {
        self.has_evicted = true;
        let is_main_too_large = self.weight(MAIN) > self.capacity - self.small_capacity;
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
                self.become_ghost(slot);
                return Some(slot);
            }
            self.move_to(slot, MAIN);
        }
        None
    }

    fn become_ghost(&mut self, slot: u32) {
        if self.weights.of(slot) > self.ghost_capacity {
            return self.remove(slot);
        }
        self.move_to(slot, GHOST);
        while self.weight(GHOST) > self.ghost_capacity
            && let Some(oldest) = self.queues.oldest(GHOST)
        {
            self.remove(oldest);
        }
    }

    fn evict_from_main(&mut self) -> Option<u32> {
        while let Some(slot) = self.queues.oldest(MAIN) {
            let uses = self.queues.uses(slot);
            if uses == 0 {
                self.remove(slot);
                return Some(slot);
            }
            self.queues.set_uses(slot, uses - 1);
            self.queues.renew(slot);
        }
        None
    }
}

impl<W: Weights> Eviction for S3Fifo<W> {
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
            self.forget_ghost(slot);
        }
        let is_full = u64::from(self.len()) == self.capacity;
        let evicted = if is_full { self.evict() } else { None };
        Admission { slot: self.insert(key, 1, ghost.is_some()), evicted }
    }

    fn remove(&mut self, slot: u32) {
        self.weights.left(slot, self.queues.queue(slot));
        self.queues.remove(slot);
    }

    fn len(&self) -> u32 {
        self.queues.len(SMALL) + self.queues.len(MAIN)
    }

    fn warm_lines(&self, key: u64) {
        self.queues.warm_slot(key);
    }

    fn warm_victim(&self) {
        self.queues.warm_oldest(GHOST);
        self.queues.warm_oldest(MAIN);
    }
}

impl<W: Weights> ObjectEviction for S3Fifo<W> {
    fn evict(&mut self) -> Option<u32> {
        // The keys of the small queue may all move to main, which takes a second round.
        while self.len() > 0 {
            if let Some(slot) = self.evict_or_move() {
                return Some(slot);
            }
        }
        None
    }

    fn insert(&mut self, key: u64, weight: u64, was_ghost: bool) -> u32 {
        let is_small_full = self.weight(SMALL) >= self.small_capacity;
        let is_to_main = was_ghost || !self.has_evicted && is_small_full;
        let queue = if is_to_main { MAIN } else { SMALL };
        let slot = self.queues.insert(key, queue);
        self.weights.set(slot, weight);
        self.weights.came(slot, queue);
        slot
    }

    fn forget_ghost(&mut self, slot: u32) {
        self.remove(slot);
    }

    fn admits(&self, bytes: u64) -> bool {
        bytes < self.small_capacity
    }
}
