//! A background task of an experiment: an entry of `freeblock.tasks`.

use freewheel_freeblock::tasks::{
    BLOCK_SIZE_MAX, Extent, Pace, Priority, RoundKind, TaskKind, TaskSpec, Until,
};
use freewheel_freeblock::uses::{self, Versions};
use freewheel_host::PromoteTail;
use freewheel_units::{Blocks, Bytes, Lbn, Op, SimDuration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A background task of an experiment: an entry of `freeblock.tasks`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TaskConfig {
    /// Name in reports; when absent the kind, with a number where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Kind of the task.
    pub kind: TaskKind,
    /// Size of the task's blocks, each of which is handed over whole.
    pub block_size: Bytes,
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
    /// Memory of a comparison, of prefetching or of write-back, on each arm of each drive; when absent
    /// 4 MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<Bytes>,
    /// Whole tracks behind that of a read which prefetching reads as well; when absent none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tracks_ahead: Option<u32>,
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

impl Default for TaskConfig {
    /// A scan in pages, as in osdi00 section 6.
    fn default() -> Self {
        Self {
            name: None,
            kind: TaskKind::default(),
            block_size: Bytes::new(4096),
            start: Bytes::ZERO,
            length: None,
            other_start: None,
            memory: None,
            tracks_ahead: None,
            sample_share: None,
            priority: Priority::default(),
            deadline: None,
            share: None,
            rounds: None,
            promote_tail: None,
        }
    }
}

pub(super) fn is_zero(bytes: &Bytes) -> bool {
    *bytes == Bytes::ZERO
}

/// Size of the whole blocks within `bytes`.
const fn whole_blocks(bytes: u64, block: Bytes) -> Bytes {
    Bytes::new(bytes / block.get() * block.get())
}

/// A most as a key takes it, and for people where that has many digits.
fn exact(bytes: Bytes) -> String {
    let exact = bytes.to_string();
    if exact.len() <= 8 { exact } else { format!("{exact} ({})", bytes.human()) }
}

/// Memory of a task that needs some. Assumed: the buffer of a drive of osdi00's time.
const MEMORY: Bytes = Bytes::new(4 << 20);

/// A millionth: samples are counted in them.
const ENOUGH_MIN: f64 = 1e-6;

impl TaskConfig {
    /// Checks the task on an arm of this capacity, and returns the fault.
    pub(super) fn check(&self, capacity: Blocks) -> Result<(), String> {
        let (size, most) = (self.block_size, Blocks::new(BLOCK_SIZE_MAX.into()).bytes());
        if !size.get().is_multiple_of(512) || !(1..=most.get()).contains(&size.get()) {
            return Err(format!(
                "`block_size` is {size}: from 512 B to {most} in whole blocks of 512 B are allowed"
            ));
        }
        if self.kind == TaskKind::Refresh {
            return Err("`kind` is refresh: a simulated drive holds no data that could be read back; use write".into());
        }
        self.check_extent(capacity)?;
        self.check_use(capacity)?;
        if let Some(sample_share) = self.sample_share
            && !(ENOUGH_MIN..=1.0).contains(&sample_share)
        {
            return Err(format!(
                "`sample_share` is {sample_share}: from {ENOUGH_MIN} to 1 is allowed"
            ));
        }
        if self.sample_share.is_some() && self.result_kind().is_once() {
            let kind = self.result_kind().words();
            return Err(format!("`sample_share`: a {kind} is of all its blocks; leave it out"));
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

    /// Checks rounds and their last blocks, and returns the fault. The blocks of all arms are counted
    /// together.
    pub(super) fn check_rounds(&self, capacity: Blocks, arms: u64) -> Result<(), String> {
        let words = self.result_kind().words();
        if let Some(tail) = &self.promote_tail {
            if self.is_use() {
                return Err(format!(
                    "`promote_tail`: the last blocks of {words} are not promoted; leave it out"
                ));
            }
            let checked = tail.check(self.block_size);
            checked.map_err(|message| format!("promote_tail: {message}"))?;
        }
        let Some(rounds) = self.rounds else { return Ok(()) };
        if !self.result_kind().has_rounds() {
            return Err(format!(
                "`rounds` is {rounds}: a task of {words} goes on as long as the workload; leave `rounds` out"
            ));
        }
        let blocks = self.blocks_of_a_round(capacity);
        let most = blocks.checked_mul(arms).map_or(0, |blocks| u64::MAX / blocks);
        if self.result_kind().is_once() && rounds > 1 {
            return Err(format!("`rounds` is {rounds}: a {words} has 1, and is complete then"));
        }
        let without = "without `rounds` the work goes on as long as the workload";
        match rounds {
            0 => Err(format!("`rounds` is 0: at least 1 is needed; {without}")),
            _ if rounds > most => Err(format!(
                "`rounds` is {rounds}: with {blocks} blocks in a round and {arms} arms more than {most} cannot be counted; {without}"
            )),
            _ => Ok(()),
        }
    }

    /// Whole blocks, at least one, that the arm has.
    fn check_extent(&self, capacity: Blocks) -> Result<(), String> {
        let Self { start, length, block_size, .. } = *self;
        let capacity = capacity.bytes();
        let has_room =
            capacity.get().checked_sub(block_size.get()).is_some_and(|last| start.get() <= last);
        if !start.get().is_multiple_of(512) || !has_room {
            let capacity = capacity.human();
            return Err(format!(
                "`start` is {start}: a whole number of blocks of 512 B is needed, and room for one of {block_size} on an arm of {capacity}"
            ));
        }
        let Some(length) = length else { return Ok(()) };
        let most = whole_blocks(capacity.get() - start.get(), block_size);
        if length == Bytes::ZERO
            || !length.get().is_multiple_of(block_size.get())
            || length.get() > most.get()
        {
            return Err(format!(
                "`length` is {length}: from {block_size} to the arm's {} behind `start` in whole blocks of {block_size} are allowed",
                exact(most)
            ));
        }
        Ok(())
    }

    /// True if it asks for blocks as they come up, and does something with them.
    pub(super) fn is_use(&self) -> bool {
        use TaskKind::{Compare, Prefetch, WriteBack};
        matches!(self.kind, Compare | Prefetch | WriteBack)
    }

    /// Keys that some tasks have and others have not.
    fn check_use(&self, capacity: Blocks) -> Result<(), String> {
        let Self { kind, block_size, start, length, other_start, memory, tracks_ahead, .. } = *self;
        let (is_compare, word) = (kind == TaskKind::Compare, kind.word());
        let of_others = [
            (other_start.is_some() && !is_compare, "other_start", "compare"),
            (memory.is_some() && !self.is_use(), "memory", "compare, prefetch or write-back"),
            (tracks_ahead.is_some() && kind != TaskKind::Prefetch, "tracks_ahead", "prefetch"),
        ];
        if let Some((_, key, whose)) = of_others.iter().find(|(is_there, ..)| *is_there) {
            return Err(format!(
                "`{key}` belongs to a task of {whose}, not of {word}: leave it out"
            ));
        }
        if !self.is_use() {
            return Ok(());
        }
        let is_partial = start != Bytes::ZERO || length.is_some();
        let not_its = [
            (
                is_partial && !is_compare,
                "start` and `length",
                "the foreground says where its blocks lie",
            ),
            (self.sample_share.is_some(), "sample_share", "it has all of its blocks"),
            (
                self.deadline.is_some(),
                "deadline",
                "it asks for blocks as they come up, and has none",
            ),
            (
                self.share.is_some(),
                "share",
                "it has normal priority; give the other `tasks` a higher or a lower one",
            ),
            (
                self.priority != Priority::Normal,
                "priority",
                "it has normal priority; give the other `tasks` a higher or a lower one",
            ),
        ];
        if let Some((_, keys, why)) = not_its.iter().find(|(is_there, ..)| *is_there) {
            return Err(format!("`{keys}` of a task of {word}: {why}; leave it out"));
        }
        if self.memory() < block_size {
            let memory = self.memory();
            return Err(format!(
                "`memory` is {memory}: room for one block of {block_size} at least is needed"
            ));
        }
        if is_compare { self.check_versions(capacity) } else { Ok(()) }
    }

    /// Two rows of blocks that are apart, on the arm.
    fn check_versions(&self, capacity: Blocks) -> Result<(), String> {
        let Self { block_size, start, .. } = *self;
        let Some(other) = self.other_start else {
            return Err(
                "`kind` is compare: `other_start`, where the other version begins, is needed"
                    .into(),
            );
        };
        let Versions { current, .. } = self.versions(capacity);
        let length = current.blocks.bytes();
        let room = self.room_for_versions(capacity);
        if !other.get().is_multiple_of(512) || room < block_size || length > room {
            let room = whole_blocks(room.get(), block_size);
            return Err(format!(
                "`other_start` is {other}: a whole number of blocks of 512 B is needed, and room for both versions apart from each other, from `start` = {start} on the other one, on an arm of {}: {} each at most, in blocks of {block_size}",
                capacity.bytes().human(),
                exact(room)
            ));
        }
        Ok(())
    }

    /// Largest length of each of two versions.
    fn room_for_versions(&self, capacity: Blocks) -> Bytes {
        let (one, other) = (self.start.get(), self.other_start.unwrap_or_default().get());
        let behind = capacity.bytes().get().saturating_sub(one.max(other));
        Bytes::new(one.abs_diff(other).min(behind))
    }

    /// Extents of the versions that a comparison compares.
    pub(super) fn versions(&self, capacity: Blocks) -> Versions {
        let size = u64::from(self.size());
        let length = self.length.unwrap_or_else(|| self.room_for_versions(capacity));
        let blocks = length.get() / 512 / size * size;
        let other = self.other_start.unwrap_or_default();
        Versions {
            current: Extent::new(self.start.get() / 512, blocks),
            safe: Lbn::new(other.get() / 512),
        }
    }

    /// Memory of the task, where it keeps blocks.
    pub(super) fn memory(&self) -> Bytes {
        self.memory.unwrap_or(MEMORY)
    }

    /// Kind of a round.
    pub(super) fn result_kind(&self) -> RoundKind {
        // `check` refuses samples of other kinds, whose rounds need all blocks.
        let has_samples = matches!(self.kind, TaskKind::Scan | TaskKind::Scrub);
        let is_part = self.sample_share.is_some_and(|sample_share| sample_share < 1.0);
        RoundKind { task: self.kind, is_sample: has_samples && is_part }
    }

    /// Blocks of 512 B in one of the task's.
    pub(crate) fn size(&self) -> u32 {
        (self.block_size.get() / 512) as u32
    }

    /// The task as the planner knows it. A use adds its blocks later, on demand.
    pub(crate) fn spec(&self, capacity: Blocks) -> TaskSpec {
        let size = self.size();
        let as_they_come_up =
            |op| TaskSpec { until: Until::Standing, ..TaskSpec::new(op, size, Vec::new()) };
        let whole = match self.kind {
            TaskKind::Scan => uses::scan(capacity, size),
            TaskKind::Scrub => uses::scrub(capacity, size),
            TaskKind::Backup => uses::backup(capacity, size),
            // `check` refuses a refresh.
            TaskKind::Write | TaskKind::Refresh => uses::write(capacity, size),
            TaskKind::Compare | TaskKind::Prefetch => return as_they_come_up(Op::Read),
            TaskKind::WriteBack => return as_they_come_up(Op::Write),
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
        let pace = match (self.deadline, self.share) {
            (Some(deadline), _) => Pace::Deadline(deadline),
            (None, Some(share)) => Pace::Share(share),
            (None, None) => Pace::ByPriority,
        };
        TaskSpec { priority: self.priority, pace, ..part }
    }

    /// From where to where it reads or writes, in blocks of 512 B.
    pub(super) fn bounds(&self, capacity: Blocks) -> (u64, u64) {
        let whole = Extent::new(0, capacity.get());
        let extent = self.extent(capacity).unwrap_or(whole);
        (extent.start.get(), extent.start.get() + extent.blocks.get())
    }

    /// Extent of the blocks, if not the whole arm.
    fn extent(&self, capacity: Blocks) -> Option<Extent> {
        if self.start == Bytes::ZERO && self.length.is_none() {
            return None;
        }
        let (start, size) = (self.start.get() / 512, u64::from(self.size()));
        let all = capacity.get() - start;
        let blocks = self.length.map_or(all, |length| length.get() / 512);
        Some(Extent::new(start, blocks / size * size))
    }

    /// Blocks of the task that make a round; none where there are no rounds.
    pub(crate) fn blocks_of_a_round(&self, capacity: Blocks) -> u64 {
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

/// Names of the tasks in reports: no two equal, unless the experiment gives one name twice.
pub(super) fn names(tasks: &[TaskConfig]) -> Vec<String> {
    let mut taken: Vec<String> = tasks.iter().filter_map(|task| task.name.clone()).collect();
    let mut name = |task: &TaskConfig| {
        let words = task.result_kind().words();
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
        let scan = TaskConfig::default();
        let sample = TaskConfig { sample_share: Some(0.5), ..TaskConfig::default() };
        let scrub = TaskConfig { kind: TaskKind::Scrub, ..TaskConfig::default() };
        let named = TaskConfig { name: Some("scrub".into()), ..scan.clone() };
        let whole = TaskConfig { sample_share: Some(1.0), ..TaskConfig::default() };
        assert_eq!(
            names(&[scan, sample.clone(), scrub, sample, named, whole]),
            ["scan", "sample", "scrub 2", "sample 2", "scrub", "scan 2"]
        );
    }
}
