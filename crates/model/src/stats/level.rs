//! The sum over time of something that rises and falls, such as a queue's length.

use freewheel_units::SimTime;

/// A whole number that changes at points in time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Level {
    value: u64,
    max: u64,
    since: SimTime,
    area: u128,
}

impl Level {
    /// From `now` on the level is `value`. Panics when `now` lies before the last change.
    #[inline]
    pub fn set(&mut self, now: SimTime, value: u64) {
        self.area += u128::from(self.value) * u128::from((now - self.since).ns());
        self.since = now;
        self.value = value;
        self.max = self.max.max(value);
    }

    /// The level now.
    #[inline]
    pub fn value(&self) -> u64 {
        self.value
    }

    /// The highest level so far.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// The level summed over every nanosecond from time zero to `now`. Panics when `now` lies
    /// before the last change.
    pub fn area(&self, now: SimTime) -> u128 {
        self.area + u128::from(self.value) * u128::from((now - self.since).ns())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn level_area_weighs_by_time() {
        let mut level = Level::default();
        level.set(SimTime::from_ns(10), 4);
        level.set(SimTime::from_ns(15), 1);
        // 10 ns at 0, 5 ns at 4, 5 ns at 1.
        assert_eq!(level.area(SimTime::from_ns(20)), 25);
        assert_eq!(level.max(), 4);
    }
}
