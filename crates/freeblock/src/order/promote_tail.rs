//! The cost at which the last blocks of a round become foreground requests.

use freewheel_units::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Promotion of the last blocks of a round to foreground requests, so that it ends sooner.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PromoteTail {
    /// Largest share of a round's time that heads spend on promoted requests. Mean response grows by
    /// about this share where requests always wait, and by more in an open workload near saturation.
    pub cost: f64,
    /// Most promoted requests at a time.
    #[serde(default = "one")]
    pub outstanding: u32,
    /// Most bytes in one promoted request; consecutive blocks are merged. By default 64 KiB, or a block of the
    /// task where that is larger.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merged_max: Option<Bytes>,
}

const fn one() -> u32 {
    1
}

/// Assumed: the largest block in osdi00's experiments.
const MERGED_MAX: Bytes = Bytes::from_kib(64);

impl PromoteTail {
    /// A tail with this cost and defaults otherwise.
    pub fn at(cost: f64) -> Self {
        Self { cost, outstanding: one(), merged_max: None }
    }

    /// Most bytes in one promoted request of a task with blocks of this size.
    pub fn merged_max(&self, block_size: Bytes) -> Bytes {
        self.merged_max.unwrap_or(MERGED_MAX.max(block_size))
    }

    /// Checks the table for blocks of this size. Names the wrong key.
    pub(super) fn check(&self, block_size: Bytes) -> Result<(), String> {
        let Self { cost, outstanding, .. } = *self;
        let merged_max = self.merged_max(block_size);
        if !(cost > 0.0 && cost <= 1.0) {
            return Err(format!("`cost` is {cost}: more than 0 and at most 1 is allowed"));
        }
        if outstanding == 0 {
            return Err("`outstanding` is 0: at least 1 is needed".into());
        }
        let most = Bytes::new(u64::from(u32::MAX) * 512);
        if merged_max < block_size || merged_max > most {
            return Err(format!(
                "`merged_max` is {merged_max}: from a block of {block_size} to {most} is allowed"
            ));
        }
        Ok(())
    }
}
