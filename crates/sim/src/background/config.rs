//! The `[freeblock]` table of an experiment.

use freewheel_freeblock::tasks::Priority;
use freewheel_freeblock::{Adapt, IdleTimer, Rule};
use freewheel_host::SameTrack;
use freewheel_units::{Blocks, Bytes, SimDuration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::promote::PromoteTail;
use super::task::{BackgroundTask, TaskConfig, TaskKeys, is_zero, names, task_table};
use crate::config::check_whole;
use crate::host::CONSERVATISM_MAX;

task_table! {
    /// Background work in the rotational gaps of the foreground: freeblock scheduling.
    FreeblockConfig {
        /// How a gap is filled.
        rule: Rule = Rule::default(),
        /// Whether, under the rule paths, regions of the disk that lag behind count for more.
        region_weights: bool = true,
        /// Most nodes of its search that one decision looks at; then the best found so far is taken, and
        /// the decision counted as beyond its budget. Without it every decision is exact.
        #[serde(skip_serializing_if = "Option::is_none")]
        nodes_max: Option<u64> = None,
        /// Most wanted pieces on one cylinder among which a path over its tracks is sought, under the rule
        /// paths; where there are more, the best of its tracks is taken.
        #[serde(skip_serializing_if = "Option::is_none")]
        steps_max: Option<u32> = None,
        /// How much longer than the curve says seeks to and from free work are taken to be, inside the
        /// drive: the conservatism of fast02. A scheduler outside has its own, `host.scheduler.conservatism`.
        #[serde(skip_serializing_if = "is_no_time")]
        conservatism: SimDuration = SimDuration::ZERO,
        /// Free work on the tracks of foreground requests, inside the drive. A scheduler outside has its own,
        /// `host.scheduler.same_track`.
        #[serde(skip_serializing_if = "is_distinct")]
        same_track: SameTrack = SameTrack::Distinct,
    } {
        /// Further tasks that compete with it for the same gaps. `rounds` counts those of the first task,
        /// and `promote_tail` promotes its blocks alone.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        beside: Vec<TaskConfig> = Vec::new(),
        /// Go on until so many rounds are complete on every arm, whatever number of requests the
        /// workload has. A trace ends with its last record all the same, and when the rounds are
        /// complete before that, the rest of it is not replayed.
        #[serde(skip_serializing_if = "Option::is_none")]
        rounds: Option<u64> = None,
        /// Promotes the last blocks of a round to foreground requests. They wait in the same queue, and
        /// their own response times are in no statistics.
        #[serde(skip_serializing_if = "Option::is_none")]
        promote_tail: Option<PromoteTail> = None,
        /// Uses idle time as well.
        #[serde(skip_serializing_if = "Option::is_none")]
        idle: Option<IdleConfig> = None,
    }
}

fn is_no_time(time: &SimDuration) -> bool {
    *time == SimDuration::ZERO
}

fn is_distinct(same_track: &SameTrack) -> bool {
    *same_track == SameTrack::Distinct
}

/// Use of idle time: after a while without requests, the arm reads until a request arrives. The run
/// under way finishes first.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IdleConfig {
    /// Time without requests before the first run: the timeout of Golding et al., "Idleness is not
    /// sloth" (USENIX 1995).
    pub after: SimDuration,
    /// Adapts `after` to the measured cost; fixed when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adapt: Option<Adapt>,
    /// Most bytes in a run. A request that arrives waits for the end of a run. A larger block of the
    /// task is read as a whole.
    #[serde(default = "run_max")]
    pub run_max: Bytes,
}

/// Assumed: the largest block in osdi00's experiments; a modern drive reads it in a quarter of a
/// millisecond.
const fn run_max() -> Bytes {
    Bytes::new(64 << 10)
}

impl IdleConfig {
    fn check(&self) -> Result<(), String> {
        if self.after > IDLE_AFTER_MAX {
            let after = self.after;
            return Err(format!("`after` is {after}: at most {IDLE_AFTER_MAX} is allowed"));
        }
        if !(1..=u64::from(u32::MAX)).contains(&(self.run_max.get() / 512)) {
            let run_max = self.run_max;
            return Err(format!("`run_max` is {run_max}: at least 512 B are needed"));
        }
        let adapt = self.adapt.map_or(Ok(()), |adapt| adapt.check(self.after));
        adapt.map_err(|message| format!("adapt: {message}"))
    }

    /// Timer that starts work in idle time.
    pub(super) fn timer(&self) -> IdleTimer {
        IdleTimer::new(self.after, self.adapt)
    }

    /// Blocks of 512 B in a run.
    pub(super) fn run_blocks(&self) -> u32 {
        (self.run_max.get() / 512) as u32
    }
}

/// Longest `after`.
const IDLE_AFTER_MAX: SimDuration = SimDuration::from_secs(3600);

impl FreeblockConfig {
    /// Checks the table for `arms` arms of this capacity.
    pub(crate) fn check(&self, capacity: Blocks, arms: u64) -> Result<(), String> {
        for (number, task) in self.tasks().iter().enumerate() {
            let checked = task.check(capacity);
            checked.map_err(|message| format!("{}{message}", place(number)))?;
        }
        if self.conservatism > CONSERVATISM_MAX {
            let margin = self.conservatism;
            return Err(format!(
                "`conservatism` is {margin}: at most {CONSERVATISM_MAX} are allowed"
            ));
        }
        self.check_names()?;
        self.check_write_back()?;
        self.check_backups(capacity)?;
        self.check_rounds(capacity, arms)?;
        let idle = self.idle.map_or(Ok(()), |idle| idle.check());
        idle.map_err(|message| format!("idle: {message}"))?;
        if self.promote_tail.is_some() && self.first().is_use() {
            let kind = self.first().kind().words();
            return Err(format!(
                "`promote_tail`: the last blocks of {kind} are not promoted; leave it out, or make another task the first"
            ));
        }
        let tail = self.promote_tail.map_or(Ok(()), |tail| tail.check(self.block_size));
        tail.map_err(|message| format!("promote_tail: {message}"))
    }

    /// Err for a task whose blocks are no whole sectors of a drive that takes no less than `least`. Its
    /// `length` is of whole blocks.
    pub(crate) fn check_sectors(&self, least: Bytes) -> Result<(), String> {
        for (number, task) in self.tasks().iter().enumerate() {
            let values = [
                ("block_size", task.block_size),
                ("start", task.start),
                ("other_start", task.other_start.unwrap_or_default()),
            ];
            for (key, value) in values {
                let checked = check_whole(key, value, least);
                checked.map_err(|message| format!("{}{message}", place(number)))?;
            }
        }
        Ok(())
    }

    /// Two tasks of one name could not be told apart in a report.
    fn check_names(&self) -> Result<(), String> {
        let tasks = self.tasks();
        for (number, task) in tasks.iter().enumerate() {
            let same = |other: &&TaskConfig| other.name.is_some() && other.name == task.name;
            if let Some(name) =
                tasks[..number].iter().find(same).and_then(|task| task.name.as_ref())
            {
                let place = place(number);
                return Err(format!(
                    "{place}`name` is {name}, as another task's: give each a different name, or none"
                ));
            }
        }
        Ok(())
    }

    /// A freeblock write does not wait for a backup's read of its blocks, so the two may not overlap.
    fn check_backups(&self, capacity: Blocks) -> Result<(), String> {
        let tasks = self.tasks();
        let of =
            |task: BackgroundTask| tasks.iter().enumerate().filter(move |(_, t)| t.task == task);
        for (backup, saved) in of(BackgroundTask::Backup) {
            let writes = of(BackgroundTask::Write).chain(of(BackgroundTask::WriteBack));
            for (number, written) in writes {
                let (from, to) = saved.bounds(capacity);
                let (start, end) = written.bounds(capacity);
                if start < to && from < end {
                    let names = names(&tasks);
                    let (backup, write) = (&names[backup], &names[number]);
                    let (place, kind) = (place(number), written.task.word());
                    let way_out = match written.task {
                        BackgroundTask::WriteBack => "leave one of them out",
                        _ => "give them parts of the drive that are apart (`start`, `length`)",
                    };
                    return Err(format!(
                        "{place}`task` is {kind}, of blocks of which {backup} is a backup, and {write} would not wait for it: {way_out}"
                    ));
                }
            }
        }
        Ok(())
    }

    /// One memory takes all foreground writes.
    fn check_write_back(&self) -> Result<(), String> {
        let tasks = self.tasks();
        let mut all = (0..tasks.len()).filter(|&n| tasks[n].task == BackgroundTask::WriteBack);
        match all.nth(1) {
            None => Ok(()),
            Some(second) => Err(format!(
                "{}`task` is write-back, as another task's: one of them takes all writes; leave the other out and give it more `memory`",
                place(second)
            )),
        }
    }

    /// Whether a memory takes foreground writes.
    pub(crate) fn has_write_back(&self) -> bool {
        self.tasks().iter().any(|task| task.task == BackgroundTask::WriteBack)
    }

    /// The same with a memory that has room for all that an arm of this capacity holds. Of tasks
    /// beside it only those are left by which the foreground is another one.
    pub(crate) fn with_endless_write_back(&self, capacity: Blocks) -> Self {
        // Three quarters of it may wait for gaps.
        let memory = Some(Bytes::new(2 * capacity.bytes().get()));
        let endless = |task: TaskConfig| match task.task {
            BackgroundTask::WriteBack => TaskConfig { memory, ..task },
            _ => task,
        };
        let tasks = self.tasks().into_iter().map(endless).collect();
        self.with_tasks(self.that_matter(tasks, true)).expect("write-back is left")
    }

    /// The same without a memory for foreground writes. None when no other task affects the foreground.
    pub(crate) fn without_write_back(&self) -> Option<Self> {
        self.with_tasks(self.that_matter(self.tasks(), false))
    }

    /// Tasks that a run for comparison keeps: the write-back or not, and others that set the run's
    /// length or use more than gaps. Work in gaps alone does not affect the foreground.
    fn that_matter(&self, tasks: Vec<TaskConfig>, with_write_back: bool) -> Vec<TaskConfig> {
        let Self { rounds, promote_tail, idle, .. } = self;
        let are_felt = rounds.is_some() || promote_tail.is_some() || idle.is_some();
        let stays = |task: &TaskConfig| match task.task {
            BackgroundTask::WriteBack => with_write_back,
            _ => are_felt,
        };
        tasks.into_iter().filter(stays).collect()
    }

    /// The same with these tasks; None when there are none.
    fn with_tasks(&self, mut tasks: Vec<TaskConfig>) -> Option<Self> {
        if tasks.is_empty() {
            return None;
        }
        let mut table = self.clone();
        table.set_task(tasks.remove(0));
        table.beside = tasks;
        Some(table)
    }

    /// The first task that writes.
    pub(crate) fn writes(&self) -> Option<BackgroundTask> {
        let writes = |task: &BackgroundTask| {
            matches!(task, BackgroundTask::Write | BackgroundTask::WriteBack)
        };
        self.tasks().iter().map(|task| task.task).find(writes)
    }

    /// Their blocks on all arms are counted together.
    fn check_rounds(&self, capacity: Blocks, arms: u64) -> Result<(), String> {
        let Some(rounds) = self.rounds else { return Ok(()) };
        if !self.first().kind().has_rounds() {
            let kind = self.first().kind().words();
            return Err(format!(
                "`rounds` is {rounds}: a task of {kind} goes on as long as the workload; leave `rounds` out, or make another task the first"
            ));
        }
        let blocks = self.blocks_of_a_round(capacity);
        let most = blocks.checked_mul(arms).map_or(0, |blocks| u64::MAX / blocks);
        if self.first().kind().is_once() && rounds > 1 {
            let kind = self.first().kind().words();
            return Err(format!("`rounds` is {rounds}: a {kind} has 1, and is complete then"));
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

    /// The first task, by which rounds are counted.
    pub(crate) fn first(&self) -> TaskConfig {
        self.into()
    }

    /// All tasks, the first one first.
    pub(super) fn tasks(&self) -> Vec<TaskConfig> {
        std::iter::once(self.first()).chain(self.beside.iter().map(TaskConfig::from)).collect()
    }

    /// Blocks of the first task that make a round.
    pub(crate) fn blocks_of_a_round(&self, capacity: Blocks) -> u64 {
        self.first().blocks_of_a_round(capacity)
    }
}

/// Prefix that names a task's table in a message.
fn place(number: usize) -> String {
    match number.checked_sub(1) {
        None => String::new(),
        Some(beside) => format!("beside[{beside}]: "),
    }
}
