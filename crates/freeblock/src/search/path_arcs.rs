//! Worth of paths over the tracks of a cylinder, by arcs of the turn.
//!
//! **Problem.** A path reads on one surface, changes heads, and reads on another. How much worth can a
//! path over all surfaces take in each arc, at most? All that lies in the arc is a bound, but a poor one:
//! a change of heads takes time without any transfer.
//!
//! So ends are distinguished by parts of a slot. A path that changes surfaces must leave parts between two
//! ends: those of a change of heads and of the next block.
//!
//! ```text
//!  part        0   1   2   3   4
//!  surface 0  AAA|   |   |   |EEE|      a change of heads takes 2 parts, a block 1 part:
//!  surface 1     |BBB|   |DDD|   |      ends on two surfaces lie 3 parts apart
//! ```
//!
//! With worth 1 each, the arc of parts 0 to 4 holds 4, but no path takes more than 2:
//!
//! | parts | ends now | path before on its surface | best of 3 parts less | best |
//! |---|---|---|---|---|
//! | 1 | A | 0 | 0 | 1 |
//! | 2 | B | 0 | 0 | 1 |
//! | 4 | D | 1, with B | 1, with A | 2 |
//! | 5 | E | 1, with A | 1, with A or B | 2 |
//!
//! Every rounding lets paths take more: parts between ends are rounded down, arcs outwards.

use super::arcs::{Arcs, COARSE, Collect, Ending, Spans, extend, raise_row, units};
use super::tracks::TrackPlace;
use freewheel_model::drive::Divisor;

/// Slots of a turn. Tables of paths take too long to make for more.
const SLOTS: usize = COARSE;

/// Parts of a slot. More parts would round a change of heads less, and take longer in proportion.
const PARTS: usize = 4;

/// Wanted blocks on one of the surfaces.
#[derive(Debug, Clone)]
pub(crate) struct Surface {
    all: Spans<PARTS>,
    /// The pieces of blocks among them, which may be as short as a sector.
    pieces: Spans<PARTS>,
}

impl Surface {
    pub const NONE: Self = Self { all: Spans::NONE, pieces: Spans::NONE };

    pub fn total(&self) -> u32 {
        self.all.total()
    }
}

impl Collect for Surface {
    fn add_run(
        &mut self,
        place: &TrackPlace<'_>,
        sector: u32,
        size: Divisor,
        count: u32,
        worth: u32,
    ) {
        self.all.add_run(place, sector, size, count, worth);
    }

    #[inline]
    fn add_each(&mut self, place: &TrackPlace<'_>, sector: u32, size: u32, bits: u64, worth: u32) {
        self.all.add_each(place, sector, size, bits, worth, |_| {});
    }

    fn add_piece(&mut self, place: &TrackPlace<'_>, sector: u32, size: u32, worth: u32) {
        self.all.add_piece(place, sector, size, worth);
        self.pieces.add_piece(place, sector, size, worth);
    }

    fn clear(&mut self) {
        self.all.clear();
        self.pieces.clear();
    }
}

/// Least parts of slots between two ends on two surfaces: a change of heads and the block after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MinimumGaps {
    /// Before a whole block.
    block: usize,
    /// Before a piece of one.
    piece: usize,
}

impl MinimumGaps {
    /// For the times in ns of a change of heads and the smallest block, of one and the smallest piece, and
    /// of a turn.
    pub fn new(block_ns: u64, piece_ns: u64, turn_ns: u64) -> Self {
        // Part lengths are rounded up and gaps down: two ends then seem nearer than they are, never farther.
        let part = turn_ns.div_ceil((SLOTS * PARTS) as u64).max(1);
        Self { block: parts(block_ns, part), piece: parts(piece_ns, part) }
    }
}

/// What ends beyond a turn counts as ending with it, up to a slot too early: a slot is taken off.
fn parts(ns: u64, part: u64) -> usize {
    (ns / part).min(((SLOTS - 1) * PARTS) as u64) as usize
}

impl Arcs {
    /// In each arc at least what a path over several surfaces takes.
    pub fn of_paths(surfaces: &[Surface], apart: MinimumGaps, shift: u32) -> Self {
        let total = surfaces.iter().map(Surface::total).sum();
        // Pieces may follow a change of heads sooner than blocks: with any of them the lesser gap
        // decides.
        let has_pieces = surfaces.iter().any(|surface| surface.pieces.total() > 0);
        let best = match if has_pieces { apart.piece } else { apart.block } {
            0 => everything(surfaces, shift),
            _ => best_paths(surfaces, apart, shift),
        };
        let mut arcs = Self::NONE;
        // An arc of n + 1 whole slots is one of (n + 1) * PARTS parts.
        for (slots, row) in arcs.0.iter_mut().enumerate() {
            *row = best[(slots + 1) * PARTS];
        }
        // A window of a turn may begin within a slot and end in it again: it touches that slot twice.
        let turn = best[ARC_PARTS].into_iter().fold(0, u16::max);
        arcs.0[SLOTS - 1] = [turn.min(units(total, shift)); SLOTS];
        arcs
    }
}

/// Parts of the longest arcs: a turn, and its first slot again.
const ARC_PARTS: usize = (SLOTS + 1) * PARTS;

/// Most that paths take, by number of parts and first slot.
type Best = [[u16; SLOTS]; ARC_PARTS + 1];

/// Bound where a change of heads takes no whole part: all that lies in an arc.
fn everything(surfaces: &[Surface], shift: u32) -> Best {
    let mut best = [[0; SLOTS]; ARC_PARTS + 1];
    let mut endings: Vec<_> = surfaces.iter().map(|of| Ending::new(&of.all, shift)).collect();
    for added in 0..ARC_PARTS {
        best[added + 1] = best[added];
        for ending in &mut endings {
            if let Some(ending) = ending.advance(added) {
                extend(&mut best[added + 1], &[0; SLOTS], ending);
            }
        }
    }
    best
}

/// A surface and, by first slot, the best paths that end on it.
struct OnSurface<'a> {
    all: Ending<'a, PARTS>,
    /// None on a surface without pieces.
    pieces: Option<Ending<'a, PARTS>>,
    paths: [u16; SLOTS],
}

impl<'a> OnSurface<'a> {
    fn new(surface: &'a Surface, shift: u32) -> Self {
        let has_pieces = surface.pieces.total() > 0;
        Self {
            all: Ending::new(&surface.all, shift),
            pieces: has_pieces.then(|| Ending::new(&surface.pieces, shift)),
            paths: [0; SLOTS],
        }
    }

    /// Lets paths take what ends in the next part: paths of this surface, and paths from others that came
    /// early enough for a block or for a piece. Returns whether anything ends there. Paths from others
    /// wait until then, as the best of more parts is never less.
    #[inline]
    fn advance(&mut self, added: usize, [to_block, to_piece]: [&[u16; SLOTS]; 2]) -> bool {
        let pieces = self.pieces.as_mut().and_then(|pieces| pieces.advance(added));
        let Some(ending) = self.all.advance(added) else { return false };
        // A copy in registers while all first slots are computed at once.
        let mut paths = self.paths;
        // Blocks and pieces end here together, but only a piece is short enough for late comers: where a
        // piece ends they take all, which is too much by the blocks and so still a bound.
        extend(&mut paths, to_block, ending);
        if let Some(pieces) = pieces {
            let each = paths.iter_mut().zip(to_piece).zip(ending).zip(pieces);
            for (((path, came), all), piece) in each {
                let by_piece = if *piece > 0 { came.saturating_add(*all) } else { 0 };
                *path = (*path).max(by_piece);
            }
        }
        self.paths = paths;
        true
    }
}

fn best_paths(surfaces: &[Surface], apart: MinimumGaps, shift: u32) -> Best {
    let mut best = [[0; SLOTS]; ARC_PARTS + 1];
    let mut on: Vec<OnSurface<'_>> =
        surfaces.iter().map(|surface| OnSurface::new(surface, shift)).collect();
    for added in 0..ARC_PARTS {
        // Before the arc begins no path has anything.
        let came = [
            &best[(added + 1).saturating_sub(apart.block)],
            &best[(added + 1).saturating_sub(apart.piece)],
        ];
        // One part more offers no less.
        let mut all = best[added];
        for surface in &mut on {
            if surface.advance(added, came) {
                raise_row(&mut all, &surface.paths);
            }
        }
        best[added + 1] = all;
    }
    best
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Units of time in a part of a slot, in a slot and in a turn.
    const PART: u64 = 250;
    const SLOT: u64 = PART * PARTS as u64;
    const TURN: u64 = SLOT * SLOTS as u64;

    /// Shortest block.
    const BLOCK: u64 = 400;

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
        for (number, &(surface, at, long, worth)) in passing.iter().enumerate() {
            let before = (0..number).filter(|&before| {
                let (on, begin, length, _) = passing[before];
                // Of one surface all is read that passes, also what other tasks want of it.
                if on == surface {
                    begin + length <= at + long
                } else {
                    begin + length + switch <= at
                }
            });
            weights.push(worth + before.map(|before| weights[before]).max().unwrap_or(0));
        }
        weights.into_iter().max().unwrap_or(0)
    }

    /// Blocks that a window of a turn offers.
    fn offered(arcs: &Arcs, (from, length): (u64, u64)) -> u32 {
        let (first, last) = (from / SLOT, (from + length - 1) / SLOT);
        let slots =
            if length >= (SLOTS as u64 - 2) * SLOT { SLOTS } else { (last - first + 1) as usize };
        u32::from(arcs.0[slots - 1][first as usize])
    }

    fn surfaces(things: &[Thing], count: usize, block: u64) -> Vec<Surface> {
        let mut surfaces = vec![Surface::NONE; count];
        for &(surface, at, length, worth) in things {
            let (first, last) = (at / SLOT, (at + length - 1) / PART);
            surfaces[surface].all.add_to(first, last, worth);
            if length < block {
                surfaces[surface].pieces.add_to(first, last, worth);
            }
        }
        surfaces
    }

    /// Blocks of two sizes or more, and pieces among them or none.
    fn things(block: u64) -> impl Strategy<Value = Vec<Thing>> {
        let lengths = prop_oneof![
            (Just(block), block..=TURN),
            (Just(block), block..=(2 * block).min(TURN)),
            (1..=block, block..=block),
        ];
        lengths.prop_flat_map(|(shortest, longest)| {
            let length = prop_oneof![Just(shortest), shortest..=longest, Just(longest)];
            prop::collection::vec((0usize..4, 0..TURN, length, 1u32..40), 1..60)
        })
    }

    /// The smallest block: mostly a short one.
    fn block() -> impl Strategy<Value = u64> {
        prop_oneof![Just(BLOCK), BLOCK..2500, 14 * SLOT..TURN]
    }

    proptest! {
        #[test]
        fn arc_offer_bounds_every_path(
            (block, things) in block().prop_flat_map(|block| (Just(block), things(block))),
            switch in prop_oneof![0u64..2500, 400u64..600],
            (from, length) in (0..TURN, prop_oneof![1..=TURN, TURN - 2 * SLOT..=TURN]),
        ) {
            let surfaces = surfaces(&things, 4, block);
            let shortest = things.iter().map(|thing| thing.2).min().unwrap_or(1).min(block);
            let apart = MinimumGaps::new(switch + block, switch + shortest, TURN);
            let arcs = Arcs::of_paths(&surfaces, apart, 0);
            let offered = offered(&arcs, (from, length));
            let taken = heaviest(&things, (from, from + length), switch);
            prop_assert!(taken <= offered, "{taken} of {offered}, {apart:?}");
        }

        #[test]
        fn arc_offers_blocks_of_single_track(
            things in things(BLOCK),
            (from, length) in (0..TURN, 1..=TURN),
        ) {
            let mut spans = Spans::<1>::NONE;
            for &(_, at, length, worth) in &things {
                spans.add_to(at / SLOT, (at + length - 1) / SLOT, worth);
            }
            let mut arcs = Arcs::NONE;
            arcs.raise(&spans, 0);
            let on_one: Vec<Thing> = things.iter().map(|&(_, at, l, w)| (0, at, l, w)).collect();
            let taken = heaviest(&on_one, (from, from + length), 0);
            prop_assert!(taken <= offered(&arcs, (from, length)));
        }
    }

    #[test]
    fn arc_offer_is_limited_by_slow_switches() {
        // A block on one of two surfaces in turn, each directly after the one before.
        let things: Vec<Thing> = (0..TURN / BLOCK)
            .map(|number| (number as usize % 2, number * BLOCK, BLOCK, 1))
            .collect();
        let switch = 2 * BLOCK;
        let arcs = Arcs::of_paths(
            &surfaces(&things, 2, BLOCK),
            MinimumGaps::new(switch + BLOCK, switch + 1, TURN),
            0,
        );
        let half = (0, TURN / 2);
        // Staying, every other block; a change of heads takes the time of one more each.
        assert_eq!(heaviest(&things, half, switch), 10);
        assert!((10..=12).contains(&offered(&arcs, half)), "{}", offered(&arcs, half));
    }
}
