//! Results of the background work of an arm.

use freewheel_freeblock::tasks::RoundKind;
use freewheel_freeblock::{ByNodes, GapUse, IdleTimer, Opportunity};
use freewheel_host::Deliveries;
use freewheel_units::SimDuration;
use serde::Serialize;

use super::comparison::UseResult;

/// The background work of one arm.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BackgroundResult {
    /// Results of the tasks, in the experiment's order.
    pub tasks: Vec<TaskResult>,
    /// Number of gaps for which the planner decided.
    pub decisions: u64,
    /// Search nodes of all decisions.
    pub nodes: u64,
    /// Nodes after which a search for paths ends unless far more may be had; None where it ends when the
    /// best is sure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patience_nodes: Option<u64>,
    /// Number of decisions by search nodes, in powers of two.
    pub by_nodes: ByNodes,
    /// Decisions that the node budget ended; a better plan may exist.
    pub exhausted: u64,
    /// Memory for wanted blocks and their index.
    pub memory_bytes: u64,
    /// Hash over every delivery: blocks, task, path and time. A server's deliveries have their number, not their
    /// places.
    #[serde(skip)]
    pub delivered_hash: u64,
    /// Starts of work in idle time, where it is used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_starts: Option<IdleStarts>,
}

/// Results of a task on one arm.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TaskResult {
    /// Name in the experiment, or else the kind.
    pub name: String,
    /// Kind of a round: every block, or a sample.
    pub kind: RoundKind,
    /// Blocks of a round: both versions of a comparison.
    pub blocks: u64,
    /// Size of a block in bytes.
    pub block_bytes: u64,
    /// Deadline of a round.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_ns: Option<u64>,
    /// Complete rounds, each begun at the end of the one before.
    pub rounds: Vec<Round>,
    /// The round under way at the end.
    pub unfinished: Round,
    /// Expected end of the unfinished round, from the start of the run. None without an estimate.
    /// Before half of the round the estimate assumes requests spread over the whole drive; requests to
    /// parts of the drive take longer.
    pub expected_end_ns: Option<u64>,
    /// Results of a task that requests blocks on demand.
    #[serde(rename = "use", skip_serializing_if = "Option::is_none")]
    pub used: Option<UseResult>,
}

/// Starts of work in idle time that a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct IdleStarts {
    /// Number of starts.
    pub starts: u64,
    /// Starts that delayed the request beyond the acceptable. None for a fixed timeout, which has no
    /// such measure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wrong: Option<u64>,
    /// Timeout at the end.
    pub timeout_ns: u64,
}

impl IdleStarts {
    pub(super) fn new(timer: &IdleTimer, adapts: bool) -> Self {
        let timeout_ns = timer.timeout().ns();
        Self { starts: timer.starts(), wrong: adapts.then(|| timer.wrong()), timeout_ns }
    }
}

/// One round: every block once, or the sample.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Round {
    /// Duration.
    pub elapsed_ns: u64,
    /// Blocks by the path of their delivery.
    #[serde(flatten)]
    pub deliveries: Deliveries,
    /// Use of the gaps.
    pub gaps: Gaps,
    /// Progress at even parts of the blocks, denser towards the end.
    pub progress: Vec<Progress>,
}

/// Sums over gaps, in time of the head.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Gaps {
    /// Rotational latency of the foreground without free work.
    pub potential_ns: u64,
    /// Free runs under the head.
    pub transfer_ns: u64,
    /// Additional seeks and settling. A detour may spare a write its settling.
    pub extra_seek_ns: i64,
}

/// Use of rotational latency, in shares that add up to 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct GapShares {
    /// Free runs under the head.
    pub transfer_share: f64,
    /// Additional seeks and settling; negative where detours spare writes more settling than they take.
    pub extra_seek_share: f64,
    /// Latency without use.
    pub unused_share: f64,
}

impl Gaps {
    /// Counts a gap and its use.
    pub fn add(&mut self, gap: &Opportunity, gap_use: &GapUse) {
        self.potential_ns += gap.latency().ns();
        self.transfer_ns += gap_use.transfer.ns();
        self.extra_seek_ns += gap_use.extra_seek_ns;
    }

    /// Use of the latency in shares; all zero without latency.
    pub fn shares(&self) -> GapShares {
        let share = |ns: f64| ns / self.potential_ns.max(1) as f64;
        let transfer_share = share(self.transfer_ns as f64);
        let extra_seek_share = share(self.extra_seek_ns as f64);
        let unused_share = 1.0 - transfer_share - extra_seek_share;
        GapShares { transfer_share, extra_seek_share, unused_share }
    }

    /// Difference to an earlier sum.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            potential_ns: self.potential_ns - earlier.potential_ns,
            transfer_ns: self.transfer_ns - earlier.transfer_ns,
            extra_seek_ns: self.extra_seek_ns - earlier.extra_seek_ns,
        }
    }
}

/// Progress of a round at some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Progress {
    /// Time since the start of the round.
    pub elapsed_ns: u64,
    /// Blocks that were delivered or superseded.
    pub blocks: u64,
    /// Use of the gaps until then.
    pub gaps: Gaps,
}

impl TaskResult {
    /// True if the task is complete and never repeats.
    pub fn is_done(&self) -> bool {
        self.kind.is_once() && !self.rounds.is_empty()
    }

    /// End of the last complete round, from the start of the run; zero without one.
    pub fn ended_ns(&self) -> u64 {
        self.rounds.iter().map(|round| round.elapsed_ns).sum()
    }

    /// Mean duration of complete rounds; None without one.
    pub fn round_time(&self) -> Option<SimDuration> {
        let rounds = self.rounds.len() as u64;
        let sum: u64 = self.rounds.iter().map(|round| round.elapsed_ns).sum();
        Some(SimDuration::from_ns(sum.checked_div(rounds)?))
    }

    /// Rounds a day at that mean.
    pub fn rounds_a_day(&self) -> Option<f64> {
        self.round_time().map(|time| 86_400.0 / time.as_secs_f64())
    }

    /// Delivered bytes a second at that mean, from gaps and other paths.
    pub fn bytes_per_second(&self) -> Option<f64> {
        let bytes = (self.blocks * self.block_bytes) as f64;
        self.round_time().map(|time| bytes / time.as_secs_f64())
    }

    /// Complete rounds, and the one under way at the end.
    pub fn all_rounds(&self) -> impl Iterator<Item = &Round> {
        self.rounds.iter().chain([&self.unfinished])
    }

    /// Mean share of the rounds' time that the last `part` of the blocks took.
    pub fn time_share_of_last(&self, part: f64) -> Option<f64> {
        let shares: Option<Vec<f64>> =
            self.rounds.iter().map(|round| round.time_share_of_last(part)).collect();
        let shares = shares.filter(|shares| !shares.is_empty())?;
        Some(shares.iter().sum::<f64>() / shares.len() as f64)
    }
}

impl Round {
    fn time_share_of_last(&self, part: f64) -> Option<f64> {
        let blocks = self.progress.last()?.blocks as f64;
        let reached = |progress: &&Progress| progress.blocks as f64 >= blocks * (1.0 - part);
        let at = self.progress.iter().find(reached)?.elapsed_ns;
        Some(1.0 - at as f64 / self.elapsed_ns as f64)
    }
}
