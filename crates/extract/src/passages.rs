//! Speed of a spindle, from the times when its angle was zero: in the mean, recently, and its change.

use freewheel_units::SimDuration;

/// A passage of angle zero.
#[derive(Debug, Clone, Copy)]
pub(super) struct Passage {
    pub at_ns: f64,
    /// Since the session began.
    pub turns: f64,
}

/// Passages at most from which the pace is taken: five minutes where the speed keeps still.
const PACE_OF: usize = 16;
/// And at least; fewer lie on any line.
const PACE_OF_MIN: usize = 3;
/// This number shows whether the speed changes evenly; fewer are taken to lie on a line.
const TREND_OF: usize = 8;
/// Pieces into which the passages of a session are cut to see how its speed changes, and the shortest of
/// them: the pace of one is known to some hundredths of a millionth.
const PIECES: usize = 12;
const PIECE_NS: f64 = 30e9;
/// Standard errors by which two paces differ.
const SURE: f64 = 5.0;
/// A speed that keeps to a line by this part of its change changes steadily.
const STEADY: f64 = 0.1;

/// Change of the time of a turn, in parts of its mean.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct TimingSpread {
    /// Shortest turns among the pieces of the longest session; `most` has the longest.
    pub least: f64,
    pub most: f64,
    /// From the first piece to the last, if it changed steadily.
    pub change: Option<f64>,
    /// From the middle of the first piece to that of the last.
    pub within: SimDuration,
}

/// Turns between the first and the last passage.
pub(super) fn turns_in(passages: &[Passage]) -> f64 {
    passages.last().map_or(0.0, |last| last.turns - passages[0].turns)
}

/// Time a turn, by least squares over all sessions; None without two passages of one.
pub(super) fn slope(sessions: &[&[Passage]]) -> Option<f64> {
    let (mut above, mut below) = (0.0, 0.0);
    for passages in sessions {
        // From the first, so that large numbers do not take the nanoseconds away.
        let Some(first) = passages.first() else { continue };
        let count = passages.len() as f64;
        let turns = passages.iter().map(|passage| passage.turns).sum::<f64>() / count;
        let time = passages.iter().map(|passage| since(passage, first)).sum::<f64>() / count;
        for passage in *passages {
            above += (passage.turns - turns) * (since(passage, first) - time);
            below += (passage.turns - turns).powi(2);
        }
    }
    (below > 0.0).then(|| above / below)
}

fn since(passage: &Passage, first: &Passage) -> f64 {
    passage.at_ns - first.at_ns
}

/// Time a turn at the last of these passages: from the last ones that lie within `off_ns` of a line,
/// or of a parabola where they are enough for one. None without two of them.
pub(super) fn pace(passages: &[Passage], off_ns: f64) -> Option<f64> {
    let counts = (PACE_OF_MIN..=passages.len().min(PACE_OF)).rev();
    let mut fits = counts.filter_map(|count| Curve::through(&passages[passages.len() - count..]));
    let fitting = fits.find(|curve| curve.off_ns <= off_ns).map(|curve| curve.at_end);
    fitting.or_else(|| slope(&[&passages[passages.len() - passages.len().min(PACE_OF_MIN)..]]))
}

/// A line or a parabola through passages.
struct Curve {
    /// Time a turn at the last.
    at_end: f64,
    /// The farthest of them lies so far from it.
    off_ns: f64,
}

impl Curve {
    /// By least squares over orthogonal polynomials.
    fn through(passages: &[Passage]) -> Option<Self> {
        let count = passages.len() as f64;
        let mean =
            |value: &dyn Fn(&Passage) -> f64| passages.iter().map(value).sum::<f64>() / count;
        let (first, last) = (passages.first()?, passages.last()?);
        let middle = mean(&|passage| passage.turns);
        let x = |passage: &Passage| passage.turns - middle;
        // Less the turns at the mean pace, so that no digit is lost.
        let even = (last.at_ns - first.at_ns) / (last.turns - first.turns).max(1.0);
        let time = |passage: &Passage| passage.at_ns - first.at_ns - x(passage) * even;
        let (time_mean, spread) = (mean(&time), mean(&|p| x(p).powi(2)));
        let skew = mean(&|p| x(p).powi(3)) / spread;
        let square = |passage: &Passage| x(passage).powi(2) - skew * x(passage) - spread;
        let line = mean(&|p| time(p) * x(p)) / spread;
        let is_bent = passages.len() >= TREND_OF;
        let bend = mean(&|p| time(p) * square(p)) / mean(&|p| square(p).powi(2));
        let bend = if is_bent { bend } else { 0.0 };
        let off_ns = passages
            .iter()
            .map(|p| (time(p) - time_mean - line * x(p) - bend * square(p)).abs())
            .fold(0.0, f64::max);
        let at_end = even + line + bend * (2.0 * x(last) - skew);
        (spread > 0.0).then_some(Self { at_end, off_ns })
    }
}

/// Change of the speed in the longest session, by passages of this standard error; None where that took no
/// two pieces, or where they do not tell.
pub(super) fn wander(
    sessions: &[Vec<Passage>],
    period_ns: f64,
    error_ns: f64,
) -> Option<TimingSpread> {
    let longest = sessions.iter().max_by(|a, b| turns_in(a).total_cmp(&turns_in(b)))?;
    let whole_ns = turns_in(longest) * period_ns;
    let piece = (whole_ns / PIECES as f64).max(PIECE_NS) / period_ns;
    let mut paces: Vec<(f64, f64)> = Vec::new();
    let mut rest = &longest[..];
    while let Some(first) = rest.first() {
        let Some(end) = rest.iter().position(|p| p.turns - first.turns >= piece) else { break };
        // The last passage of a piece is the first of the next.
        let middle = f64::midpoint(first.at_ns, rest[end].at_ns);
        paces.push((middle, slope(&[&rest[..=end]])? / period_ns - 1.0));
        rest = &rest[end..];
    }
    let [(begin, first), .., (end, last)] = paces[..] else { return None };
    let (least, most) =
        paces.iter().fold((f64::MAX, f64::MIN), |(a, b), &(_, pace)| (a.min(pace), b.max(pace)));
    // The difference of two pieces' paces, of two passages each.
    if most - least <= SURE * 2.0 * error_ns / (piece * period_ns) {
        return None;
    }
    let change = last - first;
    let off = paces
        .iter()
        .map(|&(at, pace)| (pace - (first + change * (at - begin) / (end - begin))).abs())
        .fold(0.0, f64::max);
    let change = Some(change).filter(|change| off <= STEADY * change.abs());
    Some(TimingSpread { least, most, change, within: SimDuration::from_ns((end - begin) as u64) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: f64 = 6_000_000.0;

    /// Passages every this many seconds of a spindle that is late by a function of the time in seconds.
    fn passages(count: usize, every_s: f64, late_ns: impl Fn(f64) -> f64) -> Vec<Passage> {
        let turns = |at: usize| (at as f64 * every_s * 1e9 / PERIOD).round();
        let at = |turns: f64| turns * PERIOD + late_ns(turns * PERIOD / 1e9);
        (0..count).map(turns).map(|turns| Passage { at_ns: at(turns), turns }).collect()
    }

    /// Parts of a million.
    fn ppm(pace: f64) -> f64 {
        (pace / PERIOD - 1.0) * 1e6
    }

    #[test]
    fn pace_of_changing_spindle_is_latest() {
        // By a hundredth of a millionth a second.
        let all = passages(16, 20.0, |s| 5.0 * s * s);
        assert!((ppm(pace(&all, 100.0).unwrap()) - 3.0).abs() < 0.02);
    }

    #[test]
    fn pace_ignores_speed_before_turning_back() {
        let turn =
            |s: f64| if s < 200.0 { -8.0 * s * s } else { 8.0 * (s - 200.0).powi(2) - 3200.0 * s };
        let all = passages(16, 20.0, turn);
        let end = -3.2 + 16e-3 * 100.0;
        let found = ppm(pace(&all, 1000.0).unwrap());
        assert!((found - end).abs() < 0.4, "{found} for {end}");
        // All of them together do not show it.
        assert!((ppm(slope(&[&all]).unwrap()) - end).abs() > 0.6);
    }

    #[test]
    fn steady_change_is_told_from_wander() {
        let steady = vec![passages(60, 20.0, |s| -0.5 * s * s)];
        let period = slope(&[&steady[0]]).unwrap();
        let found = wander(&steady, period, 1.0).unwrap();
        let hours = found.within.as_secs_f64() / 3600.0;
        assert!((found.change.unwrap() * 1e6 / hours + 3.6).abs() < 0.01, "{found:?}");

        let back = vec![passages(60, 20.0, |s| 300_000.0 * libm::sin(s / 100.0))];
        let found = wander(&back, PERIOD, 1.0).unwrap();
        assert_eq!(found.change, None);
        assert!(found.least < -2.5e-6 && found.most > 2.5e-6, "{found:?}");
        let shaken =
            vec![passages(
                60,
                20.0,
                |s| if (s as u64).is_multiple_of(40) { 1000.0 } else { -1000.0 },
            )];
        assert_eq!(wander(&shaken, PERIOD, 1000.0), None, "no more than passages are off");
        assert_eq!(wander(&[passages(3, 10.0, |s| s * s)], PERIOD, 1.0), None, "half a minute");
    }
}
