//! What would help: each change of the system alone, and the best of them together.
//!
//! tr03's perturbation study on a trace of the user's: the system as it is runs once, and once more with
//! each change. Five slices of the trace say how far a result holds. A greedy search then adds change
//! after change to the best one; it reports what each brings alone and on top of the others.
//!
//! Non-goals: changes that need the user's data (compression, deduplication), and more than one value
//! of a parameter together with all values of every other.

mod change;
mod measure;

use freewheel_sim::config::{ConfigError, Experiment, SimConfig};
use rayon::prelude::*;
use serde::Serialize;

pub use change::{Change, ChangeCost, PREFETCH_CACHE, Part, Place, Setting, catalogue};
pub use measure::{Effect, Measured, NOTICEABLE, Responses, relative};

use crate::progress::WorkCounter;
use crate::trace_runs::WARM_UP;

/// A change that was tried alone.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Tried {
    /// What was changed.
    pub change: Change,
    /// Its name.
    pub title: String,
    /// What it costs.
    pub cost: ChangeCost,
    /// What it is compared with, by name, where that is not the system as it is.
    pub control: Option<String>,
    /// Responses with it.
    pub measured: Measured,
    /// Their difference to the control, or to the system as it is.
    pub effect: Effect,
    /// The same under the study's other replay.
    pub other_replay: Option<Effect>,
}

/// A change of the best combination.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Step {
    /// Its name.
    pub title: String,
    /// What it costs.
    pub cost: ChangeCost,
    /// Change of the mean response by it alone.
    pub alone: f64,
    /// Change of the mean response on top of the steps before it.
    pub on_top: f64,
}

/// The best changes together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Combination {
    /// Its changes, the one that helps most first.
    pub steps: Vec<Step>,
    /// Responses with all of them.
    pub measured: Measured,
    /// Their difference to the system as it is.
    pub effect: Effect,
    /// The same under the study's other replay.
    pub other_replay: Option<Effect>,
    /// The change of the mean response if each step took its share of what the others leave.
    pub if_independent: f64,
}

/// What would help.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Changes {
    /// Requests that fill caches, and do not count.
    pub warm_up_requests: u64,
    /// Responses of the system as it is.
    pub today: Measured,
    /// The same under the study's other replay.
    pub today_other_replay: Option<Measured>,
    /// Every change alone, in order of the smaller gain of the two replays.
    pub tried: Vec<Tried>,
    /// The best of them together, without further drives; None where nothing helps.
    pub together: Option<Combination>,
}

/// What the next step of a combination must bring: smaller ones are within the noise of most traces.
const STEP_MIN: f64 = -NOTICEABLE;

/// Parts of the trace after the warm-up, for a spread.
const SLICES: u32 = 5;

/// Most changes of a combination.
const STEPS_MAX: usize = 4;

/// Parts of which a combination has at most one change each.
const PARTS: [Part; STEPS_MAX] = [Part::Order, Part::ReadCache, Part::Prefetch, Part::WriteBuffer];

/// Changes of each part that are tried on top of others.
const OF_EACH_PART: usize = 3;

/// Runs that the search for a combination takes if it goes on to the end: those of the second step choose
/// among all parts but one, and so on.
const COMBINING_RUNS: usize = OF_EACH_PART * STEPS_MAX * (STEPS_MAX - 1) / 2;

/// How many other runs one of several changes takes as long as: between 1.5 and 2.5, measured on two traces.
const COMBINED: usize = 2;

/// The most runs of [`try_changes`] with this number of changes, as a number of runs of one change.
pub(crate) fn most_runs(changes: usize) -> usize {
    1 + changes + COMBINED * COMBINING_RUNS
}

/// Where changes are tried.
pub(crate) struct ChangesBench<'a> {
    /// The system as it is, under the study's replay of its trace.
    pub own: &'a Experiment,
    /// The same under the other replay, if there is one.
    pub other: Option<&'a Experiment>,
    /// Most requests in the storage system where a cache is added.
    pub cache_depth: u32,
    pub work: &'a WorkCounter<'a>,
}

/// A run under each replay.
#[derive(Clone)]
struct UnderReplays {
    own: Measured,
    other: Option<Measured>,
}

impl UnderReplays {
    fn effects(&self, old: &Self) -> (Effect, Option<Effect>) {
        let other = self.other.as_ref().zip(old.other.as_ref());
        (self.own.from(&old.own), other.map(|(new, old)| new.from(old)))
    }

    /// The change of the mean response that is certain: that of the replay under which it is worse.
    fn worse_mean(&self, old: &Self) -> f64 {
        let (own, other) = self.effects(old);
        worse_mean(&own, other.as_ref())
    }
}

fn worse_mean(own: &Effect, other: Option<&Effect>) -> f64 {
    other.map_or(own.mean, |other| own.mean.max(other.mean))
}

impl Tried {
    /// The change of the mean response that is certain: that of the replay under which it is worse.
    pub fn worse_mean(&self) -> f64 {
        worse_mean(&self.effect, self.other_replay.as_ref())
    }

    /// Whether it helps noticeably under one replay, and harms noticeably under the other.
    pub fn turns(&self) -> bool {
        let means = self.other_replay.map(|other| [self.effect.mean, other.mean]);
        means.is_some_and(|[a, b]| a.min(b) <= -NOTICEABLE && a.max(b) >= NOTICEABLE)
    }
}

/// Tries each of `all` on the system of the bench, whose workload is a trace, and looks for the best
/// combination. The result does not depend on the number of threads.
pub(crate) fn try_changes(
    bench: &ChangesBench<'_>,
    all: &[Change],
) -> Result<Changes, ConfigError> {
    let lists: Vec<Vec<Change>> =
        std::iter::once(vec![]).chain(all.iter().map(|&change| vec![change])).collect();
    let mut measured = bench.run_all(&lists)?.into_iter();
    let today = measured.next().expect("the system as it is was run");
    let measured: Vec<UnderReplays> = measured.collect();
    let control = |change: &Change| {
        let control = change.control()?;
        let place = all.iter().position(|other| *other == control);
        Some((control.title(), &measured[place.expect("controls are tried, too")]))
    };
    let tried = all.iter().zip(&measured).map(|(change, measured)| {
        let control = control(change);
        let old = control.as_ref().map_or(&today, |&(_, measured)| measured);
        let (effect, other_replay) = measured.effects(old);
        let control = control.map(|(title, _)| title);
        let (title, cost) = (change.title(), change.cost());
        let tried = Tried {
            change: *change,
            title,
            cost,
            control,
            measured: measured.own.clone(),
            effect,
            other_replay,
        };
        (tried, measured.clone())
    });
    let mut tried: Vec<(Tried, UnderReplays)> = tried.collect();
    tried.sort_by(|(a, _), (b, _)| a.worse_mean().total_cmp(&b.worse_mean()));
    let together = bench.combine(&today, &tried)?;
    Ok(Changes {
        warm_up_requests: today.own.warm_up_requests,
        today: today.own,
        today_other_replay: today.other,
        tried: tried.into_iter().map(|(tried, _)| tried).collect(),
        together,
    })
}

impl ChangesBench<'_> {
    fn run_all(&self, lists: &[Vec<Change>]) -> Result<Vec<UnderReplays>, ConfigError> {
        lists.par_iter().map(|changes| self.run(changes)).collect()
    }

    fn run(&self, changes: &[Change]) -> Result<UnderReplays, ConfigError> {
        let other = || self.other.map(|other| self.run_on(other, changes)).transpose();
        let (own, other) = rayon::join(|| self.run_on(self.own, changes), other);
        Ok(UnderReplays { own: own?, other: other? })
    }

    fn run_on(&self, system: &Experiment, changes: &[Change]) -> Result<Measured, ConfigError> {
        let mut config = SimConfig { warm_up: WARM_UP, slices: SLICES, ..system.config.clone() };
        let place =
            Place { actuators: system.striping.arms().into(), cache_depth: self.cache_depth };
        changes.iter().for_each(|change| change.apply(&mut config, place));
        let mut run = self.work.begin(if changes.len() > 1 { COMBINED } else { 1 });
        let mut report = |done, total| run.at(done, total);
        Ok(system.with_config(config)?.run_observed(None, &mut report)?.into())
    }

    /// Adds the change that helps most on top of those chosen, until none helps enough. It helps as much as
    /// under the replay under which it helps less.
    ///
    /// Greedy is not exact: two changes that help only together are not found. tr03 finds the
    /// optimisations of different parts nearly independent, and then each step is the best one.
    fn combine(
        &self,
        today: &UnderReplays,
        tried: &[(Tried, UnderReplays)],
    ) -> Result<Option<Combination>, ConfigError> {
        // Prefetching competes with the cache that it brings, against the system as it is.
        let total = |(_, run): &&(Tried, UnderReplays)| run.worse_mean(today);
        let first = tried.iter().filter(|(tried, _)| tried.change.part() != Part::Drives);
        let first = first.min_by(|a, b| total(a).total_cmp(&total(b)));
        let first = first.filter(|first| total(first) <= STEP_MIN);
        let replays = if self.other.is_some() { 2 } else { 1 };
        let mut runs_left = COMBINING_RUNS;
        let Some((first, measured)) = first else {
            self.work.forgo(replays * COMBINED * runs_left);
            return Ok(None);
        };
        let control = |of: &Tried| {
            let control = of.change.control()?;
            tried.iter().map(|(tried, _)| tried).find(|tried| tried.change == control)
        };
        let mut chosen: Vec<&Tried> = control(first).into_iter().chain([first]).collect();
        let mut steps: Vec<Step> =
            chosen.iter().map(|tried| step(tried, tried.effect.mean)).collect();
        let mut measured = measured.clone();
        while chosen.len() < STEPS_MAX {
            let parts: Vec<Part> = chosen.iter().map(|tried| tried.change.part()).collect();
            let others: Vec<&Tried> = best_of_parts(tried)
                .filter(|other| !parts.contains(&other.change.part()))
                .collect();
            let with = |other: &&Tried| {
                chosen.iter().chain([other]).map(|tried| tried.change).collect::<Vec<Change>>()
            };
            let runs = self.run_all(&others.iter().map(with).collect::<Vec<_>>())?;
            runs_left -= runs.len();
            let on_top = |run: &UnderReplays| run.worse_mean(&measured);
            let best = others.into_iter().zip(runs);
            let best = best.min_by(|(_, a), (_, b)| on_top(a).total_cmp(&on_top(b)));
            let Some((next, run)) = best else { break };
            if on_top(&run) > STEP_MIN {
                break;
            }
            // A cache that prefetching brings is a step of its own.
            let has_cache = parts.contains(&Part::ReadCache);
            if let Some(control) = control(next).filter(|_| !has_cache) {
                self.work.expect(replays * COMBINED);
                let with_control = self.run(&with(&control))?;
                steps.push(step(control, with_control.own.from(&measured.own).mean));
                chosen.push(control);
                measured = with_control;
            }
            steps.push(step(next, run.own.from(&measured.own).mean));
            chosen.push(next);
            measured = run;
        }
        self.work.forgo(replays * COMBINED * runs_left);
        let left: f64 = steps.iter().map(|step| 1.0 + step.alone).product();
        let (effect, other_replay) = measured.effects(today);
        let measured = measured.own;
        let if_independent = left - 1.0;
        Ok(Some(Combination { steps, measured, effect, other_replay, if_independent }))
    }
}

fn step(tried: &Tried, on_top: f64) -> Step {
    let alone = tried.effect.mean;
    Step { title: tried.title.clone(), cost: tried.cost, alone, on_top }
}

/// Changes of each part of which a combination is made: the best three of each, whether they help alone or
/// not.
fn best_of_parts(tried: &[(Tried, UnderReplays)]) -> impl Iterator<Item = &Tried> {
    let tried = || tried.iter().map(|(tried, _)| tried);
    PARTS.into_iter().flat_map(move |part| {
        tried().filter(move |tried| tried.change.part() == part).take(OF_EACH_PART)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tried(own: f64, other: Option<f64>) -> Tried {
        let effect = |mean| Effect { mean, ..Effect::default() };
        let change = Change::DriveQueue { depth: 1 };
        Tried {
            change,
            title: change.title(),
            cost: change.cost(),
            control: None,
            measured: Measured::default(),
            effect: effect(own),
            other_replay: other.map(effect),
        }
    }

    #[test]
    fn what_counts_is_the_smaller_gain_and_a_change_of_sign_is_seen() {
        let worse = |own, other| tried(own, other).worse_mean();
        assert_eq!(
            [worse(-0.5, None), worse(-0.5, Some(-0.1)), worse(-0.5, Some(0.3))],
            [-0.5, -0.1, 0.3]
        );
        let turns = |own, other| tried(own, other).turns();
        assert!(turns(-0.5, Some(0.02)) && turns(0.02, Some(-0.5)));
        assert!(!turns(-0.5, None) && !turns(-0.5, Some(0.01)) && !turns(0.5, Some(0.1)));
    }

    #[test]
    fn a_shorter_mean_may_be_paid_by_the_tail_of_reads_alone() {
        let paid = |mean, p99, reads_p99| {
            Effect { mean, p99, reads_p99, ..Effect::default() }.is_paid_by_tail()
        };
        assert!(paid(-0.1, 0.05, -0.2) && paid(-0.1, -0.2, 0.05));
        assert!(!paid(-0.1, 0.01, 0.01) && !paid(0.1, 0.5, 0.5) && !paid(-0.01, 0.5, 0.5));
    }
}
