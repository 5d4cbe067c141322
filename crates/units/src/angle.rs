//! Angle on a turn.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// A fraction of a turn: 2^32 steps to the turn, wrapping, so that addition is always right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Angle(u32);

impl Angle {
    /// Angle of the index mark.
    pub const ZERO: Self = Self(0);

    /// `steps` of 2^32.
    #[inline]
    pub const fn from_steps(steps: u32) -> Self {
        Self(steps)
    }

    /// `numerator / denominator` of a turn, rounded down; whole turns vanish.
    /// Panics when `denominator` is zero.
    pub const fn from_ratio(numerator: u64, denominator: u64) -> Self {
        let within = (numerator % denominator) as u128;
        Self(((within << 32) / denominator as u128) as u32)
    }

    /// Steps of 2^32.
    #[inline]
    pub const fn steps(self) -> u32 {
        self.0
    }

    /// Fraction of a turn in [0, 1), for display.
    pub fn turns(self) -> f64 {
        f64::from(self.0) / 4_294_967_296.0
    }
}

impl Add for Angle {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        Self(self.0.wrapping_add(other.0))
    }
}

impl AddAssign for Angle {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Angle {
    type Output = Self;
    /// The forward angle from `other` to here.
    #[inline]
    fn sub(self, other: Self) -> Self {
        Self(self.0.wrapping_sub(other.0))
    }
}

impl fmt::Display for Angle {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:.6} turn", self.turns())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn angle_addition_wraps_at_whole_turn() {
        let three_quarters = Angle::from_ratio(3, 4);
        assert_eq!(three_quarters + Angle::from_ratio(1, 2), Angle::from_ratio(1, 4));
        assert_eq!(Angle::ZERO - three_quarters, Angle::from_ratio(1, 4));
    }

    #[test]
    fn angle_ratio_drops_whole_turns() {
        assert_eq!(Angle::from_ratio(9, 4), Angle::from_ratio(1, 4));
    }
}
