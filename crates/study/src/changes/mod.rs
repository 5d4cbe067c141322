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

pub use change::{Change, ChangeCost, PREFETCH_CACHE, Part, Setting, catalogue};
pub use measure::{Effect, Measured, Responses, relative};

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
    /// Responses with it.
    pub measured: Measured,
    /// Their difference to the system as it is.
    pub effect: Effect,
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
    /// Every change alone, the best first.
    pub tried: Vec<Tried>,
    /// The best of them together, without further drives; None where nothing helps.
    pub together: Option<Combination>,
}

/// What the next step of a combination must bring: smaller ones are within the noise of most traces.
const STEP_MIN: f64 = -0.02;

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

/// The most runs of [`try_changes`] with this number of changes, in such of one change.
pub(crate) fn most_runs(changes: usize) -> usize {
    1 + changes + COMBINED * COMBINING_RUNS
}

/// Runs on the same trace from the same base.
struct Runner<'a> {
    /// The system as it is, with warm-up and slices.
    base: SimConfig,
    experiment: &'a Experiment,
    work: &'a WorkCounter<'a>,
}

/// Tries each of `all` on the system of `experiment`, whose workload is a trace, and looks for the best
/// combination. The result does not depend on the number of threads.
pub(crate) fn try_changes(
    experiment: &Experiment,
    all: &[Change],
    work: &WorkCounter<'_>,
) -> Result<Changes, ConfigError> {
    let base = SimConfig { warm_up: WARM_UP, slices: SLICES, ..experiment.config.clone() };
    let runner = Runner { base, experiment, work };
    let lists: Vec<Vec<Change>> =
        std::iter::once(vec![]).chain(all.iter().map(|&change| vec![change])).collect();
    let mut measured = runner.run_all(&lists)?.into_iter();
    let today = measured.next().expect("the system as it is was run");
    let mut tried: Vec<Tried> = all
        .iter()
        .zip(measured)
        .map(|(change, measured)| Tried {
            change: *change,
            title: change.title(),
            cost: change.cost(),
            effect: measured.from(&today),
            measured,
        })
        .collect();
    tried.sort_by(|a, b| a.effect.mean.total_cmp(&b.effect.mean));
    let together = runner.combine(&today, &tried)?;
    Ok(Changes { warm_up_requests: today.warm_up_requests, today, tried, together })
}

impl Runner<'_> {
    fn run_all(&self, lists: &[Vec<Change>]) -> Result<Vec<Measured>, ConfigError> {
        lists.par_iter().map(|changes| self.run(changes)).collect()
    }

    fn run(&self, changes: &[Change]) -> Result<Measured, ConfigError> {
        let mut config = self.base.clone();
        let actuators = self.experiment.striping.arms().into();
        changes.iter().for_each(|change| change.apply(&mut config, actuators));
        let mut run = self.work.begin(if changes.len() > 1 { COMBINED } else { 1 });
        let mut report = |done, total| run.at(done, total);
        Ok(self.experiment.with_config(config)?.run_observed(None, &mut report)?.into())
    }

    /// Adds the change that helps most on top of those chosen, until none helps enough.
    ///
    /// Greedy is not exact: two changes that help only together are not found. tr03 finds the
    /// optimisations of different parts nearly independent, and then each step is the best one.
    fn combine(
        &self,
        today: &Measured,
        tried: &[Tried],
    ) -> Result<Option<Combination>, ConfigError> {
        let helps =
            |tried: &&Tried| tried.change.part() != Part::Drives && tried.effect.mean <= STEP_MIN;
        let mut runs_left = COMBINING_RUNS;
        let Some(first) = tried.iter().find(helps) else {
            self.work.forgo(COMBINED * runs_left);
            return Ok(None);
        };
        let mut chosen = vec![first];
        let mut steps = vec![step(first, first.effect.mean)];
        let mut measured = first.measured.clone();
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
            let mean = |run: &Measured| run.response.mean_ns;
            let best =
                others.into_iter().zip(runs).min_by(|a, b| mean(&a.1).total_cmp(&mean(&b.1)));
            let Some((next, run)) = best else { break };
            let on_top = relative(measured.response.mean_ns, run.response.mean_ns);
            if on_top > STEP_MIN {
                break;
            }
            steps.push(step(next, on_top));
            chosen.push(next);
            measured = run;
        }
        self.work.forgo(COMBINED * runs_left);
        let left: f64 = steps.iter().map(|step| 1.0 + step.alone).product();
        let effect = measured.from(today);
        Ok(Some(Combination { steps, measured, effect, if_independent: left - 1.0 }))
    }
}

fn step(tried: &Tried, on_top: f64) -> Step {
    let alone = tried.effect.mean;
    Step { title: tried.title.clone(), cost: tried.cost, alone, on_top }
}

/// Changes of each part of which a combination is made: the best three of each, whether they help alone or
/// not.
fn best_of_parts(tried: &[Tried]) -> impl Iterator<Item = &Tried> {
    PARTS.into_iter().flat_map(move |part| {
        tried.iter().filter(move |tried| tried.change.part() == part).take(OF_EACH_PART)
    })
}
