//! Several drives.

use freewheel_model::array::Striping;
use freewheel_model::drive::Drive;
use freewheel_units::{Blocks, Bytes};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ConfigError;

/// Several drives of the same kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ArrayConfig {
    /// What the drives have to do with each other.
    pub layout: Layout,
    /// How many. When absent one, and with a trace on independent drives one for each of its
    /// devices; no other number is allowed there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drives: Option<u32>,
    /// Consecutive bytes on one drive before the next one's turn, when they are striped.
    pub stripe_unit: Bytes,
}

/// What several drives have to do with each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// One volume, striped over them (RAID-0).
    #[default]
    Striped,
    /// Nothing: a generated workload runs once on each, with a seed of its own for each, and each
    /// device of a trace has a drive of its own. Time begins on every drive with its first request.
    Independent,
}

impl Default for ArrayConfig {
    /// One drive; stripe units of 64 KiB are what md and most controllers begin with.
    fn default() -> Self {
        Self { layout: Layout::Striped, drives: None, stripe_unit: Bytes::new(64 << 10) }
    }
}

impl ArrayConfig {
    pub(super) fn is_single(&self) -> bool {
        self.layout == Layout::Striped && self.drives.unwrap_or(1) == 1
    }
}

/// Most drives in one experiment.
pub(crate) const DRIVES_MAX: u32 = 100_000;

/// Every actuator is an arm of its own. Of independent drives each is a volume.
pub(super) fn striping(array: &ArrayConfig, drive: &Drive) -> Result<Striping, ConfigError> {
    let wrong = |message: String| Err(ConfigError::Array { message });
    let ArrayConfig { layout, drives, stripe_unit } = *array;
    let drives = drives.unwrap_or(1);
    if !(1..=DRIVES_MAX).contains(&drives) {
        return wrong(format!("`drives` is {drives}: 1 to {DRIVES_MAX} are allowed"));
    }
    let unit = stripe_unit.get() / 512;
    let fits = (1..=drive.total_blocks().get()).contains(&unit) && stripe_unit.get() % 512 == 0;
    if drives > 1 && !fits {
        return wrong(format!(
            "`stripe_unit` is {stripe_unit}: whole blocks of 512 B are needed, at least one and no more than a drive holds"
        ));
    }
    let drives = if layout == Layout::Striped { drives } else { 1 };
    Ok(Striping::new(drives, drive.actuators(), drive.blocks(), Blocks::new(unit)))
}
