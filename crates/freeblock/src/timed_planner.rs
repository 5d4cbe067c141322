//! Decisions that somebody is told of as they are made.

use std::sync::Arc;

use freewheel_units::{Lbn, Op, SimDuration, SimTime};

use crate::foreground::{Foreground, Promoted};
use crate::opportunity::Opportunity;
use crate::search::GoOn;
use crate::{FreeRun, GapUse, Planner};
use freewheel_model::drive::{Departure, Drive};

/// Makes the decision it is given, once; before and behind it there is time for a look at a clock.
pub type Timer<'a> = &'a (dyn Fn(&mut dyn FnMut()) + Sync);

/// A planner whose decisions about gaps are made inside of another's calls, and what comes before them
/// ([`Planner::prepare`]) outside. What it plans is the same.
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

    fn plan_while(&mut self, gap: &Opportunity, go_on: GoOn<'_>, runs: &mut Vec<FreeRun>) {
        let Self { planner, around } = self;
        planner.prepare(gap);
        around(&mut || planner.plan_while(gap, go_on, runs));
    }

    fn prepare(&mut self, gap: &Opportunity) {
        self.planner.prepare(gap);
    }

    fn foresee_with(&mut self, drive: &Arc<Drive>) {
        self.planner.foresee_with(drive);
    }

    fn done(&mut self, run: &FreeRun, at: SimTime) {
        self.planner.done(run, at);
    }

    fn filled(&mut self, gap: &Opportunity, gap_use: &GapUse) {
        self.planner.filled(gap, gap_use);
    }

    fn passed(&mut self, op: Op, start: Lbn, blocks: u32, at: SimTime) {
        self.planner.passed(op, start, blocks, at);
    }

    fn foreground_arrived(&mut self, request: &Foreground, at: SimTime) {
        self.planner.foreground_arrived(request, at);
    }

    fn foreground_took(&mut self, request: &Foreground, head: SimDuration) {
        self.planner.foreground_took(request, head);
    }

    fn foreground_done(&mut self, request: &Foreground, at: SimTime) {
        self.planner.foreground_done(request, at);
    }

    fn idle_from(&mut self, now: SimTime) -> Option<SimTime> {
        self.planner.idle_from(now)
    }

    fn plan_idle(&mut self, head: &Departure) -> Option<FreeRun> {
        self.planner.plan_idle(head)
    }

    fn idle_used(&mut self, idle: SimDuration, delay: SimDuration) {
        self.planner.idle_used(idle, delay);
    }

    fn takes(&mut self, request: &Foreground, now: SimTime) -> bool {
        self.planner.takes(request, now)
    }

    fn read_before(&mut self, write: &Foreground, now: SimTime) -> Option<Promoted> {
        self.planner.read_before(write, now)
    }

    fn promote(&mut self, now: SimTime) -> Option<Promoted> {
        self.planner.promote(now)
    }
}
