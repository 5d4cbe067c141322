//! The messages of the control interface, for both ends. Blocks have 512 bytes, times are nanoseconds.

use std::fmt;

use freewheel_freeblock::tasks::{BLOCK_SIZE_MAX, Extent, Priority, TaskKind};
use freewheel_freeblock::{Effort, PromoteTail};
use freewheel_host::tasks::Sample;
use freewheel_host::{Account, MarginInUse};
use freewheel_model::drive::SeekDirection;
use freewheel_model::stats::Distribution;
use freewheel_units::{BLOCK_BYTES, Blocks, Op, SimDuration, SimTime};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::names::{KindSchema, PrioritySchema, served_kind};
use super::sample::{SampleReport, SampleRequest, draw};
use crate::extents::{ByteRange, Extents};
use crate::serve::{
    self, PredictionMark, RefreshReport, SectorSizes, ServedTaskReport, ServedTaskSpec,
    ServedTaskState,
};

/// Longest time that a task may be given: a year.
const TIME_MAX: SimDuration = SimDuration::from_secs(365 * 24 * 3600);

/// A limit that no drive reaches: 128 PiB.
pub(crate) const BLOCKS_END: u64 = 1 << 48;

/// State of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum TaskState {
    /// For its reader.
    Waiting,
    /// The task reads blocks.
    Running,
    /// All its blocks have been read, or named unreadable.
    Done,
    /// Ended by a call, because its reader went away, or because no reader came within a minute.
    Aborted,
    /// The task's reader was too slow to continue without delaying clients; or a flush of a refresh failed.
    Failed,
    /// The device is gone.
    Lost,
}

/// A task to begin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskRequest {
    /// Kind of the task.
    #[schema(value_type = KindSchema)]
    #[serde(deserialize_with = "served_kind")]
    pub kind: TaskKind,
    /// First block of the task.
    #[serde(default)]
    pub first_block: u64,
    /// Number of its blocks; to the end of the drive when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<u64>,
    /// The wanted parts of this range, in bytes from the beginning of the drive: at most 500,000, in any
    /// order. Each is widened to whole blocks of the task, and those that overlap are merged. All of the
    /// range when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extents: Option<Vec<ByteRange>>,
    /// Ranges to skip: whole blocks of the task, in ascending order and apart from each other.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skip: Vec<BlockRange>,
    /// Skipped parts are read all the same where a client has written since this time after the begin of
    /// the server.
    #[serde(default)]
    pub skip_since_ns: u64,
    /// Least size of a read: a multiple of 512 up to 1 MiB. When absent the server chooses about an eighth of
    /// a track of the drive, from 4 KiB to 64 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_size_bytes: Option<u64>,
    /// Weight against other tasks.
    #[schema(value_type = PrioritySchema)]
    #[serde(default)]
    pub priority: Priority,
    /// Deadline of a round, from its beginning. A late round weighs more. At most a year.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ns: Option<u64>,
    /// Uses idle time as well, after this time without a client's request: at most a year.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_after_ns: Option<u64>,
    /// Reads the last blocks of a round by foreground requests, at a cost of at most this share of the
    /// round's time: more than 0 and at most 1. When absent the last blocks wait for gaps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promote_tail_cost: Option<f64>,
    /// Begins another round after each one.
    #[serde(default)]
    pub repeat: bool,
    /// Reads a random sample alone, which is drawn when the task is begun: of a scan or scrub, without
    /// `skip` and `repeat`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<SampleRequest>,
    /// Waits up to a minute for a reader of its data at `/v1/tasks/{id}/data`, and ends with that request. A
    /// backup always does.
    #[serde(default)]
    pub stream: bool,
}

impl TaskRequest {
    /// All of a drive, once, in blocks of the default size.
    pub fn new(kind: TaskKind) -> Self {
        Self {
            kind,
            first_block: 0,
            blocks: None,
            extents: None,
            skip: Vec::new(),
            skip_since_ns: 0,
            block_size_bytes: None,
            priority: Priority::default(),
            deadline_ns: None,
            idle_after_ns: None,
            promote_tail_cost: None,
            repeat: false,
            sample: None,
            stream: false,
        }
    }

    /// The server's form of the request, on a drive of this size; the default block has `usual_block` x
    /// 512 B.
    pub(super) fn spec(
        &self,
        capacity: Blocks,
        usual_block: u32,
    ) -> Result<ServedTaskSpec, String> {
        let size = self.block_size_bytes.map_or(Ok(usual_block), block_size)?;
        if self.repeat && self.kind == TaskKind::Backup {
            return Err("repeat: a backup is of one moment; leave it out".into());
        }
        if !self.stream && self.kind == TaskKind::Backup {
            return Err("stream: a backup needs a reader of its data; set it to true and read \
                        /v1/tasks/{id}/data"
                .into());
        }
        let blocks = self.blocks.unwrap_or(capacity.get().saturating_sub(self.first_block));
        let range = Extent::new(self.first_block, blocks);
        let skip = self.skip.iter();
        if !self.stream && !self.skip.is_empty() {
            return Err("skip: only for a task with `stream`".into());
        }
        let wanted = self.extents.as_deref().map(|extents| wanted(extents, range, size));
        let mut wanted = wanted.transpose()?.unwrap_or_default();
        let is_inside =
            range.start.get().checked_add(blocks).is_some_and(|end| end <= capacity.get());
        // A range beyond the drive is refused with the task.
        let sample = self.sample.as_ref().filter(|_| is_inside).map(|sample| {
            self.check_sample()?;
            let (sample, drawn) = draw((range, &wanted), sample, size)?;
            wanted = drawn;
            Ok::<Sample, String>(sample)
        });
        let sample = sample.transpose()?;
        Ok(ServedTaskSpec {
            wanted,
            sample,
            skip: skip.map(|range| Extent::new(range.first_block, range.blocks)).collect(),
            skip_since: SimTime::from_ns(self.skip_since_ns),
            priority: self.priority,
            deadline: time("deadline_ns", self.deadline_ns)?,
            idle_after: time("idle_after_ns", self.idle_after_ns)?,
            promote_tail: self.promote_tail_cost.map(|cost| tail(cost, size)).transpose()?,
            repeats: self.repeat,
            has_reader: self.stream,
            ..ServedTaskSpec::new(self.kind, range, size)
        })
    }
}

impl TaskRequest {
    /// Err for what a sample cannot be.
    fn check_sample(&self) -> Result<(), String> {
        if self.kind == TaskKind::Backup {
            return Err("sample: a backup is of all blocks; leave it out, or begin a scan".into());
        }
        if self.repeat {
            return Err("repeat: a sample is drawn once; leave it out, or begin another task \
                        with another seed"
                .into());
        }
        if !self.skip.is_empty() {
            return Err("skip: not of a sample; name `extents` instead".into());
        }
        Ok(())
    }
}

/// The blocks of a range of the drive in which extents are, in whole blocks of `size` x 512 B.
fn wanted(extents: &[ByteRange], range: Extent, size: u32) -> Result<Vec<Extent>, String> {
    let allowed = match extents.len() {
        0 => Err("extents: an empty list: leave it out for all blocks".to_owned()),
        1..=Extents::MAX => Ok(()),
        all => Err(format!(
            "extents: {all} ranges: at most {} are allowed; join those that are close together",
            Extents::MAX
        )),
    };
    allowed?;
    let [first, blocks] = [range.start.get(), range.blocks.get()].map(|blocks| {
        let bytes = blocks.checked_mul(BLOCK_BYTES);
        bytes.ok_or_else(|| format!("{blocks} blocks are more than any drive has"))
    });
    let within = ByteRange::new(first?, blocks?);
    for (number, &ByteRange { offset_bytes, length_bytes }) in extents.iter().enumerate() {
        let end = offset_bytes.checked_add(length_bytes);
        let is_inside =
            offset_bytes >= within.offset_bytes && end.is_some_and(|end| end <= within.end());
        if !is_inside || length_bytes == 0 {
            return Err(format!(
                "extents[{number}]: {length_bytes} bytes from {offset_bytes} on: at least one is allowed, of \
                 bytes {} to {} of the task",
                within.offset_bytes,
                within.end()
            ));
        }
    }
    let whole = Extents::new(extents.to_vec()).widened(u64::from(size) * BLOCK_BYTES, within);
    let in_blocks = |range: &ByteRange| {
        Extent::new(range.offset_bytes / BLOCK_BYTES, range.length_bytes / BLOCK_BYTES)
    };
    Ok(whole.ranges().iter().map(in_blocks).collect())
}

/// A size of a task's blocks, in blocks of 512 B.
fn block_size(bytes: u64) -> Result<u32, String> {
    match u32::try_from(bytes / BLOCK_BYTES) {
        Ok(size @ 1..=BLOCK_SIZE_MAX) if bytes.is_multiple_of(BLOCK_BYTES) => Ok(size),
        _ => Err(format!(
            "block_size_bytes is {bytes}: a multiple of 512 up to {} is allowed",
            u64::from(BLOCK_SIZE_MAX) * BLOCK_BYTES
        )),
    }
}

fn time(key: &str, ns: Option<u64>) -> Result<Option<SimDuration>, String> {
    match ns.map(SimDuration::from_ns) {
        Some(time) if time > TIME_MAX => Err(format!(
            "{key} is {}: at most {}, a year, is allowed; leave it out for never",
            time.ns(),
            TIME_MAX.ns()
        )),
        time => Ok(time),
    }
}

/// Promotion of the last blocks, of a task with blocks of `size` x 512 B.
fn tail(cost: f64, size: u32) -> Result<PromoteTail, String> {
    let block = Blocks::new(size.into()).bytes();
    let tail = PromoteTail::for_blocks(cost, block);
    if !(cost > 0.0 && cost <= 1.0) {
        return Err(format!("promote_tail_cost is {cost}: more than 0 and at most 1 is allowed"));
    }
    Ok(tail)
}

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
        let ranges = |extents: &[Extent]| extents.iter().copied().map(Into::into).collect();
        Self {
            superseded_blocks: report.superseded.get(),
            busy_blocks: report.busy.get(),
            differing: ranges(&report.differing),
            differing_blocks: report.differing_blocks.get(),
            unwritten: ranges(&report.unwritten),
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
        let ServedTaskSpec { kind, range, block_size, repeats, has_reader, .. } = &report.spec;
        let ServedTaskSpec { priority, deadline, idle_after, promote_tail, sample, .. } =
            &report.spec;
        let until = report.ended.unwrap_or(now);
        Self {
            id: report.id,
            kind: *kind,
            state: match report.state {
                ServedTaskState::Waiting => TaskState::Waiting,
                ServedTaskState::Running => TaskState::Running,
                ServedTaskState::Done => TaskState::Done,
                ServedTaskState::Aborted => TaskState::Aborted,
                ServedTaskState::Failed => TaskState::Failed,
                ServedTaskState::Lost => TaskState::Lost,
            },
            promoted: report.is_promoted,
            first_block: range.start.get(),
            blocks: report.blocks.get(),
            block_size_bytes: u64::from(*block_size) * BLOCK_BYTES,
            priority: *priority,
            deadline_ns: deadline.map(SimDuration::ns),
            idle_after_ns: idle_after.map(SimDuration::ns),
            promote_tail_cost: promote_tail.map(|tail| tail.cost),
            tail_head_ns: promote_tail.map(|_| report.tail_head.ns()),
            repeat: *repeats,
            sample: sample.as_ref().map(|sample| SampleReport::new(*range, sample)),
            stream: *has_reader,
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
        let is_over = !matches!(self.state, TaskState::Waiting | TaskState::Running);
        !is_over && !self.promoted && self.idle_after_ns.is_none()
    }
}

fn expectations(report: &ServedTaskReport) -> Vec<Expectation> {
    let row = |predictions: &PredictionMark| {
        let expected = predictions.end.saturating_since(predictions.at).ns();
        let is_known = report.state == ServedTaskState::Done;
        let end = report.ended.filter(|_| is_known);
        let took = end.map(|end| end.saturating_since(predictions.at).ns());
        Expectation {
            percent: predictions.percent,
            after_ns: predictions.at.saturating_since(report.round_began).ns(),
            expected_ns: expected,
            took_ns: took,
            error: took.filter(|&took| took > 0).map(|took| expected as f64 / took as f64 - 1.0),
        }
    };
    report.predictions.iter().map(row).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(request: TaskRequest) -> String {
        request.spec(Blocks::new(1 << 20), 8).unwrap_err()
    }

    #[test]
    fn times_that_no_clock_can_add_are_refused_by_name() {
        let scrub = TaskRequest::new(TaskKind::Scrub);
        let idle = TaskRequest { idle_after_ns: Some(u64::MAX), ..scrub.clone() };
        assert!(refused(idle).starts_with("idle_after_ns is 18446744073709551615: at most"));
        let deadline = TaskRequest { deadline_ns: Some(TIME_MAX.ns() + 1), ..scrub.clone() };
        assert!(refused(deadline).starts_with("deadline_ns is "));
        let most = TaskRequest { deadline_ns: Some(TIME_MAX.ns()), ..scrub };
        assert!(most.spec(Blocks::new(1 << 20), 8).is_ok());
    }

    #[test]
    fn extents_are_merged_and_widened_to_whole_blocks_of_the_task() {
        let bytes = ByteRange::new;
        let spec = |first_block: u64, extents: Vec<ByteRange>| {
            TaskRequest {
                first_block,
                extents: Some(extents),
                block_size_bytes: Some(4096),
                ..TaskRequest::new(TaskKind::Scan)
            }
            .spec(Blocks::new(1003), 8)
        };
        let wanted = spec(3, vec![bytes(9000, 1), bytes(1003 * 512 - 1, 1), bytes(2000, 4000)]);
        let wanted = wanted.unwrap();
        assert_eq!(wanted.wanted, [Extent::new(3, 16), Extent::new(995, 8)]);
        let cut = spec(0, vec![bytes(1002 * 512, 512)]).unwrap();
        assert_eq!(cut.wanted, [Extent::new(1000, 3)], "at the end of the drive");
        let refused = |extents| spec(3, extents).unwrap_err();
        assert!(refused(vec![]).contains("leave it out for all blocks"));
        let many = vec![bytes(4096, 1); Extents::MAX + 1];
        assert!(refused(many).starts_with("extents: 500001 ranges: at most 500000 are allowed"));
        for extent in [bytes(1535, 1), bytes(4096, 0), bytes(1003 * 512, 1), bytes(u64::MAX, 2)] {
            let error = refused(vec![bytes(4096, 1), extent]);
            assert!(error.starts_with("extents[1]: "), "{error}");
            assert!(error.ends_with("of bytes 1536 to 513536 of the task"), "{error}");
        }
    }

    #[test]
    fn a_sample_is_drawn_of_what_is_wanted_and_counted_by_tenth() {
        let sample = SampleRequest { share: 0.25, unit_bytes: None, seed: 3 };
        let scan = TaskRequest { sample: Some(sample), ..TaskRequest::new(TaskKind::Scan) };
        let spec = scan.spec(Blocks::new(8000), 8).unwrap();
        let blocks = |spec: &ServedTaskSpec| -> u64 {
            spec.wanted.iter().map(|extent| extent.blocks.get()).sum()
        };
        let counts = spec.sample.unwrap();
        assert_eq!((counts.population, counts.drawn, blocks(&spec)), (1000, 250, 2000));
        assert_eq!(counts.places.iter().map(|place| place.drawn).sum::<u64>(), 2000);
        let extents = Some(vec![ByteRange::new(40_960, 81_920)]);
        let part = TaskRequest { extents, ..scan.clone() }.spec(Blocks::new(8000), 8).unwrap();
        let is_inside = |extent: &Extent| (80..240).contains(&extent.start.get());
        assert!(part.wanted.iter().all(is_inside), "{:?}", part.wanted);
        assert_eq!(blocks(&part), 40);
        let refused = |request: TaskRequest| request.spec(Blocks::new(8000), 8).unwrap_err();
        for share in [0.0, -0.1, 1.1, f64::NAN] {
            let sample = Some(SampleRequest { share, ..sample });
            let error = refused(TaskRequest { sample, ..scan.clone() });
            assert!(error.starts_with("sample.share is "), "{error}");
        }
        for unit in [0, 512, 4097] {
            let sample = Some(SampleRequest { unit_bytes: Some(unit), ..sample });
            let error = refused(TaskRequest { sample, ..scan.clone() });
            assert!(error.contains("a multiple of 4096, the task's block"), "{error}");
        }
        assert!(refused(TaskRequest { repeat: true, ..scan.clone() }).starts_with("repeat: "));
        let backup = TaskRequest { kind: TaskKind::Backup, stream: true, ..scan.clone() };
        assert!(refused(backup).starts_with("sample: a backup"));
        let all = TaskRequest {
            sample: Some(SampleRequest { share: 1.0, ..sample }),
            block_size_bytes: Some(512),
            ..scan
        };
        let error = all.spec(Blocks::new(500_001), 8).unwrap_err();
        assert!(error.contains("500001 units: at most 500000 are allowed"), "{error}");
    }

    #[test]
    fn a_tail_costs_a_share_of_time() {
        let scrub = TaskRequest::new(TaskKind::Scrub);
        for cost in [0.0, -0.1, 1.1, f64::NAN] {
            let request = TaskRequest { promote_tail_cost: Some(cost), ..scrub.clone() };
            assert!(refused(request).starts_with("promote_tail_cost is "), "{cost}");
        }
        let request =
            TaskRequest { promote_tail_cost: Some(0.02), block_size_bytes: Some(1 << 20), ..scrub };
        let spec = request.spec(Blocks::new(1 << 20), 8).unwrap();
        assert_eq!(spec.promote_tail.unwrap().merged_max.get(), 1 << 20, "room for a block");
    }

    #[test]
    fn a_backup_whose_data_nobody_takes_is_refused() {
        let backup = TaskRequest::new(TaskKind::Backup);
        assert!(refused(backup.clone()).starts_with("stream: "));
        let taken = TaskRequest { stream: true, ..backup };
        assert!(taken.spec(Blocks::new(1 << 20), 8).is_ok());
    }
}
