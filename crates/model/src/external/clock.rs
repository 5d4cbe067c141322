//! The angle of a spindle that nobody outside sees, followed by the ends of commands.

/// Observations until a clock is believed.
const BELIEVED: u32 = 3;

/// Most observations that an average remembers: of errors that are independent it has a tenth of
/// their spread.
const MEMORY: u32 = 50;

/// Part of a turn by which an end may differ from its prediction and still be one of the media. A
/// reply that comes from a buffer is within it by chance, once in eight.
pub(super) const PLAUSIBLE: u64 = 16;

/// Turns the host's time into the model's, in which the spindle has angle zero at time zero.
///
/// The offset between both is known up to whole turns; it is followed by an alpha-beta filter, since
/// the real spindle is somewhat faster or slower than the model's.
#[derive(Debug, Clone)]
pub(super) struct Clock {
    period_ns: f64,
    /// Model time less host time at `at`, within a turn.
    offset_ns: f64,
    /// How much faster the model's time goes.
    rate: f64,
    at: u64,
    observations: u32,
    /// Ends in a row that were far from their prediction.
    missed: u32,
}

/// The end of a command beside its prediction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Observed {
    /// Whole turns later than predicted.
    pub turns: i64,
    /// What remains.
    pub phase_ns: i64,
    /// Whether the media can have done it.
    pub is_plausible: bool,
}

impl Clock {
    pub fn new(period_ns: u64) -> Self {
        Self {
            period_ns: period_ns as f64,
            offset_ns: 0.0,
            rate: 0.0,
            at: 0,
            observations: 0,
            missed: 0,
        }
    }

    /// Whether the angle is known.
    pub fn is_known(&self) -> bool {
        self.observations >= BELIEVED
    }

    /// The model's time at a time of the host's.
    pub fn model(&self, host: u64) -> u64 {
        let offset = self.offset_ns + self.rate * (host as f64 - self.at as f64);
        // A turn more, so that nothing falls below zero.
        (host as i64 + (offset + self.period_ns) as i64).max(0) as u64
    }

    /// The host's time at a time of the model's near the last end.
    pub fn host(&self, model: u64) -> u64 {
        let there = model as i64 - self.period_ns as i64;
        let offset = self.offset_ns + self.rate * (there as f64 - self.at as f64);
        (there - offset as i64).max(0) as u64
    }

    /// What an end at `host` says that was predicted for `model`.
    pub fn compare(&self, host: u64, model: u64) -> Observed {
        let late = self.model(host) as i64 - model as i64;
        let period = self.period_ns as i64;
        let turns = (late + period / 2).div_euclid(period);
        let phase_ns = late - turns * period;
        let is_plausible = phase_ns.unsigned_abs() <= self.period_ns as u64 / PLAUSIBLE;
        Observed { turns, phase_ns, is_plausible: is_plausible || !self.is_known() }
    }

    /// A command of the media ended at `host`, which was so much after its angle.
    pub fn follow(&mut self, host: u64, observed: &Observed) {
        let since = host.saturating_sub(self.at) as f64;
        self.offset_ns += self.rate * since;
        self.at = host;
        if !observed.is_plausible {
            self.missed += 1;
            // It has lost its way: whatever it learns next is nearer.
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
        let error = observed.phase_ns as f64;
        self.offset_ns -= gain * error;
        if self.observations == MEMORY && since > 0.0 {
            self.rate -= gain * gain / 2.0 * error / since;
        }
    }
}

#[cfg(test)]
mod tests {
    use freewheel_units::Prng;

    use super::*;

    const PERIOD: u64 = 6_000_000;

    /// Ends every `gap` at a spindle that turns by `ppm` slower than the model says and whose zero
    /// is at `zero`, seen up to `jitter` late or early. The errors in phase of the last half.
    fn errors(ppm: f64, zero: f64, gap: u64, jitter: i64) -> Vec<i64> {
        let mut clock = Clock::new(PERIOD);
        let real = PERIOD as f64 * (1.0 + ppm * 1e-6);
        let mut errors = Vec::new();
        let mut prng = Prng::new(1, "noise");
        for number in 1..2000u64 {
            // The end is a whole number of turns of the real spindle from its zero.
            let turns = ((number * gap) as f64 / real).round();
            let noise = prng.below(2 * jitter as u64 + 1) as i64 - jitter;
            let host = (zero + turns * real) as i64 + noise;
            let at = host as u64;
            let expected = (clock.model(at) + PERIOD / 2) / PERIOD * PERIOD;
            let observed = clock.compare(at, expected);
            clock.follow(at, &observed);
            if number > 1000 {
                let exact = (zero + turns * real) as u64;
                let phase = clock.model(exact) % PERIOD;
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
    fn a_clock_follows_a_spindle_closer_than_its_ends_are_seen() {
        for (ppm, zero) in [(0.0, 1e6), (20.0, 4.2e6), (-150.0, 5.9e6)] {
            let errors = errors(ppm, zero, 9_000_000, 50_000);
            let mean =
                errors.iter().map(|error| error.unsigned_abs()).sum::<u64>() / errors.len() as u64;
            assert!(mean < 8_000, "{ppm} ppm: {mean} ns");
        }
    }

    #[test]
    fn the_host_s_time_and_the_model_s_are_turned_into_each_other() {
        let mut clock = Clock::new(PERIOD);
        for number in 1..100 {
            let host = 9 * PERIOD * number + 1_234_567;
            let observed = clock.compare(host, 9 * PERIOD * number + PERIOD);
            clock.follow(host, &observed);
            let there = host + 3 * PERIOD;
            assert!(clock.host(clock.model(there)).abs_diff(there) <= 2, "{number}");
        }
    }

    #[test]
    fn an_end_is_told_apart_in_turns_and_phase() {
        let mut clock = Clock::new(PERIOD);
        for number in 1..=10 {
            let observed = clock.compare(number * PERIOD, number * PERIOD + PERIOD);
            clock.follow(number * PERIOD, &observed);
        }
        let late = clock.compare(13 * PERIOD + 20_000, 13 * PERIOD);
        assert_eq!((late.turns, late.is_plausible), (1, true), "{late:?}");
        let early = clock.compare(11 * PERIOD - 30_000, 13 * PERIOD);
        assert_eq!(early.turns, -1, "{early:?}");
        let hit = clock.compare(12 * PERIOD + PERIOD / 3, 13 * PERIOD);
        assert!(!hit.is_plausible, "{hit:?}");
    }
}
