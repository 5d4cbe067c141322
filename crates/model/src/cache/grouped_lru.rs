//! LRU over cache blocks that come and go in runs, as those of a read cache do.
//!
//! A hash of every key costs more than all else that LRU does. So keys are looked up in groups of
//! neighbours, and the group found last is tried first: a run of cache blocks costs a hash a group.
//! Decisions are those of [`Lru`](super::lru::Lru), and a test compares the two.
//!
//! ```text
//!   key   | number of the group | within |
//!   place | its row in a table  | within |     slots[place] is the slot of the key
//! ```

use std::cell::Cell;

use super::eviction::Admission;
use super::index::KeyIndex;
use crate::lru::{Links, List};

/// Keys in the order of their last use, in numbered slots.
#[derive(Debug)]
pub(super) struct GroupedLru {
    capacity: u32,
    groups: Groups,
    /// Place of each slot in use.
    places: Vec<u32>,
    links: Links,
    /// Slots from the longest unused to the last used.
    uses: List,
    free: Vec<u32>,
}

impl GroupedLru {
    /// No key; room for `capacity` of them, at least one.
    pub fn new(capacity: u32) -> Self {
        Self {
            capacity,
            groups: Groups::default(),
            places: Vec::new(),
            links: Links::default(),
            uses: List::EMPTY,
            free: Vec::new(),
        }
    }

    /// Keys in memory.
    pub fn len(&self) -> u32 {
        self.uses.len()
    }

    /// Slot of a key in memory.
    #[inline]
    pub fn resident(&self, key: u64) -> Option<u32> {
        self.groups.slot(key)
    }

    /// A use of `key` if it is in memory; its slot.
    #[inline]
    pub fn use_resident(&mut self, key: u64) -> Option<u32> {
        let slot = self.groups.slot(key)?;
        self.uses.renew(&mut self.links, slot);
        Some(slot)
    }

    /// Brings `key` into memory. Err is its slot if it was there before, which is no use.
    #[inline(always)]
    pub fn enter(&mut self, key: u64) -> Result<Admission, u32> {
        if let Some(slot) = self.groups.slot(key) {
            return Err(slot);
        }
        if self.uses.len() < self.capacity {
            let slot = self.add(key);
            return Ok(Admission { slot, evicted: None });
        }
        let slot = self.uses.turn(&mut self.links).expect("a full cache has a key");
        self.groups.vacate(self.places[slot as usize]);
        self.places[slot as usize] = self.groups.occupy(key, slot);
        Ok(Admission { slot, evicted: Some(slot) })
    }

    /// Adds a key to a cache that is not full.
    #[inline(never)]
    fn add(&mut self, key: u64) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.places.push(0);
            self.links.grow();
            self.places.len() as u32 - 1
        });
        self.places[slot as usize] = self.groups.occupy(key, slot);
        self.uses.push(&mut self.links, slot);
        slot
    }

    /// Takes the key in a slot out.
    pub fn remove(&mut self, slot: u32) {
        self.groups.vacate(self.places[slot as usize]);
        self.uses.remove(&mut self.links, slot);
        self.free.push(slot);
    }
}

/// Keys of a group.
const GROUP: u64 = 8;

/// No slot.
const NONE: u32 = u32::MAX;

/// Slot of each key: a table whose rows are groups.
#[derive(Debug, Default)]
struct Groups {
    /// From the number of a group to its row.
    index: KeyIndex,
    /// Slot of each place; [`NONE`] where no key is.
    slots: Vec<u32>,
    rows: Vec<Row>,
    free: Vec<u32>,
    /// The group looked up last.
    last: Cell<LastGroup>,
}

/// A group with a key in memory.
#[derive(Debug)]
struct Row {
    number: u64,
    /// Keys of the group in memory.
    keys: u32,
}

/// A group and its row.
#[derive(Debug, Clone, Copy)]
struct LastGroup {
    number: u64,
    row: u32,
}

impl LastGroup {
    /// No key is in a group of this number.
    const UNKNOWN: Self = Self { number: u64::MAX, row: 0 };
}

impl Default for LastGroup {
    fn default() -> Self {
        Self::UNKNOWN
    }
}

impl Groups {
    #[inline(always)]
    fn row(&self, number: u64) -> Option<u32> {
        let last = self.last.get();
        if last.number == number {
            return Some(last.row);
        }
        let row = self.index.find(number, |row| self.rows[row as usize].number)?;
        self.last.set(LastGroup { number, row });
        Some(row)
    }

    #[inline(always)]
    fn slot(&self, key: u64) -> Option<u32> {
        let row = self.row(key / GROUP)?;
        let slot = self.slots[place(row, key)];
        (slot != NONE).then_some(slot)
    }

    /// Puts a key that has no slot into this one. Returns its place.
    #[inline(always)]
    fn occupy(&mut self, key: u64, slot: u32) -> u32 {
        let row = self.row(key / GROUP).unwrap_or_else(|| self.add(key / GROUP));
        self.rows[row as usize].keys += 1;
        let place = place(row, key);
        self.slots[place] = slot;
        place as u32
    }

    /// Begins a group.
    #[inline(never)]
    fn add(&mut self, number: u64) -> u32 {
        let row = self.free.pop().unwrap_or_else(|| {
            self.rows.push(Row { number: 0, keys: 0 });
            self.slots.extend([NONE; GROUP as usize]);
            let row = u32::try_from(self.rows.len() - 1).ok().filter(|row| *row <= ROW_MAX);
            row.expect("fewer than 2^29 groups of keys")
        });
        self.rows[row as usize].number = number;
        self.index.insert(number, row);
        self.last.set(LastGroup { number, row });
        row
    }

    /// Takes the key at a place out.
    #[inline(always)]
    fn vacate(&mut self, place: u32) {
        self.slots[place as usize] = NONE;
        let row = place / GROUP as u32;
        let keys = &mut self.rows[row as usize].keys;
        *keys -= 1;
        if *keys == 0 {
            self.remove(row);
        }
    }

    /// Ends a group without keys.
    #[inline(never)]
    fn remove(&mut self, row: u32) {
        self.index.remove(self.rows[row as usize].number, row);
        self.free.push(row);
        self.last.set(LastGroup::UNKNOWN);
    }
}

/// The last row whose places have 32 bits.
const ROW_MAX: u32 = u32::MAX / GROUP as u32;

/// The place of a key whose group is in this row, which is [`ROW_MAX`] at most.
#[inline]
fn place(row: u32, key: u64) -> usize {
    row as usize * GROUP as usize + (key % GROUP) as usize
}

#[cfg(test)]
mod tests {
    use freewheel_units::Prng;

    use super::super::eviction::Eviction;
    use super::super::lru::Lru;
    use super::*;

    #[test]
    fn grouped_lru_decides_as_lru_by_key() {
        for seed in 0..40 {
            let prng = &mut Prng::new(seed, "grouped lru");
            let capacity = 1 + prng.below(60) as u32;
            let (mut grouped, mut plain) = (GroupedLru::new(capacity), Lru::new(capacity));
            let keys = 1 + prng.below(4 * u64::from(capacity));
            for _ in 0..1_000 {
                // Runs, as reads and fetches have them.
                let start = prng.below(keys);
                let run = start..start + 1 + prng.below(20);
                let what = prng.below(4);
                for key in run {
                    let slots = (grouped.resident(key), plain.resident(key));
                    assert_eq!(slots.0.is_some(), slots.1.is_some(), "key {key}");
                    match (what, slots) {
                        (0, _) => {
                            grouped.use_resident(key);
                            plain.use_resident(key);
                        }
                        (1, (Some(slot), Some(same))) => {
                            grouped.remove(slot);
                            plain.remove(same);
                        }
                        (1, _) => {}
                        _ => {
                            let [evicts, same] =
                                [grouped.enter(key), plain.enter(key)].map(|entered| {
                                    entered.map(|admission| admission.evicted.is_some())
                                });
                            assert_eq!(evicts.ok(), same.ok(), "key {key}");
                        }
                    }
                    assert_eq!(grouped.len(), plain.len());
                }
            }
            let resident = |key: &u64| plain.resident(*key).is_some();
            let expected: Vec<u64> = (0..keys + 20).filter(resident).collect();
            let found = (0..keys + 20).filter(|&key| grouped.resident(key).is_some());
            assert_eq!(found.collect::<Vec<_>>(), expected);
            assert_eq!(expected.len(), plain.len() as usize);
        }
    }
}
