//! Freeblock scheduling: background work in the rotational gaps of foreground requests.
//!
//! After the foreground scheduler has chosen the next request, the head would seek to its track and
//! wait there for its first sector. A *freeblock* planner fills that wait with transfers that some
//! background task wants, on the way or elsewhere, and is on the foreground request's track in time
//! (osdi00 sections 2 and 4).

mod bitmap;
mod foreground;
mod index;
mod opportunity;
mod reach;
mod scheduler;
mod search;
pub mod tasks;
mod tracks;
pub mod uses;
mod wanted;

use freewheel_units::{Lbn, Op, SimTime};

pub use foreground::{Foreground, PromotionId};
pub use opportunity::Opportunity;
pub use scheduler::{Delivery, Effort, Options, Rule, Scheduler};
pub use wanted::{Delivered, LayerKey};

/// Consecutive blocks in consecutive sectors of one track, to be read or written in passing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FreeRun {
    /// First block.
    pub start: Lbn,
    /// Number of blocks, at least one.
    pub blocks: u32,
    /// Read or write.
    pub op: Op,
}

/// Decides what else to do in a gap, and is told what became of it.
pub trait Planner: Send {
    /// Fills `runs` with what to do in `gap`, in order of time. The head goes from one run to the
    /// next by itself and must be on the gap's destination track when it is due; a planner that
    /// promises more delays the foreground request.
    fn plan(&mut self, gap: &Opportunity, runs: &mut Vec<FreeRun>);

    /// A run of the last plan was done at `at`.
    fn done(&mut self, run: &FreeRun, at: SimTime);

    /// A foreground request moved these blocks at `at`: whoever wants them may have them as well.
    fn passed(&mut self, op: Op, start: Lbn, blocks: u32, at: SimTime);

    /// A foreground request has arrived: from now on its data are the newest.
    fn foreground_arrived(&mut self, request: &Foreground, at: SimTime) {
        let _ = (request, at);
    }

    /// A foreground request is done: what it writes is on the media. It has
    /// [`passed`](Self::passed) before.
    fn foreground_done(&mut self, request: &Foreground, at: SimTime) {
        let _ = (request, at);
    }
}
