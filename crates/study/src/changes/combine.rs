//! The best changes together, by a greedy search.

use freewheel_sim::config::{ConfigError, SimConfig};
use serde::Serialize;

use super::ranking::cheapest_of_best;
use super::variant::turning;
use super::{
    Candidate, Change, ChangeCost, ChangesBench, Effect, Goal, Measured, Part, STEP_MIN, Tried,
    UnderReplays, Variant, VariantEffect,
};

/// A change of the best combination.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Step {
    /// Change that was made.
    pub change: Change,
    /// Name of the combination.
    pub title: String,
    /// Cost of the combination.
    pub cost: ChangeCost,
    /// Change of the goal by it alone.
    pub alone: f64,
    /// Change of the goal on top of the steps before it.
    pub on_top: f64,
}

/// The best changes together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Combination {
    /// Changes of the combination, the one that helps most first.
    pub steps: Vec<Step>,
    /// Responses with all of them.
    pub measured: Measured,
    /// Their difference to the system as it is.
    pub effect: Effect,
    /// Effect under the study's other replay.
    pub other_replay: Option<Effect>,
    /// Effect in other circumstances.
    pub variants: Vec<VariantEffect>,
    /// The change of the goal if each step took its share of what the others leave.
    pub if_independent: f64,
    /// The experiment, as `freewheel sim` runs it.
    pub config: SimConfig,
}

impl Combination {
    pub(super) fn changes(&self) -> Vec<Change> {
        self.steps.iter().map(|step| step.change).collect()
    }

    /// Circumstances in which it harms noticeably.
    pub fn turning_variants(&self, goal: Goal) -> impl Iterator<Item = &Variant> {
        turning(self.effect.of(goal), &self.variants, goal)
    }
}

/// Most changes of a combination.
const STEPS_MAX: usize = 4;

/// Parts of which a combination has at most one change each.
const PARTS: [Part; 5] =
    [Part::Order, Part::DriveWriteCache, Part::ReadCache, Part::Prefetch, Part::WriteBuffer];

/// Changes of each part that are tried on top of others.
const OF_EACH_PART: usize = 3;

/// The most runs of the search: each of three further steps chooses among the changes of the parts that are
/// left, one of which has a single change.
const RUNS: usize = (STEPS_MAX - 1) * (OF_EACH_PART * (PARTS.len() - 2) + 1);

/// Cost of a run with several changes, in other runs: between 1.5 and 2.5, measured on two traces.
pub(super) const COMBINED: usize = 2;

/// The most runs of the search, as a number of runs of one change.
pub(super) const MOST_RUNS: usize = COMBINED * RUNS;

/// A combination that grows.
struct Chosen<'c> {
    chosen: Vec<&'c Tried>,
    /// The cache among them that prefetching brings, until one that is chosen takes its place.
    brought: Option<&'c Tried>,
    steps: Vec<Step>,
    measured: UnderReplays,
}

impl<'c> Chosen<'c> {
    fn is_brought(&self, change: Change) -> bool {
        self.brought.is_some_and(|brought| brought.change == change)
    }

    /// Parts that have their change.
    fn parts(&self) -> impl Iterator<Item = Part> {
        let own = self.chosen.iter().filter(|tried| !self.is_brought(tried.change));
        own.map(|tried| tried.change.part())
    }

    /// Changes that may be added.
    fn others(&self, candidates: &'c [Candidate]) -> Vec<&'c Tried> {
        best_of_parts(candidates)
            .filter(|other| {
                !self.is_brought(other.change)
                    && self.parts().all(|part| part != other.change.part())
            })
            .collect()
    }

    fn with(&self, other: &Tried) -> Vec<Change> {
        let chosen = self.chosen.iter().map(|tried| tried.change);
        chosen.chain([other.change]).collect()
    }
}

impl ChangesBench<'_> {
    /// Adds the change that helps most on top of those chosen, until none takes 2 % of today's value off
    /// any more. It helps as much as under the replay under which it helps less. Of those that help about
    /// as much, the cheapest is taken.
    ///
    /// Greedy is not exact: two changes that help only together are not found. tr03 finds the
    /// optimisations of different parts nearly independent, and then each step is the best one.
    pub(super) fn combine(
        &self,
        today: &UnderReplays,
        candidates: &[Candidate],
    ) -> Result<Option<(Combination, UnderReplays)>, ConfigError> {
        let goal = self.goal;
        let first = candidates.iter().filter(|of| PARTS.contains(&of.tried.change.part()));
        // Prefetching competes with the cache that it brings, against the system as it is.
        let first = first.map(|of| (of, of.run.gains(today, goal)));
        let first = cheapest_of_best(first, |of| of.tried.cost);
        let replays = if self.other.is_some() { 2 } else { 1 };
        let mut runs_left = RUNS;
        let Some((Candidate { tried: first, run: measured }, _)) =
            first.filter(|&(_, gain)| gain <= STEP_MIN)
        else {
            self.work.forgo(replays * COMBINED * runs_left);
            return Ok(None);
        };
        let brought = self.brought_by(first, candidates);
        let chosen: Vec<&Tried> = brought.into_iter().chain([first]).collect();
        let steps = chosen.iter().map(|tried| self.step(tried, tried.effect.of(goal))).collect();
        let mut system = Chosen { chosen, brought, steps, measured: measured.clone() };
        while system.chosen.len() < STEPS_MAX {
            let others = system.others(candidates);
            let lists: Vec<Vec<Change>> = others.iter().map(|other| system.with(other)).collect();
            let runs = self.run_all(&lists)?;
            runs_left -= runs.len();
            let on_top = others.into_iter().zip(runs).map(|(tried, run)| {
                let (now, before) = (run.gains(today, goal), system.measured.gains(today, goal));
                ((tried, run), [now[0] - before[0], now[1] - before[1]])
            });
            let best = cheapest_of_best(on_top, |(tried, _)| tried.cost);
            let Some(((next, run), _)) = best.filter(|&(_, gain)| gain <= STEP_MIN) else { break };
            self.make_way(&mut system, next, candidates)?;
            self.choose(&mut system, next, run);
        }
        self.work.forgo(replays * COMBINED * runs_left);
        let Chosen { steps, measured, .. } = system;
        let left: f64 = steps.iter().map(|step| 1.0 + step.alone).product();
        let (effect, other_replay) = measured.effects(today);
        let changes: Vec<Change> = steps.iter().map(|step| step.change).collect();
        let combination = Combination {
            config: self.config(self.own, &changes),
            steps,
            measured: measured.own.clone(),
            effect,
            other_replay,
            variants: Vec::new(),
            if_independent: left - 1.0,
        };
        Ok(Some((combination, measured)))
    }

    /// The cache that a change brings, as a separate change.
    fn brought_by<'c>(&self, change: &Tried, candidates: &'c [Candidate]) -> Option<&'c Tried> {
        let control = change.change.control()?;
        candidates.iter().map(|of| &of.tried).find(|tried| tried.change == control)
    }

    /// Prefetching brings a cache, which is a separate step; a cache that is chosen takes the place of one
    /// that was brought.
    fn make_way<'c>(
        &self,
        system: &mut Chosen<'c>,
        next: &Tried,
        candidates: &'c [Candidate],
    ) -> Result<(), ConfigError> {
        let has_cache = system.parts().any(|part| part == Part::ReadCache);
        if let Some(control) = self.brought_by(next, candidates).filter(|_| !has_cache) {
            self.work.expect(if self.other.is_some() { 2 } else { 1 } * COMBINED);
            let with_control = self.run(&system.with(control))?;
            self.choose(system, control, with_control);
            system.brought = Some(control);
        }
        if next.change.part() == Part::ReadCache
            && let Some(smaller) = system.brought.take()
        {
            system.chosen.retain(|tried| tried.change != smaller.change);
            system.steps.retain(|step| step.change != smaller.change);
        }
        Ok(())
    }

    fn choose<'c>(&self, system: &mut Chosen<'c>, next: &'c Tried, run: UnderReplays) {
        let on_top = run.own.from(&system.measured.own).of(self.goal);
        system.steps.push(self.step(next, on_top));
        system.chosen.push(next);
        system.measured = run;
    }

    fn step(&self, tried: &Tried, on_top: f64) -> Step {
        let Tried { change, cost, .. } = *tried;
        let alone = tried.effect.of(self.goal);
        Step { change, title: tried.title.clone(), cost, alone, on_top }
    }
}

/// Changes of each part of which a combination is made: the best three of each, whether they help alone or
/// not.
fn best_of_parts(candidates: &[Candidate]) -> impl Iterator<Item = &Tried> {
    let tried = || candidates.iter().map(|candidate| &candidate.tried);
    PARTS.into_iter().flat_map(move |part| {
        tried().filter(move |tried| tried.change.part() == part).take(OF_EACH_PART)
    })
}
