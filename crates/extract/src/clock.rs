//! The spindle as a clock: its period, and the angle at which an answer came.
//!
//! An answer comes a constant time after its block has passed the head, and jitter later. Seeks do
//! not matter, nor turns that were missed: folded by the period, the answers of a block lie at one
//! angle. The angles of a set of reference blocks, read again from time to time over all the
//! extraction, give the period; their mean keeps the phase.
//!
//! Answers that something else held up, a busy host or the drive itself, lie anywhere. Of all answers
//! those count that agree, and where too few do, there are more reads.

use std::collections::VecDeque;
use std::f64::consts::TAU;

use freewheel_units::{SimDuration, SimTime};

use super::passages::{self, Passage, TimingSpread, slope, turns_in};
use super::prober::{CommandDone, Prober};
use super::{ExtractError, readable};

/// Angles are turns in [0, 1): how far the spindle has turned when an answer comes.
pub(super) struct Clock {
    references: Vec<u64>,
    /// The angle of each; None of those that cannot be read.
    angles: Vec<Option<f64>>,
    /// Mean period of the whole extraction.
    period_ns: f64,
    /// Period of the last minutes.
    pace_ns: f64,
    /// A recent time at which the angle is zero.
    zero_ns: f64,
    synchronised: SimTime,
    session: u32,
    /// For each session when the angle was zero, and after how many turns.
    zeros: Vec<Vec<Passage>>,
    /// The phase is taken anew after this.
    every: SimDuration,
    /// Phase errors of the last times, beyond the variation of answers.
    strays_ns: VecDeque<f64>,
    /// Mean square of one answer's deviation, and from how many passes.
    jitter_square: f64,
    passes: f64,
}

/// References beyond those that displace each other from the buffer.
const REFERENCES_MIN: usize = 24;
/// Fastest and slowest spindles looked for, in turns a second: 3,000 to 20,000 rpm.
const SLOWEST_HZ: f64 = 50.0;
const FASTEST_HZ: f64 = 334.0;
/// Passes over some references whose answers give the first estimate.
const FIRST_PASSES: usize = 6;
/// And when they leave it open.
const FIRST_PASSES_MAX: usize = 12;
const FIRST_REFERENCES: usize = 12;
/// Longest pause before a read of the first passes: some turns of the slowest spindle.
const PAUSE_MAX: SimDuration = SimDuration::from_ms(100);
/// Before each of these passes there is one up to twice as long as a pass, which is assumed to take no
/// less than this.
const LONGER_PAUSE_MIN: SimDuration = SimDuration::from_ms(500);
/// Mean resultant length without which there is no rotation. Sixty spans at random reach half of one
/// at the best of all frequencies; a busy host may hold up one answer of five.
const IN_PHASE: f64 = 0.65;
/// Steps of the frequency in which the longest span gains a turn. Between two of them spans get out
/// of phase by a 32nd of a turn, which takes less than a hundredth off their resultant.
const STEPS_A_TURN: f64 = 16.0;
const AS_GOOD: f64 = 0.985;
/// The greatest multiple of the slowest spindle that is looked for.
const MULTIPLES_MAX: usize = 6;
/// A frequency that is nearly as good leaves the period open.
const NEARLY_AS_GOOD: f64 = 0.95;
/// The phase is taken anew after this, or after as long as there are answers, so that no turn is
/// miscounted; sooner where it was off, down to some times its length.
const SYNCHRONISE_EVERY: SimDuration = SimDuration::from_secs(20);
const SYNCHRONISE_EVERY_MIN: SimDuration = SimDuration::from_secs(2);
/// Error of the phase beside the spread of answers: a quarter of the narrowest sectors.
const STRAY_ALLOWED_NS: f64 = 500.0;
/// Number of errors of which the worst counts.
const STRAYS_OF: usize = 4;
/// A period from less than this is no better than that of the first passes, which took as long, and
/// a pace no better than the mean.
const PERIOD_SPAN_NS: f64 = 10e9;
const PACE_SPAN_NS: f64 = 60e9;
/// The period is known well enough, in parts of it: a fifth of a millionth.
const WELL_KNOWN: f64 = 2e-7;
const PERCENT: u64 = 100;
/// Answers of one pass lie within this part of a turn, or they were held up.
const PASS_WIDTH: f64 = 1.0 / 8.0;
/// Standard deviations beyond which an answer was held up, and deviations that are always allowed.
const HELD_UP: f64 = 4.0;
const ALWAYS_ALLOWED_NS: f64 = 4_000.0;
/// Reads are at most this many times the number asked for, until that number agrees.
const READS_FACTOR_MAX: usize = 8;

/// Difference of two angles, in [-0.5, 0.5).
pub(super) fn signed(turns: f64) -> f64 {
    turns - (turns + 0.5).floor()
}

/// An angle in [0, 1).
pub(super) fn fold(turns: f64) -> f64 {
    let within = turns - turns.floor();
    if within >= 1.0 { 0.0 } else { within }
}

/// The angles among these that agree: most of those that lie within `width`. The others were held up
/// by a cause outside the drive.
pub(super) fn agreeing(angles: &[f64], width: f64) -> Vec<usize> {
    let mut best = Vec::new();
    for &angle in angles {
        let found = near(angle, angles, width);
        if found.len() > best.len() {
            best = found;
        }
    }
    best
}

fn near(begin: f64, angles: &[f64], width: f64) -> Vec<usize> {
    (0..angles.len()).filter(|other| fold(angles[*other] - begin) <= width).collect::<Vec<_>>()
}

/// Mean of angles that lie within half a turn.
pub(super) fn mean_angle(angles: impl Iterator<Item = f64> + Clone) -> f64 {
    let first = angles.clone().next().unwrap_or_default();
    let (off, count) =
        angles.fold((0.0, 0.0), |(off, count), angle| (off + signed(angle - first), count + 1.0));
    fold(first + off / f64::max(count, 1.0))
}

impl Clock {
    /// Finds the period from answers alone.
    pub fn find(prober: &mut Prober<'_>) -> Result<Self, ExtractError> {
        prober.begin("rotation", FIRST_PASSES_MAX as u64);
        let mut clock = Self {
            references: references(prober)?,
            angles: Vec::new(),
            period_ns: 0.0,
            pace_ns: 0.0,
            zero_ns: 0.0,
            synchronised: prober.now(),
            session: prober.session(),
            zeros: vec![Vec::new()],
            every: SYNCHRONISE_EVERY,
            strays_ns: VecDeque::new(),
            jitter_square: 0.0,
            passes: 0.0,
        };
        let mut passes = vec![clock.pass(prober, PAUSE_MAX)?];
        let took = (prober.now() - clock.synchronised).max(LONGER_PAUSE_MIN);
        for pass in 1..FIRST_PASSES_MAX {
            prober.reached(pass as u64);
            // Passes of one length would be as good for periods that differ by a turn a pass.
            let pause = prober.below(2 * took.ns());
            prober.sleep(SimDuration::from_ns(pause));
            let answers = clock.pass(prober, PAUSE_MAX)?;
            if answers.iter().flatten().any(|done| done.session != clock.session) {
                // Times of two sessions have no common zero.
                clock.session = prober.session();
                passes = vec![clock.pass(prober, PAUSE_MAX)?];
                continue;
            }
            passes.push(answers);
            if passes.len() >= FIRST_PASSES {
                let spans = spans(&passes);
                if let Some(guess) = period_of(&spans) {
                    clock.begin(&passes, fitted(&spans, guess));
                    return Ok(clock);
                }
            }
        }
        Err(ExtractError::NoRotation)
    }

    /// Takes the angles of the references from the first passes.
    fn begin(&mut self, passes: &[Vec<Option<CommandDone>>], period_ns: f64) {
        (self.period_ns, self.pace_ns) = (period_ns, period_ns);
        self.zero_ns = passes[0].iter().flatten().next().map_or(0.0, |done| done.end.ns() as f64);
        self.angles = passes[0]
            .iter()
            .map(|done| done.map(|done| fold((done.end.ns() as f64 - self.zero_ns) / period_ns)))
            .collect();
        self.passed(&passes[0]);
        // Its deviation from itself is 0.
        (self.jitter_square, self.passes) = (0.0, 0.0);
        passes[1..].iter().for_each(|pass| self.passed(pass));
        // So early the pace was hardly known.
        (self.every, self.strays_ns) = (SYNCHRONISE_EVERY, VecDeque::new());
        // A host that has slept for long is later than one that has not: this is no evidence beside
        // the passes that follow.
        self.zeros = vec![Vec::new()];
    }

    pub fn period_ns(&self) -> f64 {
        self.period_ns
    }

    /// Standard deviation of one answer.
    pub fn jitter_ns(&self) -> f64 {
        (self.jitter_square / self.passes.max(1.0)).sqrt()
    }

    /// Uncertainty of the period.
    pub fn period_error_ns(&self) -> f64 {
        let passage = self.passage_error_ns();
        let longest = self.zeros.iter().map(|zeros| turns_in(zeros)).fold(1.0, f64::max);
        2.0 * passage / longest
    }

    /// Standard error of a passage.
    fn passage_error_ns(&self) -> f64 {
        self.jitter_ns() / (self.references.len() as f64).sqrt() + 1.0
    }

    /// Change of the period meanwhile; None where no change shows, or after a minute only.
    pub fn wander(&self) -> Option<TimingSpread> {
        passages::wander(&self.zeros, self.period_ns, self.passage_error_ns())
    }

    /// Phase error of the last times beyond that of a spindle that does not wander.
    pub fn stray_ns(&self) -> f64 {
        self.strays_ns.iter().copied().fold(0.0, f64::max)
    }

    /// Reads every reference once, with a random pause before each: in the same order at the same
    /// pace, all would come round after the same number of turns.
    fn pass(
        &self,
        prober: &mut Prober<'_>,
        pause_max: SimDuration,
    ) -> Result<Vec<Option<CommandDone>>, ExtractError> {
        self.references
            .iter()
            .map(|&block: &u64| {
                let pause = prober.below(pause_max.ns() + 1);
                prober.sleep(SimDuration::from_ns(pause));
                readable(prober.read_fresh(block))
            })
            .collect()
    }

    /// Takes period and phase anew if that is due.
    pub fn keep(&mut self, prober: &mut Prober<'_>) -> Result<(), ExtractError> {
        let zeros = self.zeros.last().map_or(&[][..], Vec::as_slice);
        let known = SimDuration::from_ns((turns_in(zeros) * self.period_ns) as u64);
        let again = self.synchronised + known.min(self.every);
        while prober.session() != self.session || prober.now() >= again {
            let pass = self.pass(prober, SimDuration::ZERO)?;
            let session = prober.session();
            if pass.iter().flatten().all(|done| done.session == session) {
                if session != self.session {
                    self.session = session;
                    self.zeros.push(Vec::new());
                }
                self.passed(&pass);
                break;
            }
        }
        Ok(())
    }

    /// Waits until the period is known well.
    pub fn settle(&mut self, prober: &mut Prober<'_>) -> Result<(), ExtractError> {
        prober.begin("rotation to the end", PERCENT);
        while self.period_error_ns() > WELL_KNOWN * self.period_ns {
            // Its error falls with the time over which it was followed.
            let known = WELL_KNOWN * self.period_ns / self.period_error_ns();
            prober.reached((known * PERCENT as f64) as u64);
            prober.sleep(SYNCHRONISE_EVERY);
            self.keep(prober)?;
        }
        Ok(())
    }

    /// Takes zero, pace and period from a pass. How many turns there were since the one before does
    /// not matter after a new session has begun.
    fn passed(&mut self, pass: &[Option<CommandDone>]) {
        let both = pass.iter().zip(&self.angles);
        let off = both.filter_map(|(done, angle)| Some(self.angle((*done)?.end) - (*angle)?));
        let off: Vec<f64> = off.map(fold).collect();
        let Some(last) = pass.iter().flatten().last() else { return };
        let (mean, square) = self.off_in_mean(&off);
        let late = signed(mean);
        let since = (last.end.ns() as f64 - self.zero_ns) / self.pace_ns;
        let turns = (since - late).floor();
        self.zero_ns += (turns + late) * self.pace_ns;
        self.synchronised = last.end;
        // The difference of two answers each.
        self.jitter_square += square * self.pace_ns.powi(2) / 2.0;
        self.passes += 1.0;
        if let Some(zeros) = self.zeros.last_mut() {
            let turns = zeros.last().map_or(0.0, |zero| zero.turns + turns);
            zeros.push(Passage { at_ns: self.zero_ns, turns });
            if zeros.len() > 1 {
                self.strayed((late * self.pace_ns).abs());
            }
        }
        self.take_pace();
    }

    /// Takes the phase the sooner anew the further it was off.
    fn strayed(&mut self, off_ns: f64) {
        let allowed = self.stray_allowed_ns();
        self.strays_ns.push_back((off_ns - allowed).max(0.0));
        if self.strays_ns.len() > STRAYS_OF {
            self.strays_ns.pop_front();
        }
        if off_ns > allowed {
            self.every = (self.every / 2).max(SYNCHRONISE_EVERY_MIN);
        } else if off_ns < allowed / 4.0 {
            // What is off grows with the square of the time.
            self.every = (self.every * 2).min(SYNCHRONISE_EVERY);
        }
    }

    /// Largest phase error, besides the variation of answers.
    pub fn phase_error_ns(&self) -> f64 {
        self.stray_allowed_ns() + self.stray_ns()
    }

    /// By what a phase is off whose spindle does not wander.
    fn stray_allowed_ns(&self) -> f64 {
        STRAY_ALLOWED_NS + HELD_UP * self.passage_error_ns()
    }

    /// Mean and mean square of the deviations that agree.
    fn off_in_mean(&self, off: &[f64]) -> (f64, f64) {
        let mut kept: Vec<f64> = agreeing(off, PASS_WIDTH).iter().map(|&at| off[at]).collect();
        loop {
            let mean = mean_angle(kept.iter().copied());
            let count = kept.len() as f64;
            let square = kept.iter().map(|off| from_mean(off, mean).powi(2)).sum::<f64>() / count;
            let allowed = HELD_UP * square.sqrt() + ALWAYS_ALLOWED_NS / self.pace_ns;
            let before = kept.len();
            kept.retain(|off| from_mean(off, mean).abs() <= allowed);
            if kept.len() == before {
                return (mean, square);
            }
        }
    }

    fn take_pace(&mut self) {
        let all: Vec<&[Passage]> = self.zeros.iter().map(Vec::as_slice).collect();
        let before_ns = self.period_ns;
        if all.iter().any(|zeros| span_ns(zeros, before_ns) >= PERIOD_SPAN_NS) {
            self.period_ns = slope(&all).unwrap_or(before_ns);
        }
        let zeros = all.last().copied().unwrap_or_default();
        let is_known = span_ns(zeros, before_ns) >= PACE_SPAN_NS || self.every < SYNCHRONISE_EVERY;
        let pace = passages::pace(zeros, self.stray_allowed_ns()).filter(|_| is_known);
        self.pace_ns = pace.unwrap_or(self.period_ns);
    }

    /// The angle at a time not far from the last synchronisation.
    pub fn angle(&self, at: SimTime) -> f64 {
        fold((at.ns() as f64 - self.zero_ns) / self.pace_ns)
    }

    /// True if a command was timed by this clock as it is.
    pub fn times(&self, done: &CommandDone) -> bool {
        done.session == self.session
    }

    /// The first time not before `from` at which the spindle is at this angle.
    pub fn next(&self, angle: f64, from: SimTime) -> SimTime {
        let wait = fold(angle - self.angle(from)) * self.pace_ns;
        from + SimDuration::from_ns(wait.round() as u64)
    }

    /// Angles at which blocks are answered, each the mean of this many reads that agree. Blocks that
    /// are far from each other are measured together at no more cost.
    pub fn measure(
        &mut self,
        prober: &mut Prober<'_>,
        blocks: &[u64],
        reads: usize,
    ) -> Result<Vec<f64>, ExtractError> {
        let mut angles = vec![Vec::with_capacity(reads); blocks.len()];
        let mut agreed: Vec<Vec<usize>> = vec![Vec::new(); blocks.len()];
        for _ in 0..READS_FACTOR_MAX * reads {
            let mut is_settled = true;
            for (at, &block) in blocks.iter().enumerate() {
                if agreed[at].len() >= reads && 2 * agreed[at].len() > angles[at].len() {
                    continue;
                }
                is_settled = false;
                self.keep(prober)?;
                // How late a host notices an answer depends on how long it has waited: from a random
                // place it is the same for all blocks.
                prober.read_elsewhere(&[block])?;
                let done = prober.read_fresh(block)?;
                if self.times(&done) {
                    angles[at].push(self.angle(done.end));
                    agreed[at] = self.agreeing(&angles[at]);
                }
            }
            if is_settled {
                break;
            }
        }
        Ok(angles.iter().zip(&agreed).map(mean).collect())
    }

    fn agreeing(&self, angles: &[f64]) -> Vec<usize> {
        let width = 2.0 * (HELD_UP * self.jitter_ns() + self.stray_ns()) + ALWAYS_ALLOWED_NS;
        agreeing(angles, width / self.pace_ns)
    }
}

fn from_mean(off: &f64, mean: f64) -> f64 {
    signed(off - mean)
}

fn span_ns(zeros: &[Passage], before_ns: f64) -> f64 {
    turns_in(zeros) * before_ns
}

fn mean((angles, agreed): (&Vec<f64>, &Vec<usize>)) -> f64 {
    mean_angle(agreed.iter().map(|&at| angles[at]))
}

/// From the first pass over some references to each of the others.
fn spans(passes: &[Vec<Option<CommandDone>>]) -> Vec<f64> {
    let mut spans = Vec::new();
    for pass in &passes[1..] {
        // All over the pass, so that they are of many lengths.
        let both = passes[0].iter().zip(pass).step_by(pass.len().div_ceil(FIRST_REFERENCES));
        spans.extend(both.filter_map(|(a, b)| Some(((*b)?.end - (*a)?.end).ns() as f64)));
    }
    spans
}

/// Blocks that displace each other, all over the drive, in random order.
fn references(prober: &mut Prober<'_>) -> Result<Vec<u64>, ExtractError> {
    let count = REFERENCES_MIN.max(prober.shadow().reads + prober.shadow().reads / 8 + 2);
    let mut references = Vec::with_capacity(count);
    while references.len() < count {
        references.push(prober.elsewhere(&references)?);
    }
    Ok(references)
}

/// The period of which all spans are multiples: the lowest frequency at which they are in phase. At
/// a multiple of it they are so, too; at a part of it they are not, being random multiples. None when
/// they are not in phase anywhere, or at another frequency nearly as well.
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
    // Where answers were held up, a multiple may be better by chance.
    let parts = (2..=MULTIPLES_MAX).rev().map(|times| at(peak) / times as f64);
    let mut parts = parts.filter(|hz| *hz >= SLOWEST_HZ);
    let lowest_hz = parts.find(|&hz| most_are_in_phase(spans_ns, hz)).unwrap_or(at(peak));
    // Others that are nearly as good have to be multiples.
    let is_other = |index: usize| {
        let times = (at(index) / lowest_hz).round().max(1.0);
        (at(index) - times * lowest_hz).abs() > times * STEPS_A_TURN * step
    };
    let is_open = (0..count).any(|index| phases[index] > best * NEARLY_AS_GOOD && is_other(index));
    (best > IN_PHASE && !is_open).then(|| 1e9 / lowest_hz)
}

/// True if four fifths of the spans are in phase. At half of a frequency they are half a turn apart.
fn most_are_in_phase(spans_ns: &[f64], hz: f64) -> bool {
    let turns: Vec<f64> = spans_ns.iter().map(|span| fold(span / 1e9 * hz)).collect();
    5 * agreeing(&turns, 0.25).len() >= 4 * spans_ns.len()
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

/// The period near a guess of which spans are multiples, by least squares. The worst tenth is left
/// out: an answer that was held up would count for much.
fn fitted(spans_ns: &[f64], guess_ns: f64) -> f64 {
    let mut best = spans_ns.to_vec();
    best.sort_by(|a, b| off(a, guess_ns).total_cmp(&off(b, guess_ns)));
    best.truncate(spans_ns.len() - spans_ns.len() / 10);
    let above: f64 = best.iter().map(|&span| turns(span, guess_ns) * span).sum();
    let below: f64 = best.iter().map(|&span| turns(span, guess_ns).powi(2)).sum();
    above / below
}

fn off(span: &f64, guess_ns: f64) -> f64 {
    signed(span / guess_ns).abs()
}

fn turns(span: f64, guess_ns: f64) -> f64 {
    (span / guess_ns).round()
}

#[cfg(test)]
mod tests {
    use super::*;
    use freewheel_units::Prng;

    #[test]
    fn period_is_found_in_random_multiples() {
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
    fn period_is_found_despite_held_up_answers() {
        let mut prng = Prng::new(2, "spans");
        for seed in 0..40 {
            let period = 3_000_000.0 + 340_000.0 * f64::from(seed);
            let mut span = || {
                let turns = (prng.below(2000) + 1) as f64;
                let held_up = if prng.below(10) == 0 { prng.below(8_000_000) } else { 0 };
                turns * period + (prng.below(30_000) + held_up) as f64
            };
            let spans: Vec<f64> = (0..60).map(|_| span()).collect();
            let found = fitted(&spans, period_of(&spans).unwrap());
            assert!((found / period - 1.0).abs() < 1e-4, "{found} for {period}");
        }
    }

    #[test]
    fn ambiguous_spans_leave_period_open() {
        // All but multiples of 5 s: a turn more in these is a frequency of 0.2 Hz more.
        let spans: Vec<f64> = (0..60).map(|at| f64::from(at % 6 + 1) * 5e9).collect();
        assert_eq!(period_of(&spans), None);
    }

    #[test]
    fn spans_without_a_period_have_none() {
        let mut prng = Prng::new(1, "spans");
        let spans: Vec<f64> = (0..60).map(|_| prng.below(2_000_000_000) as f64).collect();
        assert_eq!(period_of(&spans), None);
    }
}
