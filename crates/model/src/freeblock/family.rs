//! The tables of siblings in the tree of bounds, side by side.

use prefetch_index::prefetch_index;

use super::arcs::{SLOTS, SlotArc, worth};

/// Children of a node: a power of two.
pub(super) const FANOUT: usize = 16;

/// First slots of arcs that lie side by side in a [`Family`].
const NEAR: usize = 4;

/// Arcs side by side, [`NEAR`] each, of a table: a bit for each in a word.
pub(super) const NEARS: usize = SLOTS * SLOTS / NEAR;

/// The tables of up to [`FANOUT`] siblings: `[number of slots - 1][first slot / NEAR][sibling][first
/// slot % NEAR]`. A search looks at about the same arc of all of them, which is one line of the cache.
#[derive(Debug, Clone)]
#[repr(align(64))]
pub(super) struct Family([[[[u8; NEAR]; FANOUT]; SLOTS / NEAR]; SLOTS]);

impl Family {
    pub const NONE: Self = Self([[[[0; NEAR]; FANOUT]; SLOTS / NEAR]; SLOTS]);

    /// Of the siblings the greatest worth of some arcs side by side.
    #[inline]
    pub fn greatest(&self, arcs: usize) -> [u8; NEAR] {
        let near = self.0.as_flattened()[arcs].as_flattened();
        // Four siblings at a time, and then these.
        let mut four = [0; 4 * NEAR];
        for siblings in near.as_chunks().0 {
            raise(&mut four, siblings);
        }
        let mut greatest = [0; NEAR];
        for sibling in four.as_chunks().0 {
            raise(&mut greatest, sibling);
        }
        greatest
    }

    /// Asks for the memory of what siblings offer in an arc.
    #[inline]
    pub fn prefetch(&self, arc: SlotArc) {
        if let Some(row) = self.0.get(arc.slots - 1) {
            prefetch_index(row, arc.first / NEAR);
        }
    }

    /// What a sibling offers at most in an arc; any for more than a turn.
    #[inline]
    pub fn worth(&self, arc: SlotArc, sibling: usize, shift: u32) -> u32 {
        let row = self.0.get(arc.slots - 1);
        let near = |row: &[[[u8; NEAR]; FANOUT]; SLOTS / NEAR]| row[arc.first / NEAR][sibling];
        row.map_or(u32::MAX, |row| worth(near(row)[arc.first % NEAR], shift))
    }

    /// Siblings that may offer `least` or more in an arc, the lowest bit for the first.
    #[inline]
    pub fn offering(&self, arc: SlotArc, least: u8) -> u32 {
        let Some(row) = self.0.get(arc.slots - 1) else { return u32::MAX };
        let mut offering = 0;
        for (sibling, near) in row[arc.first / NEAR].iter().enumerate() {
            offering |= u32::from(near[arc.first % NEAR] >= least) << sibling;
        }
        offering
    }

    /// Replaces what a sibling offers in arcs side by side; whether that was different.
    #[inline]
    pub fn set(&mut self, sibling: usize, arcs: usize, worths: [u8; NEAR]) -> bool {
        let before = &mut self.0.as_flattened_mut()[arcs][sibling];
        std::mem::replace(before, worths) != worths
    }
}

#[inline]
fn raise<const N: usize>(worths: &mut [u8; N], others: &[u8; N]) {
    for (worth, other) in worths.iter_mut().zip(others) {
        *worth = (*worth).max(*other);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::arcs::Table;
    use super::*;

    proptest! {
        #[test]
        fn a_family_says_of_each_sibling_and_of_all_what_its_tables_say(
            seed: u64, sets in prop::collection::vec((0..FANOUT, 0..NEARS, any::<[u8; NEAR]>()), 1..99),
            (first, slots) in (0..SLOTS, 1..=SLOTS + 1), (least, shift) in (any::<u8>(), 0u32..17),
        ) {
            let (mut family, mut tables) = (Family::NONE, vec![Table::NONE; FANOUT]);
            for (number, &(sibling, arcs, worths)) in sets.iter().enumerate() {
                // Some of them as they were.
                let near = &mut tables[sibling].0.as_flattened_mut()[arcs * NEAR..][..NEAR];
                let worths = if seed >> (number % 64) & 1 == 1 { worths } else { near.try_into().unwrap() };
                prop_assert_eq!(family.set(sibling, arcs, worths), *near != worths);
                near.copy_from_slice(&worths);
            }
            for arcs in 0..NEARS {
                let of = |near: usize| {
                    let worths = tables.iter().map(|table| table.0.as_flattened()[arcs * NEAR + near]);
                    worths.max().unwrap()
                };
                prop_assert_eq!(family.greatest(arcs), std::array::from_fn::<_, NEAR, _>(of));
            }
            let arc = SlotArc { first, slots };
            for (sibling, table) in tables.iter().enumerate() {
                let said = table.0.get(slots - 1).map(|row| row[first]);
                let offers = said.is_none_or(|said| said >= least);
                prop_assert_eq!(family.offering(arc, least) >> sibling & 1 == 1, offers);
                let most = said.map_or(u32::MAX, |said| worth(said, shift));
                prop_assert_eq!(family.worth(arc, sibling, shift), most);
            }
        }
    }
}
