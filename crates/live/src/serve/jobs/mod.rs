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

mod estimate;
mod job;
mod pieces;
mod runs;
mod spec;

use std::collections::BTreeMap;

use freewheel_model::freeblock::PromotionId;
use freewheel_model::freeblock::tasks::{Event, Extent, TaskError, TaskId, Tasks, Which};
use freewheel_units::{Lbn, SimTime};
use thiserror::Error;

use self::job::{Job, split};
use self::pieces::Pieces;
use self::runs::Runs;

pub use estimate::Foretold;
pub use job::{JobReport, State};
pub use pieces::Source;
pub use spec::{JobSpec, Kind};

/// Most blocks of 512 B that are read at once in idle time or for a promoted job, unless its blocks
/// are larger: a client's request waits for it.
const OWN_READ_MAX: u32 = 256;

/// Blocks of 512 B that most tasks read at once: 64 KiB.
const USUAL_BLOCK: u64 = 128;

/// Jobs that have ended and are remembered.
const ENDED_MAX: usize = 100;

/// Bytes that may have been handed on and not been taken, of a job whose data cannot be read again:
/// beyond it the job fails, for clients must not wait.
const OVERDUE_MAX: u64 = 64 << 20;

/// Why a call was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum JobError {
    /// There is none with this number.
    #[error("there is no task {id}")]
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
    /// The planner refused it.
    #[error(transparent)]
    Task(#[from] TaskError),
}

/// A read that a job makes like a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnRead {
    /// Comes back with its end.
    pub number: u64,
    /// First block.
    pub start: Lbn,
    /// Number of blocks of 512 B.
    pub blocks: u32,
    /// What the planner knows it by, if it does.
    pub promotion: Option<PromotionId>,
}

/// Why a job reads like a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// The planner's blocks, in idle time or because it was asked to.
    Promoted,
    /// Something failed there, or its data were nowhere.
    Again,
    /// A client is about to write there.
    Copy,
}

#[derive(Debug)]
struct UnderWay {
    job: u64,
    extent: Extent,
    purpose: Purpose,
    /// A client's write waits for it: there is no reading it again.
    is_last_chance: bool,
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

/// The first task of a drive costs an index of it, which takes a large one a second: now, as nobody
/// waits yet.
fn prepare(tasks: &mut Tasks) {
    let usual = JobSpec::new(Kind::Scan, Extent::new(0, USUAL_BLOCK), USUAL_BLOCK as u32);
    // A drive smaller than that needs no time.
    if let Ok(task) = tasks.register(SimTime::ZERO, usual.task(Some(usual.range))) {
        tasks.refresh();
        let _ = tasks.abort(SimTime::ZERO, task, Which::All);
    }
}

/// All jobs of a server.
#[derive(Debug)]
pub struct Jobs {
    tasks: Tasks,
    jobs: BTreeMap<u64, Job>,
    by_task: BTreeMap<TaskId, u64>,
    pieces: Pieces,
    under_way: BTreeMap<u64, UnderWay>,
    reads_begun: u64,
    outputs: Vec<Output>,
}

impl Jobs {
    /// No jobs yet.
    pub fn new(mut tasks: Tasks) -> Self {
        prepare(&mut tasks);
        Self {
            tasks,
            jobs: BTreeMap::new(),
            by_task: BTreeMap::new(),
            pieces: Pieces::default(),
            under_way: BTreeMap::new(),
            reads_begun: 0,
            outputs: Vec::new(),
        }
    }

    /// The planner. After a call that may have delivered something comes [`Self::heard`].
    pub fn planner(&mut self) -> &mut Tasks {
        &mut self.tasks
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
        spec.check(self.tasks.drive().blocks())?;
        let id = self.jobs.last_key_value().map_or(1, |(last, _)| last + 1);
        let begins = !spec.has_reader;
        self.jobs.insert(id, Job::new(spec));
        if begins && let Err(error) = self.begin_round(id, now) {
            self.jobs.remove(&id);
            return Err(error.into());
        }
        self.forget_old();
        Ok(id)
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
        job.state = State::Running;
        job.began.get_or_insert(now);
        job.estimate.begin(job.spec.blocks(), now);
        rest.into_iter().for_each(|rest| job.read_later(rest));
        Ok(())
    }

    /// Whether the planner has not been given all blocks of some job.
    pub fn has_ahead(&self) -> bool {
        self.by_task.values().any(|id| self.jobs[id].ahead.blocks() > 0)
    }

    /// Gives the planner some more blocks, of one job.
    pub fn give_more(&mut self, now: SimTime) {
        for (&task, id) in &self.by_task {
            let Some(job) = self.jobs.get_mut(id) else { continue };
            let Some(portion) = job.ahead.take_first(job.portion()) else { continue };
            if self.tasks.extend(now, task, &[portion]).is_err() {
                job.read_later(portion);
            }
            self.tasks.refresh();
            return;
        }
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

    fn running_or_waiting(&mut self, id: u64) -> Result<&mut Job, JobError> {
        let job = self.jobs.get_mut(&id).ok_or(JobError::Unknown { id })?;
        if job.state.is_over() {
            return Err(JobError::Over { id });
        }
        Ok(job)
    }

    fn end(&mut self, id: u64, state: State, now: SimTime) {
        self.end_round(id, now);
        self.pieces.forget_job(id);
        let Some(job) = self.jobs.get_mut(&id) else { return };
        job.state = state;
        job.ended = Some(now);
        job.again.clear();
        job.again_blocks = 0;
        job.ahead = Runs::default();
        self.outputs.push(Output::Over { job: id, at: now });
    }

    fn end_round(&mut self, id: u64, now: SimTime) {
        let task = self.jobs.get_mut(&id).and_then(|job| job.task.take());
        if let Some(task) = task {
            self.by_task.remove(&task);
            // It is there as long as it has a job.
            let _ = self.tasks.abort(now, task, Which::All);
        }
    }

    /// Blocks of 512 B that are still to be read in a job's round.
    fn left(&self, id: u64) -> u64 {
        let job = &self.jobs[&id];
        let Some(task) = job.task else {
            return if job.state == State::Waiting { job.spec.blocks() } else { 0 };
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
            if let Event::Delivered { task, extent, .. } = event
                && let Some(&id) = self.by_task.get(&task)
            {
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
        match self.pieces.gather(id, extent, source) {
            Some(data) => self.hand_on(id, extent, data, now),
            None => job.read_later(extent),
        }
    }

    /// Hands data on, or wants them again when nobody has room.
    fn hand_on(&mut self, id: u64, extent: Extent, data: Vec<u8>, now: SimTime) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let bytes = data.len() as u64;
        if job.spec.has_reader && job.room < bytes {
            job.refused += extent.blocks.get();
            let size = u64::from(job.spec.block_size);
            let offset = extent.start.get() - job.spec.range.start.get();
            let is_whole = offset.is_multiple_of(size) && extent.blocks.get().is_multiple_of(size);
            let task = job.task.filter(|_| is_whole);
            let wanted = task.map(|task| self.tasks.extend(now, task, &[extent]));
            if !matches!(wanted, Some(Ok(()))) {
                job.read_later(extent);
            }
            return;
        }
        self.pass(id, extent, data, now);
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

    fn unreadable(&mut self, id: u64, extent: Extent, now: SimTime) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        job.unreadable.insert(extent);
        self.outputs.push(Output::Unreadable { job: id, extent, at: now });
    }

    /// Keeps the data of blocks that lie across the ends of what has been read.
    fn keep_pieces(&mut self, source: &Source<'_>) {
        let Self { tasks, jobs, pieces, by_task, .. } = self;
        for (&task, id) in by_task.iter() {
            let Some(job) = jobs.get(id).filter(|job| job.spec.has_reader) else { continue };
            let (first, size) = (job.spec.range.start.get(), u64::from(job.spec.block_size));
            for &edge in source.spans.iter().flat_map(|(from, to)| [from, to]) {
                let Some(offset) = edge.checked_sub(first) else { continue };
                let start = edge - offset % size;
                let is_wanted = |wanted: freewheel_model::freeblock::tasks::Wanted| wanted.in_gap;
                if start != edge && tasks.wanted(task, Lbn::new(start)).is_ok_and(is_wanted) {
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
            job.estimate.at(left, now);
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

    /// A client is about to write `from..to` of 512 B: what has to be read before that.
    pub fn before_write(&mut self, from: u64, to: u64, now: SimTime) -> Vec<OwnRead> {
        self.written(from, to);
        for read in self.under_way.values_mut() {
            let start = read.extent.start.get();
            read.is_last_chance |= start < to && from < start + read.extent.blocks.get();
        }
        let is_backup = |job: &&Job| job.spec.kind == Kind::Backup;
        let backups = self.by_task.iter();
        let backups: Vec<(TaskId, u64)> = backups
            .filter(|(_, id)| self.jobs.get(id).as_ref().is_some_and(is_backup))
            .map(|(&task, &id)| (task, id))
            .collect();
        let mut reads = Vec::new();
        for (task, id) in backups {
            for extent in self.not_read(task, id, from, to, now) {
                reads.push(self.begin_read(id, extent, Purpose::Copy, None));
            }
        }
        reads
    }

    /// Takes what a backup has not read of `from..to` from the planner, as whole blocks.
    fn not_read(&mut self, task: TaskId, id: u64, from: u64, to: u64, now: SimTime) -> Vec<Extent> {
        let Some(job) = self.jobs.get_mut(&id) else { return Vec::new() };
        let mut extents = job.take_again(from, to);
        let (first, size) = (job.spec.range.start.get(), u64::from(job.spec.block_size));
        let end = first + job.spec.range.blocks.get();
        let mut start = from.max(first) - (from.max(first) - first) % size;
        let last = first + (to.min(end).max(start) - first).next_multiple_of(size);
        extents.extend(job.ahead.take(Extent::new(start, last - start)));
        let mut wanted = Vec::new();
        while start < to.min(end) {
            let is = self.tasks.wanted(task, Lbn::new(start)).unwrap_or_default();
            if is.in_gap || is.promoted {
                wanted.push(Extent::new(start, size));
            }
            start += size;
        }
        if !wanted.is_empty() {
            // They lie within the drive.
            let _ = self.tasks.abort(now, task, Which::In(&wanted));
        }
        extents.extend(wanted);
        extents
    }

    /// Something has been written: what was kept of it is old.
    pub fn written(&mut self, from: u64, to: u64) {
        for id in self.by_task.values() {
            self.pieces.forget(*id, self.jobs[id].spec.block_size, from, to);
        }
    }

    fn begin_read(
        &mut self,
        id: u64,
        extent: Extent,
        purpose: Purpose,
        promotion: Option<PromotionId>,
    ) -> OwnRead {
        let number = self.reads_begun;
        self.reads_begun += 1;
        if let Some(job) = self.jobs.get_mut(&id) {
            match purpose {
                Purpose::Promoted => job.promoted_reads += 1,
                Purpose::Again => job.again_reads += 1,
                Purpose::Copy => {}
            }
            if purpose != Purpose::Promoted {
                job.own_blocks += extent.blocks.get();
            }
        }
        self.under_way.insert(number, UnderWay { job: id, extent, purpose, is_last_chance: false });
        OwnRead { number, start: extent.start, blocks: extent.blocks.get() as u32, promotion }
    }

    /// The next read to make like a client at `now`, when no client has been there since `idle_since`;
    /// None when there is one.
    pub fn next_read(&mut self, now: SimTime, idle_since: Option<SimTime>) -> Option<OwnRead> {
        let running: Vec<(TaskId, u64)> = self.by_task.iter().map(|(&t, &id)| (t, id)).collect();
        for (task, id) in running {
            let Some(job) = self.jobs.get_mut(&id) else { continue };
            let most = u64::from(job.spec.block_size.max(OWN_READ_MAX));
            if !job.has_room_for(2 * most) {
                continue;
            }
            if job.again_reads == 0
                && let Some(extent) = job.next_again(most)
            {
                return Some(self.begin_read(id, extent, Purpose::Again, None));
            }
            if job.may_promote(now, idle_since) {
                let next = self.tasks.promote_next(task, job.next_promoted, most as u32);
                let Ok(Some(promoted)) = next else { continue };
                let extent = Extent::new(promoted.start.get(), promoted.blocks.into());
                job.next_promoted = Lbn::new(extent.start.get() + extent.blocks.get());
                let promotion = Some(promoted.id);
                return Some(self.begin_read(id, extent, Purpose::Promoted, promotion));
            }
        }
        None
    }

    /// When [`Self::next_read`] has something in idle time that began then, if nothing happens before.
    pub fn wakes_at(&self, idle_since: Option<SimTime>) -> Option<SimTime> {
        let since = idle_since?;
        let jobs = self.by_task.iter().filter_map(|(&task, id)| {
            let job = self.jobs.get(id)?;
            let after = job.spec.idle_after?;
            let most = u64::from(job.spec.block_size.max(OWN_READ_MAX));
            let is_free = job.promoted_reads == 0 && job.has_room_for(2 * most);
            let has_more = self
                .tasks
                .progress(task, since)
                .is_ok_and(|task| task.wanted > task.promoted + task.deferred);
            (is_free && has_more).then(|| since + after)
        });
        jobs.min()
    }

    /// A read of a job has come back with its data, or has failed.
    pub fn read_done(&mut self, number: u64, data: Option<Vec<u8>>, now: SimTime) {
        let Some(read) = self.under_way.remove(&number) else { return };
        let UnderWay { job: id, extent, purpose, is_last_chance } = read;
        let Some(job) = self.jobs.get_mut(&id) else { return };
        match purpose {
            // Its data went by the planner.
            Purpose::Promoted => job.promoted_reads -= 1,
            Purpose::Again => job.again_reads -= 1,
            Purpose::Copy => {}
        }
        if purpose != Purpose::Promoted {
            job.own_blocks -= extent.blocks.get();
            if job.state == State::Running {
                self.own_data(id, extent, (purpose, is_last_chance), data, now);
            }
        }
        self.settle(now);
    }

    fn own_data(
        &mut self,
        id: u64,
        extent: Extent,
        (purpose, is_last_chance): (Purpose, bool),
        data: Option<Vec<u8>>,
        now: SimTime,
    ) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let cannot_wait =
            purpose == Purpose::Copy || is_last_chance && job.spec.kind == Kind::Backup;
        match data {
            Some(data) if cannot_wait => {
                job.copied += extent.blocks.get();
                let overdue = job.spec.has_reader && job.room < data.len() as u64;
                job.overdue += if overdue { data.len() as u64 } else { 0 };
                if job.overdue > OVERDUE_MAX {
                    return self.end(id, State::Failed, now);
                }
                self.pass(id, extent, data, now);
            }
            Some(data) => self.hand_on(id, extent, data, now),
            None if cannot_wait || extent.blocks.get() == 1 => self.unreadable(id, extent, now),
            None => {
                let (first, second) = split(extent, extent.blocks.get() / 2);
                job.read_next(second);
                job.read_next(first);
            }
        }
    }
}
