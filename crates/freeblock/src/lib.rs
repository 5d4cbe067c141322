//! Freeblock scheduling: background work in the rotational gaps of foreground requests.
//!
//! After the foreground scheduler has chosen the next request, the head would seek to its track and
//! wait there for its first sector. A *freeblock* planner fills that wait with transfers that some
//! background task wants, on the way or elsewhere, and is on the foreground request's track in time
//! (osdi00 sections 2 and 4).

#![warn(clippy::print_stdout, clippy::print_stderr)]

mod bitmap;
mod effort;
mod estimate;
mod foreground;
mod idle;
mod idle_timer;
mod opportunity;
mod order;
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
pub use idle_timer::{Adapt, IDLE_AFTER_MAX, IdleTimer, Step};
pub use opportunity::{Ends, Opportunity};
pub use order::{PromoteTail, TaskOrder, checked_block_size};
pub use scheduler::{
    Bounds, Delivery, Options, PATIENCE_NODES, Patience, Rule, STEPS_MAX, Scheduler,
};
pub use search::{Delivered, Fineness, LayerKey, SearchProgress};
pub use timed_planner::{TimedPlanner, Timer};

use self::foreground::Promoted;
use freewheel_model::drive::{Access, Departure, Drive};

/// Consecutive blocks to be read or written in passing, most often on one track: what follows on the
/// next one may belong to the same run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct FreeRun {
    pub start: Lbn,
    /// Number of blocks, at least one.
    pub blocks: u32,
    pub op: Op,
}

impl FreeRun {
    /// Stage times of the access, for planners and executors. Panics like [`Drive::target`].
    // Not inlined: where foreground requests are simulated, their own path keeps its inlining.
    #[inline(never)]
    pub fn access(&self, drive: &Drive, departure: &Departure) -> Access {
        let target = drive.target(self.start, Blocks::new(u64::from(self.blocks)), self.op);
        drive.media_access_from(departure, &target, 0)
    }
}

/// Use of a gap; the rest of its latency is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GapUse {
    /// Free runs under the head.
    pub transfer: SimDuration,
    /// Movements beyond the direct one. A detour may spare a write its settling.
    pub extra_seek_ns: i64,
}

/// Event of a foreground request, as a planner receives it.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)]
pub enum ForegroundEvent<'a> {
    /// A request has arrived: from now on its data are the newest.
    Arrived { request: &'a Foreground, at: SimTime },
    /// The head has moved these blocks for a request: a task that wants them has them as well.
    Passed {
        op: Op,
        start: Lbn,
        blocks: u32,
        /// Time at which the last of them had passed.
        at: SimTime,
    },
    /// The head time that a request took, told once and before it is done. The head time of a write
    /// in the drive's buffer is that of its destage. Of two writes to the same blocks the older one comes
    /// first.
    TookHead {
        request: &'a Foreground,
        /// Seek, rotational latency and transfer.
        head: SimDuration,
    },
    /// A request is done: its data are on the media. Its blocks have [passed](Self::Passed) before,
    /// unless the drive's buffer served it.
    Done {
        request: &'a Foreground,
        /// Time at which its data were on the media.
        at: SimTime,
    },
}

/// Hears of every foreground request of a drive.
pub trait ForegroundObserver {
    /// Called for each event in order of time.
    fn foreground(&mut self, event: ForegroundEvent<'_>);
}

/// Decides on the free work of a gap, and learns of its outcome.
///
/// ```
/// use freewheel_freeblock::{
///     ForegroundEvent, ForegroundObserver, FreeRun, Opportunity, Planner,
/// };
/// use freewheel_units::SimTime;
///
/// /// Counts gaps and leaves them empty.
/// #[derive(Default)]
/// struct GapCounter {
///     gaps: u64,
/// }
///
/// impl ForegroundObserver for GapCounter {
///     fn foreground(&mut self, _: ForegroundEvent<'_>) {}
/// }
///
/// impl Planner for GapCounter {
///     fn plan(&mut self, _: &Opportunity, runs: &mut Vec<FreeRun>) {
///         self.gaps += 1;
///         runs.clear();
///     }
///
///     fn done(&mut self, _: &FreeRun, _: SimTime) {}
/// }
///
/// let mut counter = GapCounter::default();
/// let planner: &mut dyn Planner = &mut counter;
/// assert!(planner.idle().is_none() && planner.promoter().is_none());
/// ```
pub trait Planner: ForegroundObserver + Send {
    /// Fills `runs` with what to do in `gap`, in order of time. The head goes from one run to the next
    /// without help and must be on the gap's destination track when it is due; a planner that promises more
    /// delays the foreground request.
    fn plan(&mut self, gap: &Opportunity, runs: &mut Vec<FreeRun>);

    /// Prepares the decision about `gap`: weighs tasks, and rebuilds the index after a new round, other weights
    /// or changes in many places. The decision is the same without this call, but takes longer.
    fn prepare(&mut self, gap: &Opportunity) {
        let _ = gap;
    }

    /// Plans gaps with `drive` from now on: the planner's own drive with other seek times. No seek
    /// may take less than with its own drive.
    fn predict_with(&mut self, drive: &Arc<Drive>) {
        let _ = drive;
    }

    /// A run has been sent to a drive that is asked for more while it works. It is under way until it
    /// is done, beyond the gap that it was planned for.
    fn sent(&mut self, run: &FreeRun) {
        let _ = run;
    }

    /// A run of the last plan was done at `at`.
    fn done(&mut self, run: &FreeRun, at: SimTime);

    /// The gap of the last plan is over.
    fn filled(&mut self, gap: &Opportunity, gap_use: &GapUse) {
        let _ = (gap, gap_use);
    }

    /// The part that plans in steps, if this planner searches for long.
    fn resumable(&mut self) -> Option<&mut dyn ResumableSearch> {
        None
    }

    /// The part that uses idle time, if this planner has one.
    fn idle(&mut self) -> Option<&mut dyn IdlePlanner> {
        None
    }

    /// The part that makes foreground requests for tasks, if this planner has one.
    fn promoter(&mut self) -> Option<&mut dyn Promoter> {
        None
    }

    /// The part that writes blocks of another's memory in gaps, if this planner has one.
    fn gap_writer(&mut self) -> Option<&mut dyn GapWriter> {
        None
    }
}

/// Plans a gap in steps, for a caller with a deadline: [`Self::begin_search`], steps, and
/// [`Self::end_search`], without other calls between. Steps to the end make the plan of [`Planner::plan`].
pub trait ResumableSearch {
    /// Begins with the cylinders of source and destination.
    fn begin_search(&mut self, gap: &Opportunity);

    /// Looks at up to `nodes` nodes, of which a cylinder counts as several, and reports the progress of
    /// the whole search. With zero nodes it looks at none.
    fn step(&mut self, nodes: u64) -> SearchProgress;

    /// Ends the search in the current direction, reads or writes, with the best so far.
    fn give_up(&mut self);

    /// Gives up in all directions that are left, and fills `runs` with the best plan so far.
    fn end_search(&mut self, runs: &mut Vec<FreeRun>);
}

/// Decides what to do while the arm has no work.
pub trait IdlePlanner {
    /// Time from which idle time may be used, if the arm has no work from `now` on; None for never.
    fn idle_from(&mut self, now: SimTime) -> Option<SimTime>;

    /// The next run. It is [done](Planner::done) before the next call.
    fn plan_idle(&mut self, head: &Departure) -> Option<FreeRun>;

    /// A foreground request arrived after the arm had been idle for `idle`, and runs had begun. The
    /// first request served then ended later by `delay` than without them.
    fn idle_used(&mut self, idle: SimDuration, delay: SimDuration);
}

/// Makes foreground requests for tasks.
pub trait Promoter {
    /// The next read of the old data that must precede this arriving foreground write. Asked for until
    /// there is none. It arrives like any promoted request, and the write waits for it.
    fn read_before(&mut self, write: &Foreground, now: SimTime) -> Option<Promoted>;

    /// The next request to make at `now`, if there is one. It then arrives like any other, with its
    /// promotion.
    fn promote(&mut self, now: SimTime) -> Option<Promoted>;
}

/// Writes in gaps what a memory in front of the drive wants to be rid of.
pub trait GapWriter {
    /// A block of the memory is dirty. A foreground write of a part of it ends that.
    fn want(&mut self, start: Lbn, now: SimTime);

    /// Blocks of the memory that have some of these are dirty no longer: they were trimmed.
    fn forget(&mut self, start: Lbn, blocks: Blocks, now: SimTime);

    /// Takes the first blocks of those that gaps have written since the last call.
    fn take_written(&mut self) -> Vec<Lbn>;
}

/// Plans nothing.
#[derive(Debug, Clone, Copy)]
pub struct NoPlanner;

impl Planner for NoPlanner {
    fn plan(&mut self, _: &Opportunity, runs: &mut Vec<FreeRun>) {
        runs.clear();
    }

    fn done(&mut self, _: &FreeRun, _: SimTime) {}
}

impl ForegroundObserver for NoPlanner {
    fn foreground(&mut self, _: ForegroundEvent<'_>) {}
}
