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
pub(super) fn units(worth: u32, shift: u32) -> u16 {
    u16::try_from((worth + (1 << shift) - 1) >> shift).unwrap_or(u16::MAX)
}

/// Worth of so many units, or any.
#[inline]
pub(super) fn worth(units: u16, shift: u32) -> u32 {
    if units == u16::MAX { u32::MAX } else { u32::from(units) << shift }
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
