//! Plans with several stops: paths over the tracks of cylinders.
//!
//! **Problem.** A gap has time for more than one track. Which blocks can be transferred on the cylinder of
//! the source before the head leaves, on that of the destination before the foreground's data, and on a
//! third one between?
//!
//! ```text
//!  source cylinder  |AA--BB---|                                 leave late
//!                              \\ seek
//!  third cylinder               |CCC--DDDD--EE|                 or stop on the way
//!                                              \\ seek
//!  destination                                   |--FF--|due    arrive early
//! ```
//!
//! First the best *split*: a path on the source's cylinder, one seek, and a path on the destination's. With
//! A and B worth 16 and F 8 the split is worth 24. A third cylinder whose path is worth more is sought
//! best first; C, D and E with 36 win. What time this path leaves before and after it is filled with
//! the best paths at both ends: A, worth 8, ends before the seek to C. These do not count in the search.
//!
//! All of a plan is in one direction. Reads are sought first, with half of the budget, and then writes
//! with the rest, which must be worth more.

use freewheel_units::Op;

use super::best_first::{Search, Visited};
use super::chains::{Chain, Chains, CylinderWorth, StepSource};
use super::field::Field;
use super::known::Known;
use super::reach::Reach;
use super::region_weights::RegionWeights;
use super::wanted::Timed;
use freewheel_model::drive::Position;

/// The rule, with the best plan in the gap so far.
#[derive(Debug, Clone)]
pub(crate) struct Paths {
    at_source: Chains,
    at_destination: Chains,
    at_third: Chains,
    /// Directions that are not done, the current one first.
    ops: &'static [Op],
    direction: Direction,
    /// Most nodes of the decision.
    budget: u64,
    /// Worth of the best plan of the directions that are done.
    best: u64,
    items: Vec<Timed>,
}

/// Best of the current direction.
#[derive(Debug, Clone, Copy)]
struct Direction {
    /// Chains on the cylinders of source and destination with one seek between them.
    split: (Chain, Chain),
    /// A cylinder whose path is worth more.
    third: Option<u32>,
    /// Worth of the split, or of the path on the third cylinder.
    worth: u64,
}

impl Paths {
    /// A cylinder with more than `steps_max` items has paths on its best track only.
    pub fn new(steps_max: u32) -> Self {
        let chains = Chains::new(steps_max);
        Self {
            at_source: chains.clone(),
            at_destination: chains.clone(),
            at_third: chains,
            ops: &[],
            direction: Direction { split: (Chain::EMPTY, Chain::EMPTY), third: None, worth: 0 },
            budget: 0,
            best: 0,
            items: Vec::new(),
        }
    }

    /// Begins with the first direction. The decision may look at `budget` nodes.
    pub fn begin(
        &mut self,
        field: &Field<'_>,
        reach: &Reach<'_>,
        search: &mut Search,
        region_weights: &RegionWeights,
        budget: u64,
    ) {
        (self.ops, self.budget, self.best) = (field.wanted.ops(), budget, 0);
        self.items.clear();
        self.begin_direction(field, reach, search, region_weights);
    }

    /// Directions that are not done.
    pub fn searches(&self) -> u64 {
        self.ops.len() as u64
    }

    /// Looks at `allowance` nodes.
    pub fn step(
        &mut self,
        field: &Field<'_>,
        reach: &Reach<'_>,
        search: &mut Search,
        region_weights: &RegionWeights,
        allowance: &mut u64,
    ) {
        while let Some(&op) = self.ops.first() {
            self.look(field, reach, search, region_weights, op, allowance);
            if !search.is_over() {
                return;
            }
            self.end_direction(field, reach, search, region_weights, op);
        }
    }

    /// Gives up on the current direction; the best of it counts.
    pub fn give_up(
        &mut self,
        field: &Field<'_>,
        reach: &Reach<'_>,
        search: &mut Search,
        region_weights: &RegionWeights,
    ) {
        let Some(&op) = self.ops.first() else { return };
        // Whether there is a node left to look at.
        self.look(field, reach, search, region_weights, op, &mut 0);
        search.give_up();
        self.end_direction(field, reach, search, region_weights, op);
    }

    /// Adds the best plan to `items`. All directions are done.
    pub fn take(&self, items: &mut Vec<Timed>) {
        items.extend_from_slice(&self.items);
    }

    fn begin_direction(
        &mut self,
        field: &Field<'_>,
        reach: &Reach<'_>,
        search: &mut Search,
        region_weights: &RegionWeights,
    ) {
        let Some(&op) = self.ops.first() else { return };
        let Self { at_source, at_destination, .. } = self;
        let Reach { gap, .. } = reach;
        gather_and_solve(at_source, field, reach, here(gap.from, region_weights), op, None);
        let length = Some(reach.length());
        gather_and_solve(at_destination, field, reach, here(gap.to, region_weights), op, length);
        let (worth, split) = split(at_source, at_destination, reach, op);
        self.direction = Direction { split, third: None, worth };
        // Each direction to come has an equal part of the rest of the budget.
        let looked = search.cost.nodes;
        // The last direction must not starve.
        let budget = looked + (self.budget - looked) / self.searches();
        let worth = worth.max(self.best);
        search.start(Known { worth, room: Known::FIRST, cylinder: 0 }, budget);
    }

    /// Carries the search for a third cylinder on.
    fn look(
        &mut self,
        field: &Field<'_>,
        reach: &Reach<'_>,
        search: &mut Search,
        region_weights: &RegionWeights,
        op: Op,
        allowance: &mut u64,
    ) {
        let Self { at_third, direction, .. } = self;
        let region_weight = |node| region_weights.of_node(node);
        search.run(field, reach, region_weight, allowance, |field, cylinder, best| {
            let region_weight = region_weights.of_cylinder(cylinder);
            let within = CylinderWorth::new(field, reach, cylinder, op);
            if within.bound() * region_weight <= best.worth {
                return best.into();
            }
            let (here, pieces) = match within.alone(at_third.steps_max()) {
                Some(worth) => (u64::from(worth) * region_weight, 0),
                None => {
                    let surfaces = within.surfaces;
                    at_third.gather(
                        field,
                        reach,
                        StepSource { cylinder, surfaces, op, region_weight },
                    );
                    // Steps were gathered for the stay between both seeks, so the path leaves time for
                    // them.
                    let surfaces = field.tracks.surfaces();
                    let chain = at_third.solve(surfaces, reach.cross_ns(0, 0, op));
                    (chain.worth, within.items)
                }
            };
            if here > best.worth {
                direction.third = Some(cylinder);
                direction.worth = here;
            }
            Visited { best: Known { worth: best.worth.max(here), ..best }, pieces }
        });
    }

    /// Keeps the plan of the current direction if it is the best, and begins with the next one.
    fn end_direction(
        &mut self,
        field: &Field<'_>,
        reach: &Reach<'_>,
        search: &mut Search,
        region_weights: &RegionWeights,
        op: Op,
    ) {
        if self.direction.worth > self.best {
            self.best = self.direction.worth;
            self.items.clear();
            match self.direction.third {
                Some(third) => self.take_third(field, reach, region_weights, op, third),
                None => self.take_split(reach.length()),
            }
        }
        self.ops = &self.ops[1..];
        self.begin_direction(field, reach, search, region_weights);
    }

    fn take_split(&mut self, length: u64) {
        let (before, after) = self.direction.split;
        take(&self.at_source, before, &mut self.items);
        take_reversed(&self.at_destination, after, length, &mut self.items);
    }

    /// Takes the path on the third cylinder, and the best paths at both ends that fit before and after
    /// it.
    fn take_third(
        &mut self,
        field: &Field<'_>,
        reach: &Reach<'_>,
        region_weights: &RegionWeights,
        op: Op,
        third: u32,
    ) {
        let Self { at_source, at_destination, at_third, items, .. } = self;
        let (from, to, length) = (reach.gap.from, reach.gap.to, reach.length());
        // Cylinders that were looked at later have replaced its steps.
        let here = (third, region_weights.of_cylinder(third));
        let best = gather_and_solve(at_third, field, reach, here, op, None);
        take(at_third, best, items);
        // The path seldom fills the stay.
        let begins = items.iter().map(|timed| timed.at).min().unwrap_or(0);
        let ends = at_third.walk(best).map(|step| step.end).max().unwrap_or(length);
        let leaves = begins.checked_sub(reach.cross_ns(from.cylinder, third, op));
        let arrives = ends + reach.cross_ns(third, to.cylinder, op);
        let before = leaves.map_or(Chain::EMPTY, |leaves| at_source.ended_by(leaves));
        let after = length.checked_sub(arrives);
        let after = after.map_or(Chain::EMPTY, |left| at_destination.ended_by(left));
        take(at_source, before, items);
        take_reversed(at_destination, after, length, items);
    }
}

fn here(at: Position, region_weights: &RegionWeights) -> (u32, u64) {
    (at.cylinder, region_weights.of_cylinder(at.cylinder))
}

/// The best of leaving the source late and arriving at the destination early: worth, and both chains.
fn split(
    at_source: &Chains,
    at_destination: &Chains,
    reach: &Reach<'_>,
    op: Op,
) -> (u64, (Chain, Chain)) {
    let (from, to, length) = (reach.gap.from, reach.gap.to, reach.length());
    // Steps at the source leave time for the direct seek.
    let alone = (at_source.ended_by(length), Chain::EMPTY);
    let mut best = (alone.0.worth, alone);
    let mut consider = |before: Chain, after: Chain| {
        if before.worth + after.worth > best.0 {
            best = (before.worth + after.worth, (before, after));
        }
    };
    consider(Chain::EMPTY, at_destination.ended_by(length));
    // On one cylinder the chains from the source already hold all of the gap.
    if from.cylinder != to.cylinder {
        let cross = reach.cross_ns(from.cylinder, to.cylinder, op);
        for (end, after) in at_destination.chains() {
            // The destination's chains run in reversed time: this one begins where it ends. Each needs only
            // the best chain at the source that has ended a seek before.
            if let Some(leaves) = (length - end).checked_sub(cross) {
                consider(at_source.ended_by(leaves), after);
            }
        }
    }
    best
}

fn gather_and_solve(
    chains: &mut Chains,
    field: &Field<'_>,
    reach: &Reach<'_>,
    (cylinder, region_weight): (u32, u64),
    op: Op,
    reversed: Option<u64>,
) -> Chain {
    let surfaces = chains.surfaces(field, reach, cylinder, op);
    chains.gather(field, reach, StepSource { cylinder, surfaces, op, region_weight });
    if let Some(length) = reversed {
        // Time from the end on: `ended_by` then finds chains that begin late enough.
        chains.reverse(length);
    }
    let best = chains.solve(field.tracks.surfaces(), reach.cross_ns(0, 0, op));
    chains.order();
    best
}

fn take(chains: &Chains, chain: Chain, items: &mut Vec<Timed>) {
    items.extend(chains.walk(chain).map(|step| Timed { at: step.start, item: step.item }));
}

fn take_reversed(chains: &Chains, chain: Chain, length: u64, items: &mut Vec<Timed>) {
    items.extend(chains.walk(chain).map(|step| Timed { at: length - step.end, item: step.item }));
}
