//! The predicted head time of a command.

use freewheel_units::{Blocks, Lbn, Op, SimDuration, SimTime};

use super::clock::{Observed, PLAUSIBLE};
use freewheel_model::drive::{Departure, Drive, Position, Sectors};

/// The head after a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    /// Time, in the model's time.
    pub at: SimTime,
    pub position: Position,
    pub last_op: Op,
    /// True if that rests on observations without a surprise in between.
    pub is_known: bool,
}

impl Default for Head {
    fn default() -> Self {
        Self {
            at: SimTime::ZERO,
            position: Position::default(),
            last_op: Op::Read,
            is_known: false,
        }
    }
}

impl Head {
    pub fn departure(&self, read_write_switch: SimDuration) -> Departure {
        let Self { at, position, last_op, .. } = *self;
        Departure { begin: at, from: position, last_op, read_write_switch }
    }

    /// Head state `ns` later.
    pub fn later(self, ns: i64) -> Self {
        Self { at: SimTime::from_ns(self.at.ns().saturating_add_signed(ns)), ..self }
    }
}

/// Predicted time and place at which a command will end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Prediction {
    /// Rotational latency of it.
    wait: SimDuration,
    pub end: Head,
}

impl Prediction {
    pub fn new(
        drive: &Drive,
        sectors: Sectors,
        head: &Head,
        read_write_switch: SimDuration,
        (op, start, blocks): (Op, Lbn, u32),
    ) -> Self {
        let target = drive.target(start, Blocks::new(blocks.into()), op);
        let departure = head.departure(read_write_switch);
        let access = sectors.access(drive, &departure, &target, |departure, target| {
            drive.media_access_from(departure, target, 0)
        });
        let end = Head {
            at: head.at + access.total(),
            position: access.end,
            last_op: op,
            is_known: head.is_known,
        };
        Self { wait: access.rotate, end }
    }

    /// True if the media can have ended like this: at its angle, and no more turns early than it was
    /// expected to wait.
    pub fn may_end(&self, observed: &Observed, period: SimDuration) -> bool {
        let early = period * observed.turns.min(0).unsigned_abs();
        observed.is_plausible && early <= self.wait + period / PLAUSIBLE
    }
}
