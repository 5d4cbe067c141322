//! Decisions that are reported as they are made.

use std::sync::Arc;

use freewheel_units::SimTime;

use crate::opportunity::Opportunity;
use crate::{
    ForegroundEvent, ForegroundObserver, FreeRun, GapUse, GapWriter, IdlePlanner, Planner, Promoter,
};
use freewheel_model::drive::Drive;

/// Makes the decision it is given, once; before and behind it there is time for a look at a clock.
pub type Timer<'a> = &'a (dyn Fn(&mut dyn FnMut()) + Sync);

/// A planner whose decisions about gaps are made inside of another's calls, and the work before them
/// ([`Planner::prepare`]) outside. The plans are the same, but never in steps: a decision is timed as
/// a whole.
pub struct TimedPlanner<'a> {
    planner: &'a mut dyn Planner,
    around: Timer<'a>,
}

impl<'a> TimedPlanner<'a> {
    /// `planner`, with this around each of its decisions.
    pub fn new(planner: &'a mut dyn Planner, around: Timer<'a>) -> Self {
        Self { planner, around }
    }
}

impl Planner for TimedPlanner<'_> {
    fn plan(&mut self, gap: &Opportunity, runs: &mut Vec<FreeRun>) {
        let Self { planner, around } = self;
        planner.prepare(gap);
        around(&mut || planner.plan(gap, runs));
    }

    fn prepare(&mut self, gap: &Opportunity) {
        self.planner.prepare(gap);
    }

    fn predict_with(&mut self, drive: &Arc<Drive>) {
        self.planner.predict_with(drive);
    }

    fn sent(&mut self, run: &FreeRun) {
        self.planner.sent(run);
    }

    fn done(&mut self, run: &FreeRun, at: SimTime) {
        self.planner.done(run, at);
    }

    fn filled(&mut self, gap: &Opportunity, gap_use: &GapUse) {
        self.planner.filled(gap, gap_use);
    }

    fn idle(&mut self) -> Option<&mut dyn IdlePlanner> {
        self.planner.idle()
    }

    fn promoter(&mut self) -> Option<&mut dyn Promoter> {
        self.planner.promoter()
    }

    fn gap_writer(&mut self) -> Option<&mut dyn GapWriter> {
        self.planner.gap_writer()
    }
}

impl ForegroundObserver for TimedPlanner<'_> {
    fn foreground(&mut self, event: ForegroundEvent<'_>) {
        self.planner.foreground(event);
    }
}
