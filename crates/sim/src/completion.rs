//! A request that is done.

use freewheel_model::drive::Access;
use freewheel_units::{SimDuration, SimTime};

use crate::source::Request;

/// A request that is done, with its stage times. They add up to its response time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// What it asked for.
    pub request: Request,
    /// When it arrived.
    pub arrival: SimTime,
    /// Time waited for the head, or, of a flush, for the writes before it.
    pub queue: SimDuration,
    /// Stages at the drive; all zero for flush and trim.
    pub access: Access,
    /// When it was done.
    pub end: SimTime,
}

impl Completion {
    /// From arrival to end.
    #[inline]
    pub fn response(&self) -> SimDuration {
        self.end - self.arrival
    }
}
