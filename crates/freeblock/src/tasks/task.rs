//! One task's state.

use freewheel_units::{Blocks, Bytes, SimDuration, SimTime};

use super::grid::{BlockGrid, BlockRun};
use super::spec::{TaskSpec, Until};
use crate::bitmap::Bitmap;

/// A task that has not ended.
#[derive(Debug, Clone)]
pub(super) struct Task {
    /// Without its extents, which are in the parts.
    pub spec: TaskSpec,
    pub parts: Vec<TaskPart>,
    /// Number of the current round, from zero.
    pub round: u64,
    pub since: SimTime,
    /// Blocks delivered in this round.
    pub delivered: u64,
    /// Blocks delivered in all rounds.
    pub delivered_total: u64,
}

/// Blocks of a task with one alignment, which are on one layer of the scheduler.
#[derive(Debug, Clone)]
pub(super) struct TaskPart {
    pub grid: BlockGrid,
    pub layer: usize,
    /// Blocks that gaps may take; None while the task is alone on its layer, and the layer's blocks are its
    /// own.
    pub own: Option<Bitmap>,
    /// Blocks that the foreground queue has been asked for.
    pub promoted: Option<Bitmap>,
    /// Blocks that wait for a write to the same place.
    pub deferred: Option<Bitmap>,
    /// Blocks that the next round wants.
    pub repeats: Vec<BlockRun>,
}

/// Progress of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Blocks of the task that are still wanted.
    pub wanted: u64,
    /// Blocks of them that the foreground queue has been asked for.
    pub promoted: u64,
    /// Blocks of them that wait for a write to the same place.
    pub deferred: u64,
    /// Blocks of the task that were delivered in this round.
    pub delivered: u64,
    /// In all rounds.
    pub delivered_total: u64,
    /// Rounds that are complete.
    pub rounds: u64,
    /// Time at which this round began.
    pub since: SimTime,
    /// Worth of a block of 512 B beside those of other tasks now.
    pub weight: u32,
    /// Time at which this round will be complete at the rate it has had. None before the first delivery,
    /// and for tasks that have no end.
    pub end_estimate: Option<SimTime>,
}

/// State of a wanted block. A write can be both, with newer data than the promoted ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Wanted {
    /// In a gap, or it waits for a write to the same place.
    pub in_gap: bool,
    /// By a foreground request that has been asked for.
    pub promoted: bool,
}

impl Task {
    pub fn new(spec: TaskSpec, since: SimTime) -> Self {
        let spec = TaskSpec { extents: Vec::new(), ..spec };
        Self { spec, parts: Vec::new(), round: 0, since, delivered: 0, delivered_total: 0 }
    }

    /// Blocks that may still be delivered in this round.
    pub fn left(&self) -> u64 {
        match self.spec.until {
            Until::Enough(enough) => enough - self.delivered,
            _ => u64::MAX,
        }
    }

    /// Blocks of 512 B delivered in all rounds.
    pub fn delivered_blocks(&self) -> Blocks {
        Blocks::new(self.delivered_total * u64::from(self.spec.block_size))
    }

    pub fn part_on(&self, layer: usize) -> Option<usize> {
        self.parts.iter().position(|part| part.layer == layer)
    }

    /// Progress of the task; `free` blocks, each worth `weight`, may still be taken in gaps.
    pub fn progress(&self, free: u64, weight: u32, now: SimTime) -> Progress {
        let promoted: u64 = self.parts.iter().map(|part| count(&part.promoted)).sum();
        let deferred: u64 = self.parts.iter().map(|part| count(&part.deferred)).sum();
        let wanted = free + promoted + deferred;
        let left = match self.spec.until {
            Until::Standing => None,
            _ => Some(wanted.min(self.left())),
        };
        let end_estimate = left.filter(|_| self.delivered > 0).map(|left| {
            let elapsed = now.saturating_since(self.since).ns();
            let ns = u128::from(elapsed) * u128::from(left) / u128::from(self.delivered);
            let limit = SimTime::MAX.saturating_since(now).ns();
            now + SimDuration::from_ns(u64::try_from(ns).unwrap_or(limit).min(limit))
        });
        Progress {
            wanted,
            promoted,
            deferred,
            delivered: self.delivered,
            delivered_total: self.delivered_total,
            rounds: self.round,
            since: self.since,
            weight,
            end_estimate,
        }
    }

    pub fn memory(&self) -> Bytes {
        self.parts
            .iter()
            .map(|part| {
                let sets = [&part.own, &part.promoted, &part.deferred];
                let runs = part.repeats.capacity() * size_of::<BlockRun>();
                let runs = Bytes::new(runs as u64);
                sets.into_iter().flatten().fold(runs, |sum, set| sum + set.memory())
            })
            .fold(Bytes::ZERO, |sum, bytes| sum + bytes)
    }
}

impl TaskPart {
    pub fn promote(&mut self, run: BlockRun) {
        let blocks = self.grid.blocks;
        self.promoted.get_or_insert_with(|| Bitmap::new(blocks)).insert(run.0, run.1);
    }

    pub fn defer(&mut self, run: BlockRun) {
        let blocks = self.grid.blocks;
        self.deferred.get_or_insert_with(|| Bitmap::new(blocks)).insert(run.0, run.1);
    }
}

/// Members of a set that may not be there.
pub(super) fn count(set: &Option<Bitmap>) -> u64 {
    set.as_ref().map_or(0, Bitmap::count)
}
