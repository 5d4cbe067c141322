//! Checks of a configuration, and what they work out.

use std::sync::Arc;

use freewheel_array::files::FilesSetup;
use freewheel_model::drive::Drive;
use freewheel_model::drive::spec::DriveSpec;
use freewheel_model::sched::linux::BlockLayer;
use freewheel_model::striping::Striping;
use freewheel_model::zoned::spec::ZonedKind;
use freewheel_units::{Blocks, Bytes};

use super::files::check_files;
use crate::background::FreeblockConfig;
use crate::config::{
    ConfigError, DRIVES_MAX, Layout, SimConfig, Workload, check_cache_spec, check_workload, sector,
};
use crate::postmark::PostmarkSpec;

/// Least that the drive can be asked for.
pub(super) fn least_bytes(config: &SimConfig, spec: &DriveSpec) -> Bytes {
    Blocks::new(sector(config, spec).logical_blocks().into()).bytes()
}

/// Disks and files, if files are the workload.
pub(super) fn files_setup(
    config: &SimConfig,
    spec: &DriveSpec,
) -> Result<Option<Arc<FilesSetup>>, ConfigError> {
    let Workload::Files(workload) = &config.workload else { return Ok(None) };
    check_files(config, spec)?;
    check_workload(&config.workload, None, Blocks::ZERO)?;
    let sector_of = |spec: &DriveSpec| Blocks::new(sector(config, spec).logical_blocks().into());
    let drives = config.array.drives.unwrap_or(1);
    let setup = crate::files::files_setup(workload, spec, drives, sector_of, config.seed)?;
    Ok(Some(Arc::new(setup)))
}

/// Err for a parameter out of range, and for a scheduler of Linux that would have to predict.
pub(super) fn check_scheduler(config: &SimConfig) -> Result<(), ConfigError> {
    if config.host.is_some() || !config.scheduler.is_linux() {
        config.scheduler.build()?;
    } else {
        BlockLayer::new(&config.scheduler, 1)?;
    }
    Ok(())
}

pub(super) fn check_cache(config: &SimConfig, spec: &DriveSpec) -> Result<(), ConfigError> {
    let Some(cache) = &config.cache else { return Ok(()) };
    let beside = [("freeblock", config.freeblock.is_some()), ("host", config.host.is_some())];
    if let Some((table, _)) = beside.iter().find(|(_, is_there)| *is_there) {
        let message = format!("`cache` and `{table}` exclude each other; leave one of them out");
        return Err(ConfigError::Cache { message });
    }
    if matches!(config.workload, Workload::Postmark(_)) {
        let message = "PostMark has a log and a cache of its own; leave `cache` out".into();
        return Err(ConfigError::Cache { message });
    }
    let refuses = spec.zoned.is_some_and(|zoned| zoned.kind == ZonedKind::HostManaged);
    if refuses && cache.write_buffer.is_some() {
        let message = "`write_buffer` does not go with a host-managed drive, which takes writes in the order of its write pointers: leave `write_buffer` out, or take another drive".into();
        return Err(ConfigError::Cache { message });
    }
    if cache.gaps_block().is_some() && config.has_electronics(spec) {
        let message = "`write_buffer.destage_in_gaps` needs `electronics = false`: a drive's own buffer and queue leave no gaps to use".into();
        return Err(ConfigError::Cache { message });
    }
    check_cache_spec(cache).map_err(|message| ConfigError::Cache { message })
}

pub(super) fn check_freeblock(
    config: &SimConfig,
    spec: &DriveSpec,
    drive: &Drive,
    striping: &Striping,
) -> Result<(), ConfigError> {
    let drives = match config.array.layout {
        Layout::Striped => 1,
        Layout::Independent => config.array.drives.unwrap_or(DRIVES_MAX),
    };
    let arms = u64::from(striping.arms()) * u64::from(drives);
    let moves = config.has_electronics(spec) && spec.electronics.media_cache.is_some();
    if config.freeblock.is_some() && config.host.is_none() && moves {
        let message = "inside a drive with a media cache no free work is planned, as the planner does not know where blocks are: leave `freeblock` out, give `host`, or take another drive".into();
        return Err(ConfigError::Freeblock { message });
    }
    let refuses = spec.zoned.is_some_and(|zoned| zoned.kind == ZonedKind::HostManaged);
    let check = |freeblock: &FreeblockConfig| {
        if refuses && freeblock.writes() {
            return Err("`kind` is write, and a host-managed drive takes writes at the write pointers of its zones alone: take another drive or another task".into());
        }
        freeblock.check(drive.blocks(), arms)
    };
    let checked = config.freeblock.as_ref().map_or(Ok(()), check);
    checked.map_err(|message| ConfigError::Freeblock { message })
}

/// Specification of PostMark, if that is the workload.
pub(super) fn postmark_spec(
    config: &SimConfig,
    spec: &DriveSpec,
    drive: &Drive,
    striping: &Striping,
) -> Result<Option<PostmarkSpec>, ConfigError> {
    let Workload::Postmark(workload) = &config.workload else { return Ok(None) };
    let is_volume = striping.arms() > 1 || config.array.layout == Layout::Independent;
    let refuses = spec.zoned.is_some_and(|zoned| zoned.kind == ZonedKind::HostManaged);
    let not_with_it = [
        (
            config.freeblock.is_some(),
            "`freeblock` does not go with it, as the gaps are its cleaner's: leave that out, and say `workload.cleaner = \"freeblock\"`",
        ),
        (config.host.is_some(), "`host` does not go with it: leave that out"),
        (
            is_volume,
            "its log is on one drive with one actuator: leave `array` out, or take another drive",
        ),
        (refuses, "a host-managed drive does not take the writes of its log: take another drive"),
    ];
    let checked = match not_with_it.iter().find(|(is_there, _)| *is_there) {
        Some((_, why)) => Err(format!("`kind` is postmark: {why}")),
        None => workload.spec(drive.blocks(), config.seed).map(Some),
    };
    checked.map_err(|message| ConfigError::Workload { message })
}

pub(super) fn check_host(config: &SimConfig) -> Result<(), ConfigError> {
    let Some(host) = &config.host else { return Ok(()) };
    if host.server && config.commands.is_some() {
        let message = "`server` and `commands` exclude each other, as a server passes no marks on: leave one of them out".into();
        return Err(ConfigError::Host { message });
    }
    let checked = host.check(config.freeblock.as_ref());
    checked.map_err(|message| ConfigError::Host { message })
}
