//! Checks of an experiment on a drive that takes whole sectors of 4 KiB only.

use freewheel_model::drive::spec::DriveSpec;
use freewheel_model::electronics::spec::SectorFormat;
use freewheel_units::Blocks;

use super::{ConfigError, Layout, SimConfig, Workload, check_cache_sectors};
use crate::source::SizeDistribution;
use crate::toml_faults::check_whole;

/// Sector format of the drive in the run.
pub(crate) fn sector(config: &SimConfig, spec: &DriveSpec) -> SectorFormat {
    let habit = config.host.and_then(|host| host.behaviour.sector);
    let own = config.has_electronics(spec).then_some(spec.electronics.sector);
    habit.or(own).unwrap_or_default()
}

/// Err for requests, tasks and stripes that split sectors of a 4Kn drive. The replay checks each
/// request of a trace.
pub(crate) fn check_sectors(config: &SimConfig, spec: &DriveSpec) -> Result<(), ConfigError> {
    let least = Blocks::new(sector(config, spec).logical_blocks().into()).bytes();
    if let Workload::Closed { pattern, .. } | Workload::Open { pattern, .. } = &config.workload {
        // Exponential sizes are multiples of the alignment.
        let size = match pattern.size_distribution {
            SizeDistribution::Fixed => pattern.size,
            SizeDistribution::Exponential | SizeDistribution::Geometric => pattern.align,
        };
        check_whole("pattern.align", pattern.align, least)
            .and_then(|()| check_whole("pattern.size", size, least))
            .map_err(|message| ConfigError::Workload { message })?;
    }
    if let Some(tasks) = &config.freeblock {
        tasks.check_sectors(least).map_err(|message| ConfigError::Freeblock { message })?;
    }
    if let Some(cache) = &config.cache {
        check_cache_sectors(cache, least).map_err(|message| ConfigError::Cache { message })?;
    }
    let array = &config.array;
    if array.layout == Layout::Striped && array.drives.unwrap_or(1) > 1 {
        check_whole("stripe_unit", array.stripe_unit, least)
            .map_err(|message| ConfigError::Array { message })?;
    }
    Ok(())
}
