//! 2Q: a queue in order of arrival, and an LRU list of keys that were wanted again after they left it
//! (Johnson and Shasha, VLDB 1994, the full version).

use super::eviction::{Admission, Eviction};
use super::keys::Keys;
use super::queues::{Queue, Queues};

/// The three lists of the paper.
///
/// ```text
/// new key -> A1in (a quarter, uses do not count) -> A1out (ghosts, half of the capacity) -> out
///                                                   wanted: Am (LRU) -> out
/// ```
///
/// A wanted ghost leaves A1out before room is made, which the paper leaves open; libCacheSim does the
/// same.
#[derive(Debug)]
pub(super) struct TwoQ {
    capacity: u32,
    queues: Queues<3>,
}

const A1_IN: Queue = 0;
const AM: Queue = 1;
const A1_OUT: Queue = 2;

impl TwoQ {
    pub fn new(capacity: u32) -> Self {
        Self { capacity, queues: Queues::new() }
    }

    /// Evicts a key from a full cache; returns its slot.
    fn make_room(&mut self) -> Option<u32> {
        if self.len() < self.capacity {
            return None;
        }
        // The paper's Kin and Kout: a quarter and half of the capacity.
        let is_a1_in_too_large = self.queues.len(A1_IN) > self.capacity / 4;
        let from_a1_in = self.queues.oldest(A1_IN).filter(|_| is_a1_in_too_large);
        let evicted = match from_a1_in {
            Some(victim) => {
                self.queues.move_to(victim, A1_OUT);
                from_a1_in
            }
            None => self.queues.remove_oldest(AM),
        };
        if self.queues.len(A1_OUT) > self.capacity / 2 {
            self.queues.remove_oldest(A1_OUT);
        }
        evicted
    }
}

impl Eviction for TwoQ {
    fn keys(&self) -> &Keys {
        self.queues.keys()
    }

    fn is_resident(&self, slot: u32) -> bool {
        self.queues.queue(slot) != A1_OUT
    }

    fn hit(&mut self, slot: u32) {
        if self.queues.queue(slot) == AM {
            self.queues.renew(slot);
        }
    }

    fn admit(&mut self, key: u64, ghost: Option<u32>) -> Admission {
        if let Some(slot) = ghost {
            self.queues.remove(slot);
        }
        let evicted = self.make_room();
        let queue = if ghost.is_some() { AM } else { A1_IN };
        Admission { slot: self.queues.insert(key, queue), evicted }
    }

    fn remove(&mut self, slot: u32) {
        self.queues.remove(slot);
    }

    fn len(&self) -> u32 {
        self.queues.len(A1_IN) + self.queues.len(AM)
    }

    fn warm_lines(&self, key: u64) {
        self.queues.warm_slot(key);
    }

    fn warm_victim(&self) {
        self.queues.warm_oldest(A1_OUT);
        self.queues.warm_oldest(AM);
    }
}
