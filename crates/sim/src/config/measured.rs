//! The part of a run that results count, and its slices.

use super::{ConfigError, SimConfig, Workload};

/// Most slices of a run: each keeps two distributions, half a MiB.
const SLICES_MAX: u32 = 100;

impl SimConfig {
    /// True if results count the whole run as one part.
    pub(crate) fn is_measured_whole(&self) -> bool {
        self.warm_up == 0.0 && self.slices == 1
    }
}

pub(crate) fn check_measured(config: &SimConfig) -> Result<(), ConfigError> {
    let SimConfig { warm_up, slices, .. } = config;
    if !(0.0..1.0).contains(warm_up) {
        return wrong(format!("`warm_up` is {warm_up}: a share of 0 to below 1 is needed, as 0.4"));
    }
    if !(1..=SLICES_MAX).contains(slices) {
        return wrong(format!("`slices` is {slices}: 1 to {SLICES_MAX} are allowed"));
    }
    if config.is_measured_whole() {
        return Ok(());
    }
    let key = if *warm_up > 0.0 { "warm_up" } else { "slices" };
    let excluded = [
        ("freeblock", config.freeblock.is_some()),
        ("host", config.host.is_some()),
        ("workload.kind = \"postmark\"", matches!(config.workload, Workload::Postmark(_))),
    ];
    match excluded.iter().find(|(_, is_there)| *is_there) {
        Some((other, _)) => {
            wrong(format!("`{key}` and `{other}` exclude each other: leave one of them out"))
        }
        None => Ok(()),
    }
}

fn wrong<T>(message: String) -> Result<T, ConfigError> {
    Err(ConfigError::Measured { message })
}
