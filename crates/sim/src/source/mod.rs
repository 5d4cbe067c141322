//! Where requests come from: closed and open generators, and traces.

mod closed;
mod open;
mod pattern;
mod placement;
mod replay;

use freewheel_trace::TraceError;
use freewheel_units::{Blocks, Op, SimTime, VolumeBlock};
use thiserror::Error;

pub use closed::{Closed, ThinkTime};
pub use open::Open;
pub use pattern::{Pattern, PatternSpec, SizeDistribution};
pub use placement::{Fit, Placement, PlacementError};
pub use replay::{REPLAY_WINDOW, Replay, ReplayMode};

/// A request on its way into the drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// What it asks for.
    pub op: Op,
    /// First block.
    pub start: VolumeBlock,
    /// Number of blocks; zero for a flush, and for a trim that lies nowhere.
    pub blocks: Blocks,
    /// Force unit access: done from or on the media, whatever is cached.
    pub fua: bool,
    /// Handed back with the completion, for the source's own use.
    pub tag: u64,
}

/// Why a source cannot go on.
#[derive(Debug, Error)]
pub enum SourceError {
    /// The trace cannot be read any further.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// A request of the trace does not fit on the drive.
    #[error(transparent)]
    Placement(#[from] PlacementError),
    /// Requests go on and on and bring no more blocks for background work that they wait for.
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

/// Something that issues requests and is told when they are done.
pub trait Source {
    /// When the next request arrives, as far as is known now. It may become earlier when a request
    /// completes, never earlier than that completion. None when nothing more comes, or nothing
    /// before a completion.
    fn next_arrival(&mut self) -> Result<Option<SimTime>, SourceError>;

    /// Takes the request that arrives next. Called only after `next_arrival` gave a time.
    fn take(&mut self) -> Request;

    /// The request with this tag is done.
    fn completed(&mut self, tag: u64, now: SimTime);

    /// How much of all there is has been issued, for a progress bar: done and total, in any unit.
    fn progress(&self) -> (u64, u64);
}
