//! In which parts of the turn blocks begin, track by track.
//!
//! **Problem.** A table of the index speaks for all tracks of a cylinder. When a search looks at the
//! cylinder, most of its tracks offer less than the table says; which ones?
//!
//! A track has a word with a bit for each 64th of the turn in which a block begins. Set bits outside a
//! window count blocks that cannot pass in it.
//!
//! ```text
//!  track    0010 0000 1100 0001 ..     bit: at least one block begins in this part
//!  window   0000 0111 1111 0000 ..     bit: a block that begins here may pass in the window
//!  outside  0010 0000 0000 0001 ..     two blocks at least do not pass
//! ```
//!
//! If the track's blocks are worth 40 together and the least block 8, the track offers at most
//! 40 - 2 x 8 = 24. A search that knows a track with 24 or more need not look at it.
//!
//! Every rounding loses bits outside: parts that the window only touches count as inside.

use super::arcs::{Collect, Spans};
use super::tracks::TrackPlace;
use freewheel_model::drive::Divisor;

/// Parts of a turn: bits of a word.
const PARTS: u64 = u64::BITS as u64;

/// Steps of an angle in a part.
const STEPS: u64 = (1 << 32) / PARTS;

/// Seven eighths of a turn, in steps of an angle: a run this long is taken as one around the turn.
const MOST_OF_TURN: u64 = 7 << 29;

/// Parts of the turn: of a track those in which a block begins, without pieces of blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct BlockStartMask(u64);

/// Converts time to parts of a turn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Turn {
    period: u64,
    /// Parts per ns in units of 2^-40, rounded down.
    parts_per_ns: u64,
}

impl Turn {
    pub fn new(period: u64) -> Self {
        Self { period, parts_per_ns: (PARTS << 40) / period }
    }

    /// Least time in ns that `sectors` take to pass, of a track of `on_track`.
    #[inline]
    pub fn passing_ns(&self, sectors: u32, on_track: u32) -> u64 {
        // Edges are rounded to whole nanoseconds, so the block may seem shorter by one at either end.
        (self.period * u64::from(sectors) / u64::from(on_track.max(1))).saturating_sub(2)
    }

    /// The parts that pass, at least in part, in `length` ns from `phase` on, counted over turns.
    #[inline]
    pub fn window(&self, phase: u64, length: u64) -> BlockStartMask {
        // A block that begins in this nanosecond may lie up to one before it, as edges are rounded up. A
        // turn more keeps the difference above zero and changes no part.
        let begin = phase + self.period - 1;
        let first = (begin * self.parts_per_ns) >> 40;
        // The first part by a rate rounded down, the last by one rounded up: never too few parts.
        let last = ((begin + 1 + length.min(self.period)) * (self.parts_per_ns + 1)) >> 40;
        BlockStartMask::between(first, last)
    }
}

impl BlockStartMask {
    pub const NONE: Self = Self(0);

    /// The parts `first..=last`, counted over turns.
    #[inline]
    fn between(first: u64, last: u64) -> Self {
        let parts = last - first + 1;
        Self((u64::MAX >> PARTS.saturating_sub(parts)).rotate_left((first % PARTS) as u32))
    }

    /// Blocks that begin outside a window, at least.
    #[inline]
    pub fn outside(self, window: Self) -> u32 {
        (self.0 & !window.0).count_ones()
    }

    /// Adds `count` adjacent blocks of `sectors` each from `sector` on.
    fn add_run(&mut self, place: &TrackPlace<'_>, sector: u32, sectors: u32, count: u32) {
        let start = u64::from(place.start().steps());
        let part = |sector: u32| (start + place.turned(sector)) / STEPS;
        if place.turned(sectors) < STEPS {
            // Blocks shorter than a part: one begins in each part from the first block's to the last's.
            let last = sector + (count - 1) * sectors;
            self.0 |= Self::between(part(sector), part(last)).0;
        } else {
            let parts = (0..count).map(|block| part(sector + block * sectors));
            self.0 |= parts.fold(0, |all, part| all | 1 << (part % PARTS));
        }
    }
}

/// The wanted blocks of a track by arcs, and where they begin.
#[derive(Debug, Clone)]
pub(crate) struct Track<const SLOTS: usize> {
    pub spans: Spans<1, SLOTS>,
    pub marks: BlockStartMask,
}

impl<const SLOTS: usize> Track<SLOTS> {
    pub const NONE: Self = Self { spans: Spans::NONE, marks: BlockStartMask::NONE };
}

impl<const SLOTS: usize> Collect for Track<SLOTS> {
    fn add_run(
        &mut self,
        place: &TrackPlace<'_>,
        sector: u32,
        size: Divisor,
        count: u32,
        worth: u32,
    ) {
        if place.turned(count * size.get() as u32) >= MOST_OF_TURN {
            self.spans.add_around(place, size, count, worth);
        } else {
            self.spans.add_run(place, sector, size, count, worth);
        }
        self.marks.add_run(place, sector, size.get() as u32, count);
    }

    #[inline]
    fn add_each(&mut self, place: &TrackPlace<'_>, sector: u32, size: u32, bits: u64, worth: u32) {
        let mut marks = 0;
        self.spans.add_each(place, sector, size, bits, worth, |begin| {
            marks |= 1 << (begin / STEPS % PARTS);
        });
        self.marks.0 |= marks;
    }

    fn add_piece(&mut self, place: &TrackPlace<'_>, sector: u32, size: u32, worth: u32) {
        self.spans.add_piece(place, sector, size, worth);
    }

    fn clear(&mut self) {
        self.spans.clear();
        self.marks = BlockStartMask::NONE;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, LazyLock};

    use freewheel_units::SimTime;
    use proptest::prelude::*;

    use super::super::arcs::COARSE;
    use super::super::tracks::Tracks;
    use super::*;
    use freewheel_model::drive::{Drive, Position};

    static TRACKS: LazyLock<Tracks> = LazyLock::new(|| {
        let spec = toml::from_str(include_str!("../../../../drives/atlas10k.toml")).unwrap();
        Tracks::new(&Arc::new(Drive::build(&spec).unwrap()))
    });

    /// Number of these blocks that pass wholly in a window.
    fn inside(place: &TrackPlace<'_>, blocks: &[u32], size: u32, window: (SimTime, u64)) -> u32 {
        let passing = TRACKS.passing(place, &TRACKS.window(window.0, window.1));
        let parts = passing.parts(place.sectors());
        let passes =
            |&&sector: &&u32| parts.iter().any(|&(from, to)| from <= sector && sector + size <= to);
        blocks.iter().filter(passes).count() as u32
    }

    proptest! {
        #[test]
        fn mask_never_overcounts_blocks_outside_window(
            (cylinder, surface) in (0u32..10_000, 0u32..6),
            (size, runs) in (1u32..140, prop::collection::vec((0u32..9, 1u32..40), 1..9)),
            (turns, at, length) in (0u64..1000, 0u64..5_985_000, 1u64..7_000_000),
            (from, to) in (prop::option::of(0usize..300), prop::option::of(0usize..300)),
            off in -1i64..=1,
        ) {
            let place = TRACKS.place(Position { cylinder, surface }).unwrap();
            let (mut marks, mut blocks, mut sector) = (BlockStartMask::NONE, Vec::new(), 0);
            let mut track = Track::<COARSE>::NONE;
            for (gap, count) in runs {
                sector += gap;
                let count = count.min((place.sectors() - sector.min(place.sectors())) / size);
                if count > 0 {
                    marks.add_run(&place, sector, size, count);
                    track.add_each(&place, sector, size, u64::MAX >> (64 - count), 1);
                    blocks.extend((0..count).map(|block| sector + block * size));
                    sector += count * size;
                }
            }
            prop_assert_eq!(marks, track.marks, "in runs or each alone");
            let rotation = TRACKS.drive().rotation();
            let period = rotation.period_ns();
            let turn = Turn::new(period);
            // Mostly windows that begin and end just where blocks do.
            let edge = |block: Option<usize>, behind: u32| {
                let sector = *blocks.get(block?)? + behind;
                Some(TRACKS.edge_ns(&place, sector))
            };
            let begin = edge(from, 0).unwrap_or(at % period);
            let begin = (turns * period + begin).saturating_add_signed(off);
            let phase = rotation.phase_ns(SimTime::from_ns(begin));
            let length = edge(to, size).map_or(length, |end| rotation.forward_ns(phase, end));
            let length = length.min(period);
            prop_assume!(length > 0);
            let inside = inside(&place, &blocks, size, (SimTime::from_ns(begin), length));
            let begins_in = length.saturating_sub(turn.passing_ns(size, place.sectors()));
            // A stay begins some turns after the phase of its gap.
            let outside = marks.outside(turn.window(phase + turns % 7 * period, begins_in));
            prop_assert!(inside + outside <= blocks.len() as u32, "{inside} and {outside}");
            // Where blocks are longer than parts, few are neither.
            if place.turned(size) >= STEPS {
                prop_assert!(inside + outside + 3 >= blocks.len() as u32, "{inside} {outside}");
            }
        }
    }

    #[test]
    fn passing_time_is_lower_bound() {
        let rotation = TRACKS.drive().rotation();
        let turn = Turn::new(rotation.period_ns());
        for (cylinder, size) in [(0, 1), (0, 7), (5_000, 8), (9_000, 128)] {
            let place = TRACKS.place(Position { cylinder, surface: 1 }).unwrap();
            for sector in 0..place.sectors() - size {
                let [begin, end] = [sector, sector + size].map(|at| TRACKS.edge_ns(&place, at));
                let passes = rotation.forward_ns(begin, end);
                assert!(turn.passing_ns(size, place.sectors()) <= passes, "{size} at {sector}");
                assert!(turn.passing_ns(size, place.sectors()) + 4 >= passes, "it is close");
            }
        }
    }

    #[test]
    fn window_includes_blocks_at_edges() {
        // Angles and edges of 2^32 steps in a turn that is no power of two.
        let rotation = TRACKS.drive().rotation();
        let turn = Turn::new(rotation.period_ns());
        for part in 1..PARTS {
            for step in part * STEPS - 2..part * STEPS + 2 {
                let edge = rotation.edge_ns(freewheel_units::Angle::from_steps(step as u32));
                let its_part = BlockStartMask::between(step / STEPS, step / STEPS);
                assert_eq!(its_part.outside(turn.window(edge, 0)), 0, "step {step} passes then");
                assert_eq!(its_part.outside(turn.window(edge - 5, 5)), 0, "step {step} ends it");
            }
        }
    }
}
