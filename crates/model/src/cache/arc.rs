//! ARC: two LRU lists, of keys used once and of keys used again, whose shares adapt (Megiddo and Modha,
//! FAST 2003, figure 4).

use super::eviction::{Admission, Eviction};
use super::keys::Keys;
use super::queues::{Queue, Queues};

/// The four lists of the paper.
///
/// ```text
///           ghosts      resident
/// once      B1 -------- T1      T1 and B1 hold at most c keys,
/// again     B2 -------- T2      T1 and T2 at most c, all four at most 2 c
/// ```
#[derive(Debug)]
pub(super) struct Arc {
    capacity: u32,
    queues: Queues<4>,
    /// The paper's p: above it T1 yields a key, else T2. Its steps are quotients, which the paper rounds
    /// nowhere; libCacheSim does not round them either.
    target: f64,
}

const T1: Queue = 0;
const T2: Queue = 1;
const B1: Queue = 2;
const B2: Queue = 3;

impl Arc {
    pub fn new(capacity: u32) -> Self {
        Self { capacity, queues: Queues::new(), target: 0.0 }
    }

    fn is_full(&self) -> bool {
        self.len() == self.capacity
    }

    /// A wanted ghost in B1 says that T1 was too small, one in B2 that T2 was.
    fn adapt(&mut self, list: Queue) {
        let [b1, b2] = [B1, B2].map(|list| f64::from(self.queues.len(list)));
        self.target = match list {
            B1 => (self.target + (b2 / b1).max(1.0)).min(f64::from(self.capacity)),
            _ => (self.target - (b1 / b2).max(1.0)).max(0.0),
        };
    }

    /// REPLACE: a resident key becomes a ghost. Returns its slot.
    fn replace(&mut self, wanted_is_in_b2: bool) -> Option<u32> {
        let t1 = f64::from(self.queues.len(T1));
        let is_too_large = t1 > self.target || wanted_is_in_b2 && t1 == self.target;
        // T2 can only be empty here once keys were taken out.
        let from_t1 = t1 > 0.0 && is_too_large || self.queues.len(T2) == 0;
        let (list, ghosts) = if from_t1 { (T1, B1) } else { (T2, B2) };
        let victim = self.queues.oldest(list)?;
        self.queues.move_to(victim, ghosts);
        Some(victim)
    }

    /// Cases II and III: the key is a ghost. Returns the slot of the key that is evicted for it.
    fn return_ghost(&mut self, slot: u32) -> Option<u32> {
        let list = self.queues.queue(slot);
        self.adapt(list);
        let is_full = self.is_full();
        // Resident first, so that the trim of its ghosts can never be this key.
        self.queues.move_to(slot, T2);
        if is_full { self.replace(list == B2) } else { None }
    }

    /// Case IV: room for a key that is in none of the lists. Returns the slot of the key that is evicted.
    fn make_room(&mut self) -> Option<u32> {
        let [t1, t2, b1, b2] = [T1, T2, B1, B2].map(|list| u64::from(self.queues.len(list)));
        let capacity = u64::from(self.capacity);
        // Once keys were taken out, ghosts are trimmed though the cache has room.
        let is_full = self.is_full();
        if t1 + b1 == capacity {
            if b1 == 0 {
                return self.queues.remove_oldest(T1);
            }
            self.queues.remove_oldest(B1);
        } else if t1 + t2 + b1 + b2 >= 2 * capacity {
            self.queues.remove_oldest(B2);
        }
        if is_full { self.replace(false) } else { None }
    }
}

impl Eviction for Arc {
    fn keys(&self) -> &Keys {
        self.queues.keys()
    }

    fn is_resident(&self, slot: u32) -> bool {
        self.queues.queue(slot) <= T2
    }

    fn hit(&mut self, slot: u32) {
        self.queues.move_to(slot, T2);
    }

    fn admit(&mut self, key: u64, ghost: Option<u32>) -> Admission {
        if let Some(slot) = ghost {
            return Admission { slot, evicted: self.return_ghost(slot) };
        }
        let evicted = self.make_room();
        Admission { slot: self.queues.insert(key, T1), evicted }
    }

    fn remove(&mut self, slot: u32) {
        self.queues.remove(slot);
    }

    fn len(&self) -> u32 {
        self.queues.len(T1) + self.queues.len(T2)
    }

    fn warm_lines(&self, key: u64) {
        self.queues.warm_slot(key);
    }

    fn warm_victim(&self) {
        self.queues.warm_oldest(B1);
        self.queues.warm_oldest(B2);
    }
}
