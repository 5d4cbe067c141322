//! How much any track, or any cylinder, can offer in a window of the turn: never too little.
//!
//! For every cylinder there is a table of all arcs of the turn with the worth of what lies in them;
//! above them stands a tree whose nodes hold the greatest of their children, arc by arc. Since the
//! greatest is taken for each arc apart, the bound stays close even over thousands of cylinders with
//! small pieces on each. Of single tracks there are [`Marks`] as well.
//!
//! On a large drive that is far more than a cache holds, and searches wait for memory most of their
//! time: so what they need of many nodes lies in one line, and is asked for before they come to it.

use std::ops::Range;

use freewheel_units::{Bytes, Op};
use prefetch_index::prefetch_index;

use super::arcs::{Arcs, Collect, SLOTS, SlotArc, Table, UNITS_MAX, byte_above, raise_row, units};
use super::bitmap::Bitmap;
use super::family::{FANOUT, Family, NEARS};
use super::marks::{Marks, Track};
use super::path_arcs::{Apart, Surface};
use super::tracks::{TrackPlace, Tracks};
use super::wanted::{LayerKey, Wanted};
use crate::drive::Position;

/// Any window up to a turn.
pub(super) const WHOLE: SlotArc = SlotArc { first: 0, slots: SLOTS };

/// What a table of a cylinder says of its tracks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Objective {
    /// The most that one of them offers.
    Track,
    /// The most that a path over all of them takes.
    Cylinder,
}

/// Worth and sectors of blocks, each the least of them.
#[derive(Debug, Clone, Copy)]
struct Least {
    worth: u32,
    sectors: u32,
}

impl Least {
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
pub(super) struct Offers {
    /// Those that may, the lowest bit for the first.
    surfaces: u64,
    /// By surface.
    most: [u32; u64::BITS as usize],
}

impl Offers {
    pub const NONE: Self = Self { surfaces: 0, most: [0; u64::BITS as usize] };

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

/// A node of the tree: level 0 holds the cylinders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Node {
    pub level: u32,
    pub number: u32,
}

/// Nodes of one level.
#[derive(Debug, Clone)]
struct Level {
    nodes: usize,
    families: Vec<Family>,
}

impl Level {
    fn new(nodes: usize) -> Self {
        Self { nodes, families: vec![Family::NONE; nodes.div_ceil(FANOUT)] }
    }
}

/// The tree over all cylinders.
#[derive(Debug, Clone)]
pub(super) struct Index {
    objective: Objective,
    levels: Vec<Level>,
    /// Worth in one unit of a table, as a power of two.
    shift: u32,
    /// Cylinders of which less is wanted than their tables say: bounds that are too high still
    /// hold, so they are worked out anew only when a search comes by.
    stale: Bitmap,
    /// If tables say what single tracks offer, the worth of all that is wanted on each track, in units;
    /// the greatest stands for any.
    totals: Vec<u16>,
    /// Where on each of them blocks begin.
    marks: Vec<Marks>,
    /// No block that is marked is less: of all that were wanted since everything was worked out anew,
    /// since marks of what has gone stay until their cylinder is.
    least: Least,
    /// What is wanted on the track, or the surfaces of the cylinder, at hand: memory that is used
    /// again.
    track: Box<Track>,
    surfaces: Vec<Surface>,
}

impl Index {
    pub fn new(tracks: &Tracks, wanted: &Wanted, objective: Objective) -> Self {
        let mut size = tracks.cylinders() as usize;
        let stale = Bitmap::new(size as u64);
        let surfaces = tracks.surfaces() as usize;
        let mut levels = vec![Level::new(size)];
        while size > 1 {
            size = size.div_ceil(FANOUT);
            levels.push(Level::new(size));
        }
        let (by_track, by_surface) = match objective {
            Objective::Track => (levels[0].nodes * surfaces, 0),
            Objective::Cylinder => (0, surfaces),
        };
        let mut index = Self {
            objective,
            levels,
            shift: 0,
            stale,
            totals: vec![0; by_track],
            marks: vec![Marks::NONE; by_track],
            least: Least::NONE,
            track: Box::new(Track::NONE),
            surfaces: vec![Surface::NONE; by_surface],
        };
        index.rebuild(tracks, wanted);
        index
    }

    /// Works everything out anew.
    pub fn rebuild(&mut self, tracks: &Tracks, wanted: &Wanted) {
        self.shift = shift(tracks, wanted, self.objective);
        self.stale = Bitmap::new(tracks.cylinders().into());
        self.least = Least::of(wanted);
        for cylinder in 0..tracks.cylinders() {
            self.set(tracks, wanted, cylinder);
        }
        for level in 1..self.levels.len() {
            for number in 0..self.levels[level].nodes {
                self.follow(level, number, u64::MAX);
            }
        }
    }

    /// Works the table of a cylinder out anew: a bit for each of [`NEARS`] that changed.
    fn set(&mut self, tracks: &Tracks, wanted: &Wanted, cylinder: u32) -> u64 {
        let table = self.cylinder(tracks, wanted, cylinder);
        let (family, sibling) = (cylinder as usize / FANOUT, cylinder as usize % FANOUT);
        let family = &mut self.levels[0].families[family];
        let worths = table.0.as_flattened().as_chunks().0.iter().enumerate();
        worths.fold(0, |changed, (arcs, worths)| {
            changed | u64::from(family.set(sibling, arcs, *worths)) << arcs
        })
    }

    /// Brings a node up to date with those below it, of which these arcs changed: a bit for each of
    /// its own that changed thereby.
    fn follow(&mut self, level: usize, number: usize, mut changed_below: u64) -> u64 {
        const { assert!(NEARS as u32 == u64::BITS, "a bit for each") };
        let (below, above) = self.levels.split_at_mut(level);
        let below = &below[level - 1].families[number];
        let family = &mut above[0].families[number / FANOUT];
        let mut changed = 0;
        while changed_below != 0 {
            let arcs = changed_below.trailing_zeros() as usize;
            changed_below &= changed_below - 1;
            let is_other = family.set(number % FANOUT, arcs, below.greatest(arcs));
            changed |= u64::from(is_other) << arcs;
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
        self.least = self.least.and(Least::of(wanted));
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

    fn cylinder(&mut self, tracks: &Tracks, wanted: &Wanted, cylinder: u32) -> Table {
        Table::of(&match self.objective {
            Objective::Track => self.best_track(tracks, wanted, cylinder),
            Objective::Cylinder => self.best_path(tracks, wanted, cylinder),
        })
    }

    fn best_track(&mut self, tracks: &Tracks, wanted: &Wanted, cylinder: u32) -> Arcs {
        let mut most = Arcs::NONE;
        for surface in 0..tracks.surfaces() {
            let at = Position { cylinder, surface };
            let Some(place) = tracks.place(at) else { continue };
            let ops = wanted.ops();
            collect(tracks, wanted, (at, &place), ops, &mut *self.track);
            let track = tracks.track(cylinder, surface) as usize;
            let Track { spans, marks } = &*self.track;
            let total = spans.total();
            self.totals[track] = units(total, self.shift);
            self.marks[track] = *marks;
            if total == 0 {
                continue;
            }
            // A plan reads or writes, and marks and totals are of both.
            for op in ops.chunks(1) {
                if ops.len() > 1 {
                    collect(tracks, wanted, (at, &place), op, &mut *self.track);
                }
                most.raise(&self.track.spans, self.shift);
                if self.track.spans.total() == total {
                    break;
                }
            }
        }
        most
    }

    /// The most that paths take which read, and such as write: a plan does one of the two.
    fn best_path(&mut self, tracks: &Tracks, wanted: &Wanted, cylinder: u32) -> Arcs {
        let mut most = Arcs::NONE;
        for op in wanted.ops().chunks(1) {
            let (mut used, mut sectors) = (0, 1);
            for surface in 0..tracks.surfaces() {
                let at = Position { cylinder, surface };
                let Some(place) = tracks.place(at) else { continue };
                let into = &mut self.surfaces[used];
                collect(tracks, wanted, (at, &place), op, into);
                let total = into.total();
                used += usize::from(total > 0);
                sectors = place.sectors();
            }
            if used > 0 {
                let apart = apart(tracks, wanted, sectors);
                let arcs = Arcs::of_paths(&self.surfaces[..used], apart, self.shift);
                let rows = most.0.iter_mut().zip(&arcs.0);
                rows.for_each(|(row, others)| raise_row(row, others));
            }
        }
        most
    }

    /// Adds to `offers` those of these surfaces of a cylinder, the lowest bit for the first, on which more
    /// than `known` may be had, but never more than `passing`, of blocks that begin in a window and of
    /// pieces.
    #[inline]
    pub fn offers(
        &self,
        tracks: &Tracks,
        (cylinder, mut surfaces): (u32, u64),
        (known, passing): (u32, u32),
        window: Marks,
        offers: &mut Offers,
    ) {
        let first = tracks.track(cylinder, 0) as usize;
        let (totals, marks) = (&self.totals[first..], &self.marks[first..]);
        while surfaces != 0 {
            let surface = surfaces.trailing_zeros() as usize;
            surfaces &= surfaces - 1;
            let total = match totals[surface] {
                u16::MAX => u32::MAX,
                units => u32::from(units) << self.shift,
            };
            if total > known {
                let outside = self.least.worth.saturating_mul(marks[surface].outside(window));
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
        self.bound(node, WHOLE) > 0
    }

    /// Whether worths still fit its unit; one that does not stands for any, which is slow.
    pub fn fits(&self, tracks: &Tracks, wanted: &Wanted) -> bool {
        shift(tracks, wanted, self.objective) <= self.shift
    }

    /// Memory it takes.
    pub fn memory(&self) -> Bytes {
        let families: usize = self.levels.iter().map(|level| level.families.capacity()).sum();
        let flat = families * size_of::<Family>()
            + self.totals.capacity() * size_of::<u16>()
            + self.marks.capacity() * size_of::<Marks>()
            + self.surfaces.capacity() * size_of::<Surface>();
        Bytes::new(flat as u64) + self.stale.memory()
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

    /// Cylinders under a node: the first and the last.
    #[inline]
    pub fn cylinders(&self, node: Node) -> (u32, u32) {
        let span = 1 << Self::cylinders_log2(node.level);
        let first = node.number * span;
        (first, (first + (span - 1)).min(self.levels[0].nodes as u32 - 1))
    }

    /// Of a node above the cylinders the children that may offer more than `known` in a window.
    #[inline]
    pub fn children(&self, node: Node, arc: SlotArc, known: u32) -> impl Iterator<Item = Node> {
        let level = node.level - 1;
        let below = &self.levels[level as usize];
        let least = byte_above(known, self.shift);
        let first = node.number * FANOUT as u32;
        let children = (below.nodes as u32 - first).min(FANOUT as u32);
        let offering = below.families[node.number as usize].offering(arc, least);
        let mut offering = offering & (u32::MAX >> (u32::BITS - children));
        std::iter::from_fn(move || {
            let sibling = offering.trailing_zeros();
            offering &= offering.checked_sub(1)?;
            Some(Node { level, number: first + sibling })
        })
    }

    /// Asks for the memory that looking at the tracks of a cylinder takes first.
    #[inline]
    pub fn prefetch_cylinder(&self, tracks: &Tracks, cylinder: u32) {
        if self.objective == Objective::Cylinder {
            return;
        }
        let first = tracks.track(cylinder, 0) as usize;
        let last = first + tracks.surfaces() as usize - 1;
        prefetch_index(&self.totals, first);
        prefetch_index(&self.totals, last);
        for track in (first..last + 8).step_by(8) {
            prefetch_index(&self.marks, track.min(last));
        }
    }

    /// Asks for the memory that opening a node in a window takes.
    #[inline]
    pub fn prefetch(&self, tracks: &Tracks, node: Node, arc: SlotArc) {
        match node.level.checked_sub(1) {
            Some(level) => {
                self.prefetch_bound(Node { level, number: node.number * FANOUT as u32 }, arc);
            }
            None => self.prefetch_cylinder(tracks, node.number),
        }
    }

    /// Asks for the memory of a node's bound, which is that of its siblings.
    #[inline]
    pub fn prefetch_bound(&self, node: Node, arc: SlotArc) {
        self.levels[node.level as usize].families[node.number as usize / FANOUT].prefetch(arc);
    }

    /// No track, or no cylinder, under the node offers more in the window.
    #[inline]
    pub fn bound(&self, node: Node, arc: SlotArc) -> u32 {
        let (family, sibling) = (node.number as usize / FANOUT, node.number as usize % FANOUT);
        let families = &self.levels[node.level as usize].families;
        families[family].worth(arc, sibling, self.shift)
    }
}

/// The least shift by which the worth of a whole track or cylinder fits a table's entry.
fn shift(tracks: &Tracks, wanted: &Wanted, objective: Objective) -> u32 {
    let zones = tracks.drive().layout().zones();
    let sectors = zones.iter().map(|zone| u64::from(zone.blocks_per_track())).max().unwrap_or(0);
    let weights: u64 = wanted.layers().iter().map(|layer| u64::from(layer.key.weight)).sum();
    let tracks = if objective == Objective::Track { 1 } else { u64::from(tracks.surfaces()) };
    let most = sectors * weights.max(1) * tracks;
    (u64::BITS - (most / UNITS_MAX).leading_zeros()).min(16)
}

/// What is wanted on a track in these directions, and nothing else.
fn collect(
    tracks: &Tracks,
    wanted: &Wanted,
    (at, place): (Position, &TrackPlace<'_>),
    ops: &[Op],
    into: &mut impl Collect,
) {
    into.clear();
    let begins = wanted.begins_on(at.cylinder);
    tracks.for_each_stretch(at, |stretch| {
        wanted.collect(stretch, place, (ops, begins), into);
    });
}

/// How far apart ends of what is read on two surfaces lie where a track has so many sectors.
fn apart(tracks: &Tracks, wanted: &Wanted, sectors: u32) -> Apart {
    let drive = tracks.fastest();
    let switches = [Op::Read, Op::Write].map(|op| drive.seek().between_ns(op, (0, 0), true));
    let switch = switches[0].min(switches[1]);
    let period = drive.rotation().period_ns();
    // Where more becomes wanted the cylinder is worked out anew.
    let sizes = wanted.layers().iter().filter(|layer| !layer.is_empty());
    let smallest = sizes.map(|layer| layer.key.size).min().unwrap_or(1);
    // Edges are whole nanoseconds: at both of them one may be missing.
    let passes = |blocks: u32| (period * u64::from(blocks) / u64::from(sectors)).saturating_sub(2);
    Apart::new(switch + passes(smallest), switch + passes(1), period)
}
