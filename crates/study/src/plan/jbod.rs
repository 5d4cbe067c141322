//! A snapshot with its drives: what the balancer and the simulation work with.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use freewheel_array::rebalance::{BalanceDisk, BalanceFile, Balancer, DriveModel};
use freewheel_model::drive::Drive;
use freewheel_sim::library;
use freewheel_units::{BLOCK_BYTES, Blocks};

use super::error::PlanError;
use super::snapshot::{Snapshot, of_disk};

/// Disks with their drives, and files in blocks.
pub(super) struct Jbod {
    pub drives: Vec<Arc<Drive>>,
    /// True if each disk is shingled.
    pub shingled: Vec<bool>,
    models: Vec<DriveModel>,
    pub disks: Vec<BalanceDisk>,
    pub files: Vec<BalanceFile>,
    /// Share of each file's requests that read.
    pub reads: Vec<f64>,
}

impl Jbod {
    /// `origin` is the file of the snapshot, if it is just as the file says.
    pub fn new(snapshot: &Snapshot, origin: Option<&Path>) -> Result<Self, PlanError> {
        let (drives, shingled) = drives(snapshot, origin)?;
        let numbers = snapshot.disk_numbers();
        let files: Vec<BalanceFile> = snapshot
            .files
            .iter()
            .map(|entry| BalanceFile {
                blocks: entry.size.blocks_rounded_up(),
                request: entry.request.unwrap_or(entry.size).min(entry.size).blocks_rounded_up(),
                rate: entry.rate,
                disk: entry.disk.as_ref().map(|disk| numbers[disk]),
            })
            .collect();
        let capacities = capacities(snapshot, origin, &drives, &files)?;
        let rates: f64 = files.iter().map(|file| file.rate).sum();
        let reads: f64 = snapshot.files.iter().map(|entry| entry.rate * entry.reads).sum();
        let read_share = if rates > 0.0 { reads / rates } else { 1.0 };
        let (models, of_disks) = models(snapshot, &drives, read_share);
        let disks = capacities
            .iter()
            .zip(&of_disks)
            .map(|(&blocks, &model)| BalanceDisk { model, blocks })
            .collect();
        let reads = snapshot.files.iter().map(|entry| entry.reads).collect();
        Ok(Self { drives, shingled, models, disks, files, reads })
    }

    pub fn balancer(&self) -> Balancer<'_> {
        Balancer::new(&self.models, &self.disks, &self.files)
    }
}

/// The drive of each disk, and whether it is shingled.
fn drives(
    snapshot: &Snapshot,
    origin: Option<&Path>,
) -> Result<(Vec<Arc<Drive>>, Vec<bool>), PlanError> {
    let mut built: BTreeMap<&str, (Arc<Drive>, bool)> = BTreeMap::new();
    let (mut drives, mut shingled) = (Vec::new(), Vec::new());
    for (entry, disk) in snapshot.disks.iter().enumerate() {
        let (drive, is_shingled) = match built.get(disk.drive.as_str()) {
            Some(known) => known.clone(),
            None => {
                let drive = library::drive(&disk.drive);
                let (spec, drive) =
                    drive.map_err(|error| of_disk(origin, entry, "drive", error.to_string()))?;
                (Arc::new(drive), spec.zoned.is_some())
            }
        };
        built.insert(&disk.drive, (Arc::clone(&drive), is_shingled));
        drives.push(drive);
        shingled.push(is_shingled);
    }
    Ok((drives, shingled))
}

/// Capacity of each disk. Err for one that holds less than its files, or more than its drive.
fn capacities(
    snapshot: &Snapshot,
    origin: Option<&Path>,
    drives: &[Arc<Drive>],
    files: &[BalanceFile],
) -> Result<Vec<Blocks>, PlanError> {
    let mut used = vec![Blocks::ZERO; drives.len()];
    for file in files {
        if let Some(disk) = file.disk {
            used[disk as usize] += file.blocks;
        }
    }
    let mut all = Vec::new();
    for (entry, (disk, drive)) in snapshot.disks.iter().zip(drives).enumerate() {
        let used = used[entry];
        let size = disk.size.map_or(drive.blocks(), |size| Blocks::new(size.get() / BLOCK_BYTES));
        let (name, drive_name) = (&disk.name, &disk.drive);
        let wrong = |message: String| {
            let message = message + &actuators(drive);
            Err(of_disk(origin, entry, "size", message))
        };
        if size > drive.blocks() {
            return wrong(format!(
                "`{name}` has a size of {}, and a {drive_name} holds {}: leave `size` out, or name another drive",
                human(size),
                human(drive.blocks())
            ));
        }
        if used > size {
            return wrong(format!(
                "`{name}` holds {}, and its files have {} in all: correct `size`, `drive`, or the sizes of its files",
                human(size),
                human(used)
            ));
        }
        all.push(size);
    }
    Ok(all)
}

fn human(blocks: Blocks) -> String {
    blocks.bytes().human_decimal()
}

/// End of a message about a drive with several arms.
fn actuators(drive: &Drive) -> String {
    match drive.actuators() {
        1 => String::new(),
        count => format!("; the drive has {count} actuators, and each is a disk of its own here"),
    }
}

/// One model for each drive, and the number of the model of each disk.
fn models(
    snapshot: &Snapshot,
    drives: &[Arc<Drive>],
    read_share: f64,
) -> (Vec<DriveModel>, Vec<usize>) {
    let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
    let (mut models, mut of_disks) = (Vec::new(), Vec::new());
    for (entry, drive) in snapshot.disks.iter().zip(drives) {
        let number = numbers.entry(&entry.drive).or_insert_with(|| {
            models.push(DriveModel::new(Arc::clone(drive), read_share));
            models.len() - 1
        });
        of_disks.push(*number);
    }
    (models, of_disks)
}
