//! Time at which a round will end.
//!
//! Blocks come in three ways, and each has its rate as a function of the part `x` of the round that
//! remains:
//! - in rotational gaps: while all is wanted a gap is full of it, and the less is left, the less of it
//!   passes under the head (osdi00 figure 9: the last twentieth of the blocks takes a third of the
//!   time): `g / (1 - s + s / sqrt(x))`. A path at a bounded speed visits points in proportion to the
//!   square root of their density (Hammersley 1972), which holds where a gap takes single blocks from
//!   where they lie; the larger the drive, the later it begins, which is what the part `s` says. It
//!   comes from the rates seen in this round, and from prior knowledge ([`TailModel`]) as long as
//!   little has been seen;
//! - with foreground requests that come anyway, before whose writes they are read or which hold them:
//!   in proportion to the blocks that remain, `c x`;
//! - by foreground requests made for them, of a promoted task or in idle time: at a rate that stays, `h`.
//!
//! `g`, `c` and `h` come from the last third of what has been read. The rest takes the integral over
//! the remaining `x` of one over the sum of the three.

use freewheel_units::{SimDuration, SimTime};

/// Points of a round that are remembered: one for each such part of it.
const PARTS: u64 = 256;

/// And at its beginning one for each such part of what has been read: then margins are learned and
/// clients come, and what was slow for that is soon forgotten.
const PARTS_OF_READ: u64 = 8;

/// Part of the read blocks, the last ones, that gives the rates now.
const RECENT: f64 = 0.3;

/// Deliveries before the first estimate: by chance alone their number is off by a tenth.
const DELIVERIES_MIN: u64 = 100;

/// Weight of the prior, as variance of `1 / sqrt(x)` that a round has shown: about that of a half of a
/// round.
const TRUST: f64 = 0.01;

/// Steps to the part `s`, which is no linear one: the third hardly moves it.
const FIT_STEPS: u32 = 4;

/// Steps of the integral, equally long on a logarithmic scale.
const STEPS: u32 = 64;

/// An estimate beyond a year is none.
const LONGEST_NS: f64 = 365.0 * 86_400e9;

/// Percentages at which what was expected is kept.
const MARKS: [u8; 8] = [1, 5, 10, 25, 50, 75, 90, 95];

/// Model of the slowing of a scan in gaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TailModel {
    /// Every piece that passes may be taken: a task that verifies holds none, or memory holds all.
    #[default]
    Even,
    /// Blocks that straddle tracks are begun a few at a time, for want of memory: then the last of the
    /// blocks are of these, and nearly each takes a whole gap.
    Rationed,
}

impl TailModel {
    /// The part `s` that is taken before anything is known. With it a round takes `1 + s` times as long
    /// as it would at the rate of its beginning: `freewheel reproduce beyond.ends` prints both.
    fn scarcity(self) -> f64 {
        match self {
            Self::Even => 0.25,
            Self::Rationed => 0.67,
        }
    }
}

/// Prediction made when a part of a round was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PredictionMark {
    /// Percentage of the round that had been read.
    pub percent: u8,
    /// Time of the prediction.
    pub at: SimTime,
    /// Time at which the end was expected.
    pub end: SimTime,
}

/// Progress of a round at a time.
#[derive(Debug, Clone, Copy)]
struct Point {
    at: SimTime,
    left: u64,
    /// Blocks that had come with requests made anyway, and by such as were made for them.
    met: u64,
    asked: u64,
}

/// Blocks a nanosecond, by how they come, while all is wanted.
#[derive(Debug, Clone, Copy)]
struct Rates {
    in_gaps: f64,
    met: f64,
    asked: f64,
    /// The part `s`.
    scarcity: f64,
}

/// Time that a part of the round took in gaps.
struct GapRateSample {
    /// Part of the round that was left.
    left: f64,
    /// Logarithm of nanoseconds a block.
    slowness: f64,
    /// Part of the round that was read.
    weight: f64,
}

/// Observations of the course of a round.
#[derive(Debug, Clone)]
pub struct Estimate {
    total: u64,
    /// Blocks in one delivery.
    unit: u64,
    wear: TailModel,
    begun: SimTime,
    /// Foreground requests read the rest of the round.
    is_steady: bool,
    met: u64,
    asked: u64,
    /// First the beginning of the round, or of its steady part.
    seen: Vec<Point>,
    predictions: Vec<PredictionMark>,
}

impl Estimate {
    /// A round of `total` blocks begins; a delivery has `unit` blocks.
    pub fn new(total: u64, unit: u64, now: SimTime) -> Self {
        let seen = vec![Point { at: now, left: total, met: 0, asked: 0 }];
        let (wear, is_steady, predictions) = (TailModel::default(), false, Vec::new());
        Self { total, unit, wear, begun: now, is_steady, met: 0, asked: 0, seen, predictions }
    }

    /// From now on foreground requests read the remaining `left` blocks.
    pub fn steady(&mut self, left: u64, now: SimTime) {
        self.is_steady = true;
        self.watch(left, now);
    }

    /// Forgets the rates seen so far, for example those before all of a round was wanted.
    pub fn watch(&mut self, left: u64, now: SimTime) {
        self.seen = vec![self.point(left, now)];
    }

    /// Adds the planner's model of how the round slows.
    pub fn wears(&mut self, wear: TailModel) {
        self.wear = wear;
    }

    /// Counts blocks that came with a foreground request made for another reason, or before its write.
    pub fn met(&mut self, blocks: u64) {
        self.met += blocks;
    }

    /// Counts blocks that a foreground request made for them has read.
    pub fn asked(&mut self, blocks: u64) {
        self.asked += blocks;
    }

    /// Another round begins.
    pub fn begin(&mut self, total: u64, now: SimTime) {
        let Self { unit, wear, is_steady, .. } = *self;
        *self = Self { wear, is_steady, ..Self::new(total, unit, now) };
    }

    /// Time at which the round began.
    pub fn begun(&self) -> SimTime {
        self.begun
    }

    /// Predictions made at certain parts of the round.
    pub fn predictions(&self) -> &[PredictionMark] {
        &self.predictions
    }

    fn point(&self, left: u64, at: SimTime) -> Point {
        Point { at, left, met: self.met, asked: self.asked }
    }

    /// Notes the blocks that are left now.
    pub fn at(&mut self, left: u64, now: SimTime) {
        let first = self.seen[0].left;
        let last = self.seen.last().map_or(first, |point| point.left);
        let read = first.saturating_sub(left);
        let step = (read / PARTS_OF_READ).clamp(1, self.total.div_ceil(PARTS));
        if last.saturating_sub(left) < step {
            return;
        }
        self.seen.push(self.point(left, now));
        let percent = 100 * u128::from(self.total - left) / u128::from(self.total);
        let passed = MARKS.iter().rev().copied().find(|&mark| percent >= u128::from(mark));
        let told = self.predictions.last().map(|predictions| predictions.percent);
        if let Some(percent) = passed.filter(|_| passed > told)
            && let Some(end) = self.end(left, now)
        {
            self.predictions.push(PredictionMark { percent, at: now, end });
        }
    }

    /// The expected end of the round; None while too little has been read to tell.
    pub fn end(&self, left: u64, now: SimTime) -> Option<SimTime> {
        let first = self.seen[0];
        let read = first.left.saturating_sub(left);
        let enough = (DELIVERIES_MIN * self.unit).min(self.total.div_ceil(100));
        if read < enough.max(1) || now <= first.at {
            return None;
        }
        // The last third of the blocks read, or all.
        let since = left as f64 + RECENT * read as f64;
        let recent = self.seen.iter().rev().find(|point| point.left as f64 >= since);
        let rest = self.rest(recent.unwrap_or(&first), left, now);
        (rest < LONGEST_NS).then(|| now + SimDuration::from_ns(rest as u64))
    }

    /// Nanoseconds until the end, by the rates since `then`.
    fn rest(&self, then: &Point, left: u64, now: SimTime) -> f64 {
        if left == 0 {
            return 0.0;
        }
        let scarcity = if self.is_steady { 0.0 } else { self.scarcity() };
        let elapsed = now.saturating_since(then.at).ns().max(1) as f64;
        let (met, asked) = (self.met - then.met, self.asked - then.asked);
        let in_gaps = (then.left - left).saturating_sub(met + asked);
        let [left, middle] = [left as f64, (then.left + left) as f64 / 2.0];
        let total = self.total as f64;
        let rates = Rates {
            in_gaps: in_gaps as f64 / elapsed * slowing(scarcity, middle / total),
            met: met as f64 / elapsed / (middle / total),
            asked: asked as f64 / elapsed,
            scarcity,
        };
        total * rates.integral(left / total, left / self.unit as f64)
    }

    /// Fall of the rate in gaps as blocks run out: the part `s`, by Gauss and Newton. By libm and not the
    /// platform's functions: the same end on every machine.
    fn scarcity(&self) -> f64 {
        let before = self.wear.scarcity();
        let seen = self.seen_in_gaps();
        let weight: f64 = seen.iter().map(|seen| seen.weight).sum();
        if weight <= 0.0 {
            return before;
        }
        let step = |scarcity: f64| {
            // Logarithms beyond their prediction, and how they rise with it.
            let points: Vec<(f64, f64, f64)> = seen
                .iter()
                .map(|seen| {
                    let slowing = slowing(scarcity, seen.left);
                    let slope = (1.0 / libm::sqrt(seen.left) - 1.0) / slowing;
                    (slope, seen.slowness - libm::log(slowing), seen.weight)
                })
                .collect();
            let (x, y) =
                (mean(|point| point.0, &points, weight), mean(|point| point.1, &points, weight));
            let sum = |of: &dyn Fn(f64, f64) -> f64| {
                points.iter().map(|point| of(point.0 - x, point.1 - y) * point.2).sum::<f64>()
            };
            let wrong = sum(&|x, y| x * y) + TRUST * (before - scarcity);
            (scarcity + wrong / (sum(&|x, _| x * x) + TRUST)).clamp(0.0, 1.0)
        };
        (0..FIT_STEPS).fold(before, |scarcity, _| step(scarcity))
    }

    /// Samples of the gaps from each point to the next.
    fn seen_in_gaps(&self) -> Vec<GapRateSample> {
        let total = self.total as f64;
        let seen = self.seen.windows(2).filter_map(|pair| {
            let [from, to] = pair else { return None };
            let others = to.met - from.met + to.asked - from.asked;
            let blocks = from.left.saturating_sub(to.left).saturating_sub(others) as f64;
            let elapsed = to.at.saturating_since(from.at).ns();
            (elapsed > 0 && blocks > 0.0).then(|| GapRateSample {
                left: (from.left + to.left) as f64 / 2.0 / total,
                slowness: libm::log(elapsed as f64 / blocks),
                weight: blocks / total,
            })
        });
        seen.collect()
    }
}

fn mean(of: fn(&(f64, f64, f64)) -> f64, points: &[(f64, f64, f64)], weight: f64) -> f64 {
    points.iter().map(|point| of(point) * point.2).sum::<f64>() / weight
}

/// Time that a block takes in gaps where only the part `x` is left, as a multiple of the first block's.
fn slowing(scarcity: f64, x: f64) -> f64 {
    1.0 - scarcity + scarcity / libm::sqrt(x)
}

impl Rates {
    /// Nanoseconds for each block of the round that the last part `left` takes, in `deliveries` of
    /// them: the last of them comes at the rate at which it is the only one.
    fn integral(&self, left: f64, deliveries: f64) -> f64 {
        let last = 1.0 / deliveries.max(1.0);
        let steps = (0..STEPS).map(|step| {
            let (above, below) = (bound(step, left, last), bound(step + 1, left, last));
            (above - below) / self.rate(libm::sqrt(above * below))
        });
        steps.sum::<f64>() + left * last / self.rate(left * last)
    }

    fn rate(&self, x: f64) -> f64 {
        self.in_gaps / slowing(self.scarcity, x) + self.met * x + self.asked
    }
}

fn bound(step: u32, left: f64, last: f64) -> f64 {
    left * libm::pow(last, f64::from(step) / f64::from(STEPS))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A round whose blocks take `slowing` times as long as the first, by the part that is left; told
    /// of in small steps.
    fn course(wear: TailModel, slowing: impl Fn(f64) -> f64) -> (Estimate, SimTime) {
        let total = 100_000;
        let mut estimate = Estimate::new(total, 1, SimTime::ZERO);
        estimate.wears(wear);
        let mut ns = 0.0;
        for left in (0..total).rev() {
            ns += 1e6 * slowing((left as f64 + 0.5) / total as f64);
            estimate.at(left, SimTime::from_ns(ns as u64));
        }
        (estimate, SimTime::from_ns(ns as u64))
    }

    #[test]
    fn estimate_of_slowing_round_holds_from_half() {
        let even = [0.0, 0.1, 0.25, 0.5, 0.7].map(|scarcity| (TailModel::Even, scarcity));
        let rationed = [0.4, 0.67, 1.0].map(|scarcity| (TailModel::Rationed, scarcity));
        for (wear, scarcity) in even.into_iter().chain(rationed) {
            let (estimate, end) = course(wear, |x| slowing(scarcity, x));
            for predictions in
                estimate.predictions().iter().filter(|predictions| predictions.percent >= 50)
            {
                // What is known beforehand counts little in the end.
                let most = if predictions.percent < 90 { 0.25 } else { 0.1 };
                let error = error(predictions, end);
                assert!(error.abs() < most, "{scarcity} at {} %: {error:.2}", predictions.percent);
            }
        }
    }

    #[test]
    fn estimate_of_power_law_round_is_close() {
        for exponent in [0.0, 0.2, 0.4, 0.5] {
            let (estimate, end) = course(TailModel::Even, |x| libm::pow(x, -exponent));
            for predictions in
                estimate.predictions().iter().filter(|predictions| predictions.percent >= 50)
            {
                let error = error(predictions, end);
                assert!(error.abs() < 0.5, "{exponent} at {} %: {error:.2}", predictions.percent);
            }
        }
    }

    /// Largest error, as a share of the rest of the time.
    fn error(predictions: &PredictionMark, end: SimTime) -> f64 {
        let [rest, expected] =
            [end, predictions.end].map(|end| end.ns() as f64 - predictions.at.ns() as f64);
        expected / rest - 1.0
    }

    #[test]
    fn foreground_requests_end_as_expected() {
        let (mut estimate, end) = course(TailModel::Even, |x| slowing(0.4, x));
        estimate.begin(1000, end);
        estimate.at(600, end + SimDuration::from_ms(4000));
        assert!(estimate.end(600, end + SimDuration::from_ms(4000)).is_some());
        let turn = end + SimDuration::from_ms(5000);
        estimate.steady(500, turn);
        estimate.at(400, turn + SimDuration::from_ms(100));
        let expected = estimate.end(400, turn + SimDuration::from_ms(100)).unwrap();
        let rest = expected.saturating_since(turn).ns();
        assert!(rest.abs_diff(500_000_000) <= 1, "{rest}");
    }

    #[test]
    fn estimate_is_silent_without_data() {
        let estimate = Estimate::new(100, 1, SimTime::from_ns(5));
        assert_eq!(estimate.end(100, SimTime::from_ns(9)), None);
        assert_eq!(estimate.end(50, SimTime::from_ns(5)), None);
    }

    #[test]
    fn estimate_is_silent_for_stalled_round() {
        let estimate = Estimate::new(1 << 40, 1, SimTime::ZERO);
        let now = SimTime::from_ns(1 << 40);
        assert_eq!(estimate.end((1 << 40) - 1, now), None);
    }

    /// Blocks come in gaps, by chance with requests that are there anyway, and asked for: told of in
    /// steps of as much as comes in a time, against the sum of those steps.
    #[test]
    fn estimate_continues_each_source_of_blocks() {
        for (in_gaps, met, asked) in
            [(1.0, 0.0, 0.0), (0.2, 2.0, 0.0), (0.0, 0.0, 1.0), (0.1, 1.0, 0.3)]
        {
            let total = 1_000_000_u64;
            let mut estimate = Estimate::new(total, 1, SimTime::ZERO);
            let (mut left, mut ms, mut told) = (total as f64, 0, None);
            let mut owed = [0.0, 0.0];
            while left >= 1.0 {
                ms += 100;
                let x = left / total as f64;
                let came = [met * x, asked].map(|rate| 1000.0 * rate);
                left -=
                    came[0] + came[1] + 1000.0 * in_gaps / slowing(TailModel::Even.scarcity(), x);
                owed = [owed[0] + came[0], owed[1] + came[1]];
                estimate.met(owed[0] as u64);
                estimate.asked(owed[1] as u64);
                owed = owed.map(f64::fract);
                let now = SimTime::from_ns(ms * 1_000_000);
                estimate.at(left.max(0.0) as u64, now);
                if told.is_none() && left < 0.98 * total as f64 {
                    told = estimate.end(left as u64, now);
                }
            }
            let error = told.unwrap().ns() as f64 / (ms as f64 * 1e6) - 1.0;
            assert!(error.abs() < 0.05, "{in_gaps} {met} {asked}: {error:.3}");
        }
    }

    #[test]
    fn estimate_forgets_slow_beginning() {
        let mut estimate = Estimate::new(1_000_000, 1, SimTime::ZERO);
        // Ten seconds without clients, and then a block a millisecond.
        for read in 1..=2000 {
            estimate.at(1_000_000 - read, SimTime::from_ns((10_000 + read) * 1_000_000));
        }
        let now = SimTime::from_ns(12_000 * 1_000_000);
        let end = estimate.end(998_000, now).unwrap().saturating_since(now);
        let rest = end.ns() as f64 / (998_000.0 * 1e6) / (1.0 + TailModel::Even.scarcity());
        assert!((rest - 1.0).abs() < 0.05, "{rest}");
        // What came before all was wanted is.
        estimate.watch(998_000, now);
        assert_eq!(estimate.end(998_000, now + SimDuration::from_ms(1)), None);
    }

    #[test]
    fn estimate_forgets_previous_round() {
        let (mut estimate, end) = course(TailModel::Even, |x| slowing(0.3, x));
        estimate.begin(1000, end);
        assert!(estimate.predictions().is_empty());
        assert_eq!(estimate.end(1000, end + SimDuration::from_ms(1)), None);
    }
}
