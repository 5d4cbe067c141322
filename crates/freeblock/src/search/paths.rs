//! Plans with several stops: the best path over one cylinder's tracks, and what else there is time
//! for on the cylinders of source and destination.
//!
//! Leave the source late, arrive at the destination early; or go by a third cylinder, and use what
//! is left of the gap before and after. All of a plan is in one direction, reads or writes.

use freewheel_units::Op;

use super::best_first::Search;
use super::chains::{Chain, Chains, CylinderWorth, StepSource};
use super::field::Field;
use super::known::Known;
use super::reach::Reach;
use super::region_weights::RegionWeights;
use super::tracks::Tracks;
use super::wanted::{Timed, Wanted};
use freewheel_model::drive::Position;

/// Plans of several stops, with the memory they are made in.
#[derive(Debug, Clone)]
pub(crate) struct Paths {
    at_source: Chains,
    at_destination: Chains,
    at_third: Chains,
    other: Vec<Timed>,
}

impl Paths {
    /// Plans for which one cylinder's path is sought among at most `steps_max` steps.
    pub fn new(steps_max: u32) -> Self {
        let chains = Chains::new(steps_max);
        Self {
            at_source: chains.clone(),
            at_destination: chains.clone(),
            at_third: chains,
            other: Vec::new(),
        }
    }

    /// Adds to `items` the best plan found. Of a budget the first direction may spend half, and the
    /// other what is left then: who comes last must not starve. Whoever is asked for more is told how
    /// many are to come.
    pub fn plan(
        &mut self,
        field: &Field<'_>,
        reach: &Reach<'_>,
        search: &mut Search<'_>,
        region_weights: &RegionWeights,
        items: &mut Vec<Timed>,
    ) {
        let mut other = std::mem::take(&mut self.other);
        let (mut best, ops, budget) = (0, field.wanted.ops(), search.budget);
        for (number, &op) in ops.iter().enumerate() {
            other.clear();
            let (looked, to_come) = (search.looked.nodes, (ops.len() - number) as u64);
            search.budget = looked + (budget - looked) / to_come;
            search.searches = to_come;
            let worth = self.plan_for(field, reach, search, region_weights, (op, best), &mut other);
            if worth > best {
                best = worth;
                std::mem::swap(items, &mut other);
            }
        }
        self.other = other;
    }

    /// The worth of the plan added to `items`; what is left over beside a third cylinder is not
    /// counted. It is the best there is if it is worth more than `least`.
    fn plan_for(
        &mut self,
        field: &Field<'_>,
        reach: &Reach<'_>,
        search: &mut Search<'_>,
        region_weights: &RegionWeights,
        (op, least): (Op, u64),
        items: &mut Vec<Timed>,
    ) -> u64 {
        let Self { at_source, at_destination, at_third, .. } = self;
        let (from, to) = (reach.gap.from, reach.gap.to);
        let length = reach.length();
        let (known, split) = {
            let Field { tracks, wanted, .. } = field;
            let here = |at: Position| (at, region_weights.of_cylinder(at.cylinder));
            gather_and_solve(at_source, tracks, wanted, reach, here(from), op, None);
            gather_and_solve(at_destination, tracks, wanted, reach, here(to), op, Some(length));
            split(at_source, at_destination, reach, op)
        };

        let mut third: Option<Position> = None;
        let price = |node| region_weights.of_node(node);
        let mut worth = known;
        search.run(
            field,
            reach,
            price,
            Known { worth: known.max(least), room: Known::FIRST, cylinder: 0 },
            |Field { tracks, wanted, .. }, cylinder, best| {
                let price = region_weights.of_cylinder(cylinder);
                let within = CylinderWorth::new(tracks, wanted, reach, cylinder, op);
                if u64::from(within.sum) * price <= best.worth {
                    return best;
                }
                let surfaces = at_third.surfaces(tracks, &within);
                let source = StepSource { cylinder, surfaces, op, price };
                at_third.gather(tracks, wanted, reach, source);
                let here = at_third.solve(tracks.surfaces(), reach.cross_ns(0, 0, op)).worth;
                if here > best.worth {
                    third = Some(Position { cylinder, surface: within.surface });
                    worth = here;
                }
                Known { worth: best.worth.max(here), ..best }
            },
        );
        let Some(third) = third else {
            take(at_source, split.0, items);
            take_reversed(at_destination, split.1, length, items);
            return known;
        };
        let Field { tracks, wanted, .. } = field;
        let here = (third, region_weights.of_cylinder(third.cylinder));
        let best = gather_and_solve(at_third, tracks, wanted, reach, here, op, None);
        take(at_third, best, items);
        // What time it leaves at the source and at the destination.
        let begins = items.iter().map(|timed| timed.at).min().unwrap_or(0);
        let ends = at_third.walk(best).map(|step| step.end).max().unwrap_or(length);
        let leaves = begins.checked_sub(reach.cross_ns(from.cylinder, third.cylinder, op));
        let arrives = ends + reach.cross_ns(third.cylinder, to.cylinder, op);
        let before = leaves.map_or(Chain::EMPTY, |leaves| at_source.ended_by(leaves));
        let after = length.checked_sub(arrives);
        let after = after.map_or(Chain::EMPTY, |left| at_destination.ended_by(left));
        take(at_source, before, items);
        take_reversed(at_destination, after, length, items);
        worth
    }
}

/// The best of leaving the source late and arriving at the destination early: its worth, and the
/// chain on either.
fn split(
    at_source: &Chains,
    at_destination: &Chains,
    reach: &Reach<'_>,
    op: Op,
) -> (u64, (Chain, Chain)) {
    let (from, to, length) = (reach.gap.from, reach.gap.to, reach.length());
    let alone = (at_source.ended_by(length), Chain::EMPTY);
    let mut best = (alone.0.worth, alone);
    let mut consider = |before: Chain, after: Chain| {
        if before.worth + after.worth > best.0 {
            best = (before.worth + after.worth, (before, after));
        }
    };
    consider(Chain::EMPTY, at_destination.ended_by(length));
    // On one cylinder the chains from the source are all there is.
    if from.cylinder != to.cylinder {
        let cross = reach.cross_ns(from.cylinder, to.cylinder, op);
        for (end, after) in at_destination.chains() {
            // In reversed time: the chain begins where it ends.
            if let Some(leaves) = (length - end).checked_sub(cross) {
                consider(at_source.ended_by(leaves), after);
            }
        }
    }
    best
}

fn gather_and_solve(
    chains: &mut Chains,
    tracks: &Tracks,
    wanted: &Wanted,
    reach: &Reach<'_>,
    (at, price): (Position, u64),
    op: Op,
    reversed: Option<u64>,
) -> Chain {
    let within = CylinderWorth::new(tracks, wanted, reach, at.cylinder, op);
    let surfaces = chains.surfaces(tracks, &within);
    let source = StepSource { cylinder: at.cylinder, surfaces, op, price };
    chains.gather(tracks, wanted, reach, source);
    if let Some(length) = reversed {
        chains.reverse(length);
    }
    let best = chains.solve(tracks.surfaces(), reach.cross_ns(0, 0, op));
    chains.order();
    best
}

fn take(chains: &Chains, chain: Chain, items: &mut Vec<Timed>) {
    items.extend(chains.walk(chain).map(|step| Timed { at: step.start, item: step.item }));
}

fn take_reversed(chains: &Chains, chain: Chain, length: u64, items: &mut Vec<Timed>) {
    items.extend(chains.walk(chain).map(|step| Timed { at: length - step.end, item: step.item }));
}
