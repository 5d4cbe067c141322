//! W-TinyLFU: a small LRU window in front of a main cache. A key enters main if it was used more often
//! than the key that leaves for it (Einziger, Friedman and Manes, ACM Transactions on Storage 2017,
//! section 4).

use super::eviction::{Admission, Eviction};
use super::keys::Keys;
use super::queues::{Queue, Queues};
use super::sketch::FrequencySketch;

/// The window and the main cache's two segments, each an LRU list.
///
/// ```text
/// new key -> window (1 %) -> candidate: used more often than main's victim?  no: out
///                                                                           yes: probation
/// used in probation -> protected (80 % of main) -> longest unused: probation again
/// main's victim: the longest unused key of probation, or of protected if probation is empty
/// ```
///
/// A tie goes to the victim. A candidate enters without a contest while main has room.
#[derive(Debug)]
pub(super) struct WTinyLfu {
    window_capacity: u32,
    main_capacity: u32,
    protected_capacity: u32,
    queues: Queues<3>,
    sketch: FrequencySketch,
}

const WINDOW: Queue = 0;
const PROBATION: Queue = 1;
const PROTECTED: Queue = 2;

impl WTinyLfu {
    pub fn new(capacity: u32) -> Self {
        let window_capacity = (capacity / 100).max(1);
        let main_capacity = capacity - window_capacity;
        Self {
            window_capacity,
            main_capacity,
            protected_capacity: (u64::from(main_capacity) * 8 / 10) as u32,
            queues: Queues::new(),
            sketch: FrequencySketch::new(capacity),
        }
    }

    fn frequency(&self, slot: u32) -> u64 {
        self.sketch.frequency(self.queues.keys().key(slot))
    }

    /// The window's oldest key enters main, or leaves the cache. Returns the slot of the key that leaves.
    fn judge(&mut self, candidate: u32) -> Option<u32> {
        if self.queues.len(PROBATION) + self.queues.len(PROTECTED) < self.main_capacity {
            self.queues.move_to(candidate, PROBATION);
            return None;
        }
        let victim = self.queues.oldest(PROBATION).or(self.queues.oldest(PROTECTED));
        match victim.filter(|&victim| self.frequency(candidate) > self.frequency(victim)) {
            Some(victim) => {
                self.queues.remove(victim);
                self.queues.move_to(candidate, PROBATION);
                Some(victim)
            }
            None => {
                self.queues.remove(candidate);
                Some(candidate)
            }
        }
    }

    fn protect(&mut self, slot: u32) {
        self.queues.move_to(slot, PROTECTED);
        if self.queues.len(PROTECTED) > self.protected_capacity
            && let Some(oldest) = self.queues.oldest(PROTECTED)
        {
            self.queues.move_to(oldest, PROBATION);
        }
    }
}

impl Eviction for WTinyLfu {
    fn keys(&self) -> &Keys {
        self.queues.keys()
    }

    fn is_resident(&self, _: u32) -> bool {
        true
    }

    fn hit(&mut self, slot: u32) {
        self.sketch.add(self.queues.keys().key(slot));
        match self.queues.queue(slot) {
            PROBATION => self.protect(slot),
            _ => self.queues.renew(slot),
        }
    }

    fn admit(&mut self, key: u64, _: Option<u32>) -> Admission {
        self.sketch.add(key);
        let slot = self.queues.insert(key, WINDOW);
        let is_full = self.queues.len(WINDOW) > self.window_capacity;
        let candidate = self.queues.oldest(WINDOW).filter(|_| is_full);
        Admission { slot, evicted: candidate.and_then(|candidate| self.judge(candidate)) }
    }

    fn remove(&mut self, slot: u32) {
        self.queues.remove(slot);
    }

    fn len(&self) -> u32 {
        self.queues.len(WINDOW) + self.queues.len(PROBATION) + self.queues.len(PROTECTED)
    }

    fn warm_lines(&self, key: u64) {
        self.queues.warm_slot(key);
    }

    fn warm_victim(&self) {
        self.queues.warm_oldest(WINDOW);
        self.queues.warm_oldest(PROBATION);
    }
}
