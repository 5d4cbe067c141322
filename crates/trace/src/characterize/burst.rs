//! Burstiness of arrivals.

use serde::Serialize;

const SECOND_NS: u64 = 1_000_000_000;

/// Burstiness of arrivals. Windows follow one another from the first arrival on; the last may be cut short
/// by the end of the trace and counts whole.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Burstiness {
    /// Requests in the busiest window of 1 s over those in the mean one.
    pub peak_to_mean_1s: f64,
    /// Ratio of the peak to the mean over 10 s.
    pub peak_to_mean_10s: f64,
    /// Ratio of the peak to the mean over 60 s.
    pub peak_to_mean_60s: f64,
    /// Index of dispersion of counts: variance over mean of the requests in windows of 1 s.
    /// 1 for a Poisson process.
    pub dispersion_1s: f64,
    /// Mean time between arrivals.
    pub interarrival_mean_ns: f64,
    /// Standard deviation over mean of the time between arrivals. 1 for a Poisson process.
    pub interarrival_cv: f64,
}

/// Counts of requests in windows of one width.
#[derive(Debug)]
struct Windows {
    width_ns: u64,
    index: u64,
    requests: u64,
    peak: u64,
    total: u64,
    /// Sum of squares of the windows before this one.
    squares: u128,
}

impl Windows {
    fn new(seconds: u64) -> Self {
        let width_ns = seconds * SECOND_NS;
        Self { width_ns, index: 0, requests: 0, peak: 0, total: 0, squares: 0 }
    }

    fn observe(&mut self, since_first_ns: u64) {
        let index = since_first_ns / self.width_ns;
        if index > self.index {
            self.squares += square(self.requests);
            (self.index, self.requests) = (index, 0);
        }
        self.requests += 1;
        self.total += 1;
        self.peak = self.peak.max(self.requests);
    }

    fn mean(&self) -> f64 {
        self.total as f64 / (self.index + 1) as f64
    }

    fn peak_to_mean(&self) -> f64 {
        if self.total == 0 { 0.0 } else { self.peak as f64 / self.mean() }
    }

    fn dispersion(&self) -> f64 {
        if self.total == 0 {
            return 0.0;
        }
        let squares = (self.squares + square(self.requests)) as f64;
        let mean_square = squares / (self.index + 1) as f64;
        (mean_square - self.mean() * self.mean()) / self.mean()
    }
}

fn square(count: u64) -> u128 {
    u128::from(count) * u128::from(count)
}

#[derive(Debug)]
pub(super) struct BurstCollector {
    windows: [Windows; 3],
    last_ns: Option<u64>,
    gaps: Moments,
}

impl Default for BurstCollector {
    fn default() -> Self {
        Self { windows: [1, 10, 60].map(Windows::new), last_ns: None, gaps: Moments::default() }
    }
}

impl BurstCollector {
    pub fn observe(&mut self, since_first_ns: u64) {
        self.windows.iter_mut().for_each(|windows| windows.observe(since_first_ns));
        if let Some(last_ns) = self.last_ns.replace(since_first_ns) {
            self.gaps.add((since_first_ns - last_ns) as f64);
        }
    }

    pub fn finish(self) -> Burstiness {
        let [peak_to_mean_1s, peak_to_mean_10s, peak_to_mean_60s] =
            self.windows.each_ref().map(Windows::peak_to_mean);
        Burstiness {
            peak_to_mean_1s,
            peak_to_mean_10s,
            peak_to_mean_60s,
            dispersion_1s: self.windows[0].dispersion(),
            interarrival_mean_ns: self.gaps.mean,
            interarrival_cv: self.gaps.variation(),
        }
    }
}

/// Mean and variance in one pass (Welford 1962).
#[derive(Debug, Default)]
struct Moments {
    count: u64,
    mean: f64,
    squares: f64,
}

impl Moments {
    fn add(&mut self, value: f64) {
        self.count += 1;
        let off_mean = value - self.mean;
        self.mean += off_mean / self.count as f64;
        self.squares += off_mean * (value - self.mean);
    }

    /// Standard deviation (of the population) over the mean; 0 when the mean is.
    fn variation(&self) -> f64 {
        if self.mean == 0.0 { 0.0 } else { (self.squares / self.count as f64).sqrt() / self.mean }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn burstiness(times: impl IntoIterator<Item = u64>) -> Burstiness {
        let mut burst = BurstCollector::default();
        times.into_iter().for_each(|time| burst.observe(time));
        burst.finish()
    }

    #[test]
    fn steady_load_has_no_bursts() {
        let steady = burstiness((0..600).map(|n| n * SECOND_NS / 10));
        assert_eq!((steady.peak_to_mean_1s, steady.dispersion_1s), (1.0, 0.0));
        assert_eq!(steady.interarrival_mean_ns, 1e8);
        assert!(steady.interarrival_cv < 1e-12);
    }

    #[test]
    fn burst_in_one_second_peaks_tenfold() {
        let burst = burstiness((0..99).chain([9 * SECOND_NS]));
        // 100 requests in 10 windows; 99 of them in the first.
        assert!((burst.peak_to_mean_1s - 9.9).abs() < 1e-9);
        assert_eq!(burst.peak_to_mean_10s, 1.0);
        // Mean 10, mean square (99^2 + 1) / 10 = 980.2, variance 880.2.
        assert!((burst.dispersion_1s - 88.02).abs() < 1e-9);
    }

    #[test]
    fn empty_load_is_not_bursty() {
        assert_eq!(burstiness([]).peak_to_mean_1s, 0.0);
    }
}
