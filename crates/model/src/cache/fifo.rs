//! FIFO: evicts the key that came first, whether or not it was used since (Belady, IBM Systems Journal 1966).

use super::eviction::{Admission, Eviction, ObjectEviction};
use super::keys::Keys;
use super::queues::{Queue, Queues};

/// Keys in order of arrival.
#[derive(Debug)]
pub(super) struct Fifo {
    capacity: u32,
    queues: Queues<1>,
}

const ARRIVED: Queue = 0;

impl Fifo {
    pub fn new(capacity: u32) -> Self {
        Self { capacity, queues: Queues::new() }
    }
}

impl Eviction for Fifo {
    fn keys(&self) -> &Keys {
        self.queues.keys()
    }

    fn is_resident(&self, _: u32) -> bool {
        true
    }

    fn hit(&mut self, _: u32) {}

    fn admit(&mut self, key: u64, _: Option<u32>) -> Admission {
        if self.len() == self.capacity
            && let Some(slot) = self.queues.replace_oldest(ARRIVED, key)
        {
            return Admission { slot, evicted: Some(slot) };
        }
        Admission { slot: self.queues.insert(key, ARRIVED), evicted: None }
    }

    fn remove(&mut self, slot: u32) {
        self.queues.remove(slot);
    }

    fn len(&self) -> u32 {
        self.queues.len(ARRIVED)
    }

    fn warm_lines(&self, key: u64) {
        self.queues.warm_slot(key);
    }

    fn warm_victim(&self) {
        self.queues.warm_oldest(ARRIVED);
    }
}

impl ObjectEviction for Fifo {
    fn evict(&mut self) -> Option<u32> {
        self.queues.remove_oldest(ARRIVED)
    }

    fn insert(&mut self, key: u64, _: u64, _: bool) -> u32 {
        self.queues.insert(key, ARRIVED)
    }
}
