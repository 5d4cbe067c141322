//! One background task of a server.

use std::collections::VecDeque;

use freewheel_freeblock::tasks::{Extent, Promoted, TaskId, TaskKind, TaskSpec, Tasks};
use freewheel_freeblock::{PredictionMark, PromotionId, TaskOrder};
use freewheel_units::{BLOCK_BYTES, Blocks, Lbn, SimDuration, SimTime};

use super::parts::{ServedOrder, TaskParts, planner_spec};
use super::refresh::{Refresh, RefreshReport};
use super::sample::Sample;
use super::state::TaskState;
use crate::promote_tail::{PromotionAnchor, TailPromotion};
use crate::runs::Runs;
use crate::task_account::{Deliveries, TaskAccount};

/// Promoted reads of a task at once. With one the drive would miss the next blocks each time.
const PROMOTED_READS: u32 = 2;

/// Blocks of 512 B that the planner is given at once, about: 128 MiB, a small part of a millisecond.
/// All blocks of a drive of today take it seconds. In tests drives are small.
const PORTION: u64 = if cfg!(test) { 1 << 10 } else { 1 << 18 };

/// Runs that the planner is given at once: extents of a file system may be short.
const PORTION_RUNS: usize = 256;

/// Most unreadable ranges that a report lists.
const LISTED_MAX: usize = 1000;

/// A task and what has become of it.
#[derive(Debug)]
pub(crate) struct ServedTask {
    pub order: TaskOrder,
    /// Empty when it is over: the lists may be very long.
    pub parts: TaskParts,
    pub has_reader: bool,
    pub sample: Option<Sample>,
    pub state: TaskState,
    /// While it runs.
    pub planner_task: Option<TaskId>,
    pub is_promoted: bool,
    pub began: Option<SimTime>,
    pub ended: Option<SimTime>,
    /// Blocks of 512 B that had not been read then.
    pub left_at_end: u64,
    /// Rounds, copies, tail and estimate, in blocks of 512 B.
    pub account: TaskAccount,
    /// Blocks of 512 B that were copied before clients wrote over them, in earlier rounds.
    pub copied_before: u64,
    /// Blocks of 512 B that were read, in all rounds.
    pub delivered: u64,
    pub unreadable: Runs,
    /// Whole blocks that the planner has not been given yet.
    pub ahead: Runs,
    /// Extents to read separately, next first.
    pub separate_reads: VecDeque<Extent>,
    /// Blocks of 512 B of it.
    pub separate_blocks: u64,
    /// Blocks of 512 B that are being read for it outside of gaps and are not the planner's any
    /// more.
    pub own_blocks: u64,
    /// Reads for it by themselves, and promoted ones, that have not come back.
    pub again_reads: u32,
    pub promoted_reads: u32,
    /// End of the last promoted read.
    pub next_promoted: Lbn,
    /// Blocks of 512 B that were read and not taken, and wanted again.
    pub refused: u64,
    /// Bytes that the reader takes now.
    pub room: u64,
    /// Blocks of 512 B of that which are for a copy before something is erased.
    pub kept_room: u64,
    /// Bytes that were handed on without room since there was some.
    pub overdue: u64,
    /// State of a refresh's writes and reads back.
    pub refresh: Option<Refresh>,
    /// Time at which it was asked for.
    pub created: SimTime,
    /// Blocks of 512 B of a round.
    pub blocks: u64,
    /// The last command that the device had been sent when this round began.
    pub begun_behind: u64,
}

impl ServedTask {
    pub fn new(ordered: ServedOrder, now: SimTime) -> Self {
        let ServedOrder { order, parts, has_reader, sample } = ordered;
        let (size, blocks) = (order.size(), parts.blocks(&order));
        let tail = order.promote_tail;
        let tail = tail.map(|tail| TailPromotion::new(tail, size, PromotionAnchor::OfArm));
        Self {
            created: now,
            blocks,
            begun_behind: 0,
            state: TaskState::Waiting,
            planner_task: None,
            is_promoted: false,
            began: None,
            ended: None,
            left_at_end: 0,
            account: TaskAccount::new(blocks, size.into(), tail, SimTime::ZERO),
            copied_before: 0,
            delivered: 0,
            unreadable: Runs::default(),
            ahead: Runs::default(),
            separate_reads: VecDeque::new(),
            separate_blocks: 0,
            own_blocks: 0,
            again_reads: 0,
            promoted_reads: 0,
            next_promoted: order.range().start,
            refused: 0,
            room: 0,
            kept_room: 0,
            overdue: 0,
            refresh: (order.kind == TaskKind::Refresh).then(Refresh::default),
            order,
            parts,
            has_reader,
            sample,
        }
    }

    /// True if its data are used: by a reader, or to be written.
    pub fn wants_data(&self) -> bool {
        self.has_reader || self.order.kind == TaskKind::Refresh
    }

    /// Task for the planner, these blocks first.
    pub fn planner_spec(&self, first: Vec<Extent>) -> TaskSpec {
        planner_spec(&self.order, self.wants_data(), first)
    }

    /// Takes the extents that the planner is given next; none if it has been given all.
    pub fn next_portion(&mut self) -> Vec<Extent> {
        let size = u64::from(self.order.size());
        let (mut room, mut portion) = ((PORTION / size).max(1) * size, Vec::new());
        while room > 0
            && portion.len() < PORTION_RUNS
            && let Some(run) = self.ahead.take_first(room)
        {
            room -= run.blocks.get();
            portion.push(run);
        }
        portion
    }

    /// Reads this separately, after the extents that wait already.
    pub fn read_later(&mut self, extent: Extent) {
        self.separate_blocks += extent.blocks.get();
        self.separate_reads.push_back(extent);
    }

    /// Reads this separately, next.
    pub fn read_next(&mut self, extent: Extent) {
        self.separate_blocks += extent.blocks.get();
        self.separate_reads.push_front(extent);
    }

    /// The next extent to read separately, cut after `most` blocks.
    pub fn next_again(&mut self, most: u64) -> Option<Extent> {
        let extent = self.separate_reads.pop_front()?;
        self.separate_blocks -= extent.blocks.get();
        let (first, rest) = split(extent, most.min(extent.blocks.get()));
        if rest.blocks > Blocks::ZERO {
            self.read_next(rest);
        }
        Some(first)
    }

    /// Removes the extents to read separately that overlap `from..to`, and returns them.
    pub fn take_again(&mut self, from: u64, to: u64) -> Vec<Extent> {
        if self.separate_reads.is_empty() {
            return Vec::new();
        }
        let (taken, left): (Vec<_>, Vec<_>) = self.separate_reads.drain(..).partition(|extent| {
            let start = extent.start.get();
            start < to && from < start + extent.blocks.get()
        });
        self.separate_reads.extend(left);
        self.separate_blocks -= taken.iter().map(|extent| extent.blocks.get()).sum::<u64>();
        taken
    }

    /// Takes what the planner does not have of the blocks that `from..to` touches: extents to read
    /// separately, and blocks that it has not been given.
    pub fn take_aside(&mut self, from: u64, to: u64) -> Vec<Extent> {
        let mut aside = self.take_again(from, to);
        let (first, size) = (self.order.range().start.get(), u64::from(self.order.size()));
        let end = first + self.order.range().blocks.get();
        let start = from.max(first) - (from.max(first) - first) % size;
        let last = first + (to.min(end).max(start) - first).next_multiple_of(size);
        aside.extend(self.ahead.take(Extent::new(start, last - start)));
        aside
    }

    /// True if the data of a command are older than the task, whose data are of its beginning or later.
    /// Clients may have written there since: requests wait for each other, free reads do not.
    pub fn is_older(&self, command: u64) -> bool {
        self.wants_data() && command <= self.begun_behind
    }

    /// True if the reader has room for `blocks` of 512 B in addition to reserved room.
    pub fn has_room_for(&self, blocks: u64) -> bool {
        !self.has_reader || self.room >= (blocks + self.kept_room) * BLOCK_BYTES
    }

    /// True if a foreground request may be made for it now, when no client has been there since
    /// `idle_since`.
    pub fn may_promote(&self, now: SimTime, idle_since: Option<SimTime>) -> bool {
        if self.is_promoted {
            return self.promoted_reads < PROMOTED_READS;
        }
        let after = self.order.idle_after.zip(idle_since);
        self.promoted_reads == 0
            && after.is_some_and(|(after, since)| now.saturating_since(since) >= after)
    }

    /// Takes the next request for the last blocks of the round out of the gaps, if it is time for one.
    pub fn promote_tail(
        &mut self,
        now: SimTime,
        planner: &mut Tasks,
        planner_task: TaskId,
    ) -> Option<Promoted> {
        // Blocks that the planner has not been given cannot be promoted, so no tail has begun. Of a
        // promoted task all blocks are read by requests anyway.
        if self.ahead.blocks() > 0 || self.is_promoted {
            return None;
        }
        let left = planner.progress(planner_task, now).ok()?.wanted;
        self.account.promote_tail(now, planner, planner_task, left)
    }

    /// A request took this head time; it ended at `to`.
    pub fn head_took(&mut self, promotion: Option<PromotionId>, head: SimDuration, to: Lbn) {
        let Some(tail) = self.account.tail() else { return };
        tail.passed(to, 0);
        // What the tail promoted in an earlier round is paid by that.
        let _ = self.account.tail_took(promotion, head);
    }

    /// A promoted read has come back.
    pub fn promoted_done(&mut self, promotion: Option<PromotionId>) {
        self.promoted_reads -= 1;
        self.account.tail().into_iter().for_each(|tail| tail.done(promotion));
    }

    /// Begins the account of a round.
    pub fn begin_account(&mut self, now: SimTime) {
        // A round that ended at an even pace, by its tail, tells nothing of the pace of the next one.
        let before = self.account.begin(self.blocks, self.is_promoted, now);
        self.copied_before += before.copied.blocks;
    }

    /// Blocks of its sample have come, or cannot be read.
    pub fn count_sample(&mut self, extent: Extent) {
        let range = self.order.range();
        self.sample.iter_mut().for_each(|sample| sample.deliver(range, extent));
    }

    /// Report of the task; `left` blocks of 512 B are not read.
    pub fn report(&self, id: u64, left: u64, now: SimTime) -> ServedTaskReport {
        let is_running = self.state == TaskState::Running;
        ServedTaskReport {
            id,
            order: self.order.clone(),
            skip_since: self.parts.skip_since,
            has_reader: self.has_reader,
            sample: self.sample,
            blocks: Blocks::new(self.blocks),
            state: self.state,
            is_promoted: self.is_promoted,
            tail_head: SimDuration::from_ns(self.account.round().promoted.head_ns),
            began: self.began,
            ended: self.ended,
            round_began: self.account.began(),
            rounds: self.account.rounds(),
            delivered: Blocks::new(self.delivered),
            deliveries: *self.account.round(),
            left: Blocks::new(left),
            unreadable: self.unreadable.iter().take(LISTED_MAX).collect(),
            unreadable_blocks: Blocks::new(self.unreadable.blocks()),
            copied: Blocks::new(self.copied_before + self.account.round().copied.blocks),
            refused: Blocks::new(self.refused),
            refresh: self.refresh.as_ref().map(|refresh| refresh.blocks.report()),
            end: is_running.then(|| self.account.estimated().end(left, now)).flatten(),
            predictions: self.account.estimated().predictions().to_vec(),
        }
    }
}

/// The first `blocks` of an extent, and the others.
pub(crate) fn split(extent: Extent, blocks: u64) -> (Extent, Extent) {
    let start = extent.start.get();
    let rest = extent.blocks.get() - blocks;
    (Extent::new(start, blocks), Extent::new(start + blocks, rest))
}

/// Report of a task.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct ServedTaskReport {
    pub id: u64,
    pub order: TaskOrder,
    /// Skipped parts that a client has written since are read all the same.
    pub skip_since: SimTime,
    /// True if the data go to a reader.
    pub has_reader: bool,
    /// The sample that it reads, if it reads one.
    pub sample: Option<Sample>,
    /// Number of blocks in a round.
    pub blocks: Blocks,
    pub state: TaskState,
    /// The rest is read by foreground requests.
    pub is_promoted: bool,
    /// Head time of the requests by which the tail of this round, or of the last one, has read.
    pub tail_head: SimDuration,
    /// Time at which its first round began.
    pub began: Option<SimTime>,
    pub ended: Option<SimTime>,
    /// Time at which this round, or the last one, began.
    pub round_began: SimTime,
    /// Rounds that are complete.
    pub rounds: u64,
    /// Blocks that were read, in all rounds.
    pub delivered: Blocks,
    /// Blocks of 512 B of this round, or of the last one, by the path of their delivery. Blocks that were read
    /// again, as a read of them failed or its data were old, are in none.
    pub deliveries: Deliveries,
    /// Blocks that are still to be read in this round.
    pub left: Blocks,
    /// Ranges that could not be read, and have not been read since: the first thousand.
    pub unreadable: Vec<Extent>,
    /// Sum of unreadable blocks.
    pub unreadable_blocks: Blocks,
    /// Blocks that were read because a client was about to write over them.
    pub copied: Blocks,
    /// Blocks that were read, could not be handed on in time, and were wanted again.
    pub refused: Blocks,
    /// Outcome of a refresh's blocks in all rounds.
    pub refresh: Option<RefreshReport>,
    /// Time at which this round is expected to end.
    pub end: Option<SimTime>,
    /// Predictions made earlier in this round, or in the last one.
    pub predictions: Vec<PredictionMark>,
}
