//! The recent load of each disk, from which the variance rule estimates what a move costs.

use std::sync::Arc;

use crate::cooling::{DiskLoad, MoveCosts};
use crate::heat::HeatAmount;
use crate::partition::{DiskModel, DiskUse};
use crate::placement::Placement;
use freewheel_model::drive::Drive;
use freewheel_units::{Blocks, Bytes, SimTime};

/// Weight of the load since the last step; older load fades. A step sees few requests of each disk.
const NEW_WEIGHT: f64 = 0.25;

const BLOCK: Blocks = Blocks::new(1);

/// Clients' load of each disk, as a moving average.
pub struct DiskLoads {
    models: Vec<DiskModel>,
    loads: Vec<DiskLoad>,
    since_step: Vec<Counted>,
    step: SimTime,
    has_loads: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Counted {
    pieces: u64,
    blocks: u64,
}

impl DiskLoads {
    /// Disks that are filled as in `placement`.
    pub(super) fn new(drives: &[Arc<Drive>], placement: &Placement, read_share: f64) -> Self {
        let disks = drives.len();
        Self {
            models: drives
                .iter()
                .zip(0..)
                .map(|(drive, number)| {
                    let capacity = drive.blocks().get() as f64;
                    let free = placement.space(number).free().get() as f64;
                    let filled_share = (1.0 - free / capacity).clamp(1.0 / capacity, 1.0);
                    let block = Bytes::new(512 * BLOCK.get());
                    DiskModel::of(drive, &DiskUse { filled_share, read_share, block })
                })
                .collect(),
            loads: vec![DiskLoad { rate: 0.0, blocks: 1.0 }; disks],
            since_step: vec![Counted::default(); disks],
            step: SimTime::ZERO,
            has_loads: false,
        }
    }

    /// A piece of a client's request goes to a disk.
    pub(super) fn arrived(&mut self, disk: u32, blocks: Blocks) {
        let counted = &mut self.since_step[disk as usize];
        counted.pieces += 1;
        counted.blocks += blocks.get();
    }

    /// A step of the daemon: takes in what has come since the last one.
    pub(super) fn step(&mut self, now: SimTime) {
        let seconds = (now - self.step).as_secs_f64();
        if seconds <= 0.0 {
            return;
        }
        let weight = if self.has_loads { NEW_WEIGHT } else { 1.0 };
        for (load, counted) in self.loads.iter_mut().zip(&mut self.since_step) {
            let Counted { pieces, blocks } = std::mem::take(counted);
            load.rate += weight * (pieces as f64 / seconds - load.rate);
            if pieces > 0 {
                load.blocks += weight * (blocks as f64 / pieces as f64 - load.blocks);
            }
        }
        self.step = now;
        self.has_loads = true;
    }

    /// Present cost of moves.
    pub(super) fn costs(&self, piece: Blocks, amount: HeatAmount) -> MoveCosts<'_> {
        MoveCosts { disks: &self.models, block_size: BLOCK, loads: &self.loads, piece, amount }
    }
}
