//! Changes that would help: each change of the system alone, and the best of them together.
//!
//! tr03's perturbation study on a trace of the user's: the system as it is runs once, and once more with
//! each change. Five slices of the trace say how far a result holds. A greedy search then adds change
//! after change to the best one; it reports what each brings alone and on top of the others. What heads the
//! list runs again on another drive, with other assumed values and from other starts.
//!
//! Non-goals: changes that need the user's data (compression, deduplication), and more than one value
//! of a parameter together with all values of every other.

mod change;
mod check;
mod combine;
mod frontier;
mod measure;
mod ranking;
mod variant;

use freewheel_sim::config::{ConfigError, SimConfig};
use freewheel_sim::experiment::Experiment;
use rayon::prelude::*;
use serde::Serialize;

pub(crate) use change::{BaseSystem, catalogue, most_changes};
pub use change::{Change, ChangeCost, PREFETCH_CACHE, Part, Place};
pub(crate) use check::most_checks;
pub use combine::{Combination, Step};
pub use frontier::FrontierPoint;
pub use measure::{Effect, Goal, Measured, NOTICEABLE, Responses, relative};
pub(crate) use variant::{Move, STARTS, VariantOfSystem};
pub use variant::{Variant, VariantEffect};

use self::ranking::Gains;
use crate::progress::WorkCounter;
use crate::trace_runs::WARM_UP;

/// A change that was tried alone.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct Tried {
    /// Change that was made.
    pub change: Change,
    /// Name of the change.
    pub title: String,
    pub cost: ChangeCost,
    /// Name of the system that it is compared with, where that is not the system as it is.
    pub control: Option<String>,
    pub measured: Measured,
    /// Their difference to the control, or to the system as it is.
    pub effect: Effect,
    /// Effect under the study's other replay.
    pub other_replay: Option<Effect>,
    /// Effect of a write buffer beside the system as it is with the drive's write cache off: that loses no
    /// more in a power cut. None where the drive has none.
    pub as_safe: Option<Effect>,
    /// Effect in other circumstances; none where it was not among the five that ran again.
    pub variants: Vec<VariantEffect>,
    /// The experiment, as `freewheel sim` runs it.
    pub config: SimConfig,
}

/// Changes that would help.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Changes {
    /// Goal by which the changes are ranked.
    pub goal: Goal,
    /// Requests that fill caches, and do not count.
    pub warm_up_requests: u64,
    /// Responses of the system as it is.
    pub today: Measured,
    /// Responses under the study's other replay.
    pub today_other_replay: Option<Measured>,
    /// The experiment of the system as it is, as `freewheel sim` runs it.
    pub today_config: SimConfig,
    /// Every change alone, in order of the smaller gain of the two replays.
    pub tried: Vec<Tried>,
    /// The best of them together, without further drives; None where no change helps.
    pub together: Option<Combination>,
    /// The systems of which none that was tried needs no more and is better, the cheapest first.
    pub frontier: Vec<FrontierPoint>,
    /// Circumstances in which the best changes ran again.
    pub variants: Vec<Variant>,
}

/// Least gain of a combination's next step: smaller ones are within the noise of most traces.
const STEP_MIN: f64 = -NOTICEABLE;

/// Parts of the trace after the warm-up, for a spread.
const SLICES: u32 = 5;

/// Bench on which changes are tried.
pub(crate) struct ChangesBench<'a> {
    /// The system as it is, under the study's replay of its trace.
    pub own: &'a Experiment,
    /// Experiment under the other replay, if there is one.
    pub other: Option<&'a Experiment>,
    /// Goal by which changes are ranked.
    pub goal: Goal,
    /// Most requests in the storage system where a cache is added.
    pub cache_depth: u32,
    pub work: &'a WorkCounter<'a>,
}

/// The most runs of [`try_changes`] with this number of changes, as a number of runs of one change.
pub(crate) fn most_runs(changes: usize) -> usize {
    1 + changes + combine::MOST_RUNS
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

    /// The change of the goal under each replay.
    fn gains(&self, old: &Self, goal: Goal) -> Gains {
        let (own, other) = self.effects(old);
        gains(&own, other.as_ref(), goal)
    }

    /// The change of the goal that is certain: that of the replay under which it is worse.
    fn surest(&self, old: &Self, goal: Goal) -> f64 {
        let [own, other] = self.gains(old, goal);
        own.max(other)
    }
}

fn gains(own: &Effect, other: Option<&Effect>, goal: Goal) -> Gains {
    [own.of(goal), other.unwrap_or(own).of(goal)]
}

impl Tried {
    /// The change of the goal that is certain: that of the replay under which it is worse.
    pub fn surest(&self, goal: Goal) -> f64 {
        let [own, other] = self.gains(goal);
        own.max(other)
    }

    fn gains(&self, goal: Goal) -> Gains {
        gains(&self.effect, self.other_replay.as_ref(), goal)
    }

    /// True if it helps noticeably under one replay, and harms noticeably under the other.
    pub fn turns(&self, goal: Goal) -> bool {
        let [own, other] = self.gains(goal);
        own.min(other) <= -NOTICEABLE && own.max(other) >= NOTICEABLE
    }

    /// Circumstances in which it is not noticeable, and is here.
    pub fn fading_variants(&self, goal: Goal) -> impl Iterator<Item = &Variant> {
        variant::fading(self.effect.of(goal), &self.variants, goal)
    }

    /// Circumstances in which it harms noticeably where it helps here, or helps where it harms here.
    pub fn turning_variants(&self, goal: Goal) -> impl Iterator<Item = &Variant> {
        variant::turning(self.effect.of(goal), &self.variants, goal)
    }
}

/// A change with its runs, while others are looked for.
struct Candidate {
    tried: Tried,
    run: UnderReplays,
}

/// Tries each of `all` on the system of the bench, whose workload is a trace, and looks for the best
/// combination. The result does not depend on the number of threads.
pub(crate) fn try_changes(
    bench: &ChangesBench<'_>,
    all: &[Change],
) -> Result<Changes, ConfigError> {
    let goal = bench.goal;
    let lists: Vec<Vec<Change>> =
        std::iter::once(vec![]).chain(all.iter().map(|&change| vec![change])).collect();
    let mut measured = bench.run_all(&lists)?.into_iter();
    let today = measured.next().expect("the system as it is was run");
    let measured: Vec<UnderReplays> = measured.collect();
    let run_of = |wanted: Change| {
        all.iter().zip(&measured).find(|(change, _)| **change == wanted).map(|(_, run)| run)
    };
    let candidate = |(&change, run): (&Change, &UnderReplays)| {
        let control = change.control();
        let old = control.map_or(&today, |control| run_of(control).expect("controls are tried"));
        let safe =
            run_of(Change::DriveWriteCacheOff).filter(|_| change.part() == Part::WriteBuffer);
        let (effect, other_replay) = run.effects(old);
        let tried = Tried {
            change,
            title: change.title(),
            cost: change.cost(),
            control: control.map(|control| control.title()),
            measured: run.own.clone(),
            effect,
            other_replay,
            as_safe: safe.map(|safe| run.own.from(&safe.own)),
            variants: Vec::new(),
            config: bench.config(bench.own, &[change]),
        };
        Candidate { tried, run: run.clone() }
    };
    let mut candidates: Vec<Candidate> = all.iter().zip(&measured).map(candidate).collect();
    candidates.sort_by(|a, b| a.tried.surest(goal).total_cmp(&b.tried.surest(goal)));
    let together = bench.combine(&today, &candidates)?;
    let frontier = frontier::frontier(&today, &candidates, together.as_ref(), goal);
    Ok(Changes {
        goal,
        warm_up_requests: today.own.warm_up_requests,
        today: today.own,
        today_other_replay: today.other,
        today_config: bench.config(bench.own, &[]),
        tried: candidates.into_iter().map(|candidate| candidate.tried).collect(),
        together: together.map(|(combination, _)| combination),
        frontier,
        variants: Vec::new(),
    })
}

impl ChangesBench<'_> {
    fn run_all(&self, lists: &[Vec<Change>]) -> Result<Vec<UnderReplays>, ConfigError> {
        lists.par_iter().map(|changes| self.run(changes)).collect()
    }

    fn run(&self, changes: &[Change]) -> Result<UnderReplays, ConfigError> {
        let other = || self.other.map(|other| self.run_on(other, changes, None)).transpose();
        let (own, other) = rayon::join(|| self.run_on(self.own, changes, None), other);
        Ok(UnderReplays { own: own?, other: other? })
    }

    fn config(&self, system: &Experiment, changes: &[Change]) -> SimConfig {
        let mut config = SimConfig { warm_up: WARM_UP, slices: SLICES, ..system.config.clone() };
        let place =
            Place { actuators: system.striping.arms().into(), cache_depth: self.cache_depth };
        changes.iter().for_each(|change| change.apply(&mut config, place));
        config
    }

    fn run_on(
        &self,
        system: &Experiment,
        changes: &[Change],
        variant: Option<&VariantOfSystem>,
    ) -> Result<Measured, ConfigError> {
        let run = self.work.begin(if changes.len() > 1 { combine::COMBINED } else { 1 });
        let config = self.config(system, changes);
        let experiment = match variant {
            None => system.with_config(config)?,
            Some(variant) => variant.of(system, config)?,
        };
        Ok(experiment
            .new_run()
            .with_progress(&mut |done, total| run.at(done, total))
            .simulate()?
            .into())
    }
}

#[cfg(test)]
mod tests {
    use freewheel_sim::config::SimConfig;

    use super::*;

    fn tried(own: f64, other: Option<f64>) -> Tried {
        let effect = |mean| Effect { mean, ..Effect::default() };
        let change = Change::DriveQueue { depth: 1 };
        let config = "[workload]\nkind = \"closed\"\n";
        Tried {
            change,
            title: change.title(),
            cost: change.cost(),
            control: None,
            measured: Measured::default(),
            effect: effect(own),
            other_replay: other.map(effect),
            as_safe: None,
            variants: Vec::new(),
            config: SimConfig::parse(config, "test", &[]).unwrap(),
        }
    }

    #[test]
    fn change_counts_smaller_gain() {
        let worse = |own, other| tried(own, other).surest(Goal::Mean);
        assert_eq!(
            [worse(-0.5, None), worse(-0.5, Some(-0.1)), worse(-0.5, Some(0.3))],
            [-0.5, -0.1, 0.3]
        );
        let turns = |own, other| tried(own, other).turns(Goal::Mean);
        assert!(turns(-0.5, Some(0.02)) && turns(0.02, Some(-0.5)));
        assert!(!turns(-0.5, None) && !turns(-0.5, Some(0.01)) && !turns(0.5, Some(0.1)));
    }

    #[test]
    fn change_mean_may_be_paid_by_tail() {
        let paid = |mean, p99, reads_p99| {
            Effect { mean, p99, reads_p99, ..Effect::default() }.is_paid_by_tail(Goal::Mean)
        };
        assert!(paid(-0.1, 0.05, -0.2) && paid(-0.1, -0.2, 0.05));
        assert!(!paid(-0.1, 0.01, 0.01) && !paid(0.1, 0.5, 0.5) && !paid(-0.01, 0.5, 0.5));
    }
}
