//! Other circumstances for a system: an advice that turns there is none.

use freewheel_model::drive::Drive;
use freewheel_model::drive::spec::{DriveSpec, Turn};
use freewheel_sim::config::{ConfigError, SimConfig};
use freewheel_sim::experiment::Experiment;
use freewheel_sim::library;
use freewheel_units::Blocks;
use serde::Serialize;

use super::{Effect, Goal, NOTICEABLE};
use crate::drive_fit::FITTED;
use crate::replays::words_of_replay;

/// A drive with another value; None where the value takes no part.
pub(crate) type Move = fn(&DriveSpec) -> Option<DriveSpec>;

/// Circumstance that differs.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Variant {
    /// Another drive, with its own queue.
    OtherDrive {
        /// Name of the drive.
        name: String,
    },
    /// Another value of one that is assumed in the drive's file.
    AssumedValue {
        /// Key, or beginning of the keys.
        key: &'static str,
    },
    /// The study's other replay.
    OtherReplay {
        /// True if requests are replayed a think time after the request they waited for.
        dependent: bool,
    },
    /// Another angle of the spindle at the beginning of the trace.
    Start {
        /// Turn of the tracks meanwhile, in percent of a turn.
        percent: u32,
    },
}

impl Variant {
    /// The circumstances within a sentence.
    pub fn words(&self) -> String {
        match self {
            Self::OtherDrive { name } => format!("on {name}"),
            Self::AssumedValue { key } => format!("with another `{key}`"),
            Self::OtherReplay { dependent } => words_of_replay(*dependent).to_owned(),
            Self::Start { percent } => format!("from a start {percent} % of a turn away"),
        }
    }
}

/// Effect of a change in other circumstances.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VariantEffect {
    /// The circumstances.
    pub variant: Variant,
    /// The difference to the control, or to the system as it is, in the same circumstances.
    pub effect: Effect,
}

/// Circumstances in which an effect that is noticeable here is not.
pub(super) fn fading(
    here: f64,
    variants: &[VariantEffect],
    goal: Goal,
) -> impl Iterator<Item = &Variant> {
    variants
        .iter()
        .filter(move |of| here.abs() >= NOTICEABLE && of.effect.of(goal).abs() < NOTICEABLE)
        .map(|of| &of.variant)
}

/// Circumstances in which an effect is noticeable and against that of here.
pub(super) fn turning(
    here: f64,
    variants: &[VariantEffect],
    goal: Goal,
) -> impl Iterator<Item = &Variant> {
    variants.iter().filter(move |of| is_against(of.effect.of(goal), here)).map(|of| &of.variant)
}

fn is_against(there: f64, here: f64) -> bool {
    here.min(there) <= -NOTICEABLE && here.max(there) >= NOTICEABLE
}

/// Circumstances, and how a system gets into them.
pub(crate) struct VariantOfSystem {
    pub variant: Variant,
    makes: Makes,
}

/// Way to make another system.
enum Makes {
    /// A drive of this name, with so deep a queue.
    Drive { name: String, queue_depth: u32 },
    /// Another drive file.
    Spec(Move),
    /// The workload of this experiment, which is the same trace.
    Replay(Box<Experiment>),
    /// Tracks that are turned so far.
    Start { percent: u32 },
}

/// Distances in the turn at which the trace begins, in percent: a little, and as far as possible.
pub(crate) const STARTS: [u32; 2] = [1, 50];

impl VariantOfSystem {
    /// Variant on another drive; None where no shipped one is like it and holds the trace.
    pub fn other_drive(experiment: &Experiment) -> Result<Option<Self>, ConfigError> {
        let Some((name, spec)) = similar_drive(experiment)? else { return Ok(None) };
        let queue = spec.electronics.queue.filter(|_| experiment.has_electronics());
        let queue_depth = queue.map_or(1, |queue| queue.depth);
        let makes = Makes::Drive { name: name.clone(), queue_depth };
        Ok(Some(Self { variant: Variant::OtherDrive { name }, makes }))
    }

    /// Variant under the other replay.
    pub fn other_replay(other: &Experiment) -> Self {
        let variant = Variant::OtherReplay { dependent: other.is_dependent() };
        Self { variant, makes: Makes::Replay(Box::new(other.clone())) }
    }

    /// Another value of an assumed one.
    pub fn assumed_value(key: &'static str, moved: Move) -> Self {
        Self { variant: Variant::AssumedValue { key }, makes: Makes::Spec(moved) }
    }

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
            Makes::Replay(other) => {
                other.with_config(SimConfig { workload: other.config.workload.clone(), ..config })
            }
            Makes::Start { percent } => {
                let experiment = system.with_config(config)?;
                let spec = turned(&experiment.spec, *percent);
                experiment.on_drive(spec)
            }
        }
    }
}

/// A drive whose tracks begin this part of a turn later: as if the trace began earlier by this time.
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

/// The shipped drive that is nearest in capacity, of those with the same number of actuators that hold the
/// trace and take every request.
fn similar_drive(experiment: &Experiment) -> Result<Option<(String, DriveSpec)>, ConfigError> {
    let own = &experiment.spec;
    let here = capacity(&experiment.drive);
    let wanted = Blocks::new(experiment.trace_space().get().div_ceil(freewheel_units::BLOCK_BYTES));
    let mut best: Option<(u128, u128, String, DriveSpec)> = None;
    for name in library::names() {
        let (spec, drive) = library::drive(name).map_err(ConfigError::from)?;
        // A fitted drive is not another one than that which was fitted.
        let is_like = spec.model != own.model.trim_end_matches(FITTED)
            && spec.actuators == own.actuators
            && spec.zoned.is_none()
            && spec.electronics.media_cache.is_none()
            && own.electronics.media_cache.is_none()
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

fn capacity(drive: &Drive) -> u128 {
    u128::from(drive.total_blocks().get())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variant_of_whole_turn_is_same() {
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
    fn variants_turning_sign_are_named() {
        let of = |mean, percent| VariantEffect {
            variant: Variant::Start { percent },
            effect: Effect { mean, ..Effect::default() },
        };
        let all = [of(-0.1, 1), of(0.01, 2), of(0.05, 3)];
        let turns = |here| turning(here, &all, Goal::Mean).cloned().collect::<Vec<_>>();
        assert_eq!(turns(-0.2), [Variant::Start { percent: 3 }]);
        assert_eq!(turns(0.2), [Variant::Start { percent: 1 }]);
        assert_eq!(turns(0.0), []);
        let fades = |here| fading(here, &all, Goal::Mean).cloned().collect::<Vec<_>>();
        assert_eq!(fades(-0.2), [Variant::Start { percent: 2 }]);
        assert_eq!(fades(0.01), []);
    }
}
