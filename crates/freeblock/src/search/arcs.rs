//! Worth by arcs of the turn.
//!
//! The turn is cut into slots. What is wanted lies in one or several of them; an arc, some slots side by
//! side, offers what lies in it wholly. More slots make bounds closer and tables larger, by the square.

use super::tracks::TrackPlace;
use freewheel_model::drive::Divisor;

/// Slots of a turn: a power of two, as all numbers of slots.
pub(crate) const COARSE: usize = 16;

/// Slots of a turn where memory is slow, so that it is better to look at less of it.
pub(crate) const FINE: usize = 32;

/// Slots of a window: the first, and how many. All of them stand for any window up to a turn, one
/// more for any at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SlotArc {
    pub first: usize,
    pub slots: usize,
}

/// Worth of what is wanted on a track by the slot that it begins in and the part of a slot that it
/// ends in, of which a slot has `PARTS`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Spans<const PARTS: usize, const SLOTS: usize = COARSE> {
    /// `[last part of its slot][slots on][first slot]`: how many slots on the one is that it ends in.
    /// What ends further on than all of a turn counts in its last part.
    worth: [[[u32; SLOTS]; SLOTS]; PARTS],
    /// By the number of parts, the lowest bit for one: whether anything of that is there.
    used: u64,
    /// By number of slots, the most of runs around most of the turn that any arc holds, wherever it begins.
    around: Option<[u32; SLOTS]>,
    total: u32,
}

/// Worth by arc: `[number of slots - 1][first slot]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Arcs<const SLOTS: usize = COARSE>(pub [[u16; SLOTS]; SLOTS]);

/// What is shown of a track thing by thing.
pub(crate) trait Collect {
    /// `count` whole blocks of `size` sectors each that follow on each other on a track from `sector`
    /// on, each of the same worth.
    fn add_run(
        &mut self,
        place: &TrackPlace<'_>,
        sector: u32,
        size: Divisor,
        count: u32,
        worth: u32,
    );

    /// Of blocks of `size` sectors each that follow on each other on a track from `sector` on those whose
    /// bits are set, each of the same worth: they are no long runs.
    fn add_each(&mut self, place: &TrackPlace<'_>, sector: u32, size: u32, bits: u64, worth: u32);

    /// A piece of a block: `size` sectors at `sector` of a track.
    fn add_piece(&mut self, place: &TrackPlace<'_>, sector: u32, size: u32, worth: u32);

    /// Forgets it.
    fn clear(&mut self);
}

impl<const PARTS: usize, const SLOTS: usize> Spans<PARTS, SLOTS> {
    pub const NONE: Self =
        Self { worth: [[[0; SLOTS]; SLOTS]; PARTS], used: 0, around: None, total: 0 };

    /// Steps of an angle in a slot.
    const SLOT_STEPS: u64 = (1 << 32) / SLOTS as u64;

    /// Steps of an angle in a part of a slot.
    const STEPS: u64 = Self::SLOT_STEPS / PARTS as u64;

    /// Worth of all of it.
    pub fn total(&self) -> u32 {
        self.total
    }

    /// Adds what begins in a slot and ends in a part of one, whole turns not taken off.
    #[inline]
    pub(crate) fn add_to(&mut self, first: u64, last_part: u64, worth: u32) {
        self.used |= self.add_at(first, last_part, worth);
        self.total += worth;
    }

    /// Of [`Self::add_to`] only the worth; the bit of what is used then.
    #[inline]
    fn add_at(&mut self, first: u64, last_part: u64, worth: u32) -> u64 {
        let on = ((last_part - first * PARTS as u64) as usize).min(SLOTS * PARTS - 1);
        self.worth[on % PARTS][on / PARTS][first as usize % SLOTS] += worth;
        1 << on
    }

    /// Adds a run of blocks around most of the turn. Where there is one nearly everywhere, it hardly
    /// matters where each of its blocks lies: an arc holds no more than fit its length.
    pub fn add_around(&mut self, place: &TrackPlace<'_>, size: Divisor, count: u32, worth: u32) {
        let around = self.around.get_or_insert([0; SLOTS]);
        for (steps, most) in (1..).map(|slots| slots * Self::SLOT_STEPS).zip(around) {
            let fit = size.divide(place.sectors_within(steps)).0.min(count.into());
            *most += worth * fit as u32;
        }
        self.total += worth * count;
    }

    /// As [`Collect::add_each`], and shows the angles at which the blocks begin, whole turns not taken
    /// off.
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
        let is_short = place.turned(sectors) <= Self::STEPS;
        let mut begin = start + place.turned(sector);
        while count > 0 {
            let (first, part) = (begin / Self::SLOT_STEPS, begin / Self::STEPS);
            if is_short {
                // Those that end in the part that they begin in.
                let end = place.first_sector_from((part + 1) * Self::STEPS - start + 1) - 1;
                let within = (size.divide(u64::from(end - sector)).0 as u32).min(count);
                if within > 0 {
                    self.add_to(first, part, worth * within);
                    sector += sectors * within;
                    count -= within;
                    begin = start + place.turned(sector);
                }
            }
            // The next one mostly begins there as well.
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
        while self.used != 0 {
            let on = self.used.trailing_zeros() as usize;
            self.worth[on % PARTS][on / PARTS] = [0; SLOTS];
            self.used &= self.used - 1;
        }
        self.around = None;
        self.total = 0;
    }
}

/// Worth in units of a power of two, rounded up; the greatest stands for any more than it can say.
#[inline]
pub(crate) fn units(worth: u32, shift: u32) -> u16 {
    let is_more = u32::from(worth & ((1 << shift) - 1) != 0);
    // With bits left over there is room for one more. Many are worked out at once where nothing is
    // checked.
    (worth >> shift).wrapping_add(is_more).min(u16::MAX.into()) as u16
}

/// Significant bits below the first one of a byte that stands for a worth.
const BITS: u32 = 4;

/// What is taken off the leading bits of one as a floating-point number, to have it as byte one.
const BELOW_ONE: u32 = (1f32.to_bits() >> (23 - BITS)) - 1;

/// The most units that a byte can say: of the last but one.
pub(crate) const UNITS_MAX: u64 = 29 << 11;

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
pub(crate) fn worth(byte: u8, shift: u32) -> u32 {
    match byte {
        0 => 0,
        u8::MAX => u32::MAX,
        _ => {
            let (exponent, bits) = ((byte - 1) >> BITS, (byte - 1) & ((1 << BITS) - 1));
            ((1 << BITS | u32::from(bits)) << exponent >> BITS) << shift
        }
    }
}

/// Worth by arc, each in a byte.
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

/// The least byte that stands for more than a worth.
#[inline]
pub(crate) fn byte_above(known: u32, shift: u32) -> u8 {
    byte(u16::try_from((known >> shift).saturating_add(1)).unwrap_or(u16::MAX))
}

/// What ends in the last part of arcs that begin with a slot and grow part by part.
pub(crate) struct Ending<'a, const PARTS: usize, const SLOTS: usize = COARSE> {
    spans: &'a Spans<PARTS, SLOTS>,
    shift: u32,
    /// By the last part of its slot.
    ending: [WrappedSlots<SLOTS>; PARTS],
}

/// By the first slot of an arc, what lies in it and ends with it.
#[derive(Debug, Clone, Copy)]
struct WrappedSlots<const SLOTS: usize> {
    /// Twice around, so that no arc needs a wrap.
    twice: [[u16; SLOTS]; 2],
    /// Where nothing new begins in its first slot, an arc holds what one holds that begins a slot
    /// later and ends as it does: so many slots later it is to be looked up.
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

    /// Goes on to arcs of `added + 1` parts, from one part less: what lies in them and ends in their
    /// last, if there is anything.
    #[inline]
    pub fn advance(&mut self, added: usize) -> Option<&[u16; SLOTS]> {
        let (part, row) = (added % PARTS, added / PARTS);
        let ending = &mut self.ending[part];
        if !ending.is_empty {
            ending.later += 1;
        }
        if row < SLOTS && self.spans.used >> added & 1 == 1 {
            let mut worth = self.spans.worth[part][row].map(|here| units(here, self.shift));
            for (all, before) in worth.iter_mut().zip(ending.get()) {
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

    /// Raises it to what lies wholly in each arc, in units of a power of two, rounded up.
    pub fn raise(&mut self, spans: &Spans<1, SLOTS>, shift: u32) {
        let mut sums = [0u16; SLOTS];
        let mut ending = Ending::new(spans, shift);
        for (added, row) in self.0[..SLOTS - 1].iter_mut().enumerate() {
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
        raise_row(&mut self.0[SLOTS - 1], &[units(spans.total, shift); SLOTS]);
    }
}

#[inline]
pub(crate) fn raise_row<const SLOTS: usize>(row: &mut [u16; SLOTS], others: &[u16; SLOTS]) {
    for (worth, other) in row.iter_mut().zip(others) {
        *worth = (*worth).max(*other);
    }
}

/// Paths on a surface go on, or begin after those that came from elsewhere, with what ends now.
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

    #[test]
    fn the_byte_above_a_worth_is_the_least_that_stands_for_more() {
        for shift in [0, 3, 16] {
            for known in (0..1 << 20).chain(u32::MAX - 9..=u32::MAX) {
                let above = byte_above(known, shift);
                assert!(worth(above, shift) > known || above == u8::MAX, "{known}");
                assert!(worth(above - 1, shift) <= known, "{known}");
            }
        }
    }

    #[test]
    fn units_are_rounded_up_and_never_too_few() {
        for worth in (0..1 << 20).chain([1 << 31, u32::MAX - 1, u32::MAX]) {
            for shift in [0, 3, 16] {
                let exact = (f64::from(worth) / f64::from(1u32 << shift)).ceil();
                assert_eq!(f64::from(units(worth, shift)), exact.min(65_535.0), "{worth}");
            }
        }
    }

    proptest! {
        #[test]
        fn each_that_is_wanted_is_an_item(
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
        fn of_a_run_around_the_turn_no_arc_holds_more_than_is_said_and_some_hold_nearly_that(
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
        fn a_run_is_its_items_one_by_one(
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
