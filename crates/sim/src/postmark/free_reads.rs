//! The cleaner's reads as a permanent task of a freeblock scheduler.
//!
//! ```text
//!   LogDisk --Wish--> CleaningTask --extend, abort--> Tasks <--plan, done, passed-- CleaningPlanner
//!   LogDisk <--delivered-- CleaningTask <--blocks, times--- Tasks                    (the executor's)
//! ```
//! The process and the executor each hold an end. They take turns: the process waits while the head
//! works.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use freewheel_freeblock::tasks::{
    BlockSelection, CADENCE, Counts, Event, Extent, TaskId, TaskSpec, Tasks, Until,
};
use freewheel_freeblock::{
    ForegroundEvent, ForegroundObserver, FreeRun, GapUse, Opportunity, Options, Planner,
};
use freewheel_model::drive::Drive;
use freewheel_model::log_disk::FreeRequest;
use freewheel_units::{Blocks, Lbn, Op, SimTime};

use super::process::FreeReads;

/// The process's end: takes wishes for blocks, and returns blocks that were read.
#[derive(Debug)]
pub struct CleaningTask(Arc<Mutex<Shared>>);

/// The executor's end.
#[derive(Debug)]
pub struct CleaningPlanner(Arc<Mutex<Shared>>);

#[derive(Debug)]
struct Shared {
    tasks: Tasks,
    task: TaskId,
    block: Blocks,
    /// Time up to which both ends know everything.
    now: SimTime,
    /// Blocks in order of the time of their read.
    delivered: VecDeque<(SimTime, Lbn)>,
}

/// Both ends of a task on `drive` with blocks of this size. Blocks that foreground requests read in
/// passing are delivered as well. Panics for an empty block, or one larger than a task's may be.
pub fn cleaning_task(
    drive: &Arc<Drive>,
    block: Blocks,
    options: Options,
) -> (CleaningTask, CleaningPlanner) {
    let mut tasks = Tasks::new(drive, options, CADENCE);
    let size = u32::try_from(block.get()).expect("the size of a block");
    let spec = TaskSpec {
        counts: Counts::READS,
        until: Until::Standing,
        ..TaskSpec::new(Op::Read, size, Vec::new())
    };
    let task = tasks.register(SimTime::ZERO, spec).expect("a task of blocks of this size");
    let delivered = VecDeque::new();
    let shared = Shared { tasks, task, block, now: SimTime::ZERO, delivered };
    let shared = Arc::new(Mutex::new(shared));
    (CleaningTask(Arc::clone(&shared)), CleaningPlanner(shared))
}

/// A poisoned lock is safe to use: no panic can occur between two changes that belong together.
fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    fn extent(&self, start: Lbn) -> Extent {
        Extent { start, blocks: self.block }
    }

    fn take_events(&mut self) {
        let Self { tasks, delivered, block, .. } = self;
        for event in tasks.events() {
            if let Event::Delivered { extent, at, .. } = event {
                let starts = (0..extent.blocks.get()).step_by(block.get() as usize);
                delivered.extend(starts.map(|from| (at, extent.start + Blocks::new(from))));
            }
        }
    }
}

impl FreeReads for CleaningTask {
    fn wish(&mut self, wish: FreeRequest) {
        let shared = &mut *lock(&self.0);
        let (now, task) = (shared.now, shared.task);
        match wish {
            FreeRequest::Register(start) => {
                let extents = [shared.extent(start)];
                let added = shared.tasks.extend(now, task, &extents);
                added.expect("a block of the drive, for a task that stands");
            }
            FreeRequest::Abort(start) => {
                let extents = [shared.extent(start)];
                let gone = shared.tasks.abort(now, task, BlockSelection::In(&extents));
                if gone.expect("a block of the drive, of a task that stands") == 0 {
                    shared.delivered.retain(|&(_, delivered)| delivered != start);
                }
            }
        }
    }

    fn take_delivered(&mut self, now: SimTime, delivered: &mut Vec<Lbn>) {
        let shared = &mut *lock(&self.0);
        shared.now = now;
        // The executor computes the head's work when it begins, so a read may be known before it is
        // done.
        let done = shared.delivered.partition_point(|&(at, _)| at <= now);
        delivered.extend(shared.delivered.drain(..done).map(|(_, start)| start));
    }
}

impl Planner for CleaningPlanner {
    fn prepare(&mut self, gap: &Opportunity) {
        lock(&self.0).tasks.prepare(gap);
    }

    fn plan(&mut self, gap: &Opportunity, runs: &mut Vec<FreeRun>) {
        lock(&self.0).tasks.plan(gap, runs);
    }

    fn done(&mut self, run: &FreeRun, at: SimTime) {
        let shared = &mut *lock(&self.0);
        shared.tasks.done(run, at);
        shared.take_events();
    }

    fn filled(&mut self, gap: &Opportunity, gap_use: &GapUse) {
        lock(&self.0).tasks.filled(gap, gap_use);
    }
}

impl ForegroundObserver for CleaningPlanner {
    fn foreground(&mut self, event: ForegroundEvent<'_>) {
        let shared = &mut *lock(&self.0);
        shared.tasks.foreground(event);
        if let ForegroundEvent::Passed { .. } = event {
            shared.take_events();
        }
    }
}
