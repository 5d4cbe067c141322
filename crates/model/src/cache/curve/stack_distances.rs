//! LRU stack distances: in which caches a use hits.

use super::position_counts::PositionCounts;
use crate::cache::keys::Keys;

/// Every key at the position of its last use (Mattson et al., IBM Systems Journal 1970). A tree counts the
/// positions (Bennett and Kruskal, IBM Journal of Research and Development 1975).
///
/// ```text
/// uses        A B C A B D        position of each last use:   C  A  B  D
/// next use    of A: A, B and D were used since its last use, A itself counts: distance 3
/// ```
///
/// Positions that were left are closed up whenever positions run out, so memory follows the number of
/// distinct keys and not of uses.
#[derive(Debug, Clone)]
pub struct StackDistances {
    keys: Keys,
    /// Position of each slot's last use.
    position_of: Vec<u32>,
    /// Slot whose use took each position. The slot may have moved on since.
    slot_at: Vec<u32>,
    taken: PositionCounts,
    len: u32,
}

const POSITIONS_MIN: u32 = 1024;

impl Default for StackDistances {
    fn default() -> Self {
        Self {
            keys: Keys::default(),
            position_of: Vec::new(),
            slot_at: Vec::new(),
            taken: PositionCounts::with_first(POSITIONS_MIN, 0),
            len: 0,
        }
    }
}

impl StackDistances {
    /// A use of `key`: the capacity of the smallest LRU cache in which it hits, None for a first use. Panics
    /// at 2^30 distinct keys.
    pub fn process(&mut self, key: u64) -> Option<u32> {
        self.locate(key).1
    }

    /// Stack distance of a key, and the key's slot, which stays the same until the key is removed.
    pub(super) fn locate(&mut self, key: u64) -> (u32, Option<u32>) {
        let known = self.keys.find(key);
        let distance = known.map(|slot| self.distance(slot));
        match known {
            Some(slot) => self.taken.free(self.position_of[slot as usize]),
            None => self.len += 1,
        }
        let slot = known.unwrap_or_else(|| self.keys.insert(key));
        if slot as usize == self.position_of.len() {
            self.position_of.push(0);
        }
        self.put(slot);
        (slot, distance)
    }

    /// The distance that a use of the key in this slot would have now.
    pub(super) fn distance(&self, slot: u32) -> u32 {
        self.len - self.taken.below(self.position_of[slot as usize])
    }

    /// Slot of a key that was used.
    pub(super) fn slot(&self, key: u64) -> Option<u32> {
        self.keys.find(key)
    }

    /// Puts a slot without a position to the last one.
    fn put(&mut self, slot: u32) {
        if self.slot_at.len() as u32 == self.taken.size() {
            self.close_up();
        }
        let position = self.slot_at.len() as u32;
        self.position_of[slot as usize] = position;
        self.slot_at.push(slot);
        self.taken.take(position);
    }

    /// Moves the taken positions together. At least half of all positions are free afterwards, so the
    /// next call comes after that number of uses.
    #[cold]
    fn close_up(&mut self) {
        let mut position = 0;
        let mut at = 0;
        self.slot_at.retain(|&slot| {
            let is_taken = self.taken.is_taken(at);
            at += 1;
            if is_taken {
                self.position_of[slot as usize] = position;
                position += 1;
            }
            is_taken
        });
        assert!(position < 1 << 30, "fewer than 2^30 distinct keys");
        let size = (2 * position).next_power_of_two().max(POSITIONS_MIN);
        self.taken = PositionCounts::with_first(size, position);
    }

    /// Forgets a key, as if it had never been used.
    pub fn remove(&mut self, key: u64) {
        if let Some(slot) = self.keys.find(key) {
            self.taken.free(self.position_of[slot as usize]);
            self.keys.remove(slot);
            self.len -= 1;
        }
    }

    /// Distinct keys.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// True if no key was used.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

#[cfg(test)]
mod tests {
    use freewheel_units::Prng;

    use super::*;

    #[test]
    fn stack_distances_match_recency_list() {
        for seed in 0..20 {
            let prng = &mut Prng::new(seed, "distances");
            let (mut distances, mut list) = (StackDistances::default(), Vec::new());
            let universe = 1 + prng.below(900);
            for _ in 0..6_000 {
                let key = prng.below(1 + prng.clone().below(universe)) << 20;
                let depth = list.iter().rev().position(|&other| other == key);
                list.retain(|&other| other != key);
                if prng.chance(0.02) {
                    distances.remove(key);
                } else {
                    list.push(key);
                    assert_eq!(distances.process(key), depth.map(|depth| depth as u32 + 1));
                }
                assert_eq!(distances.len() as usize, list.len());
                assert!(distances.slot_at.len() <= 4 * (universe as usize).max(1024));
            }
        }
    }
}
