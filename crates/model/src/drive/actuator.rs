//! Who carries out the accesses of commands, and what is known of the head before one.

use freewheel_units::{Op, SimDuration, SimTime};

use super::mechanics::{Access, Drive, Position, Target};

/// The head before an access to the media.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Departure {
    /// From when on it may move.
    pub begin: SimTime,
    /// Where it is then.
    pub from: Position,
    /// Its last transfer.
    pub last_op: Op,
    /// Time that a change between reading and writing takes within a cylinder.
    pub read_write_switch: SimDuration,
}

impl Departure {
    /// The head of a drive that changes between reading and writing in no time, after a read.
    pub fn after_read(begin: SimTime, from: Position) -> Self {
        Self { begin, from, last_op: Op::Read, read_write_switch: SimDuration::ZERO }
    }

    /// The head when it has done `access`, whose operation was `op`.
    #[inline]
    #[must_use]
    pub fn after(&self, access: &Access, op: Op) -> Self {
        Self { begin: self.begin + access.total(), from: access.end, last_op: op, ..*self }
    }
}

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
