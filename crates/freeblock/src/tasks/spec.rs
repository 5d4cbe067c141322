//! Specification of a task, and reasons to refuse it.

use std::collections::BTreeMap;
use std::fmt;

use freewheel_units::{Blocks, Bytes, Lbn, Op, SimDuration};
use thiserror::Error;

use super::grid::{BlockGrid, BlockRun};
use super::kind::Priority;

/// Largest block of a task, in blocks of 512 B: 1 MiB. Assumed: sixteen times the largest block
/// that osdi00 looks at, and less than a track of a drive of today.
pub const BLOCK_SIZE_MAX: u32 = 2048;

/// Most layers at once. Assumed: every decision looks at all of them, and sixteen alignments of
/// 64 KiB blocks in both directions shall fit.
pub const LAYERS_MAX: usize = 32;

/// Most extents that a repeating task may consist of, since they are kept for its next round.
/// Assumed: 1 MiB.
pub const REPEATED_EXTENTS_MAX: usize = 1 << 16;

/// Number of a task, never given twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub(super) u64);

impl fmt::Display for TaskId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "task {}", self.0)
    }
}

/// Consecutive blocks of a drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Extent {
    /// First block of 512 B.
    pub start: Lbn,
    /// Number of blocks of 512 B.
    pub blocks: Blocks,
}

impl Extent {
    /// `blocks` from `start` on.
    pub const fn new(start: u64, blocks: u64) -> Self {
        Self { start: Lbn::new(start), blocks: Blocks::new(blocks) }
    }

    /// Blocks of a task on the drive.
    pub(super) fn of(grid: &BlockGrid, run: BlockRun) -> Self {
        let (from, to) = grid.bounds(run);
        Self::new(from, to - from)
    }

    /// `from..to`. None when its end cannot be counted.
    pub(super) fn bounds(&self) -> Option<(u64, u64)> {
        let from = self.start.get();
        from.checked_add(self.blocks.get()).map(|to| (from, to))
    }
}

impl fmt::Display for Extent {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} + {}", self.start, self.blocks)
    }
}

/// Foreground transfers that deliver a wanted block in passing. What a foreground request moves is in
/// memory anyway.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Counts {
    /// Set if reads deliver.
    pub reads: bool,
    /// Set if writes deliver, freeblock writes of other tasks among them.
    pub writes: bool,
}

impl Counts {
    /// For tasks that want data from anywhere: scan, backup.
    pub const ALL: Self = Self { reads: true, writes: true };
    /// For tasks that verify the media: a scrub. A write does not tell whether what was there could be
    /// read, and does not prove that it itself can be.
    pub const READS: Self = Self { reads: true, writes: false };
    /// Only what is read for the task itself.
    pub const NONE: Self = Self { reads: false, writes: false };
}

/// End of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// Ends when all of its blocks have been delivered.
    All,
    /// Ends when this number of its blocks, in any places, has been delivered; the rest is aborted.
    Enough(u64),
    /// Never: when all blocks have been delivered, all are wanted anew. Reads only.
    Repeated,
    /// Not by itself: blocks are added as they come up.
    Standing,
}

/// Competition of a task with others for gaps. What idle time gives it counts for a deadline and for a
/// share, but is not given by them; see [`Priority`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Pace {
    /// By its priority alone.
    #[default]
    ByPriority,
    /// A round shall be complete this long after it began. As soon as the task is behind a straight
    /// line to there, its weight grows.
    Deadline(SimDuration),
    /// Part of the bytes that all tasks with shares get while they compete, in proportion.
    Share(u32),
    /// Memory with room for this number of blocks, which the wanted blocks fill: the weight grows as it
    /// fills.
    Room(u64),
}

/// A set of blocks to read or write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskSpec {
    /// Read or write.
    pub op: Op,
    /// Blocks of 512 B in a block of the task.
    pub block_size: u32,
    /// Extents of the task's blocks: each is a row of whole ones from its start on.
    pub extents: Vec<Extent>,
    /// Weight of a block by priority.
    pub priority: Priority,
    /// Competition with other tasks.
    pub pace: Pace,
    /// Foreground transfers that deliver a block of a read in passing. Writes are delivered by the task's
    /// writes alone.
    pub counts: Counts,
    /// True if pieces of a block are held until the rest of it has come. Who verifies and asks for no data
    /// needs no memory for that.
    pub holds_pieces: bool,
    /// Set if the data are those of one moment: a promoted read must precede any foreground write to the
    /// same blocks that arrives later. [`Tasks::promote`](super::Tasks::promote) with
    /// [`BlockSelection::Touching`] such a write takes the blocks that it would overwrite.
    pub precedes_writes: bool,
    /// True if it writes the data that are there. No read of another task waits for such a write.
    pub is_rewrite: bool,
    /// End of the task.
    pub until: Until,
}

impl TaskSpec {
    /// Every block of `extents` once, at normal priority, delivered by any transfer.
    pub fn new(op: Op, block_size: u32, extents: Vec<Extent>) -> Self {
        Self {
            op,
            block_size,
            extents,
            priority: Priority::default(),
            pace: Pace::default(),
            counts: Counts::ALL,
            holds_pieces: true,
            precedes_writes: false,
            is_rewrite: false,
            until: Until::All,
        }
    }

    /// Blocks that its extents hold, when none is in two of them.
    pub fn blocks(&self) -> u64 {
        let size = u64::from(self.block_size.max(1));
        self.extents.iter().map(|extent| extent.blocks.get() / size).sum()
    }

    /// Checks all that needs no extents, and returns the fault.
    pub(super) fn check(&self, held_max: Bytes) -> Result<(), TaskError> {
        if !self.op.moves_data() {
            return Err(TaskError::MovesNothing { op: self.op });
        }
        if self.block_size == 0 || self.block_size > BLOCK_SIZE_MAX {
            return Err(TaskError::BlockSize { size: self.block_size });
        }
        let block = Blocks::new(self.block_size.into()).bytes();
        if self.holds_pieces && block > held_max {
            return Err(TaskError::BeyondMemory { block, held_max });
        }
        if self.until == Until::Repeated && self.op == Op::Write {
            return Err(TaskError::RepeatedWrite);
        }
        match self.pace {
            Pace::Share(0) => Err(TaskError::NoShare),
            Pace::Room(0) => Err(TaskError::NoRoom),
            Pace::Deadline(SimDuration::ZERO) => Err(TaskError::NoTime),
            _ => Ok(()),
        }
    }
}

/// Selection of a task's blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockSelection<'a> {
    /// All that are still wanted.
    All,
    /// Blocks that lie wholly in one of the extents.
    In(&'a [Extent]),
    /// Blocks of which a part lies in one of the extents.
    Touching(&'a [Extent]),
}

/// Reason why a call was refused. No state has changed then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[allow(missing_docs)]
pub enum TaskError {
    /// No data would be moved.
    #[error("a task cannot {op}: it reads or writes")]
    MovesNothing {
        /// Operation of the task.
        op: Op,
    },
    #[error("a block of {size} x 512 B: from 1 to {BLOCK_SIZE_MAX} are allowed")]
    BlockSize {
        /// In blocks of 512 B.
        size: u32,
    },
    /// A block that straddles tracks could never be completed.
    #[error("a block of {block} does not fit into the {held_max} for blocks read in pieces")]
    BeyondMemory {
        /// Size of a block.
        block: Bytes,
        held_max: Bytes,
    },
    /// Nothing is wanted.
    #[error("a task of no blocks: at least one is needed, or until it ends by itself (standing)")]
    Empty,
    /// An extent that ends within a block.
    #[error("{extent} is no whole number of blocks of {size} x 512 B")]
    PartBlock {
        extent: Extent,
        /// Blocks of 512 B in a block of the task.
        size: u32,
    },
    /// An extent beyond the drive.
    #[error("{extent} ends past the drive's {capacity}")]
    PastEnd { extent: Extent, capacity: Blocks },
    /// Some block would be written twice, in no order.
    #[error(
        "extents with different alignment overlap at {at}: write each block in one of them only"
    )]
    Overlap {
        /// First block of 512 B in both.
        at: Lbn,
    },
    /// Too many combinations of direction, block size, alignment, weight and what counts.
    #[error("{needed} layers are needed and {LAYERS_MAX} allowed: use fewer alignments or tasks")]
    TooManyLayers { needed: usize },
    /// A repeating task of too many extents.
    #[error("a repeating task of {count} extents: {REPEATED_EXTENTS_MAX} are allowed")]
    TooManyExtents {
        /// Number of extents with this task.
        count: usize,
    },
    /// A task of writes repeats blocks: written blocks need no second write.
    #[error("a task that writes cannot repeat itself: let it end, or stand and be extended")]
    RepeatedWrite,
    /// More are to be delivered than are wanted, or none.
    #[error("{enough} of {blocks} blocks are to be enough: from 1 to all are allowed")]
    Enough { enough: u64, blocks: u64 },
    /// A share of zero.
    #[error("a share of 0: at least 1 is allowed")]
    NoShare,
    /// Room for nothing.
    #[error("room for no block: at least 1 is needed, or another pace")]
    NoRoom,
    /// A deadline at the beginning.
    #[error("a deadline of no time at all: at least 1 ns is needed, or none")]
    NoTime,
    /// There is no such task, or it has ended.
    #[error("{task} is not known or has ended")]
    Unknown { task: TaskId },
    /// Promoted requests smaller than a block.
    #[error(
        "promoted requests of at most {limit} x 512 B cannot hold a block of {size}: allow as many"
    )]
    MergeLimit {
        limit: u32,
        /// Blocks of 512 B in a block of the task.
        size: u32,
    },
}

/// Runs of the task's blocks by alignment, in ascending order and apart from each other.
pub(super) type Runs = BTreeMap<u32, Vec<BlockRun>>;

/// The blocks of `extents`, each once.
pub(super) fn runs(size: u32, extents: &[Extent], capacity: Blocks) -> Result<Runs, TaskError> {
    let size_blocks = u64::from(size);
    let mut runs = Runs::new();
    for &extent in extents {
        let bounds = extent.bounds().filter(|&(_, to)| to <= capacity.get());
        let Some((from, to)) = bounds else {
            return Err(TaskError::PastEnd { extent, capacity });
        };
        if !(to - from).is_multiple_of(size_blocks) {
            return Err(TaskError::PartBlock { extent, size });
        }
        let run = (from / size_blocks, from / size_blocks + (to - from) / size_blocks);
        if run.0 < run.1 {
            runs.entry((from % size_blocks) as u32).or_default().push(run);
        }
    }
    runs.values_mut().for_each(merge);
    Ok(runs)
}

/// Runs in ascending order, those that touch made one.
pub(super) fn merge(runs: &mut Vec<BlockRun>) {
    runs.sort_unstable();
    let mut merged: Vec<BlockRun> = Vec::with_capacity(runs.len());
    for &run in runs.iter() {
        match merged.last_mut().filter(|last| run.0 <= last.1) {
            Some(last) => last.1 = last.1.max(run.1),
            None => merged.push(run),
        }
    }
    *runs = merged;
}

/// Runs of different alignment must not overlap when they are written.
pub(super) fn check_overlap(size: u32, runs: &Runs) -> Result<(), TaskError> {
    let size = u64::from(size);
    let mut all: Vec<(u64, u64)> = runs
        .iter()
        .flat_map(|(&offset, runs)| runs.iter().map(move |run| bounds(offset, run, size)))
        .collect();
    all.sort_unstable();
    match all.windows(2).find(|pair| pair[1].0 < pair[0].1) {
        Some(pair) => Err(TaskError::Overlap { at: Lbn::new(pair[1].0) }),
        None => Ok(()),
    }
}

fn bounds(offset: u32, run: &BlockRun, size: u64) -> (u64, u64) {
    (u64::from(offset) + run.0 * size, u64::from(offset) + run.1 * size)
}
