//! LFU: evicts the key with the fewest uses since it came (Robinson and Devarakonda, SIGMETRICS 1990, section
//! 1). Of equal keys, the one that has had so many uses for longest goes, as in libCacheSim 0.3.5.

use std::collections::BTreeMap;

use super::eviction::{Admission, Eviction, ObjectEviction};
use super::keys::Keys;
use crate::lru::{Links, List};

/// Keys by their uses; uses are forgotten with the key.
#[derive(Debug)]
pub(super) struct Lfu {
    capacity: u32,
    keys: Keys,
    links: Links,
    /// Uses of each slot, its admission included.
    uses: Vec<u64>,
    /// Slots with this number of uses, in the order in which they reached it. No list is empty.
    by_uses: BTreeMap<u64, List>,
    len: u32,
}

impl Lfu {
    pub fn new(capacity: u32) -> Self {
        Self {
            capacity,
            keys: Keys::default(),
            links: Links::default(),
            uses: Vec::new(),
            by_uses: BTreeMap::new(),
            len: 0,
        }
    }

    fn put(&mut self, slot: u32, uses: u64) {
        self.uses[slot as usize] = uses;
        let list = self.by_uses.entry(uses).or_insert(List::EMPTY);
        list.push(&mut self.links, slot);
    }

    fn unlink(&mut self, slot: u32) {
        let uses = self.uses[slot as usize];
        if let Some(list) = self.by_uses.get_mut(&uses) {
            list.remove(&mut self.links, slot);
            if list.len() == 0 {
                self.by_uses.remove(&uses);
            }
        }
    }

    fn rarest(&self) -> Option<u32> {
        self.by_uses.first_key_value().and_then(|(_, list)| list.oldest())
    }
}

impl Eviction for Lfu {
    fn keys(&self) -> &Keys {
        &self.keys
    }

    fn is_resident(&self, _: u32) -> bool {
        true
    }

    fn hit(&mut self, slot: u32) {
        self.unlink(slot);
        self.put(slot, self.uses[slot as usize] + 1);
    }

    fn admit(&mut self, key: u64, _: Option<u32>) -> Admission {
        let evicted = if self.len() == self.capacity { self.evict() } else { None };
        Admission { slot: self.insert(key, 1, false), evicted }
    }

    fn remove(&mut self, slot: u32) {
        self.unlink(slot);
        self.keys.remove(slot);
        self.len -= 1;
    }

    fn len(&self) -> u32 {
        self.len
    }

    fn warm_lines(&self, key: u64) {
        if let Some(slot) = self.keys.warm_slot(key) {
            self.links.warm_lines(slot);
        }
    }

    fn warm_victim(&self) {
        if let Some(slot) = self.rarest() {
            self.keys.warm_lines(self.keys.key(slot));
        }
    }
}

impl ObjectEviction for Lfu {
    fn evict(&mut self) -> Option<u32> {
        let slot = self.rarest()?;
        self.remove(slot);
        Some(slot)
    }

    fn insert(&mut self, key: u64, _: u64, _: bool) -> u32 {
        let slot = self.keys.insert(key);
        if slot as usize == self.uses.len() {
            self.uses.push(0);
            self.links.grow();
        }
        self.put(slot, 1);
        self.len += 1;
        slot
    }
}
