//! Points in time and lengths of time, in whole nanoseconds.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};
use std::str::FromStr;

use crate::parse::{ParseQuantityError, Units, format_quantity, parse_quantity, quantity_text};

const TIME_UNITS: Units = Units {
    table: &[
        ("ns", 1),
        ("us", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
        ("min", 60_000_000_000),
        ("h", 3_600_000_000_000),
        ("d", 86_400_000_000_000),
    ],
    allowed: "ns, us, ms, s, min, h, d",
    smallest: "nanoseconds",
    example: "ms",
};

/// A point in time: nanoseconds since the start of the run. Holds 584 years.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SimTime(u64);

/// A length of time in nanoseconds, never negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SimDuration(u64);

impl SimTime {
    /// The start of the run.
    pub const ZERO: Self = Self(0);
    /// Later than anything that happens.
    pub const MAX: Self = Self(u64::MAX);

    /// The point `ns` nanoseconds after the start.
    #[inline]
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns)
    }

    /// Nanoseconds since the start.
    #[inline]
    pub const fn ns(self) -> u64 {
        self.0
    }

    /// Time from `earlier` to here, zero when `earlier` is in fact later.
    #[inline]
    pub const fn saturating_since(self, earlier: Self) -> SimDuration {
        SimDuration(self.0.saturating_sub(earlier.0))
    }
}

impl SimDuration {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// Longer than anything that happens.
    pub const MAX: Self = Self(u64::MAX);

    /// `ns` nanoseconds.
    #[inline]
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns)
    }

    /// `us` microseconds. Panics past 2^64 ns.
    pub const fn from_us(us: u64) -> Self {
        Self(us * 1_000)
    }

    /// `ms` milliseconds. Panics past 2^64 ns.
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms * 1_000_000)
    }

    /// `s` seconds. Panics past 2^64 ns.
    pub const fn from_secs(s: u64) -> Self {
        Self(s * 1_000_000_000)
    }

    /// Nearest whole nanosecond to `ms` milliseconds. A border function: for fitted or published
    /// values, not for arithmetic. Negative and non-finite input panics.
    pub fn from_ms_f64(ms: f64) -> Self {
        assert!(ms.is_finite() && (0.0..1e12).contains(&ms), "duration of {ms} ms");
        Self((ms * 1e6).round() as u64)
    }

    /// Whole nanoseconds.
    #[inline]
    pub const fn ns(self) -> u64 {
        self.0
    }

    /// Milliseconds, for display and statistics.
    pub fn as_ms_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// Seconds, for display and statistics.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The difference, zero when `other` is longer.
    #[inline]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Add<SimDuration> for SimTime {
    type Output = SimTime;
    #[inline]
    fn add(self, length: SimDuration) -> SimTime {
        SimTime(self.0 + length.0)
    }
}

impl AddAssign<SimDuration> for SimTime {
    #[inline]
    fn add_assign(&mut self, length: SimDuration) {
        self.0 += length.0;
    }
}

impl Sub for SimTime {
    type Output = SimDuration;
    /// Panics when `earlier` is later: an event in the past is a bug, not a negative time.
    #[inline]
    fn sub(self, earlier: SimTime) -> SimDuration {
        SimDuration(self.0.checked_sub(earlier.0).expect("time ran backwards"))
    }
}

impl Add for SimDuration {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for SimDuration {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl Sub for SimDuration {
    type Output = Self;
    #[inline]
    fn sub(self, other: Self) -> Self {
        Self(self.0.checked_sub(other.0).expect("negative duration"))
    }
}

impl SubAssign for SimDuration {
    #[inline]
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl Mul<u64> for SimDuration {
    type Output = Self;
    #[inline]
    fn mul(self, times: u64) -> Self {
        Self(self.0 * times)
    }
}

impl Div<u64> for SimDuration {
    type Output = Self;
    /// Rounds towards zero.
    #[inline]
    fn div(self, parts: u64) -> Self {
        Self(self.0 / parts)
    }
}

impl Sum for SimDuration {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for SimTime {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(&format_quantity(self.0, TIME_UNITS.table))
    }
}

impl fmt::Display for SimDuration {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(&format_quantity(self.0, TIME_UNITS.table))
    }
}

impl FromStr for SimDuration {
    type Err = ParseQuantityError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse_quantity(text, &TIME_UNITS).map(Self)
    }
}

impl FromStr for SimTime {
    type Err = ParseQuantityError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse_quantity(text, &TIME_UNITS).map(Self)
    }
}

quantity_text!(SimDuration, r"^[0-9_.]+ ?(ns|us|ms|s|min|h|d)$", "a length of time", "30ms");
quantity_text!(SimTime, r"^[0-9_.]+ ?(ns|us|ms|s|min|h|d)$", "a time since the start", "30ms");

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn duration_reads_fractions_exactly() {
        assert_eq!("0.3ms".parse(), Ok(SimDuration::from_us(300)));
        assert_eq!(" 1.5 s".parse(), Ok(SimDuration::from_ms(1500)));
        assert_eq!("5.985037ms".parse(), Ok(SimDuration::from_ns(5_985_037)));
    }

    #[test]
    fn duration_refuses_bare_number() {
        let error = "12".parse::<SimDuration>().unwrap_err().to_string();
        assert!(error.contains("no unit") && error.contains("12ms"), "{error}");
    }

    #[test]
    fn duration_refuses_unknown_or_tiny_units() {
        assert!("0.5ns".parse::<SimDuration>().is_err());
        assert!("3 fortnights".parse::<SimDuration>().is_err());
        assert!(".ms".parse::<SimDuration>().is_err());
        assert!("1.2.3ms".parse::<SimDuration>().is_err());
    }

    #[test]
    #[should_panic(expected = "time ran backwards")]
    fn time_subtracting_later_panics() {
        let _ = SimTime::from_ns(1) - SimTime::from_ns(2);
    }

    proptest! {
        #[test]
        fn duration_round_trips_through_text(ns: u64) {
            let duration = SimDuration::from_ns(ns);
            prop_assert_eq!(duration.to_string().parse(), Ok(duration));
        }
    }
}
