//! The gap before a foreground transfer.

use freewheel_units::{Op, SimDuration, SimTime};

use crate::drive::Position;

/// A rotational gap: from `begin` at `from` on, the head may do what it likes, if only it is ready
/// on the track `to` when the foreground data passes there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opportunity {
    /// From when on the head is free.
    pub begin: SimTime,
    /// The source track: where it is then.
    pub from: Position,
    /// The destination track: where the foreground data is.
    pub to: Position,
    /// What the foreground request does there; writes settle longer.
    pub op: Op,
    /// Moving there directly.
    pub seek: SimDuration,
    /// When the foreground's first sector reaches the head.
    pub due: SimTime,
}

impl Opportunity {
    /// Rotational latency without freeblock work: the potential free bandwidth in time (osdi00
    /// section 3).
    #[inline]
    pub fn latency(&self) -> SimDuration {
        self.due - self.begin - self.seek
    }
}
