//! Distributions of integers, as mean and quantiles.

use hdrhistogram::Histogram;
use serde::Serialize;

/// Largest value; larger ones count as this one. It exceeds any duration of 146 years and any block
/// number.
const VALUE_MAX: u64 = 1 << 62;
const SIGNIFICANT_DIGITS: u8 = 3;

/// A distribution under collection; 0.4 MB for any number of values.
#[derive(Debug)]
pub(super) struct Quantiles {
    histogram: Histogram<u64>,
    sum: u128,
    max: u64,
}

impl Default for Quantiles {
    fn default() -> Self {
        let histogram = Histogram::new_with_bounds(1, VALUE_MAX, SIGNIFICANT_DIGITS);
        Self { histogram: histogram.expect("the bounds are valid constants"), sum: 0, max: 0 }
    }
}

impl Quantiles {
    pub fn record(&mut self, value: u64) {
        self.histogram.saturating_record(value);
        self.sum += u128::from(value);
        self.max = self.max.max(value);
    }

    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// Exact mean; 0 without values.
    pub fn mean(&self) -> f64 {
        if self.count() == 0 { 0.0 } else { self.sum as f64 / self.count() as f64 }
    }

    /// The least value that this share of the values does not exceed; 0 without values. Rounded down to
    /// three digits in binary, so that large powers of two stay exact.
    pub fn at(&self, share: f64) -> u64 {
        self.histogram.lowest_equivalent(self.histogram.value_at_quantile(share))
    }

    /// Exact maximum; 0 without values.
    pub fn max(&self) -> u64 {
        self.max
    }
}

/// A distribution of durations.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct DurationSummary {
    pub count: u64,
    pub mean_ns: f64,
    pub p50_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    pub max_ns: u64,
}

impl DurationSummary {
    /// None without values.
    pub(super) fn of(times: &Quantiles) -> Option<Self> {
        (times.count() > 0).then(|| Self {
            count: times.count(),
            mean_ns: times.mean(),
            p50_ns: times.at(0.5),
            p99_ns: times.at(0.99),
            max_ns: times.max(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_exact_small_three_digits_large() {
        let mut values = Quantiles::default();
        (0..=1000).for_each(|value| values.record(value));
        assert_eq!((values.at(0.5), values.at(0.99), values.max()), (500, 990, 1000));
        let mut large = Quantiles::default();
        large.record(123_456_789);
        assert!((123_330_000..=123_456_789).contains(&large.at(0.5)), "{}", large.at(0.5));
    }

    #[test]
    fn values_beyond_limit_do_not_panic() {
        let mut values = Quantiles::default();
        values.record(u64::MAX);
        values.record(0);
        assert_eq!(values.count(), 2);
        assert_eq!(values.max(), u64::MAX);
    }
}
