//! Disk cooling: moving extents from the hottest disk while the array works (tr96 section 3.2).
//!
//! [`CoolingDaemon`] decides about one move a step, [`Mover`] does it. Both are state machines without a
//! clock.

mod daemon;
mod mover;
mod variance;

pub use daemon::{
    CoolingCounts, CoolingDaemon, CoolingMove, CoolingSpec, CoolingUnit, CoolingView, Refusal,
    Worth,
};
pub use mover::{
    MoveAction, Mover, MoverSpec, MoverState, Part, Progress, Relocated, ReplayError, Route, Span,
    StartError, replay,
};
pub use variance::{Considered, DiskLoad, MoveCosts, MovePhase, heat_variance, variance_gain};

#[cfg(test)]
mod tests;
