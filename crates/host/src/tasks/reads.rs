//! Reads of tasks outside of gaps, which are ordered with clients' requests.

use freewheel_freeblock::PromotionId;
use freewheel_freeblock::tasks::{BLOCK_SIZE_MAX, Extent, Promoted, TaskId, TaskKind};
use freewheel_model::drive::Drive;
use freewheel_units::{BLOCK_BYTES, Lbn, SimTime};

use super::state::TaskState;
use super::task::{ServedTask, split};
use super::{ServedTaskOutput, ServedTasks, shortest_track};
use crate::copy_before_write::{Backup, ClaimBy, Copies, CopyRead};
use crate::task_account::DeliveryPath;

/// Most blocks of 512 B that are read at once in idle time, unless a task's blocks are larger: a client's
/// request waits for it.
const OWN_READ_MAX: u32 = 256;

/// Bytes that may have been handed on and not been taken, of a task whose data cannot be read again:
/// beyond it the task fails, for clients must not wait.
const OVERDUE_MAX: u64 = 64 << 20;

/// Most blocks of 512 B that are read at once for a promoted task of a drive, unless its blocks are
/// larger: half of its shortest track. The drive is given one read of a track at a time, so that with
/// 128 KiB of a long one most of a turn would be lost.
fn promoted_max(drive: &Drive) -> u32 {
    (shortest_track(drive) / 2).clamp(OWN_READ_MAX, BLOCK_SIZE_MAX)
}

impl ServedTask {
    /// Longest own read in blocks of 512 B; `promoted_max` is the limit for a promoted task.
    pub(super) fn most_at_once(&self, promoted_max: u32) -> u64 {
        let most = if self.is_promoted { promoted_max } else { OWN_READ_MAX };
        self.order.size().max(most).into()
    }
}

/// A read that a task makes like a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnRead {
    /// Comes back with its end.
    pub number: u64,
    /// First block.
    pub start: Lbn,
    /// Number of blocks of 512 B.
    pub blocks: u32,
    /// Number by which the planner knows the read, if it does.
    pub promotion: Option<PromotionId>,
}

/// Reason why a task reads like a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// The planner's blocks, in idle time or because it was asked to.
    Promoted,
    /// Something failed there, or its data were nowhere.
    Again,
    /// A client is about to write there.
    Copy,
    /// Reads blocks back and compares them with the written data.
    ReadBack,
}

impl Purpose {
    /// True if it reads blocks for the first time that the planner does not know.
    fn is_first(self) -> bool {
        matches!(self, Self::Again | Self::Copy)
    }
}

/// A read of a task that has not come back.
#[derive(Debug)]
pub(crate) struct ActiveRead {
    task: u64,
    extent: Extent,
    purpose: Purpose,
    promotion: Option<PromotionId>,
    /// A client's write waits for it: there is no reading it again.
    is_last_chance: bool,
}

/// The halves of an extent in whole sectors of `sector` blocks of 512 B; None for a single sector.
fn halves(extent: Extent, sector: u32) -> Option<(Extent, Extent)> {
    let sector = u64::from(sector);
    let first = extent.blocks.get() / 2 / sector * sector;
    let first = first.max(sector);
    (first < extent.blocks.get()).then(|| split(extent, first))
}

impl ServedTasks {
    /// A client is about to write `from..to` of 512 B: what has to be read before that.
    pub fn before_write(&mut self, from: u64, to: u64, now: SimTime) -> Vec<OwnRead> {
        let mut copies = self.before_erasure(from, to, now);
        std::iter::from_fn(|| self.next_copy(&mut copies)).collect()
    }

    /// Copies before an erasure, which may be large: [`Self::next_copy`] begins the reads.
    pub fn before_erasure(&mut self, from: u64, to: u64, now: SimTime) -> Copies {
        self.written(from, to);
        self.forget_read(from, to, now);
        for read in self.under_way.values_mut() {
            let start = read.extent.start.get();
            read.is_last_chance |= start < to && from < start + read.extent.blocks.get();
        }
        let mut copies = Copies::default();
        let write = Extent::new(from, to - from);
        for (&planner_task, &id) in &self.by_planner_task {
            let Some(task) = self.tasks.get_mut(&id) else { continue };
            if task.order.kind != TaskKind::Backup {
                continue;
            }
            task.take_aside(from, to).into_iter().for_each(|extent| copies.add(id, extent));
            let (by, backup) = (ClaimBy::Withdrawal, Backup { number: id, task: planner_task });
            // Refused only past the drive's end, where no task has blocks.
            let _ = copies.claim(by, &mut self.planner, backup, write, now);
            task.own_blocks += copies.withdrawn_blocks(id);
        }
        copies
    }

    /// Begins the next read of these.
    pub fn next_copy(&mut self, copies: &mut Copies) -> Option<OwnRead> {
        while let Some(CopyRead { backup, extent, .. }) = copies.next_read() {
            let task = self.tasks.get_mut(&backup);
            if let Some(task) = task.filter(|task| task.state == TaskState::Running) {
                task.own_blocks -= extent.blocks.get();
                return Some(self.begin_read(backup, extent, Purpose::Copy, None));
            }
        }
        None
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
        if let Some(task) = self.tasks.get_mut(&id) {
            match purpose {
                Purpose::Promoted => task.promoted_reads += 1,
                Purpose::Again => task.again_reads += 1,
                Purpose::Copy | Purpose::ReadBack => {}
            }
            if purpose.is_first() {
                task.own_blocks += extent.blocks.get();
            }
        }
        let is_last_chance = false;
        let read = ActiveRead { task: id, extent, purpose, promotion, is_last_chance };
        self.under_way.insert(number, read);
        OwnRead { number, start: extent.start, blocks: extent.blocks.get() as u32, promotion }
    }

    /// True if a read that has not been made is still of use; otherwise it counts as made.
    pub fn still_wants(&mut self, read: &OwnRead) -> bool {
        let Some(under_way) = self.under_way.get(&read.number) else { return false };
        let is_running =
            self.tasks.get(&under_way.task).is_some_and(|task| task.state == TaskState::Running);
        if !is_running {
            self.under_way.remove(&read.number);
        }
        is_running
    }

    /// True if the reader has room for the data of a read, or the data are not needed.
    pub fn has_room(&self, read: &OwnRead) -> bool {
        let task = self.under_way.get(&read.number).and_then(|read| self.tasks.get(&read.task));
        task.is_none_or(|task| {
            let has_room = task.room >= u64::from(read.blocks) * BLOCK_BYTES;
            has_room || !task.has_reader || task.state != TaskState::Running
        })
    }

    /// Reserves room for a read, as [`Self::has_room`]: smaller data from gaps would otherwise take it
    /// again and again.
    pub fn keep_room(&mut self, read: &OwnRead) -> bool {
        if let Some(under_way) = self.under_way.get(&read.number)
            && let Some(task) = self.tasks.get_mut(&under_way.task)
        {
            task.kept_room = read.blocks.into();
        }
        self.has_room(read)
    }

    /// The reader takes the data of a read too slowly: its task fails.
    pub fn not_taken(&mut self, read: &OwnRead, now: SimTime) {
        if let Some(&ActiveRead { task, .. }) = self.under_way.get(&read.number)
            && !self.has_room(read)
        {
            self.end(task, TaskState::Failed, now);
        }
    }

    /// The next read to make like a client at `now`, when no client has been there since `idle_since`;
    /// None when there is one.
    pub fn next_read(&mut self, now: SimTime, idle_since: Option<SimTime>) -> Option<OwnRead> {
        let running: Vec<(TaskId, u64)> =
            self.by_planner_task.iter().map(|(&t, &id)| (t, id)).collect();
        let promoted_max = self.promoted_max();
        for (planner_task, id) in running {
            let Some(task) = self.tasks.get_mut(&id) else { continue };
            if task.refresh.is_some() {
                match self.next_refresh_read((planner_task, id), idle_since, now) {
                    None => continue,
                    read => return read,
                }
            }
            let most = task.most_at_once(promoted_max);
            if !task.has_room_for(2 * most) {
                continue;
            }
            if task.again_reads == 0
                && let Some(extent) = task.next_again(most)
            {
                return Some(self.begin_read(id, extent, Purpose::Again, None));
            }
            if task.may_promote(now, idle_since) {
                match self.read_promoted(planner_task, id, most) {
                    None => continue,
                    read => return read,
                }
            }
            if let Some(promoted) = self.promote_tail(now, planner_task, id) {
                return Some(self.begin_promoted(id, &promoted));
            }
        }
        None
    }

    /// The planner's next blocks of a task, at most `most` of 512 B, as a read like a client's.
    pub(super) fn read_promoted(
        &mut self,
        planner_task: TaskId,
        id: u64,
        most: u64,
    ) -> Option<OwnRead> {
        let from = self.tasks.get(&id)?.next_promoted;
        let promoted = self.planner.promote_next(planner_task, from, most as u32).ok().flatten()?;
        Some(self.begin_promoted(id, &promoted))
    }

    fn begin_promoted(&mut self, id: u64, promoted: &Promoted) -> OwnRead {
        let extent = Extent::new(promoted.start.get(), promoted.blocks.into());
        if let Some(task) = self.tasks.get_mut(&id) {
            task.next_promoted = Lbn::new(extent.start.get() + extent.blocks.get());
        }
        self.begin_read(id, extent, Purpose::Promoted, Some(promoted.id))
    }

    pub(super) fn begin_again(&mut self, id: u64, extent: Extent) -> OwnRead {
        self.begin_read(id, extent, Purpose::Again, None)
    }

    pub(super) fn begin_back(&mut self, id: u64, extent: Extent) -> OwnRead {
        self.begin_read(id, extent, Purpose::ReadBack, None)
    }

    /// Longest own read of a promoted task.
    pub(super) fn promoted_max(&self) -> u32 {
        promoted_max(self.planner.drive())
    }

    /// The next request for the last blocks of a task's round, if it is time for one.
    fn promote_tail(&mut self, now: SimTime, planner_task: TaskId, id: u64) -> Option<Promoted> {
        let task = self.tasks.get_mut(&id)?;
        let promoted = task.promote_tail(now, &mut self.planner, planner_task)?;
        if !task.account.is_steady() {
            // From here on the rest comes at the pace of the budget.
            let left = self.left(id);
            self.tasks.get_mut(&id)?.account.steady(left, now);
        }
        Some(promoted)
    }

    /// Time at which [`Self::next_read`] may have a read in the idle time since `idle_since`, without other
    /// events.
    pub fn wakes_at(&self, idle_since: Option<SimTime>) -> Option<SimTime> {
        let (since, promoted_max) = (idle_since?, self.promoted_max());
        let tasks = self.by_planner_task.iter().filter_map(|(&planner_task, id)| {
            let task = self.tasks.get(id)?;
            let after = task.order.idle_after?;
            let at = SimTime::from_ns(since.ns().saturating_add(after.ns()));
            if task.refresh.is_some() {
                // Its write may wait for a request of another task; that wakes it when it comes back.
                let is_alone = self.under_way.is_empty() && self.own_writes.is_empty();
                let step = self.own_step(*id, planner_task, true);
                return step.filter(|_| is_alone && task.promoted_reads == 0).map(|_| at);
            }
            let most = task.most_at_once(promoted_max);
            let is_free = task.promoted_reads == 0 && task.has_room_for(2 * most);
            let has_more = self
                .planner
                .progress(planner_task, since)
                .is_ok_and(|progress| progress.wanted > progress.promoted + progress.deferred);
            (is_free && has_more).then_some(at)
        });
        tasks.min()
    }

    /// A read of a task has come back with its data, or has failed. What is to be read instead of it,
    /// now, as a client's write waits: only where it is `divisible`.
    pub fn read_done(
        &mut self,
        number: u64,
        data: Option<Vec<u8>>,
        divisible: bool,
        now: SimTime,
    ) -> Vec<OwnRead> {
        let mut instead = Vec::new();
        let Some(read) = self.under_way.remove(&number) else { return instead };
        let ActiveRead { task: id, extent, purpose, promotion, is_last_chance } = read;
        let sector = self.sector_blocks;
        let Some(task) = self.tasks.get_mut(&id) else { return instead };
        match purpose {
            // Its data went by the planner.
            Purpose::Promoted => task.promoted_done(promotion),
            Purpose::Again => task.again_reads -= 1,
            Purpose::Copy => task.kept_room = 0,
            Purpose::ReadBack => self.own_read_back(id, extent, data.as_deref()),
        }
        let Some(task) = self.tasks.get_mut(&id) else { return instead };
        if purpose.is_first() {
            task.own_blocks -= extent.blocks.get();
            if task.state == TaskState::Running {
                let cannot_wait = purpose == Purpose::Copy
                    || is_last_chance && task.order.kind == TaskKind::Backup;
                let halves = halves(extent, sector).filter(|_| data.is_none() && cannot_wait);
                if let Some((first, second)) = halves.filter(|_| divisible) {
                    let mut read = |half| self.begin_read(id, half, Purpose::Copy, None);
                    instead = vec![read(first), read(second)];
                } else {
                    self.own_data(id, extent, cannot_wait, data, now);
                }
            }
        }
        self.settle(now);
        instead
    }

    fn own_data(
        &mut self,
        id: u64,
        extent: Extent,
        cannot_wait: bool,
        data: Option<Vec<u8>>,
        now: SimTime,
    ) {
        let halves = halves(extent, self.sector_blocks).filter(|_| !cannot_wait);
        let Some(task) = self.tasks.get_mut(&id) else { return };
        match data {
            Some(data) if cannot_wait => {
                task.account.delivered(extent.blocks.get(), DeliveryPath::Copy);
                let overdue = task.has_reader && task.room < data.len() as u64;
                task.overdue += if overdue { data.len() as u64 } else { 0 };
                if task.overdue > OVERDUE_MAX {
                    return self.end(id, TaskState::Failed, now);
                }
                self.pass(id, extent, data, None, now);
            }
            Some(data) => self.deliver(id, extent, data, None, now),
            None => match halves {
                None => self.unreadable(id, extent, now),
                Some((first, second)) => {
                    task.read_next(second);
                    task.read_next(first);
                }
            },
        }
    }

    fn unreadable(&mut self, id: u64, extent: Extent, now: SimTime) {
        let Some(task) = self.tasks.get_mut(&id) else { return };
        task.unreadable.insert(extent);
        task.count_sample(extent);
        self.outputs.push(ServedTaskOutput::Unreadable { task: id, extent, at: now });
    }
}
