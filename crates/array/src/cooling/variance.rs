//! True if a move pays: disk heat variance with the move's own cost (tr96 section 3.2, after its \[72\]).

use freewheel_units::Blocks;

use crate::heat::HeatAmount;
use crate::partition::{DiskModel, DiskQueue};

/// Mean squared distance of the disks' heats from their mean.
pub fn heat_variance(heats: &[f64]) -> f64 {
    let count = heats.len() as f64;
    let mean = heats.iter().sum::<f64>() / count;
    heats.iter().map(|heat| (heat - mean) * (heat - mean)).sum::<f64>() / count
}

/// Load of a disk without the move.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DiskLoad {
    /// Commands a second.
    pub rate: f64,
    /// Mean blocks of 512 bytes of a command.
    pub blocks: f64,
}

/// Cost of moves by the queueing model.
#[derive(Debug, Clone, Copy)]
pub struct MoveCosts<'a> {
    /// Each disk; they may be unlike.
    pub disks: &'a [DiskModel],
    /// Blocks of 512 bytes in a block of `disks`.
    pub block_size: Blocks,
    /// Load of each disk.
    pub loads: &'a [DiskLoad],
    /// Blocks that one command of a move reads or writes.
    pub piece: Blocks,
    /// Unit in which heat is counted.
    pub amount: HeatAmount,
}

/// Reading or writing the moved blocks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MovePhase {
    /// Time that it takes, in seconds.
    pub duration_s: f64,
    /// Heat that it adds to its disk meanwhile.
    pub heat: f64,
}

/// Largest utilisation of a disk that the estimate of the wait of a move's pieces assumes.
const BUSY_MAX: f64 = 0.95;

impl MoveCosts<'_> {
    /// Reading or writing `blocks` blocks piece by piece on `disk`: each piece waits in the disk's queue. A
    /// disk that cannot serve its load counts as 95 % busy: no wait would be long enough, and it is
    /// the one that needs moves.
    pub fn phase(&self, disk: u32, blocks: Blocks) -> MovePhase {
        let (model, load) = (&self.disks[disk as usize], &self.loads[disk as usize]);
        let in_model = |blocks: f64| blocks / self.block_size.get() as f64;
        let of_clients = model.service(in_model(load.blocks).max(1.0));
        let rate = load.rate.min(BUSY_MAX / of_clients.mean);
        let queue = DiskQueue::new(rate, of_clients).expect("a rate that the disk sustains");
        let pieces = blocks.get().div_ceil(self.piece.get());
        let size = blocks.get() as f64 / pieces as f64;
        let service = model.service(in_model(size).max(1.0));
        let duration_s = pieces as f64 * (queue.wait_s() + service.mean);
        // A move of whole pieces and a last shorter one: the amount is linear in blocks.
        let whole = (pieces - 1) as f64 * self.amount.of_access(self.piece);
        let last = Blocks::new(blocks.get() - (pieces - 1) * self.piece.get());
        MovePhase { duration_s, heat: (whole + self.amount.of_access(last)) / duration_s }
    }
}

/// A move to be judged.
#[derive(Debug, Clone, Copy, PartialEq)]
#[allow(missing_docs)]
pub struct Considered {
    pub from: u32,
    pub to: u32,
    pub blocks: Blocks,
    pub heat: f64,
}

/// Variance times seconds that a move saves within `horizon_s` after it, less its own cost. The read phase
/// heats the source, the write phase the target. Positive for a move that pays.
pub fn variance_gain(
    heats: &[f64],
    considered: &Considered,
    horizon_s: f64,
    costs: &MoveCosts<'_>,
) -> f64 {
    let Considered { from, to, blocks, heat } = *considered;
    let before = heat_variance(heats);
    let with = |changes: &[(u32, f64)]| {
        let mut changed = heats.to_vec();
        changes.iter().for_each(|&(disk, heat)| changed[disk as usize] += heat);
        heat_variance(&changed)
    };
    let (read, write) = (costs.phase(from, blocks), costs.phase(to, blocks));
    let cost = read.duration_s * (with(&[(from, read.heat)]) - before)
        + write.duration_s * (with(&[(to, write.heat)]) - before);
    horizon_s * (before - with(&[(from, -heat), (to, heat)])) - cost
}
