//! Queues of keys, of which every policy here is made.

use prefetch_index::prefetch_index;

use super::keys::Keys;
use crate::lru::{Links, List};

/// N queues, each from its oldest to its newest key. Each key is in one of them, and has a small count
/// of uses.
#[derive(Debug, Clone)]
pub(super) struct Queues<const N: usize> {
    keys: Keys,
    links: Links,
    /// Queue of each slot in the lowest bits, the number of uses above.
    tags: Vec<u8>,
    lists: [List; N],
}

/// Number of a queue.
pub(super) type Queue = u8;

const QUEUE_BITS: u32 = 3;
const QUEUE: u8 = (1 << QUEUE_BITS) - 1;

impl<const N: usize> Queues<N> {
    /// N empty queues, at most 8.
    pub fn new() -> Self {
        const { assert!(N <= 1 << QUEUE_BITS) };
        Self {
            keys: Keys::default(),
            links: Links::default(),
            tags: Vec::new(),
            lists: [List::EMPTY; N],
        }
    }

    /// All keys.
    #[inline]
    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// The queue of a slot.
    #[inline]
    pub fn queue(&self, slot: u32) -> Queue {
        self.tags[slot as usize] & QUEUE
    }

    /// Uses of a slot in its queue, as the policy counts them.
    #[inline]
    pub fn uses(&self, slot: u32) -> u8 {
        self.tags[slot as usize] >> QUEUE_BITS
    }

    /// Sets the uses of a slot, at most 31.
    #[inline]
    pub fn set_uses(&mut self, slot: u32, uses: u8) {
        let tag = &mut self.tags[slot as usize];
        *tag = uses << QUEUE_BITS | *tag & QUEUE;
    }

    /// Keys in a queue.
    #[inline]
    pub fn len(&self, queue: Queue) -> u32 {
        self.lists[usize::from(queue)].len()
    }

    /// The slot that came into a queue first.
    #[inline]
    pub fn oldest(&self, queue: Queue) -> Option<u32> {
        self.lists[usize::from(queue)].oldest()
    }

    /// The slot that came into the same queue next.
    #[inline]
    pub fn newer(&self, slot: u32) -> Option<u32> {
        self.links.newer(slot)
    }

    /// Adds a key that is not known yet as the newest of a queue, without uses.
    #[inline]
    pub fn insert(&mut self, key: u64, queue: Queue) -> u32 {
        let slot = self.keys.insert(key);
        if slot as usize == self.tags.len() {
            self.tags.push(0);
            self.links.grow();
        }
        self.push(slot, queue);
        slot
    }

    #[inline]
    fn push(&mut self, slot: u32, queue: Queue) {
        self.tags[slot as usize] = queue;
        self.lists[usize::from(queue)].push(&mut self.links, slot);
    }

    #[inline]
    fn unlink(&mut self, slot: u32) {
        self.lists[usize::from(self.queue(slot))].remove(&mut self.links, slot);
    }

    /// Makes a key the newest of a queue, without uses.
    #[inline]
    pub fn move_to(&mut self, slot: u32, queue: Queue) {
        self.unlink(slot);
        self.push(slot, queue);
    }

    /// Makes a key the newest of its queue; its uses stay.
    #[inline]
    pub fn renew(&mut self, slot: u32) {
        self.lists[usize::from(self.queue(slot))].renew(&mut self.links, slot);
    }

    /// Forgets a key.
    #[inline]
    pub fn remove(&mut self, slot: u32) {
        self.unlink(slot);
        self.keys.remove(slot);
    }

    /// Forgets the oldest key of a queue, if there is one; returns its slot.
    #[inline]
    pub fn remove_oldest(&mut self, queue: Queue) -> Option<u32> {
        let oldest = self.oldest(queue)?;
        self.remove(oldest);
        Some(oldest)
    }

    /// Puts a key that is not known yet in the place of the oldest of a queue, as its newest without uses;
    /// returns the slot. None for an empty queue.
    #[inline]
    pub fn replace_oldest(&mut self, queue: Queue, key: u64) -> Option<u32> {
        let oldest = self.oldest(queue)?;
        self.keys.replace(oldest, key);
        self.tags[oldest as usize] = queue;
        self.lists[usize::from(queue)].renew(&mut self.links, oldest);
        Some(oldest)
    }

    /// Announces a key that will be looked for very soon, and whose cell was announced before.
    #[inline]
    pub fn warm_slot(&self, key: u64) {
        if let Some(slot) = self.keys.warm_slot(key) {
            prefetch_index(&self.tags, slot as usize);
            self.links.warm_lines(slot);
        }
    }

    /// Announces that the oldest key of a queue may be removed next.
    #[inline]
    pub fn warm_oldest(&self, queue: Queue) {
        self.warm_removal(self.oldest(queue));
    }

    /// Announces that a key may be removed next.
    #[inline]
    pub fn warm_removal(&self, slot: Option<u32>) {
        if let Some(slot) = slot {
            self.keys.warm_lines(self.keys.key(slot));
        }
    }
}
