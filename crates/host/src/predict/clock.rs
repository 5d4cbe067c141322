//! The angle of a spindle, which the host cannot see, followed by the ends of commands.

use freewheel_units::{SimDuration, SimTime};

/// Observations until a clock is believed.
const BELIEVED: u32 = 3;

/// Most observations that an average remembers: of errors that are independent it has a tenth of
/// their spread.
const MEMORY: u32 = 50;

/// Part of a turn by which an end may differ from its prediction and still be one of the media. A
/// reply that comes from a buffer is within it by chance, once in eight.
pub(crate) const PLAUSIBLE: u64 = 16;

/// Turns the host's time into the model's, in which the spindle has angle zero at time zero.
///
/// The offset between both is known up to whole turns; it is followed by an alpha-beta filter, since
/// the real spindle is somewhat faster or slower than the model's.
#[derive(Debug, Clone)]
pub(crate) struct Clock {
    period: SimDuration,
    /// Model time less host time at `at`, within a turn.
    offset_ns: f64,
    /// Rate of the model's time, in host time.
    rate: f64,
    at: SimTime,
    observations: u32,
    /// Ends in a row that were far from their prediction.
    missed: u32,
}

/// The end of a command beside its prediction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Observed {
    /// Whole turns later than predicted.
    pub turns: i64,
    /// Remaining phase error, in nanoseconds.
    pub phase_ns: i64,
    /// True if the media can have done it.
    pub is_plausible: bool,
}

impl Clock {
    pub fn new(period: SimDuration) -> Self {
        Self { period, offset_ns: 0.0, rate: 0.0, at: SimTime::ZERO, observations: 0, missed: 0 }
    }

    /// True if the angle is known.
    pub fn is_known(&self) -> bool {
        self.observations >= BELIEVED
    }

    /// The model's time at a time of the host's.
    pub fn model(&self, host: SimTime) -> SimTime {
        // A turn is added, so that the time stays above zero.
        let offset_ns = self.offset_ns_at(host.ns() as i64) + self.period.ns() as f64;
        SimTime::from_ns(host.ns().saturating_add_signed(offset_ns as i64))
    }

    /// The host's time at a time of the model's near the last end.
    pub fn host(&self, model: SimTime) -> SimTime {
        let there_ns = model.ns() as i64 - self.period.ns() as i64;
        let host_ns = there_ns - self.offset_ns_at(there_ns) as i64;
        SimTime::from_ns(host_ns.max(0) as u64)
    }

    /// Model time less host time at a time of the host's in nanoseconds, within a turn.
    fn offset_ns_at(&self, host_ns: i64) -> f64 {
        self.offset_ns + self.rate * (host_ns as f64 - self.at.ns() as f64)
    }

    /// Compares an end at `host` with the predicted `model`.
    pub fn compare(&self, host: SimTime, model: SimTime) -> Observed {
        let late_ns = self.model(host).ns() as i64 - model.ns() as i64;
        let period_ns = self.period.ns() as i64;
        let turns = (late_ns + period_ns / 2).div_euclid(period_ns);
        let phase_ns = late_ns - turns * period_ns;
        let is_plausible = phase_ns.unsigned_abs() <= self.period.ns() / PLAUSIBLE;
        Observed { turns, phase_ns, is_plausible: is_plausible || !self.is_known() }
    }

    /// A command of the media ended at `host`, later than its predicted angle by `observed.phase_ns`.
    pub fn follow(&mut self, host: SimTime, observed: &Observed) {
        let since_ns = host.saturating_since(self.at).ns() as f64;
        self.offset_ns += self.rate * since_ns;
        self.at = host;
        if !observed.is_plausible {
            self.missed += 1;
            // The clock has lost the angle: the next observations are nearer than its own state.
            if self.missed > MEMORY {
                (self.observations, self.missed, self.rate) = (0, 0, 0.0);
            }
            return;
        }
        self.missed = 0;
        self.observations = (self.observations + 1).min(MEMORY);
        let gain = match self.observations {
            // The first says where it is.
            0..=BELIEVED => 1.0,
            observations => 1.0 / f64::from(observations - BELIEVED + 1),
        };
        let error_ns = observed.phase_ns as f64;
        self.offset_ns -= gain * error_ns;
        if self.observations == MEMORY {
            // The error of an end is none of the rate: over less than a turn it would be taken for one.
            let since_ns = since_ns.max(self.period.ns() as f64);
            self.rate -= gain * gain / 2.0 * error_ns / since_ns;
        }
    }
}

#[cfg(test)]
mod tests {
    use freewheel_units::Prng;

    use super::*;

    const PERIOD: u64 = 6_000_000;

    fn at(ns: u64) -> SimTime {
        SimTime::from_ns(ns)
    }

    /// Ends every `gap` at a spindle that turns by `ppm` slower than the model says and whose zero
    /// is at `zero`, seen up to `jitter` late or early. The errors in phase of the last half.
    fn errors(ppm: f64, zero: f64, gap: u64, jitter: i64) -> Vec<i64> {
        let mut clock = Clock::new(SimDuration::from_ns(PERIOD));
        let real = PERIOD as f64 * (1.0 + ppm * 1e-6);
        let mut errors = Vec::new();
        let mut prng = Prng::new(1, "noise");
        for number in 1..2000u64 {
            // The end is a whole number of turns of the real spindle from its zero.
            let turns = ((number * gap) as f64 / real).round();
            let noise = prng.below(2 * jitter as u64 + 1) as i64 - jitter;
            let host = (zero + turns * real) as i64 + noise;
            let host = at(host as u64);
            let expected = (clock.model(host).ns() + PERIOD / 2) / PERIOD * PERIOD;
            let observed = clock.compare(host, at(expected));
            clock.follow(host, &observed);
            if number > 1000 {
                let exact = at((zero + turns * real) as u64);
                let phase = clock.model(exact).ns() % PERIOD;
                errors.push(if phase > PERIOD / 2 {
                    phase as i64 - PERIOD as i64
                } else {
                    phase as i64
                });
            }
        }
        errors
    }

    #[test]
    fn clock_follows_spindle_closer_than_observations() {
        for (ppm, zero) in [(0.0, 1e6), (20.0, 4.2e6), (-150.0, 5.9e6)] {
            let errors = errors(ppm, zero, 9_000_000, 50_000);
            let mean =
                errors.iter().map(|error| error.unsigned_abs()).sum::<u64>() / errors.len() as u64;
            assert!(mean < 8_000, "{ppm} ppm: {mean} ns");
        }
    }

    #[test]
    fn clock_follows_wandering_spindle_for_hour() {
        let mut clock = Clock::new(SimDuration::from_ns(PERIOD));
        let mut prng = Prng::new(1, "noise");
        let (mut exact, mut worst, mut turns) = (1e6, 0_i64, 0_u64);
        while exact < 3.6e12 {
            // From 5 ppm slower to 5 ppm faster and back within the hour.
            let ppm = 10.0 * f64::abs(exact / 1.8e12 - 1.0) - 5.0;
            let more = 1 + prng.below(20);
            exact += more as f64 * PERIOD as f64 * (1.0 + ppm * 1e-6);
            turns += more;
            let host = at(exact as u64 + prng.below(20_000));
            let expected = (clock.model(host).ns() + PERIOD / 2) / PERIOD * PERIOD;
            let observed = clock.compare(host, at(expected));
            clock.follow(host, &observed);
            let phase = clock.model(at(exact as u64 + 10_000)).ns() % PERIOD;
            let off = (phase as i64 + PERIOD as i64 / 2) % PERIOD as i64 - PERIOD as i64 / 2;
            worst = worst.max(if turns > 10_000 { off.abs() } else { 0 });
        }
        assert!(turns > 500_000 && worst < 12_000, "{turns} turns, {worst} ns");
    }

    #[test]
    fn close_ends_do_not_mislead_clock() {
        let mut clock = Clock::new(SimDuration::from_ns(PERIOD));
        let mut prng = Prng::new(1, "replies");
        let mut last = 0;
        for number in 1..4000u64 {
            // Every other end follows the one before by half a block, and is seen later than that.
            let exact = number / 2 * 9_000_000 + number % 2 * 9_000;
            let host = (exact + prng.below(80_000)).max(last);
            last = host;
            let expected = (clock.model(at(host)).ns() + PERIOD / 2) / PERIOD * PERIOD;
            let turns = exact % PERIOD;
            let observed = clock.compare(at(host), at(expected + turns));
            clock.follow(at(host), &observed);
            let error = clock.model(at(exact)).ns() as i64 - (exact + PERIOD) as i64;
            let error = (error + PERIOD as i64 / 2).rem_euclid(PERIOD as i64) - PERIOD as i64 / 2;
            assert!(number < 1000 || error.abs() < 80_000, "{number}: {error} ns");
        }
    }

    #[test]
    fn host_and_model_times_convert_both_ways() {
        let mut clock = Clock::new(SimDuration::from_ns(PERIOD));
        for number in 1..100 {
            let turns = 9 * PERIOD * number;
            let host = turns + 1_234_567;
            let observed = clock.compare(at(host), at(turns + PERIOD));
            clock.follow(at(host), &observed);
            let there = host + 3 * PERIOD;
            assert!(clock.host(clock.model(at(there))).ns().abs_diff(there) <= 2, "{number}");
        }
    }

    #[test]
    fn end_deviation_has_turns_and_phase() {
        let mut clock = Clock::new(SimDuration::from_ns(PERIOD));
        for number in 1..=10 {
            let observed = clock.compare(at(number * PERIOD), at(number * PERIOD + PERIOD));
            clock.follow(at(number * PERIOD), &observed);
        }
        let late = clock.compare(at(13 * PERIOD + 20_000), at(13 * PERIOD));
        assert_eq!((late.turns, late.is_plausible), (1, true), "{late:?}");
        let early = clock.compare(at(11 * PERIOD - 30_000), at(13 * PERIOD));
        assert_eq!(early.turns, -1, "{early:?}");
        let hit = clock.compare(at(12 * PERIOD + PERIOD / 3), at(13 * PERIOD));
        assert!(!hit.is_plausible, "{hit:?}");
    }
}
