//! How much any track, or any cylinder, can offer in a window of the turn: never too little.
//!
//! For every cylinder there is a table of all arcs of the turn with the worth of what lies in them;
//! above them stands a tree whose nodes hold the greatest of their children, arc by arc. Since the
//! greatest is taken for each arc apart, the bound stays close even over thousands of cylinders with
//! small pieces on each. Of single tracks there are [`BlockStartMask`] as well.
//!
//! On a large drive that is far more than a cache holds, and searches wait for memory most of their
//! time: so what they need of many nodes lies in one line, and is asked for before they come to it.

use std::ops::Range;

use freewheel_units::{Bytes, Op};
use prefetch_index::prefetch_index;

use super::arcs::{
    Arcs, COARSE, Collect, FINE, SlotArc, Table, UNITS_MAX, byte_above, raise_row, units,
};
use super::block_start_mask::{BlockStartMask, Track};
use super::cylinder_range::CylinderRange;
use super::path_arcs::{MinimumGaps, Surface};
use super::sibling_bounds::{FANOUT, SiblingBounds};
use super::tracks::{TrackPlace, Tracks};
use super::wanted::{LayerKey, Wanted};
use crate::bitmap::Bitmap;
use freewheel_model::drive::Position;

/// Larger tables do not stay in a cache: searches wait for memory more than they work. So many bytes
/// hold those of 131,072 cylinders.
const CACHED: usize = 32 << 20;

/// How finely bounds on what single tracks offer tell windows of the turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fineness {
    /// Fine where coarse tables would not stay in a cache: from 131,073 cylinders on.
    #[default]
    BySize,
    /// In sixteenths: 256 B for each cylinder.
    Coarse,
    /// In thirty-seconds: decisions look at fewer nodes, which lie in four times the memory and take
    /// longer to keep up.
    Fine,
}

impl Fineness {
    /// On a drive of so many cylinders.
    const fn is_fine(self, cylinders: u32) -> bool {
        match self {
            Self::BySize => cylinders as usize * COARSE * COARSE > CACHED,
            Self::Coarse => false,
            Self::Fine => true,
        }
    }
}

/// What a table of a cylinder says of its tracks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Objective {
    /// The most that one of them offers.
    Track,
    /// The most that a path over all of them takes.
    Cylinder,
}

/// Worth and sectors of blocks, each the least of them.
#[derive(Debug, Clone, Copy)]
struct BlockMinimum {
    worth: u32,
    sectors: u32,
}

impl BlockMinimum {
    /// Of no blocks.
    const NONE: Self = Self { worth: u32::MAX, sectors: u32::MAX };

    /// Of all that are wanted.
    fn of(wanted: &Wanted) -> Self {
        let keys = wanted.layers().iter().filter(|layer| !layer.is_empty()).map(|layer| layer.key);
        keys.fold(Self::NONE, |least, LayerKey { size, weight, .. }| {
            least.and(Self { worth: size.saturating_mul(weight), sectors: size })
        })
    }

    fn and(self, other: Self) -> Self {
        let (worth, sectors) = (self.worth.min(other.worth), self.sectors.min(other.sectors));
        Self { worth, sectors }
    }
}

/// What surfaces of a cylinder may offer at most.
#[derive(Debug, Clone)]
pub(crate) struct SurfaceBounds {
    /// Those that may, the lowest bit for the first.
    surfaces: u64,
    /// By surface.
    most: [u32; u64::BITS as usize],
}

impl SurfaceBounds {
    pub const NONE: Self = Self { surfaces: 0, most: [0; u64::BITS as usize] };

    /// Takes all out.
    #[inline]
    pub fn clear(&mut self) {
        self.surfaces = 0;
    }

    /// Takes the one out that may offer most, and among equals the next one from `first` on and around:
    /// how far on it is, and what it may offer.
    #[inline]
    pub fn take_greatest(&mut self, first: u32) -> Option<(u32, u32)> {
        let mut left = self.surfaces.rotate_right(first);
        let mut greatest: Option<(u32, u32)> = None;
        while left != 0 {
            let on = left.trailing_zeros();
            left &= left - 1;
            let most = self.most[((first + on) % u64::BITS) as usize];
            if greatest.is_none_or(|(_, greatest)| most > greatest) {
                greatest = Some((on, most));
            }
        }
        self.surfaces &= !1u64.rotate_left(first + greatest?.0);
        greatest
    }
}

/// What is asked about surfaces of one cylinder.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SurfaceQuery {
    pub cylinder: u32,
    /// One bit each, the lowest for the first.
    pub surfaces: u64,
    /// Only surfaces that may offer more are of interest.
    pub known: u32,
    /// Worth of all sectors that pass: no surface offers more.
    pub passing: u32,
    /// Where in the turn a block must begin to pass wholly.
    pub begins_in: BlockStartMask,
}

/// A node of the tree: level 0 holds the cylinders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Node {
    pub level: u32,
    pub number: u32,
}

/// Nodes of one level.
#[derive(Debug, Clone)]
struct Level {
    nodes: usize,
    families: SiblingBounds,
}

impl Level {
    fn new(nodes: usize, slots: usize) -> Self {
        Self { nodes, families: SiblingBounds::new(nodes.div_ceil(FANOUT), slots) }
    }
}

/// What tables say, with memory that is used again and again to make them.
#[derive(Debug, Clone)]
enum TableBuilder {
    /// The most that a track of a cylinder offers.
    Tracks(Box<Track<COARSE>>),
    /// The same by more slots.
    FineTracks(Box<Track<FINE>>),
    /// The most that a path over the surfaces of a cylinder takes.
    Paths(Vec<Surface>),
}

impl TableBuilder {
    fn new(tracks: &Tracks, objective: Objective, is_fine: bool) -> Self {
        match objective {
            Objective::Track if is_fine => Self::FineTracks(Box::new(Track::NONE)),
            Objective::Track => Self::Tracks(Box::new(Track::NONE)),
            Objective::Cylinder => Self::Paths(vec![Surface::NONE; tracks.surfaces() as usize]),
        }
    }

    /// Slots of a turn.
    const fn slots(&self) -> usize {
        match self {
            Self::Tracks(_) | Self::Paths(_) => COARSE,
            Self::FineTracks(_) => FINE,
        }
    }
}

/// What is known of single tracks.
#[derive(Debug, Clone)]
struct TrackTotals {
    /// Worth of all that is wanted on each, in units; the greatest stands for any.
    totals: Vec<u16>,
    /// Where on each blocks begin.
    marks: Vec<BlockStartMask>,
}

/// The tree over all cylinders.
#[derive(Debug, Clone)]
pub(crate) struct Index {
    maker: TableBuilder,
    levels: Vec<Level>,
    /// Worth in one unit of a table, as a power of two.
    shift: u32,
    /// Cylinders of which less is wanted than their tables say: bounds that are too high still
    /// hold, so they are worked out anew only when a search comes by.
    stale: Bitmap,
    /// Nothing if tables speak of paths.
    told: TrackTotals,
    /// No block that is marked is less: of all that were wanted since everything was worked out anew,
    /// since marks of what has gone stay until their cylinder is.
    least: BlockMinimum,
    /// Whether tables of paths are rough when all are worked out anew.
    is_rough_at_first: bool,
}

impl Index {
    pub fn new(tracks: &Tracks, wanted: &Wanted, objective: Objective, fineness: Fineness) -> Self {
        let maker = TableBuilder::new(tracks, objective, fineness.is_fine(tracks.cylinders()));
        let mut size = tracks.cylinders() as usize;
        let stale = Bitmap::new(size as u64);
        let by_track =
            if objective == Objective::Track { size * tracks.surfaces() as usize } else { 0 };
        let mut levels = vec![Level::new(size, maker.slots())];
        while size > 1 {
            size = size.div_ceil(FANOUT);
            levels.push(Level::new(size, maker.slots()));
        }
        let told =
            TrackTotals { totals: vec![0; by_track], marks: vec![BlockStartMask::NONE; by_track] };
        let mut index = Self {
            maker,
            levels,
            shift: 0,
            stale,
            told,
            least: BlockMinimum::NONE,
            is_rough_at_first: false,
        };
        index.rebuild(tracks, wanted);
        index
    }

    /// From now on tables of paths are rough when all are worked out anew, and closer only where a search
    /// comes by in vain.
    pub fn rough_at_first(self) -> Self {
        Self { is_rough_at_first: true, ..self }
    }

    /// Slots of a turn.
    #[inline]
    pub fn slots(&self) -> usize {
        self.maker.slots()
    }

    /// Any window up to a turn.
    #[inline]
    pub fn whole(&self) -> SlotArc {
        SlotArc { first: 0, slots: self.slots() }
    }

    /// Works everything out anew.
    pub fn rebuild(&mut self, tracks: &Tracks, wanted: &Wanted) {
        self.shift = shift(tracks, wanted, self.tracks_told_of(tracks));
        self.stale = Bitmap::new(tracks.cylinders().into());
        self.least = BlockMinimum::of(wanted);
        let has_paths = matches!(self.maker, TableBuilder::Paths(_));
        let is_rough = self.is_rough_at_first && has_paths && wanted.left() > 0;
        for cylinder in 0..tracks.cylinders() {
            match is_rough {
                true => self.set_roughly(cylinder),
                false => _ = self.set(tracks, wanted, cylinder),
            }
        }
        if is_rough {
            // Worked out where a search comes by in vain.
            self.fewer_on(0..tracks.cylinders());
        }
        for level in 1..self.levels.len() {
            for number in 0..self.levels[level].nodes {
                self.follow(level, number, u64::MAX);
            }
        }
    }

    /// Tracks that an entry speaks of.
    fn tracks_told_of(&self, tracks: &Tracks) -> u32 {
        match self.maker {
            TableBuilder::Tracks(_) | TableBuilder::FineTracks(_) => 1,
            TableBuilder::Paths(_) => tracks.surfaces(),
        }
    }

    /// Works the table of a cylinder out anew: a bit for each of its lines, or [some](lines_of_bit), of
    /// which any changed.
    fn set(&mut self, tracks: &Tracks, wanted: &Wanted, cylinder: u32) -> u64 {
        let (told, shift) = (&mut self.told, self.shift);
        match &mut self.maker {
            TableBuilder::Tracks(track) => {
                let arcs = best_track(tracks, wanted, cylinder, track, told, shift);
                self.put(cylinder, &Table::of(&arcs))
            }
            TableBuilder::FineTracks(track) => {
                let arcs = best_track(tracks, wanted, cylinder, track, told, shift);
                self.put(cylinder, &Table::of(&arcs))
            }
            TableBuilder::Paths(surfaces) => {
                let arcs = best_path(tracks, wanted, cylinder, surfaces, shift);
                self.put(cylinder, &Table::of(&arcs))
            }
        }
    }

    /// Says of a cylinder that each of its arcs may hold anything. Of what passes in a window, which a
    /// search knows, no path takes more.
    fn set_roughly(&mut self, cylinder: u32) {
        self.put(cylinder, &Table([[u8::MAX; COARSE]; COARSE]));
    }

    fn put<const SLOTS: usize>(&mut self, cylinder: u32, table: &Table<SLOTS>) -> u64 {
        let (family, sibling) = (cylinder as usize / FANOUT, cylinder as usize % FANOUT);
        let lines_of_bit = const { lines_of_bit(SLOTS) };
        let lines = self.levels[0].families.of_mut(family).iter_mut();
        let worths = lines.zip(table.0.as_flattened().as_chunks().0).enumerate();
        worths.fold(0, |changed, (number, (line, worths))| {
            changed | u64::from(line.set(sibling, *worths)) << (number / lines_of_bit)
        })
    }

    /// Brings a node up to date with those below it, of which lines of these bits changed: the bits of
    /// its own that changed thereby.
    fn follow(&mut self, level: usize, number: usize, mut changed_below: u64) -> u64 {
        let lines_of_bit = lines_of_bit(self.slots());
        let (below, above) = self.levels.split_at_mut(level);
        let below = below[level - 1].families.of(number);
        let above = above[0].families.of_mut(number / FANOUT);
        let mut changed = 0;
        while changed_below != 0 {
            let bit = changed_below.trailing_zeros() as usize;
            changed_below &= changed_below - 1;
            let lines = bit * lines_of_bit..(bit + 1) * lines_of_bit;
            for (below, above) in below[lines.clone()].iter().zip(&mut above[lines]) {
                changed |= u64::from(above.set(number % FANOUT, below.greatest())) << bit;
            }
        }
        changed
    }

    /// Less is wanted on `cylinder` than before.
    #[inline]
    pub fn fewer(&mut self, cylinder: u32) {
        self.stale.insert(cylinder.into(), u64::from(cylinder) + 1);
    }

    /// Less may be taken on the cylinders `first..end` than before.
    pub fn fewer_on(&mut self, cylinders: Range<u32>) {
        self.stale.insert(cylinders.start.into(), cylinders.end.into());
    }

    /// Whether less is wanted on `cylinder` than its bounds say.
    #[inline]
    pub fn is_stale(&self, cylinder: u32) -> bool {
        self.stale.contains(cylinder.into())
    }

    /// Works out anew what is wanted on `cylinder`.
    pub fn update(&mut self, tracks: &Tracks, wanted: &Wanted, cylinder: u32) {
        self.least = self.least.and(BlockMinimum::of(wanted));
        self.stale.remove(cylinder.into(), u64::from(cylinder) + 1);
        let (mut number, mut changed) = (cylinder as usize, self.set(tracks, wanted, cylinder));
        for level in 1..self.levels.len() {
            if changed == 0 {
                return;
            }
            number /= FANOUT;
            changed = self.follow(level, number, changed);
        }
    }

    /// Adds to `offers` the surfaces on which more than `known` may be had.
    #[inline]
    pub fn offers(&self, tracks: &Tracks, query: &SurfaceQuery, offers: &mut SurfaceBounds) {
        let SurfaceQuery { cylinder, mut surfaces, known, passing, begins_in } = *query;
        let first = tracks.track(cylinder, 0) as usize;
        let (totals, marks) = (&self.told.totals[first..], &self.told.marks[first..]);
        while surfaces != 0 {
            let surface = surfaces.trailing_zeros() as usize;
            surfaces &= surfaces - 1;
            let total = match totals[surface] {
                u16::MAX => u32::MAX,
                units => u32::from(units) << self.shift,
            };
            if total > known {
                let outside = self.least.worth.saturating_mul(marks[surface].outside(begins_in));
                let most = total.saturating_sub(outside).min(passing);
                offers.most[surface] = most;
                offers.surfaces |= u64::from(most > known) << surface;
            }
        }
    }

    /// No block that is marked has fewer sectors.
    pub fn least_sectors(&self) -> u32 {
        self.least.sectors
    }

    /// Whether anything may be wanted under a node.
    #[inline]
    pub fn may_offer(&self, node: Node) -> bool {
        self.bound(node, self.whole()) > 0
    }

    /// Whether worths still fit its unit; one that does not stands for any, which is slow.
    pub fn fits(&self, tracks: &Tracks, wanted: &Wanted) -> bool {
        shift(tracks, wanted, self.tracks_told_of(tracks)) <= self.shift
    }

    /// Memory it takes.
    pub fn memory(&self) -> Bytes {
        let TrackTotals { totals, marks } = &self.told;
        let made_in = match &self.maker {
            TableBuilder::Tracks(track) => size_of_val(&**track),
            TableBuilder::FineTracks(track) => size_of_val(&**track),
            TableBuilder::Paths(surfaces) => surfaces.capacity() * size_of::<Surface>(),
        };
        let flat = made_in
            + totals.capacity() * size_of::<u16>()
            + marks.capacity() * size_of::<BlockStartMask>();
        let rest = Bytes::new(flat as u64) + self.stale.memory();
        self.levels.iter().fold(rest, |sum, level| sum + level.families.memory())
    }

    /// Levels of the tree.
    pub fn levels(&self) -> u32 {
        self.levels.len() as u32
    }

    /// Nodes of a level.
    pub fn nodes(&self, level: u32) -> usize {
        self.levels[level as usize].nodes
    }

    /// Cylinders under a node of a level, but for the last one, as a power of two.
    #[inline]
    pub const fn cylinders_log2(level: u32) -> u32 {
        FANOUT.trailing_zeros() * level
    }

    /// The first level whose nodes have more cylinders than a power of two.
    #[inline]
    pub const fn level_beyond(cylinders_log2: u32) -> u32 {
        cylinders_log2 / FANOUT.trailing_zeros() + 1
    }

    pub fn root(&self) -> Node {
        Node { level: self.levels() - 1, number: 0 }
    }

    /// Cylinders under a node.
    #[inline]
    pub fn cylinders(&self, node: Node) -> CylinderRange {
        let span = 1 << Self::cylinders_log2(node.level);
        let first = node.number * span;
        let last = (first + (span - 1)).min(self.levels[0].nodes as u32 - 1);
        CylinderRange { first, last }
    }

    /// Of a node above the cylinders the children that may offer more than `known` in a window.
    #[inline]
    pub fn children(&self, node: Node, arc: SlotArc, known: u32) -> impl Iterator<Item = Node> {
        let level = node.level - 1;
        let below = &self.levels[level as usize];
        let least = byte_above(known, self.shift);
        let first = node.number * FANOUT as u32;
        let children = (below.nodes as u32 - first).min(FANOUT as u32);
        let offering = below.families.offering(node.number as usize, arc, least);
        let mut offering = offering & (u32::MAX >> (u32::BITS - children));
        std::iter::from_fn(move || {
            let sibling = offering.trailing_zeros();
            offering &= offering.checked_sub(1)?;
            Some(Node { level, number: first + sibling })
        })
    }

    /// Asks for the memory that looking at the tracks of a cylinder takes first.
    #[inline]
    pub fn prefetch_cylinder(&self, tracks: &Tracks, wanted: &Wanted, cylinder: u32) {
        wanted.prefetch(tracks.track(cylinder, 0));
        tracks.prefetch(cylinder);
        if self.told.marks.is_empty() {
            return;
        }
        let TrackTotals { totals, marks } = &self.told;
        let first = tracks.track(cylinder, 0) as usize;
        let last = first + tracks.surfaces() as usize - 1;
        prefetch_index(totals, first);
        prefetch_index(totals, last);
        for track in (first..last + 8).step_by(8) {
            prefetch_index(marks, track.min(last));
        }
    }

    /// Asks for the memory that opening a node in a window takes.
    #[inline]
    pub fn prefetch(&self, tracks: &Tracks, wanted: &Wanted, node: Node, arc: SlotArc) {
        match node.level.checked_sub(1) {
            Some(level) => {
                self.prefetch_bound(Node { level, number: node.number * FANOUT as u32 }, arc);
            }
            None => self.prefetch_cylinder(tracks, wanted, node.number),
        }
    }

    /// Asks for the memory of a node's bound, which is that of its siblings.
    #[inline]
    pub fn prefetch_bound(&self, node: Node, arc: SlotArc) {
        self.levels[node.level as usize].families.prefetch(node.number as usize / FANOUT, arc);
    }

    /// No track, or no cylinder, under the node offers more in the window.
    #[inline]
    pub fn bound(&self, node: Node, arc: SlotArc) -> u32 {
        let (family, sibling) = (node.number as usize / FANOUT, node.number as usize % FANOUT);
        let families = &self.levels[node.level as usize].families;
        families.worth(family, arc, sibling, self.shift)
    }
}

/// Lines of a family for which one bit says whether any of them changed.
const fn lines_of_bit(slots: usize) -> usize {
    let lines = SiblingBounds::lines(slots);
    assert!(lines.is_multiple_of(u64::BITS as usize), "as many for each bit");
    lines / u64::BITS as usize
}

/// The most that a track of a cylinder offers; of every track it is told what there is.
fn best_track<const SLOTS: usize>(
    tracks: &Tracks,
    wanted: &Wanted,
    cylinder: u32,
    on_track: &mut Track<SLOTS>,
    told: &mut TrackTotals,
    shift: u32,
) -> Arcs<SLOTS> {
    let mut most = Arcs::NONE;
    for surface in 0..tracks.surfaces() {
        let at = Position { cylinder, surface };
        let Some(place) = tracks.place(at) else { continue };
        let ops = wanted.ops();
        collect(tracks, wanted, at, &place, ops, on_track);
        let track = tracks.track(cylinder, surface) as usize;
        let total = on_track.spans.total();
        told.totals[track] = units(total, shift);
        told.marks[track] = on_track.marks;
        if total == 0 {
            continue;
        }
        // A plan reads or writes, and marks and totals are of both.
        for op in ops.chunks(1) {
            if ops.len() > 1 {
                collect(tracks, wanted, at, &place, op, on_track);
            }
            most.raise(&on_track.spans, shift);
            if on_track.spans.total() == total {
                break;
            }
        }
    }
    most
}

/// The most that paths take which read, and such as write: a plan does one of the two.
fn best_path(
    tracks: &Tracks,
    wanted: &Wanted,
    cylinder: u32,
    surfaces: &mut [Surface],
    shift: u32,
) -> Arcs {
    let mut most = Arcs::NONE;
    for op in wanted.ops().chunks(1) {
        let (mut used, mut sectors) = (0, 1);
        for surface in 0..tracks.surfaces() {
            let at = Position { cylinder, surface };
            let Some(place) = tracks.place(at) else { continue };
            let into = &mut surfaces[used];
            collect(tracks, wanted, at, &place, op, into);
            let total = into.total();
            used += usize::from(total > 0);
            sectors = place.sectors();
        }
        if used > 0 {
            let apart = apart(tracks, wanted, sectors);
            let arcs = Arcs::of_paths(&surfaces[..used], apart, shift);
            let rows = most.0.iter_mut().zip(&arcs.0);
            rows.for_each(|(row, others)| raise_row(row, others));
        }
    }
    most
}

/// The least shift by which the worth of so many whole tracks fits a table's entry.
fn shift(tracks: &Tracks, wanted: &Wanted, told_of: u32) -> u32 {
    let zones = tracks.drive().layout().zones();
    let sectors = zones.iter().map(|zone| u64::from(zone.blocks_per_track())).max().unwrap_or(0);
    let weights: u64 = wanted.layers().iter().map(|layer| u64::from(layer.key.weight)).sum();
    let most = sectors * weights.max(1) * u64::from(told_of);
    (u64::BITS - (most / UNITS_MAX).leading_zeros()).min(16)
}

/// What is wanted on a track in these directions, and nothing else.
fn collect(
    tracks: &Tracks,
    wanted: &Wanted,
    at: Position,
    place: &TrackPlace<'_>,
    ops: &[Op],
    into: &mut impl Collect,
) {
    into.clear();
    let begins = wanted.begins_on(at.cylinder);
    tracks.for_each_stretch(at, |stretch| {
        wanted.collect(stretch, place, ops, begins, into);
    });
}

/// How far apart ends of what is read on two surfaces lie where a track has so many sectors.
fn apart(tracks: &Tracks, wanted: &Wanted, sectors: u32) -> MinimumGaps {
    let drive = tracks.fastest();
    let switches = [Op::Read, Op::Write].map(|op| drive.seek().between_ns(op, 0, 0, true));
    let switch = switches[0].min(switches[1]);
    let period = drive.rotation().period_ns();
    // Where more becomes wanted the cylinder is worked out anew.
    let sizes = wanted.layers().iter().filter(|layer| !layer.is_empty());
    let smallest = sizes.map(|layer| layer.key.size).min().unwrap_or(1);
    // Edges are whole nanoseconds: at both of them one may be missing.
    let passes = |blocks: u32| (period * u64::from(blocks) / u64::from(sectors)).saturating_sub(2);
    MinimumGaps::new(switch + passes(smallest), switch + passes(1), period)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn tables_are_fine_where_coarse_ones_are_larger_than_a_cache_and_where_asked_for() {
        let of_size = |cylinders| Fineness::BySize.is_fine(cylinders);
        assert_eq!([10_042, 131_072, 131_073, 604_683].map(of_size), [false, false, true, true]);
        assert!(!Fineness::Coarse.is_fine(604_683) && Fineness::Fine.is_fine(1));
    }

    proptest! {
        #[test]
        fn surfaces_are_taken_by_what_they_may_offer_and_equals_in_order_from_the_first_on(
            most in prop::collection::vec(0u32..5, 1..=64), (first, among) in (0u32..64, any::<u64>()),
        ) {
            let surfaces = most.len() as u32;
            let first = first % surfaces;
            let mut offers = SurfaceBounds::NONE;
            offers.surfaces = among & (u64::MAX >> (64 - surfaces));
            offers.most[..most.len()].copy_from_slice(&most);
            let on = |surface: u32| surface.wrapping_sub(first) % u64::BITS;
            let mut expected: Vec<_> = (0..surfaces)
                .filter(|surface| among >> surface & 1 == 1)
                .map(|surface| (on(surface), most[surface as usize]))
                .collect();
            expected.sort_by_key(|&(on, most)| (std::cmp::Reverse(most), on));
            let taken: Vec<_> = std::iter::from_fn(|| offers.take_greatest(first)).collect();
            prop_assert_eq!(taken, expected);
        }
    }
}
