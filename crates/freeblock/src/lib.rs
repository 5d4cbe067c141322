//! Freeblock scheduling: background work in the rotational gaps of foreground requests.
//!
//! After the foreground scheduler has chosen the next request, the head would seek to its track and
//! wait there for its first sector. A *freeblock* planner fills that wait with transfers that some
//! background task wants, on the way or elsewhere, and is on the foreground request's track in time
//! (osdi00 sections 2 and 4).

mod bitmap;
mod effort;
mod estimate;
mod foreground;
mod idle;
mod idle_timer;
mod opportunity;
mod scheduler;
mod search;
pub mod tasks;
mod timed_planner;
pub mod uses;

use std::sync::Arc;

use freewheel_units::{Blocks, Lbn, Op, SimDuration, SimTime};

pub use effort::{ByNodes, Effort};
pub use estimate::{Estimate, PredictionMark, TailModel};
pub use foreground::{Foreground, PromotionId};
pub use idle_timer::{Adapt, IdleTimer, Step};
pub use opportunity::{Ends, Opportunity};
pub use scheduler::{Delivery, Options, Rule, STEPS_MAX, Scheduler};
pub use search::{Delivered, Fineness, GoOn, LayerKey, SearchProgress};
pub use timed_planner::{TimedPlanner, Timer};

use self::foreground::Promoted;
use freewheel_model::drive::{Access, Departure, Drive};

/// Consecutive blocks to be read or written in passing, most often on one track: what follows on the
/// next one may belong to the same run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FreeRun {
    /// First block.
    pub start: Lbn,
    /// Number of blocks, at least one.
    pub blocks: u32,
    /// Read or write.
    pub op: Op,
}

impl FreeRun {
    /// What doing it takes, for planners and for whoever does it. Panics like [`Drive::target`].
    // Not inlined: where foreground requests are simulated, their own path keeps its inlining.
    #[inline(never)]
    pub fn access(&self, drive: &Drive, departure: &Departure) -> Access {
        let target = drive.target(self.start, Blocks::new(u64::from(self.blocks)), self.op);
        drive.media_access_from(departure, &target, 0)
    }
}

/// What a gap was used for; the rest of its latency is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GapUse {
    /// Free runs under the head.
    pub transfer: SimDuration,
    /// Movements beyond the direct one. A detour may spare a write its settling.
    pub extra_seek_ns: i64,
}

/// Decides what else to do in a gap, and is told what became of it.
pub trait Planner: Send {
    /// Fills `runs` with what to do in `gap`, in order of time. The head goes from one run to the
    /// next by itself and must be on the gap's destination track when it is due; a planner that
    /// promises more delays the foreground request.
    fn plan(&mut self, gap: &Opportunity, runs: &mut Vec<FreeRun>);

    /// The same for whoever cannot wait for all of it: `go_on` is asked again and again, and when it
    /// says no the best so far is planned. A planner that never looks for long need not ask.
    fn plan_while(&mut self, gap: &Opportunity, go_on: GoOn<'_>, runs: &mut Vec<FreeRun>) {
        let _ = go_on;
        self.plan(gap, runs);
    }

    /// Told right before the decision about `gap`, this does what comes before it but is no part of it:
    /// weighing tasks, and making the index anew where a round that has begun, other weights or changes in
    /// many places ask for that. The decision itself is the same with it and without.
    fn prepare(&mut self, gap: &Opportunity) {
        let _ = gap;
    }

    /// From now on gaps are planned with `drive`: the one that the planner was made for, but that its
    /// seeks take other times. None may take less than that one's.
    fn foresee_with(&mut self, drive: &Arc<Drive>) {
        let _ = drive;
    }

    /// A run of the last plan was done at `at`.
    fn done(&mut self, run: &FreeRun, at: SimTime);

    /// The gap of the last plan is over.
    fn filled(&mut self, gap: &Opportunity, gap_use: &GapUse) {
        let _ = (gap, gap_use);
    }

    /// A foreground request moved these blocks at `at`: whoever wants them may have them as well.
    fn passed(&mut self, op: Op, start: Lbn, blocks: u32, at: SimTime);

    /// A foreground request has arrived: from now on its data are the newest.
    fn foreground_arrived(&mut self, request: &Foreground, at: SimTime) {
        let _ = (request, at);
    }

    /// What a foreground request took of the head, told once and before it is
    /// [done](Self::foreground_done); of a write that the drive's buffer took, what writing it back does.
    /// Of writes to the same blocks the older one is told of first.
    fn foreground_took(&mut self, request: &Foreground, head: SimDuration) {
        let _ = (request, head);
    }

    /// A foreground request is done: what it wrote is on the media. It has [`passed`](Self::passed)
    /// before, unless the drive's buffer served it.
    fn foreground_done(&mut self, request: &Foreground, at: SimTime) {
        let _ = (request, at);
    }

    /// When idle time may be used, if the arm has nothing to do from `now` on; None for never.
    fn idle_from(&mut self, now: SimTime) -> Option<SimTime> {
        let _ = now;
        None
    }

    /// The run to do while the arm has nothing to do. It is [done](Self::done) before the next call.
    fn plan_idle(&mut self, head: &Departure) -> Option<FreeRun> {
        let _ = head;
        None
    }

    /// Idle time that had lasted for `idle` was in use when a foreground request arrived; the first
    /// that was served then ended later by `delay` than without.
    fn idle_used(&mut self, idle: SimDuration, delay: SimDuration) {
        let _ = (idle, delay);
    }

    /// Whether memory answers this foreground request, which is just arriving: a write whose data it
    /// keeps from now on, or a read of what it has. Nothing else is told of the request then, and the
    /// drive never hears of it.
    fn takes(&mut self, request: &Foreground, now: SimTime) -> bool {
        let _ = (request, now);
        false
    }

    /// The next request of a task that must take place before this foreground write, which is just
    /// arriving, if there is one: a read of what is there, or a write of older data. Asked for until
    /// there is none. It arrives like any promoted request, and the
    /// write behind it, which waits for it.
    fn read_before(&mut self, write: &Foreground, now: SimTime) -> Option<Promoted> {
        let _ = (write, now);
        None
    }

    /// The next foreground request to make for a task at `now`, if one is to be made. It then
    /// arrives like any other, with its promotion.
    fn promote(&mut self, now: SimTime) -> Option<Promoted> {
        let _ = now;
        None
    }
}

/// Plans nothing: for whoever has no free work.
#[derive(Debug, Clone, Copy)]
pub struct NoPlanner;

impl Planner for NoPlanner {
    fn plan(&mut self, _: &Opportunity, runs: &mut Vec<FreeRun>) {
        runs.clear();
    }

    fn done(&mut self, _: &FreeRun, _: SimTime) {}

    fn passed(&mut self, _: Op, _: Lbn, _: u32, _: SimTime) {}
}
