//! Order of a background task, as people give it: in an experiment, on the command line, or to a server.
//!
//! Goals: one description with one check for all three. Non-goals: what a server alone is told of the
//! data, as lists of extents and samples.

mod check;
mod promote_tail;

use freewheel_units::{BLOCK_BYTES, Blocks, Bytes, Lbn, Op, SimDuration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tasks::{Extent, Pace, Priority, RoundKind, TaskKind, TaskSpec, Until};
use crate::uses::{self, Versions};

pub use check::checked_block_size;
pub use promote_tail::PromoteTail;

/// A background task: an entry of `freeblock.tasks` in an experiment, and what a server is asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TaskOrder {
    /// Name in reports; when absent the kind, with a number where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Kind of the task.
    pub kind: TaskKind,
    /// Size of the task's blocks, each of which is handed over whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Bytes")]
    pub block_size: Option<Bytes>,
    /// First byte of the task's blocks, on each arm.
    #[serde(skip_serializing_if = "is_zero")]
    pub start: Bytes,
    /// Length from there on; when absent, the rest of the arm, and for a comparison as much as its two
    /// versions have room for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub length: Option<Bytes>,
    /// Place on the arm of a comparison's other version, which is as long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other_start: Option<Bytes>,
    /// Memory of a comparison, on each arm of each drive; when absent 4 MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<Bytes>,
    /// Part of all blocks that makes a round, whichever blocks they are: a statistical sample.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample_share: Option<f64>,
    /// Weight of a block against those of other tasks: low 1, normal 4, high 16.
    pub priority: Priority,
    /// Time from a round's beginning in which it should be complete: behind a straight line to there its
    /// blocks weigh more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<SimDuration>,
    /// A whole number: tasks with shares of 1 and 3 get bytes as 1 to 3.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<u32>,
    /// Idle time is used as well, after this time without a client's request. Tasks of a server alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub idle_after: Option<SimDuration>,
    /// Another round begins after each one. Tasks of a server alone: those of an experiment have `rounds`.
    #[serde(skip_serializing_if = "is_false")]
    #[schemars(skip)]
    pub repeat: bool,
    /// The run goes on until this task has completed this number of rounds on every arm; the workload's
    /// number of requests does not count then. A trace ends with its last record all the same. When the
    /// rounds of all tasks are complete before that, the rest of the trace is not replayed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rounds: Option<u64>,
    /// Promotes the last blocks of a round to foreground requests. They wait in the same queue, and
    /// their own response times are in no statistics.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub promote_tail: Option<PromoteTail>,
}

impl Default for TaskOrder {
    /// A scan in pages, as in osdi00 section 6.
    fn default() -> Self {
        Self {
            name: None,
            kind: TaskKind::default(),
            block_size: Some(PAGE),
            start: Bytes::ZERO,
            length: None,
            other_start: None,
            memory: None,
            sample_share: None,
            priority: Priority::default(),
            deadline: None,
            share: None,
            idle_after: None,
            repeat: false,
            rounds: None,
            promote_tail: None,
        }
    }
}

fn is_zero(bytes: &Bytes) -> bool {
    *bytes == Bytes::ZERO
}

fn is_false(flag: &bool) -> bool {
    !*flag
}

/// Block of a task that names none, where no server chooses one.
const PAGE: Bytes = Bytes::new(4096);

/// Memory of a task that needs some. Assumed: the buffer of a drive of osdi00's time.
const MEMORY: Bytes = Bytes::new(4 << 20);

/// A millionth: samples are counted in them.
const ENOUGH_MIN: f64 = 1e-6;

impl TaskOrder {
    /// Largest length of each of two versions.
    fn room_for_versions(&self, capacity: Blocks) -> Bytes {
        let (one, other) = (self.start.get(), self.other_start.unwrap_or_default().get());
        let behind = capacity.bytes().get().saturating_sub(one.max(other));
        Bytes::new(one.abs_diff(other).min(behind))
    }

    /// Extents of the versions that a comparison compares.
    pub fn versions(&self, capacity: Blocks) -> Versions {
        let size = u64::from(self.size());
        let length = self.length.unwrap_or_else(|| self.room_for_versions(capacity));
        let blocks = length.get() / BLOCK_BYTES / size * size;
        let other = self.other_start.unwrap_or_default();
        Versions {
            current: Extent::new(self.start.get() / BLOCK_BYTES, blocks),
            safe: Lbn::new(other.get() / BLOCK_BYTES),
        }
    }

    /// Memory of the task, where it keeps blocks.
    pub fn memory(&self) -> Bytes {
        self.memory.unwrap_or(MEMORY)
    }

    /// Kind of a round.
    pub fn result_kind(&self) -> RoundKind {
        // `check` refuses samples of other kinds, whose rounds need all blocks.
        let has_samples = matches!(self.kind, TaskKind::Scan | TaskKind::Scrub);
        let is_part = self.sample_share.is_some_and(|sample_share| sample_share < 1.0);
        RoundKind { task: self.kind, is_sample: has_samples && is_part }
    }

    /// Size of the task's blocks.
    pub fn block(&self) -> Bytes {
        self.block_size.unwrap_or(PAGE)
    }

    /// Blocks of 512 B in one of the task's.
    pub fn size(&self) -> u32 {
        (self.block().get() / BLOCK_BYTES) as u32
    }

    /// The task as the planner knows it. A comparison adds its blocks later, on demand.
    pub fn spec(&self, capacity: Blocks) -> TaskSpec {
        let size = self.size();
        let whole = match self.kind {
            TaskKind::Scan => uses::scan(capacity, size),
            TaskKind::Scrub => uses::scrub(capacity, size),
            TaskKind::Backup => uses::backup(capacity, size),
            // `check` refuses a refresh.
            TaskKind::Write | TaskKind::Refresh => uses::write(capacity, size),
            TaskKind::Compare => {
                return TaskSpec {
                    until: Until::Standing,
                    ..TaskSpec::new(Op::Read, size, Vec::new())
                };
            }
        };
        let extents = match self.extent(capacity) {
            Some(extent) => vec![extent],
            None => whole.extents,
        };
        let whole = TaskSpec { extents, ..whole };
        let part = match self.sample_share {
            None => whole,
            Some(sample_share) => uses::sample(whole, (sample_share / ENOUGH_MIN).round() as u32),
        };
        TaskSpec { priority: self.priority, pace: self.pace(), ..part }
    }

    /// Competition with other tasks.
    pub fn pace(&self) -> Pace {
        match (self.deadline, self.share) {
            (Some(deadline), _) => Pace::Deadline(deadline),
            (None, Some(share)) => Pace::Share(share),
            (None, None) => Pace::ByPriority,
        }
    }

    /// A task of a server, for these blocks of 512 B of its drive, in blocks of `size` x 512 B.
    pub fn served(kind: TaskKind, range: Extent, size: u32) -> Self {
        Self {
            kind,
            block_size: Some(Blocks::new(size.into()).bytes()),
            start: Blocks::new(range.start.get()).bytes(),
            length: Some(range.blocks.bytes()),
            ..Self::default()
        }
    }

    /// The order with the length and the block that a server chooses where none is named: to the end of its
    /// drive, and of `usual_block` x 512 B.
    #[must_use]
    pub fn completed(self, capacity: Blocks, usual_block: u32) -> Self {
        let all = Bytes::new(capacity.bytes().get().saturating_sub(self.start.get()));
        let usual = Blocks::new(usual_block.into()).bytes();
        let (length, block) = (self.length.unwrap_or(all), self.block_size.unwrap_or(usual));
        Self { length: Some(length), block_size: Some(block), ..self }
    }

    /// Blocks of 512 B from its start on, of a completed order.
    pub fn range(&self) -> Extent {
        let length = self.length.unwrap_or_default();
        Extent::new(self.start.get() / BLOCK_BYTES, length.get() / BLOCK_BYTES)
    }

    /// From where to where it reads or writes, in blocks of 512 B.
    pub fn bounds(&self, capacity: Blocks) -> (u64, u64) {
        let whole = Extent::new(0, capacity.get());
        let extent = self.extent(capacity).unwrap_or(whole);
        (extent.start.get(), extent.start.get() + extent.blocks.get())
    }

    /// Extent of the blocks, if not the whole arm.
    fn extent(&self, capacity: Blocks) -> Option<Extent> {
        if self.start == Bytes::ZERO && self.length.is_none() {
            return None;
        }
        let (start, size) = (self.start.get() / BLOCK_BYTES, u64::from(self.size()));
        let all = capacity.get() - start;
        let blocks = self.length.map_or(all, |length| length.get() / BLOCK_BYTES);
        Some(Extent::new(start, blocks / size * size))
    }

    /// Blocks of the task that make a round.
    pub fn blocks_of_a_round(&self, capacity: Blocks) -> u64 {
        if self.kind == TaskKind::Compare {
            return 2 * self.versions(capacity).current.blocks.get() / u64::from(self.size());
        }
        let spec = self.spec(capacity);
        match spec.until {
            Until::Enough(blocks) => blocks,
            _ => spec.blocks(),
        }
    }
}
