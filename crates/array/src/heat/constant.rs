//! Heat of one extent in constant space for any k (the footnote of tr96 section 3.3).

use freewheel_units::SimTime;

use super::tracker::seconds_between;

/// The time of the last access and an estimate of that k - 1 accesses before.
///
/// tr96 keeps t_n and t_{n-k+1} alone and does not say how the second moves on. Here it moves on by the mean
/// interval of the window: exact for steady accesses, an exponential average with weight 1/(k-1) otherwise.
/// The mean amount is averaged with weight 1/k. Up to k accesses both are exact.
#[derive(Debug, Clone, PartialEq)]
pub struct ConstantTracker {
    accesses_max: u32,
    accesses: u32,
    /// Seconds from the estimated start of the window to the last access.
    window_s: f64,
    last: SimTime,
    mean_amount: f64,
    aged: Option<f64>,
}

impl ConstantTracker {
    /// Averages over `accesses_max` accesses (k). Panics below 2.
    pub fn new(accesses_max: u32) -> Self {
        assert!(accesses_max >= 2, "an interval needs two accesses, not {accesses_max}");
        Self {
            accesses_max,
            accesses: 0,
            window_s: 0.0,
            last: SimTime::ZERO,
            mean_amount: 0.0,
            aged: None,
        }
    }

    /// Counts an access.
    pub fn record(&mut self, at: SimTime, amount: f64) {
        if self.accesses > 0 {
            self.window_s = self.kept_window_s() + seconds_between(self.last, at);
        }
        self.accesses = (self.accesses + 1).min(self.accesses_max);
        self.mean_amount += (amount - self.mean_amount) / f64::from(self.accesses);
        self.last = at;
        self.aged = None;
    }

    /// A pseudo-request, as [`HeatTracker::age`](super::HeatTracker::age).
    pub fn age(&mut self, now: SimTime) {
        let Some(heat) = self.heat() else { return };
        let count = (self.accesses + 1).min(self.accesses_max);
        let window_s = self.kept_window_s() + seconds_between(self.last, now);
        let aged = f64::from(count) * self.mean_amount / window_s;
        if aged < heat {
            self.aged = Some(aged);
        }
    }

    /// Accesses that the heat rests on, k at most.
    pub fn accesses(&self) -> u32 {
        self.accesses
    }

    /// Amount a second. None for fewer than two accesses.
    pub fn heat(&self) -> Option<f64> {
        let heat = f64::from(self.accesses) * self.mean_amount / self.window_s;
        (self.accesses >= 2).then(|| self.aged.unwrap_or(heat))
    }

    pub(super) fn scale(&mut self, factor: f64) {
        self.mean_amount *= factor;
        self.aged = self.aged.map(|heat| heat * factor);
    }

    /// The window without its first interval when k accesses fill it.
    fn kept_window_s(&self) -> f64 {
        if self.accesses < self.accesses_max {
            return self.window_s;
        }
        let intervals = f64::from(self.accesses_max - 1);
        self.window_s * (1.0 - 1.0 / intervals)
    }
}
