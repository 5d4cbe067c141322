//! Timer of idle time: the time for which an arm must have been idle before it is used.
//!
//! A timer (Golding, Bosch, Staelin, Sullivan and Wilkes, "Idleness is not sloth", USENIX Winter 1995:
//! predictors based on timers, with a timeout that is fixed or adapts by arithmetic or geometric
//! steps). What makes a start a wrong one is the rule of Douglis, Krishnan and Bershad, "Adaptive Disk
//! Spin-down Policies for Mobile Computers" (USENIX Mobile Computing 1995): a delay is acceptable or
//! not by its ratio to the idle time before it. Here the delay is what the first request behind idle
//! work was later by. After a wrong start the timeout grows, after a right one it shrinks; a period
//! that ended before the timeout teaches no lesson, so no period longer than `most` goes unused.
//!
//! Non-goals: prediction of how long a period lasts; rates of arrival.

use freewheel_units::{SimDuration, SimTime};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Rule by which a timeout adapts.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Adapt {
    /// By how much it changes.
    pub step: Step,
    /// Largest ratio of the delay of the first request to the idle time before it that is
    /// acceptable.
    pub tolerance: f64,
    /// Smallest timeout.
    pub least: SimDuration,
    /// Largest timeout.
    pub most: SimDuration,
}

/// A step of a timeout, up or down.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// This much more or less.
    Arithmetic(SimDuration),
    /// Factor by which it grows or shrinks.
    Geometric(f64),
}

impl Default for Adapt {
    /// All assumed: doubled and halved, as networks back off; a delay of a twentieth; no sooner than a
    /// drive's overheads and no later than a second.
    fn default() -> Self {
        Self {
            step: Step::Geometric(2.0),
            tolerance: 0.05,
            least: SimDuration::from_ms(1),
            most: SimDuration::from_secs(1),
        }
    }
}

impl Adapt {
    /// Checks the rule for a timeout that begins at `first`, and returns the fault.
    pub fn check(&self, first: SimDuration) -> Result<(), String> {
        let Self { step, tolerance, least, most } = *self;
        if !(tolerance > 0.0 && tolerance <= 1.0) {
            return Err(format!(
                "`tolerance` is {tolerance}: more than 0 and at most 1 is allowed"
            ));
        }
        match step {
            Step::Arithmetic(SimDuration::ZERO) => {
                return Err("`step` is arithmetic with 0: at least 1 ns is needed".into());
            }
            Step::Geometric(factor) if !(factor > 1.0 && factor <= FACTOR_MAX) => {
                return Err(format!(
                    "`step` is geometric with {factor}: more than 1 and at most {FACTOR_MAX} is allowed"
                ));
            }
            _ => {}
        }
        if least == SimDuration::ZERO {
            return Err(
                "`least` is 0: it cannot grow from there, so at least 1 ns is needed".into()
            );
        }
        if !(least..=most).contains(&first) {
            return Err(format!(
                "`after` is {first}: it begins from `least` = {least} to `most` = {most}"
            ));
        }
        Ok(())
    }
}

/// Steepest geometric step.
const FACTOR_MAX: f64 = 1e6;

/// Longest timeout at the beginning.
pub const IDLE_AFTER_MAX: SimDuration = SimDuration::from_secs(3600);

/// A timer for idle periods, and how it has fared.
#[derive(Debug, Clone, PartialEq)]
pub struct IdleTimer {
    timeout: SimDuration,
    adapt: Option<Adapt>,
    starts: u64,
    wrong: u64,
}

impl IdleTimer {
    /// A timeout that stays as it is, or begins there and adapts. Panics when `adapt` does not
    /// [`Adapt::check`] with it.
    pub fn new(timeout: SimDuration, adapt: Option<Adapt>) -> Self {
        if let Some(adapt) = adapt {
            adapt.check(timeout).expect("it was checked");
        }
        Self { timeout, adapt, starts: 0, wrong: 0 }
    }

    /// Time from which idle time may be used, if no request comes after `since`.
    pub fn start(&self, since: SimTime) -> SimTime {
        since + self.timeout
    }

    /// Idle time that had lasted for `idle` was in use when a request came, which was later by `delay`
    /// for it.
    pub fn used(&mut self, idle: SimDuration, delay: SimDuration) {
        self.starts += 1;
        let Some(adapt) = self.adapt else { return };
        let is_wrong = delay.ns() as f64 > adapt.tolerance * idle.ns() as f64;
        self.wrong += u64::from(is_wrong);
        let ns = self.timeout.ns();
        let next = match (adapt.step, is_wrong) {
            (Step::Arithmetic(step), true) => ns.saturating_add(step.ns()),
            (Step::Arithmetic(step), false) => ns.saturating_sub(step.ns()),
            // Up, or a factor below 2 would leave 1 ns as it is.
            (Step::Geometric(factor), true) => (ns as f64 * factor).ceil() as u64,
            (Step::Geometric(factor), false) => (ns as f64 / factor) as u64,
        };
        self.timeout = SimDuration::from_ns(next).clamp(adapt.least, adapt.most);
    }

    /// The timeout for the next period.
    pub fn timeout(&self) -> SimDuration {
        self.timeout
    }

    /// Number of times that idle time was used and a request came.
    pub fn starts(&self) -> u64 {
        self.starts
    }

    /// Number of times that that request was delayed by more than what is acceptable; none while the
    /// timeout is fixed.
    pub fn wrong(&self) -> u64 {
        self.wrong
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const fn ms(n: u64) -> SimDuration {
        SimDuration::from_ms(n)
    }

    fn timer(step: Step) -> IdleTimer {
        let adapt = Adapt { step, tolerance: 0.1, least: ms(5), most: ms(100) };
        IdleTimer::new(ms(20), Some(adapt))
    }

    #[test]
    fn idle_period_is_used_after_timeout() {
        let since = SimTime::ZERO + ms(7);
        assert_eq!(timer(Step::Geometric(2.0)).start(since), SimTime::ZERO + ms(27));
    }

    #[test]
    fn fixed_timeout_stays() {
        let mut timer = IdleTimer::new(ms(20), None);
        timer.used(ms(1), ms(50));
        assert_eq!((timer.timeout(), timer.starts(), timer.wrong()), (ms(20), 1, 0));
    }

    #[test]
    fn timeout_adapts_to_right_and_wrong_starts() {
        for (step, up, down) in
            [(Step::Geometric(2.0), ms(40), ms(10)), (Step::Arithmetic(ms(3)), ms(23), ms(17))]
        {
            let mut wrong = timer(step);
            wrong.used(ms(50), ms(6));
            assert_eq!((wrong.timeout(), wrong.wrong()), (up, 1));
            let mut right = timer(step);
            right.used(ms(50), ms(5));
            assert_eq!((right.timeout(), right.wrong()), (down, 0));
        }
    }

    #[test]
    fn timeout_stays_within_bounds() {
        for step in [Step::Geometric(3.0), Step::Arithmetic(ms(30))] {
            let mut timer = timer(step);
            (0..9).for_each(|_| timer.used(ms(1), ms(1)));
            assert_eq!(timer.timeout(), ms(100));
            (0..9).for_each(|_| timer.used(ms(1), ms(0)));
            assert_eq!(timer.timeout(), ms(5));
        }
    }

    #[test]
    fn timeout_grows_from_nanosecond() {
        let (least, most) = (SimDuration::from_ns(1), ms(1));
        let step = Step::Geometric(1.5);
        let mut timer = IdleTimer::new(least, Some(Adapt { step, tolerance: 0.1, least, most }));
        (0..60).for_each(|_| timer.used(ms(1), ms(1)));
        assert_eq!(timer.timeout(), most);
    }

    #[test]
    fn invalid_values_are_refused_by_key() {
        let with = |change: fn(&mut Adapt)| {
            let mut adapt = Adapt::default();
            change(&mut adapt);
            adapt.check(ms(20)).unwrap_err()
        };
        assert!(with(|adapt| adapt.tolerance = 0.0).starts_with("`tolerance` is 0"));
        assert!(with(|adapt| adapt.step = Step::Geometric(1.0)).starts_with("`step` is geometric"));
        assert!(with(|adapt| adapt.step = Step::Arithmetic(ms(0))).contains("arithmetic with 0"));
        assert!(with(|adapt| adapt.least = ms(0)).starts_with("`least` is 0"));
        assert!(with(|adapt| adapt.least = ms(30)).starts_with("`after` is 20ms"));
    }

    proptest! {
        /// Short periods are not worth the delay and long ones are: the timeout ends within a step of
        /// the short ones' end.
        #[test]
        fn timer_learns_to_outwait_short_periods(
            short_ms in 10u64..80,
            step_ms in 1u64..4,
        ) {
            let mut timer = timer(Step::Arithmetic(ms(step_ms)));
            for _ in 0..100 {
                for idle in [ms(short_ms), ms(short_ms), ms(400)] {
                    if timer.timeout() < idle {
                        timer.used(idle, ms(9));
                    }
                }
            }
            let (low, high) = (ms(short_ms - step_ms), ms(short_ms + step_ms));
            prop_assert!((low..=high).contains(&timer.timeout()), "{}", timer.timeout());
        }
    }
}
