//! Linux's I/O schedulers in front of a drive with its own queue: none, mq-deadline, kyber, bfq.
//!
//! The rules and defaults are those of Linux 6.12: `Documentation/block/` and `block/` of its source. One
//! scheduler is one file and one row of [`LINUX_SCHEDULERS`]. Unlike a [`Policy`](super::Policy) it may keep
//! requests back while the drive has room, so it learns of completions too.
//!
//! ```text
//!   request --> tag --> merge or insert --> dispatch while the drive has room --> drive's queue
//!                ^                                                                   |
//!                '------------------------- completion ------------------------------'
//! ```
//! Merging happens at three places, as in Linux (`block/blk-merge.c`, `block/elevator.c`):
//!
//! | | a new request joins | one that has waited for a tag |
//! |---|---|---|
//! | none | one of the latest eight with a tag that wait for room at the drive | |
//! | kyber | one of the latest eight of its kind in the software queue | |
//! | mq-deadline | any that waits, behind or before it | any that waits, behind it |
//! | bfq | any that waits of its own queue, behind or before it | any of its own queue, behind it |
//!
//! So a scheduler merges nothing whose drive takes all that has a tag: none where the drive's queue has as many
//! entries as its adapter has tags, and bfq with asynchronous writes where half of its tags fill the drive.
//!
//! [`BlockLayer`] is the whole of it. A trace names neither processes nor priorities. So every read is
//! synchronous, a write with FUA as well, and every other write is asynchronous.
//!
//! Non-goals: the time that the host's processor takes, plugging (a process that sends several requests at once
//! merges them before anything here), several hardware queues, write-back
//! throttling, I/O priorities, groups, and discards and flushes, which pass the schedulers.
//!
//! To add a scheduler: write `sched/linux/<name>.rs` with a type that implements [`IoScheduler`]; add a
//! variant to [`PolicySpec`](super::PolicySpec), a row to [`LINUX_SCHEDULERS`], an arm to
//! [`BlockLayer::new`]; add an oracle to `tests/linux`.

mod bfq;
mod bfq_queue;
mod block_layer;
mod kyber;
mod mq_deadline;
mod none;
mod software_queue;
mod sorted;

use freewheel_units::{Blocks, Lbn, Op, SimTime};

use super::CommandMark;

pub use crate::spec::policy::LINUX_SCHEDULERS;
pub use block_layer::BlockLayer;

/// A read or write on its way to a drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct IoRequest {
    pub op: Op,
    pub start: Lbn,
    pub blocks: u32,
    /// Force unit access.
    pub fua: bool,
    /// Unique and ascending in order of arrival.
    pub sequence: u64,
    pub arrival: SimTime,
    /// Time at which the scheduler received it.
    pub queued: SimTime,
    /// Mark for the drive's queue. Requests with other marks are not merged, as with other `ioprio` in Linux.
    pub mark: CommandMark,
}

impl IoRequest {
    /// The block behind it.
    pub fn end(&self) -> Lbn {
        self.start + Blocks::new(self.blocks.into())
    }

    /// True if somebody waits for it: reads and writes with FUA.
    pub fn is_sync(&self) -> bool {
        self.op == Op::Read || self.fua
    }
}

/// A request that has joined waiting ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merged {
    /// Sequence of the request that all are now.
    pub into: u64,
    /// Other waiting requests that are part of it now.
    pub absorbed: Vec<u64>,
}

/// A scheduler with its waiting requests.
pub trait IoScheduler: Send {
    /// Joins a new request with a waiting one, if the scheduler's rules allow it.
    fn merge(&mut self, request: &IoRequest) -> Option<Merged>;

    /// Joins a request that has waited for a tag, as it is about to be taken.
    fn merge_late(&mut self, _: &IoRequest) -> Option<Merged> {
        None
    }

    /// Takes a request that has not joined another.
    fn insert(&mut self, now: SimTime, request: IoRequest);

    /// Takes the next request out for a drive with room; None when none waits or all are kept back.
    fn dispatch(&mut self, now: SimTime) -> Option<IoRequest>;

    /// The drive has completed a request, which was dispatched at `dispatched`.
    fn completed(&mut self, now: SimTime, request: &IoRequest, dispatched: SimTime);

    /// Earliest dispatch of a request that is kept back now, if no event comes before.
    fn wakes_at(&self) -> Option<SimTime> {
        None
    }
}
