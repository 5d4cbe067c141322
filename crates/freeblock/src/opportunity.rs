//! The gap before a foreground transfer.

use freewheel_units::{Op, SimDuration, SimTime};

use freewheel_model::drive::{Departure, Drive, Leg, Position};

/// A rotational gap: from `begin` on the head, at `from`, is free. It must be ready on the track `to`
/// when the foreground data pass there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opportunity {
    /// From when on the head is free.
    pub begin: SimTime,
    /// The source track: where it is then.
    pub from: Position,
    /// Operation of the last transfer.
    pub last_op: Op,
    /// Time that a change between reading and writing takes within a cylinder.
    pub read_write_switch: SimDuration,
    /// The destination track: where the foreground data is.
    pub to: Position,
    /// Operation of the foreground request there; writes settle longer.
    pub op: Op,
    /// Moving there directly.
    pub seek: SimDuration,
    /// Additional time of a seek to the destination track, from anywhere, over its curve. Free runs are
    /// reached without error.
    pub seek_error_ns: i64,
    /// Time at which the foreground's first sector reaches the head.
    pub due: SimTime,
    /// Allowed work on the tracks at its ends.
    pub ends: Ends,
}

/// Allowed work on the tracks at both ends of a gap. Inside a drive anything may; from outside, commands of
/// their own on the track of another one set off reading ahead (fast02 section 3.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ends {
    /// No free work on the source track.
    pub source_closed: bool,
    /// On the destination track, free work must begin less than this before the foreground's data; any
    /// time when absent.
    pub destination_before: Option<SimDuration>,
}

impl Opportunity {
    /// The gap before `leg`, which the drive worked out for this departure and error of its seek.
    #[inline]
    pub fn before(departure: &Departure, leg: &Leg, seek_error_ns: i64) -> Self {
        let Departure { begin, from, last_op, read_write_switch } = *departure;
        Self {
            begin,
            from,
            last_op,
            read_write_switch,
            to: leg.target.at,
            op: leg.target.op,
            seek: leg.seek,
            seek_error_ns,
            due: begin + leg.seek + leg.wait,
            ends: Ends::default(),
        }
    }

    /// No gap at all: the head stays where it is, and is due at once.
    pub fn none(departure: &Departure) -> Self {
        let Departure { begin, from, last_op, read_write_switch } = *departure;
        Self {
            begin,
            from,
            last_op,
            read_write_switch,
            to: from,
            op: Op::Read,
            seek: SimDuration::ZERO,
            seek_error_ns: 0,
            due: begin,
            ends: Ends::default(),
        }
    }

    /// Rotational latency without freeblock work: the potential free bandwidth in time (osdi00
    /// section 3).
    #[inline]
    pub fn latency(&self) -> SimDuration {
        self.due - self.begin - self.seek
    }

    /// The head at the beginning of the gap.
    #[inline]
    pub fn departure(&self) -> Departure {
        let Self { begin, from, last_op, read_write_switch, .. } = *self;
        Departure { begin, from, last_op, read_write_switch }
    }

    /// Time at which the head is ready on the destination track if it leaves for it like this. In time is
    /// at `due` and before.
    #[inline]
    pub fn arrival(&self, drive: &Drive, departure: &Departure) -> SimTime {
        departure.begin + drive.travel(departure, self.to, self.op, self.seek_error_ns)
    }
}
