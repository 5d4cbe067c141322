//! Background tasks of a server: what is wanted, what has come, and for whom.
//!
//! A *job* is what a person asks for; it has one of the planner's tasks for each of its rounds. Beyond
//! what the planner does for a task, a job
//! - says which blocks cannot be read, to the block: what failed is read again by itself, in halves;
//! - puts the data of its blocks together and hands them on, as fast as they are taken and no faster:
//!   what nobody has room for is wanted again;
//! - for a backup reads what a client is about to write over before the write is done;
//! - uses idle time, or the foreground queue when it is promoted.
//!
//! Goals: no clock, thread or channel here; each block of a round is handed on exactly once, or named
//! unreadable. Non-goals: what is done with the data.

mod job;
mod pieces;
mod reads;
mod runs;
mod spec;

use std::collections::BTreeMap;

use freewheel_freeblock::tasks::{BlockSelection, Event, Extent, TaskError, TaskId, Tasks};
use freewheel_freeblock::{Effort, uses};
use freewheel_model::drive::Drive;
use freewheel_units::{BLOCK_BYTES, Blocks, Lbn, SimDuration, SimTime};
use thiserror::Error;

use self::job::Job;
use self::pieces::Pieces;
use self::reads::ActiveRead;
use self::runs::Runs;

pub use job::{JobReport, State};
pub use pieces::Source;
pub use reads::{Copies, OwnRead};
pub use spec::{JobSpec, Kind};

/// Jobs that have ended and are remembered.
const ENDED_MAX: usize = 100;

/// Jobs that have not ended, at most: each has sets of blocks of the whole drive.
const OPEN_MAX: usize = 32;

/// So long a job waits for somebody to take its data, and an erasure for room for a copy of what is in it.
pub(super) const WAIT_MAX: SimDuration = SimDuration::from_secs(60);

/// Why a call was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum JobError {
    /// There is none with this number.
    #[error("there is no task {id}: `freewheel tasks` lists those there are")]
    Unknown {
        /// The number.
        id: u64,
    },
    /// It has ended.
    #[error("task {id} has ended")]
    Over {
        /// The number.
        id: u64,
    },
    /// Its data go to somebody else, or to nobody.
    #[error("the data of task {id} are not to be had: {why}")]
    NoData {
        /// The number.
        id: u64,
        /// Why not.
        why: &'static str,
    },
    /// As many as there may be have not ended.
    #[error("{OPEN_MAX} tasks wait or are at work, which is the most: end one (freewheel abort)")]
    TooMany,
    /// The device is gone.
    #[error(
        "the device is gone: {why}; end this server, and start it again when the device is back"
    )]
    Lost {
        /// What it said last.
        why: String,
    },
    /// The device reads and writes larger pieces.
    #[error(
        "{what} {blocks} blocks of 512: this device has sectors of {sector_bytes} bytes, so a multiple \
         of {} blocks is allowed", *sector_bytes / 512
    )]
    PartSector {
        /// Whose beginning or length it is.
        what: &'static str,
        /// What was asked for.
        blocks: u64,
        /// What the device has.
        sector_bytes: u32,
    },
    /// The planner refused it.
    #[error(transparent)]
    Task(#[from] TaskError),
}

/// Something to be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// Blocks for whoever wants a job's data.
    Data {
        /// Whose.
        job: u64,
        /// First block of 512 B.
        start: Lbn,
        /// What is in them.
        data: Vec<u8>,
        /// When they had been read.
        at: SimTime,
    },
    /// Blocks that cannot be read.
    Unreadable {
        /// Whose.
        job: u64,
        /// Which.
        extent: Extent,
        /// When it was known.
        at: SimTime,
    },
    /// A round is complete; another follows.
    Round {
        /// Whose.
        job: u64,
        /// When.
        at: SimTime,
    },
    /// A job is over, one way or the other.
    Over {
        /// Which.
        job: u64,
        /// When.
        at: SimTime,
    },
}

/// Blocks of 512 B that a task reads at once if nothing else is asked for, on a device with sectors of so
/// many.
pub fn usual_block(drive: &Drive, sector_blocks: u32) -> u32 {
    uses::usual_block(drive, Blocks::new(sector_blocks.into())).get() as u32
}

/// The shortest track of a drive, in blocks of 512 B: longer blocks of a task lie on several and come in
/// pieces.
pub fn shortest_track(drive: &Drive) -> u32 {
    let zones = drive.layout().zones().iter();
    zones.map(|zone| zone.blocks_per_track()).min().unwrap_or(u32::MAX)
}

/// The first task of a drive costs an index of it, which takes a large one a second: now, as nobody
/// waits yet.
fn prepare(tasks: &mut Tasks, usual_block: u32) {
    let usual = JobSpec::new(Kind::Scan, Extent::new(0, usual_block.into()), usual_block);
    // A drive smaller than that needs no time.
    if let Ok(task) = tasks.register(SimTime::ZERO, usual.task(Some(usual.range))) {
        tasks.refresh();
        let _ = tasks.abort(SimTime::ZERO, task, BlockSelection::All);
    }
}

/// All jobs of a server.
#[derive(Debug)]
pub struct Jobs {
    tasks: Tasks,
    /// Blocks of 512 B of a sector, which is read as a whole or not.
    sector_blocks: u32,
    jobs: BTreeMap<u64, Job>,
    by_task: BTreeMap<TaskId, u64>,
    pieces: Pieces,
    under_way: BTreeMap<u64, ActiveRead>,
    reads_begun: u64,
    /// The last command that the device was sent.
    last_command: u64,
    outputs: Vec<Output>,
    /// Why there is no device any more.
    lost: Option<String>,
}

impl Jobs {
    /// No jobs yet, on a device with sectors of so many blocks, of which most will have blocks of this
    /// size.
    pub fn new(mut tasks: Tasks, sector_blocks: u32, usual_block: u32) -> Self {
        prepare(&mut tasks, usual_block);
        Self {
            tasks,
            sector_blocks,
            jobs: BTreeMap::new(),
            by_task: BTreeMap::new(),
            pieces: Pieces::default(),
            under_way: BTreeMap::new(),
            reads_begun: 0,
            last_command: 0,
            outputs: Vec::new(),
            lost: None,
        }
    }

    /// The planner. After a call that may have delivered something comes [`Self::heard`].
    pub fn planner(&mut self) -> &mut Tasks {
        &mut self.tasks
    }

    /// What the planner's decisions have cost.
    pub fn effort(&self) -> Effort {
        self.tasks.scheduler().effort()
    }

    /// The device has been sent a command; numbers rise.
    pub fn sent(&mut self, command: u64) {
        self.last_command = command;
    }

    /// Takes what is to be told since the last call, in order.
    pub fn outputs(&mut self) -> std::vec::Drain<'_, Output> {
        self.outputs.drain(..)
    }

    /// What has become of all jobs that are remembered, by number.
    pub fn reports(&self, now: SimTime) -> Vec<JobReport> {
        self.jobs.keys().filter_map(|&id| self.report(id, now).ok()).collect()
    }

    /// What has become of a job.
    pub fn report(&self, id: u64, now: SimTime) -> Result<JobReport, JobError> {
        let job = self.jobs.get(&id).ok_or(JobError::Unknown { id })?;
        Ok(job.report(id, self.left(id), now))
    }

    /// Whether some job is at work.
    pub fn any_runs(&self) -> bool {
        !self.by_task.is_empty()
    }

    /// Begins a job, or lets it wait for whoever wants its data.
    pub fn create(&mut self, now: SimTime, spec: JobSpec) -> Result<u64, JobError> {
        if let Some(why) = self.lost.clone() {
            return Err(JobError::Lost { why });
        }
        spec.check(self.tasks.drive().blocks())?;
        self.check_sectors(&spec)?;
        self.expire(now);
        if self.jobs.values().filter(|job| !job.state.is_over()).count() >= OPEN_MAX {
            return Err(JobError::TooMany);
        }
        let id = self.jobs.last_key_value().map_or(1, |(last, _)| last + 1);
        let begins = !spec.has_reader;
        self.jobs.insert(id, Job::new(spec, now));
        if begins && let Err(error) = self.begin_round(id, now) {
            self.jobs.remove(&id);
            return Err(error.into());
        }
        self.forget_old();
        Ok(id)
    }

    fn check_sectors(&self, spec: &JobSpec) -> Result<(), JobError> {
        let bounds = [
            ("the task reads at once", spec.block_size.into()),
            ("the task begins at", spec.range.start.get()),
            ("the task has", spec.range.blocks.get()),
        ];
        let sector = u64::from(self.sector_blocks);
        let part = bounds.into_iter().find(|(_, blocks)| !blocks.is_multiple_of(sector));
        part.map_or(Ok(()), |(what, blocks)| {
            let sector_bytes = self.sector_blocks * BLOCK_BYTES as u32;
            Err(JobError::PartSector { what, blocks, sector_bytes })
        })
    }

    /// Ends jobs for whose data nobody has come in time.
    pub fn expire(&mut self, now: SimTime) {
        while let Some((id, _)) = self.first_waiting().filter(|(_, at)| *at <= now) {
            self.end(id, State::Aborted, now);
        }
    }

    /// When [`Self::expire`] ends the next one.
    pub fn expires_at(&self) -> Option<SimTime> {
        self.first_waiting().map(|(_, at)| at)
    }

    fn first_waiting(&self) -> Option<(u64, SimTime)> {
        let waiting = self.jobs.iter().filter(|(_, job)| job.state == State::Waiting);
        waiting.map(|(&id, job)| (id, job.created + WAIT_MAX)).min_by_key(|&(_, at)| at)
    }

    fn forget_old(&mut self) {
        let over: Vec<u64> =
            self.jobs.iter().filter(|(_, job)| job.state.is_over()).map(|(&id, _)| id).collect();
        let last = self.jobs.last_key_value().map(|(&id, _)| id);
        for id in over.iter().take(over.len().saturating_sub(ENDED_MAX)) {
            // Numbers go on from the last one.
            if Some(*id) != last {
                self.jobs.remove(id);
            }
        }
    }

    fn begin_round(&mut self, id: u64, now: SimTime) -> Result<(), TaskError> {
        let Some(job) = self.jobs.get_mut(&id) else { return Ok(()) };
        let (rows, rest) = job.spec.cut();
        rows.into_iter().for_each(|row| job.ahead.insert(row));
        let first = job.ahead.take_first(job.portion());
        let task = self.tasks.register(now, job.spec.task(first))?;
        self.by_task.insert(task, id);
        job.task = Some(task);
        job.begun_behind = self.last_command;
        job.state = State::Running;
        job.began.get_or_insert(now);
        job.estimate.begin(job.blocks, now);
        job.estimate.wears(self.tasks.wear(task)?);
        rest.into_iter().for_each(|rest| job.read_later(rest));
        Ok(())
    }

    /// Whether the planner has not been given all blocks of some job.
    pub fn has_ahead(&self) -> bool {
        self.by_task.values().any(|id| self.jobs[id].ahead.blocks() > 0)
    }

    /// Gives the planner some more blocks, of one job, and time for what the next decision would have to
    /// do first.
    pub fn give_more(&mut self, now: SimTime) {
        for (&task, id) in &self.by_task {
            let Some(job) = self.jobs.get_mut(id) else { continue };
            let Some(portion) = job.ahead.take_first(job.portion()) else { continue };
            if self.tasks.extend(now, task, &[portion]).is_err() {
                job.read_later(portion);
            }
            if let Ok(wear) = self.tasks.wear(task) {
                job.estimate.wears(wear);
            }
            break;
        }
        self.tasks.refresh();
    }

    /// Somebody is there for the data of a job, which begins with that. He takes `room` bytes now;
    /// clients have written where `written` says, of what the job would skip unless they had.
    pub fn reader_came(
        &mut self,
        now: SimTime,
        id: u64,
        room: u64,
        written: &[Extent],
    ) -> Result<(), JobError> {
        let job = self.jobs.get_mut(&id).ok_or(JobError::Unknown { id })?;
        match job.state {
            State::Waiting => {}
            State::Running if job.spec.has_reader => {
                return Err(JobError::NoData { id, why: "somebody else reads them" });
            }
            State::Running => {
                return Err(JobError::NoData { id, why: "it was begun without a reader" });
            }
            _ => return Err(JobError::Over { id }),
        }
        job.room = room;
        job.spec.skip_no(written);
        job.blocks = job.spec.blocks();
        Ok(self.begin_round(id, now)?)
    }

    /// How many bytes whoever wants a job's data takes now.
    pub fn set_room(&mut self, id: u64, room: u64) {
        if let Some(job) = self.jobs.get_mut(&id) {
            job.overdue = if room > job.room { 0 } else { job.overdue };
            job.room = room;
        }
    }

    /// Ends a job. What is under way for it comes back and goes nowhere.
    pub fn abort(&mut self, now: SimTime, id: u64) -> Result<(), JobError> {
        self.running_or_waiting(id)?;
        self.end(id, State::Aborted, now);
        Ok(())
    }

    /// Reads what is left of a job by foreground requests from now on.
    pub fn promote(&mut self, now: SimTime, id: u64) -> Result<(), JobError> {
        self.running_or_waiting(id)?.is_promoted = true;
        let left = self.left(id);
        if let Some(job) = self.jobs.get_mut(&id) {
            job.estimate.steady(left, now);
        }
        Ok(())
    }

    /// The device is gone: all jobs are over, and what fails from now on tells of no block.
    pub fn lose(&mut self, why: &str, now: SimTime) {
        self.lost.get_or_insert_with(|| why.into());
        let open = self.jobs.iter().filter(|(_, job)| !job.state.is_over());
        let open: Vec<u64> = open.map(|(&id, _)| id).collect();
        for id in open {
            self.end(id, State::Lost, now);
        }
    }

    fn running_or_waiting(&mut self, id: u64) -> Result<&mut Job, JobError> {
        let job = self.jobs.get_mut(&id).ok_or(JobError::Unknown { id })?;
        if job.state.is_over() {
            return Err(JobError::Over { id });
        }
        Ok(job)
    }

    fn end(&mut self, id: u64, state: State, now: SimTime) {
        let left = self.left(id);
        self.end_round(id, now);
        self.pieces.forget_job(id);
        let Some(job) = self.jobs.get_mut(&id) else { return };
        job.state = state;
        job.ended = Some(now);
        job.left_at_end = left;
        job.again.clear();
        job.again_blocks = 0;
        job.ahead = Runs::default();
        job.spec.skip = Vec::new();
        self.outputs.push(Output::Over { job: id, at: now });
    }

    fn end_round(&mut self, id: u64, now: SimTime) {
        let task = self.jobs.get_mut(&id).and_then(|job| job.task.take());
        if let Some(task) = task {
            self.by_task.remove(&task);
            // It is there as long as it has a job.
            let _ = self.tasks.abort(now, task, BlockSelection::All);
        }
    }

    /// Blocks of 512 B that are still to be read in a job's round, or were when it ended.
    fn left(&self, id: u64) -> u64 {
        let job = &self.jobs[&id];
        let Some(task) = job.task else {
            return if job.state == State::Waiting { job.blocks } else { job.left_at_end };
        };
        // The planner's clock is only needed for its own estimate.
        let wanted = self.tasks.progress(task, SimTime::ZERO).map_or(0, |task| task.wanted);
        let aside = job.ahead.blocks() + job.again_blocks + job.own_blocks;
        wanted * u64::from(job.spec.block_size) + aside
    }

    /// Hears what the planner has delivered from this source.
    pub fn heard(&mut self, source: &Source<'_>, now: SimTime) {
        let events: Vec<Event> = self.tasks.events().collect();
        for event in events {
            if let Event::Delivered { task, extent, is_promoted, .. } = event
                && let Some(&id) = self.by_task.get(&task)
            {
                if let Some(job) = self.jobs.get_mut(&id).filter(|_| is_promoted) {
                    job.estimate.asked(extent.blocks.get());
                }
                self.delivered(id, extent, source, now);
            }
        }
        if !source.has_failed {
            self.keep_pieces(source);
        }
        self.settle(now);
    }

    fn delivered(&mut self, id: u64, extent: Extent, source: &Source<'_>, now: SimTime) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        if source.has_failed {
            return job.read_later(extent);
        }
        if !job.spec.has_reader {
            return self.count(id, extent);
        }
        if job.is_older(source.command) {
            return self.want_again(id, extent, now);
        }
        match self.pieces.gather(id, extent, source) {
            Some(data) => self.hand_on(id, extent, data, now),
            None => job.read_later(extent),
        }
    }

    /// Hands data on, or wants them again when nobody has room.
    fn hand_on(&mut self, id: u64, extent: Extent, data: Vec<u8>, now: SimTime) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        if !job.has_room_for(extent.blocks.get()) {
            job.refused += extent.blocks.get();
            return self.want_again(id, extent, now);
        }
        self.pass(id, extent, data, now);
    }

    /// Asks the planner once more for what it has delivered; what is no whole blocks is read by
    /// itself.
    fn want_again(&mut self, id: u64, extent: Extent, now: SimTime) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let size = u64::from(job.spec.block_size);
        let offset = extent.start.get() - job.spec.range.start.get();
        let is_whole = offset.is_multiple_of(size) && extent.blocks.get().is_multiple_of(size);
        let task = job.task.filter(|_| is_whole);
        let wanted = task.map(|task| self.tasks.extend(now, task, &[extent]));
        if !matches!(wanted, Some(Ok(()))) {
            job.read_later(extent);
        }
    }

    fn pass(&mut self, id: u64, extent: Extent, data: Vec<u8>, now: SimTime) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        if job.spec.has_reader {
            job.room = job.room.saturating_sub(data.len() as u64);
            self.outputs.push(Output::Data { job: id, start: extent.start, data, at: now });
        }
        self.count(id, extent);
    }

    fn count(&mut self, id: u64, extent: Extent) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        job.delivered += extent.blocks.get();
        job.unreadable.remove(extent);
    }

    /// Keeps the data of blocks that lie across the ends of what has been read.
    fn keep_pieces(&mut self, source: &Source<'_>) {
        let Self { tasks, jobs, pieces, by_task, .. } = self;
        for (&task, id) in by_task.iter() {
            let Some(job) = jobs.get(id).filter(|job| job.spec.has_reader) else { continue };
            if job.is_older(source.command) {
                continue;
            }
            let (first, size) = (job.spec.range.start.get(), u64::from(job.spec.block_size));
            for &edge in source.spans.iter().flat_map(|(from, to)| [from, to]) {
                let Some(offset) = edge.checked_sub(first) else { continue };
                let start = edge - offset % size;
                let wanted = tasks.wanted(task, Lbn::new(start));
                if start != edge && wanted.is_ok_and(|wanted| wanted.in_gap) {
                    pieces.keep(*id, Extent::new(start, size), source);
                }
            }
        }
    }

    /// Ends rounds that are complete, and jobs with them.
    fn settle(&mut self, now: SimTime) {
        let running: Vec<u64> = self.by_task.values().copied().collect();
        for id in running {
            let left = self.left(id);
            let Some(job) = self.jobs.get_mut(&id) else { continue };
            match job.ahead.blocks() {
                0 => job.estimate.at(left, now),
                // Gaps reach no more than what the planner knows of.
                _ => job.estimate.watch(left, now),
            }
            if left > 0 {
                continue;
            }
            job.rounds += 1;
            if !job.spec.repeats {
                self.end(id, State::Done, now);
                continue;
            }
            self.outputs.push(Output::Round { job: id, at: now });
            self.end_round(id, now);
            // What had room has room again.
            if self.begin_round(id, now).is_err() {
                self.end(id, State::Failed, now);
            }
        }
    }

    /// Something has been written: what was kept of it is old.
    pub fn written(&mut self, from: u64, to: u64) {
        for id in self.by_task.values() {
            self.pieces.forget(*id, self.jobs[id].spec.block_size, from, to);
        }
    }
}
