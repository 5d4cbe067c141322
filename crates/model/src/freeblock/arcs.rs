//! Worth by arcs of the turn.
//!
//! The turn is cut into [`SLOTS`] slots. What is wanted lies in one or several of them; an arc, some
//! slots side by side, offers what lies in it wholly.

use super::tracks::TrackPlace;
use crate::drive::Divisor;

/// Slots of a turn: a power of two. More make bounds closer and tables larger, by the square.
pub(super) const SLOTS: usize = 16;

/// Steps of an angle in a slot.
const SLOT_STEPS: u64 = (1 << 32) / SLOTS as u64;

/// Slots of a window: the first, and how many. All of them stand for any window of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SlotArc {
    pub first: usize,
    pub slots: usize,
}

/// Worth of what is wanted on a track or a cylinder by where it lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Spans {
    /// `[number of slots - 1][first slot]`; what lies in more than all but one counts in the last.
    worth: [[u32; SLOTS]; SLOTS],
    /// Rows of it that are in use.
    rows: usize,
    total: u32,
}

/// Worth by arc: `[number of slots - 1][first slot]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Arcs(pub [[u16; SLOTS]; SLOTS]);

impl Spans {
    pub const NONE: Self = Self { worth: [[0; SLOTS]; SLOTS], rows: 0, total: 0 };

    /// Worth of all of it.
    pub fn total(&self) -> u32 {
        self.total
    }

    /// Adds an item of `size` sectors at `sector` of a track.
    #[inline]
    pub fn add(&mut self, place: &TrackPlace<'_>, sector: u32, size: u32, worth: u32) {
        let (first, last) = slots_of(place, sector, size);
        self.add_to(first, last, worth);
    }

    /// Adds `count` items of `size` sectors each that follow on each other on a track from `sector`
    /// on, each of the same worth.
    pub fn add_run(
        &mut self,
        place: &TrackPlace<'_>,
        mut sector: u32,
        size: Divisor,
        mut count: u32,
        worth: u32,
    ) {
        let start = u64::from(place.start().steps());
        let sectors = size.get() as u32;
        while count > 0 {
            let (first, last) = slots_of(place, sector, sectors);
            let mut same = 1;
            if count > 1 {
                // Those behind it that begin and end in the same slots.
                let begin = place.first_sector_from((first + 1) * SLOT_STEPS - start);
                let ends = place.first_sector_from((last + 1) * SLOT_STEPS - start + 1) - 1;
                let begins_there = size.divide(u64::from(begin - 1 - sector)).0 as u32 + 1;
                let ends_there = size.divide(u64::from(ends - sector)).0 as u32;
                same = begins_there.min(ends_there).min(count);
            }
            self.add_to(first, last, worth * same);
            sector += sectors * same;
            count -= same;
        }
    }

    #[inline]
    fn add_to(&mut self, first: u64, last: u64, worth: u32) {
        let slots = ((last - first) as usize + 1).min(SLOTS);
        self.worth[slots - 1][first as usize % SLOTS] += worth;
        self.rows = self.rows.max(slots);
        self.total += worth;
    }
}

/// Slots in which `size` sectors at `sector` of a track begin and end; whole turns are not taken off.
#[inline]
fn slots_of(place: &TrackPlace<'_>, sector: u32, size: u32) -> (u64, u64) {
    let start = u64::from(place.start().steps());
    let end = start + place.turned(sector + size);
    ((start + place.turned(sector)) / SLOT_STEPS, (end - 1) / SLOT_STEPS)
}

/// Worth in units of a power of two, rounded up; the greatest stands for any more than it can say.
#[inline]
fn units(worth: u32, shift: u32) -> u16 {
    u16::try_from((worth + (1 << shift) - 1) >> shift).unwrap_or(u16::MAX)
}

/// Significant bits below the first one of a byte that stands for a worth.
const BITS: u32 = 4;

/// What is taken off the leading bits of one as a floating-point number, to have it as byte one.
const BELOW_ONE: u32 = (1f32.to_bits() >> (23 - BITS)) - 1;

/// The most units that a byte can say: of the last but one.
pub(super) const UNITS_MAX: u64 = 29 << 11;

/// Units in a byte, rounded up: exponent and leading bits of a floating-point number. Up to 32 and
/// multiples by powers of two of what is below are exact, the rest to a sixteenth. Greater worth is
/// a greater byte; the greatest stands for any.
#[inline]
fn byte(units: u16) -> u8 {
    let rounding = (1 << (23 - BITS)) - 1;
    let leading = (f32::from(units).to_bits() + rounding) >> (23 - BITS);
    leading.saturating_sub(BELOW_ONE).min(u8::MAX.into()) as u8
}

/// Worth that a byte stands for, at least.
#[inline]
pub(super) fn worth(byte: u8, shift: u32) -> u32 {
    match byte {
        0 => 0,
        u8::MAX => u32::MAX,
        _ => (f32::from_bits((u32::from(byte) + BELOW_ONE) << (23 - BITS)) as u32) << shift,
    }
}

/// Worth by arc, each in a byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Table(pub [[u8; SLOTS]; SLOTS]);

impl Table {
    pub const NONE: Self = Self([[0; SLOTS]; SLOTS]);

    pub fn of(arcs: &Arcs) -> Self {
        let mut table = Self::NONE;
        for (row, arcs) in table.0.iter_mut().zip(&arcs.0) {
            for (entry, units) in row.iter_mut().zip(arcs) {
                *entry = byte(*units);
            }
        }
        table
    }
}

/// A worth in a byte.
#[inline]
pub(super) fn byte_of(worth: u32, shift: u32) -> u8 {
    byte(units(worth, shift))
}

impl Arcs {
    pub const NONE: Self = Self([[0; SLOTS]; SLOTS]);

    /// What lies wholly in each arc, in units of a power of two, rounded up.
    pub fn of(spans: &Spans, shift: u32) -> Self {
        let mut arcs = Self::NONE;
        let (mut sums, mut all) = ([0u16; SLOTS], 0u16);
        // By the first slot of an arc: what lies in it and ends with it. Twice around, so that each
        // row follows from the one before without a wrap: one slot further on.
        let mut ending = [0u16; 2 * SLOTS];
        for (added, row) in arcs.0.iter_mut().enumerate() {
            if added < spans.rows {
                ending.copy_within(1.., 0);
                for (slot, worth) in spans.worth[added].iter().enumerate() {
                    let worth = units(*worth, shift);
                    all = all.saturating_add(worth);
                    for at in [slot, slot + SLOTS] {
                        ending[at] = ending[at].saturating_add(worth);
                    }
                }
            }
            for (sum, ending) in
                sums.iter_mut().zip(&ending[(added + 1).saturating_sub(spans.rows)..])
            {
                *sum = sum.saturating_add(*ending);
            }
            *row = sums;
        }
        arcs.0[SLOTS - 1] = [all; SLOTS];
        arcs
    }

    /// The greater of both, arc by arc.
    pub fn raise(&mut self, other: &Self) {
        for (row, others) in self.0.iter_mut().zip(&other.0) {
            for (worth, other) in row.iter_mut().zip(others) {
                *worth = (*worth).max(*other);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_says_no_less_than_any_worth_and_at_most_a_sixteenth_more() {
        for units in 0..=u16::MAX {
            let said = worth(byte(units), 0);
            assert!(said >= u32::from(units), "{units} as {said}");
            if u64::from(units) <= UNITS_MAX {
                assert!(said <= u32::from(units) + u32::from(units) / 16, "{units} as {said}");
            }
        }
        for blocks in 0..=32 {
            assert_eq!(worth(byte(blocks * 128), 3), u32::from(blocks) * 1024, "blocks are exact");
        }
    }

    #[test]
    fn greater_worth_is_a_greater_byte() {
        for units in 1..=u16::MAX {
            assert!(byte(units) >= byte(units - 1), "{units}");
        }
        assert_eq!((byte(0), byte(1), byte(u16::MAX)), (0, 1, u8::MAX));
        let most = UNITS_MAX as u16;
        assert_eq!((byte(most), byte(most + 1)), (u8::MAX - 1, u8::MAX));
    }
}
