//! The spindle as a clock: its period, and the angle at which an answer came.
//!
//! An answer comes a constant time after its block has passed the head, and jitter later. Seeks do
//! not matter, nor turns that were missed: folded by the period, the answers of a block lie at one
//! angle. The angles of a set of reference blocks, read again from time to time over all the
//! extraction, give the period; their mean keeps the phase.

use std::f64::consts::TAU;

use freewheel_units::{SimDuration, SimTime};

use super::ExtractError;
use super::host::Host;

/// Angles are turns in [0, 1): how far the spindle has turned when an answer comes.
pub(super) struct Clock {
    references: Vec<u64>,
    /// When each was first answered.
    first: Vec<SimTime>,
    period_ns: f64,
    /// A recent time at which the angle is zero.
    zero_ns: f64,
    synchronised: SimTime,
    /// Standard deviation of one answer.
    jitter_ns: f64,
    period_error_ns: f64,
}

/// References beyond those that displace each other from the buffer.
const REFERENCES_MIN: usize = 24;
/// Fastest and slowest spindles looked for, in turns a second: 3,000 to 20,000 rpm.
const SLOWEST_HZ: f64 = 50.0;
const FASTEST_HZ: f64 = 334.0;
/// Passes over some references whose answers give the first estimate.
const FIRST_PASSES: usize = 6;
const FIRST_REFERENCES: usize = 12;
/// Longest pause before a read of the first passes: some turns of the slowest spindle.
const PAUSE_MAX: SimDuration = SimDuration::from_ms(100);
/// And before each of these passes.
const LONGER_PAUSE_MAX: SimDuration = SimDuration::from_secs(1);
/// Mean resultant length without which there is no rotation: that of jitter with a standard deviation
/// of 7 % of a turn.
const IN_PHASE: f64 = 0.9;
/// Steps of the frequency in which the longest span gains a turn. Between two of them spans get out
/// of phase by a 32nd of a turn, which takes less than a hundredth off their resultant.
const STEPS_A_TURN: f64 = 16.0;
const AS_GOOD: f64 = 0.985;
/// Pauses before the passes that follow; each span is at most four times the one before.
const PAUSES_S: [u64; 5] = [2, 8, 32, 128, 512];
/// The phase is taken anew after this.
const SYNCHRONISE_EVERY: SimDuration = SimDuration::from_secs(20);

/// Difference of two angles, in [-0.5, 0.5).
pub(super) fn signed(turns: f64) -> f64 {
    turns - (turns + 0.5).floor()
}

/// An angle in [0, 1).
pub(super) fn fold(turns: f64) -> f64 {
    let within = turns - turns.floor();
    if within >= 1.0 { 0.0 } else { within }
}

/// Mean of angles that lie within half a turn.
pub(super) fn mean_angle(angles: &[f64]) -> f64 {
    let first = angles[0];
    let off: f64 = angles.iter().map(|angle| signed(angle - first)).sum();
    fold(first + off / angles.len() as f64)
}

impl Clock {
    /// Finds the period, from nothing but answers.
    pub fn find(host: &mut Host<'_>) -> Result<Self, ExtractError> {
        let mut clock = Self {
            references: references(host)?,
            first: Vec::new(),
            period_ns: 0.0,
            zero_ns: 0.0,
            synchronised: host.now(),
            jitter_ns: 0.0,
            period_error_ns: 0.0,
        };
        clock.first = clock.pass(host, PAUSE_MAX)?;
        let mut spans = Vec::new();
        for _ in 1..FIRST_PASSES {
            let pause = host.below(LONGER_PAUSE_MAX.ns());
            host.sleep(SimDuration::from_ns(pause));
            let ends = clock.pass(host, PAUSE_MAX)?;
            let of = clock.first.iter().zip(&ends).take(FIRST_REFERENCES);
            spans.extend(of.map(|(first, end)| (*end - *first).ns() as f64));
        }
        let guess = period_of(&spans).ok_or(ExtractError::NoRotation)?;
        clock.period_ns = fitted(&spans, guess);
        for pause in PAUSES_S {
            host.sleep(SimDuration::from_secs(pause));
            clock.synchronise(host)?;
        }
        Ok(clock)
    }

    pub fn period_ns(&self) -> f64 {
        self.period_ns
    }

    pub fn period_error_ns(&self) -> f64 {
        self.period_error_ns
    }

    pub fn jitter_ns(&self) -> f64 {
        self.jitter_ns
    }

    /// Reads every reference once, with a random pause before each: in the same order at the same
    /// pace, all would come round after the same number of turns.
    fn pass(
        &self,
        host: &mut Host<'_>,
        pause_max: SimDuration,
    ) -> Result<Vec<SimTime>, ExtractError> {
        let mut read = |&block: &u64| {
            let pause = host.below(pause_max.ns() + 1);
            host.sleep(SimDuration::from_ns(pause));
            Ok(host.read_fresh(block)?.end)
        };
        self.references.iter().map(&mut read).collect()
    }

    /// Takes period and phase anew if that is due.
    pub fn keep(&mut self, host: &mut Host<'_>) -> Result<(), ExtractError> {
        if host.now() >= self.synchronised + SYNCHRONISE_EVERY {
            self.synchronise(host)?;
        }
        Ok(())
    }

    fn synchronise(&mut self, host: &mut Host<'_>) -> Result<(), ExtractError> {
        let ends = self.pass(host, SimDuration::ZERO)?;
        let span = |(first, end): (&SimTime, &SimTime)| (*end - *first).ns() as f64;
        let spans: Vec<f64> = self.first.iter().zip(&ends).map(span).collect();
        self.period_ns = fitted(&spans, self.period_ns);
        let phases = |span: &f64| signed(span / self.period_ns) * self.period_ns;
        let off: Vec<f64> = spans.iter().map(phases).collect();
        let count = off.len() as f64;
        let mean = off.iter().sum::<f64>() / count;
        let square = off.iter().map(|off| (off - mean).powi(2)).sum::<f64>() / (count - 1.0);
        // The difference of two answers each.
        self.jitter_ns = (square / 2.0).sqrt();
        self.synchronised = host.now();
        let origin = self.first[0].ns() as f64;
        let since = self.synchronised.ns() as f64 - origin;
        let turns = (since / self.period_ns).floor();
        self.zero_ns = origin + turns * self.period_ns;
        self.period_error_ns = (square / count).sqrt().max(1.0) / turns.max(1.0);
        Ok(())
    }

    /// The angle at a time not far from the last synchronisation.
    pub fn angle(&self, at: SimTime) -> f64 {
        fold((at.ns() as f64 - self.zero_ns) / self.period_ns)
    }

    /// The first time not before `from` at which the spindle is at this angle.
    pub fn next(&self, angle: f64, from: SimTime) -> SimTime {
        let wait = fold(angle - self.angle(from)) * self.period_ns;
        from + SimDuration::from_ns(wait.round() as u64)
    }

    /// Angles at which blocks are answered, each the mean of so many reads. Blocks that are far
    /// from each other are measured together at no more cost.
    pub fn measure(
        &mut self,
        host: &mut Host<'_>,
        blocks: &[u64],
        reads: usize,
    ) -> Result<Vec<f64>, ExtractError> {
        let mut angles = vec![Vec::with_capacity(reads); blocks.len()];
        for _ in 0..reads {
            for (block, angles) in blocks.iter().zip(&mut angles) {
                self.keep(host)?;
                angles.push(self.angle(host.read_fresh(*block)?.end));
            }
        }
        Ok(angles.iter().map(|angles| mean_angle(angles)).collect())
    }
}

/// Blocks that displace each other, all over the drive, in random order.
fn references(host: &mut Host<'_>) -> Result<Vec<u64>, ExtractError> {
    let count = REFERENCES_MIN.max(host.shadow().reads + host.shadow().reads / 8 + 2);
    let mut references = Vec::with_capacity(count);
    while references.len() < count {
        references.push(host.elsewhere(&references)?);
    }
    Ok(references)
}

/// The period of which all spans are multiples: the lowest frequency at which they are in phase. At
/// a multiple of it they are so, too; at a part of it they are not, being random multiples.
fn period_of(spans_ns: &[f64]) -> Option<f64> {
    let longest_s = spans_ns.iter().copied().fold(0.0, f64::max) / 1e9;
    let step = 1.0 / (STEPS_A_TURN * longest_s);
    let count = ((FASTEST_HZ - SLOWEST_HZ) / step) as usize;
    let at = |index: usize| SLOWEST_HZ + step * index as f64;
    let phases: Vec<f64> = (0..count).map(|index| in_phase(spans_ns, at(index))).collect();
    let best = phases.iter().copied().fold(0.0, f64::max);
    let lowest = phases.iter().position(|&phase| phase > best * AS_GOOD)?;
    let peak = (lowest..count.min(lowest + STEPS_A_TURN as usize))
        .max_by(|a, b| phases[*a].total_cmp(&phases[*b]))?;
    (best > IN_PHASE).then(|| 1e9 / at(peak))
}

/// Mean resultant length of the spans' phases at a frequency.
fn in_phase(spans_ns: &[f64], hz: f64) -> f64 {
    let (mut x, mut y) = (0.0, 0.0);
    for span in spans_ns {
        let angle = TAU * signed(span / 1e9 * hz);
        x += libm::cos(angle);
        y += libm::sin(angle);
    }
    libm::hypot(x, y) / spans_ns.len() as f64
}

/// The period near a guess of which spans are multiples, by least squares.
fn fitted(spans_ns: &[f64], guess_ns: f64) -> f64 {
    let turns = |span: f64| (span / guess_ns).round();
    let above: f64 = spans_ns.iter().map(|&span| turns(span) * span).sum();
    let below: f64 = spans_ns.iter().map(|&span| turns(span).powi(2)).sum();
    above / below
}

#[cfg(test)]
mod tests {
    use super::*;
    use freewheel_units::Prng;

    #[test]
    fn a_period_is_found_in_spans_that_are_random_multiples_of_it() {
        let mut prng = Prng::new(1, "spans");
        for period in [3_000_000.0, 5_985_037.0, 8_333_333.0, 16_666_667.0] {
            let mut span = || {
                let turns = (prng.below(400) + 1) as f64;
                turns * period + prng.below(60_000) as f64 - 30_000.0
            };
            let spans: Vec<f64> = (0..60).map(|_| span()).collect();
            let found = fitted(&spans, period_of(&spans).unwrap());
            assert!((found / period - 1.0).abs() < 1e-4, "{found} for {period}");
        }
    }

    #[test]
    fn spans_without_a_period_have_none() {
        let mut prng = Prng::new(1, "spans");
        let spans: Vec<f64> = (0..60).map(|_| prng.below(2_000_000_000) as f64).collect();
        assert_eq!(period_of(&spans), None);
    }
}
