//! The drive as technology of another year, or another member of its family.

use freewheel_model::drive::scale::{FACTOR_MAX, FACTOR_MIN, ScaleError, Scaling, YearlyRates};
use freewheel_model::drive::spec::DriveSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ConfigError;

/// Factors by which a drive differs from its file. A factor that is given takes the place of the one that
/// the years make. Skews are chosen anew; electronics stay.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ScaleConfig {
    /// Years of change at the rates of IBM's server disks up to 2003 (tr03 table 11): seek times -8 %,
    /// speed of rotation +9 %, linear density +21 %, track density +24 % a year.
    pub years: f64,
    /// Factor of all times of the arm.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seek: Option<f64>,
    /// Factor of the speed of rotation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rpm: Option<f64>,
    /// Factor of the blocks on a track.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub linear_density: Option<f64>,
    /// Factor of the tracks on the same breadth.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub track_density: Option<f64>,
    /// Factor of the surfaces: another member of the family. A part of a surface ends the data before the
    /// innermost cylinders.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub surfaces: Option<f64>,
}

impl ScaleConfig {
    /// The factors of years and keys together.
    pub fn scaling(&self) -> Scaling {
        let by_years = Scaling::by_years(self.years, &YearlyRates::HISTORICAL);
        Scaling {
            seek: self.seek.unwrap_or(by_years.seek),
            rpm: self.rpm.unwrap_or(by_years.rpm),
            linear_density: self.linear_density.unwrap_or(by_years.linear_density),
            track_density: self.track_density.unwrap_or(by_years.track_density),
            surfaces: self.surfaces.unwrap_or(by_years.surfaces),
        }
    }

    pub(crate) fn apply(&self, spec: DriveSpec) -> Result<DriveSpec, ConfigError> {
        if *self == Self::default() {
            return Ok(spec);
        }
        self.scaling()
            .apply(&spec)
            .map_err(|error| ConfigError::Scale { message: self.explain(&error) })
    }

    fn explain(&self, error: &ScaleError) -> String {
        let ScaleError::Factor { name, factor } = error else { return error.to_string() };
        let (key, allowed) = (name.replace('-', "_"), format!("{FACTOR_MIN} to {FACTOR_MAX}"));
        if self.is_given(name) {
            return format!("`{key}` is {factor}: {allowed} are allowed");
        }
        format!(
            "`years` is {}, which makes `{key}` {factor}: {allowed} are allowed; take fewer years, or give `{key}` itself",
            self.years
        )
    }

    /// True if the factor of this name is a key and no result of years.
    fn is_given(&self, name: &str) -> bool {
        let given = match name {
            "seek" => self.seek,
            "rpm" => self.rpm,
            "linear-density" => self.linear_density,
            "track-density" => self.track_density,
            _ => self.surfaces,
        };
        given.is_some()
    }
}
