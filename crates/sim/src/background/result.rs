//! What became of the background work of an arm.

use freewheel_freeblock::{ByNodes, GapUse, IdleTimer, Opportunity};
use freewheel_units::SimDuration;
use serde::Serialize;

use super::promote::PromotedWork;
use super::task::TaskKind;
use super::uses::UseResult;

/// The background work of one arm.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BackgroundResult {
    /// What became of each task, in the experiment's order.
    pub tasks: Vec<TaskResult>,
    /// Gaps that were decided on.
    pub decisions: u64,
    /// Nodes of the search that were looked at for them.
    pub nodes: u64,
    /// How many decisions looked at no more than so many of them, by powers of two.
    pub by_nodes: ByNodes,
    /// Decisions that stopped for their budget: something better may have been missed.
    pub exhausted: u64,
    /// Memory for what is wanted and for finding it.
    pub memory_bytes: u64,
    /// Hash over every delivery: which blocks to whom, by which way and when.
    #[serde(skip)]
    pub delivered_hash: u64,
    /// How the beginnings of work in idle time fared, where it was used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_starts: Option<IdleStarts>,
}

/// What became of a task on one arm.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TaskResult {
    /// What the experiment calls it, or else what it is.
    pub name: String,
    /// What it is.
    pub kind: TaskKind,
    /// Blocks of the task that make a round: both versions of a comparison, none of a task without
    /// rounds, all of which is told of the round under way.
    pub blocks: u64,
    /// Size of one in bytes.
    pub block_bytes: u64,
    /// How long a round may take, if the experiment says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_ns: Option<u64>,
    /// Rounds that were completed, each begun when the one before ended.
    pub rounds: Vec<Round>,
    /// The round under way at the end.
    pub unfinished: Round,
    /// When that was expected to be complete, from the beginning of the run on. None before
    /// anything could be told. Before half of it this rests on what is known of requests that go
    /// everywhere alike; where they keep to parts of the drive it takes longer.
    pub expected_end_ns: Option<u64>,
    /// What came of the blocks, of a task that asks for them as they come up.
    #[serde(rename = "use", skip_serializing_if = "Option::is_none")]
    pub used: Option<UseResult>,
}

/// Beginnings of work in idle time that a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct IdleStarts {
    /// All of them.
    pub starts: u64,
    /// Those that cost the request more than is acceptable. None where the timeout is fixed: it has
    /// no such measure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wrong: Option<u64>,
    /// The timeout at the end.
    pub timeout_ns: u64,
}

impl IdleStarts {
    pub(super) fn new(timer: &IdleTimer, adapts: bool) -> Self {
        let timeout_ns = timer.timeout().ns();
        Self { starts: timer.starts(), wrong: adapts.then(|| timer.wrong()), timeout_ns }
    }
}

/// One round: every block once, or as many as were enough.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Round {
    /// How long it took.
    pub elapsed_ns: u64,
    /// Blocks read in gaps.
    pub in_gaps: u64,
    /// Blocks that the foreground moved anyway.
    pub in_passing: u64,
    /// Blocks read in idle time.
    pub in_idle: u64,
    /// Foreground requests that were made for the last blocks.
    pub promoted: PromotedWork,
    /// Those that were made for blocks of a backup which a foreground write was about to write over.
    pub copied: PromotedWork,
    /// Blocks that were not to be written any more, since the foreground brought newer data.
    pub superseded: u64,
    /// What became of the gaps.
    pub gaps: Gaps,
    /// How far it was when, at even parts of the blocks and more often towards the end.
    pub progress: Vec<Progress>,
}

/// Sums over gaps, in time of the head.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Gaps {
    /// Rotational latency of the foreground without free work.
    pub potential_ns: u64,
    /// Free runs under the head.
    pub transfer_ns: u64,
    /// Further movements. A detour may spare a write its settling.
    pub extra_seek_ns: i64,
}

/// Where rotational latency went, in shares of it that add up to 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct GapShares {
    /// Free runs under the head.
    pub transfer_share: f64,
    /// Further movements; less than 0 where detours spare writes more settling than they take.
    pub extra_seek_share: f64,
    /// Latency that is left.
    pub unused_share: f64,
}

impl Gaps {
    /// Counts a gap and what was done in it.
    pub fn add(&mut self, gap: &Opportunity, gap_use: &GapUse) {
        self.potential_ns += gap.latency().ns();
        self.transfer_ns += gap_use.transfer.ns();
        self.extra_seek_ns += gap_use.extra_seek_ns;
    }

    /// Where the latency went. Where there was none, none is said to be used.
    pub fn shares(&self) -> GapShares {
        let share = |ns: f64| ns / self.potential_ns.max(1) as f64;
        let transfer_share = share(self.transfer_ns as f64);
        let extra_seek_share = share(self.extra_seek_ns as f64);
        let unused_share = 1.0 - transfer_share - extra_seek_share;
        GapShares { transfer_share, extra_seek_share, unused_share }
    }

    /// What is between `earlier` and here.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            potential_ns: self.potential_ns - earlier.potential_ns,
            transfer_ns: self.transfer_ns - earlier.transfer_ns,
            extra_seek_ns: self.extra_seek_ns - earlier.extra_seek_ns,
        }
    }
}

/// How far a round was at some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Progress {
    /// Since the round began.
    pub elapsed_ns: u64,
    /// Blocks of which nothing was left to do.
    pub blocks: u64,
    /// What had become of the gaps.
    pub gaps: Gaps,
}

impl TaskResult {
    /// Whether there is nothing more to come of it.
    pub fn is_done(&self) -> bool {
        self.kind.is_once() && !self.rounds.is_empty()
    }

    /// When the last round that was completed ended, from the beginning of the run on; zero before
    /// any was.
    pub fn ended_ns(&self) -> u64 {
        self.rounds.iter().map(|round| round.elapsed_ns).sum()
    }

    /// Mean time of the completed rounds; None when there are none.
    pub fn round_time(&self) -> Option<SimDuration> {
        let rounds = self.rounds.len() as u64;
        let sum: u64 = self.rounds.iter().map(|round| round.elapsed_ns).sum();
        Some(SimDuration::from_ns(sum.checked_div(rounds)?))
    }

    /// Rounds a day at the mean time of the completed ones.
    pub fn rounds_a_day(&self) -> Option<f64> {
        self.round_time().map(|time| 86_400.0 / time.as_secs_f64())
    }

    /// Bytes a second that were delivered, in gaps and otherwise, at the mean time of the completed
    /// rounds.
    pub fn bytes_per_second(&self) -> Option<f64> {
        let bytes = (self.blocks * self.block_bytes) as f64;
        self.round_time().map(|time| bytes / time.as_secs_f64())
    }

    /// The completed rounds, and the one under way at the end.
    pub fn all_rounds(&self) -> impl Iterator<Item = &Round> {
        self.rounds.iter().chain([&self.unfinished])
    }

    /// Mean part of the rounds' time that the last `part` of the blocks took.
    pub fn time_share_of_last(&self, part: f64) -> Option<f64> {
        let shares: Option<Vec<f64>> =
            self.rounds.iter().map(|round| round.time_share_of_last(part)).collect();
        let shares = shares.filter(|shares| !shares.is_empty())?;
        Some(shares.iter().sum::<f64>() / shares.len() as f64)
    }
}

impl Round {
    /// Blocks delivered.
    pub fn blocks(&self) -> u64 {
        self.in_gaps + self.in_passing + self.in_idle + self.promoted.blocks + self.copied.blocks
    }

    /// Blocks of which nothing is left to do.
    pub fn settled(&self) -> u64 {
        self.blocks() + self.superseded
    }

    fn time_share_of_last(&self, part: f64) -> Option<f64> {
        let blocks = self.progress.last()?.blocks as f64;
        let reached = |progress: &&Progress| progress.blocks as f64 >= blocks * (1.0 - part);
        let at = self.progress.iter().find(reached)?.elapsed_ns;
        Some(1.0 - at as f64 / self.elapsed_ns as f64)
    }
}
