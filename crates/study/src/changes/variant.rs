//! The first changes again in other circumstances: an advice that turns there is none.

use freewheel_model::drive::Drive;
use freewheel_model::drive::spec::{DriveSpec, Turn};
use freewheel_sim::config::{ConfigError, Experiment, SimConfig};
use freewheel_sim::library;
use freewheel_units::Blocks;
use rayon::prelude::*;
use serde::Serialize;

use super::combine::{COMBINED, Combination};
use super::{Change, Changes, ChangesBench, Effect, Goal, Measured, NOTICEABLE};
use crate::assumed_values::Move;

/// Changes of the ranking that run again; the best together do, too.
const CHECKED: usize = 5;

/// What is different.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Variant {
    /// Another drive, with its own queue.
    OtherDrive {
        /// Its name.
        name: String,
    },
    /// Another value of one that is assumed in the drive's file.
    AssumedValue {
        /// Its key, or the beginning of its keys.
        key: &'static str,
    },
    /// Another angle of the spindle at the beginning of the trace.
    Start {
        /// How much later in the turn it begins, in percent of a turn.
        percent: u32,
    },
}

impl Variant {
    /// The circumstances within a sentence.
    pub fn words(&self) -> String {
        match self {
            Self::OtherDrive { name } => format!("on {name}"),
            Self::AssumedValue { key } => format!("with another `{key}`"),
            Self::Start { percent } => format!("started {percent} % of a turn later"),
        }
    }
}

/// What a change does in other circumstances.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VariantEffect {
    /// The circumstances.
    pub variant: Variant,
    /// The difference to the control, or to the system as it is, in the same circumstances.
    pub effect: Effect,
}

/// Circumstances in which an effect is noticeable and against that of here.
pub(super) fn turning(
    here: f64,
    variants: &[VariantEffect],
    goal: Goal,
) -> impl Iterator<Item = &Variant> {
    let is_against =
        move |there: f64| here.min(there) <= -NOTICEABLE && here.max(there) >= NOTICEABLE;
    let turns = move |of: &&VariantEffect| is_against(of.effect.of(goal));
    variants.iter().filter(turns).map(|of| &of.variant)
}

/// Circumstances, and how a system gets into them.
pub(crate) struct VariantOfSystem {
    pub variant: Variant,
    makes: Makes,
}

/// What makes another system.
enum Makes {
    /// A drive of this name, with so deep a queue.
    Drive { name: String, queue_depth: u32 },
    /// Another drive file.
    Spec(Move),
    /// A spindle that is so far on at the beginning.
    Start { percent: u32 },
}

/// How much later in the turn the trace begins, in percent: a little, and about as far as it can be.
pub(crate) const STARTS: [u32; 2] = [1, 50];

impl VariantOfSystem {
    /// The same on another drive; None where none that ships is like it and holds the trace.
    pub fn other_drive(experiment: &Experiment) -> Result<Option<Self>, ConfigError> {
        let Some((name, spec)) = similar_drive(experiment)? else { return Ok(None) };
        let queue_depth = spec.electronics.queue.map_or(1, |queue| queue.depth);
        let makes = Makes::Drive { name: name.clone(), queue_depth };
        Ok(Some(Self { variant: Variant::OtherDrive { name }, makes }))
    }

    /// Another value of an assumed one.
    pub fn assumed_value(key: &'static str, moved: Move) -> Self {
        Self { variant: Variant::AssumedValue { key }, makes: Makes::Spec(moved) }
    }

    /// Other starts.
    pub fn starts() -> impl Iterator<Item = Self> {
        STARTS.into_iter().map(|percent| Self {
            variant: Variant::Start { percent },
            makes: Makes::Start { percent },
        })
    }

    /// A system with this configuration in these circumstances.
    pub fn of(&self, system: &Experiment, config: SimConfig) -> Result<Experiment, ConfigError> {
        match &self.makes {
            Makes::Drive { name, queue_depth } => {
                let is_own = config.queue_depth == system.config.queue_depth;
                let queue_depth = if is_own { Some(*queue_depth) } else { config.queue_depth };
                system.with_config(SimConfig { drive: name.clone(), queue_depth, ..config })
            }
            Makes::Spec(moved) => {
                let experiment = system.with_config(config)?;
                let spec = moved(&experiment.spec).unwrap_or_else(|| experiment.spec.clone());
                experiment.on_drive(spec)
            }
            Makes::Start { percent } => {
                let experiment = system.with_config(config)?;
                let spec = turned(&experiment.spec, *percent);
                experiment.on_drive(spec)
            }
        }
    }
}

/// A drive whose tracks begin this part of a turn later: as if the trace began earlier in the turn.
fn turned(spec: &DriveSpec, percent: u32) -> DriveSpec {
    let mut spec = spec.clone();
    for zone in &mut spec.zones {
        let (numerator, denominator) = zone.first_block.ratio();
        let (whole, moved) =
            (denominator * 100, numerator * 100 + denominator * u64::from(percent));
        zone.first_block = Turn::from_ratio(moved % whole, whole).unwrap_or(zone.first_block);
    }
    spec
}

/// The shipped drive that is nearest in capacity, of those of as many actuators that hold the trace and take every
/// request.
fn similar_drive(experiment: &Experiment) -> Result<Option<(String, DriveSpec)>, ConfigError> {
    let own = &experiment.spec;
    let capacity = |drive: &Drive| u128::from(drive.total_blocks().get());
    let here = capacity(&experiment.drive);
    let wanted = Blocks::new(experiment.trace_space().get().div_ceil(freewheel_units::BLOCK_BYTES));
    let mut best: Option<(u128, u128, String, DriveSpec)> = None;
    for name in library::names() {
        let (spec, drive) = library::drive(name).map_err(ConfigError::from)?;
        let is_like = spec.model != own.model
            && spec.actuators == own.actuators
            && spec.zoned.is_none()
            && spec.electronics.is_empty() == own.electronics.is_empty()
            && drive.total_blocks() >= wanted;
        if !is_like {
            continue;
        }
        let (large, small) = (here.max(capacity(&drive)), here.min(capacity(&drive)));
        // Ratios are compared without division.
        let is_nearer = best
            .as_ref()
            .is_none_or(|(its_large, its_small, ..)| large * its_small < its_large * small);
        if is_nearer {
            best = Some((large, small, name.to_owned(), spec));
        }
    }
    Ok(best.map(|(_, _, name, spec)| (name, spec)))
}

impl ChangesBench<'_> {
    /// Runs the first changes of the ranking and the best together in other circumstances, under the study's own
    /// replay. Circumstances under which the system does not run at all, as the trace does not fit, are left out.
    pub(crate) fn check(&self, changes: &mut Changes, variants: &[VariantOfSystem]) {
        let first: Vec<Change> =
            changes.ranking().into_iter().take(CHECKED).map(|tried| tried.change).collect();
        let plan = CheckPlan::new(&first, changes.together.as_ref());
        let all: Vec<(&VariantOfSystem, &Vec<Change>)> =
            variants.iter().flat_map(|of| plan.lists.iter().map(move |list| (of, list))).collect();
        let left = most_checks(variants.len()) - variants.len() * plan.runs();
        self.work.forgo(left);
        let run = |&(of, list): &(&VariantOfSystem, &Vec<Change>)| {
            self.run_on(self.own, list, Some(of)).ok()
        };
        let runs: Vec<Option<Measured>> = all.par_iter().map(run).collect();
        for (of, runs) in variants.iter().zip(runs.chunks(plan.lists.len())) {
            if runs[0].is_none() {
                continue;
            }
            changes.variants.push(of.variant.clone());
            let effect = |new: usize, old: usize| {
                let effect = runs[new].as_ref()?.from(runs[old].as_ref()?);
                Some(VariantEffect { variant: of.variant.clone(), effect })
            };
            for &(change, new, old) in &plan.pairs {
                let tried = changes.tried.iter_mut().find(|tried| tried.change == change);
                tried.into_iter().for_each(|tried| tried.variants.extend(effect(new, old)));
            }
            if let Some((together, at)) = changes.together.as_mut().zip(plan.together) {
                together.variants.extend(effect(at, 0));
            }
        }
    }
}

/// The systems that run in each of the circumstances, the one of today first.
struct CheckPlan {
    lists: Vec<Vec<Change>>,
    /// Each change, and the places of its system and of its control.
    pairs: Vec<(Change, usize, usize)>,
    /// The place of the best together.
    together: Option<usize>,
}

impl CheckPlan {
    fn new(first: &[Change], together: Option<&Combination>) -> Self {
        let mut plan = Self { lists: vec![vec![]], pairs: Vec::new(), together: None };
        for &change in first {
            let new = plan.place_of(vec![change]);
            let old = plan.place_of(change.control().into_iter().collect());
            plan.pairs.push((change, new, old));
        }
        plan.together = together.map(|together| plan.place_of(together.changes()));
        plan
    }

    fn place_of(&mut self, list: Vec<Change>) -> usize {
        let place = self.lists.iter().position(|other| *other == list);
        place.unwrap_or_else(|| {
            self.lists.push(list);
            self.lists.len() - 1
        })
    }

    /// As a number of runs of one change.
    fn runs(&self) -> usize {
        self.lists.iter().map(|list| if list.len() > 1 { COMBINED } else { 1 }).sum()
    }
}

/// The most runs of [`ChangesBench::check`], as a number of runs of one change.
pub(crate) fn most_checks(variants: usize) -> usize {
    variants * (2 + CHECKED + COMBINED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drive_that_is_turned_by_a_whole_turn_is_the_same() {
        let spec = library::spec("atlas10k").unwrap();
        assert_eq!(
            turned(&spec, 100).zones[0].first_block.angle(),
            spec.zones[0].first_block.angle()
        );
        let half = turned(&spec, 50);
        assert_ne!(half.zones, spec.zones);
        assert_eq!(
            turned(&half, 50).zones[3].first_block.angle(),
            spec.zones[3].first_block.angle()
        );
    }

    #[test]
    fn each_system_runs_once_in_each_of_the_circumstances() {
        let one = Change::DriveQueue { depth: 1 };
        let plan = CheckPlan::new(&[one, Change::DriveWriteCacheOff], None);
        assert_eq!(plan.pairs, [(one, 1, 0), (Change::DriveWriteCacheOff, 2, 0)]);
        assert_eq!((plan.lists.len(), plan.runs()), (3, 3));
    }

    #[test]
    fn circumstances_in_which_the_sign_is_another_are_named() {
        let of = |mean, percent| VariantEffect {
            variant: Variant::Start { percent },
            effect: Effect { mean, ..Effect::default() },
        };
        let all = [of(-0.1, 1), of(0.01, 2), of(0.05, 3)];
        let turns = |here| turning(here, &all, Goal::Mean).cloned().collect::<Vec<_>>();
        assert_eq!(turns(-0.2), [Variant::Start { percent: 3 }]);
        assert_eq!(turns(0.2), [Variant::Start { percent: 1 }]);
        assert_eq!(turns(0.0), []);
    }
}
