//! The tables of siblings in the tree of bounds, side by side.

use freewheel_units::Bytes;
use prefetch_index::prefetch_index;

use super::arcs::{SlotArc, worth};

/// Children of a node: a power of two.
pub(crate) const FANOUT: usize = 16;

/// Arcs of as many slots that lie side by side in a [`Line`], by the first of them.
const NEAR: usize = 4;

/// What siblings offer in [`NEAR`] arcs side by side: a line of the cache.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
pub(crate) struct Line([[u8; NEAR]; FANOUT]);

impl Line {
    /// Of the siblings the greatest worth in each of its arcs.
    #[inline]
    pub fn greatest(&self) -> [u8; NEAR] {
        // Four siblings at a time, and then these.
        let mut four = [0; 4 * NEAR];
        for siblings in self.0.as_flattened().as_chunks().0 {
            raise(&mut four, siblings);
        }
        let mut greatest = [0; NEAR];
        for sibling in four.as_chunks().0 {
            raise(&mut greatest, sibling);
        }
        greatest
    }

    /// Replaces what a sibling offers in its arcs; whether that was different.
    #[inline]
    pub fn set(&mut self, sibling: usize, worths: [u8; NEAR]) -> bool {
        let before = &mut self.0[sibling];
        std::mem::replace(before, worths) != worths
    }
}

/// Families of a level: the tables of up to [`FANOUT`] siblings each, in lines by number of slots and
/// then by first slot. A search looks at about the same arc of all siblings, which is one line.
#[derive(Debug, Clone)]
pub(crate) struct SiblingBounds {
    /// Slots of a turn.
    slots: usize,
    lines: Vec<Line>,
}

impl SiblingBounds {
    /// They offer nothing.
    pub fn new(families: usize, slots: usize) -> Self {
        let lines = vec![Line([[0; NEAR]; FANOUT]); families * Self::lines(slots)];
        Self { slots, lines }
    }

    /// Lines of a family whose tables have so many slots.
    pub const fn lines(slots: usize) -> usize {
        slots * slots / NEAR
    }

    /// Memory they take.
    pub fn memory(&self) -> Bytes {
        Bytes::new((self.lines.capacity() * size_of::<Line>()) as u64)
    }

    /// The line of an arc; none for more than a turn.
    #[inline]
    fn line_of(&self, family: usize, arc: SlotArc) -> Option<usize> {
        let before = family * self.slots + arc.slots - 1;
        (arc.slots <= self.slots).then_some(before * (self.slots / NEAR) + arc.first / NEAR)
    }

    /// Lines of a family.
    #[inline]
    pub fn of(&self, family: usize) -> &[Line] {
        &self.lines[family * Self::lines(self.slots)..][..Self::lines(self.slots)]
    }

    /// Lines of a family, to be changed.
    #[inline]
    pub fn of_mut(&mut self, family: usize) -> &mut [Line] {
        &mut self.lines[family * Self::lines(self.slots)..][..Self::lines(self.slots)]
    }

    /// Asks for the memory of what siblings offer in an arc.
    #[inline]
    pub fn prefetch(&self, family: usize, arc: SlotArc) {
        if let Some(line) = self.line_of(family, arc) {
            prefetch_index(&self.lines, line);
        }
    }

    /// What a sibling offers at most in an arc; any for more than a turn.
    #[inline]
    pub fn worth(&self, family: usize, arc: SlotArc, sibling: usize, shift: u32) -> u32 {
        let Some(line) = self.line_of(family, arc) else { return u32::MAX };
        worth(self.lines[line].0[sibling][arc.first % NEAR], shift)
    }

    /// Siblings that may offer `least` or more in an arc, the lowest bit for the first.
    #[inline]
    pub fn offering(&self, family: usize, arc: SlotArc, least: u8) -> u32 {
        let Some(line) = self.line_of(family, arc) else { return u32::MAX };
        let mut offering = 0;
        for (sibling, near) in self.lines[line].0.iter().enumerate() {
            offering |= u32::from(near[arc.first % NEAR] >= least) << sibling;
        }
        offering
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
    use freewheel_units::Prng;
    use proptest::prelude::*;
    use proptest::test_runner::TestCaseResult;

    use super::super::arcs::{COARSE, FINE, Table};
    use super::*;

    fn says_of_each_sibling_and_of_all_what_its_tables_say<const SLOTS: usize>(
        prng: &mut Prng,
    ) -> TestCaseResult {
        let number = prng.below(3) as usize;
        let mut families = SiblingBounds::new(3, SLOTS);
        let mut tables = vec![Table::<SLOTS>::NONE; FANOUT];
        let lines = SiblingBounds::lines(SLOTS);
        for _ in 0..prng.below(99) {
            let (sibling, line) = (prng.below(16) as usize, prng.below(lines as u64) as usize);
            let near = &mut tables[sibling].0.as_flattened_mut()[line * NEAR..][..NEAR];
            // Some of them as they were.
            let other = prng.below(1 << 32) as u32;
            let worths =
                if prng.below(2) == 0 { other.to_le_bytes() } else { near.try_into().unwrap() };
            prop_assert_eq!(families.of_mut(number)[line].set(sibling, worths), *near != worths);
            near.copy_from_slice(&worths);
        }
        for line in 0..lines {
            let of = |near: usize| {
                let worths = tables.iter().map(|table| table.0.as_flattened()[line * NEAR + near]);
                worths.max().unwrap()
            };
            prop_assert_eq!(
                families.of(number)[line].greatest(),
                std::array::from_fn::<_, NEAR, _>(of)
            );
        }
        for _ in 0..99 {
            let (first, slots) = (prng.below(SLOTS as u64), prng.below(SLOTS as u64 + 1) + 1);
            let arc = SlotArc { first: first as usize, slots: slots as usize };
            let (least, shift) = (prng.below(256) as u8, prng.below(17) as u32);
            for (sibling, table) in tables.iter().enumerate() {
                let said = table.0.get(arc.slots - 1).map(|row| row[arc.first]);
                let offers = said.is_none_or(|said| said >= least);
                prop_assert_eq!(families.offering(number, arc, least) >> sibling & 1 == 1, offers);
                let most = said.map_or(u32::MAX, |said| worth(said, shift));
                prop_assert_eq!(families.worth(number, arc, sibling, shift), most);
            }
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn a_family_says_of_each_sibling_and_of_all_what_its_tables_say(seed: u64) {
            let prng = &mut Prng::new(seed, "family");
            says_of_each_sibling_and_of_all_what_its_tables_say::<COARSE>(prng)?;
            says_of_each_sibling_and_of_all_what_its_tables_say::<FINE>(prng)?;
        }
    }
}
