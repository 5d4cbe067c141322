//! Background tasks: sets of blocks to read or write for free, and their outcome (osdi00
//! section 2.1, table 1).
//!
//! Goals: no call waits; every wanted block is delivered exactly once per task and round; a block
//! that several tasks want is moved once and given to all; memory goes by one bit a block, not by
//! what the blocks hold. No data pass here: an [`Event`] says which of them are in memory.
//!
//! **Promoted blocks** belong to the foreground queue alone: no gap is used for them, and they are
//! delivered when a foreground request moves them (a write: when the promoted request is done, unless
//! it was superseded before).
//!
//! **Order of writes.** Blocks of 512 B that two requests share decide:
//! - a foreground write supersedes every pending freeblock write from its arrival on, and so does a
//!   freeblock write that is registered later: the earlier block is not written any more, unless its
//!   gap has begun, and its task learns, of the whole block even where only a part of it is written
//!   anew;
//! - a promoted write is superseded by foreground writes alone, and freeblock ones wait for it. Its
//!   request is in the caller's queue already. **The caller must not let it go after the newer
//!   write:** either the newer one is held back until the promoted request is done, or the promoted
//!   request leaves the queue, if all its blocks are superseded, and is reported as done. A policy
//!   that reorders overlapping writes leaves older data on the media otherwise. Either way what was
//!   superseded is not delivered;
//! - a freeblock write waits until every foreground write that arrived before it is done, promoted
//!   ones and those of the gap that is under way among them;
//! - a freeblock read that is registered while a freeblock write is pending, or any write under way,
//!   waits until none is: a write may have been acknowledged long before, when a buffer had it. A
//!   read that was registered before does not hold the write up: it gets what is there when its turn
//!   comes, or the data of the write if it counts writes. For a write of the data that are there
//!   ([`TaskSpec::is_rewrite`]) no read waits, unless it is under way;
//! - foreground requests never wait: a foreground read gets what is on the media;
//! - what waits is not promoted, and foreground requests keep order among themselves as they would
//!   without tasks.
//!
//! What is held of a block that is read in pieces takes part in the writes that pass over it.

mod abort;
mod claim;
mod grid;
mod kind;
mod layer;
mod memory;
mod promote;
mod spec;
mod task;
mod transfer;
mod weights;
mod writes;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::{ForegroundEvent, ForegroundObserver};
use freewheel_units::{Blocks, Lbn, Op, SimDuration, SimTime};

use self::layer::{Layer, Shape};
use self::spec::{Runs, check_overlap, runs};
use self::task::{Task, count};
use self::weights::{Contest, WeightedTask, by_deadline, by_room};
use self::writes::{PendingWrites, PromotedWrite, Writer, bounds};
use crate::bitmap::Bitmap;
use crate::estimate::TailModel;
use crate::foreground::{Foreground, PromotionId};
use crate::opportunity::Opportunity;
use crate::scheduler::{Options, Scheduler};
use crate::search::SearchProgress;
use crate::{FreeRun, Planner, ResumableSearch};
use freewheel_model::drive::{Departure, Drive};

pub use crate::foreground::Promoted;
pub use kind::{Priority, RoundKind, TaskKind};
pub use memory::Memory;
pub use spec::{
    BLOCK_SIZE_MAX, BlockSelection, Counts, Extent, LAYERS_MAX, Pace, REPEATED_EXTENTS_MAX,
    TaskError, TaskId, TaskSpec, Until,
};
pub use task::{Progress, Wanted};

/// Interval at which the weights of tasks with deadlines and shares are looked at, by default. Assumed: a
/// thousand gaps of 10 ms tell a rate, and a new index is rare beside them.
pub const CADENCE: SimDuration = SimDuration::from_secs(10);

/// Something that has become of a task's blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Event {
    /// Blocks have been read, and their data are in memory now, or they have been written.
    Delivered {
        task: TaskId,
        /// Whole blocks of the task.
        extent: Extent,
        /// Set for promoted blocks.
        is_promoted: bool,
        at: SimTime,
    },
    /// These data need not reach the media, because newer ones for the same place do, and are not
    /// delivered. They may still be written, in the gap that is under way or by their promoted
    /// request, but before the newer ones.
    Superseded {
        task: TaskId,
        /// Whole blocks of the task.
        extent: Extent,
        at: SimTime,
    },
    /// A round is complete. Unless the task repeats itself, it has ended.
    Done {
        task: TaskId,
        /// Number of the round, from zero.
        round: u64,
        at: SimTime,
    },
}

/// All tasks of one arm, and the scheduler that serves them.
#[derive(Debug, Clone)]
pub struct Tasks {
    scheduler: Scheduler,
    cadence: SimDuration,
    /// Time at which weights are looked at again.
    weigh_at: SimTime,
    /// A round has begun since then, so that all of a task is there again.
    has_new_round: bool,
    contest: Contest,
    tasks: BTreeMap<TaskId, Task>,
    /// By number of the scheduler's layers.
    layers: Vec<Layer>,
    writes: PendingWrites,
    promotions: BTreeMap<PromotionId, PromotedWrite>,
    /// Write runs of the last plan that are not done.
    in_gap: Vec<FreeRun>,
    /// Write runs at a drive that is asked for more while it works.
    at_drive: Vec<FreeRun>,
    tasks_begun: u64,
    promotions_begun: u64,
    events: Vec<Event>,
    /// Extents of freeblock writes that ended in this call, one way or the other: reads may wait there.
    ended: Vec<(u64, u64)>,
    /// Tasks that may be complete after this call.
    touched: Vec<TaskId>,
}

impl Tasks {
    /// No tasks yet. Weights are looked at every `cadence`.
    pub fn new(drive: &Arc<Drive>, options: Options, cadence: SimDuration) -> Self {
        Self {
            scheduler: Scheduler::new(drive, options),
            cadence,
            weigh_at: SimTime::ZERO,
            has_new_round: false,
            contest: Contest::default(),
            tasks: BTreeMap::new(),
            layers: Vec::new(),
            writes: PendingWrites::default(),
            promotions: BTreeMap::new(),
            in_gap: Vec::new(),
            at_drive: Vec::new(),
            tasks_begun: 0,
            promotions_begun: 0,
            events: Vec::new(),
            ended: Vec::new(),
            touched: Vec::new(),
        }
    }

    /// The scheduler, for what its decisions cost.
    pub fn scheduler(&self) -> &Scheduler {
        &self.scheduler
    }

    /// Does now what the next decision would have to do first, after one was made or tasks have begun or
    /// been extended: time that no task waits for may be there now, and not then.
    pub fn refresh(&mut self) {
        self.scheduler.refresh();
    }

    /// The drive the tasks are for.
    pub fn drive(&self) -> &Arc<Drive> {
        self.scheduler.drive()
    }

    /// Takes what has happened since the last call, in order.
    pub fn events(&mut self) -> std::vec::Drain<'_, Event> {
        self.events.drain(..)
    }

    fn capacity(&self) -> Blocks {
        self.drive().blocks()
    }

    fn task(&self, id: TaskId) -> Result<&Task, TaskError> {
        self.tasks.get(&id).ok_or(TaskError::Unknown { task: id })
    }

    /// Begins a task (table 1: `freeblock_readblocks`, `freeblock_writeblocks`).
    pub fn register(&mut self, now: SimTime, spec: TaskSpec) -> Result<TaskId, TaskError> {
        spec.check(self.scheduler.options().held_max)?;
        let runs = self.runs_of(spec.op, spec.block_size, &spec.extents)?;
        let blocks = runs.values().flatten().map(|run| run.1 - run.0).sum();
        match spec.until {
            Until::Standing => {}
            _ if blocks == 0 => return Err(TaskError::Empty),
            Until::Enough(enough) if enough == 0 || enough > blocks => {
                return Err(TaskError::Enough { enough, blocks });
            }
            _ => {}
        }
        let id = TaskId(self.tasks_begun);
        let task = Task::new(spec, now);
        self.check_room(id, &task, &runs)?;
        self.tasks_begun += 1;
        self.tasks.insert(id, task);
        self.add(id, runs, now);
        self.settle(now);
        Ok(id)
    }

    /// Adds blocks to a task. Blocks that it wants already stay wanted, once; blocks that it is about to
    /// write are written with the newest data.
    pub fn extend(
        &mut self,
        now: SimTime,
        id: TaskId,
        extents: &[Extent],
    ) -> Result<(), TaskError> {
        let task = self.task(id)?;
        let runs = self.runs_of(task.spec.op, task.spec.block_size, extents)?;
        self.check_room(id, task, &runs)?;
        self.add(id, runs, now);
        self.settle(now);
        Ok(())
    }

    fn runs_of(&self, op: Op, size: u32, extents: &[Extent]) -> Result<Runs, TaskError> {
        let runs = runs(size, extents, self.capacity())?;
        if op == Op::Write {
            check_overlap(size, &runs)?;
        }
        Ok(runs)
    }

    /// Blocks that a task may be given in gaps.
    fn free(&self, id: TaskId) -> u64 {
        let parts = &self.tasks[&id].parts;
        parts
            .iter()
            .map(|part| match &part.own {
                Some(own) => own.count(),
                None => self.scheduler.wanted(part.layer),
            })
            .sum()
    }

    /// Blocks that a task still wants.
    fn outstanding(&self, id: TaskId) -> u64 {
        self.free(id)
            + self.tasks[&id]
                .parts
                .iter()
                .map(|part| count(&part.promoted) + count(&part.deferred))
                .sum::<u64>()
    }

    /// Progress of a task.
    pub fn progress(&self, id: TaskId, now: SimTime) -> Result<Progress, TaskError> {
        Ok(self.task(id)?.progress(self.free(id), self.weight(id), now))
    }

    /// Slowing of a task, by all blocks that are wanted now.
    pub fn wear(&self, id: TaskId) -> Result<TailModel, TaskError> {
        let is_rationed = self.task(id)?.spec.holds_pieces && self.scheduler.is_rationed();
        Ok(if is_rationed { TailModel::Rationed } else { TailModel::Even })
    }

    /// State of a task's block that begins at `start`; not wanted where none of its blocks begins. Unlike
    /// the events, this is never late.
    pub fn wanted(&self, id: TaskId, start: Lbn) -> Result<Wanted, TaskError> {
        let mut wanted = Wanted::default();
        for (number, part) in self.task(id)?.parts.iter().enumerate() {
            let size = part.grid.size;
            let (block, end) = part.grid.inside((start.get(), start.get().saturating_add(size)));
            if block == end {
                continue;
            }
            wanted.in_gap =
                self.free_blocks(id, number).contains(block) || has(&part.deferred, block);
            wanted.promoted = has(&part.promoted, block);
        }
        Ok(wanted)
    }

    /// Tasks that have not ended, in the order of their registration.
    pub fn ids(&self) -> impl Iterator<Item = TaskId> {
        self.tasks.keys().copied()
    }

    /// Completes what the call has changed: reads that need not wait any more, rounds, tasks.
    fn settle(&mut self, at: SimTime) {
        while !self.ended.is_empty() || !self.touched.is_empty() {
            for range in std::mem::take(&mut self.ended) {
                self.release_reads(range);
            }
            let mut touched = std::mem::take(&mut self.touched);
            touched.sort_unstable();
            touched.dedup();
            for id in touched {
                self.complete(id, at);
            }
        }
    }

    /// Ends the round of a task that has all it wants.
    fn complete(&mut self, id: TaskId, at: SimTime) {
        let Some(task) = self.tasks.get(&id) else { return };
        let is_standing = task.spec.until == Until::Standing;
        if is_standing || task.left() > 0 && self.outstanding(id) > 0 {
            return;
        }
        let Some(task) = self.tasks.get_mut(&id) else { return };
        self.events.push(Event::Done { task: id, round: task.round, at });
        if task.spec.until != Until::Repeated || task.parts.iter().all(|p| p.repeats.is_empty()) {
            self.end(id);
            return;
        }
        self.has_new_round = true;
        task.round += 1;
        task.since = at;
        task.delivered = 0;
        for part in 0..task.parts.len() {
            let runs = self.tasks[&id].parts[part].repeats.clone();
            self.want_reads(id, part, &runs);
        }
    }

    /// Looks at the weights of tasks with deadlines and shares; when `is_due`, also at the bytes that they
    /// received since the last time.
    fn weigh(&mut self, now: SimTime, is_due: bool) {
        let mut rivals = Vec::new();
        let mut weights = Vec::new();
        for (&id, task) in &self.tasks {
            let left = self.outstanding(id).min(task.left());
            if let Some(weight) = by_deadline(task, left, now) {
                weights.push((id, weight));
            } else if let Pace::Share(share) = task.spec.pace
                && self.free(id) > 0
            {
                let left = self.free(id) * u64::from(task.spec.block_size);
                let (priority, delivered) =
                    (task.spec.priority.weight(), task.delivered_blocks().get());
                rivals.push(WeightedTask { task: id, share, priority, delivered, left });
            }
        }
        weights.extend(self.contest.weigh(&rivals, is_due));
        for (id, weight) in weights {
            for part in &self.tasks[&id].parts {
                self.scheduler.set_weight(part.layer, weight);
            }
        }
    }

    /// Looks at the weights of tasks that fill a memory: it may be full before others are looked at.
    fn weigh_by_room(&mut self) {
        for (&id, task) in &self.tasks {
            if !matches!(task.spec.pace, Pace::Room(_)) {
                continue;
            }
            let filled = self.free(id);
            if let Some(weight) = by_room(task, self.weight(id), filled) {
                for part in &task.parts {
                    self.scheduler.set_weight(part.layer, weight);
                }
            }
        }
    }

    /// Worth of a block of 512 B of a task now.
    fn weight(&self, id: TaskId) -> u32 {
        let task = &self.tasks[&id];
        let own = task.parts.first().map(|part| self.scheduler.weight(part.layer));
        own.unwrap_or(task.spec.priority.weight())
    }

    /// The run to do next with the head like this, while no foreground request is there: what is
    /// nearest, at most `most` blocks of 512 B unless what is wanted comes in larger ones. It is
    /// done like those of a gap.
    pub fn plan_idle(&mut self, head: &Departure, most: u32) -> Option<FreeRun> {
        self.end_gap();
        let run = self.scheduler.plan_idle(head, most)?;
        self.begin_writes(&[run]);
        Some(run)
    }

    /// Write runs of a plan are under way from now on.
    fn begin_writes(&mut self, runs: &[FreeRun]) {
        for run in runs.iter().filter(|run| run.op == Op::Write) {
            self.writes.begin(Writer::Gap, bounds(run.start, run.blocks));
            self.in_gap.push(*run);
        }
    }

    /// Write runs of the last plan are not under way any more.
    fn end_gap(&mut self) {
        for run in std::mem::take(&mut self.in_gap) {
            self.writes.end(Writer::Gap, run.start.get());
            self.release_all(bounds(run.start, run.blocks));
        }
    }

    /// Weighs tasks for a decision about this gap; the result does not depend on the number of calls.
    fn weigh_for(&mut self, gap: &Opportunity) {
        self.end_gap();
        let is_due = gap.begin >= self.weigh_at;
        if is_due || self.has_new_round {
            self.weigh(gap.begin, is_due);
            self.has_new_round = false;
        }
        if is_due {
            self.weigh_at = gap.begin + self.cadence;
        }
        self.weigh_by_room();
    }
}

fn has(set: &Option<Bitmap>, block: u64) -> bool {
    set.as_ref().is_some_and(|set| set.contains(block))
}

impl Planner for Tasks {
    fn predict_with(&mut self, drive: &Arc<Drive>) {
        self.scheduler.predict_with(drive);
    }

    fn plan(&mut self, gap: &Opportunity, runs: &mut Vec<FreeRun>) {
        self.weigh_for(gap);
        self.scheduler.plan(gap, runs);
        self.begin_writes(runs);
    }

    fn prepare(&mut self, gap: &Opportunity) {
        // Weights shape the index, so they come first.
        self.weigh_for(gap);
        self.scheduler.prepare(gap);
    }

    fn resumable(&mut self) -> Option<&mut dyn ResumableSearch> {
        Some(self)
    }

    fn sent(&mut self, run: &FreeRun) {
        if let Some(known) = self.in_gap.iter().position(|known| known == run) {
            self.at_drive.push(self.in_gap.remove(known));
        }
    }

    fn done(&mut self, run: &FreeRun, at: SimTime) {
        self.transferred(run.start, run.blocks, |shape| serves(shape, run), at);
        let known = [&mut self.in_gap, &mut self.at_drive].into_iter().find_map(|under_way| {
            let known = under_way.iter().position(|known| known == run)?;
            Some(under_way.remove(known))
        });
        if known.is_some() {
            self.writes.end(Writer::Gap, run.start.get());
            self.release_all(bounds(run.start, run.blocks));
        }
        self.settle(at);
    }
}

fn serves(shape: &Shape, run: &FreeRun) -> bool {
    match run.op {
        Op::Write => shape.op == Op::Write || shape.counts.writes,
        _ => shape.op == Op::Read,
    }
}

impl ResumableSearch for Tasks {
    fn begin_search(&mut self, gap: &Opportunity) {
        self.weigh_for(gap);
        self.scheduler.begin_search(gap);
    }

    fn step(&mut self, nodes: u64) -> SearchProgress {
        self.scheduler.step(nodes)
    }

    fn give_up(&mut self) {
        self.scheduler.give_up();
    }

    fn end_search(&mut self, runs: &mut Vec<FreeRun>) {
        self.scheduler.end_search(runs);
        self.begin_writes(runs);
    }
}

impl ForegroundObserver for Tasks {
    fn foreground(&mut self, event: ForegroundEvent<'_>) {
        match event {
            ForegroundEvent::Passed { op, start, blocks, at } => {
                self.foreground_passed(op, start, blocks, at)
            }
            ForegroundEvent::Arrived { request, at } => self.foreground_arrived(request, at),
            ForegroundEvent::Done { request, at } => self.foreground_done(request, at),
            _ => {}
        }
    }
}

impl Tasks {
    fn foreground_passed(&mut self, op: Op, start: Lbn, blocks: u32, at: SimTime) {
        self.transferred(
            start,
            blocks,
            |shape| shape.op == Op::Read && counts(shape.counts, op),
            at,
        );
        self.passed_promoted(op, start, blocks, at);
        self.settle(at);
    }

    fn foreground_arrived(&mut self, request: &Foreground, at: SimTime) {
        if request.op != Op::Write || request.promotion.is_some() {
            return;
        }
        let bounds = bounds(request.start, request.blocks);
        self.writes.begin(Writer::Foreground(request.sequence), bounds);
        self.supersede(bounds, None, at);
        self.settle(at);
    }

    fn foreground_done(&mut self, request: &Foreground, at: SimTime) {
        if request.op != Op::Write {
            // The drive's buffer had it.
            if request.promotion.is_some() {
                self.passed_promoted(request.op, request.start, request.blocks, at);
                self.settle(at);
            }
            return;
        }
        match request.promotion {
            Some(promotion) => self.promoted_written(promotion, at),
            None => self.writes.end(Writer::Foreground(request.sequence), request.start.get()),
        }
        self.release_all(bounds(request.start, request.blocks));
        self.settle(at);
    }
}

fn counts(counts: Counts, op: Op) -> bool {
    if op == Op::Read { counts.reads } else { counts.writes }
}

#[cfg(test)]
mod tests {
    use freewheel_units::Blocks;

    use super::*;
    use freewheel_model::drive::{Departure, Position};

    #[test]
    fn changed_weights_are_indexed_before_decision() {
        let spec = toml::from_str(include_str!("../../../../drives/atlas10k.toml")).unwrap();
        let drive = Arc::new(Drive::build(&spec).unwrap());
        let with_deadline = || {
            let mut tasks = Tasks::new(&drive, Options::default(), SimDuration::from_ms(100));
            for (first, pace) in
                [(0, Pace::ByPriority), (1 << 20, Pace::Deadline(SimDuration::from_ms(1000)))]
            {
                let extents = vec![Extent { start: Lbn::new(first), blocks: Blocks::new(1 << 20) }];
                let spec = TaskSpec { pace, ..TaskSpec::new(Op::Read, 16, extents) };
                tasks.register(SimTime::ZERO, spec).unwrap();
            }
            tasks
        };
        let gap = |at| Opportunity::none(&Departure::after_read(at, Position::default()));
        // Half of the time is over, and no block read: the deadline is in danger.
        let late = gap(SimTime::from_ns(500_000_000));
        let after = |prepare: fn(&mut Tasks, &Opportunity)| {
            let mut tasks = with_deadline();
            tasks.prepare(&gap(SimTime::ZERO));
            prepare(&mut tasks, &late);
            tasks.weigh_for(&late);
            tasks.scheduler.needs_rebuild()
        };
        assert!(!after(|tasks, late| tasks.prepare(late)));
        assert!(after(|tasks, late| tasks.scheduler.prepare(late)), "weights do change there");
    }
}
