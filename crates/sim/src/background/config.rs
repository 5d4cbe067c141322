//! The `[freeblock]` table of an experiment.

use freewheel_model::freeblock::tasks::{TaskSpec, Until};
use freewheel_model::freeblock::uses;
use freewheel_model::freeblock::{Adapt, IdleTimer, Rule};
use freewheel_units::{Blocks, Bytes, SimDuration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::promote::PromoteTail;

/// Background work in the rotational gaps of the foreground: freeblock scheduling.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FreeblockConfig {
    /// How a gap is filled.
    pub rule: Rule,
    /// Whether, under the rule paths, regions of the disk that lag behind count for more.
    pub prices: bool,
    /// Most nodes of its search that one decision looks at; then the best found so far is taken, and
    /// the decision counted as beyond its budget. Without it every decision is exact.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes_max: Option<u64>,
    /// What is read.
    pub task: BackgroundTask,
    /// Size of the task's blocks, each of which is handed over whole.
    pub block_size: Bytes,
    /// Part of all blocks that is enough, whichever they are: a statistical sample.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enough: Option<f64>,
    /// Go on until so many rounds are complete on every arm, whatever number of requests the
    /// workload has. A trace ends with its last record all the same, and when the rounds are
    /// complete before that, the rest of it is not replayed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rounds: Option<u64>,
    /// Promotes the last blocks of a round to foreground requests. They wait in the same queue, and
    /// their own response times are in no statistics.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub promote_tail: Option<PromoteTail>,
    /// Uses idle time as well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle: Option<IdleConfig>,
}

/// Use of idle time: when the arm has had nothing to do for a while, it reads until a request
/// arrives, and finishes what it is about then.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IdleConfig {
    /// How long the arm must have had nothing to do: the timeout of Golding et al., "Idleness is not
    /// sloth" (USENIX 1995).
    pub after: SimDuration,
    /// Whether that adapts to what it costs, from there on; else it stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adapt: Option<Adapt>,
    /// Most bytes between two looks at whether a request has arrived. A larger block of the task is
    /// read as a whole.
    #[serde(default = "run_max")]
    pub run_max: Bytes,
}

/// Assumed: the largest block that osdi00 looks at, on a drive of today a quarter of a millisecond.
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

    /// When it may begin.
    pub(super) fn timer(&self) -> IdleTimer {
        IdleTimer::new(self.after, self.adapt)
    }

    /// Blocks of 512 B in a run.
    pub(super) fn run_blocks(&self) -> u32 {
        (self.run_max.get() / 512) as u32
    }
}

/// Longest time without work that may be waited for.
const IDLE_AFTER_MAX: SimDuration = SimDuration::from_secs(3600);

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

impl Default for FreeblockConfig {
    /// Pages of 4 KiB, as in osdi00 section 6.
    fn default() -> Self {
        Self {
            rule: Rule::Paths,
            prices: true,
            nodes_max: None,
            task: BackgroundTask::default(),
            block_size: Bytes::new(4096),
            enough: None,
            rounds: None,
            promote_tail: None,
            idle: None,
        }
    }
}

impl FreeblockConfig {
    /// What is wrong with it on so many arms of this capacity, if anything is.
    pub(crate) fn check(&self, capacity: Blocks, arms: u64) -> Result<(), String> {
        let blocks = self.block_size.get() / 512;
        if !self.block_size.get().is_multiple_of(512)
            || !(1..=u64::from(u32::MAX)).contains(&blocks)
        {
            let size = self.block_size;
            return Err(format!("`block_size` is {size}: whole blocks of 512 B are needed"));
        }
        if let Some(enough) = self.enough
            && !(enough > 0.0 && enough <= 1.0)
        {
            return Err(format!("`enough` is {enough}: more than 0 and at most 1 is allowed"));
        }
        self.check_rounds(capacity, arms)?;
        let idle = self.idle.map_or(Ok(()), |idle| idle.check());
        idle.map_err(|message| format!("idle: {message}"))?;
        let tail = self.promote_tail.map_or(Ok(()), |tail| tail.check(self.block_size));
        tail.map_err(|message| format!("promote_tail: {message}"))
    }

    /// Their blocks on all arms are counted together.
    fn check_rounds(&self, capacity: Blocks, arms: u64) -> Result<(), String> {
        let Some(rounds) = self.rounds else { return Ok(()) };
        let blocks = self.blocks_of_a_round(capacity);
        let most = blocks.checked_mul(arms).map_or(0, |blocks| u64::MAX / blocks);
        if (1..=most).contains(&rounds) {
            return Ok(());
        }
        Err(format!(
            "`rounds` is {rounds}: 1 to {most} can be counted, with {blocks} blocks in a round and {arms} arms; without `rounds` the work goes on as long as the workload"
        ))
    }

    /// Blocks of 512 B in one of the task's.
    pub(crate) fn size(&self) -> u32 {
        (self.block_size.get() / 512) as u32
    }

    pub(crate) fn task_spec(&self, capacity: Blocks) -> TaskSpec {
        let size = self.size();
        let whole = match self.task {
            BackgroundTask::DataMining => uses::data_mining(capacity, size),
            BackgroundTask::Scrub => uses::scrub(capacity, size),
        };
        match self.enough {
            None => whole,
            Some(_) => TaskSpec { until: Until::Enough(self.blocks_of_a_round(capacity)), ..whole },
        }
    }

    /// Blocks of the task that make a round.
    pub(crate) fn blocks_of_a_round(&self, capacity: Blocks) -> u64 {
        let all = capacity.get().div_ceil(u64::from(self.size()));
        let part = (all as f64 * self.enough.unwrap_or(1.0)).ceil() as u64;
        part.clamp(1, all)
    }
}
