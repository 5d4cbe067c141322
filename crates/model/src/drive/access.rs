//! Values that accesses begin and end with: places of the head, and stage times.

use freewheel_units::{Op, SimDuration, SimTime};

/// Place of the arm and the active head.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Position {
    /// Counted from the outermost.
    pub cylinder: u32,
    /// Head.
    pub surface: u32,
}

/// Stage times of an access, which add up to the time from its start to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Access {
    /// Command processing before the first movement.
    pub overhead: SimDuration,
    /// Moving the arm and changing heads, settling included, also between tracks of one access.
    pub seek: SimDuration,
    /// Waiting for a wanted sector, also between tracks and over slipped sectors.
    pub rotate: SimDuration,
    /// Wanted sectors under the head.
    pub transfer: SimDuration,
    /// Position of the head after the access.
    pub end: Position,
}

/// The part of an access before its first data: what positioning-time policies compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Positioning {
    /// Moving the arm and changing heads, settling included.
    pub seek: SimDuration,
    /// Waiting on the first track. With zero-latency access begun in the middle of the wanted
    /// sectors this includes the gap passed over before the rest of them.
    pub rotate: SimDuration,
}

impl Access {
    /// From start to end.
    #[inline]
    pub fn total(&self) -> SimDuration {
        self.overhead + self.seek + self.rotate + self.transfer
    }
}

/// Head time by stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HeadTime {
    /// Moving the arm, changing heads, settling.
    pub seek: SimDuration,
    /// Waiting for wanted sectors.
    pub rotate: SimDuration,
    /// Wanted sectors under the head.
    pub transfer: SimDuration,
}

impl HeadTime {
    /// Counts an access in, but for its command processing.
    #[inline]
    pub fn add(&mut self, access: &Access) {
        self.seek += access.seek;
        self.rotate += access.rotate;
        self.transfer += access.transfer;
    }

    /// All of it.
    pub fn total(&self) -> SimDuration {
        self.seek + self.rotate + self.transfer
    }
}

impl Positioning {
    /// Seek and rotational latency together.
    #[inline]
    pub fn total(&self) -> SimDuration {
        self.seek + self.rotate
    }
}

/// The head before an access to the media.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Departure {
    /// From when on it may move.
    pub begin: SimTime,
    /// Position of the head at that time.
    pub from: Position,
    /// Operation of the last transfer.
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
