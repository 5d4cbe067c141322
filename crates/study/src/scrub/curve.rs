//! From bursts to the course of a whole scan.

use freewheel_sim::background::GapShares;

use super::burst::Burst;

/// Progress and cost of a scan.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct At {
    /// Blocks that are still wanted.
    pub left: u64,
    /// Rotational latency of the foreground until then.
    pub potential_ns: f64,
}

/// The course of a scan: the beginning and end of every burst.
pub(super) fn course(bursts: &[Burst]) -> Vec<At> {
    let mut course = Vec::with_capacity(2 * bursts.len());
    let mut potential_ns = 0.0;
    let mut before: Option<&Burst> = None;
    for burst in bursts {
        if let Some(before) = before {
            potential_ns += leap_ns(before, burst, burst.from);
        }
        course.push(At { left: burst.from, potential_ns });
        potential_ns += burst.time.potential_ns as f64;
        course.push(At { left: burst.to, potential_ns });
        before = Some(burst);
    }
    course
}

/// Blocks read in gaps in a nanosecond of latency.
pub(super) fn rate(burst: &Burst) -> f64 {
    burst.in_gaps as f64 / burst.time.potential_ns.max(1) as f64
}

/// Time from which the rate is less than this part of the first burst's for good: the end of the last burst
/// that has more. None when the last one of all has.
pub(super) fn faded(bursts: &[Burst], part: f64) -> Option<At> {
    let least = part * rate(bursts.first()?);
    let last = bursts.iter().rposition(|burst| rate(burst) >= least)?;
    (last + 1 < bursts.len()).then(|| course(&bursts[..=last])[2 * last + 1])
}

/// Seconds until all is read, if `rate` a second is read beside this course of seconds and the part that is
/// read, which continues with `after`. None when it is not within the course and the rate is zero.
pub(super) fn seconds_with(
    course: impl Iterator<Item = (f64, f64)>,
    after: f64,
    rate: f64,
) -> Option<f64> {
    let mut before = (0.0, 0.0);
    for at in course {
        let (from, to) = (read_at(before, rate), read_at(at, rate));
        if to >= 1.0 {
            return Some(before.0 + (1.0 - from) / (to - from) * (at.0 - before.0));
        }
        before = at;
    }
    (rate > 0.0).then(|| before.0 + (1.0 - read_at(before, rate)) / (rate + after))
}

fn read_at((seconds, read): (f64, f64), rate: f64) -> f64 {
    read + rate * seconds
}

/// Latency between two bursts until only `to` blocks are left. The rate is taken to be a power of
/// the rest.
fn leap_ns(before: &Burst, after: &Burst, to: u64) -> f64 {
    let (from, to) = (before.to as f64, to as f64);
    let rates = (rate(before), rate(after));
    if from <= to || rates.0 <= 0.0 {
        return 0.0;
    }
    // A rate of zero has no time.
    let after_rate = if rates.1 > 0.0 { rates.1 } else { rates.0 };
    let power = libm::log(rates.0 / after_rate) / libm::log(middle(before) / middle(after));
    power_integral(from, to, rates.0, middle(before), power)
}

fn middle(burst: &Burst) -> f64 {
    0.5 * (burst.from + burst.to) as f64
}

/// Integral from `to` to `from` of dx / (rate (x / at)^power).
fn power_integral(from: f64, to: f64, rate: f64, at: f64, power: f64) -> f64 {
    let area = if (power - 1.0).abs() < 1e-6 {
        libm::log(from / to)
    } else {
        (libm::pow(scaled(from, at), 1.0 - power) - libm::pow(scaled(to, at), 1.0 - power))
            / (1.0 - power)
    };
    area * at / rate
}

fn scaled(x: f64, at: f64) -> f64 {
    x / at
}

/// Shares of the latency of the whole course. Within a leap, what free transfers take follows from the
/// blocks that are read there; the rest is divided as in the bursts at its ends, in the proportion that
/// comes to such free transfers.
pub(super) fn shares(bursts: &[Burst]) -> GapShares {
    let (mut potential, mut transfer, mut extra_seek) = (0.0, 0.0, 0.0);
    let mut add = |ns: f64, transfer_share: f64, extra_seek_share: f64| {
        potential += ns;
        transfer += ns * transfer_share;
        extra_seek += ns * extra_seek_share;
    };
    for burst in bursts {
        let shares = burst.time.shares();
        add(burst.time.potential_ns as f64, shares.transfer_share, shares.extra_seek_share);
    }
    for (before, after) in bursts.iter().zip(bursts.iter().skip(1)) {
        let ns = leap_ns(before, after, after.from);
        if ns <= 0.0 {
            continue;
        }
        let (first, last) = (before.time.shares(), after.time.shares());
        let blocks = before.to.saturating_sub(after.from) as f64;
        let block_ns = before.time.transfer_ns as f64 / before.in_gaps.max(1) as f64;
        let fall = first.transfer_share - last.transfer_share;
        let part = match (first.transfer_share - blocks * block_ns / ns) / fall {
            part if part.is_finite() => part.clamp(0.0, 1.0),
            _ => 0.5,
        };
        add(
            ns,
            between(first.transfer_share, last.transfer_share, part),
            between(first.extra_seek_share, last.extra_seek_share, part),
        );
    }
    let (transfer_share, extra_seek_share) =
        (share(transfer, potential), share(extra_seek, potential));
    let unused_share = 1.0 - transfer_share - extra_seek_share;
    GapShares { transfer_share, extra_seek_share, unused_share }
}

fn between(first: f64, last: f64, part: f64) -> f64 {
    first + part * (last - first)
}

fn share(ns: f64, potential: f64) -> f64 {
    if potential > 0.0 { ns / potential } else { 0.0 }
}

/// Latency until this many blocks are left. None when the course ends before.
pub(super) fn potential_until(bursts: &[Burst], left: u64) -> Option<f64> {
    let mut potential_ns = 0.0;
    let mut before: Option<&Burst> = None;
    for burst in bursts {
        if let Some(before) = before {
            potential_ns += leap_ns(before, burst, burst.from.max(left));
        }
        if left >= burst.from {
            return Some(potential_ns);
        }
        if left >= burst.to {
            let part = (burst.from - left) as f64 / (burst.from - burst.to) as f64;
            return Some(potential_ns + part * burst.time.potential_ns as f64);
        }
        potential_ns += burst.time.potential_ns as f64;
        before = Some(burst);
    }
    None
}

/// Standard error of the latency until this many blocks are left, in parts of it: what chance in the rates of
/// the bursts until then makes of it, and the change if it had every other of them. None of a
/// single burst, which has no other to compare with.
pub(super) fn error_until(bursts: &[Burst], left: u64) -> Option<f64> {
    let count = bursts.iter().position(|burst| burst.to <= left).map_or(bursts.len(), |at| at + 1);
    let bursts = &bursts[..count];
    let all = end_ns(bursts);
    if count < 2 || all <= 0.0 {
        return None;
    }
    let leaps: Vec<f64> =
        bursts.windows(2).map(|pair| leap_ns(&pair[0], &pair[1], pair[1].from)).collect();
    // What is not known of a rate is taken to be as much as the rate.
    let by_chance =
        bursts.iter().enumerate().map(|(at, burst)| burst.error.min(1.0) * around(at, &leaps));
    let by_chance = by_chance.map(|ns| ns * ns).sum::<f64>().sqrt();
    let last = bursts.len() - 1;
    let every_other = bursts.iter().enumerate().filter(|&(at, _)| at % 2 == 0 || at == last);
    let by_leaps = end_ns(&every_other.map(|(_, burst)| *burst).collect::<Vec<_>>()) - all;
    Some(libm::hypot(by_chance, by_leaps) / all)
}

fn around(at: usize, leaps: &[f64]) -> f64 {
    let before = at.checked_sub(1).map_or(0.0, |before| leaps[before]);
    0.5 * (before + leaps.get(at).copied().unwrap_or(0.0))
}

/// Latency until the last burst has ended.
fn end_ns(bursts: &[Burst]) -> f64 {
    course(bursts).last().map_or(0.0, |at| at.potential_ns)
}

#[cfg(test)]
mod tests {
    use freewheel_sim::background::Gaps;
    use freewheel_units::Prng;

    use super::*;

    /// Bursts of a scan whose rate is this power of the rest.
    fn bursts(power: f64) -> Vec<Burst> {
        let burst = |(from, to): (u64, u64)| {
            let middle = 0.5 * (from + to) as f64;
            let rate = 1e-3 * libm::pow(middle / 1e6, power);
            let in_gaps = from - to;
            let potential_ns = (in_gaps as f64 / rate) as u64;
            let time = Gaps { potential_ns, ..Gaps::default() };
            Burst { from, to, in_gaps, time, ..Burst::default() }
        };
        [(1_000_000, 999_000), (500_000, 499_000), (200_000, 199_000), (1_000, 0)].map(burst).into()
    }

    /// Block by block through the leaps.
    fn slowly(power: f64, left: u64) -> f64 {
        (left..1_000_000).map(|x| 1e3 / libm::pow((x as f64 + 0.5) / 1e6, power)).sum()
    }

    #[test]
    fn curve_time_follows_rate_within_leap() {
        for power in [0.5, 1.0, 1.7] {
            let bursts = bursts(power);
            for left in [999_500, 750_000, 500_000, 350_000, 200_000, 100_000, 20_000] {
                let (ours, exact) = (potential_until(&bursts, left).unwrap(), slowly(power, left));
                assert!((ours / exact - 1.0).abs() < 0.01, "{power} at {left}: {ours} {exact}");
            }
        }
    }

    #[test]
    fn curve_error_bounded_by_chance_spread() {
        const TIMES: usize = 2000;
        let prng = &mut Prng::new(1, "error");
        let exact: Vec<Burst> = (0..12)
            .map(|at| {
                let from = 1_000_000 - 80_000 * at;
                let time = Gaps { potential_ns: 1_000_000, ..Gaps::default() };
                Burst { from, to: from - 1000, in_gaps: 1000, time, ..Burst::default() }
            })
            .collect();
        let (mut told, mut ends) = (0.0, Vec::new());
        for _ in 0..TIMES {
            let mut by_chance = exact.clone();
            for burst in &mut by_chance {
                burst.in_gaps = 900 + prng.below(201);
                burst.error = 0.058;
            }
            told += error_until(&by_chance, 0).unwrap() / TIMES as f64;
            ends.push(end_ns(&by_chance));
        }
        let mean = ends.iter().sum::<f64>() / TIMES as f64;
        let apart =
            (ends.iter().map(|end| (end / mean - 1.0).powi(2)).sum::<f64>() / TIMES as f64).sqrt();
        assert!((1.0..2.0).contains(&(told / apart)), "{told} {apart}");
        // Rates known exactly, and leaps in which the rate does not bend, give no error.
        let error = |bursts: &[Burst], left| error_until(bursts, left).unwrap();
        assert!(error(&exact, 0) < 1e-9);
        // A rate that falls at once says so where leaps are too long to tell when.
        let mut fallen = exact;
        fallen[6..].iter_mut().for_each(|burst| burst.in_gaps = 100);
        assert!(error(&fallen, 0) > 0.01 && error(&fallen, 700_000) < 1e-9);
    }

    #[test]
    fn curve_error_unknown_for_single_burst() {
        let bursts = bursts(1.0);
        assert_eq!(error_until(&bursts[..1], 0), None);
        assert_eq!((error_until(&bursts, 999_500), error_until(&[], 0)), (None, None));
        assert!(error_until(&bursts[..2], 0).is_some());
    }

    #[test]
    fn curve_fades_after_last_fast_burst() {
        let bursts = bursts(1.0);
        // Rates are as the rest: 1, 0.5, 0.2 and 0.0005 of the first.
        let at = |part| faded(&bursts, part).map(|at| at.left);
        assert_eq!([at(0.6), at(0.3), at(0.1)], [Some(999_000), Some(499_000), Some(199_000)]);
        assert_eq!((at(1e-4), faded(&[], 0.1)), (None, None));
        // One that comes back has not faded before.
        let back = [bursts[0], bursts[3], bursts[1], bursts[3]];
        assert_eq!(faded(&back, 0.1).map(|at| at.left), Some(499_000));
    }

    #[test]
    fn curve_with_idle_time_reads_all_together() {
        let course = [(0.0, 0.0), (10.0, 0.4), (20.0, 0.6), (100.0, 0.7)];
        let with = |rate| seconds_with(course.into_iter(), 0.0, rate);
        assert_eq!(with(0.0), None);
        // Within the course, on a straight line of it, and long after it.
        for (rate, seconds) in [(0.02, 20.0), (0.04, 40.0 / 3.0), (0.0001, 3000.0)] {
            assert!((with(rate).unwrap() - seconds).abs() < 1e-9, "{rate}: {:?}", with(rate));
        }
        // The gaps go on as they were at the end: 0.3 less 0.01 are left after 100 s.
        let seconds = seconds_with(course.into_iter(), 0.0019, 0.0001).unwrap();
        assert!((seconds - 245.0).abs() < 1e-9, "{seconds}");
        assert_eq!(seconds_with([(0.0, 0.0), (8.0, 1.0)].into_iter(), 0.0, 0.0), Some(8.0));
        assert_eq!(seconds_with(std::iter::empty(), 0.0, 0.25), Some(4.0));
    }

    #[test]
    fn curve_course_matches_times_at_points() {
        let bursts = bursts(1.3);
        for at in course(&bursts) {
            let until = potential_until(&bursts, at.left).unwrap();
            assert!((until - at.potential_ns).abs() <= 1e-9 * at.potential_ns, "{at:?}: {until}");
        }
        assert_eq!(potential_until(&bursts[..2], 400_000), None);
        assert_eq!(potential_until(&[], 0), None);
    }
}
