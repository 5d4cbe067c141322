//! How much any track, or any cylinder, can offer in a window of the turn: never too little.
//!
//! The turn is cut into [`SLOTS`] slots. For every cylinder there is a table of all arcs (first slot,
//! number of slots) with the worth of what begins in them; above them stands a tree whose nodes hold
//! the greatest of their children, arc by arc. Since the greatest is taken for each arc apart, the
//! bound stays close even over thousands of cylinders with small pieces on each.

use freewheel_units::{Angle, Bytes};

use super::tracks::{Tracks, blocks_in};
use super::wanted::Wanted;

/// Slots of a turn. More make bounds closer and tables larger, by the square.
pub(super) const SLOTS: usize = 16;

/// Children of a node.
pub(super) const FANOUT: usize = 4;

/// What a table of a cylinder says of its tracks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Objective {
    /// The most that one of them offers.
    Track,
    /// What all of them offer together.
    Cylinder,
}

/// Worth by arc: `[number of slots - 1][first slot]`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Arcs([[u16; SLOTS]; SLOTS]);

impl Arcs {
    const NONE: Self = Self([[0; SLOTS]; SLOTS]);

    /// Sums of slots.
    fn of(slots: &[u16; SLOTS]) -> Self {
        let mut twice = [0; 2 * SLOTS];
        twice[..SLOTS].copy_from_slice(slots);
        twice[SLOTS..].copy_from_slice(slots);
        let mut arcs = Self::NONE;
        let mut sums = [0u16; SLOTS];
        for (added, row) in arcs.0.iter_mut().enumerate() {
            for (sum, slot) in sums.iter_mut().zip(&twice[added..]) {
                *sum = sum.saturating_add(*slot);
            }
            *row = sums;
        }
        arcs
    }

    fn raise(&mut self, other: &Self) {
        for (row, others) in self.0.iter_mut().zip(&other.0) {
            for (worth, other) in row.iter_mut().zip(others) {
                *worth = (*worth).max(*other);
            }
        }
    }
}

/// A node of the tree: level 0 holds the cylinders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Node {
    pub level: u32,
    pub number: u32,
}

/// Slots of a window: the first, and how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SlotArc {
    pub first: usize,
    pub slots: usize,
}

/// The tree over all cylinders.
#[derive(Debug, Clone)]
pub(super) struct Index {
    objective: Objective,
    levels: Vec<Vec<Arcs>>,
    /// Worth in one unit of a table, as a power of two.
    shift: u32,
}

impl Index {
    pub fn new(tracks: &Tracks, wanted: &Wanted, objective: Objective) -> Self {
        let mut size = tracks.cylinders() as usize;
        let mut levels = vec![vec![Arcs::NONE; size]];
        while size > 1 {
            size = size.div_ceil(FANOUT);
            levels.push(vec![Arcs::NONE; size]);
        }
        let mut index = Self { objective, levels, shift: 0 };
        index.rebuild(tracks, wanted);
        index
    }

    /// Works everything out anew.
    pub fn rebuild(&mut self, tracks: &Tracks, wanted: &Wanted) {
        self.shift = shift(tracks, wanted, self.objective);
        for cylinder in 0..tracks.cylinders() {
            self.levels[0][cylinder as usize] = self.cylinder(tracks, wanted, cylinder);
        }
        for level in 1..self.levels.len() {
            for number in 0..self.levels[level].len() {
                self.levels[level][number] = self.over_children(level, number);
            }
        }
    }

    /// What is wanted on `cylinder` has changed.
    pub fn update(&mut self, tracks: &Tracks, wanted: &Wanted, cylinder: u32) {
        let mut number = cylinder as usize;
        self.levels[0][number] = self.cylinder(tracks, wanted, cylinder);
        for level in 1..self.levels.len() {
            number /= FANOUT;
            let arcs = self.over_children(level, number);
            let known = &mut self.levels[level][number];
            if *known == arcs {
                return;
            }
            *known = arcs;
        }
    }

    fn over_children(&self, level: usize, number: usize) -> Arcs {
        let below = &self.levels[level - 1];
        let first = number * FANOUT;
        let mut arcs = below[first].clone();
        for child in &below[first + 1..(first + FANOUT).min(below.len())] {
            arcs.raise(child);
        }
        arcs
    }

    fn cylinder(&self, tracks: &Tracks, wanted: &Wanted, cylinder: u32) -> Arcs {
        let mut together = [0u16; SLOTS];
        let mut most = Arcs::NONE;
        for surface in 0..tracks.surfaces() {
            let slots = self.slots(tracks, wanted, tracks.track(cylinder, surface));
            match self.objective {
                Objective::Track => most.raise(&Arcs::of(&slots)),
                Objective::Cylinder => {
                    for (sum, slot) in together.iter_mut().zip(&slots) {
                        *sum = sum.saturating_add(*slot);
                    }
                }
            }
        }
        if self.objective == Objective::Cylinder { Arcs::of(&together) } else { most }
    }

    /// Worth of what begins in each slot of a track, in units of the table, rounded up.
    fn slots(&self, tracks: &Tracks, wanted: &Wanted, track: u32) -> [u16; SLOTS] {
        let mut slots = [0u16; SLOTS];
        let Some(place) = tracks.place(track) else { return slots };
        tracks.for_each_stretch(track, |stretch| {
            let mut from = place.first_sector_from(slot_start(0));
            for (slot, worth) in slots.iter_mut().enumerate() {
                let to = place.first_sector_from(slot_start(slot + 1));
                let wraps = [(from, place.sectors()), (0, to)];
                let parts = if to >= from { [(from, to), (0, 0)] } else { wraps };
                for part in parts {
                    let (first, end) = blocks_in(stretch, part);
                    if first < end {
                        let value = wanted.value_beginning(stretch, first, end);
                        let units = (value + (1 << self.shift) - 1) >> self.shift;
                        *worth = worth.saturating_add(u16::try_from(units).unwrap_or(u16::MAX));
                    }
                }
                from = to;
            }
        });
        slots
    }

    /// Whether worths still fit its unit; one that does not stands for any, which is slow.
    pub fn fits(&self, tracks: &Tracks, wanted: &Wanted) -> bool {
        shift(tracks, wanted, self.objective) <= self.shift
    }

    /// Memory it takes.
    pub fn memory(&self) -> Bytes {
        let nodes: usize = self.levels.iter().map(Vec::capacity).sum();
        Bytes::new((nodes * size_of::<Arcs>()) as u64)
    }

    /// Levels of the tree.
    pub fn levels(&self) -> u32 {
        self.levels.len() as u32
    }

    pub fn root(&self) -> Node {
        Node { level: self.levels() - 1, number: 0 }
    }

    /// Cylinders under a node: the first and the last.
    #[inline]
    pub fn cylinders(&self, node: Node) -> (u32, u32) {
        let span = (FANOUT as u32).pow(node.level);
        let first = node.number * span;
        (first, (first + (span - 1)).min(self.levels[0].len() as u32 - 1))
    }

    /// Children of a node that is no cylinder.
    #[inline]
    pub fn children(&self, node: Node) -> impl Iterator<Item = Node> + use<> {
        let (level, first) = (node.level - 1, node.number * FANOUT as u32);
        let end = (first + FANOUT as u32).min(self.levels[level as usize].len() as u32);
        (first..end).map(move |number| Node { level, number })
    }

    /// No track, or no cylinder, under the node offers more in the window.
    #[inline]
    pub fn bound(&self, node: Node, arc: SlotArc) -> u32 {
        let arcs = &self.levels[node.level as usize][node.number as usize];
        match arcs.0[arc.slots - 1][arc.first] {
            u16::MAX => u32::MAX,
            units => u32::from(units) << self.shift,
        }
    }
}

fn slot_start(slot: usize) -> Angle {
    Angle::from_steps(((slot % SLOTS) as u32) << (32 - SLOTS.trailing_zeros()))
}

/// The least shift by which the worth of a whole track or cylinder fits a table's entry.
fn shift(tracks: &Tracks, wanted: &Wanted, objective: Objective) -> u32 {
    let zones = tracks.drive().layout().zones();
    let sectors = zones.iter().map(|zone| u64::from(zone.blocks_per_track())).max().unwrap_or(0);
    let weights: u64 = wanted.layers().iter().map(|layer| u64::from(layer.key.weight)).sum();
    let tracks = if objective == Objective::Track { 1 } else { u64::from(tracks.surfaces()) };
    let most = sectors * weights.max(1) * tracks;
    (u64::BITS - (most / u64::from(u16::MAX)).leading_zeros()).min(16)
}
