//! Destages of a storage system's write buffer in the rotational gaps of other requests.
//!
//! The buffer and the arm's planner share one task of free writes:
//!
//! ```text
//!   buffer block is wholly dirty       --> wanted by the task
//!   a gap has room for it on the way   --> written; on its way until the gap's request is done
//!   a destage, write-through or trim --> wanted no longer
//! ```
//!
//! The arm begins every access when its data are due, with or without free writes before it, so no
//! request ends later. Blocks of which only a part is dirty wait for their destage.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};

use freewheel_freeblock::tasks::{
    BlockSelection, CADENCE, Event, Extent, TaskError, TaskId, TaskSpec, Tasks, Until,
};
use freewheel_freeblock::{
    ForegroundEvent, ForegroundObserver, FreeRun, GapUse, Opportunity, Options, Planner,
};
use freewheel_model::cache::BlockRange;
use freewheel_model::drive::{Drive, SeekMargins};
use freewheel_units::{Blocks, Lbn, Op, SimDuration, SimTime};

/// The task that the buffer and the planner share.
#[derive(Clone)]
pub(crate) struct GapDestages(Arc<Mutex<Shared>>);

struct Shared {
    tasks: Tasks,
    task: TaskId,
    /// Blocks written since the buffer last asked.
    written: Vec<Range<u64>>,
}

impl GapDestages {
    /// Nothing is wanted yet. Buffer blocks have `buffer_block` blocks.
    pub fn new(drive: &Arc<Drive>, buffer_block: Blocks) -> Result<Self, TaskError> {
        // A plan must hold for the longest seek, so that no request ever waits for a free write.
        let drive = match drive.seek_tolerance() {
            SimDuration::ZERO => Arc::clone(drive),
            tolerance => Arc::new(drive.with_seek_margins(SeekMargins::constant(tolerance))),
        };
        let mut tasks = Tasks::new(&drive, Options::default(), CADENCE);
        let spec = TaskSpec {
            until: Until::Standing,
            ..TaskSpec::new(Op::Write, buffer_block.get() as u32, Vec::new())
        };
        let task = tasks.register(SimTime::ZERO, spec)?;
        Ok(Self(Arc::new(Mutex::new(Shared { tasks, task, written: Vec::new() }))))
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.0.lock().expect("the planner does not panic")
    }

    /// A buffer block is wholly dirty.
    pub fn want(&self, blocks: Range<u64>, now: SimTime) {
        let Shared { tasks, task, .. } = &mut *self.shared();
        let extent = Extent::new(blocks.start, blocks.end - blocks.start);
        tasks.extend(now, *task, &[extent]).expect("blocks of the drive");
    }

    /// Buffer blocks that have some of these are wholly dirty no longer.
    pub fn forget(&self, blocks: BlockRange<Lbn>, now: SimTime) {
        let Shared { tasks, task, .. } = &mut *self.shared();
        let extent = Extent::new(blocks.start.get(), blocks.blocks.get());
        let which = BlockSelection::Touching(&[extent]);
        tasks.abort(now, *task, which).expect("blocks of the drive");
        tasks.events().for_each(drop);
    }

    /// Takes the blocks that gaps have written since the last call.
    pub fn take_written(&self) -> Vec<Range<u64>> {
        std::mem::take(&mut self.shared().written)
    }
}

impl Planner for GapDestages {
    fn plan(&mut self, gap: &Opportunity, runs: &mut Vec<FreeRun>) {
        self.shared().tasks.plan(gap, runs);
    }

    fn done(&mut self, run: &FreeRun, at: SimTime) {
        let Shared { tasks, written, .. } = &mut *self.shared();
        tasks.done(run, at);
        for event in tasks.events() {
            if let Event::Delivered { extent, .. } = event {
                let start = extent.start.get();
                written.push(start..start + extent.blocks.get());
            }
        }
    }

    fn filled(&mut self, gap: &Opportunity, gap_use: &GapUse) {
        self.shared().tasks.filled(gap, gap_use);
    }
}

impl ForegroundObserver for GapDestages {
    fn foreground(&mut self, event: ForegroundEvent<'_>) {
        let Shared { tasks, .. } = &mut *self.shared();
        tasks.foreground(event);
        // Whatever a write to the disk supersedes has left the buffer with it.
        tasks.events().for_each(drop);
    }
}
