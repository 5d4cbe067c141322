//! The disks and the log of a `files` workload, from their files.

use std::sync::Arc;

use freewheel_array::config::FilesWorkload;
use freewheel_array::files::{Disk, FilesSetup, unsynchronised};
use freewheel_model::drive::spec::DriveSpec;
use freewheel_model::zoned::spec::ZonedKind;
use freewheel_units::Blocks;

use super::web_log::LoggedUse;
use crate::config::{ConfigError, DRIVES_MAX};
use crate::library;
use crate::toml_faults::check_whole;

/// A workload made ready on `drives` disks of `spec`, and those that it adds. Sizes are multiples of the
/// largest of their sectors, `sector_of` each.
pub(crate) fn files_setup(
    workload: &FilesWorkload,
    spec: &DriveSpec,
    drives: u32,
    sector_of: impl Fn(&DriveSpec) -> Blocks,
    seed: u64,
) -> Result<FilesSetup, ConfigError> {
    let (specs, disks) = disks(workload, spec, drives)?;
    let sector = specs.iter().map(sector_of).max().unwrap_or(Blocks::new(1));
    check_whole("align", workload.align, sector.bytes()).map_err(wrong)?;
    let logged = match &workload.log {
        Some(log) => Some(LoggedUse::read(log, sector)?.logged),
        None => None,
    };
    let setup = FilesSetup::new(workload, (specs, disks), sector, logged, seed).map_err(wrong)?;
    // Files that do not fit are known before anything runs.
    setup.place().map_err(wrong)?;
    Ok(setup)
}

fn wrong(message: String) -> ConfigError {
    ConfigError::Workload { message }
}

/// The disks: each turns at its own rate.
fn disks(
    workload: &FilesWorkload,
    spec: &DriveSpec,
    drives: u32,
) -> Result<(Vec<DriveSpec>, Vec<Disk>), ConfigError> {
    let mut specs = vec![(spec.clone(), drives)];
    for (number, more) in workload.more_disks.iter().enumerate() {
        let spec = library::spec(&more.drive).map_err(|error| ConfigError::Workload {
            message: format!("`more_disks[{number}].drive`: {error}"),
        })?;
        if spec.zoned.is_some_and(|zoned| zoned.kind == ZonedKind::HostManaged) {
            let message = format!(
                "`more_disks[{number}].drive` is {}: a host-managed drive does not take the writes of files, so name another",
                more.drive
            );
            return Err(ConfigError::Workload { message });
        }
        specs.push((spec, more.count));
    }
    let all: u64 = specs.iter().map(|(_, count)| u64::from(*count)).sum();
    if all > u64::from(DRIVES_MAX) {
        let message = format!("there are {all} disks: at most {DRIVES_MAX} are allowed");
        return Err(ConfigError::Workload { message });
    }
    let mut disks = Vec::new();
    for (kind, (spec, count)) in specs.iter().enumerate() {
        let built = unsynchronised(spec, *count)
            .map_err(|source| library::DriveError::Build { origin: spec.name.clone(), source })?;
        // Each actuator of a drive is a separate disk.
        disks.extend(built.into_iter().flat_map(|drive| {
            let actuators = drive.actuators() as usize;
            (0..actuators).map(move |_| Disk { drive: Arc::clone(&drive), kind })
        }));
    }
    Ok((specs.into_iter().map(|(spec, _)| spec).collect(), disks))
}
