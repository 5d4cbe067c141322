//! Worth by arcs of the turn.
//!
//! **Problem.** Before a search looks at a track it needs a bound on the worth that passes in a window of
//! the turn. There are far too many windows to keep a number for each.
//!
//! So the turn is cut into slots, and every window is rounded outwards to an *arc*, slots side by side. An
//! arc offers what lies in it wholly. A window lies in its arc, so no window offers more than its arc.
//!
//! ```text
//!  slot      0       1       2       3        A, worth 8, lies in slot 0
//!        |--AAA--|---BBBB|BBB----|--CC---|    B, worth 16, begins in slot 1 and ends in slot 2
//!                ^----arc of 2---^            C, worth 8, lies in slot 3
//! ```
//!
//! | first slot | 1 slot | 2 slots | 3 slots | 4 slots |
//! |---|---|---|---|---|
//! | 0 | 8 | 8 | 24 | 32 |
//! | 1 | 0 | 16 | 24 | 32 |
//! | 2 | 0 | 8 | 16 | 32 |
//! | 3 | 8 | 16 | 16 | 32 |
//!
//! A window from the middle of slot 1 to the middle of slot 2 has a bound of 16, whether B passes in it
//! wholly or not. More slots make bounds closer and tables larger, by the square.

use super::tracks::TrackPlace;
use freewheel_model::drive::Divisor;

/// Slots of a turn. Every number of slots is a power of two.
pub(crate) const COARSE: usize = 16;

/// Slots of a turn for tables that no cache holds: closer bounds there save waits for memory.
pub(crate) const FINE: usize = 32;

/// Slots of a window. All slots of a turn cover every window up to a turn, one more covers any window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SlotArc {
    pub first: usize,
    pub slots: usize,
}

/// Worth of a track's wanted blocks by the slot in which each begins and the part of a slot in which it
/// ends. A slot has `PARTS` parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Spans<const PARTS: usize, const SLOTS: usize = COARSE> {
    /// `[last part of its slot][slots from first to last][first slot]`. A block that ends more than a
    /// turn behind its first slot counts in the last part of that turn.
    worth: [[[u32; SLOTS]; SLOTS]; PARTS],
    /// By the number of parts from beginning to end, the lowest bit for one: whether there is any block.
    used: u64,
    /// By number of slots: the most that any arc holds of runs around most of the turn.
    around: Option<[u32; SLOTS]>,
    total: u32,
}

/// Worth by arc: `[number of slots - 1][first slot]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Arcs<const SLOTS: usize = COARSE>(pub [[u16; SLOTS]; SLOTS]);

/// Receives the wanted blocks and pieces of a track.
pub(crate) trait Collect {
    /// Adds `count` adjacent blocks of `size` sectors each from `sector` on, of `worth` each.
    fn add_run(
        &mut self,
        place: &TrackPlace<'_>,
        sector: u32,
        size: Divisor,
        count: u32,
        worth: u32,
    );

    /// Adds those of 64 adjacent blocks of `size` sectors from `sector` on whose bits are set, of `worth`
    /// each. They form no long runs.
    fn add_each(&mut self, place: &TrackPlace<'_>, sector: u32, size: u32, bits: u64, worth: u32);

    /// Adds a piece of a block: `size` sectors at `sector`.
    fn add_piece(&mut self, place: &TrackPlace<'_>, sector: u32, size: u32, worth: u32);

    fn clear(&mut self);
}

impl<const PARTS: usize, const SLOTS: usize> Spans<PARTS, SLOTS> {
    pub const NONE: Self =
        Self { worth: [[[0; SLOTS]; SLOTS]; PARTS], used: 0, around: None, total: 0 };

    /// Steps of an angle in a slot.
    const SLOT_STEPS: u64 = (1 << 32) / SLOTS as u64;

    /// Steps of an angle in a part of a slot.
    const STEPS: u64 = Self::SLOT_STEPS / PARTS as u64;

    pub fn total(&self) -> u32 {
        self.total
    }

    /// Adds a block that begins in slot `first` and ends in part `last_part`, both counted over turns.
    #[inline]
    pub(crate) fn add_to(&mut self, first: u64, last_part: u64, worth: u32) {
        self.used |= self.add_at(first, last_part, worth);
        self.total += worth;
    }

    /// As [`Self::add_to`], without the total; returns the bit of `used`.
    #[inline]
    fn add_at(&mut self, first: u64, last_part: u64, worth: u32) -> u64 {
        // Capped at a turn: an earlier end only lets more arcs hold it, so bounds stay above.
        let on = ((last_part - first * PARTS as u64) as usize).min(SLOTS * PARTS - 1);
        self.worth[on % PARTS][on / PARTS][first as usize % SLOTS] += worth;
        1 << on
    }

    /// Adds a run of blocks around most of the turn. An arc holds at most the blocks that fit its length,
    /// wherever it begins; with blocks nearly everywhere that bound is close.
    pub fn add_around(&mut self, place: &TrackPlace<'_>, size: Divisor, count: u32, worth: u32) {
        let around = self.around.get_or_insert([0; SLOTS]);
        for (steps, most) in (1..).map(|slots| slots * Self::SLOT_STEPS).zip(around) {
            // Whole blocks that fit this many sectors.
            let fit = size.divide(place.sectors_within(steps)).0.min(count.into());
            *most += worth * fit as u32;
        }
        self.total += worth * count;
    }

    /// As [`Collect::add_each`], and shows the angle at which each block begins, in steps over turns.
    #[inline]
    pub fn add_each(
        &mut self,
        place: &TrackPlace<'_>,
        sector: u32,
        size: u32,
        mut bits: u64,
        worth: u32,
        mut show: impl FnMut(u64),
    ) {
        let start = u64::from(place.start().steps());
        let (mut used, total) = (0, worth * bits.count_ones());
        while bits != 0 {
            let from = sector + bits.trailing_zeros() * size;
            bits &= bits - 1;
            let begin = start + place.turned(from);
            let end = start + place.turned(from + size);
            used |= self.add_at(begin / Self::SLOT_STEPS, (end - 1) / Self::STEPS, worth);
            show(begin);
        }
        self.used |= used;
        self.total += total;
    }
}

impl<const PARTS: usize, const SLOTS: usize> Collect for Spans<PARTS, SLOTS> {
    fn add_run(
        &mut self,
        place: &TrackPlace<'_>,
        mut sector: u32,
        size: Divisor,
        mut count: u32,
        worth: u32,
    ) {
        let start = u64::from(place.start().steps());
        let sectors = size.get() as u32;
        // A block no longer than a part ends in the part in which it begins or in the next.
        let is_short = place.turned(sectors) <= Self::STEPS;
        let mut begin = start + place.turned(sector);
        while count > 0 {
            // All blocks that begin in the same part are added at once: a whole track is a few dozen
            // steps instead of hundreds of blocks.
            let (first, part) = (begin / Self::SLOT_STEPS, begin / Self::STEPS);
            if is_short {
                // Blocks that end in the part in which they begin: all with an end at or before the last
                // sector edge of the part.
                let end = place.first_sector_from((part + 1) * Self::STEPS - start + 1) - 1;
                let within = (size.divide(u64::from(end - sector)).0 as u32).min(count);
                if within > 0 {
                    self.add_to(first, part, worth * within);
                    sector += sectors * within;
                    count -= within;
                    begin = start + place.turned(sector);
                }
            }
            // The next block mostly begins in this part and ends in a later one.
            if count > 0 && begin / Self::STEPS == part {
                let end = start + place.turned(sector + sectors);
                self.add_to(first, (end - 1) / Self::STEPS, worth);
                sector += sectors;
                count -= 1;
                begin = end;
            }
        }
    }

    #[inline]
    fn add_each(&mut self, place: &TrackPlace<'_>, sector: u32, size: u32, bits: u64, worth: u32) {
        self.add_each(place, sector, size, bits, worth, |_| {});
    }

    #[inline]
    fn add_piece(&mut self, place: &TrackPlace<'_>, sector: u32, size: u32, worth: u32) {
        self.add_each(place, sector, size, 1, worth, |_| {});
    }

    fn clear(&mut self) {
        // Only rows that were written: most tracks use few of them.
        while self.used != 0 {
            let on = self.used.trailing_zeros() as usize;
            self.worth[on % PARTS][on / PARTS] = [0; SLOTS];
            self.used &= self.used - 1;
        }
        self.around = None;
        self.total = 0;
    }
}

/// Worth in units of `1 << shift`, rounded up so that no bound falls below it. `u16::MAX` is any worth.
#[inline]
pub(crate) fn units(worth: u32, shift: u32) -> u16 {
    let is_more = u32::from(worth & ((1 << shift) - 1) != 0);
    // No overflow: with bits left over the quotient is below the greatest. Without a check the compiler
    // computes many entries at once.
    (worth >> shift).wrapping_add(is_more).min(u16::MAX.into()) as u16
}

/// Significant bits, below the leading one, of a byte.
const BITS: u32 = 4;

/// Difference between the leading bits of the floating-point number 1.0 and byte one.
const BELOW_ONE: u32 = (1f32.to_bits() >> (23 - BITS)) - 1;

/// Units of the greatest byte but one. The greatest is any worth.
pub(crate) const UNITS_MAX: u64 = 29 << 11;

/// Units as a byte, rounded up: exponent and leading bits of a floating-point number. Numbers up to 32
/// and their multiples by powers of two are exact, others at most a sixteenth too great. More units
/// never give a lesser byte, so bytes compare like worths. `u8::MAX` is any worth.
#[inline]
fn byte(units: u16) -> u8 {
    // Carries into the bits that are kept unless all bits below are zero: rounds up.
    let rounding = (1 << (23 - BITS)) - 1;
    let leading = (f32::from(units).to_bits() + rounding) >> (23 - BITS);
    leading.saturating_sub(BELOW_ONE).min(u8::MAX.into()) as u8
}

/// Greatest worth of which a table says this byte.
#[inline]
pub(crate) fn worth(byte: u8, shift: u32) -> u32 {
    match byte {
        0 => 0,
        u8::MAX => u32::MAX,
        _ => {
            // The leading one, the bits after it, and the exponent as in a floating-point number.
            let (exponent, bits) = ((byte - 1) >> BITS, (byte - 1) & ((1 << BITS) - 1));
            ((1 << BITS | u32::from(bits)) << exponent >> BITS) << shift
        }
    }
}

/// Worth by arc, each as a byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Table<const SLOTS: usize>(pub [[u8; SLOTS]; SLOTS]);

impl<const SLOTS: usize> Table<SLOTS> {
    pub const NONE: Self = Self([[0; SLOTS]; SLOTS]);

    pub fn of(arcs: &Arcs<SLOTS>) -> Self {
        let mut table = Self::NONE;
        for (row, arcs) in table.0.iter_mut().zip(&arcs.0) {
            for (entry, units) in row.iter_mut().zip(arcs) {
                *entry = byte(*units);
            }
        }
        table
    }
}

/// The least byte of a worth above `known`. An arc with a lesser byte offers at most `known`, so
/// its node may be left out.
#[inline]
pub(crate) fn byte_above(known: u32, shift: u32) -> u8 {
    // Entries count units rounded up, so a worth above `known` counts at least one unit more.
    byte(u16::try_from((known >> shift).saturating_add(1)).unwrap_or(u16::MAX))
}

/// Walks over arcs that begin with a slot and grow part by part: the worth that ends in the last part.
pub(crate) struct Ending<'a, const PARTS: usize, const SLOTS: usize = COARSE> {
    spans: &'a Spans<PARTS, SLOTS>,
    shift: u32,
    /// By the place of the last part in its slot.
    ending: [WrappedSlots<SLOTS>; PARTS],
}

/// By the first slot of an arc: the worth that lies in the arc and ends in its last part.
#[derive(Debug, Clone, Copy)]
struct WrappedSlots<const SLOTS: usize> {
    /// Twice around, so that no arc needs a wrap.
    twice: [[u16; SLOTS]; 2],
    /// Slots by which to shift a look-up. An arc without a beginning in its first slot holds what the arc
    /// holds that begins a slot later and has the same end.
    later: usize,
    is_empty: bool,
}

impl<const SLOTS: usize> WrappedSlots<SLOTS> {
    const NONE: Self = Self { twice: [[0; SLOTS]; 2], later: 0, is_empty: true };

    #[inline]
    fn get(&self) -> &[u16; SLOTS] {
        let from = &self.twice.as_flattened()[self.later..];
        from.first_chunk().expect("no arc has more than a slot beyond a turn")
    }
}

impl<'a, const PARTS: usize, const SLOTS: usize> Ending<'a, PARTS, SLOTS> {
    pub fn new(spans: &'a Spans<PARTS, SLOTS>, shift: u32) -> Self {
        const { assert!(SLOTS * PARTS <= u64::BITS as usize, "a bit for each number of parts") };
        Self { spans, shift, ending: [WrappedSlots::NONE; PARTS] }
    }

    /// Grows the arcs to `added + 1` parts. Returns, by first slot, the worth in each arc that ends in its
    /// last part; None where all are empty.
    #[inline]
    pub fn advance(&mut self, added: usize) -> Option<&[u16; SLOTS]> {
        // Ends at the same place in a slot recur every PARTS steps, so each place keeps its own sums.
        let (part, row) = (added % PARTS, added / PARTS);
        let ending = &mut self.ending[part];
        if !ending.is_empty {
            ending.later += 1;
        }
        if row < SLOTS && self.spans.used >> added & 1 == 1 {
            let mut worth = self.spans.worth[part][row].map(|here| units(here, self.shift));
            // What begins in a later slot of the arc and ends here was counted a slot ago.
            for (all, before) in worth.iter_mut().zip(ending.get()) {
                // Saturated sums are any worth, which is still a bound.
                *all = all.saturating_add(*before);
            }
            ending.twice = [worth; 2];
            (ending.later, ending.is_empty) = (0, false);
        }
        (!ending.is_empty).then(|| ending.get())
    }
}

impl<const SLOTS: usize> Arcs<SLOTS> {
    pub const NONE: Self = Self([[0; SLOTS]; SLOTS]);

    /// Raises every arc to what lies in it wholly, in units of `1 << shift`, rounded up.
    pub fn raise(&mut self, spans: &Spans<1, SLOTS>, shift: u32) {
        let mut sums = [0u16; SLOTS];
        let mut ending = Ending::new(spans, shift);
        for (added, row) in self.0[..SLOTS - 1].iter_mut().enumerate() {
            // An arc holds what the arc of one slot less holds and what ends in its last slot.
            if let Some(ending) = ending.advance(added) {
                extend(&mut sums, &[0; SLOTS], ending);
            }
            match &spans.around {
                None => raise_row(row, &sums),
                Some(around) => {
                    let around = units(around[added], shift);
                    raise_row(row, &sums.map(|sum| sum.saturating_add(around)));
                }
            }
        }
        // All slots cover any window up to a turn, which may hold all there is.
        raise_row(&mut self.0[SLOTS - 1], &[units(spans.total, shift); SLOTS]);
    }
}

#[inline]
pub(crate) fn raise_row<const SLOTS: usize>(row: &mut [u16; SLOTS], others: &[u16; SLOTS]) {
    for (worth, other) in row.iter_mut().zip(others) {
        *worth = (*worth).max(*other);
    }
}

/// By first slot: the better of the paths on this surface and those that `came` from another, plus what
/// ends now.
#[inline]
pub(crate) fn extend<const SLOTS: usize>(
    path: &mut [u16; SLOTS],
    came: &[u16; SLOTS],
    ending: &[u16; SLOTS],
) {
    for ((path, came), ending) in path.iter_mut().zip(came).zip(ending) {
        *path = (*path).max(*came).saturating_add(*ending);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, LazyLock};

    use proptest::prelude::*;
    use proptest::test_runner::TestCaseResult;

    use super::super::tracks::Tracks;
    use super::*;
    use freewheel_model::drive::{Drive, Position};

    static TRACKS: LazyLock<Tracks> = LazyLock::new(|| {
        let spec = toml::from_str(include_str!("../../../../drives/atlas10k.toml")).unwrap();
        Tracks::new(&Arc::new(Drive::build(&spec).unwrap()))
    });

    #[test]
    fn byte_bounds_worth_within_sixteenth() {
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
    fn byte_grows_with_worth() {
        for units in 1..=u16::MAX {
            assert!(byte(units) >= byte(units - 1), "{units}");
        }
        assert_eq!((byte(0), byte(1), byte(u16::MAX)), (0, 1, u8::MAX));
        let most = UNITS_MAX as u16;
        assert_eq!((byte(most), byte(most + 1)), (u8::MAX - 1, u8::MAX));
    }

    #[test]
    fn byte_above_worth_is_least_greater() {
        for shift in [0, 3, 16] {
            for known in (0..1 << 20).chain(u32::MAX - 9..=u32::MAX) {
                let above = byte_above(known, shift);
                assert!(worth(above, shift) > known || above == u8::MAX, "{known}");
                assert!(worth(above - 1, shift) <= known, "{known}");
            }
        }
    }

    #[test]
    fn units_are_rounded_up() {
        for worth in (0..1 << 20).chain([1 << 31, u32::MAX - 1, u32::MAX]) {
            for shift in [0, 3, 16] {
                let exact = (f64::from(worth) / f64::from(1u32 << shift)).ceil();
                assert_eq!(f64::from(units(worth, shift)), exact.min(65_535.0), "{worth}");
            }
        }
    }

    proptest! {
        #[test]
        fn wanted_blocks_become_items(
            (cylinder, surface) in (0u32..10_000, 0u32..6),
            (size, from, bits, worth) in (1u32..140, 0.0..1f64, any::<u64>(), 1u32..300),
        ) {
            let place = TRACKS.place(Position { cylinder, surface }).unwrap();
            let sector = (from * f64::from(place.sectors())) as u32;
            let fit = (place.sectors() - sector) / size;
            let bits = if fit < 64 { bits & ((1 << fit) - 1) } else { bits };
            let (mut each, mut items) = (Quarters::NONE, Quarters::NONE);
            let mut begins = Vec::new();
            each.add_each(&place, sector, size, bits, worth, |begin| begins.push(begin));
            let mut plain = Vec::new();
            for item in (0..64).filter(|item| bits >> item & 1 == 1) {
                let first = sector + item * size;
                let begin = u64::from(place.start().steps()) + place.turned(first);
                let end = u64::from(place.start().steps()) + place.turned(first + size);
                items.add_to(begin / Quarters::SLOT_STEPS, (end - 1) / Quarters::STEPS, worth);
                plain.push(begin);
            }
            prop_assert_eq!((each, begins), (items, plain));
        }

        #[test]
        fn arcs_bound_run_around_turn_tightly(
            (cylinder, surface) in (0u32..10_000, 0u32..6),
            (size, from, worth) in (1u32..60, 0.0..1f64, 1u32..150),
        ) {
            let place = TRACKS.place(Position { cylinder, surface }).unwrap();
            let sector = (from * f64::from(place.sectors() / 8)) as u32;
            let count = (place.sectors() - sector) / size;
            let size = Divisor::new(size.into());
            around_is_close::<COARSE>(&place, (sector, size, count), worth)?;
            around_is_close::<FINE>(&place, (sector, size, count), worth)?;
        }

        #[test]
        fn run_equals_single_items(
            (cylinder, surface) in (0u32..10_000, 0u32..6),
            (size, from, upto) in (1u32..140, 0.0..1f64, 0.0..1f64),
            worth in 1u32..300,
        ) {
            let place = TRACKS.place(Position { cylinder, surface }).unwrap();
            let sector = (from * f64::from(place.sectors())) as u32;
            let count = (upto * f64::from((place.sectors() - sector) / size + 1)) as u32;
            let size = Divisor::new(size.into());
            prop_assert!(is_its_items::<1, COARSE>(&place, sector, size, count, worth));
            prop_assert!(is_its_items::<1, FINE>(&place, sector, size, count, worth));
            prop_assert!(is_its_items::<4, COARSE>(&place, sector, size, count, worth));
        }
    }

    type Quarters = Spans<4, COARSE>;

    fn around_is_close<const SLOTS: usize>(
        place: &TrackPlace<'_>,
        (sector, size, count): (u32, Divisor, u32),
        worth: u32,
    ) -> TestCaseResult {
        let raised = |add: &dyn Fn(&mut Spans<1, SLOTS>)| {
            let (mut spans, mut arcs) = (Spans::NONE, Arcs::NONE);
            // Beside something else.
            spans.add_piece(place, 0, 1, worth);
            add(&mut spans);
            arcs.raise(&spans, 0);
            spans.clear();
            prop_assert_eq!(&spans, &Spans::NONE);
            Ok(arcs)
        };
        let said = raised(&|spans| spans.add_around(place, size, count, worth))?;
        let exact = raised(&|spans| spans.add_run(place, sector, size, count, worth))?;
        for (slots, (said, exact)) in (1..).zip(said.0.iter().zip(&exact.0)) {
            prop_assert!(said.iter().zip(exact).all(|(said, exact)| said >= exact));
            // Longer arcs may all meet the part of the turn that the run leaves out.
            if slots > SLOTS / 2 {
                continue;
            }
            let most = |row: &[u16; SLOTS]| row.iter().copied().fold(0, u16::max);
            // One block more, and the other thing, which may lie elsewhere.
            let more = 2 * worth as u16;
            prop_assert!(most(said) <= most(exact) + more, "{:?} for {:?}", said, exact);
        }
        Ok(())
    }

    fn is_its_items<const PARTS: usize, const SLOTS: usize>(
        place: &TrackPlace<'_>,
        sector: u32,
        size: Divisor,
        count: u32,
        worth: u32,
    ) -> bool {
        let (mut run, mut items) = (Spans::<PARTS, SLOTS>::NONE, Spans::NONE);
        run.add_run(place, sector, size, count, worth);
        let sectors = size.get() as u32;
        (0..count).for_each(|item| items.add_piece(place, sector + item * sectors, sectors, worth));
        run == items
    }
}
