//! The messages of the control interface, for both ends. Blocks have 512 bytes, times are nanoseconds.

use std::fmt;

use freewheel_freeblock::tasks::{Extent, Priority, TaskKind};
use freewheel_freeblock::{Effort, TaskOrder};
use freewheel_host::{Account, MarginInUse};
use freewheel_model::drive::SeekDirection;
use freewheel_model::stats::Distribution;
use freewheel_units::{Op, SimDuration, SimTime};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::names::{KindSchema, PrioritySchema, StateSchema, served_kind};
use super::sample::SampleReport;
use crate::serve::{self, RefreshReport, SectorSizes, ServedTaskReport, TaskState};

/// A limit that no drive reaches: 128 PiB.
pub(crate) const BLOCKS_END: u64 = 1 << 48;

/// Consecutive blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BlockRange {
    /// The first.
    pub first_block: u64,
    /// Their number.
    pub blocks: u64,
}

impl From<Extent> for BlockRange {
    fn from(extent: Extent) -> Self {
        Self { first_block: extent.start.get(), blocks: extent.blocks.get() }
    }
}

/// Outcome of a refresh's blocks, in all rounds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Refresh {
    /// Blocks that clients wrote meanwhile, which refreshed them.
    pub superseded_blocks: u64,
    /// Blocks that were left because clients wrote parts of them again and again.
    pub busy_blocks: u64,
    /// Ranges that were read back with other data than were written: the first thousand.
    pub differing: Vec<BlockRange>,
    /// Number of these blocks.
    pub differing_blocks: u64,
    /// Ranges that could not be written, or not be read since: the first thousand.
    pub unwritten: Vec<BlockRange>,
    /// Number of these blocks.
    pub unwritten_blocks: u64,
}

impl From<&RefreshReport> for Refresh {
    fn from(report: &RefreshReport) -> Self {
        Self {
            superseded_blocks: report.superseded.get(),
            busy_blocks: report.busy.get(),
            differing: report.differing.iter().copied().map(Into::into).collect(),
            differing_blocks: report.differing_blocks.get(),
            unwritten: report.unwritten.iter().copied().map(Into::into).collect(),
            unwritten_blocks: report.unwritten_blocks.get(),
        }
    }
}

/// The prediction of a round's end at one moment, and its error.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Expectation {
    /// Percentage of the round that had been read.
    pub percent: u8,
    /// Time since the begin of the round.
    pub after_ns: u64,
    /// Predicted rest of the round.
    pub expected_ns: u64,
    /// The rest that the round took; null while the task runs.
    pub took_ns: Option<u64>,
    /// Relative error: above zero the prediction was too long.
    pub error: Option<f64>,
}

/// A background task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Task {
    /// Number of the task.
    pub id: u64,
    /// Kind of the task.
    #[schema(value_type = KindSchema)]
    #[serde(deserialize_with = "served_kind")]
    pub kind: TaskKind,
    /// State of the task.
    #[schema(value_type = StateSchema)]
    pub state: TaskState,
    /// The rest is read by foreground requests.
    pub promoted: bool,
    /// First block of the task.
    pub first_block: u64,
    /// Wanted blocks of a round, without skipped ones.
    pub blocks: u64,
    /// Least size of a read.
    pub block_size_bytes: u64,
    /// Weight against other tasks.
    #[schema(value_type = PrioritySchema)]
    pub priority: Priority,
    /// Deadline of a round, from its beginning.
    pub deadline_ns: Option<u64>,
    /// Uses idle time as well, after this time without a client's request.
    pub idle_after_ns: Option<u64>,
    /// Reads the last blocks of a round by foreground requests, at this cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promote_tail_cost: Option<f64>,
    /// Head time of these requests in this round; absent without `promote_tail_cost`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tail_head_ns: Option<u64>,
    /// Set if another round begins after each one.
    pub repeat: bool,
    /// The sample that it reads; absent where it reads all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<SampleReport>,
    /// Set if the data go to a reader.
    pub stream: bool,
    /// Rounds that are complete.
    pub rounds: u64,
    /// Blocks that were read, in all rounds; of a refresh, blocks that were rewritten and read back.
    pub blocks_read: u64,
    /// Blocks that are still to be read in this round.
    pub blocks_left: u64,
    /// Time since its first round began.
    pub elapsed_ns: u64,
    /// Predicted rest of this round.
    pub remaining_ns: Option<u64>,
    /// Ranges that are still unreadable: the first thousand.
    pub unreadable: Vec<BlockRange>,
    /// Blocks that are still unreadable.
    pub unreadable_blocks: u64,
    /// Blocks that were read before a client wrote over them.
    pub copied_blocks: u64,
    /// Blocks that had to be read again, because the reader had no room for them.
    pub refused_blocks: u64,
    /// Outcome of a refresh's other blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refresh: Option<Refresh>,
    /// Earlier predictions for this round, or for the last one.
    pub expectations: Vec<Expectation>,
}

impl Task {
    /// A report as of `now` since the server began.
    pub fn new(report: &ServedTaskReport, now: SimTime) -> Self {
        let TaskOrder { kind, priority, deadline, idle_after, promote_tail, repeat, .. } =
            report.order;
        let range = report.order.range();
        let until = report.ended.unwrap_or(now);
        Self {
            id: report.id,
            kind,
            state: report.state,
            promoted: report.is_promoted,
            first_block: range.start.get(),
            blocks: report.blocks.get(),
            block_size_bytes: report.order.block().get(),
            priority,
            deadline_ns: deadline.map(SimDuration::ns),
            idle_after_ns: idle_after.map(SimDuration::ns),
            promote_tail_cost: promote_tail.map(|tail| tail.cost),
            tail_head_ns: promote_tail.map(|_| report.tail_head.ns()),
            repeat,
            sample: report.sample.map(|sample| SampleReport::new(range, &sample)),
            stream: report.has_reader,
            rounds: report.rounds,
            blocks_read: report.delivered.get(),
            blocks_left: report.left.get(),
            elapsed_ns: report.began.map_or(0, |began| until.saturating_since(began).ns()),
            remaining_ns: report.end.map(|end| end.saturating_since(now).ns()),
            unreadable: report.unreadable.iter().copied().map(Into::into).collect(),
            unreadable_blocks: report.unreadable_blocks.get(),
            copied_blocks: report.copied.get(),
            refused_blocks: report.refused.get(),
            refresh: report.refresh.as_ref().map(Into::into),
            expectations: expectations(report),
        }
    }

    /// The part of the round that is done.
    pub fn done(&self) -> f64 {
        1.0 - self.blocks_left as f64 / self.blocks.max(1) as f64
    }

    /// True if it makes progress only while requests of clients leave gaps.
    pub fn needs_gaps(&self) -> bool {
        !self.state.is_over() && !self.promoted && self.idle_after_ns.is_none()
    }
}

fn expectations(report: &ServedTaskReport) -> Vec<Expectation> {
    report
        .predictions
        .iter()
        .map(|predictions| {
            let expected = predictions.end.saturating_since(predictions.at).ns();
            let is_known = report.state == TaskState::Done;
            let end = report.ended.filter(|_| is_known);
            let took = end.map(|end| end.saturating_since(predictions.at).ns());
            Expectation {
                percent: predictions.percent,
                after_ns: predictions.at.saturating_since(report.round_began).ns(),
                expected_ns: expected,
                took_ns: took,
                error: took
                    .filter(|&took| took > 0)
                    .map(|took| expected as f64 / took as f64 - 1.0),
            }
        })
        .collect()
}

/// Statistics of durations.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct Durations {
    /// Their number.
    pub count: u64,
    /// Their mean.
    pub mean_ns: f64,
    /// Median.
    pub p50_ns: u64,
    /// 90th percentile.
    pub p90_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// 99.9th percentile.
    pub p999_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

impl Durations {
    /// A distribution in numbers.
    pub fn new(distribution: &Distribution) -> Self {
        let summary = distribution.summary();
        Self {
            count: summary.count,
            mean_ns: summary.mean_ns,
            p50_ns: summary.p50_ns,
            p90_ns: summary.p90_ns,
            p99_ns: summary.p99_ns,
            p999_ns: summary.p999_ns,
            max_ns: summary.max_ns,
        }
    }
}

/// Cost of the decisions about gaps since the server began.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct Decisions {
    /// Decisions, with or without a task.
    pub count: u64,
    /// Decisions that ran out of time, and may have missed a better choice.
    pub exhausted: u64,
    /// Nodes that their searches visited.
    #[serde(default)]
    pub nodes: u64,
    /// Time before the drive needs a command at which its decision begins, learned from recent decisions.
    #[serde(default)]
    pub before_ns: u64,
    /// Durations of decisions.
    pub times: Durations,
}

impl Decisions {
    /// Numbers of the decisions.
    pub fn new(decisions: &serve::Decisions) -> Self {
        let serve::Decisions { effort, times, before } = decisions;
        let Effort { decisions: count, nodes, exhausted, .. } = *effort;
        Self { count, exhausted, nodes, before_ns: before.ns(), times: Durations::new(times) }
    }
}

/// Sectors of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Sectors {
    /// Size of a logical sector; commands have whole ones.
    pub logical_bytes: u32,
    /// Size of a sector of the media, as far as it is known.
    pub physical_bytes: u32,
}

impl Default for Sectors {
    fn default() -> Self {
        SectorSizes::default().into()
    }
}

impl From<SectorSizes> for Sectors {
    fn from(SectorSizes { logical_bytes, physical_bytes }: SectorSizes) -> Self {
        Self { logical_bytes, physical_bytes }
    }
}

/// Counts of the scheduler since the server began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct Scheduling {
    /// Gaps between foreground requests, by prediction.
    pub gaps: u64,
    /// Gaps with free work.
    pub gaps_used: u64,
    /// Rotational latency in gaps.
    pub potential_ns: u64,
    /// Time of wanted blocks under the head in gaps.
    pub transfer_ns: u64,
    /// Blocks moved for free work.
    pub free_blocks: u64,
    /// Blocks of them that were written.
    #[serde(default)]
    pub free_written_blocks: u64,
    /// Commands of free work alone.
    pub free_commands: u64,
    /// Foreground commands that free work was merged with.
    pub merged_commands: u64,
    /// Commands whose end was predicted.
    pub predicted_commands: u64,
    /// Predicted commands that ended one or more turns late.
    pub late_commands: u64,
    /// Commands whose end the media cannot explain: buffer hits, or activity of the drive's own.
    pub surprises: u64,
    /// Reads of clients that free work has taken buffer hits from, by their chances.
    #[serde(default)]
    pub lost_hits: u64,
    /// Sum of the time that they took longer, and hits that waited for free work.
    #[serde(default)]
    pub lost_hit_ns: u64,
    /// Gaps that were left to the drive, as free work in them cost more than the budget allows.
    #[serde(default)]
    pub gaps_left: u64,
    /// By how much free work delayed requests of clients otherwise.
    #[serde(default)]
    pub delay_ns: u64,
    /// Writes of parts of physical sectors: the drive takes a read and a turn more for each.
    #[serde(default)]
    pub part_sector_writes: u64,
}

impl From<Account> for Scheduling {
    fn from(account: Account) -> Self {
        Self {
            gaps: account.gaps,
            gaps_used: account.gaps_used,
            potential_ns: account.potential_ns as u64,
            transfer_ns: account.transfer_ns as u64,
            free_blocks: account.free_blocks,
            free_written_blocks: account.free_written_blocks,
            free_commands: account.commands,
            merged_commands: account.merged,
            predicted_commands: account.predicted,
            late_commands: account.late,
            surprises: account.surprises,
            lost_hits: account.lost_hits,
            lost_hit_ns: account.lost_hit_ns as u64,
            gaps_left: account.gaps_left,
            delay_ns: account.delay_ns as u64,
            part_sector_writes: account.part_sector_writes,
        }
    }
}

/// Cost of free work in gaps to clients, by slots in which it is switched off.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FreeCost {
    /// Slots without free work that have counterparts with it.
    pub slots: u64,
    /// Requests of clients in them.
    pub requests_without: u64,
    /// Requests of clients in the slots beside them.
    pub requests_with: u64,
    /// By how much longer the mean response is with free work, as a share; null when too few requests
    /// tell.
    pub cost: Option<f64>,
    /// Standard error of the cost.
    pub standard_error: Option<f64>,
}

impl From<freewheel_host::FreeCost> for FreeCost {
    fn from(measured: freewheel_host::FreeCost) -> Self {
        let freewheel_host::FreeCost { slots, requests_without, requests_with, .. } = measured;
        let freewheel_host::FreeCost { cost, standard_error, .. } = measured;
        Self { slots, requests_without, requests_with, cost, standard_error }
    }
}

impl From<FreeCost> for freewheel_host::FreeCost {
    fn from(measured: FreeCost) -> Self {
        let FreeCost { slots, requests_without, requests_with, cost, standard_error } = measured;
        Self { slots, requests_without, requests_with, cost, standard_error }
    }
}

impl fmt::Display for FreeCost {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        freewheel_host::FreeCost::from(*self).fmt(out)
    }
}

/// The learned margin of a kind of movement to or from free work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Margin {
    /// The operation at its end.
    pub op: MovementEnd,
    /// Direction of the arm; null for a change of heads.
    #[serde(default)]
    pub direction: Option<MovementDirection>,
    /// The shortest movement of this kind, in cylinders; zero is a change of heads.
    pub cylinders_min: u32,
    /// The longest.
    pub cylinders_max: u32,
    /// Time beyond the prediction that the movement may take, in nanoseconds.
    pub margin_ns: u64,
    /// Movements that it was learned from.
    pub movements: u64,
    /// Movements that were a turn late.
    pub late: u64,
}

/// The operation at the end of a movement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum MovementEnd {
    /// Blocks are read.
    Read,
    /// Blocks are written, for which the head must have settled.
    Write,
}

/// Direction of the arm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum MovementDirection {
    /// Towards the spindle, to higher cylinders.
    Inward,
    /// Away from it.
    Outward,
}

impl From<MarginInUse> for Margin {
    fn from(margin: MarginInUse) -> Self {
        let MarginInUse { op, direction, cylinders_min, cylinders_max, .. } = margin;
        let MarginInUse { margin_ns, movements, late, .. } = margin;
        let op = if op == Op::Write { MovementEnd::Write } else { MovementEnd::Read };
        let direction = direction.map(|direction| match direction {
            SeekDirection::Inward => MovementDirection::Inward,
            SeekDirection::Outward => MovementDirection::Outward,
        });
        Self { op, direction, cylinders_min, cylinders_max, margin_ns, movements, late }
    }
}

/// State of the server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ServerStatus {
    /// Version of the server.
    pub server_version: String,
    /// Identifies this run of the server.
    pub instance: String,
    /// Name of the drive's file and of the export.
    pub drive: String,
    /// Blocks of the device.
    pub blocks: u64,
    /// Bytes of its shortest track: longer blocks of a task lie on several tracks and come in pieces.
    #[serde(default)]
    pub track_bytes_min: u64,
    /// Size of a task's blocks that names none.
    #[serde(default)]
    pub block_size_bytes: u64,
    /// Sectors of the device.
    #[serde(default)]
    pub sectors: Sectors,
    /// Time since the server began.
    pub uptime_ns: u64,
    /// Time without a client's request; null while there is one.
    pub idle_ns: Option<u64>,
    /// Counts of the scheduler.
    pub scheduling: Scheduling,
    /// The learned margins; empty with --conservatism TIME.
    #[serde(default)]
    pub margins: Vec<Margin>,
    /// Cost of free work to clients, as measured in slots without it.
    #[serde(default)]
    pub free_cost: Option<FreeCost>,
    /// Cost of the decisions about gaps.
    #[serde(default)]
    pub decisions: Decisions,
    /// Response times of clients' requests.
    pub responses: Durations,
    /// Prediction errors of commands, without their sign.
    pub prediction_errors: Durations,
    /// Warnings on the server's stderr: that its device is gone, or that few commands meet their
    /// prediction.
    pub notices: Vec<String>,
    /// Background tasks.
    pub tasks: Vec<Task>,
}

impl ServerStatus {
    /// Clients that have been away for this time may stay away.
    pub const AWAY_AFTER: SimDuration = SimDuration::from_secs(5);

    /// True if a task reads no blocks because no client leaves gaps.
    pub fn starves(&self, task: &Task) -> bool {
        task.needs_gaps() && self.idle_ns.is_some_and(|idle| idle >= Self::AWAY_AFTER.ns())
    }
}

/// A call of the interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Route {
    /// `GET` or `POST`.
    pub method: String,
    /// With `{id}` for a task's number.
    pub path: String,
    /// Effect of the call.
    pub summary: String,
}

/// A refused request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Refusal {
    /// The reason.
    pub error: String,
}

/// The event of unreadable blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UnreadableNews {
    /// The task's number.
    pub id: u64,
    /// The first block.
    pub first_block: u64,
    /// Their number.
    pub blocks: u64,
}

/// The event of lost events, which came faster than the client read them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LaggedNews {
    /// Number of lost events.
    pub missed: u64,
}

/// Ranges that clients have written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WrittenRanges {
    /// The run of the server.
    pub instance: String,
    /// Time of this answer since the server began.
    pub now_ns: u64,
    /// Size of a region: a write counts for all of its region.
    pub region_blocks: u64,
    /// Ranges of regions with writes since then.
    pub ranges: Vec<BlockRange>,
}
