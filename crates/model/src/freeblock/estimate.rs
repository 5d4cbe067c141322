//! When a round will end.
//!
//! The less is left, the less of it passes under the head: a scan is read at a rate that falls (osdi00
//! figure 9: the last twentieth of the blocks takes a third of the time). What is left `l` is read at
//! `a l^p` here: `p` is the slope of the logarithm of the rates seen in this round over that of what
//! was left then, held to what is known beforehand as long as little has been seen; `a` comes from the
//! last third that was read. The rest then takes `l / (rate (1 - p))`. What foreground requests read,
//! of a promoted task or in idle time, they read at a rate that stays.

use freewheel_units::{SimDuration, SimTime};

/// Points of a round that are remembered: one for each such part of it.
const PARTS: u64 = 256;

/// Of what has been read, the last such part gives the rate now.
const RECENT: f64 = 0.3;

/// The exponent that is taken before anything is known: between 0, a rate that stays, and 0.6, osdi00
/// figure 9 (0.05^(1 - p) = 0.3 = what the last twentieth takes).
const EXPONENT: f64 = 0.4;

/// How much seen variance of logarithms that is worth: what a round has seen when 70 % of it is done.
const TRUST: f64 = 0.1;

/// Beyond it there would hardly be an end.
const EXPONENT_MAX: f64 = 0.9;

/// Beyond a year nothing has been read yet that tells anything.
const LONGEST_NS: f64 = 365.0 * 86_400e9;

/// Percentages at which what was expected is kept.
const MARKS: [u8; 7] = [5, 10, 25, 50, 75, 90, 95];

/// What was expected when a part of a round was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Foretold {
    /// Percentage of the round that had been read.
    pub percent: u8,
    /// When that was.
    pub at: SimTime,
    /// When the end was expected.
    pub end: SimTime,
}

/// What is known of the course of a round.
#[derive(Debug, Clone)]
pub struct Estimate {
    total: u64,
    begun: SimTime,
    /// Foreground requests read what is left.
    is_steady: bool,
    /// Blocks that they have read in this round, in idle time too.
    by_foreground: u64,
    /// When so much was left, first the beginning of the round, or of its steady part.
    seen: Vec<(SimTime, u64)>,
    foretold: Vec<Foretold>,
}

impl Estimate {
    /// A round of so many blocks begins.
    pub fn new(total: u64, now: SimTime) -> Self {
        let (seen, foretold) = (vec![(now, total)], Vec::new());
        Self { total, begun: now, is_steady: false, by_foreground: 0, seen, foretold }
    }

    /// From now on foreground requests read what is left.
    pub fn steady(&mut self, left: u64, now: SimTime) {
        self.is_steady = true;
        self.seen = vec![(now, left)];
    }

    /// A foreground request has read so many blocks: no fewer of them as less is left.
    pub fn read_by_foreground(&mut self, blocks: u64) {
        self.by_foreground += blocks;
    }

    /// Another round begins.
    pub fn begin(&mut self, total: u64, now: SimTime) {
        let is_steady = self.is_steady;
        *self = Self { is_steady, ..Self::new(total, now) };
    }

    /// When the round began.
    pub fn begun(&self) -> SimTime {
        self.begun
    }

    /// What was expected at certain parts of the round.
    pub fn foretold(&self) -> &[Foretold] {
        &self.foretold
    }

    /// So much is left now.
    pub fn at(&mut self, left: u64, now: SimTime) {
        let last = self.seen.last().map_or(self.total, |&(_, left)| left);
        if last.saturating_sub(left) < self.total.div_ceil(PARTS) {
            return;
        }
        self.seen.push((now, left));
        let percent = 100 * u128::from(self.total - left) / u128::from(self.total);
        let next = MARKS.get(self.foretold.len()).copied();
        if let Some(next) = next.filter(|&next| percent >= u128::from(next))
            && let Some(end) = self.end(left, now)
        {
            self.foretold.push(Foretold { percent: next, at: now, end });
        }
    }

    /// When nothing will be left; None while too little has been read to tell.
    pub fn end(&self, left: u64, now: SimTime) -> Option<SimTime> {
        let (begun, total) = *self.seen.first()?;
        let done = total.saturating_sub(left);
        if done == 0 || now <= begun {
            return None;
        }
        let exponent = if self.is_steady { 0.0 } else { self.exponent(done) };
        // The last third of what has been read, or what there is.
        let since = left as f64 + RECENT * done as f64;
        let recent = self.seen.iter().rev().find(|(_, left)| *left as f64 >= since);
        let &(at, then) = recent.unwrap_or(&self.seen[0]);
        let elapsed = now.saturating_since(at).ns().max(1) as f64;
        let middle = (then + left) as f64 / 2.0;
        let rate_then = (then - left).max(1) as f64 / elapsed;
        let rate = rate_then * libm::pow(left as f64 / middle, exponent);
        let rest = if left == 0 { 0.0 } else { left as f64 / (rate * (1.0 - exponent)) };
        (rest < LONGEST_NS).then(|| now + SimDuration::from_ns(rest as u64))
    }

    /// How the rate falls with what is left, when so many blocks have been read. By libm and not the
    /// platform's functions: the same end on every machine.
    fn exponent(&self, done: u64) -> f64 {
        let in_gaps = done.saturating_sub(self.by_foreground) as f64 / done as f64;
        let before = EXPONENT * in_gaps;
        let rates = self.seen.windows(2).filter_map(|pair| {
            let [(from, before), (to, after)] = *pair else { return None };
            let elapsed = to.saturating_since(from).ns();
            let is_sound = elapsed > 0 && after < before;
            is_sound.then(|| {
                let blocks = (before - after) as f64;
                let left = (before + after) as f64 / 2.0;
                (libm::log(left), libm::log(blocks / elapsed as f64), blocks / self.total as f64)
            })
        });
        let rates: Vec<(f64, f64, f64)> = rates.collect();
        let weight: f64 = rates.iter().map(|rate| rate.2).sum();
        if weight <= 0.0 {
            return before;
        }
        let mean = |of: fn(&(f64, f64, f64)) -> f64| {
            rates.iter().map(|rate| of(rate) * rate.2).sum::<f64>() / weight
        };
        let (x, y) = (mean(|rate| rate.0), mean(|rate| rate.1));
        let products = rates.iter().map(|rate| (rate.0 - x) * (rate.1 - y) * rate.2).sum::<f64>();
        let squares = rates.iter().map(|rate| (rate.0 - x) * (rate.0 - x) * rate.2).sum::<f64>();
        let exponent = (products + TRUST * before) / (squares + TRUST);
        exponent.clamp(0.0, EXPONENT_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A round whose rate is a power of what is left, told of in small steps.
    fn course(exponent: f64) -> (Estimate, SimTime) {
        let total = 100_000;
        let mut estimate = Estimate::new(total, SimTime::ZERO);
        let mut ns = 0.0;
        for left in (0..total).rev() {
            ns += 1e6 / (((left as f64 + 0.5) / total as f64).powf(exponent));
            estimate.at(left, SimTime::from_ns(ns as u64));
        }
        (estimate, SimTime::from_ns(ns as u64))
    }

    #[test]
    fn the_end_of_a_round_that_slows_down_is_known_from_its_half_on() {
        for exponent in [0.2, 0.4, 0.6] {
            let (estimate, end) = course(exponent);
            for foretold in estimate.foretold().iter().filter(|foretold| foretold.percent >= 50) {
                let (at, expected) = (foretold.at.ns() as f64, foretold.end.ns() as f64);
                let error = (expected - end.ns() as f64) / (end.ns() as f64 - at);
                assert!(error.abs() < 0.35, "{exponent} at {} %: {error}", foretold.percent);
            }
        }
    }

    #[test]
    fn foreground_requests_end_when_they_were_expected_to() {
        let (mut estimate, end) = course(0.4);
        estimate.begin(1000, end);
        estimate.at(600, end + SimDuration::from_ms(4000));
        let turn = end + SimDuration::from_ms(5000);
        estimate.steady(500, turn);
        estimate.at(400, turn + SimDuration::from_ms(100));
        let expected = estimate.end(400, turn + SimDuration::from_ms(100));
        assert_eq!(expected, Some(turn + SimDuration::from_ms(500)));
    }

    #[test]
    fn nothing_is_said_before_anything_is_known() {
        let estimate = Estimate::new(100, SimTime::from_ns(5));
        assert_eq!(estimate.end(100, SimTime::from_ns(9)), None);
        assert_eq!(estimate.end(50, SimTime::from_ns(5)), None);
    }

    #[test]
    fn of_a_round_that_hardly_moves_nothing_is_said() {
        let estimate = Estimate::new(1 << 40, SimTime::ZERO);
        let now = SimTime::from_ns(1 << 40);
        assert_eq!(estimate.end((1 << 40) - 1, now), None);
    }

    #[test]
    fn a_round_that_begins_anew_forgets_the_one_before() {
        let (mut estimate, end) = course(0.3);
        estimate.begin(1000, end);
        assert!(estimate.foretold().is_empty());
        assert_eq!(estimate.end(1000, end + SimDuration::from_ms(1)), None);
    }
}
