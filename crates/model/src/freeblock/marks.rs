//! In which parts of the turn anything is wanted, track by track.
//!
//! A table of the index speaks for all tracks of a cylinder. Before any of them is looked at closely,
//! a word for each tells how many things at most lie in a window: that leaves most of them out where
//! what is wanted comes in blocks no shorter than a part of the turn.

use super::arcs::Collect;
use super::tracks::TrackPlace;
use crate::drive::Divisor;

/// Parts of a turn: bits of a word.
pub(super) const PARTS: u64 = u64::BITS as u64;

/// Steps of an angle in a part.
const STEPS: u64 = (1 << 32) / PARTS;

/// For everything on a track one of the parts that it touches, and no two the same; all where they do
/// not suffice, which stands for any number of things.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Marks(u64);

impl Marks {
    pub const NONE: Self = Self(0);

    /// The parts that angles of `from..=to` steps touch, whole turns not taken off.
    #[inline]
    pub fn touching((from, to): (u64, u64)) -> Self {
        let (first, parts) = (from / STEPS, to / STEPS - from / STEPS + 1);
        Self((u64::MAX >> PARTS.saturating_sub(parts)).rotate_left((first % PARTS) as u32))
    }

    /// Whether blocks of so many sectors touch a part that no other touches, on tracks of `on_track`.
    pub fn tell(sectors: u32, on_track: u32) -> bool {
        u64::from(sectors) * PARTS >= u64::from(on_track)
    }

    /// Whether more than `things` may lie in a window.
    #[inline]
    pub fn has_more(self, things: u32, window: Self) -> bool {
        self.0 == u64::MAX || (self.0 & window.0).count_ones() > things
    }

    fn add(&mut self, begin: u64, end: u64) {
        let free =
            (begin / STEPS..=(end - 1) / STEPS).find(|part| self.0 >> (part % PARTS) & 1 == 0);
        self.0 = free.map_or(u64::MAX, |part| self.0 | 1 << (part % PARTS));
    }
}

impl Collect for Marks {
    fn add_run(
        &mut self,
        place: &TrackPlace<'_>,
        sector: u32,
        size: Divisor,
        count: u32,
        _worth: u32,
    ) {
        let (start, size) = (u64::from(place.start().steps()), size.get() as u32);
        if !Self::tell(size, place.sectors()) {
            *self = Self(u64::MAX);
            return;
        }
        let mut begin = start + place.turned(sector);
        for item in 1..=count {
            let end = start + place.turned(sector + item * size);
            self.add(begin, end);
            begin = end;
        }
    }

    fn add_piece(&mut self, place: &TrackPlace<'_>, sector: u32, size: u32, _worth: u32) {
        let start = u64::from(place.start().steps());
        self.add(start + place.turned(sector), start + place.turned(sector + size));
    }

    fn clear(&mut self) {
        *self = Self::NONE;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, LazyLock};

    use freewheel_units::SimTime;
    use proptest::prelude::*;

    use super::super::tracks::Tracks;
    use super::*;
    use crate::drive::{Drive, Position};

    static TRACKS: LazyLock<Tracks> = LazyLock::new(|| {
        let spec = toml::from_str(include_str!("../../../../drives/atlas10k.toml")).unwrap();
        Tracks::new(&Arc::new(Drive::build(&spec).unwrap()))
    });

    /// Marks of things, their first sectors and sizes, and those of them that pass wholly in a window.
    fn marks(
        place: &TrackPlace<'_>,
        things: &[(u32, u32)],
        (begin, length): (u64, u64),
    ) -> (Marks, Marks, u32) {
        let mut marks = Marks::NONE;
        things.iter().for_each(|&(sector, size)| marks.add_piece(place, sector, size, 1));
        let window = TRACKS.window(SimTime::from_ns(begin), length);
        let passing = TRACKS.passing(place, &window);
        let parts = passing.parts(place.sectors());
        let passes = |&&(sector, size): &&(u32, u32)| {
            parts.iter().any(|&(from, to)| from <= sector && sector + size <= to)
        };
        let inside = things.iter().filter(passes).count() as u32;
        (marks, Marks::touching(TRACKS.steps(&window)), inside)
    }

    proptest! {
        #[test]
        fn no_fewer_things_are_marked_in_a_window_than_pass_in_it(
            (cylinder, surface) in (0u32..10_000, 0u32..6),
            sizes in prop::collection::vec((1u32..90, any::<bool>()), 1..60),
            (begin, length) in (0u64..1 << 40, 1u64..5_985_000),
        ) {
            let place = TRACKS.place(Position { cylinder, surface }).unwrap();
            let (mut sector, mut things) = (0, Vec::new());
            for (size, is_wanted) in sizes {
                if is_wanted && sector + size <= place.sectors() {
                    things.push((sector, size));
                }
                sector += size;
            }
            let (marks, window, inside) = marks(&place, &things, (begin, length));
            prop_assert!((0..inside).all(|fewer| marks.has_more(fewer, window)));
        }

        #[test]
        fn where_every_block_has_its_parts_no_more_are_marked_than_touch_a_window(
            (cylinder, surface) in (0u32..10_000, 0u32..6),
            (begin, length) in (0u64..1 << 40, 1u64..5_000_000),
        ) {
            let place = TRACKS.place(Position { cylinder, surface }).unwrap();
            let size = place.sectors() / 20;
            let things: Vec<_> = (0..20).map(|block| (block * size, size)).collect();
            let (marks, window, inside) = marks(&place, &things, (begin, length));
            prop_assert!(!marks.has_more(inside + 3, window), "{inside}");
        }
    }

    #[test]
    fn things_too_small_to_be_told_apart_stand_for_any_number() {
        let place = TRACKS.place(Position { cylinder: 0, surface: 0 }).unwrap();
        let mut marks = Marks::NONE;
        marks.add_run(&place, 0, Divisor::new(1), 9, 1);
        assert!(marks.has_more(u32::MAX, Marks::NONE));
        assert!(!Marks::tell(1, place.sectors()) && Marks::tell(64, place.sectors()));
    }
}
