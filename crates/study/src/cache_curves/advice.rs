//! How much memory is worth its price, from the numbers of the runs.

use freewheel_model::cache::CachePolicy;
use serde::Serialize;

use super::result::{PolicyCurve, Responses, SimulatedResponses};
use crate::ratio::mean;

/// A doubling of the memory that gains less is not worth it.
pub const DOUBLING_GAIN_MIN: f64 = 0.05;

/// Another policy is advised if its mean over all sizes is below LRU's by more than this share.
const POLICY_GAIN_MIN: f64 = 0.01;

/// The number that memory and policies are judged by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// Mean response of reads in nanoseconds, without a cache that of the drive.
    MeanReadResponseNs,
    /// Miss ratio, by request where it was counted, else by byte; 1 without a cache.
    MissRatio,
}

/// How much memory to give to which policy.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Advice {
    /// The measure of all values here.
    pub measure: Measure,
    /// The policy with the smallest mean over all sizes; LRU if it is hardly above.
    pub policy: CachePolicy,
    /// The least size from which on no doubling gains [`DOUBLING_GAIN_MIN`] or more.
    pub size_bytes: u64,
    /// Value without a cache.
    pub without_cache: f64,
    /// Value of the policy at that size.
    pub value: f64,
    /// Value of LRU at that size, if LRU was run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lru_value: Option<f64>,
    /// The largest size.
    pub largest_bytes: u64,
    /// Value of the policy there.
    pub value_at_largest: f64,
    /// The least size that at least halves the value without a cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub halved_from_bytes: Option<u64>,
    /// Whether the largest size gains [`DOUBLING_GAIN_MIN`] or more over none.
    pub is_useful: bool,
    /// Whether the last doubling still gained [`DOUBLING_GAIN_MIN`] or more.
    pub is_still_falling: bool,
}

/// A cache of some size, and its value. Smaller values are better.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Point {
    size_bytes: u64,
    value: f64,
}

/// The values of a policy, by ascending size.
struct Candidate {
    policy: CachePolicy,
    points: Vec<Point>,
}

impl Candidate {
    fn mean(&self) -> f64 {
        mean(&self.points, |point| point.value)
    }
}

impl Advice {
    /// Judges by responses where there are some, else by miss ratios.
    pub(super) fn new(curves: &[PolicyCurve], responses: &Responses) -> Self {
        match responses {
            Responses::Simulated(simulated) => {
                let without = simulated.without_cache.reads.mean_ns;
                Self::of(Measure::MeanReadResponseNs, without, &by_response(simulated))
            }
            _ => Self::of(Measure::MissRatio, 1.0, &by_miss_ratio(curves)),
        }
    }

    fn of(measure: Measure, without_cache: f64, candidates: &[Candidate]) -> Self {
        let best = best(candidates);
        let points = &best.points;
        let enough = points[enough(points)];
        let last = points[points.len() - 1];
        let lru = candidates.iter().find(|candidate| candidate.policy == CachePolicy::Lru);
        let lru_at = |lru: &Candidate| {
            lru.points.iter().find(|point| point.size_bytes == enough.size_bytes).copied()
        };
        let halved = points.iter().find(|point| point.value <= without_cache / 2.0);
        let steps = points.windows(2).last();
        Self {
            measure,
            policy: best.policy,
            size_bytes: enough.size_bytes,
            without_cache,
            value: enough.value,
            lru_value: lru.and_then(lru_at).map(|point| point.value),
            largest_bytes: last.size_bytes,
            value_at_largest: last.value,
            halved_from_bytes: halved.map(|point| point.size_bytes),
            is_useful: last.value <= without_cache * (1.0 - DOUBLING_GAIN_MIN),
            is_still_falling: steps.is_some_and(|pair| gain(pair[0], pair[1]) >= DOUBLING_GAIN_MIN),
        }
    }
}

fn by_response(simulated: &SimulatedResponses) -> Vec<Candidate> {
    let candidates = simulated.policies.iter().map(|of| Candidate {
        policy: of.policy,
        points: of
            .points
            .iter()
            .map(|at| Point { size_bytes: at.size_bytes, value: at.reads.mean_ns })
            .collect(),
    });
    candidates.collect()
}

fn by_miss_ratio(curves: &[PolicyCurve]) -> Vec<Candidate> {
    let candidates = curves.iter().map(|curve| Candidate {
        policy: curve.policy,
        points: curve
            .miss_ratios
            .iter()
            .map(|at| Point { size_bytes: at.size_bytes, value: at.main() })
            .collect(),
    });
    candidates.collect()
}

/// The candidate with the smallest mean; LRU if it is within [`POLICY_GAIN_MIN`] of that.
fn best(candidates: &[Candidate]) -> &Candidate {
    let least = candidates.iter().min_by(|a, b| a.mean().total_cmp(&b.mean()));
    let least = least.expect("at least one policy is asked for");
    let lru = candidates.iter().find(|candidate| candidate.policy == CachePolicy::Lru);
    let is_close = |lru: &&Candidate| least.mean() >= lru.mean() * (1.0 - POLICY_GAIN_MIN);
    lru.filter(is_close).unwrap_or(least)
}

/// Index of the least size from which on no doubling gains [`DOUBLING_GAIN_MIN`] or more.
fn enough(points: &[Point]) -> usize {
    let steps = points.windows(2);
    let last = steps.map(|pair| gain(pair[0], pair[1])).rposition(|gain| gain >= DOUBLING_GAIN_MIN);
    last.map_or(0, |step| step + 1)
}

/// The part of the value that each doubling of the memory between two sizes takes away, if all take the same.
fn gain(from: Point, to: Point) -> f64 {
    if from.value == 0.0 {
        return 0.0;
    }
    let doublings = libm::log2(to.size_bytes as f64 / from.size_bytes as f64);
    1.0 - libm::pow(to.value / from.value, 1.0 / doublings)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(values: &[f64]) -> Vec<Point> {
        let sizes = (0..).map(|power| 1 << (20 + power));
        sizes.zip(values).map(|(size_bytes, &value)| Point { size_bytes, value }).collect()
    }

    fn candidate(policy: CachePolicy, values: &[f64]) -> Candidate {
        Candidate { policy, points: points(values) }
    }

    fn advice(values: &[f64]) -> Advice {
        let all = [candidate(CachePolicy::Lru, values)];
        Advice::of(Measure::MeanReadResponseNs, 10.0, &all)
    }

    const MIB: u64 = 1 << 20;

    #[test]
    fn enough_is_the_least_size_from_which_on_no_doubling_gains_5_percent() {
        assert_eq!(enough(&points(&[10.0, 8.0, 6.0, 5.9, 5.8])), 2);
        assert_eq!(enough(&points(&[10.0, 9.9, 9.8, 5.0, 5.0])), 3, "a step after a plateau");
        assert_eq!(enough(&points(&[10.0, 9.9, 9.8])), 0);
        assert_eq!(enough(&points(&[10.0, 9.0, 8.0])), 2, "the largest");
        assert_eq!(enough(&points(&[0.0, 0.0])), 0);
        assert_eq!(enough(&points(&[10.0])), 0);
    }

    #[test]
    fn a_step_of_several_doublings_counts_as_as_many() {
        let at = |size_mib: u64, value| Point { size_bytes: size_mib * MIB, value };
        // 0.95 a doubling, three times.
        assert!((gain(at(1, 1.0), at(8, 0.857_375)) - 0.05).abs() < 1e-9);
        assert!((gain(at(1, 1.0), at(2, 0.857_375)) - 0.142_625).abs() < 1e-9);
        assert!(gain(at(1, 1.0), at(2, 1.1)) < 0.0);
    }

    #[test]
    fn advice_names_the_size_what_it_gains_and_what_halves() {
        let advice = advice(&[9.0, 4.9, 3.0, 2.99]);
        assert_eq!((advice.size_bytes, advice.value), (4 * MIB, 3.0));
        assert_eq!(advice.halved_from_bytes, Some(2 * MIB));
        assert_eq!((advice.largest_bytes, advice.value_at_largest), (8 * MIB, 2.99));
        assert!(advice.is_useful && !advice.is_still_falling);
        assert_eq!(advice.lru_value, Some(3.0));
    }

    #[test]
    fn a_cache_that_gains_little_is_not_useful_and_one_that_still_falls_says_so() {
        let flat = advice(&[9.9, 9.8, 9.7]);
        assert!(!flat.is_useful && flat.halved_from_bytes.is_none());
        assert!(advice(&[9.0, 8.0, 7.0]).is_still_falling);
    }

    #[test]
    fn another_policy_is_advised_only_if_lru_is_visibly_worse() {
        let lru = || candidate(CachePolicy::Lru, &[8.0, 6.0]);
        let chosen = |arc: &[f64]| best(&[lru(), candidate(CachePolicy::Arc, arc)]).policy;
        assert_eq!(chosen(&[8.0, 5.9]), CachePolicy::Lru);
        assert_eq!(chosen(&[8.0, 5.8]), CachePolicy::Arc);
        assert_eq!(chosen(&[8.0, 6.5]), CachePolicy::Lru);
        let others = [candidate(CachePolicy::Sieve, &[7.0]), candidate(CachePolicy::Arc, &[6.0])];
        assert_eq!(best(&others).policy, CachePolicy::Arc);
    }
}
