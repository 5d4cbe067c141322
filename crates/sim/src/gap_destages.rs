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

use std::sync::Arc;

use freewheel_freeblock::tasks::{
    BlockSelection, CADENCE, Event, Extent, TaskError, TaskId, TaskSpec, Tasks, Until,
};
use freewheel_freeblock::{
    ForegroundEvent, ForegroundObserver, FreeRun, GapUse, GapWriter, Opportunity, Options, Planner,
};
use freewheel_model::drive::{Drive, SeekMargins};
use freewheel_units::{Blocks, Lbn, Op, SimDuration, SimTime};

/// The planner of one arm, whose task is the buffer's.
pub(crate) struct GapDestages {
    tasks: Tasks,
    task: TaskId,
    buffer_block: u64,
    /// First blocks of those written since the buffer last asked.
    written: Vec<Lbn>,
}

impl GapDestages {
    /// No block is wanted yet. Buffer blocks have `buffer_block` blocks.
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
        Ok(Self { tasks, task, buffer_block: buffer_block.get(), written: Vec::new() })
    }
}

impl GapWriter for GapDestages {
    fn want(&mut self, start: Lbn, now: SimTime) {
        let extent = Extent::new(start.get(), self.buffer_block);
        self.tasks.extend(now, self.task, &[extent]).expect("blocks of the drive");
    }

    fn forget(&mut self, start: Lbn, blocks: Blocks, now: SimTime) {
        let extent = Extent::new(start.get(), blocks.get());
        let which = BlockSelection::Touching(&[extent]);
        self.tasks.abort(now, self.task, which).expect("blocks of the drive");
        self.tasks.events().for_each(drop);
    }

    fn take_written(&mut self) -> Vec<Lbn> {
        std::mem::take(&mut self.written)
    }
}

impl Planner for GapDestages {
    fn plan(&mut self, gap: &Opportunity, runs: &mut Vec<FreeRun>) {
        self.tasks.plan(gap, runs);
    }

    fn sent(&mut self, run: &FreeRun) {
        self.tasks.sent(run);
    }

    fn done(&mut self, run: &FreeRun, at: SimTime) {
        self.tasks.done(run, at);
        for event in self.tasks.events() {
            if let Event::Delivered { extent, .. } = event {
                let end = extent.start + extent.blocks;
                let starts = (extent.start.get()..end.get()).step_by(self.buffer_block as usize);
                self.written.extend(starts.map(Lbn::new));
            }
        }
    }

    fn filled(&mut self, gap: &Opportunity, gap_use: &GapUse) {
        self.tasks.filled(gap, gap_use);
    }

    fn gap_writer(&mut self) -> Option<&mut dyn GapWriter> {
        Some(self)
    }
}

impl ForegroundObserver for GapDestages {
    fn foreground(&mut self, event: ForegroundEvent<'_>) {
        self.tasks.foreground(event);
        // All data that a write to the disk supersedes has left the buffer with it.
        self.tasks.events().for_each(drop);
    }
}
