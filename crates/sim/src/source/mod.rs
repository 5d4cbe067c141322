//! Sources of requests: closed and open generators, and traces.

mod closed;
mod inferred;
mod kept;
mod lineage;
mod marked;
mod merged;
mod open;
mod pattern;
mod placement;
mod replay;
mod traced_think_time;

use freewheel_model::sched::CommandMark;
use freewheel_trace::TraceError;
use freewheel_units::{Blocks, Op, SimTime, VolumeBlock};
use thiserror::Error;

pub use closed::{Closed, ThinkTime};
pub use inferred::{InferredCompletions, ParentDoubt, WithCompletions};
pub(crate) use inferred::{InferredResponses, ParentComparison};
pub use kept::{KeptRecords, RecordKeeper, Records};
pub(crate) use lineage::TracedTimes;
pub use marked::OutsideScrub;
pub(crate) use marked::{MarkedCommands, Marks, ScrubReads};
pub use merged::Merged;
pub use open::Open;
pub use pattern::{Pattern, PatternSpec, SizeDistribution};
pub use placement::{Fit, Placement, PlacementError};
pub(crate) use replay::HeldBy;
pub use replay::{REPLAY_WINDOW, Replay, ReplayMode, ReplayTiming};
pub(crate) use traced_think_time::SPEEDUP_MIN;
pub use traced_think_time::TracedThinkTime;

/// A request on its way into the drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Request {
    pub op: Op,
    pub start: VolumeBlock,
    /// Number of blocks; zero for a flush, and for a trim outside the drive.
    pub blocks: Blocks,
    /// Force unit access: the media serve it, regardless of caches.
    pub fua: bool,
    /// Number of the source's own, returned with the completion.
    pub tag: u64,
}

/// Reason for which a source stops.
#[derive(Debug, Error)]
pub enum SourceError {
    /// The trace cannot be read any further.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// A request of the trace does not fit on the drive.
    #[error(transparent)]
    Placement(#[from] PlacementError),
    /// Requests bring no more of the blocks that background work waits for.
    #[error(
        "`rounds` cannot be completed: {requests} requests in a row brought none of the {missing} of {total} blocks that are missing, for they leave no gap that reaches them; ask for a part of the blocks with `sample_share`, use idle time with `idle`, promote the last blocks with `promote_tail`, or leave `rounds` out"
    )]
    OutOfReach {
        /// Requests in a row.
        requests: u64,
        /// Blocks that have not been delivered.
        missing: u64,
        /// Blocks of all rounds.
        total: u64,
    },
}

/// Issues requests and learns of their completions.
///
/// ```
/// use freewheel_sim::source::{Request, Source, SourceError};
/// use freewheel_units::{Blocks, Op, SimTime, VolumeBlock};
///
/// /// Reads 4 KiB at each of three milliseconds, one after the other.
/// struct Ticks {
///     issued: u64,
/// }
///
/// impl Source for Ticks {
///     fn next_arrival(&mut self) -> Result<Option<SimTime>, SourceError> {
///         Ok((self.issued < 3).then(|| SimTime::from_ns(self.issued * 1_000_000)))
///     }
///
///     fn take(&mut self) -> Request {
///         let (tag, start) = (self.issued, VolumeBlock::new(self.issued * 8));
///         self.issued += 1;
///         Request { op: Op::Read, start, blocks: Blocks::new(8), fua: false, tag }
///     }
///
///     fn completed(&mut self, _tag: u64, _now: SimTime) {}
///
///     fn progress(&self) -> (u64, u64) {
///         (self.issued, 3)
///     }
/// }
///
/// let mut ticks = Ticks { issued: 0 };
/// while let Some(now) = ticks.next_arrival()? {
///     let request = ticks.take();
///     ticks.completed(request.tag, now);
/// }
/// assert_eq!(ticks.progress(), (3, 3));
/// # Ok::<(), SourceError>(())
/// ```
pub trait Source {
    /// Time of the next arrival, as far as known. A completion may bring it forward, never to before
    /// that completion. None when no request follows, or none before a completion.
    fn next_arrival(&mut self) -> Result<Option<SimTime>, SourceError>;

    /// Takes the request that arrives next. Callers must have received a time from `next_arrival`.
    fn take(&mut self) -> Request;

    /// The request with this tag is done.
    fn completed(&mut self, tag: u64, now: SimTime);

    /// The request with this tag has ended with an error, by its duration limit.
    fn aborted(&mut self, tag: u64, now: SimTime) {
        self.completed(tag, now);
    }

    /// Mark that the host gives this request for the drive's queue.
    #[inline]
    fn mark(&self, _request: &Request) -> CommandMark {
        CommandMark::None
    }

    /// Progress for a bar: done and total, in any unit.
    fn progress(&self) -> (u64, u64);

    /// True if the request with this tag is the source's own work, as a copy is, and no client's. It uses
    /// the drives like any other, and counts in no sum.
    #[inline]
    fn is_own_work(&self, _tag: u64) -> bool {
        false
    }

    /// Time at which the request that was taken at `now` arrived: earlier if the source held it back. Its
    /// response begins then.
    #[inline]
    fn arrival(&self, now: SimTime) -> SimTime {
        now
    }

    /// Time at which the source wants to act though no request arrives or completes. Only a source that does
    /// its own work has a timer, and one around it passes the timer on.
    #[inline]
    fn timer(&self) -> Option<SimTime> {
        None
    }

    /// The time of [`Self::timer`] has come. The timer is later afterwards, or none.
    fn timer_due(&mut self, now: SimTime) {
        unreachable!("no timer was set, and it is due at {now}")
    }
}

impl<S: Source + ?Sized> Source for &mut S {
    fn next_arrival(&mut self) -> Result<Option<SimTime>, SourceError> {
        (**self).next_arrival()
    }

    fn take(&mut self) -> Request {
        (**self).take()
    }

    fn completed(&mut self, tag: u64, now: SimTime) {
        (**self).completed(tag, now);
    }

    fn aborted(&mut self, tag: u64, now: SimTime) {
        (**self).aborted(tag, now);
    }

    fn mark(&self, request: &Request) -> CommandMark {
        (**self).mark(request)
    }

    fn progress(&self) -> (u64, u64) {
        (**self).progress()
    }

    fn is_own_work(&self, tag: u64) -> bool {
        (**self).is_own_work(tag)
    }

    fn arrival(&self, now: SimTime) -> SimTime {
        (**self).arrival(now)
    }

    fn timer(&self) -> Option<SimTime> {
        (**self).timer()
    }

    fn timer_due(&mut self, now: SimTime) {
        (**self).timer_due(now);
    }
}
