//! The `[freeblock]` table of an experiment.

use std::num::NonZeroU32;

use freewheel_freeblock::tasks::TaskKind;
use freewheel_freeblock::{
    Adapt, Bounds, IDLE_AFTER_MAX, IdleTimer, Options, Patience, Rule, STEPS_MAX, TaskOrder,
};
use freewheel_host::SameTrack;
use freewheel_host::tasks::OPEN_MAX;
use freewheel_model::drive::Drive;
use freewheel_units::{Blocks, Bytes, SimDuration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::names::names;
use crate::toml_faults::check_whole;

/// Longest margin. A longer one than a turn leaves no part of any gap.
pub const CONSERVATISM_MAX: SimDuration = SimDuration::from_ms(100);

/// Kinds of tasks that a server has and an experiment understands. A simulated drive holds no data that a
/// refresh could write again.
const SERVED_IN_EXPERIMENTS: [TaskKind; 3] = [TaskKind::Scan, TaskKind::Scrub, TaskKind::Backup];

/// Background work in the rotational gaps of the foreground: freeblock scheduling.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FreeblockConfig {
    /// Rule that fills a gap.
    pub rule: Rule,
    /// True if, under the rule paths, regions of the disk that lag behind count for more.
    pub region_weights: bool,
    /// Most nodes of its search that one decision looks at; then the best found so far is taken, and
    /// the decision counted as beyond its budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes_max: Option<u64>,
    /// Nodes, under the rule paths, until a search gives up a little more. The nearer it comes to this
    /// number, the more must still be possible. When absent, 160 on drives of more than 131,072 cylinders;
    /// on others a search ends when the best is sure, as with "endless".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patience: Option<PatienceConfig>,
    /// Most wanted pieces on one cylinder among which a path over its tracks is sought, under the rule
    /// paths; where there are more, the best of its tracks is taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps_max: Option<u32>,
    /// Time by which seeks to and from free work are planned to be longer than the curve says, inside the
    /// drive: the conservatism of fast02. A scheduler outside has its own, `host.scheduler.conservatism`.
    #[serde(skip_serializing_if = "is_no_time")]
    pub conservatism: SimDuration,
    /// Free work on the tracks of foreground requests, inside the drive. A scheduler outside has its own,
    /// `host.scheduler.same_track`.
    #[serde(skip_serializing_if = "is_distinct")]
    pub same_track: SameTrack,
    /// The tasks, which compete for the same gaps; when absent one scan.
    pub tasks: Vec<TaskOrder>,
    /// Uses idle time as well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle: Option<IdleConfig>,
}

impl Default for FreeblockConfig {
    fn default() -> Self {
        Self {
            rule: Rule::default(),
            region_weights: true,
            nodes_max: None,
            patience: None,
            steps_max: None,
            conservatism: SimDuration::ZERO,
            same_track: SameTrack::Distinct,
            tasks: vec![TaskOrder::default()],
            idle: None,
        }
    }
}

impl FreeblockConfig {
    /// Options of the planner.
    pub(crate) fn options(&self) -> Options {
        Options {
            rule: self.rule,
            region_weights: self.region_weights,
            budget: self.nodes_max.unwrap_or(u64::MAX),
            steps_max: self.steps_max.unwrap_or(STEPS_MAX),
            patience: self.patience.map(Into::into).unwrap_or_default(),
            ..Options::default()
        }
    }

    /// Bounds that a drive's planner needs.
    pub(super) fn bounds(&self, drive: &Drive) -> Bounds {
        // Behind such a margin only gaps within a track are left, as the margin is of seeks. All else is work in
        // idle time.
        let has_gaps = self.conservatism < drive.rotation().period();
        if has_gaps { Bounds::default() } else { Bounds::Rough }
    }

    /// Checks that a server has all of its tasks, and returns the fault.
    pub(crate) fn check_served(&self) -> Result<(), String> {
        let server = "a server (`host.server`)";
        if self.tasks.len() > OPEN_MAX {
            let count = self.tasks.len();
            return Err(format!(
                "`freeblock.tasks` has {count} tasks: {server} has {OPEN_MAX} at most; leave some out"
            ));
        }
        for task in &self.tasks {
            if !SERVED_IN_EXPERIMENTS.contains(&task.kind) {
                let word = task.kind.word();
                return Err(format!(
                    "`freeblock.tasks`: {server} has no tasks of {word} in an experiment; take scan, scrub or backup, or leave `server` out"
                ));
            }
            if let Some(share) = task.sample_share {
                return Err(format!(
                    "`freeblock.tasks.sample_share` is {share}: {server} reads all blocks of a task; leave one of them out"
                ));
            }
        }
        Ok(())
    }
}

/// Nodes until a search for paths gives up a little more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "a number of nodes, at least 1, or \"endless\" is needed")]
pub enum PatienceConfig {
    /// A number of nodes.
    Nodes(NonZeroU32),
    /// No number.
    Word(PatienceWord),
}

/// A patience that is no number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PatienceWord {
    /// Until the best is sure.
    Endless,
}

impl From<PatienceConfig> for Patience {
    fn from(config: PatienceConfig) -> Self {
        match config {
            PatienceConfig::Nodes(nodes) => Self::Nodes(nodes),
            PatienceConfig::Word(PatienceWord::Endless) => Self::Endless,
        }
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
    /// Begins after this time, which stays.
    pub(crate) fn of(after: SimDuration) -> Self {
        Self { after, adapt: None, run_max: run_max() }
    }

    pub(crate) fn check(&self) -> Result<(), String> {
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
    pub(crate) fn timer(&self) -> IdleTimer {
        IdleTimer::new(self.after, self.adapt)
    }

    /// Blocks of 512 B in a run.
    pub(crate) fn run_blocks(&self) -> u32 {
        (self.run_max.get() / 512) as u32
    }
}

impl FreeblockConfig {
    /// Checks the table for `arms` arms of this capacity.
    pub(crate) fn check(&self, capacity: Blocks, arms: u64) -> Result<(), String> {
        if self.tasks.is_empty() {
            return Err("`tasks` is empty: at least one is needed, or no `freeblock`".into());
        }
        for (number, task) in self.tasks.iter().enumerate() {
            let checked = task.check(capacity, arms);
            checked.map_err(|message| format!("{}{message}", place(number)))?;
        }
        if self.conservatism > CONSERVATISM_MAX {
            let margin = self.conservatism;
            return Err(format!(
                "`conservatism` is {margin}: at most {CONSERVATISM_MAX} are allowed"
            ));
        }
        self.check_names()?;
        self.check_backups(capacity)?;
        let idle = self.idle.map_or(Ok(()), |idle| idle.check());
        idle.map_err(|message| format!("idle: {message}"))
    }

    /// Err for a task whose blocks are no whole sectors of a drive that takes no less than `least`. Its
    /// `length` is of whole blocks.
    pub(crate) fn check_sectors(&self, least: Bytes) -> Result<(), String> {
        for (number, task) in self.tasks.iter().enumerate() {
            let values = [
                ("block_size", task.block()),
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
        let tasks = &self.tasks;
        for (number, task) in tasks.iter().enumerate() {
            let same = |other: &&TaskOrder| other.name.is_some() && other.name == task.name;
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
        let tasks = &self.tasks;
        let of = |task: TaskKind| tasks.iter().enumerate().filter(move |(_, t)| t.kind == task);
        for (backup, saved) in of(TaskKind::Backup) {
            for (number, written) in of(TaskKind::Write) {
                let (from, to) = saved.bounds(capacity);
                let (start, end) = written.bounds(capacity);
                if start < to && from < end {
                    let names = names(tasks);
                    let (backup, write) = (&names[backup], &names[number]);
                    let place = place(number);
                    return Err(format!(
                        "{place}`kind` is write, of blocks of which {backup} is a backup, and {write} would not wait for it: give them parts of the drive that are apart (`start`, `length`)"
                    ));
                }
            }
        }
        Ok(())
    }

    /// True if a task writes.
    pub(crate) fn writes(&self) -> bool {
        self.tasks.iter().any(|task| task.kind == TaskKind::Write)
    }

    /// Blocks of all rounds that the run waits for, on one arm; None when no task has rounds.
    pub(crate) fn blocks_of_rounds(&self, capacity: Blocks) -> Option<u64> {
        let of = |task: &TaskOrder| Some(task.rounds? * task.blocks_of_a_round(capacity));
        let each: Vec<u64> = self.tasks.iter().filter_map(of).collect();
        (!each.is_empty()).then(|| each.iter().sum())
    }
}

/// Place of a task in the list, for messages about its keys.
fn place(number: usize) -> String {
    format!("tasks[{number}]: ")
}
