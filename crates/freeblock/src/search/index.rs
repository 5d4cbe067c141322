//! A tree of bounds: how much a track, or a path over a cylinder, offers in a window of the turn.
//!
//! **Problem.** A search must look at few of half a million cylinders, yet may leave none out that is
//! better. It needs, for any group of cylinders and any window, a bound that is never too low.
//!
//! Every cylinder has a table: worth by arc of the turn ([`arcs`](super::arcs)). A node of the tree has a
//! table too, whose entries are the greatest of its children's, arc by arc.
//!
//! ```text
//!  level 2                 node 0                     arc:     0-1   1-2   2-3   3-0
//!  level 1       node 0              node 1           node 0    24    16     8    24
//!  level 0   c0 c1 .. c15       c16 c17 .. c31        c0        24     0     8     8
//!                                                     c1         8    16     0    24
//! ```
//!
//! A search that wants more than 20 in arc 1-2 does not open node 0: no cylinder below offers more than
//! 16. With one number a node, 24, it would have to. The maximum is taken for each arc apart, so bounds
//! stay close even over thousands of cylinders with small pieces on each.
//!
//! For single tracks there is also, per track, the worth of all blocks and a [`BlockStartMask`].
//!
//! Bounds may be too high and still hold. So a cylinder that lost wanted blocks is only marked stale. Its
//! table is computed anew when a search has looked at it in vain.
//!
//! On a large drive the tables exceed every cache, and searches wait for memory most of their time. What
//! a search needs of sixteen siblings lies in one line, and is prefetched before it is looked at.

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

/// Bytes of tables that a cache holds: the coarse tables of 131,072 cylinders.
const CACHED: usize = 32 << 20;

/// Resolution of the bounds on single tracks in windows of the turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fineness {
    /// Fine from 131,073 cylinders on, where no cache holds even coarse tables.
    #[default]
    BySize,
    /// Sixteenths of the turn: 256 B a cylinder.
    Coarse,
    /// Thirty-seconds of the turn: four times the memory and slower updates, but decisions look at fewer
    /// nodes.
    Fine,
}

impl Fineness {
    /// True if tables of a drive with this number of cylinders tell thirty-seconds.
    pub(crate) const fn is_fine(self, cylinders: u32) -> bool {
        match self {
            // A byte for each of the arcs.
            Self::BySize => cylinders as usize * COARSE * COARSE > CACHED,
            Self::Coarse => false,
            Self::Fine => true,
        }
    }
}

/// Quantity that an entry of a cylinder's table bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Objective {
    /// The best of its tracks.
    Track,
    /// The best path over its tracks.
    Cylinder,
    /// Anything at all: an entry allows any worth, or none.
    Presence,
}

/// Least worth and least sectors of any block.
#[derive(Debug, Clone, Copy)]
struct BlockMinimum {
    worth: u32,
    sectors: u32,
}

impl BlockMinimum {
    const NONE: Self = Self { worth: u32::MAX, sectors: u32::MAX };

    /// Over all wanted blocks.
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

/// Bounds on what surfaces of a cylinder offer.
#[derive(Debug, Clone)]
pub(crate) struct SurfaceBounds {
    /// Surfaces with a bound, the lowest bit for the first.
    surfaces: u64,
    most: [u32; u64::BITS as usize],
}

impl SurfaceBounds {
    pub const NONE: Self = Self { surfaces: 0, most: [0; u64::BITS as usize] };

    #[inline]
    pub fn clear(&mut self) {
        self.surfaces = 0;
    }

    /// Removes the surface with the greatest bound, of equals the next from `first` on and around. Returns
    /// how far behind `first` it lies, and its bound.
    #[inline]
    pub fn take_greatest(&mut self, first: u32) -> Option<(u32, u32)> {
        // Rotated so that `first` is the lowest bit: of equal bounds the first one found is taken.
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
        // Rotated back: bit `first + on` of the surfaces.
        self.surfaces &= !1u64.rotate_left(first + greatest?.0);
        greatest
    }
}

/// Question about surfaces of one cylinder.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SurfaceQuery {
    pub cylinder: u32,
    /// One bit each, the lowest for the first.
    pub surfaces: u64,
    /// Only surfaces that may offer more are of interest.
    pub known: u32,
    /// Worth of all sectors that pass: no surface offers more.
    pub passing: u32,
    /// Angles at which a block must begin to pass wholly.
    pub begins_in: BlockStartMask,
}

/// A node of the tree: level 0 holds the cylinders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Node {
    pub level: u32,
    pub number: u32,
}

/// One level of the tree.
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

/// Builder of tables, with reused memory.
#[derive(Debug, Clone)]
enum TableBuilder {
    /// The best track, in coarse slots.
    Tracks(Box<Track<COARSE>>),
    /// The best track, in fine slots.
    FineTracks(Box<Track<FINE>>),
    /// The best path over the surfaces.
    Paths(Vec<Surface>),
    /// Any worth or none.
    Presence,
}

impl TableBuilder {
    fn new(tracks: &Tracks, objective: Objective, is_fine: bool) -> Self {
        match objective {
            Objective::Track if is_fine => Self::FineTracks(Box::new(Track::NONE)),
            Objective::Track => Self::Tracks(Box::new(Track::NONE)),
            Objective::Cylinder => Self::Paths(vec![Surface::NONE; tracks.surfaces() as usize]),
            Objective::Presence => Self::Presence,
        }
    }

    /// Slots of a turn.
    const fn slots(&self) -> usize {
        match self {
            Self::Tracks(_) | Self::Paths(_) | Self::Presence => COARSE,
            Self::FineTracks(_) => FINE,
        }
    }
}

/// Bounds of single tracks.
#[derive(Debug, Clone)]
struct TrackTotals {
    /// Worth of all wanted blocks of each, in units; `u16::MAX` is any worth.
    totals: Vec<u16>,
    marks: Vec<BlockStartMask>,
}

/// The tree over all cylinders.
#[derive(Debug, Clone)]
pub(crate) struct Index {
    maker: TableBuilder,
    levels: Vec<Level>,
    /// Worth in one unit of a table, as a power of two.
    shift: u32,
    /// Cylinders of which less is wanted than their tables say. Bounds that are too high hold, so these
    /// are computed anew only after a search has looked at them in vain.
    stale: Bitmap,
    /// Empty unless tables bound single tracks.
    told: TrackTotals,
    /// Least of all blocks wanted since the last rebuild. Masks may still hold blocks that are wanted no
    /// longer, so the minimum is never raised between rebuilds.
    least: BlockMinimum,
    /// True if a rebuild makes tables of paths that allow any worth.
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
        // Levels until one node holds all cylinders.
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

    /// From now on a rebuild makes tables of paths that allow any worth. A cylinder gets a close table after a
    /// search has looked at it in vain.
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

    /// Computes all tables anew.
    pub fn rebuild(&mut self, tracks: &Tracks, wanted: &Wanted) {
        // The unit first, as every entry is rounded up to it.
        self.shift = shift(tracks, wanted, self.tracks_told_of(tracks));
        self.stale = Bitmap::new(tracks.cylinders().into());
        self.least = BlockMinimum::of(wanted);
        let has_paths = matches!(self.maker, TableBuilder::Paths(_));
        let is_rough = self.is_rough_at_first && has_paths && wanted.left() > 0;
        for cylinder in 0..tracks.cylinders() {
            if is_rough {
                self.set_roughly(cylinder);
            } else {
                self.set(tracks, wanted, cylinder);
            }
        }
        if is_rough {
            // All bounds are too high, so all are stale.
            self.fewer_on(0..tracks.cylinders());
        }
        // From the leaves up: a level is complete before the one above takes its maxima.
        for level in 1..self.levels.len() {
            for number in 0..self.levels[level].nodes {
                self.follow(level, number, u64::MAX);
            }
        }
    }

    /// Tracks whose worth an entry may sum.
    fn tracks_told_of(&self, tracks: &Tracks) -> u32 {
        match self.maker {
            TableBuilder::Tracks(_) | TableBuilder::FineTracks(_) => 1,
            TableBuilder::Paths(_) => tracks.surfaces(),
            // Its entries sum nothing.
            TableBuilder::Presence => 0,
        }
    }

    /// Computes the table of a cylinder anew. Returns a bit for each [group of lines](lines_of_bit), set
    /// where any entry changed.
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
            TableBuilder::Presence if wanted.is_any_on(tracks, cylinder) => {
                self.set_roughly(cylinder)
            }
            TableBuilder::Presence => self.put(cylinder, &Table([[0; COARSE]; COARSE])),
        }
    }

    /// Gives a cylinder a table that allows any worth. The search is left with its other bound, the worth of
    /// all sectors that pass in a window.
    fn set_roughly(&mut self, cylinder: u32) -> u64 {
        self.put(cylinder, &Table([[u8::MAX; COARSE]; COARSE]))
    }

    /// Stores the table of a cylinder; returns the same bits as [`Self::set`].
    fn put<const SLOTS: usize>(&mut self, cylinder: u32, table: &Table<SLOTS>) -> u64 {
        let (family, sibling) = (cylinder as usize / FANOUT, cylinder as usize % FANOUT);
        let lines_of_bit = const { lines_of_bit(SLOTS) };
        // Both the table and the lines are ordered by number of slots and then by first slot, so chunks
        // of four neighbouring arcs are the entries of consecutive lines.
        let lines = self.levels[0].families.of_mut(family).iter_mut();
        let worths = lines.zip(table.0.as_flattened().as_chunks().0).enumerate();
        worths.fold(0, |changed, (number, (line, worths))| {
            changed | u64::from(line.set(sibling, *worths)) << (number / lines_of_bit)
        })
    }

    /// Recomputes a node's maxima in the groups of lines that changed below. Returns the groups of the
    /// node's own lines that changed.
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
            // A family's line holds four arcs of sixteen siblings; the node above holds their maxima in the
            // line of the same arcs.
            for (below, above) in below[lines.clone()].iter().zip(&mut above[lines]) {
                changed |= u64::from(above.set(number % FANOUT, below.greatest())) << bit;
            }
        }
        changed
    }

    /// Marks a cylinder on which less is wanted than before.
    #[inline]
    pub fn fewer(&mut self, cylinder: u32) {
        // The table keeps its entries: too high, and so still bounds.
        self.stale.insert(cylinder.into(), u64::from(cylinder) + 1);
    }

    /// Marks cylinders on which less may be taken than before.
    pub fn fewer_on(&mut self, cylinders: Range<u32>) {
        self.stale.insert(cylinders.start.into(), cylinders.end.into());
    }

    /// True if the bounds of `cylinder` may be too high.
    #[inline]
    pub fn is_stale(&self, cylinder: u32) -> bool {
        self.stale.contains(cylinder.into())
    }

    /// Computes the table of `cylinder` anew, and the nodes above as far as that changes them.
    pub fn update(&mut self, tracks: &Tracks, wanted: &Wanted, cylinder: u32) {
        // The minimum only falls here: masks of other cylinders may hold blocks that are wanted no
        // longer.
        self.least = self.least.and(BlockMinimum::of(wanted));
        self.stale.remove(cylinder.into(), u64::from(cylinder) + 1);
        let (mut number, mut changed) = (cylinder as usize, self.set(tracks, wanted, cylinder));
        for level in 1..self.levels.len() {
            // Without a change here the nodes above stay as they are.
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
            // Totals were rounded up to units, so this is no less than the worth.
            let total = match totals[surface] {
                u16::MAX => u32::MAX,
                units => u32::from(units) << self.shift,
            };
            if total > known {
                // A part of the turn outside the window in which a block begins holds a block that does not
                // pass. Each such block has at least the least worth.
                let outside = self.least.worth.saturating_mul(marks[surface].outside(begins_in));
                let most = total.saturating_sub(outside).min(passing);
                offers.most[surface] = most;
                offers.surfaces |= u64::from(most > known) << surface;
            }
        }
    }

    /// Fewest sectors of any block in a mask.
    pub fn least_sectors(&self) -> u32 {
        self.least.sectors
    }

    /// True if anything may be wanted under a node.
    #[inline]
    pub fn may_offer(&self, node: Node) -> bool {
        self.bound(node, self.whole()) > 0
    }

    /// True if all worths fit the unit of the tables. A worth that does not counts as any, which is slow.
    pub fn fits(&self, tracks: &Tracks, wanted: &Wanted) -> bool {
        shift(tracks, wanted, self.tracks_told_of(tracks)) <= self.shift
    }

    pub fn memory(&self) -> Bytes {
        let TrackTotals { totals, marks } = &self.told;
        let made_in = match &self.maker {
            TableBuilder::Tracks(track) => size_of_val(&**track),
            TableBuilder::FineTracks(track) => size_of_val(&**track),
            TableBuilder::Paths(surfaces) => surfaces.capacity() * size_of::<Surface>(),
            TableBuilder::Presence => 0,
        };
        let flat = made_in
            + totals.capacity() * size_of::<u16>()
            + marks.capacity() * size_of::<BlockStartMask>();
        let rest = Bytes::new(flat as u64) + self.stale.memory();
        self.levels.iter().fold(rest, |sum, level| sum + level.families.memory())
    }

    pub fn levels(&self) -> u32 {
        self.levels.len() as u32
    }

    pub fn nodes(&self, level: u32) -> usize {
        self.levels[level as usize].nodes
    }

    /// Cylinders under a node of a level, as a power of two; the last node may have fewer.
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

    /// Children that may offer more than `known` in an arc. The node lies above the cylinders.
    #[inline]
    pub fn children(&self, node: Node, arc: SlotArc, known: u32) -> impl Iterator<Item = Node> {
        let level = node.level - 1;
        let below = &self.levels[level as usize];
        // Compared as bytes: sixteen children in one line, without decoding any.
        let least = byte_above(known, self.shift);
        let first = node.number * FANOUT as u32;
        let children = (below.nodes as u32 - first).min(FANOUT as u32);
        let offering = below.families.offering(node.number as usize, arc, least);
        // The last family of a level may be incomplete.
        let mut offering = offering & (u32::MAX >> (u32::BITS - children));
        std::iter::from_fn(move || {
            let sibling = offering.trailing_zeros();
            offering &= offering.checked_sub(1)?;
            Some(Node { level, number: first + sibling })
        })
    }

    /// Prefetches what a look at the tracks of a cylinder reads first.
    #[inline]
    pub fn prefetch_cylinder(&self, tracks: &Tracks, wanted: &Wanted, cylinder: u32) {
        wanted.prefetch(tracks.track(cylinder, 0));
        tracks.prefetch(cylinder);
        if self.told.marks.is_empty() {
            return;
        }
        let TrackTotals { totals, marks } = &self.told;
        let first = tracks.track(cylinder, 0) as usize;
        // Surfaces of a cylinder are neighbours in all of these arrays.
        let last = first + tracks.surfaces() as usize - 1;
        prefetch_index(totals, first);
        prefetch_index(totals, last);
        // Eight masks a cache line.
        for track in (first..last + 8).step_by(8) {
            prefetch_index(marks, track.min(last));
        }
    }

    /// Prefetches what opening a node reads: its children's bounds, or a cylinder's tracks.
    #[inline]
    pub fn prefetch(&self, tracks: &Tracks, wanted: &Wanted, node: Node, arc: SlotArc) {
        match node.level.checked_sub(1) {
            Some(level) => {
                self.prefetch_bound(Node { level, number: node.number * FANOUT as u32 }, arc);
            }
            None => self.prefetch_cylinder(tracks, wanted, node.number),
        }
    }

    /// Prefetches a node's bound, which shares a line with its siblings'.
    #[inline]
    pub fn prefetch_bound(&self, node: Node, arc: SlotArc) {
        self.levels[node.level as usize].families.prefetch(node.number as usize / FANOUT, arc);
    }

    /// Most that any cylinder under the node offers in the arc.
    #[inline]
    pub fn bound(&self, node: Node, arc: SlotArc) -> u32 {
        let (family, sibling) = (node.number as usize / FANOUT, node.number as usize % FANOUT);
        let families = &self.levels[node.level as usize].families;
        families.worth(family, arc, sibling, self.shift)
    }
}

/// Lines of a family that share a bit of what changed.
const fn lines_of_bit(slots: usize) -> usize {
    let lines = SiblingBounds::lines(slots);
    assert!(lines.is_multiple_of(u64::BITS as usize), "as many for each bit");
    lines / u64::BITS as usize
}

/// The table of the best track of a cylinder; stores the bounds of each track in `told`.
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
        // Bounds of the track itself, for both directions together.
        told.totals[track] = units(total, shift);
        told.marks[track] = on_track.marks;
        if total == 0 {
            continue;
        }
        // A plan reads or writes, never both: the table takes the better of the two directions. Masks and
        // totals are of both together, which is higher and still a bound.
        for op in ops.chunks(1) {
            // With one direction the spans are already those of it.
            if ops.len() > 1 {
                collect(tracks, wanted, at, &place, op, on_track);
            }
            most.raise(&on_track.spans, shift);
            // All blocks have this direction, so the other has none.
            if on_track.spans.total() == total {
                break;
            }
        }
    }
    most
}

/// The table of the best path of a cylinder: of those that read and those that write the better, arc by
/// arc.
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
            // A surface without blocks takes no part in a path: its place is used again.
            used += usize::from(total > 0);
            // Where surfaces differ, the shortest sectors give the least time between blocks.
            sectors = sectors.max(place.sectors());
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

/// The least shift by which the worth of `told_of` whole tracks fits a table's entry.
fn shift(tracks: &Tracks, wanted: &Wanted, told_of: u32) -> u32 {
    let zones = tracks.drive().layout().zones();
    let sectors = zones.iter().map(|zone| u64::from(zone.blocks_per_track())).max().unwrap_or(0);
    let weights: u64 = wanted.layers().iter().map(|layer| u64::from(layer.key.weight)).sum();
    // Every layer may want every sector of the track.
    let most = sectors * weights.max(1) * u64::from(told_of);
    (u64::BITS - (most / UNITS_MAX).leading_zeros()).min(16)
}

/// Replaces `into` by what is wanted on a track in these directions.
fn collect(
    tracks: &Tracks,
    wanted: &Wanted,
    at: Position,
    place: &TrackPlace<'_>,
    ops: &[Op],
    into: &mut impl Collect,
) {
    into.clear();
    // On a closed cylinder only pieces of held blocks can be taken, and only they count.
    let begins = wanted.begins_on(at.cylinder);
    tracks.for_each_stretch(at, |stretch| {
        wanted.collect(stretch, place, ops, begins, into);
    });
}

/// Least time between ends on two surfaces of a cylinder with `sectors` a track.
fn apart(tracks: &Tracks, wanted: &Wanted, sectors: u32) -> MinimumGaps {
    let drive = tracks.fastest();
    let switches = [Op::Read, Op::Write].map(|op| drive.seek().between_ns(op, 0, 0, true));
    // The faster of both directions, with the shortest seeks there may be: bounds hold for all.
    let switch = switches[0].min(switches[1]);
    let period = drive.rotation().period_ns();
    // If a smaller block becomes wanted on the cylinder, its table is computed anew.
    let sizes = wanted.layers().iter().filter(|layer| !layer.is_empty());
    let smallest = sizes.map(|layer| layer.key.size).min().unwrap_or(1);
    MinimumGaps::new(
        switch + passes(smallest, period, sectors),
        switch + passes(1, period, sectors),
        period,
    )
}

/// Edges are rounded to whole nanoseconds, so a block may seem shorter by one at either end.
fn passes(blocks: u32, period: u64, sectors: u32) -> u64 {
    (period * u64::from(blocks) / u64::from(sectors)).saturating_sub(2)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use freewheel_model::drive::Drive;
    use freewheel_units::Prng;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn tables_are_fine_for_large_drives() {
        let of_size = |cylinders| Fineness::BySize.is_fine(cylinders);
        assert_eq!([10_042, 131_072, 131_073, 604_683].map(of_size), [false, false, true, true]);
        assert!(!Fineness::Coarse.is_fine(604_683) && Fineness::Fine.is_fine(1));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 24, ..Default::default() })]

        /// Blocks of several sizes, pieces of which are held, and memory for few of them.
        #[test]
        fn presence_is_where_paths_have_worth(seed: u64, held_max in 0u64..400) {
            let spec = toml::from_str(include_str!("../../../../drives/atlas10k.toml")).unwrap();
            let tracks = &Tracks::new(&Arc::new(Drive::build(&spec).unwrap()));
            let prng = &mut Prng::new(seed, "presence");
            let wanted = &mut Wanted::new(tracks, held_max);
            for (op, size, offset) in [(Op::Read, 16, 3), (Op::Write, 1, 0)] {
                let layer = wanted.layer(tracks, LayerKey { op, size, offset, weight: 1 });
                let bound = wanted.blocks(layer).bound();
                for _ in 0..=prng.below(40) {
                    let from = prng.below(bound);
                    wanted.want(tracks, layer, from, (from + 1 + prng.below(bound / 30)).min(bound));
                }
            }
            for _ in 0..=prng.below(60) {
                let from = prng.below(tracks.drive().blocks().get() - 40);
                wanted.moved(tracks, from, from + 1 + prng.below(40), |_, _| true, &mut |_, _| {});
                wanted.decided();
                _ = wanted.ration();
            }
            let [paths, presence] = [Objective::Cylinder, Objective::Presence]
                .map(|objective| Index::new(tracks, wanted, objective, Fineness::BySize));
            for number in 0..tracks.cylinders() {
                let node = Node { level: 0, number };
                prop_assert_eq!(presence.may_offer(node), paths.may_offer(node), "cylinder {}", number);
            }
        }
    }

    proptest! {
        #[test]
        fn surfaces_are_ordered_by_offer(
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
