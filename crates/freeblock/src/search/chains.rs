//! The best path of the head over the tracks of one cylinder.
//!
//! **Problem.** A change of heads takes little of a turn. Where wanted blocks are sparse, a gap that visits
//! several tracks of a cylinder takes several times what the best one of them offers. Which blocks?
//!
//! Wanted blocks become *steps*, each with its time and surface. A path is a *chain*: steps of which each
//! can be reached from the one before, either on the same surface or a change of heads later.
//!
//! ```text
//!  time      0    1    2    3    4    5    6      a change of heads takes 1
//!  surface 0 [A 8]               [D 8]
//!  surface 1           [B16]          [E 8]
//!  surface 2      [C 8]     [F 8]
//! ```
//!
//! In order of their beginnings: A has weight 8. C begins as A ends, too soon to change heads: 8. B
//! follows A, which ended at 1, by a change of heads: 8 + 16 = 24. F: on its surface after C, 16. D
//! follows B, which ended at 3: 24 + 8 = 32. E stays on B's surface: 24 + 8 = 32. The heaviest chain is
//! A, B, D with 32.
//!
//! One pass finds it. When a step begins, every chain that ended a change of heads ago is known, as its
//! steps began earlier; so the best chain before a step is the best on its surface or the best of those.
//!
//! Steps of different layers may overlap. On one surface all of them are taken, and the chain ends with
//! the last of them. A lighter chain that ends sooner may then be overlooked; without overlap the chain
//! found is the heaviest.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use freewheel_units::Op;

use super::reach::Reach;
use super::tracks::Tracks;
use super::wanted::{Item, Sum, Timed, Wanted};
use freewheel_model::drive::Position;

/// A wanted block or piece with the time in which it passes, in ns from the beginning of the gap.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    pub start: u64,
    pub end: u64,
    pub surface: u32,
    pub item: Item,
    /// Worth of the item times the price of its region.
    pub worth: u64,
}

/// The heaviest chains over a set of steps.
#[derive(Debug, Clone, Default)]
pub(crate) struct Chains {
    /// With more items on a cylinder, a chain stays on the best track.
    steps_max: u32,
    steps: Vec<Step>,
    /// By step: weight of the heaviest chain that ends with it, the end of that chain, and the step before
    /// it there.
    weights: Vec<u64>,
    ends: Vec<u64>,
    before: Vec<u32>,
    /// Chains that a change of heads cannot follow yet, by their end and last step; the first to end first.
    unended: BinaryHeap<Reverse<(u64, u32)>>,
    /// Steps in order of the ends of their chains.
    by_end: Vec<u32>,
    /// By number of steps of `by_end`: weight and last step of the best chain among them.
    best_by_end: Vec<(u64, u32)>,
    /// By surface: weight and last step of the best chain that ends there.
    on_surface: Vec<(u64, u32)>,
}

const NONE: u32 = u32::MAX;

/// A chain, by its last step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chain {
    pub worth: u64,
    last: u32,
}

impl Chain {
    pub const EMPTY: Self = Self { worth: 0, last: NONE };
}

/// Worth of what passes on a cylinder when no other is visited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct CylinderWorth {
    /// Items on all tracks.
    pub items: u32,
    /// Sum over all tracks, each without regard to the others: no chain is heavier.
    pub sum: u32,
    /// Worth on the best track.
    pub most: u32,
    /// The best track's.
    pub surface: u32,
}

impl CylinderWorth {
    pub fn new(tracks: &Tracks, wanted: &Wanted, reach: &Reach<'_>, cylinder: u32, op: Op) -> Self {
        let mut within = Self::default();
        for surface in 0..tracks.surfaces() {
            let at = Position { cylinder, surface };
            let stay = reach.stay(at, op);
            let Some(place) = tracks.place(at).filter(|_| stay.length() > 0) else { continue };
            let window = tracks.window(reach.time(stay.from), stay.length());
            let passing = tracks.passing(&place, &window);
            let Sum { items, value } = wanted.value(tracks, at, &place, passing, op, 0);
            within.items += items;
            within.sum += value;
            if value > within.most {
                // The first of equal tracks.
                (within.most, within.surface) = (value, surface);
            }
        }
        within
    }
}

/// Where steps are gathered.
pub(crate) struct StepSource {
    pub cylinder: u32,
    pub surfaces: Range<u32>,
    pub op: Op,
    /// Of the cylinder's region.
    pub price: u64,
}

impl Chains {
    pub fn new(steps_max: u32) -> Self {
        Self { steps_max, ..Self::default() }
    }

    /// The surfaces for a path: all, or with too many items the best one.
    pub fn surfaces(&self, tracks: &Tracks, within: &CylinderWorth) -> Range<u32> {
        let best = within.surface;
        if within.items <= self.steps_max { 0..tracks.surfaces() } else { best..best + 1 }
    }

    /// Replaces the steps by all that passes there.
    pub fn gather(
        &mut self,
        tracks: &Tracks,
        wanted: &Wanted,
        reach: &Reach<'_>,
        source: StepSource,
    ) {
        let StepSource { cylinder, surfaces, op, price } = source;
        self.steps.clear();
        let rotation = tracks.drive().rotation();
        for surface in surfaces {
            let on = Position { cylinder, surface };
            let Some(place) = tracks.place(on) else { continue };
            wanted.timed(tracks, reach, on, op, reach.stay(on, op), &mut |Timed { at, item }| {
                // The end as an angle, from the beginning on: an item may run over the end of a turn.
                let phase = rotation.phase_ns(reach.time(at));
                let end = tracks.edge_ns(&place, tracks.sector_on(on, item.first) + item.blocks);
                let span = match rotation.forward_ns(phase, end) {
                    // It ends where it begins: a whole track.
                    0 => rotation.period_ns(),
                    span => span,
                };
                let worth = u64::from(item.value) * price;
                self.steps.push(Step { start: at, end: at + span, surface, item, worth });
            });
        }
    }

    /// Reverses time in a gap of `length` ns: chains then end where they began.
    pub fn reverse(&mut self, length: u64) {
        for step in &mut self.steps {
            // A chain that ends early in reversed time begins late: the head may arrive so late at the
            // cylinder.
            (step.start, step.end) = (length - step.end, length - step.start);
        }
    }

    /// Finds the heaviest chain. `switch` is the time in ns to change heads.
    pub fn solve(&mut self, surfaces: u32, switch: u64) -> Chain {
        // In order of beginnings every step that may come before another is done before it.
        self.steps.sort_unstable_by_key(|step| (step.start, step.surface, step.item.first));
        self.weights.clear();
        self.ends.clear();
        self.before.clear();
        self.unended.clear();
        self.on_surface.clear();
        self.on_surface.resize(surfaces as usize, (0, NONE));
        let (mut anywhere, mut best) = ((0, NONE), Chain::EMPTY);
        for (number, step) in self.steps.iter().enumerate() {
            // Chains that ended a change of heads ago may go on with this step. Steps come in order of
            // their beginnings, so they may go on with all later ones too.
            while let Some(&Reverse((end, ended))) = self.unended.peek()
                && end + switch <= step.start
            {
                self.unended.pop();
                let weight = self.weights[ended as usize];
                if weight > anywhere.0 {
                    anywhere = (weight, ended);
                }
            }
            // Of equal weight the chain that stays: no change of heads.
            let stays = self.on_surface[step.surface as usize];
            let (weight, before) = if stays.0 >= anywhere.0 { stays } else { anywhere };
            let weight = weight + step.worth;
            // A step of another layer may lie within the one before it.
            let end = self.ends.get(before as usize).map_or(step.end, |end| step.end.max(*end));
            self.weights.push(weight);
            self.ends.push(end);
            self.before.push(before);
            self.unended.push(Reverse((end, number as u32)));
            // The heaviest chain of a surface; of equal ones the first, which ended no later.
            let known = &mut self.on_surface[step.surface as usize];
            if weight > known.0 {
                *known = (weight, number as u32);
            }
            if weight > best.worth {
                best = Chain { worth: weight, last: number as u32 };
            }
        }
        best
    }

    /// Orders the chains by their ends, for [`Self::ended_by`].
    pub fn order(&mut self) {
        self.by_end.clear();
        self.by_end.extend(0..self.steps.len() as u32);
        self.by_end.sort_unstable_by_key(|&step| (self.ends[step as usize], step));
        self.best_by_end.clear();
        // Prefix maxima: the best chain ended by a time is one look-up.
        let mut heaviest = (0, NONE);
        for &step in &self.by_end {
            let weight = self.weights[step as usize];
            if weight > heaviest.0 {
                heaviest = (weight, step);
            }
            self.best_by_end.push(heaviest);
        }
    }

    /// The heaviest chain that has ended by `time`.
    pub fn ended_by(&self, time: u64) -> Chain {
        let ended = self.by_end.partition_point(|&step| self.ends[step as usize] <= time);
        ended.checked_sub(1).map_or(Chain::EMPTY, |at| {
            let (worth, last) = self.best_by_end[at];
            Chain { worth, last }
        })
    }

    /// The heaviest chain with each step as its last, and when it has ended.
    pub fn chains(&self) -> impl Iterator<Item = (u64, Chain)> {
        self.ends
            .iter()
            .enumerate()
            .map(|(number, &end)| (end, Chain { worth: self.weights[number], last: number as u32 }))
    }

    /// The steps of a chain, the last one first.
    pub fn walk(&self, chain: Chain) -> impl Iterator<Item = &Step> {
        let mut at = chain.last;
        std::iter::from_fn(move || {
            let step = self.steps.get(at as usize)?;
            at = self.before[at as usize];
            Some(step)
        })
    }
}
