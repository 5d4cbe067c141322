//! A task of the `[freeblock]` table, and what became of those beside the first.

use freewheel_model::freeblock::tasks::{
    BLOCK_SIZE_MAX, Pace, Priority, TaskError, TaskId, TaskSpec, Tasks, Until,
};
use freewheel_model::freeblock::uses;
use freewheel_units::{Blocks, Bytes, SimDuration, SimTime};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the background reads of the whole drive, again and again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BackgroundTask {
    /// Every block's contents: what the foreground reads or writes counts as read (osdi00 section
    /// 6).
    #[default]
    DataMining,
    /// Every block from the media: what the foreground writes does not verify anything.
    Scrub,
}

/// A task, and how it competes with others for gaps.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TaskConfig {
    /// What is read.
    pub task: BackgroundTask,
    /// Size of the task's blocks, each of which is handed over whole.
    pub block_size: Bytes,
    /// Part of all blocks that is enough, whichever they are: a statistical sample.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enough: Option<f64>,
    /// What a block is worth beside those of other tasks: four times as much as one of the next
    /// lower priority.
    pub priority: Priority,
    /// When a round should be complete, from its beginning on: behind a straight line to there its
    /// blocks are worth more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<SimDuration>,
    /// A whole number: tasks with shares of 1 and 3 get bytes as 1 to 3.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<u32>,
}

impl Default for TaskConfig {
    /// Pages of 4 KiB, as in osdi00 section 6.
    fn default() -> Self {
        Self {
            task: BackgroundTask::default(),
            block_size: Bytes::new(4096),
            enough: None,
            priority: Priority::default(),
            deadline: None,
            share: None,
        }
    }
}

/// A millionth: samples are counted in them.
const ENOUGH_MIN: f64 = 1e-6;

impl TaskConfig {
    /// What is wrong with it, if anything is.
    pub(super) fn check(&self) -> Result<(), String> {
        let (size, most) = (self.block_size, Blocks::new(BLOCK_SIZE_MAX.into()).bytes());
        if !size.get().is_multiple_of(512) || !(1..=most.get()).contains(&size.get()) {
            return Err(format!(
                "`block_size` is {size}: from 512 B to {most} in whole blocks of 512 B are allowed"
            ));
        }
        if let Some(enough) = self.enough
            && !(ENOUGH_MIN..=1.0).contains(&enough)
        {
            return Err(format!("`enough` is {enough}: from {ENOUGH_MIN} to 1 is allowed"));
        }
        if self.deadline == Some(SimDuration::ZERO) {
            return Err("`deadline` is 0: some time is needed, or no deadline".into());
        }
        if self.share == Some(0) {
            return Err("`share` is 0: at least 1 is needed, or no share".into());
        }
        if self.deadline.is_some() && self.share.is_some() {
            return Err("`deadline` and `share`: one of them sets the pace, not both".into());
        }
        Ok(())
    }

    /// Blocks of 512 B in one of the task's.
    pub(crate) fn size(&self) -> u32 {
        (self.block_size.get() / 512) as u32
    }

    pub(crate) fn spec(&self, capacity: Blocks) -> TaskSpec {
        let size = self.size();
        let whole = match self.task {
            BackgroundTask::DataMining => uses::data_mining(capacity, size),
            BackgroundTask::Scrub => uses::scrub(capacity, size),
        };
        let part = match self.enough {
            None => whole,
            Some(enough) => uses::sample(whole, (enough / ENOUGH_MIN).round() as u32),
        };
        let pace = match (self.deadline, self.share) {
            (Some(deadline), _) => Pace::Deadline(deadline),
            (None, Some(share)) => Pace::Share(share),
            (None, None) => Pace::ByPriority,
        };
        TaskSpec { priority: self.priority, pace, ..part }
    }

    /// Blocks of the task that make a round.
    pub(crate) fn blocks_of_a_round(&self, capacity: Blocks) -> u64 {
        let spec = self.spec(capacity);
        match spec.until {
            Until::Enough(enough) => enough,
            _ => spec.blocks(),
        }
    }
}

/// What became of a task beside the first.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BesideResult {
    /// What it was.
    pub task: BackgroundTask,
    /// Blocks of it that make a round.
    pub blocks: u64,
    /// Size of one in bytes.
    pub block_bytes: u64,
    /// Blocks delivered in all, in gaps and otherwise.
    pub delivered: u64,
    /// How long each complete round took.
    pub rounds_ns: Vec<u64>,
}

/// A task beside the first, as it goes on.
pub(super) struct Beside {
    id: TaskId,
    spec: TaskSpec,
    began: SimTime,
    pub result: BesideResult,
}

impl Beside {
    pub fn begin(tasks: &mut Tasks, config: &TaskConfig) -> Result<Self, TaskError> {
        let capacity = tasks.drive().blocks();
        let spec = config.spec(capacity);
        let result = BesideResult {
            task: config.task,
            blocks: config.blocks_of_a_round(capacity),
            block_bytes: config.block_size.get(),
            delivered: 0,
            rounds_ns: Vec::new(),
        };
        let id = tasks.register(SimTime::ZERO, spec.clone())?;
        Ok(Self { id, spec, began: SimTime::ZERO, result })
    }

    pub fn is(&self, task: TaskId) -> bool {
        self.id == task
    }

    /// So many blocks of 512 B have been delivered to it.
    pub fn delivered(&mut self, blocks: Blocks) {
        self.result.delivered += blocks.get() / u64::from(self.spec.block_size);
    }

    /// A round is complete. A task that repeats itself goes on; a sample begins anew with every
    /// block.
    pub fn end_round(&mut self, tasks: &mut Tasks, at: SimTime) {
        self.result.rounds_ns.push(at.saturating_since(self.began).ns());
        self.began = at;
        if tasks.progress(self.id, at).is_err() {
            let begun = tasks.register(at, self.spec.clone());
            self.id = begun.expect("what could be registered before");
        }
    }
}
