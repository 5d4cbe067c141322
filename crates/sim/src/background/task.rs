//! A task of the `[freeblock]` table.

use freewheel_model::freeblock::tasks::{BLOCK_SIZE_MAX, Pace, Priority, TaskSpec, Until};
use freewheel_model::freeblock::uses;
use freewheel_units::{Blocks, Bytes, SimDuration};
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

/// What a task comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TaskKind {
    /// Every block's contents.
    DataMining,
    /// The contents of so many blocks, whichever they are.
    Sample,
    /// Every block from the media.
    Scrub,
    /// So many blocks from the media, whichever they are.
    ScrubSample,
}

impl TaskKind {
    /// In words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::DataMining => "data mining",
            Self::Sample => "sample",
            Self::Scrub => "scrub",
            Self::ScrubSample => "scrub sample",
        }
    }
}

/// A task, and how it competes with others for gaps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TaskConfig {
    /// What reports call it; when absent what it is, with a number where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
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
            name: None,
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
        if self.name.as_ref().is_some_and(|name| name.trim().is_empty()) {
            return Err("`name` is empty: some letters are needed, or no name".into());
        }
        if self.deadline.is_some() && self.share.is_some() {
            return Err("`deadline` and `share`: one of them sets the pace, not both".into());
        }
        Ok(())
    }

    /// What it comes to.
    pub(super) fn kind(&self) -> TaskKind {
        let is_sample = self.enough.is_some_and(|enough| enough < 1.0);
        match (self.task, is_sample) {
            (BackgroundTask::DataMining, false) => TaskKind::DataMining,
            (BackgroundTask::DataMining, true) => TaskKind::Sample,
            (BackgroundTask::Scrub, false) => TaskKind::Scrub,
            (BackgroundTask::Scrub, true) => TaskKind::ScrubSample,
        }
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

/// What reports call each of the tasks: no two the same, unless the experiment gives one name twice.
pub(super) fn names(tasks: &[TaskConfig]) -> Vec<String> {
    let mut taken: Vec<String> = tasks.iter().filter_map(|task| task.name.clone()).collect();
    let mut name = |task: &TaskConfig| {
        let words = task.kind().words();
        let numbered = (1u32..).map(|number| match number {
            1 => words.to_owned(),
            _ => format!("{words} {number}"),
        });
        let own = numbered.into_iter().find(|name| !taken.contains(name));
        let own = own.expect("there are more numbers than tasks");
        taken.push(own.clone());
        own
    };
    tasks.iter().map(|task| task.name.clone().unwrap_or_else(|| name(task))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_without_a_name_are_called_what_they_are_and_numbered_where_that_is_taken() {
        let mining = TaskConfig::default();
        let sample = TaskConfig { enough: Some(0.5), ..TaskConfig::default() };
        let scrub = TaskConfig { task: BackgroundTask::Scrub, ..TaskConfig::default() };
        let named = TaskConfig { name: Some("scrub".into()), ..mining.clone() };
        let whole = TaskConfig { enough: Some(1.0), ..TaskConfig::default() };
        assert_eq!(
            names(&[mining, sample.clone(), scrub, sample, named, whole]),
            ["data mining", "sample", "scrub 2", "sample 2", "scrub", "data mining 2"]
        );
    }
}
