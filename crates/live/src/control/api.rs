//! What is said over the control interface, for both ends. Blocks are of 512 bytes, times in
//! nanoseconds.

use freewheel_freeblock::Effort;
use freewheel_freeblock::tasks::{BLOCK_SIZE_MAX, Extent, Priority};
use freewheel_host::{Account, MarginInUse};
use freewheel_model::drive::SeekDirection;
use freewheel_model::stats::Distribution;
use freewheel_units::{BLOCK_BYTES, Blocks, Op, SimDuration, SimTime};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::serve::{
    self, PredictionMark, SectorSizes, ServedTaskKind, ServedTaskReport, ServedTaskSpec,
    ServedTaskState,
};

/// Longest time that a task may be given: a year.
const TIME_MAX: SimDuration = SimDuration::from_secs(365 * 24 * 3600);

/// No drive has so many blocks: 128 PiB.
pub(crate) const BLOCKS_END: u64 = 1 << 48;

/// What a task reads for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum TaskKind {
    /// Each block once, as it is when it is read.
    Scan,
    /// The same, to see whether it can be read.
    Scrub,
    /// Each block once, as it was when the task began: what a client is about to write over is read
    /// first.
    Backup,
}

/// What a block is worth beside those of other tasks: one of a priority as much as four of the next
/// lower.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum TaskPriority {
    /// Weight 1.
    Low,
    /// Weight 4.
    #[default]
    Normal,
    /// Weight 16.
    High,
}

/// How far a task's life has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum TaskState {
    /// For whoever wants its data.
    Waiting,
    /// At work.
    Running,
    /// It has all.
    Done,
    /// Somebody did not want it any more, or whoever took its data went away, or nobody came for them
    /// within a minute.
    Aborted,
    /// Its data were taken too slowly to go on without holding clients up.
    Failed,
    /// The device is gone.
    Lost,
}

/// A task to begin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskRequest {
    /// What for.
    pub kind: TaskKind,
    /// Where it begins.
    #[serde(default)]
    pub first_block: u64,
    /// How many blocks; to the end of the drive when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<u64>,
    /// Parts of that which are not read: whole blocks of the task, in ascending order and apart from
    /// each other.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skip: Vec<BlockRange>,
    /// Of these parts those are read all the same in which a client has written since so long after
    /// the server began.
    #[serde(default)]
    pub skip_since_ns: u64,
    /// What is read at once, at least: a multiple of 512 up to 1 MiB. When absent the server chooses: about
    /// an eighth of a track of the drive, from 4 KiB to 64 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_size_bytes: Option<u64>,
    /// Beside other tasks.
    #[serde(default)]
    pub priority: TaskPriority,
    /// When a round is to be complete, from its beginning; it weighs more when it is late. At most a
    /// year.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ns: Option<u64>,
    /// Uses idle time as well, when no client's request has been there for so long: at most a year.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_after_ns: Option<u64>,
    /// Begins anew when it is done.
    #[serde(default)]
    pub repeat: bool,
    /// Waits a minute for somebody to take its data at `/v1/tasks/{id}/data`, and ends when he goes. A
    /// backup always does.
    #[serde(default)]
    pub stream: bool,
}

impl TaskRequest {
    /// All of a drive in blocks that fit it, once.
    pub fn new(kind: TaskKind) -> Self {
        Self {
            kind,
            first_block: 0,
            blocks: None,
            skip: Vec::new(),
            skip_since_ns: 0,
            block_size_bytes: None,
            priority: TaskPriority::default(),
            deadline_ns: None,
            idle_after_ns: None,
            repeat: false,
            stream: false,
        }
    }

    /// What the server is asked for, on a drive of this size, in blocks of `usual_block` x 512 B if nothing
    /// else is asked for.
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
            return Err("stream: a backup is its data, and somebody has to take them; set it to \
                        true and read /v1/tasks/{id}/data"
                .into());
        }
        let blocks = self.blocks.unwrap_or(capacity.get().saturating_sub(self.first_block));
        let kind = match self.kind {
            TaskKind::Scan => ServedTaskKind::Scan,
            TaskKind::Scrub => ServedTaskKind::Scrub,
            TaskKind::Backup => ServedTaskKind::Backup,
        };
        let skip = self.skip.iter();
        if !self.stream && !self.skip.is_empty() {
            return Err("skip: only for a task with `stream`".into());
        }
        Ok(ServedTaskSpec {
            skip: skip.map(|range| Extent::new(range.first_block, range.blocks)).collect(),
            skip_since: SimTime::from_ns(self.skip_since_ns),
            priority: match self.priority {
                TaskPriority::Low => Priority::Low,
                TaskPriority::Normal => Priority::Normal,
                TaskPriority::High => Priority::High,
            },
            deadline: time("deadline_ns", self.deadline_ns)?,
            idle_after: time("idle_after_ns", self.idle_after_ns)?,
            repeats: self.repeat,
            has_reader: self.stream,
            ..ServedTaskSpec::new(kind, Extent::new(self.first_block, blocks), size)
        })
    }
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

/// Consecutive blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BlockRange {
    /// The first.
    pub first_block: u64,
    /// How many.
    pub blocks: u64,
}

impl From<Extent> for BlockRange {
    fn from(extent: Extent) -> Self {
        Self { first_block: extent.start.get(), blocks: extent.blocks.get() }
    }
}

/// What was expected at some moment of a round, and how wrong that was.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Expectation {
    /// Percentage of the round that had been read.
    pub percent: u8,
    /// How long the round had gone on.
    pub after_ns: u64,
    /// How much longer it was expected to take.
    pub expected_ns: u64,
    /// How much longer it took; while it goes on nobody knows.
    pub took_ns: Option<u64>,
    /// By how much of that the expectation was too long, or, below zero, too short.
    pub error: Option<f64>,
}

/// A background task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Task {
    /// Its number.
    pub id: u64,
    /// What for.
    pub kind: TaskKind,
    /// How far its life has come.
    pub state: TaskState,
    /// What is left is read by foreground requests.
    pub promoted: bool,
    /// Where it begins.
    pub first_block: u64,
    /// How many blocks a round has, without what it skips.
    pub blocks: u64,
    /// What is read at once, at least.
    pub block_size_bytes: u64,
    /// Beside other tasks.
    pub priority: TaskPriority,
    /// When a round is to be complete, from its beginning.
    pub deadline_ns: Option<u64>,
    /// It uses idle time as well, when no client's request has been there for so long.
    pub idle_after_ns: Option<u64>,
    /// It begins anew when it is done.
    pub repeat: bool,
    /// Its data go to whoever asks for them.
    pub stream: bool,
    /// Rounds that are complete.
    pub rounds: u64,
    /// Blocks that were read, in all rounds.
    pub blocks_read: u64,
    /// Blocks that are still to be read in this round.
    pub blocks_left: u64,
    /// How long it has been at work.
    pub elapsed_ns: u64,
    /// How much longer this round is expected to take.
    pub remaining_ns: Option<u64>,
    /// What could not be read and has not been since: the first thousand ranges.
    pub unreadable: Vec<BlockRange>,
    /// How many blocks that are in all.
    pub unreadable_blocks: u64,
    /// Blocks that were read because a client was about to write over them.
    pub copied_blocks: u64,
    /// Blocks that were read, not taken in time, and wanted again.
    pub refused_blocks: u64,
    /// What was expected earlier of this round, or of the last one.
    pub expectations: Vec<Expectation>,
}

impl Task {
    /// A report as of `now` since the server began.
    pub fn new(report: &ServedTaskReport, now: SimTime) -> Self {
        let ServedTaskSpec { kind, range, block_size, repeats, has_reader, .. } = &report.spec;
        let ServedTaskSpec { priority, deadline, idle_after, .. } = &report.spec;
        let until = report.ended.unwrap_or(now);
        Self {
            id: report.id,
            kind: match kind {
                ServedTaskKind::Scan => TaskKind::Scan,
                ServedTaskKind::Scrub => TaskKind::Scrub,
                ServedTaskKind::Backup => TaskKind::Backup,
            },
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
            priority: match priority {
                Priority::Low => TaskPriority::Low,
                Priority::Normal => TaskPriority::Normal,
                Priority::High => TaskPriority::High,
            },
            deadline_ns: deadline.map(SimDuration::ns),
            idle_after_ns: idle_after.map(SimDuration::ns),
            repeat: *repeats,
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
            expectations: expectations(report),
        }
    }

    /// The part of the round that is done.
    pub fn done(&self) -> f64 {
        1.0 - self.blocks_left as f64 / self.blocks.max(1) as f64
    }

    /// Whether it can only go on while requests of clients leave gaps.
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

/// Durations in numbers.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct Durations {
    /// How many.
    pub count: u64,
    /// Their mean.
    pub mean_ns: f64,
    /// Half are no longer.
    pub p50_ns: u64,
    /// 90 % are no longer.
    pub p90_ns: u64,
    /// 99 % are no longer.
    pub p99_ns: u64,
    /// 99.9 % are no longer.
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

/// What decisions about what to do in gaps have cost since the server began.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct Decisions {
    /// Gaps that were decided on, also while no task wanted anything.
    pub count: u64,
    /// Decisions that stopped for want of time: something better may have been missed.
    pub exhausted: u64,
    /// Nodes of the search that they looked at.
    #[serde(default)]
    pub nodes: u64,
    /// So long before the drive needs a command it is decided on, by how long decisions took of late.
    #[serde(default)]
    pub before_ns: u64,
    /// How long each took.
    pub times: Durations,
}

impl Decisions {
    /// The same in numbers.
    pub fn new(decisions: &serve::Decisions) -> Self {
        let serve::Decisions { effort, times, before } = decisions;
        let Effort { decisions: count, nodes, exhausted, .. } = *effort;
        Self { count, exhausted, nodes, before_ns: before.ns(), times: Durations::new(times) }
    }
}

/// Sectors of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Sectors {
    /// The device is only asked for whole ones.
    pub logical_bytes: u32,
    /// Those of the media, as far as they are known.
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

/// What the scheduler saw and did since the server began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct Scheduling {
    /// Gaps between foreground requests, by prediction.
    pub gaps: u64,
    /// Gaps in which something was done.
    pub gaps_used: u64,
    /// Rotational latency in them.
    pub potential_ns: u64,
    /// Wanted blocks under the head in them.
    pub transfer_ns: u64,
    /// Blocks moved for free work.
    pub free_blocks: u64,
    /// Commands of free work alone.
    pub free_commands: u64,
    /// Foreground commands that free work was merged with.
    pub merged_commands: u64,
    /// Commands whose end was predicted.
    pub predicted_commands: u64,
    /// Of them those that came whole turns late.
    pub late_commands: u64,
    /// Commands that ended elsewhere than the media would have.
    pub surprises: u64,
    /// Writes of parts of physical sectors: each takes the drive a read and a turn more.
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
            free_commands: account.commands,
            merged_commands: account.merged,
            predicted_commands: account.predicted,
            late_commands: account.late,
            surprises: account.surprises,
            part_sector_writes: account.part_sector_writes,
        }
    }
}

/// How much longer than predicted a kind of movement to or from free work may take, as it was learned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Margin {
    /// What is done at its end.
    pub op: MovementEnd,
    /// Which way the arm goes; none for a change of heads.
    #[serde(default)]
    pub direction: Option<MovementDirection>,
    /// The shortest movement of this kind, in cylinders; zero is a change of heads.
    pub cylinders_min: u32,
    /// The longest.
    pub cylinders_max: u32,
    /// The margin.
    pub margin_ns: u64,
    /// Movements that it was learned from.
    pub movements: u64,
    /// Of them those that came a turn late.
    pub late: u64,
}

/// What is done at the end of a movement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum MovementEnd {
    /// Blocks are read.
    Read,
    /// Blocks are written, for which the head must have settled.
    Write,
}

/// Which way the arm goes.
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

/// The server as it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ServerStatus {
    /// Version of what serves.
    pub server_version: String,
    /// Tells this server from all others, and from itself after a restart.
    pub instance: String,
    /// Name of the drive's file, which is the export's too.
    pub drive: String,
    /// Its size.
    pub blocks: u64,
    /// Bytes of its shortest track: blocks of a task that are longer lie on several and come in pieces.
    #[serde(default)]
    pub track_bytes_min: u64,
    /// Its sectors.
    #[serde(default)]
    pub sectors: Sectors,
    /// Since when it serves.
    pub uptime_ns: u64,
    /// For how long no client's request has been there; none while one is.
    pub idle_ns: Option<u64>,
    /// What the scheduler saw and did.
    pub scheduling: Scheduling,
    /// The margins that it has learned; none with --conservatism TIME.
    #[serde(default)]
    pub margins: Vec<Margin>,
    /// What its decisions about gaps have cost.
    #[serde(default)]
    pub decisions: Decisions,
    /// Response times of clients' requests.
    pub responses: Durations,
    /// How far commands ended from where they were predicted to, either way.
    pub prediction_errors: Durations,
    /// What whoever serves was told on the server's stderr: that its device is gone, that little is
    /// foreseen.
    pub notices: Vec<String>,
    /// Background tasks.
    pub tasks: Vec<Task>,
}

/// Something that the interface answers to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Route {
    /// `GET` or `POST`.
    pub method: String,
    /// With `{id}` for a task's number.
    pub path: String,
    /// What it does.
    pub summary: String,
}

/// Why a request was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Refusal {
    /// In words.
    pub error: String,
}

/// Blocks that cannot be read for a task, as news.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UnreadableNews {
    /// The task's number.
    pub id: u64,
    /// The first block.
    pub first_block: u64,
    /// How many.
    pub blocks: u64,
}

/// News that were told faster than they were taken, and are lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LaggedNews {
    /// How many events.
    pub missed: u64,
}

/// Where clients have written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WrittenRanges {
    /// Which server says so.
    pub instance: String,
    /// When, since it began.
    pub now_ns: u64,
    /// What is told apart: writes count for all of a region.
    pub region_blocks: u64,
    /// Regions in which something was written since, as ranges.
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
    fn a_backup_whose_data_nobody_takes_is_refused() {
        let backup = TaskRequest::new(TaskKind::Backup);
        assert!(refused(backup.clone()).starts_with("stream: "));
        let taken = TaskRequest { stream: true, ..backup };
        assert!(taken.spec(Blocks::new(1 << 20), 8).is_ok());
    }
}
