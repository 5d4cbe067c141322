//! A distribution of durations in an integer histogram.

use freewheel_units::SimDuration;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Durations counted with three significant digits up to an hour, and exact sums beside them.
///
/// Longer durations count as an hour in the percentiles; mean and maximum stay exact.
#[derive(Debug, Clone, PartialEq)]
pub struct Distribution {
    histogram: Histogram<u64>,
    sum_ns: u128,
    /// Sum of squares in units of 2^20 ns² (about a µs²), so that it fits for any run.
    sum_squares_q20: u128,
    min_ns: u64,
    max_ns: u64,
}

const HIGHEST_NS: u64 = 3_600_000_000_000;
const SIGNIFICANT_DIGITS: u8 = 3;

impl Default for Distribution {
    fn default() -> Self {
        let histogram = Histogram::new_with_bounds(1, HIGHEST_NS, SIGNIFICANT_DIGITS)
            .expect("constant bounds are valid");
        Self { histogram, sum_ns: 0, sum_squares_q20: 0, min_ns: u64::MAX, max_ns: 0 }
    }
}

/// A distribution in numbers, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, Default)]
#[allow(missing_docs)]
pub struct Summary {
    pub count: u64,
    pub mean_ns: f64,
    /// Standard deviation over mean.
    pub coefficient_of_variation: f64,
    pub min_ns: u64,
    pub p50_ns: u64,
    /// 90 % are no longer.
    pub p90_ns: u64,
    /// 95 % are no longer.
    pub p95_ns: u64,
    /// 99 % are no longer.
    pub p99_ns: u64,
    /// 99.9 % are no longer.
    pub p999_ns: u64,
    /// 99.99 % are no longer.
    pub p9999_ns: u64,
    pub max_ns: u64,
}

/// Durations of at least the first and below the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bucket {
    /// The shortest that it counts.
    pub from_ns: u64,
    /// The shortest that is too long for it.
    pub below_ns: u64,
    /// Number of durations in the bucket.
    pub count: u64,
}

impl Bucket {
    /// Below a microsecond, or between two powers of two of them.
    fn of_ns(ns: u64) -> Self {
        match (ns / 1000).checked_ilog2() {
            None => Self { from_ns: 0, below_ns: 1000, count: 0 },
            Some(power) => Self { from_ns: 1000 << power, below_ns: 2000 << power, count: 0 },
        }
    }
}

impl Distribution {
    /// Counts a duration.
    #[inline]
    pub fn record(&mut self, duration: SimDuration) {
        let ns = duration.ns();
        self.histogram.saturating_record(ns);
        self.sum_ns += u128::from(ns);
        self.sum_squares_q20 += (u128::from(ns) * u128::from(ns)) >> 20;
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    /// Counts all that `other` has counted.
    pub fn add(&mut self, other: &Self) {
        self.histogram.add(&other.histogram).expect("histograms of the same bounds");
        self.sum_ns += other.sum_ns;
        self.sum_squares_q20 += other.sum_squares_q20;
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// Number of counted durations.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// Exact sum.
    pub fn sum_ns(&self) -> u128 {
        self.sum_ns
    }

    /// Exact mean, zero without values.
    pub fn mean_ns(&self) -> f64 {
        if self.count() == 0 { 0.0 } else { self.sum_ns as f64 / self.count() as f64 }
    }

    /// Standard deviation over mean, zero without values.
    pub fn coefficient_of_variation(&self) -> f64 {
        let mean = self.mean_ns();
        if mean == 0.0 {
            return 0.0;
        }
        let mean_square = self.sum_squares_q20 as f64 * 1_048_576.0 / self.count() as f64;
        (mean_square - mean * mean).max(0.0).sqrt() / mean
    }

    /// The duration that a share `quantile` of all does not exceed, to three digits.
    pub fn quantile_ns(&self, quantile: f64) -> u64 {
        if self.count() == 0 {
            return 0;
        }
        self.histogram.value_at_quantile(quantile).clamp(self.min_ns, self.max_ns)
    }

    /// Longest, exactly.
    pub fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// Points (duration in ns, share of all that is no longer), for drawing.
    pub fn cumulative(&self) -> Vec<(u64, f64)> {
        let total = self.count() as f64;
        let mut seen = 0;
        self.histogram
            .iter_recorded()
            .map(|step| {
                seen += step.count_since_last_iteration();
                (step.value_iterated_to().min(self.max_ns), seen as f64 / total)
            })
            .collect()
    }

    /// A histogram by powers of two of microseconds: below 1 us, from 1 to below 2, 2 to 4 and so on,
    /// from the first bucket with a duration to the last one, with those between that have none.
    pub fn by_doubling(&self) -> Vec<Bucket> {
        let mut buckets: Vec<Bucket> = Vec::new();
        for step in self.histogram.iter_recorded() {
            // No step of the histogram lies on both sides of 1000 * 2^k ns: up to there it counts in
            // steps of 2^(k-1) ns or finer ones, so that the buckets are exact.
            let wanted = Bucket::of_ns(step.value_iterated_to());
            while let Some(last) = buckets.last()
                && last.below_ns < wanted.from_ns
            {
                buckets.push(Bucket::of_ns(last.below_ns));
            }
            if buckets.last().is_none_or(|last| last.from_ns != wanted.from_ns) {
                buckets.push(wanted);
            }
            let last = buckets.last_mut().expect("one was pushed");
            last.count += step.count_since_last_iteration();
        }
        buckets
    }

    /// The distribution in numbers.
    pub fn summary(&self) -> Summary {
        Summary {
            count: self.count(),
            mean_ns: self.mean_ns(),
            coefficient_of_variation: self.coefficient_of_variation(),
            min_ns: if self.count() == 0 { 0 } else { self.min_ns },
            p50_ns: self.quantile_ns(0.50),
            p90_ns: self.quantile_ns(0.90),
            p95_ns: self.quantile_ns(0.95),
            p99_ns: self.quantile_ns(0.99),
            p999_ns: self.quantile_ns(0.999),
            p9999_ns: self.quantile_ns(0.9999),
            max_ns: self.max_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn distribution_empty_is_all_zero() {
        assert_eq!(Distribution::default().summary(), Summary::default());
    }

    #[test]
    fn histogram_buckets_are_powers_of_two_microseconds() {
        let mut distribution = Distribution::default();
        assert_eq!(distribution.by_doubling(), []);
        for ns in [300, 999, 1000, 5_000] {
            distribution.record(SimDuration::from_ns(ns));
        }
        let buckets = distribution.by_doubling();
        let buckets = buckets.iter().map(|of| (of.from_ns, of.below_ns, of.count));
        let expected = [(0, 1000, 2), (1000, 2000, 1), (2000, 4000, 0), (4000, 8000, 1)];
        assert_eq!(buckets.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn mean_stays_exact_beyond_hour() {
        let mut distribution = Distribution::default();
        distribution.record(SimDuration::from_secs(10_000));
        assert_eq!(distribution.summary().mean_ns, 1e13);
        assert_eq!(distribution.max_ns(), 10_000_000_000_000);
    }

    #[test]
    fn summary_percentiles_match_names() {
        let mut distribution = Distribution::default();
        (1..=100_000).for_each(|us| distribution.record(SimDuration::from_us(us)));
        let s = distribution.summary();
        let us =
            [s.p50_ns, s.p90_ns, s.p95_ns, s.p99_ns, s.p999_ns, s.p9999_ns].map(|ns| ns / 1000);
        for (ours, exact) in us.into_iter().zip([50_000, 90_000, 95_000, 99_000, 99_900, 99_990]) {
            assert!(ours.abs_diff(exact) <= exact / 1000, "{ours} against {exact}");
        }
    }

    proptest! {
        #[test]
        fn quantiles_match_sorted_list_to_thousandth(
            mut list in prop::collection::vec(0u64..100_000_000_000, 1..400),
            quantile in 0.0f64..=1.0
        ) {
            let mut distribution = Distribution::default();
            list.iter().for_each(|&ns| distribution.record(SimDuration::from_ns(ns)));
            list.sort_unstable();
            let rank = ((quantile * list.len() as f64).ceil() as usize).clamp(1, list.len());
            let (exact, ours) = (list[rank - 1] as f64, distribution.quantile_ns(quantile) as f64);
            prop_assert!((ours - exact).abs() <= exact * 0.001 + 1.0, "{} against {}", ours, exact);
        }

        #[test]
        fn durations_fall_into_right_bucket(
            list in prop::collection::vec((0u32..31, 0u64..2_000, 0u64..=1), 1..100)
        ) {
            // Around the ends of buckets too, where a histogram in steps could be wrong.
            let list: Vec<u64> = list
                .into_iter()
                .map(|(power, ns, beside)| match ns {
                    0..1_000 => (1_000 << power) - beside,
                    _ => ns << power,
                })
                .collect();
            let mut distribution = Distribution::default();
            list.iter().for_each(|&ns| distribution.record(SimDuration::from_ns(ns)));
            let buckets = distribution.by_doubling();
            for bucket in &buckets {
                let range = bucket.from_ns..bucket.below_ns;
                let count = list.iter().filter(|ns| range.contains(ns)).count() as u64;
                prop_assert_eq!(bucket.count, count, "{:?}", bucket);
            }
            prop_assert!(buckets.windows(2).all(|two| two[0].below_ns == two[1].from_ns));
            prop_assert_eq!(buckets.iter().map(|bucket| bucket.count).sum::<u64>(), list.len() as u64);
        }

        #[test]
        fn mean_and_variation_match_list(
            list in prop::collection::vec(1_000_000u64..1_000_000_000, 2..200)
        ) {
            let mut distribution = Distribution::default();
            list.iter().for_each(|&ns| distribution.record(SimDuration::from_ns(ns)));
            let n = list.len() as f64;
            let mean = list.iter().sum::<u64>() as f64 / n;
            let variance = list.iter().map(|&x| (x as f64 - mean).powi(2)).sum::<f64>() / n;
            prop_assert!((distribution.mean_ns() - mean).abs() < 1.0);
            prop_assert!((distribution.coefficient_of_variation() - variance.sqrt() / mean).abs() < 1e-4);
        }
    }
}
