//! LRU: evicts the key that was not used for longest.

use super::eviction::{Admission, Eviction, ObjectEviction};
use super::keys::Keys;
use super::queues::{Queue, Queues};

/// Keys in the order of their last use.
#[derive(Debug)]
pub(super) struct Lru {
    capacity: u32,
    queues: Queues<1>,
}

const USED: Queue = 0;

impl Lru {
    pub fn new(capacity: u32) -> Self {
        Self { capacity, queues: Queues::new() }
    }
}

impl Eviction for Lru {
    fn keys(&self) -> &Keys {
        self.queues.keys()
    }

    fn is_resident(&self, _: u32) -> bool {
        true
    }

    fn hit(&mut self, slot: u32) {
        self.queues.renew(slot);
    }

    fn admit(&mut self, key: u64, _: Option<u32>) -> Admission {
        if self.len() == self.capacity
            && let Some(slot) = self.queues.replace_oldest(USED, key)
        {
            return Admission { slot, evicted: Some(slot) };
        }
        Admission { slot: self.queues.insert(key, USED), evicted: None }
    }

    fn remove(&mut self, slot: u32) {
        self.queues.remove(slot);
    }

    fn len(&self) -> u32 {
        self.queues.len(USED)
    }

    fn warm_lines(&self, key: u64) {
        self.queues.warm_slot(key);
    }

    fn warm_victim(&self) {
        self.queues.warm_oldest(USED);
    }
}

impl ObjectEviction for Lru {
    fn evict(&mut self) -> Option<u32> {
        self.queues.remove_oldest(USED)
    }

    fn insert(&mut self, key: u64, _: u64, _: bool) -> u32 {
        self.queues.insert(key, USED)
    }
}
