//! From bursts to the course of a whole scan.

use super::leaps::Burst;

/// How far a scan is, and at what cost.
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
            potential_ns += leap_ns(before, burst);
        }
        course.push(At { left: burst.from, potential_ns });
        potential_ns += burst.potential_ns as f64;
        course.push(At { left: burst.to, potential_ns });
        before = Some(burst);
    }
    course
}

/// Blocks read in gaps in a nanosecond of latency.
pub(super) fn rate(burst: &Burst) -> f64 {
    burst.in_gaps as f64 / burst.potential_ns.max(1) as f64
}

/// Latency between two bursts. The rate is taken to be a power of what is left.
fn leap_ns(before: &Burst, after: &Burst) -> f64 {
    let (from, to) = (before.to as f64, after.from as f64);
    let rates = (rate(before), rate(after));
    if from <= to || rates.0 <= 0.0 {
        return 0.0;
    }
    // Nothing is known of a rate of zero.
    let after_rate = if rates.1 > 0.0 { rates.1 } else { rates.0 };
    let middle = |burst: &Burst| 0.5 * (burst.from + burst.to) as f64;
    let power = libm::log(rates.0 / after_rate) / libm::log(middle(before) / middle(after));
    power_integral(from, to, rates.0, middle(before), power)
}

/// Integral from `to` to `from` of dx / (rate (x / at)^power).
fn power_integral(from: f64, to: f64, rate: f64, at: f64, power: f64) -> f64 {
    let scaled = |x: f64| x / at;
    let area = if (power - 1.0).abs() < 1e-6 {
        libm::log(from / to)
    } else {
        let term = |x: f64| libm::pow(scaled(x), 1.0 - power);
        (term(from) - term(to)) / (1.0 - power)
    };
    area * at / rate
}

/// Latency until so many blocks are left. None when the course ends before.
pub(super) fn potential_until(course: &[At], left: u64) -> Option<f64> {
    let after = course.iter().position(|at| at.left <= left)?;
    let Some(before) = after.checked_sub(1) else { return Some(course[after].potential_ns) };
    let (before, after) = (course[before], course[after]);
    let part = (before.left - left) as f64 / (before.left - after.left).max(1) as f64;
    Some(before.potential_ns + part * (after.potential_ns - before.potential_ns))
}
