//! Who carries out the accesses of commands, and what is known of the head before one.

use super::access::{Access, Departure};
use super::mechanics::{Drive, Target};
use freewheel_units::Lbn;

/// Who has a use for the rotational latency of an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Latency {
    /// Nobody: the head may be anywhere as long as it is back in time.
    Free,
    /// The drive itself: the head waits on its track.
    Used,
}

/// Carries out the accesses of commands to the media: a model, a simulator's with errors and work
/// between, or a real one.
pub trait Actuator {
    /// Does an access, and returns its times; command processing is none of it.
    fn access(
        &mut self,
        drive: &Drive,
        departure: &Departure,
        target: &Target,
        latency: Latency,
    ) -> Access;

    /// The first of the blocks `start..end` that cannot be read. The buffer keeps no such block, and
    /// reading ahead ends before it.
    fn unreadable(&self, start: Lbn, end: Lbn) -> Option<Lbn> {
        let _ = (start, end);
        None
    }
}

/// Does exactly what the drive's mechanics say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Exact;

impl Actuator for Exact {
    #[inline]
    fn access(
        &mut self,
        drive: &Drive,
        departure: &Departure,
        target: &Target,
        _: Latency,
    ) -> Access {
        drive.media_access_from(departure, target, 0)
    }
}
