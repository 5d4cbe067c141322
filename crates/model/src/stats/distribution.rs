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
pub struct Summary {
    /// How many durations.
    pub count: u64,
    /// Mean.
    pub mean_ns: f64,
    /// Standard deviation over mean.
    pub coefficient_of_variation: f64,
    /// Shortest.
    pub min_ns: u64,
    /// Median.
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
    /// Longest.
    pub max_ns: u64,
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

    /// How many were counted.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// Exact mean, zero when nothing was counted.
    pub fn mean_ns(&self) -> f64 {
        if self.count() == 0 { 0.0 } else { self.sum_ns as f64 / self.count() as f64 }
    }

    /// Standard deviation over mean, zero when nothing was counted.
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
    fn nothing_counted_is_all_zero() {
        assert_eq!(Distribution::default().summary(), Summary::default());
    }

    #[test]
    fn beyond_an_hour_the_mean_stays_exact() {
        let mut distribution = Distribution::default();
        distribution.record(SimDuration::from_secs(10_000));
        assert_eq!(distribution.summary().mean_ns, 1e13);
        assert_eq!(distribution.max_ns(), 10_000_000_000_000);
    }

    #[test]
    fn every_percentile_of_a_summary_is_the_one_its_name_says() {
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
        fn quantiles_are_those_of_the_sorted_list_to_a_thousandth(
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
        fn mean_and_variation_are_those_of_the_list(
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
