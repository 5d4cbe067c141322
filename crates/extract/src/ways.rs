//! Movements that are timed: between tracks of cylinders, or between those of surfaces that differ.

use freewheel_model::drive::spec::Mapping;

use super::ExtractError;
use super::heads;
use super::map::{ZoneMap, cylinders};
use super::no_time;
use super::prober::Prober;
use super::seeks::{Timer, Track, track};
use super::surfaces::Surfaces;

/// Knowledge of which tracks lie in a cylinder.
#[derive(Clone, Copy)]
pub(super) enum Ways<'a> {
    /// Heads of cylinders in this order, if it shows.
    Heads(Option<Mapping>),
    Surfaces(&'a Surfaces),
}

impl Ways<'_> {
    /// Number of cylinders over which the arm moves on a surface.
    pub fn cylinders(self, timer: &Timer<'_, '_>) -> u64 {
        match self {
            Self::Heads(_) => timer.cylinders(),
            Self::Surfaces(surfaces) => surfaces.layout.cylinders(),
        }
    }

    /// Order of the tracks, if it shows.
    pub fn mapping(self) -> Option<Mapping> {
        match self {
            Self::Heads(mapping) => mapping,
            Self::Surfaces(surfaces) => Some(surfaces.mapping()),
        }
    }

    /// The least lag of a seek over this many cylinders by which no head changes.
    pub fn seek_lag_ns(
        self,
        timer: &mut Timer<'_, '_>,
        distance: u64,
    ) -> Result<f64, ExtractError> {
        let lag = match self {
            Self::Heads(mapping) => heads::seek_lag_ns(timer, mapping, distance)?,
            Self::Surfaces(surfaces) => {
                timer.least_lag_between(|prober| surfaces.seek_pair(prober, distance))?
            }
        };
        lag.ok_or_else(|| no_time(&format!("a seek of {distance} cylinders")))
    }

    /// The least lag of a change of heads; None on a drive with one.
    pub fn switch_lag_ns(self, timer: &mut Timer<'_, '_>) -> Result<Option<f64>, ExtractError> {
        match self {
            Self::Heads(_) => heads::switch_lag_ns(timer),
            Self::Surfaces(surfaces) => {
                let lag = timer.least_lag_between(|prober| surfaces.switch_pair(prober))?;
                lag.map(Some).ok_or_else(|| no_time("a change of heads"))
            }
        }
    }

    /// Two tracks this many cylinders apart, for a movement whose lag is known.
    pub fn pair(self, zones: &[ZoneMap], prober: &mut Prober<'_>, distance: u64) -> [Track; 2] {
        match self {
            Self::Heads(_) => {
                let far = prober.below(cylinders(zones) - distance);
                [far, far + distance].map(|cylinder| track(zones, cylinder, 0))
            }
            Self::Surfaces(surfaces) => surfaces.seek_pair(prober, distance),
        }
    }
}
