//! Amount of memory that is worth its price, from the numbers of the runs.

use freewheel_model::cache::CachePolicy;
use serde::Serialize;

use super::result::{MissRatio, PolicyCurve, Responses, SimulatedResponses};
use crate::ratio::ratio;

/// A doubling of the memory that gains less is not worth it.
pub const DOUBLING_GAIN_MIN: f64 = 0.05;

/// Another policy than LRU is advised if its value is below LRU's by more than this share.
const POLICY_GAIN_MIN: f64 = 0.01;

/// Policies differ visibly from this share of LRU's value on.
const POLICY_GAP_MIN: f64 = 0.05;

/// The number that memory and policies are judged by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// Mean response of reads in nanoseconds, without a cache that of the drive.
    MeanReadResponseNs,
    /// Miss ratio, by request where it was counted, else by byte; 1 without a cache.
    MissRatio,
}

/// Amount of memory that is enough, and the policy.
///
/// At each size the best policy counts: the one with the smallest value, or LRU if that is hardly above.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Advice {
    /// The measure of all values here.
    pub measure: Measure,
    /// Value without a cache.
    pub without_cache: f64,
    /// The least size from which on no doubling gains [`DOUBLING_GAIN_MIN`] or more.
    pub enough: Choice,
    /// Value of LRU at that size, if LRU was run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lru_value: Option<f64>,
    /// The largest size.
    pub largest: Choice,
    /// The least size that at least halves the value without a cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub halved: Option<Choice>,
    /// The size at which LRU is worse than the best policy by the largest share, if visibly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gap: Option<PolicyGap>,
    /// True if the largest size gains [`DOUBLING_GAIN_MIN`] or more over none.
    pub is_useful: bool,
    /// True if the last doubling still gained [`DOUBLING_GAIN_MIN`] or more.
    pub is_still_falling: bool,
}

/// A cache of some size under its best policy. Smaller values are better.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Choice {
    /// Memory.
    pub size_bytes: u64,
    /// The best policy there.
    pub policy: CachePolicy,
    /// Value of the measure.
    pub value: f64,
}

/// A size at which LRU is worse.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct PolicyGap {
    pub best: Choice,
    pub lru_value: f64,
}

/// The values of a policy, one for each size.
struct Candidate {
    policy: CachePolicy,
    values: Vec<f64>,
}

impl Advice {
    /// Judges by responses where there are some, else by miss ratios. Sizes are ascending.
    pub(super) fn new(sizes: &[u64], curves: &[PolicyCurve], responses: &Responses) -> Self {
        match responses {
            Responses::Simulated(simulated) => {
                let without = simulated.without_cache.reads.mean_ns;
                Self::of(Measure::MeanReadResponseNs, without, sizes, &by_response(simulated))
            }
            _ => Self::of(Measure::MissRatio, 1.0, sizes, &by_miss_ratio(curves)),
        }
    }

    fn of(measure: Measure, without: f64, sizes: &[u64], candidates: &[Candidate]) -> Self {
        let choices = choices(sizes, candidates);
        let lru = candidates.iter().find(|candidate| candidate.policy == CachePolicy::Lru);
        let (enough, largest) = (enough(&choices), choices[choices.len() - 1]);
        let last_gain = choices.windows(2).last().map(|pair| gain(pair[0], pair[1]));
        Self {
            measure,
            without_cache: without,
            enough: choices[enough],
            lru_value: lru.map(|lru| lru.values[enough]),
            largest,
            halved: choices.iter().find(|choice| choice.value <= without / 2.0).copied(),
            gap: lru.and_then(|lru| widest_gap(&choices, &lru.values)),
            is_useful: largest.value <= without * (1.0 - DOUBLING_GAIN_MIN),
            is_still_falling: last_gain.is_some_and(|gain| gain >= DOUBLING_GAIN_MIN),
        }
    }
}

/// The best policy at each size.
fn choices(sizes: &[u64], candidates: &[Candidate]) -> Vec<Choice> {
    sizes.iter().enumerate().map(|(at, &size_bytes)| best(candidates, at, size_bytes)).collect()
}

/// The policy that misses least at each size of these curves, which all have the same sizes.
pub(super) fn choices_by_miss_ratio(curves: &[PolicyCurve]) -> Vec<Choice> {
    let sizes: Vec<u64> = curves
        .first()
        .map(|curve| curve.miss_ratios.iter().map(|at| at.size_bytes).collect())
        .unwrap_or_default();
    choices(&sizes, &by_miss_ratio(curves))
}

/// The size at which LRU is worse by the largest share.
fn widest_gap(choices: &[Choice], lru: &[f64]) -> Option<PolicyGap> {
    let gaps = choices.iter().zip(lru).map(|(&best, &lru_value)| PolicyGap { best, lru_value });
    let visible = gaps.filter(|gap| gap.lru_value > 0.0 && share(gap) >= POLICY_GAP_MIN);
    visible.max_by(|a, b| share(a).total_cmp(&share(b)))
}

fn share(gap: &PolicyGap) -> f64 {
    1.0 - ratio(gap.best.value, gap.lru_value)
}

fn by_response(simulated: &SimulatedResponses) -> Vec<Candidate> {
    simulated
        .policies
        .iter()
        .map(|of| Candidate {
            policy: of.policy,
            values: of.points.iter().map(|at| at.reads.mean_ns).collect(),
        })
        .collect()
}

fn by_miss_ratio(curves: &[PolicyCurve]) -> Vec<Candidate> {
    // Advice is about policies that ship: a storage system has no other.
    curves
        .iter()
        .filter_map(|curve| {
            let policy = curve.policy.shipped()?;
            Some(Candidate {
                policy,
                values: curve.miss_ratios.iter().map(MissRatio::main).collect(),
            })
        })
        .collect()
}

/// The policy with the smallest value at a size; LRU if it is within [`POLICY_GAIN_MIN`] of that.
fn best(candidates: &[Candidate], at: usize, size_bytes: u64) -> Choice {
    let all = || {
        candidates.iter().map(|of| Choice { size_bytes, policy: of.policy, value: of.values[at] })
    };
    let least = all().min_by(|a, b| a.value.total_cmp(&b.value));
    let least = least.expect("at least one policy is asked for");
    all()
        .find(|of| of.policy == CachePolicy::Lru)
        .filter(|lru| least.value >= lru.value * (1.0 - POLICY_GAIN_MIN))
        .unwrap_or(least)
}

/// Index of the least size from which on no doubling gains [`DOUBLING_GAIN_MIN`] or more.
fn enough(choices: &[Choice]) -> usize {
    let mut gains = choices.windows(2).map(|pair| gain(pair[0], pair[1]));
    gains.rposition(|gain| gain >= DOUBLING_GAIN_MIN).map_or(0, |step| step + 1)
}

/// The part of the value that each doubling of the memory between two sizes takes away, if all take the same.
fn gain(from: Choice, to: Choice) -> f64 {
    if from.value == 0.0 {
        return 0.0;
    }
    let doublings = libm::log2(to.size_bytes as f64 / from.size_bytes as f64);
    1.0 - libm::pow(to.value / from.value, 1.0 / doublings)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn choice(size_mib: u64, value: f64) -> Choice {
        Choice { size_bytes: size_mib * MIB, policy: CachePolicy::Lru, value }
    }

    /// Values at 1, 2, 4, ... MiB.
    fn choices(values: &[f64]) -> Vec<Choice> {
        (0..).zip(values).map(|(power, &value)| choice(1 << power, value)).collect()
    }

    fn candidate(policy: CachePolicy, values: &[f64]) -> Candidate {
        Candidate { policy, values: values.into() }
    }

    fn advice(candidates: &[Candidate]) -> Advice {
        let powers = 0..candidates[0].values.len();
        let sizes: Vec<u64> = powers.map(|power| MIB << power).collect();
        Advice::of(Measure::MeanReadResponseNs, 10.0, &sizes, candidates)
    }

    fn of_lru(values: &[f64]) -> Advice {
        advice(&[candidate(CachePolicy::Lru, values)])
    }

    #[test]
    fn advice_enough_when_doubling_gains_little() {
        let enough = |values: &[f64]| enough(&choices(values));
        assert_eq!(enough(&[10.0, 8.0, 6.0, 5.9, 5.8]), 2);
        assert_eq!(enough(&[10.0, 9.9, 9.8, 5.0, 5.0]), 3, "a step after a plateau");
        assert_eq!(enough(&[10.0, 9.9, 9.8]), 0);
        assert_eq!(enough(&[10.0, 9.0, 8.0]), 2, "the largest");
        assert_eq!(enough(&[0.0, 0.0]), 0);
        assert_eq!(enough(&[10.0]), 0);
    }

    #[test]
    fn advice_shares_step_over_doublings() {
        // 0.95 a doubling, three times.
        assert!((gain(choice(1, 1.0), choice(8, 0.857_375)) - 0.05).abs() < 1e-9);
        assert!((gain(choice(1, 1.0), choice(2, 0.857_375)) - 0.142_625).abs() < 1e-9);
        assert!(gain(choice(1, 1.0), choice(2, 1.1)) < 0.0);
    }

    #[test]
    fn advice_names_size_gain_and_halving() {
        let advice = of_lru(&[9.0, 4.9, 3.0, 2.99]);
        assert_eq!(advice.enough, choice(4, 3.0));
        assert_eq!((advice.halved, advice.largest), (Some(choice(2, 4.9)), choice(8, 2.99)));
        assert!(advice.is_useful && !advice.is_still_falling);
        assert_eq!((advice.lru_value, advice.gap), (Some(3.0), None));
    }

    #[test]
    fn advice_small_gain_is_not_useful() {
        let flat = of_lru(&[9.9, 9.8, 9.7]);
        assert!(!flat.is_useful && flat.halved.is_none());
        assert!(of_lru(&[9.0, 8.0, 7.0]).is_still_falling);
    }

    #[test]
    fn advice_best_policy_or_close_lru() {
        let all = [
            candidate(CachePolicy::Lru, &[9.0, 8.0, 3.0, 3.0]),
            candidate(CachePolicy::Arc, &[9.0, 5.0, 2.98, 2.98]),
        ];
        let advice = advice(&all);
        assert_eq!(advice.enough, choice(4, 3.0));
        let arc = Choice { policy: CachePolicy::Arc, ..choice(2, 5.0) };
        assert_eq!(advice.halved, Some(arc));
        assert_eq!(advice.gap, Some(PolicyGap { best: arc, lru_value: 8.0 }));
        let others = [candidate(CachePolicy::Sieve, &[7.0]), candidate(CachePolicy::Arc, &[6.0])];
        assert_eq!(super::best(&others, 0, MIB).policy, CachePolicy::Arc);
    }
}
