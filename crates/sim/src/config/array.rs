//! Several drives.

use freewheel_model::drive::Drive;
use freewheel_model::striping::Striping;
use freewheel_units::{Blocks, Bytes};
use schemars::JsonSchema;
use serde::ser::SerializeStruct;
use serde::{Deserialize, Serialize, Serializer};

use super::ConfigError;

/// Several drives of the same kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ArrayConfig {
    /// Relation between the drives.
    pub layout: Layout,
    /// Number of drives. Default one; for a trace on independent drives one for each of its devices,
    /// and no other number is allowed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drives: Option<u32>,
    /// Consecutive bytes on one drive of a striped volume.
    pub stripe_unit: Bytes,
    /// Relation between the turns of a striped volume's drives.
    pub spindles: Spindles,
    /// True if files lie on the drives, which then make no volume: layout, stripe unit and spindles mean
    /// nothing, and are not written. A run finds that out.
    #[serde(skip)]
    pub holds_files: bool,
}

impl Serialize for ArrayConfig {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut array = serializer.serialize_struct("ArrayConfig", 4)?;
        if !self.holds_files {
            array.serialize_field("layout", &self.layout)?;
        }
        if let Some(drives) = self.drives {
            array.serialize_field("drives", &drives)?;
        }
        if !self.holds_files {
            array.serialize_field("stripe_unit", &self.stripe_unit)?;
            array.serialize_field("spindles", &self.spindles)?;
        }
        array.end()
    }
}

/// Relation between several drives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// One volume, striped over all drives (RAID-0).
    #[default]
    Striped,
    /// Independent drives. A generated workload runs once on each, with a separate seed; each device of
    /// a trace has its drive. Time starts on every drive with its first request.
    Independent,
}

/// Relation between the turns of several drives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Spindles {
    /// Each turns at a rate of its own: up to 0.3 % slower than the drive's file says, so any two drift through
    /// all angles. A request over several drives waits for the longest of several rotational latencies.
    #[default]
    Free,
    /// All turn in phase, as with synchronised spindles. A request over several drives waits for one
    /// rotational latency.
    Synchronised,
}

impl Default for ArrayConfig {
    /// One drive. 64 KiB is the default stripe unit of md and most controllers.
    fn default() -> Self {
        let stripe_unit = Bytes::new(64 << 10);
        let spindles = Spindles::default();
        Self { layout: Layout::Striped, drives: None, stripe_unit, spindles, holds_files: false }
    }
}

impl ArrayConfig {
    pub(crate) fn is_single(&self) -> bool {
        self.layout == Layout::Striped && self.drives.unwrap_or(1) == 1
    }

    /// Number of drives with rates of their own.
    pub(crate) fn free_spindles(&self) -> u32 {
        match (self.layout, self.spindles) {
            (Layout::Striped, Spindles::Free) if !self.holds_files => self.drives.unwrap_or(1),
            _ => 1,
        }
    }
}

/// Most drives in one experiment.
pub(crate) const DRIVES_MAX: u32 = 100_000;

/// Striping over the actuators, each of which is an arm. Each independent drive is a volume.
pub(crate) fn striping(array: &ArrayConfig, drive: &Drive) -> Result<Striping, ConfigError> {
    let ArrayConfig { layout, drives, stripe_unit, .. } = *array;
    let drives = drives.unwrap_or(1);
    if !(1..=DRIVES_MAX).contains(&drives) {
        return Err(ConfigError::Array {
            message: format!("`drives` is {drives}: 1 to {DRIVES_MAX} are allowed"),
        });
    }
    let unit = stripe_unit.get() / 512;
    let fits = (1..=drive.total_blocks().get()).contains(&unit) && stripe_unit.get() % 512 == 0;
    if drives > 1 && !fits {
        return Err(ConfigError::Array {
            message: format!(
                "`stripe_unit` is {stripe_unit}: whole blocks of 512 B are needed, from one block to the capacity of a drive"
            ),
        });
    }
    let drives = if layout == Layout::Striped { drives } else { 1 };
    Ok(Striping::new(drives, drive.actuators(), drive.blocks(), Blocks::new(unit)))
}
