//! CLOCK: FIFO with a second chance for used keys (Corbató, "A paging experiment with the Multics system",
//! MIT Project MAC, 1968).

use super::eviction::{Admission, Eviction, ObjectEviction};
use super::keys::Keys;
use super::queues::{Queue, Queues};

/// Keys in the order in which the hand comes to them, with 1 use if they were used since it last did.
///
/// ```text
/// next [A*] [B ] [C*] [D ] last        * used
///       A's mark is cleared, and A becomes the last; B, which has none, is evicted
/// ```
#[derive(Debug)]
pub(super) struct Clock {
    capacity: u32,
    queues: Queues<1>,
}

const TURN: Queue = 0;

impl Clock {
    pub fn new(capacity: u32) -> Self {
        Self { capacity, queues: Queues::new() }
    }
}

impl Eviction for Clock {
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
        Admission { slot: self.queues.insert(key, TURN), evicted }
    }

    fn remove(&mut self, slot: u32) {
        self.queues.remove(slot);
    }

    fn len(&self) -> u32 {
        self.queues.len(TURN)
    }

    fn warm_lines(&self, key: u64) {
        self.queues.warm_slot(key);
    }

    fn warm_victim(&self) {
        self.queues.warm_oldest(TURN);
    }
}

impl ObjectEviction for Clock {
    fn evict(&mut self) -> Option<u32> {
        // One turn clears every mark, so the second turn ends at the latest.
        while let Some(slot) = self.queues.oldest(TURN) {
            if self.queues.uses(slot) == 0 {
                self.queues.remove(slot);
                return Some(slot);
            }
            self.queues.set_uses(slot, 0);
            self.queues.renew(slot);
        }
        None
    }

    fn insert(&mut self, key: u64, _: u64, _: bool) -> u32 {
        self.queues.insert(key, TURN)
    }
}
