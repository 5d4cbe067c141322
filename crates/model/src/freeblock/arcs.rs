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

/// Slots of a window: the first, and how many. All of them stand for any window up to a turn, one
/// more for any at all.
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

    pub fn clear(&mut self) {
        self.worth[..self.rows].fill([0; SLOTS]);
        (self.rows, self.total) = (0, 0);
    }

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
        let mut begin = start + place.turned(sector);
        while count > 0 {
            let first = begin / SLOT_STEPS;
            // Those that end in the slot that they begin in.
            let end = place.first_sector_from((first + 1) * SLOT_STEPS - start + 1) - 1;
            let within = (size.divide(u64::from(end - sector)).0 as u32).min(count);
            if within > 0 {
                self.add_to(first, first, worth * within);
                sector += sectors * within;
                count -= within;
                begin = start + place.turned(sector);
            }
            // The next one mostly begins there as well.
            if count > 0 && begin / SLOT_STEPS == first {
                let end = start + place.turned(sector + sectors);
                self.add_to(first, (end - 1) / SLOT_STEPS, worth);
                sector += sectors;
                count -= 1;
                begin = end;
            }
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

/// What ends in the last slot of arcs that grow slot by slot.
struct Ending<'a> {
    spans: &'a Spans,
    shift: u32,
    /// By the first slot of an arc: what lies in it and ends with it. Twice around, so that each
    /// row follows from the one before without a wrap: one slot further on. Behind that nothing.
    twice: [u16; 2 * SLOTS + 1],
}

impl<'a> Ending<'a> {
    fn new(spans: &'a Spans, shift: u32) -> Self {
        Self { spans, shift, twice: [0; 2 * SLOTS + 1] }
    }

    /// Goes on to arcs of `added + 1` slots, from one slot less.
    #[inline]
    fn advance(&mut self, added: usize) {
        // Most things lie in one slot or two.
        if added < self.spans.rows {
            self.add_row(added);
        }
    }

    fn add_row(&mut self, added: usize) {
        let before = self.twice;
        let worth = self.spans.worth[added].map(|worth| units(worth, self.shift));
        for (slot, worth) in worth.into_iter().enumerate() {
            for at in [slot, slot + SLOTS] {
                self.twice[at] = before[at + 1].saturating_add(worth);
            }
        }
    }

    /// What lies in arcs of `added + 1` slots and ends in their last.
    #[inline]
    fn at(&self, added: usize) -> &[u16; SLOTS] {
        let first = (added + 1).saturating_sub(self.spans.rows.max(1));
        self.twice[first..].first_chunk().expect("no arc has more slots than twice the turn")
    }
}

/// How far apart in the turn two surfaces are visited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Apart {
    /// What is read on two surfaces ends so many slots apart at least.
    Slots(usize),
    /// In one slot ends what is read on two surfaces, but not on three.
    TwoInOne,
    /// There is no time to speak of between them.
    Nothing,
}

impl Apart {
    /// For a time to change heads and to read the smallest thing, and that of a slot.
    pub fn new(between_ns: u64, slot_ns: u64) -> Self {
        match between_ns / slot_ns.max(1) {
            0 if 2 * between_ns >= slot_ns => Self::TwoInOne,
            0 => Self::Nothing,
            slots => Self::Slots(slots as usize),
        }
    }
}

impl Arcs {
    pub const NONE: Self = Self([[0; SLOTS]; SLOTS]);

    /// Raises it to what lies wholly in each arc, in units of a power of two, rounded up.
    pub fn raise(&mut self, spans: &Spans, shift: u32) {
        let mut sums = [0u16; SLOTS];
        let mut ending = Ending::new(spans, shift);
        for (added, row) in self.0[..SLOTS - 1].iter_mut().enumerate() {
            ending.advance(added);
            extend(&mut sums, &[0; SLOTS], ending.at(added));
            raise_row(row, &sums);
        }
        raise_row(&mut self.0[SLOTS - 1], &[units(spans.total, shift); SLOTS]);
    }

    /// No less than a path over several surfaces takes in each arc: in a slot it is on one of them,
    /// or on as many as there is time for.
    pub fn of_paths(surfaces: &[Spans], apart: Apart, shift: u32) -> Self {
        let total = surfaces.iter().map(|spans| spans.total).sum();
        let mut endings: Vec<Ending<'_>> =
            surfaces.iter().map(|spans| Ending::new(spans, shift)).collect();
        // By surface, the best path so far that is on it.
        let mut paths = vec![[0u16; SLOTS]; surfaces.len()];
        // By number of slots, the best path of all.
        let mut best = [[0u16; SLOTS]; SLOTS + 2];
        for added in 0..=SLOTS {
            endings.iter_mut().for_each(|ending| ending.advance(added));
            let came = match apart {
                Apart::Slots(slots) => best[(added + 1).saturating_sub(slots)],
                Apart::TwoInOne | Apart::Nothing => best[added],
            };
            if apart == Apart::Nothing {
                best[added + 1] = came;
                for ending in &endings {
                    extend(&mut best[added + 1], &came, ending.at(added));
                }
                continue;
            }
            // The best of the paths, and the best but one.
            let [mut first, mut second] = [[0u16; SLOTS]; 2];
            for (path, ending) in paths.iter_mut().zip(&endings) {
                extend(path, &came, ending.at(added));
                for ((first, second), path) in first.iter_mut().zip(&mut second).zip(path.iter()) {
                    *second = (*second).max((*first).min(*path));
                    *first = (*first).max(*path);
                }
            }
            if apart == Apart::TwoInOne {
                let firsts = first;
                for (path, ending) in paths.iter_mut().zip(&endings) {
                    // From the best of the others.
                    let mut from = second;
                    for ((from, first), path) in from.iter_mut().zip(&firsts).zip(path.iter()) {
                        *from = if path < first { *first } else { *from };
                    }
                    let mut here = [0; SLOTS];
                    extend(&mut here, &from, ending.at(added));
                    raise_row(path, &here);
                    raise_row(&mut first, path);
                }
            }
            best[added + 1] = first;
        }
        let mut arcs = Self::NONE;
        arcs.0.copy_from_slice(&best[1..=SLOTS]);
        // A turn touches its first slot twice.
        let turn = best[SLOTS + 1].into_iter().fold(0, u16::max);
        arcs.0[SLOTS - 1] = [turn.min(units(total, shift)); SLOTS];
        arcs
    }
}

#[inline]
fn raise_row(row: &mut [u16; SLOTS], others: &[u16; SLOTS]) {
    for (worth, other) in row.iter_mut().zip(others) {
        *worth = (*worth).max(*other);
    }
}

/// Paths on a surface go on, or begin after those that came from elsewhere, with what ends now.
#[inline]
fn extend(path: &mut [u16; SLOTS], came: &[u16; SLOTS], ending: &[u16; SLOTS]) {
    for ((path, came), ending) in path.iter_mut().zip(came).zip(ending) {
        *path = (*path).max(*came).saturating_add(*ending);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, LazyLock};

    use super::super::tracks::Tracks;
    use super::*;
    use crate::drive::{Drive, Position};

    static TRACKS: LazyLock<Tracks> = LazyLock::new(|| {
        let spec = toml::from_str(include_str!("../../../../drives/atlas10k.toml")).unwrap();
        Tracks::new(&Arc::new(Drive::build(&spec).unwrap()))
    });

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

    /// Units of time in a slot and in a turn.
    const SLOT: u64 = 1000;
    const TURN: u64 = SLOT * SLOTS as u64;

    /// Something wanted: surface, beginning in the turn, length, worth.
    type Thing = (usize, u64, u64, u32);

    /// The heaviest path that begins at `from` or later, with `switch` between two surfaces.
    fn heaviest(things: &[Thing], (from, to): (u64, u64), switch: u64) -> u32 {
        let mut passing: Vec<Thing> = (0..3)
            .flat_map(|turn| things.iter().map(move |&(s, at, l, w)| (s, at + turn * TURN, l, w)))
            .filter(|&(_, at, length, _)| from <= at && at + length <= to)
            .collect();
        passing.sort_by_key(|&(_, at, ..)| at);
        let mut weights: Vec<u32> = Vec::new();
        for (number, &(surface, at, _, worth)) in passing.iter().enumerate() {
            let before = (0..number).filter(|&before| {
                let (on, begin, length, _) = passing[before];
                begin + length + if on == surface { 0 } else { switch } <= at
            });
            weights.push(worth + before.map(|before| weights[before]).max().unwrap_or(0));
        }
        weights.into_iter().max().unwrap_or(0)
    }

    proptest::proptest! {
        #[test]
        fn a_run_is_its_items_one_by_one(
            (cylinder, surface) in (0u32..10_000, 0u32..6),
            (size, from, upto) in (1u32..140, 0.0..1f64, 0.0..1f64),
            worth in 1u32..300,
        ) {
            let place = TRACKS.place(Position { cylinder, surface }).unwrap();
            let sector = (from * f64::from(place.sectors())) as u32;
            let count = (upto * f64::from((place.sectors() - sector) / size + 1)) as u32;
            let (mut run, mut items) = (Spans::NONE, Spans::NONE);
            run.add_run(&place, sector, Divisor::new(size.into()), count, worth);
            (0..count).for_each(|item| items.add(&place, sector + item * size, size, worth));
            proptest::prop_assert_eq!(run, items);
        }

        #[test]
        fn no_path_takes_more_than_its_arc_offers(
            things in proptest::collection::vec((0usize..4, 0..TURN, 1u64..2500, 1u32..40), 1..40),
            switch in 0u64..2500,
            (from, length) in (0..TURN, 1..=TURN),
        ) {
            let things: Vec<Thing> =
                things.into_iter().filter(|&(_, at, length, _)| at + length <= TURN).collect();
            let mut surfaces = vec![Spans::NONE; 4];
            for &(surface, at, length, worth) in &things {
                surfaces[surface].add_to(at / SLOT, (at + length - 1) / SLOT, worth);
            }
            let shortest = things.iter().map(|thing| thing.2).min().unwrap_or(1);
            let apart = Apart::new(switch + shortest, SLOT);
            let arcs = Arcs::of_paths(&surfaces, apart, 0);
            let (first, last) = (from / SLOT, (from + length - 1) / SLOT);
            let slots = if length >= (SLOTS as u64 - 2) * SLOT { SLOTS } else {
                (last - first + 1) as usize
            };
            let offered = u32::from(arcs.0[slots - 1][first as usize]);
            let taken = heaviest(&things, (from, from + length), switch);
            proptest::prop_assert!(taken <= offered, "{taken} of {offered}, {apart:?}");
            // On one surface it is what lies there.
            let on = |thing: &&Thing| thing.0 == 0;
            let there: Vec<Thing> = things.iter().filter(on).copied().collect();
            let mut alone = Arcs::NONE;
            alone.raise(&surfaces[0], 0);
            let alone = u32::from(alone.0[slots - 1][first as usize]);
            proptest::prop_assert!(heaviest(&there, (from, from + length), switch) <= alone);
        }
    }
}
