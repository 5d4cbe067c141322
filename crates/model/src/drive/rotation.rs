//! The spindle: which angle is under the heads when.

use freewheel_units::{Angle, SimDuration, SimTime};

use super::divide::Divisor;

/// A spindle turning with a constant period, angle zero under the heads at time zero.
///
/// All rotational arithmetic is done in whole nanoseconds within the turn: an angle's *edge* is the
/// first nanosecond at or after which it has reached the head. Edges of neighbouring sectors are
/// both derived from the start of the track, so no error adds up around it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rotation {
    period: Divisor,
}

impl Rotation {
    /// Panics unless the period is between 1 ns and 2^31 ns (2.1 s).
    pub fn new(period: SimDuration) -> Self {
        assert!((1..1 << 31).contains(&period.ns()), "rotation period of {period}");
        Self { period: Divisor::new(period.ns()) }
    }

    /// Time of one turn.
    #[inline]
    pub fn period(&self) -> SimDuration {
        SimDuration::from_ns(self.period_ns())
    }

    /// Nanoseconds in a turn.
    #[inline]
    pub fn period_ns(&self) -> u64 {
        self.period.get()
    }

    /// Whole turns in `ns` nanoseconds.
    #[inline]
    pub fn turns(&self, ns: u64) -> u64 {
        self.period.divide(ns).0
    }

    /// Nanoseconds into the current turn at `now`.
    #[inline]
    pub fn phase_ns(&self, now: SimTime) -> u64 {
        self.period.remainder(now.ns())
    }

    /// Nanoseconds into a turn at which `angle` reaches the heads, in `0..=period`; the one value
    /// `period` itself is folded to zero.
    #[inline]
    pub fn edge_ns(&self, angle: Angle) -> u64 {
        let edge = (u64::from(angle.steps()) * self.period_ns()).div_ceil(1 << 32);
        if edge == self.period_ns() { 0 } else { edge }
    }

    /// Angle at the heads at a phase, rounded down: an angle's edge is at or before `phase` just when
    /// the angle is no greater than this.
    #[inline]
    pub fn angle_at(&self, phase: u64) -> Angle {
        Angle::from_steps(self.period.divide(phase << 32).0 as u32)
    }

    /// Number of whole parts, of `parts` equal ones of a turn, that pass in `time`, which is less than a
    /// few turns.
    #[inline]
    pub fn parts_passing(&self, time: SimDuration, parts: u32) -> u64 {
        self.period.divide(time.ns() * u64::from(parts)).0
    }

    /// Nanoseconds from phase `from` forward to phase `to`, less than a turn.
    #[inline]
    pub fn forward_ns(&self, from: u64, to: u64) -> u64 {
        if to >= from { to - from } else { to + self.period_ns() - from }
    }

    /// Time from `now` until `angle` is next at the heads.
    pub fn wait(&self, now: SimTime, angle: Angle) -> SimDuration {
        SimDuration::from_ns(self.forward_ns(self.phase_ns(now), self.edge_ns(angle)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn rotation_wait_brings_angle_to_head(
            period in 1_000_000u64..20_000_000, now in 0u64..1 << 60, steps: u32
        ) {
            let rotation = Rotation::new(SimDuration::from_ns(period));
            let angle = Angle::from_steps(steps);
            let wait = rotation.wait(SimTime::from_ns(now), angle);
            prop_assert!(wait < rotation.period());
            let there = SimTime::from_ns(now) + wait;
            prop_assert_eq!(rotation.phase_ns(there), rotation.edge_ns(angle));
            // Waiting is never so short that the sector's edge has not arrived yet.
            let phase = u128::from(rotation.phase_ns(there));
            let arrived = (phase << 32) / u128::from(period);
            prop_assert!(arrived >= u128::from(steps) || phase == 0);
        }
    }
}
