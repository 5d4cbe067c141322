//! Background tasks of a server: which blocks are wanted, which have come, and who gets their data.
//!
//! A person asks for a *served task*. For each of its rounds it registers one task with the planner, and
//! adds to that:
//! - It names unreadable blocks exactly: a failed read is repeated in halves.
//! - It puts the data of its blocks together and passes them on at the reader's pace. Blocks that the
//!   reader has no room for are read again.
//! - For a backup it reads blocks before a client writes over them.
//! - It uses idle time, or the foreground queue when it is promoted.
//!
//! Goals: no clock, thread or channel; each block of a round is passed on exactly once, or named
//! unreadable. Non-goals: the use of the data.

mod parts;
mod pieces;
mod proportion;
mod reads;
mod refresh;
mod rewrites;
mod sample;
mod state;
mod task;

use std::collections::BTreeMap;

use freewheel_freeblock::tasks::{
    BlockSelection, Event, Extent, TaskError, TaskId, TaskKind, Tasks,
};
use freewheel_freeblock::{Effort, PromotionId, TaskOrder, uses};
use freewheel_model::drive::Drive;
use freewheel_units::{BLOCK_BYTES, Blocks, Bytes, Lbn, SimDuration, SimTime};
use thiserror::Error;

use self::parts::planner_spec;
use self::pieces::Pieces;
use self::reads::ActiveRead;
use self::refresh::{Pass, Refresh};
use self::rewrites::RecentWrite;
use self::task::ServedTask;
use crate::runs::Runs;
use crate::task_account::{Deliveries, DeliveryPath};

pub use parts::{SERVED_KINDS, ServedOrder, TaskParts};
pub use pieces::CommandData;
pub use proportion::{DeliveryBias, Interval, Proportion, Stratum, delivery_bias, proportion};
pub use reads::OwnRead;
pub use refresh::RefreshReport;
pub use sample::{Sample, SamplePlace, begin_of};
pub use state::TaskState;
pub use task::ServedTaskReport;

/// Ended tasks that are remembered.
const ENDED_MAX: usize = 100;

/// Most tasks that have not ended: each has sets of blocks of the whole drive.
pub const OPEN_MAX: usize = 32;

/// Longest time that a task waits for its reader, and an erasure for room for a copy of its blocks.
pub(crate) const READER_WAIT_MAX: SimDuration = SimDuration::from_secs(60);

/// Reason why a call was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[allow(missing_docs)]
pub enum ServedTaskError {
    /// There is none with this number.
    #[error("there is no task {id}: `freewheel tasks` lists those there are")]
    Unknown { id: u64 },
    /// The task has ended.
    #[error("task {id} has ended")]
    Over { id: u64 },
    /// The task's data have a reader already, or none can join.
    #[error("the data of task {id} cannot be read: {why}")]
    NoData {
        id: u64,
        /// Reason for which not.
        why: &'static str,
    },
    /// The limit of open tasks is reached.
    #[error("{OPEN_MAX} tasks wait or run, which is the limit: end one with `freewheel abort`")]
    TooMany,
    /// The device is gone.
    #[error(
        "the device is gone: {why}; end this server, and start it again when the device is back"
    )]
    Lost {
        /// The device's last error.
        why: String,
    },
    /// The device reads and writes larger pieces.
    #[error(
        "{what} {blocks} blocks of 512: this device has sectors of {sector_bytes} bytes, so a multiple \
         of {} blocks is allowed", *sector_bytes / 512
    )]
    PartSector {
        /// Quantity at fault: the beginning or the length.
        what: &'static str,
        blocks: u64,
        /// Bytes of the device's sector.
        sector_bytes: u32,
    },
    /// A server has no tasks of this kind.
    #[error(
        "kind is {}: a server has tasks of `scan`, `scrub`, `backup` and `refresh` alone", kind.word()
    )]
    Kind { kind: TaskKind },
    /// A fault of the order.
    #[error("{0}")]
    Order(String),
    /// A refresh of which something is asked for that it does not do.
    #[error("a refresh {0}")]
    Refresh(&'static str),
    /// The device takes no writes that last.
    #[error("nothing can be refreshed: {why}")]
    NoWrites {
        /// Reason for which not.
        why: String,
    },
    /// The planner refused it.
    #[error(transparent)]
    Task(#[from] TaskError),
}

/// An event of a task, for its reader or for listeners.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ServedTaskOutput {
    /// Blocks for the reader of a task.
    Data {
        task: u64,
        /// First block of 512 B.
        start: Lbn,
        /// Contents of the blocks.
        data: Vec<u8>,
        /// Time at which they had been read.
        at: SimTime,
    },
    /// Blocks that cannot be read.
    Unreadable {
        task: u64,
        extent: Extent,
        /// Time at which it was known.
        at: SimTime,
    },
    /// A round is complete; another follows.
    Round {
        task: u64,
        at: SimTime,
        /// Blocks of 512 B of the round, by the path of their delivery.
        deliveries: Deliveries,
    },
    /// A task is over, one way or the other.
    Over { task: u64, at: SimTime },
}

/// Default block size of a task, in blocks of 512 B, on a device with sectors of `sector_blocks`.
pub fn usual_block(drive: &Drive, sector_blocks: u32) -> u32 {
    uses::usual_block(drive, Blocks::new(sector_blocks.into())).get() as u32
}

/// The shortest track of a drive, in blocks of 512 B: longer blocks of a task lie on several and come in
/// pieces.
pub fn shortest_track(drive: &Drive) -> u32 {
    let zones = drive.layout().zones().iter();
    zones.map(|zone| zone.blocks_per_track()).min().unwrap_or(u32::MAX)
}

/// Registers and aborts a first task. The planner then builds its index of the drive, which takes a
/// second for a large drive: now, before a client waits.
fn prepare(planner: &mut Tasks, usual_block: u32) {
    let block = Extent::new(0, usual_block.into());
    let usual = TaskOrder::served(TaskKind::Scan, block, usual_block);
    // A drive smaller than that needs no time.
    if let Ok(planner_task) =
        planner.register(SimTime::ZERO, planner_spec(&usual, false, vec![block]))
    {
        planner.refresh();
        let _ = planner.abort(SimTime::ZERO, planner_task, BlockSelection::All);
    }
}

/// All tasks of a server.
#[derive(Debug)]
pub struct ServedTasks {
    planner: Tasks,
    /// Blocks of 512 B of a sector, which is read as a whole or not.
    sector_blocks: u32,
    tasks: BTreeMap<u64, ServedTask>,
    by_planner_task: BTreeMap<TaskId, u64>,
    /// Planner's tasks that write and read back for a refresh.
    passes: BTreeMap<TaskId, (u64, Pass)>,
    /// Writes of clients that ended while a command was at the device that had been sent before.
    recent_writes: Vec<RecentWrite>,
    /// Writes of refreshes by requests of their own.
    own_writes: BTreeMap<u64, (u64, Extent)>,
    /// Set if a flush must bring written data to the media.
    by_flush: bool,
    /// Blocks of 512 B of a sector of the media.
    media_sector: u32,
    /// Reason why writing has stopped.
    no_writes: Option<String>,
    pieces: Pieces,
    under_way: BTreeMap<u64, ActiveRead>,
    reads_begun: u64,
    /// The last command that the device was sent.
    last_command: u64,
    outputs: Vec<ServedTaskOutput>,
    /// Reason why the device is lost.
    lost: Option<String>,
}

/// Longest list of extents that [`ServedTasks::check`] adds up.
const CHECKED_MAX: usize = 64;

impl ServedTasks {
    /// No tasks yet. The device has sectors of `sector_blocks`; most tasks will have blocks of
    /// `usual_block`.
    pub fn new(mut planner: Tasks, sector_blocks: u32, usual_block: u32) -> Self {
        prepare(&mut planner, usual_block);
        Self {
            planner,
            sector_blocks,
            tasks: BTreeMap::new(),
            by_planner_task: BTreeMap::new(),
            passes: BTreeMap::new(),
            recent_writes: Vec::new(),
            own_writes: BTreeMap::new(),
            by_flush: false,
            media_sector: sector_blocks,
            no_writes: None,
            pieces: Pieces::default(),
            under_way: BTreeMap::new(),
            reads_begun: 0,
            last_command: 0,
            outputs: Vec::new(),
            lost: None,
        }
    }

    /// The planner. After a call that may have delivered blocks, call [`Self::take_data`].
    pub fn planner(&mut self) -> &mut Tasks {
        &mut self.planner
    }

    /// Cost of the planner's decisions.
    pub fn effort(&self) -> Effort {
        self.planner.scheduler().effort()
    }

    /// The device has been sent a command; numbers rise.
    pub fn sent(&mut self, command: u64) {
        self.last_command = command;
    }

    /// Takes what is to be told since the last call, in order.
    pub fn outputs(&mut self) -> std::vec::Drain<'_, ServedTaskOutput> {
        self.outputs.drain(..)
    }

    /// Reports of all tasks that are remembered, by number.
    pub fn reports(&self, now: SimTime) -> Vec<ServedTaskReport> {
        self.tasks.keys().filter_map(|&id| self.report(id, now).ok()).collect()
    }

    /// Report of a task.
    pub fn report(&self, id: u64, now: SimTime) -> Result<ServedTaskReport, ServedTaskError> {
        let task = self.tasks.get(&id).ok_or(ServedTaskError::Unknown { id })?;
        Ok(task.report(id, self.left(id), now))
    }

    /// Blocks of 512 B that were read for a task in all rounds; none of an unknown one.
    pub fn delivered(&self, id: u64) -> u64 {
        self.tasks.get(&id).map_or(0, |task| task.delivered)
    }

    /// Memory of the planner's lists of wanted blocks, and of their index.
    pub fn memory(&self) -> Bytes {
        self.planner.memory().total()
    }

    /// True if some task is at work.
    pub fn any_runs(&self) -> bool {
        !self.by_planner_task.is_empty()
    }

    /// Begins a task; one with a reader begins when the reader comes. Returns its number.
    pub fn create(&mut self, now: SimTime, ordered: ServedOrder) -> Result<u64, ServedTaskError> {
        if let Some(why) = self.lost.clone() {
            return Err(ServedTaskError::Lost { why });
        }
        let order = &ordered.order;
        if !SERVED_KINDS.contains(&order.kind) {
            return Err(ServedTaskError::Kind { kind: order.kind });
        }
        let checked = order.check_served(self.planner.drive().blocks());
        checked.map_err(ServedTaskError::Order)?;
        ordered.parts.check(order)?;
        self.check_sectors(order)?;
        self.check_refresh(&ordered)?;
        self.expire(now);
        if self.tasks.values().filter(|task| !task.state.is_over()).count() >= OPEN_MAX {
            return Err(ServedTaskError::TooMany);
        }
        let id = self.tasks.last_key_value().map_or(1, |(last, _)| last + 1);
        let begins = !ordered.has_reader;
        self.tasks.insert(id, ServedTask::new(ordered, now));
        if begins && let Err(error) = self.begin_round(id, now) {
            self.end_refresh(id, now);
            self.tasks.remove(&id);
            return Err(error.into());
        }
        self.forget_old();
        self.check();
        Ok(id)
    }

    fn check_sectors(&self, order: &TaskOrder) -> Result<(), ServedTaskError> {
        let range = order.range();
        let bounds = [
            ("the task reads at once", order.size().into()),
            ("the task begins at", range.start.get()),
            ("the task has", range.blocks.get()),
        ];
        // A write of a part of a sector of the media would read the rest of it first.
        let is_refresh = order.kind == TaskKind::Refresh;
        let sector_blocks = if is_refresh { self.media_sector } else { self.sector_blocks };
        let sector = u64::from(sector_blocks);
        let part = bounds.into_iter().find(|(_, blocks)| !blocks.is_multiple_of(sector));
        part.map_or(Ok(()), |(what, blocks)| {
            let sector_bytes = sector_blocks * BLOCK_BYTES as u32;
            Err(ServedTaskError::PartSector { what, blocks, sector_bytes })
        })
    }

    fn check_refresh(&self, ordered: &ServedOrder) -> Result<(), ServedTaskError> {
        if ordered.order.kind != TaskKind::Refresh {
            return Ok(());
        }
        if let Some(why) = self.no_writes.clone() {
            return Err(ServedTaskError::NoWrites { why });
        }
        let wrong = if self
            .tasks
            .values()
            .any(|task| task.refresh.is_some() && !task.state.is_over())
        {
            "is there already, and a second one would write the same blocks: end the first by `freewheel \
             abort`, or wait for its end"
        } else if ordered.has_reader || !ordered.parts.skip.is_empty() {
            "has no reader of its data: leave `stream` and `skip` out"
        } else if ordered.order.promote_tail.is_some() {
            "writes in gaps to its end: leave `promote_tail` out, or promote all of it"
        } else {
            return Ok(());
        };
        Err(ServedTaskError::Refresh(wrong))
    }

    /// Ends tasks whose reader has not come in time.
    pub fn expire(&mut self, now: SimTime) {
        while let Some((id, _)) = self.first_waiting().filter(|(_, at)| *at <= now) {
            self.end(id, TaskState::Aborted, now);
        }
    }

    /// Time at which [`Self::expire`] ends the next one.
    pub fn expires_at(&self) -> Option<SimTime> {
        self.first_waiting().map(|(_, at)| at)
    }

    fn first_waiting(&self) -> Option<(u64, SimTime)> {
        let waiting = self.tasks.iter().filter(|(_, task)| task.state == TaskState::Waiting);
        waiting.map(|(&id, task)| (id, task.created + READER_WAIT_MAX)).min_by_key(|&(_, at)| at)
    }

    fn forget_old(&mut self) {
        let over: Vec<u64> =
            self.tasks.iter().filter(|(_, task)| task.state.is_over()).map(|(&id, _)| id).collect();
        let last = self.tasks.last_key_value().map(|(&id, _)| id);
        for id in over.iter().take(over.len().saturating_sub(ENDED_MAX)) {
            // Numbers go on from the last one.
            if Some(*id) != last {
                self.tasks.remove(id);
            }
        }
    }

    fn begin_round(&mut self, id: u64, now: SimTime) -> Result<(), TaskError> {
        self.begin_refresh(id, now)?;
        let Some(task) = self.tasks.get_mut(&id) else { return Ok(()) };
        let (rows, rest) = task.parts.cut(&task.order);
        task.ahead = Runs::from_ascending(rows);
        let first = task.next_portion();
        let planner_task = self.planner.register(now, task.planner_spec(first))?;
        self.by_planner_task.insert(planner_task, id);
        task.planner_task = Some(planner_task);
        task.begun_behind = self.last_command;
        task.state = TaskState::Running;
        task.began.get_or_insert(now);
        task.begin_account(now);
        task.account.estimate().wears(self.planner.wear(planner_task)?);
        rest.into_iter().for_each(|rest| task.read_later(rest));
        Ok(())
    }

    /// True if the planner has not been given all blocks of some task.
    pub fn has_ahead(&self) -> bool {
        self.by_planner_task.values().any(|id| self.tasks[id].ahead.blocks() > 0)
    }

    /// Gives the planner some more blocks, of one task, and time for what the next decision would have to
    /// do first.
    pub fn refill_planner(&mut self, now: SimTime) {
        for (&planner_task, id) in &self.by_planner_task {
            let Some(task) = self.tasks.get_mut(id) else { continue };
            let portion = task.next_portion();
            if portion.is_empty() {
                continue;
            }
            if self.planner.extend(now, planner_task, &portion).is_err() {
                portion.into_iter().for_each(|extent| task.read_later(extent));
            }
            if let Ok(wear) = self.planner.wear(planner_task) {
                task.account.estimate().wears(wear);
            }
            break;
        }
        self.planner.refresh();
        self.check();
    }

    /// Somebody is there for the data of a task, which begins with that. He takes `room` bytes now;
    /// clients have written where `written` says, of what the task would skip unless they had.
    pub fn reader_came(
        &mut self,
        now: SimTime,
        id: u64,
        room: u64,
        written: &[Extent],
    ) -> Result<(), ServedTaskError> {
        let task = self.tasks.get_mut(&id).ok_or(ServedTaskError::Unknown { id })?;
        match task.state {
            TaskState::Waiting => {}
            TaskState::Running if task.has_reader => {
                return Err(ServedTaskError::NoData { id, why: "somebody else reads them" });
            }
            TaskState::Running => {
                return Err(ServedTaskError::NoData { id, why: "it was begun without a reader" });
            }
            _ => return Err(ServedTaskError::Over { id }),
        }
        task.room = room;
        task.parts.read_again_where_written(&task.order, written);
        task.blocks = task.parts.blocks(&task.order);
        Ok(self.begin_round(id, now)?)
    }

    /// Sets how many bytes the reader of a task takes now.
    pub fn set_room(&mut self, id: u64, room: u64) {
        if let Some(task) = self.tasks.get_mut(&id) {
            task.overdue = if room > task.room { 0 } else { task.overdue };
            task.room = room;
        }
    }

    /// Ends a task. What is under way for it comes back and goes nowhere.
    pub fn abort(&mut self, now: SimTime, id: u64) -> Result<(), ServedTaskError> {
        self.running_or_waiting(id)?;
        self.end(id, TaskState::Aborted, now);
        Ok(())
    }

    /// Reads the rest of a task by foreground requests from now on.
    pub fn promote(&mut self, now: SimTime, id: u64) -> Result<(), ServedTaskError> {
        self.running_or_waiting(id)?.is_promoted = true;
        let left = self.left(id);
        if let Some(task) = self.tasks.get_mut(&id) {
            task.account.steady(left, now);
        }
        Ok(())
    }

    /// The device is gone: all tasks are over, and what fails from now on tells of no block.
    pub fn lose(&mut self, why: &str, now: SimTime) {
        self.lost.get_or_insert_with(|| why.into());
        let open = self.tasks.iter().filter(|(_, task)| !task.state.is_over());
        let open: Vec<u64> = open.map(|(&id, _)| id).collect();
        for id in open {
            self.end(id, TaskState::Lost, now);
        }
        self.check();
    }

    /// Checks in debug builds what calls keep in step by hand: numbers that refer to each other, and sums.
    fn check(&self) {
        if !cfg!(debug_assertions) {
            return;
        }
        for (planner_task, id) in &self.by_planner_task {
            let task = self.tasks.get(id).expect("the planner works for a task that is there");
            assert_eq!(task.planner_task, Some(*planner_task), "both sides name each other");
            assert_eq!(task.state, TaskState::Running, "the planner works for running tasks");
        }
        let running = self.tasks.values().filter(|task| task.planner_task.is_some()).count();
        assert_eq!(running, self.by_planner_task.len(), "each running task is the planner's");
        for task in self.tasks.values() {
            // Long lists would take longer than the calls that are checked.
            if task.separate_reads.len() <= CHECKED_MAX {
                let blocks = task.separate_reads.iter().map(|extent| extent.blocks.get());
                assert_eq!(blocks.sum::<u64>(), task.separate_blocks, "blocks to read separately");
            }
        }
    }

    fn running_or_waiting(&mut self, id: u64) -> Result<&mut ServedTask, ServedTaskError> {
        let task = self.tasks.get_mut(&id).ok_or(ServedTaskError::Unknown { id })?;
        if task.state.is_over() {
            return Err(ServedTaskError::Over { id });
        }
        Ok(task)
    }

    fn end(&mut self, id: u64, state: TaskState, now: SimTime) {
        let left = self.left(id);
        self.end_round(id, now);
        self.end_refresh(id, now);
        self.pieces.forget_task(id);
        let Some(task) = self.tasks.get_mut(&id) else { return };
        task.state = state;
        task.ended = Some(now);
        task.left_at_end = left;
        task.separate_reads.clear();
        task.separate_blocks = 0;
        task.ahead = Runs::default();
        task.parts = TaskParts { skip_since: task.parts.skip_since, ..TaskParts::default() };
        self.outputs.push(ServedTaskOutput::Over { task: id, at: now });
    }

    fn end_round(&mut self, id: u64, now: SimTime) {
        let planner_task = self.tasks.get_mut(&id).and_then(|task| task.planner_task.take());
        if let Some(planner_task) = planner_task {
            self.by_planner_task.remove(&planner_task);
            // It is there as long as it has a task.
            let _ = self.planner.abort(now, planner_task, BlockSelection::All);
        }
    }

    /// Blocks of 512 B that are still to be read in a task's round, or were when it ended.
    fn left(&self, id: u64) -> u64 {
        let task = &self.tasks[&id];
        let Some(planner_task) = task.planner_task else {
            return if task.state == TaskState::Waiting { task.blocks } else { task.left_at_end };
        };
        // The planner's clock is only needed for its own estimate.
        let wanted = self
            .planner
            .progress(planner_task, SimTime::ZERO)
            .map_or(0, |progress| progress.wanted);
        let kept = task.refresh.as_ref().map_or(0, |refresh| refresh.blocks.blocks());
        let aside = task.ahead.blocks() + task.separate_blocks + task.own_blocks + kept;
        wanted * u64::from(task.order.size()) + aside
    }

    /// Hears what the planner has delivered from this source.
    pub fn take_data(&mut self, source: &CommandData<'_>, now: SimTime) {
        let events: Vec<Event> = self.planner.events().collect();
        for event in events {
            self.hear(&event, source, now);
        }
        if !source.has_failed {
            self.keep_pieces(source);
        }
        self.settle(now);
        self.check();
    }

    fn hear(&mut self, event: &Event, source: &CommandData<'_>, now: SimTime) {
        match *event {
            Event::Delivered { task: planner_task, extent, is_promoted, .. } => {
                if let Some(&pass) = self.passes.get(&planner_task) {
                    return self.passed(pass, extent, source, now);
                }
                let Some(&id) = self.by_planner_task.get(&planner_task) else { return };
                let path = if is_promoted { None } else { Some(source.path_of(extent)) };
                if let Some(task) = self.tasks.get_mut(&id).filter(|_| is_promoted) {
                    task.account.delivered(extent.blocks.get(), DeliveryPath::Promotion);
                }
                self.came(id, extent, (source, path), now);
            }
            Event::Superseded { task: planner_task, extent, .. } => {
                if self.passes.contains_key(&planner_task) {
                    self.superseded(extent, now);
                }
            }
            Event::Done { .. } => {}
        }
    }

    /// Blocks have come by `path`, which counts once they are of use; None if it is counted.
    fn came(
        &mut self,
        id: u64,
        extent: Extent,
        (source, path): (&CommandData<'_>, Option<DeliveryPath>),
        now: SimTime,
    ) {
        let Some(task) = self.tasks.get_mut(&id) else { return };
        if source.has_failed {
            return task.read_later(extent);
        }
        if !task.wants_data() {
            return self.count(id, extent, path);
        }
        let is_refresh = task.refresh.is_some();
        if task.is_older(source.command) || is_refresh && self.is_old(extent, source.command) {
            return self.want_again(id, extent, now);
        }
        match self.pieces.gather(id, extent, source) {
            Some(data) => self.deliver(id, extent, data, path, now),
            None => self.tasks.get_mut(&id).into_iter().for_each(|task| task.read_later(extent)),
        }
    }

    /// Passes data on; without room at the reader the blocks are wanted again.
    fn deliver(
        &mut self,
        id: u64,
        extent: Extent,
        data: Vec<u8>,
        path: Option<DeliveryPath>,
        now: SimTime,
    ) {
        let Some(task) = self.tasks.get_mut(&id) else { return };
        if task.refresh.is_some() {
            return self.keep_to_write(id, extent, &data, now);
        }
        if !task.has_room_for(extent.blocks.get()) {
            task.refused += extent.blocks.get();
            return self.want_again(id, extent, now);
        }
        self.pass(id, extent, data, path, now);
    }

    /// Asks the planner once more for delivered blocks; what is not a whole block is read separately.
    fn want_again(&mut self, id: u64, extent: Extent, now: SimTime) {
        let Some(task) = self.tasks.get_mut(&id) else { return };
        let size = u64::from(task.order.size());
        let offset = extent.start.get() - task.order.range().start.get();
        let is_whole = offset.is_multiple_of(size) && extent.blocks.get().is_multiple_of(size);
        let planner_task = task.planner_task.filter(|_| is_whole);
        let wanted =
            planner_task.map(|planner_task| self.planner.extend(now, planner_task, &[extent]));
        if !matches!(wanted, Some(Ok(()))) {
            task.read_later(extent);
        }
    }

    fn pass(
        &mut self,
        id: u64,
        extent: Extent,
        data: Vec<u8>,
        path: Option<DeliveryPath>,
        now: SimTime,
    ) {
        let Some(task) = self.tasks.get_mut(&id) else { return };
        if task.has_reader {
            task.room = task.room.saturating_sub(data.len() as u64);
            self.outputs.push(ServedTaskOutput::Data {
                task: id,
                start: extent.start,
                data,
                at: now,
            });
        }
        self.count(id, extent, path);
    }

    fn count(&mut self, id: u64, extent: Extent, path: Option<DeliveryPath>) {
        let Some(task) = self.tasks.get_mut(&id) else { return };
        task.delivered += extent.blocks.get();
        if let Some(path) = path {
            task.account.delivered(extent.blocks.get(), path);
        }
        task.unreadable.remove(extent);
        task.count_sample(extent);
    }

    /// Keeps the data of blocks that lie across the ends of what has been read.
    fn keep_pieces(&mut self, source: &CommandData<'_>) {
        let Self { planner, tasks, pieces, by_planner_task, passes, recent_writes, .. } = self;
        let first = by_planner_task.iter().map(|(planner_task, id)| (planner_task, id, false));
        let back = passes.iter().filter(|(_, (_, pass))| *pass == Pass::ReadBack);
        let back = back.map(|(planner_task, (id, _))| (planner_task, id, true));
        for (&planner_task, id, reads_back) in first.chain(back) {
            let Some(task) = tasks.get(id).filter(|task| task.wants_data()) else { continue };
            if task.is_older(source.command) {
                continue;
            }
            let is_old = |refresh: &Refresh, block: Extent| {
                reads_back && !refresh.blocks.is_behind(block.start.get(), source.command)
                    || recent_writes.iter().any(|write| write.is_behind(block, source.command))
            };
            let (first, size) = (task.order.range().start.get(), u64::from(task.order.size()));
            for &edge in source.spans.iter().flat_map(|(from, to)| [from, to]) {
                let Some(offset) = edge.checked_sub(first) else { continue };
                let start = edge - offset % size;
                let wanted = planner.wanted(planner_task, Lbn::new(start));
                let block = Extent::new(start, size);
                let is_old = task.refresh.as_ref().is_some_and(|refresh| is_old(refresh, block));
                if start != edge && wanted.is_ok_and(|wanted| wanted.in_gap) && !is_old {
                    pieces.keep(*id, block, source);
                }
            }
        }
    }

    /// Ends rounds that are complete, and tasks with them.
    fn settle(&mut self, now: SimTime) {
        let running: Vec<u64> = self.by_planner_task.values().copied().collect();
        for id in running {
            let left = self.left(id);
            let Some(task) = self.tasks.get_mut(&id) else { continue };
            match task.ahead.blocks() {
                0 => task.account.estimate().at(left, now),
                // Until the planner knows all blocks, gaps cannot reach the others.
                _ => task.account.estimate().watch(left, now),
            }
            if left > 0 {
                continue;
            }
            task.account.complete();
            if !task.order.repeat {
                self.end(id, TaskState::Done, now);
                continue;
            }
            if let Some(refresh) = &mut task.refresh {
                refresh.blocks.clear();
            }
            let deliveries = *task.account.round();
            self.outputs.push(ServedTaskOutput::Round { task: id, at: now, deliveries });
            self.end_round(id, now);
            // What had room has room again.
            if self.begin_round(id, now).is_err() {
                self.end(id, TaskState::Failed, now);
            }
        }
    }

    /// A request alone in its command took this head time, which is at `to` now.
    pub fn head_took(&mut self, promotion: Option<PromotionId>, head: SimDuration, to: Lbn) {
        for id in self.by_planner_task.values() {
            let task = self.tasks.get_mut(id);
            task.into_iter().for_each(|task| task.head_took(promotion, head, to));
        }
    }

    /// Something has been written: what was kept of it is old.
    pub fn written(&mut self, from: u64, to: u64) {
        for id in self.by_planner_task.values() {
            self.pieces.forget(*id, self.tasks[id].order.size(), from, to);
        }
    }
}
