//! SIEVE: a queue in order of arrival and a hand that passes over used keys (Zhang et al., NSDI 2024,
//! algorithm 1).

use super::eviction::{Admission, Eviction, ObjectEviction};
use super::keys::Keys;
use super::queues::{Queue, Queues};

/// Keys in order of arrival, with 1 use if they were used since the hand last passed over them.
///
/// ```text
/// oldest [A*] [B ] [C*] [D ] newest        * used
///          ^ hand: clears the mark of A, evicts B, which has none, and stays at C
/// ```
#[derive(Debug)]
pub(super) struct Sieve {
    capacity: u32,
    queues: Queues<1>,
    /// Slot at which the next search begins; None is the oldest.
    hand: Option<u32>,
}

const ARRIVED: Queue = 0;

impl Sieve {
    pub fn new(capacity: u32) -> Self {
        Self { capacity, queues: Queues::new(), hand: None }
    }

    /// Slot at which the next search begins.
    #[inline]
    fn start(&self) -> Option<u32> {
        self.hand.or(self.queues.oldest(ARRIVED))
    }
}

impl Eviction for Sieve {
    fn keys(&self) -> &Keys {
        self.queues.keys()
    }

    fn is_resident(&self, _: u32) -> bool {
        true
    }

    fn hit(&mut self, slot: u32) {
        self.queues.set_uses(slot, 1);
    }

    fn admit(&mut self, key: u64, _: Option<u32>) -> Admission {
        let evicted = if self.len() == self.capacity { self.evict() } else { None };
        Admission { slot: self.queues.insert(key, ARRIVED), evicted }
    }

    fn remove(&mut self, slot: u32) {
        // Also when the hand is at the oldest because it is None: the next key is the oldest then.
        if self.start() == Some(slot) {
            self.hand = self.queues.newer(slot);
        }
        self.queues.remove(slot);
    }

    fn len(&self) -> u32 {
        self.queues.len(ARRIVED)
    }

    fn warm_lines(&self, key: u64) {
        self.queues.warm_slot(key);
    }

    fn warm_victim(&self) {
        self.queues.warm_removal(self.start());
    }
}

impl ObjectEviction for Sieve {
    fn evict(&mut self) -> Option<u32> {
        // One turn clears every mark, so the second turn ends at the latest.
        while let Some(at) = self.start() {
            if self.queues.uses(at) == 0 {
                self.remove(at);
                return Some(at);
            }
            self.queues.set_uses(at, 0);
            self.hand = self.queues.newer(at);
        }
        None
    }

    fn insert(&mut self, key: u64, _: u64, _: bool) -> u32 {
        self.queues.insert(key, ARRIVED)
    }
}
