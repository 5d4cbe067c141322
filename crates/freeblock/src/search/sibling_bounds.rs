//! The tables of siblings in the tree of bounds, in the order in which searches read them.
//!
//! **Problem.** A search opens a node by comparing about the same arc of all its sixteen children. With a
//! table after the other that is sixteen cache lines; here it is one.
//!
//! ```text
//!  table of a child        lines of a family, 64 bytes each
//!  slots 1: f0 f1 .. f15   slots 1, first 0-3:  [c0: f0 f1 f2 f3][c1: f0 f1 f2 f3] .. [c15: ..]
//!  slots 2: f0 f1 .. f15   slots 1, first 4-7:  [c0: f4 f5 f6 f7][c1: f4 f5 f6 f7] .. [c15: ..]
//! ```
//!
//! A coarse table has 16 x 16 arcs, so a family has 64 lines. The arc of 2 slots from slot 6 on lies in
//! line (2 - 1) x 4 + 6 / 4 = 5, at place 6 % 4 = 2 of each child.

use freewheel_units::Bytes;
use prefetch_index::prefetch_index;

use super::arcs::{SlotArc, worth};

/// Children of a node: a power of two.
pub(crate) const FANOUT: usize = 16;

/// Neighbouring first slots whose arcs share a [`Line`].
const NEAR: usize = 4;

/// Bounds of siblings in [`NEAR`] neighbouring arcs: a cache line.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
pub(crate) struct Line([[u8; NEAR]; FANOUT]);

impl Line {
    /// The greatest worth of any sibling in each arc.
    #[inline]
    pub fn greatest(&self) -> [u8; NEAR] {
        // Four siblings at a time, so that the compiler takes 16 bytes at once; then the four of them.
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

    /// Replaces what a sibling offers; returns whether that was different.
    #[inline]
    pub fn set(&mut self, sibling: usize, worths: [u8; NEAR]) -> bool {
        let before = &mut self.0[sibling];
        std::mem::replace(before, worths) != worths
    }
}

/// Families of a level: the tables of up to [`FANOUT`] siblings each, in lines by number of slots and
/// then by first slot.
#[derive(Debug, Clone)]
pub(crate) struct SiblingBounds {
    /// Slots of a turn.
    slots: usize,
    lines: Vec<Line>,
}

impl SiblingBounds {
    /// Families that offer no worth.
    pub fn new(families: usize, slots: usize) -> Self {
        let lines = vec![Line([[0; NEAR]; FANOUT]); families * Self::lines(slots)];
        Self { slots, lines }
    }

    /// Lines of a family with tables of `slots` slots.
    pub const fn lines(slots: usize) -> usize {
        slots * slots / NEAR
    }

    pub fn memory(&self) -> Bytes {
        Bytes::new((self.lines.capacity() * size_of::<Line>()) as u64)
    }

    /// The line of an arc; None for an arc of more than a turn, which no table has.
    #[inline]
    fn line_of(&self, family: usize, arc: SlotArc) -> Option<usize> {
        let before = family * self.slots + arc.slots - 1;
        (arc.slots <= self.slots).then_some(before * (self.slots / NEAR) + arc.first / NEAR)
    }

    #[inline]
    pub fn of(&self, family: usize) -> &[Line] {
        &self.lines[family * Self::lines(self.slots)..][..Self::lines(self.slots)]
    }

    #[inline]
    pub fn of_mut(&mut self, family: usize) -> &mut [Line] {
        &mut self.lines[family * Self::lines(self.slots)..][..Self::lines(self.slots)]
    }

    /// Prefetches what siblings offer in an arc.
    #[inline]
    pub fn prefetch(&self, family: usize, arc: SlotArc) {
        if let Some(line) = self.line_of(family, arc) {
            prefetch_index(&self.lines, line);
        }
    }

    /// Most that a sibling offers in an arc; any worth for more than a turn.
    #[inline]
    pub fn worth(&self, family: usize, arc: SlotArc, sibling: usize, shift: u32) -> u32 {
        let Some(line) = self.line_of(family, arc) else { return u32::MAX };
        worth(self.lines[line].0[sibling][arc.first % NEAR], shift)
    }

    /// Siblings whose byte in an arc is `least` or more, the lowest bit for the first.
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
        fn sibling_bounds_match_tables(seed: u64) {
            let prng = &mut Prng::new(seed, "family");
            says_of_each_sibling_and_of_all_what_its_tables_say::<COARSE>(prng)?;
            says_of_each_sibling_and_of_all_what_its_tables_say::<FINE>(prng)?;
        }
    }
}
