//! A drive as technology would make it, in the four dimensions of tr03 section 5, each alone; and other
//! members of its family, with another number of surfaces (section 3.3).
//!
//! Goals: any drive can be scaled; what a factor does not concern stays as it is, to the bit; a
//! scaled drive is an ordinary drive file whose values say that they are derived.
//! Non-goals: electronics. Command overheads, buffer and bus stay those of the original, for the
//! paper scales none of them; a bus that was fast enough may be too slow for the scaled media.
//!
//! | factor | multiplies | and so | paper |
//! |---|---|---|---|
//! | `seek` | every time of the seek curves | skews | section 5.1.1 |
//! | `rpm` | speed of rotation | skews | section 5.1.2 |
//! | `linear_density` | blocks a track | skews, spares, defects | section 5.2.1 |
//! | `track_density` | cylinders, zones kept | seek distances, spares, defects, skews | section 5.2.2 |
//! | `surfaces` | tracks a cylinder | capacity, spares, defects, skews | section 3.3 |
//!
//! What the paper leaves open is decided thus:
//! - *Write settle, head switch and seek tolerance* go with `seek`. The paper's write curve holds
//!   the settling (section 3.3) and is scaled whole; a head switch is a small movement of the same
//!   arm.
//! - *A seek of one old cylinder at most* takes as long as that one did, however dense the tracks have
//!   become: it is settling and not distance.
//! - *Slips and remaps* are dropped when positions on the media change: defects are places on the
//!   surfaces of one specimen. With the slips go the angles by which they turned tracks. Spares and
//!   reserved blocks keep their share of the space.
//! - *Bands and spare units of cylinders* keep their number of cylinders, however dense the tracks
//!   have become: so units stay whole bands at any factor. A seek over a band then takes less, and
//!   skews that hide one follow.
//! - *A factor that leaves a part of a surface* rounds the surfaces up. Data then end before the innermost
//!   cylinders, so that capacity follows the factor. So 9.1 GB of six surfaces of 36.7 GB are the outer three
//!   quarters of two surfaces.
//! - *What the maker promises* is left out: a scaled drive has no data sheet. So is what belongs to the
//!   measured one.

mod curves;
mod skews;
mod sources;
mod surfaces;
mod zones;

use freewheel_units::{Bytes, SimDuration};
use serde::Serialize;
use thiserror::Error;

use self::surfaces::Surfaces;
use super::error::BuildDriveError;
use super::mechanics::Drive;
use crate::spec::advertised::Advertised;
use crate::spec::drive::{DriveSpec, SeekSpec};

/// The least factor of a dimension.
pub const FACTOR_MIN: f64 = 0.01;

/// The largest.
pub const FACTOR_MAX: f64 = 100.0;

/// Factor of each dimension; 1 leaves it alone. Factors of [`FACTOR_MIN`] to [`FACTOR_MAX`] are allowed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Scaling {
    /// Seek times; below 1 is faster.
    pub seek: f64,
    /// Speed of rotation; above 1 is faster.
    pub rpm: f64,
    /// Blocks on a track.
    pub linear_density: f64,
    /// Tracks on the same breadth.
    pub track_density: f64,
    /// Surfaces with data.
    pub surfaces: f64,
}

/// By what share each dimension changes in a year: 0.09 for 9 % more, -0.08 for 8 % less.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct YearlyRates {
    /// Factor of seek times.
    pub seek: f64,
    /// Factor of the speed of rotation.
    pub rpm: f64,
    /// Factor of blocks on a track.
    pub linear_density: f64,
    /// Factor of tracks on the same breadth.
    pub track_density: f64,
}

/// Reason why a drive cannot be scaled.
#[derive(Debug, Clone, PartialEq, Error)]
#[allow(missing_docs)]
pub enum ScaleError {
    /// A factor that no drive is scaled by.
    #[error("the factor `{name}` is {factor}, but {FACTOR_MIN} to {FACTOR_MAX} are allowed")]
    Factor { name: &'static str, factor: f64 },
    /// The drive to be scaled is none.
    #[error("the drive to be scaled: {0}")]
    Original(BuildDriveError),
    /// The result is outside what can be modelled.
    #[error("the scaled drive: {0}")]
    Scaled(BuildDriveError),
}

impl YearlyRates {
    /// IBM's server disks of the ten years before 2003: tr03 section 5.1 and figure 17 (seek time
    /// -8 %, speed +9 %), section 5.2 and figure 20 (linear density +21 %, track density +24 %);
    /// all four in table 11. "Decreases by about 8% per year" is taken to mean a factor of 0.92.
    pub const HISTORICAL: Self =
        Self { seek: -0.08, rpm: 0.09, linear_density: 0.21, track_density: 0.24 };
}

impl Default for YearlyRates {
    fn default() -> Self {
        Self::HISTORICAL
    }
}

impl Default for Scaling {
    /// Nothing changes.
    fn default() -> Self {
        Self { seek: 1.0, rpm: 1.0, linear_density: 1.0, track_density: 1.0, surfaces: 1.0 }
    }
}

impl Scaling {
    /// `years` of change at these rates, compounded; years may be fractions, or negative for
    /// drives of the past.
    pub fn by_years(years: f64, rates: &YearlyRates) -> Self {
        Self {
            seek: factor(rates.seek, years),
            rpm: factor(rates.rpm, years),
            linear_density: factor(rates.linear_density, years),
            track_density: factor(rates.track_density, years),
            surfaces: 1.0,
        }
    }

    /// Scaling with the track density that makes the scaled drive hold this capacity, to the whole
    /// cylinders of its zones.
    ///
    /// Errors: those of [`Self::apply`]; the factor `track-density` is out of range where the capacity is too
    /// small or too large.
    pub fn to_capacity(mut self, spec: &DriveSpec, capacity: Bytes) -> Result<Self, ScaleError> {
        self.track_density = 1.0;
        // What is set aside does not grow exactly with the tracks: the second factor is the small rest.
        for _ in 0..2 {
            let scaled = self.apply(spec)?;
            let built = Drive::build(&scaled).map_err(ScaleError::Scaled)?;
            let made = built.total_blocks().bytes();
            self.track_density *= capacity.get() as f64 / made.get() as f64;
        }
        self.check()?;
        Ok(self)
    }

    /// The scaled drive. It is called after the original and the factors, as in
    /// `atlas10k+seek0.8+rpm1.5`, and builds. With every factor 1 the spec comes back equal.
    ///
    /// Errors: a factor out of range; an original, or a result, that [`Drive::build`] refuses.
    pub fn apply(&self, spec: &DriveSpec) -> Result<DriveSpec, ScaleError> {
        self.check()?;
        let original = Drive::build(spec).map_err(ScaleError::Original)?;
        let spec = &zones::without_lost(spec, self);
        let mut scaled = spec.clone();
        scaled.rotation_period = scale_time(spec.rotation_period, 1.0 / self.rpm);
        scaled.head_switch = scale_time(spec.head_switch, self.seek);
        scaled.seek = self.seek_spec(spec).map_err(ScaleError::Original)?;
        let switch = &mut scaled.electronics.read_write_switch;
        *switch = scale_time(*switch, self.seek);
        if let Some(zoned) = &mut scaled.zoned {
            let capacity = self.linear_density * self.track_density * self.surfaces;
            let conventional = f64::from(zoned.conventional_zones) * capacity;
            zoned.conventional_zones = conventional as u32;
        }
        scaled.cylinders = zones::scale_count(spec.cylinders, self.track_density);
        scaled.surfaces = Surfaces::of(spec.surfaces, self.surfaces).count;
        scaled.zones = zones::scale(spec, self);
        // A scaled drive was never made, advertised or measured.
        if *self != Self::default() {
            scaled.advertised = Advertised::default();
            scaled.measured_on = None;
        }
        scaled.held_out = Vec::new();
        let built = Drive::build(&scaled).map_err(ScaleError::Scaled)?;
        skews::choose(&mut scaled, self, spec, &original, &built);
        sources::describe(&mut scaled, self, spec);
        Ok(scaled)
    }

    fn check(&self) -> Result<(), ScaleError> {
        for (name, factor) in self.named() {
            if !(FACTOR_MIN..=FACTOR_MAX).contains(&factor) {
                return Err(ScaleError::Factor { name, factor });
            }
        }
        Ok(())
    }

    fn named(&self) -> [(&'static str, f64); 5] {
        [
            ("seek", self.seek),
            ("rpm", self.rpm),
            ("linear-density", self.linear_density),
            ("track-density", self.track_density),
            ("surfaces", self.surfaces),
        ]
    }

    /// True if sectors get other places than they had.
    fn moves_sectors(&self) -> bool {
        self.linear_density != 1.0 || self.track_density != 1.0 || self.surfaces != 1.0
    }

    fn seek_spec(&self, spec: &DriveSpec) -> Result<SeekSpec, BuildDriveError> {
        let scale = |curve| {
            let stretched = curves::stretch(curve, spec.cylinders, self.track_density)?;
            Ok(curves::multiply(stretched, self.seek))
        };
        Ok(SeekSpec {
            read: scale(spec.seek.read.clone())?,
            write: spec.seek.write.clone().map(scale).transpose()?,
            write_settle: scale_time(spec.seek.write_settle, self.seek),
            tolerance: scale_time(spec.seek.tolerance, self.seek),
        })
    }
}

/// libm and not the platform's function: the same drive on every machine.
fn factor(rate: f64, years: f64) -> f64 {
    libm::pow(1.0 + rate, years)
}

/// To the nearest nanosecond.
fn scale_time(time: SimDuration, factor: f64) -> SimDuration {
    SimDuration::from_ns((time.ns() as f64 * factor).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yearly_rates_are_table_11_compounded() {
        let year = Scaling::by_years(1.0, &YearlyRates::default());
        assert_eq!(year.named().map(|(_, factor)| factor), [0.92, 1.09, 1.21, 1.24, 1.0]);
        let ten = Scaling::by_years(10.0, &YearlyRates::default());
        for ((_, one), (name, ten)) in year.named().into_iter().zip(ten.named()) {
            assert!((ten / one.powi(10) - 1.0).abs() < 1e-12, "{name}: {ten}");
        }
        assert_eq!(Scaling::by_years(0.0, &YearlyRates::default()), Scaling::default());
    }

    /// Table 11: areal density grows by 49 % a year.
    #[test]
    fn densities_together_grow_as_areal_density() {
        let year = Scaling::by_years(1.0, &YearlyRates::default());
        assert!((year.linear_density * year.track_density - 1.49).abs() < 0.015);
    }
}
