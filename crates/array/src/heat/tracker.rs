//! Heat of one extent: a moving average over its last accesses (tr96 section 3.3).

use std::collections::VecDeque;

use freewheel_units::SimTime;

#[derive(Debug, Clone, Copy, PartialEq)]
struct Access {
    at: SimTime,
    amount: f64,
}

/// The last k accesses, with the amount of each: blocks, or seconds of head time.
///
/// The heat is k R / (t_n - t_{n-k+1}) a second, with R the mean amount. The k accesses span only k - 1
/// intervals, so steady accesses are overestimated by k/(k-1); the paper's formula is kept literally.
#[derive(Debug, Clone, PartialEq)]
pub struct HeatTracker {
    accesses_max: usize,
    accesses: VecDeque<Access>,
    /// Mean amount of these accesses: it is asked for more often than it changes.
    mean: f64,
    /// A lower estimate by a pseudo-request since the last access.
    aged: Option<f64>,
}

impl HeatTracker {
    /// Remembers `accesses_max` accesses (k). Panics below 2.
    pub fn new(accesses_max: u32) -> Self {
        assert!(accesses_max >= 2, "an interval needs two accesses, not {accesses_max}");
        let accesses_max = accesses_max as usize;
        Self { accesses_max, accesses: VecDeque::new(), mean: 0.0, aged: None }
    }

    /// Counts an access.
    pub fn record(&mut self, at: SimTime, amount: f64) {
        if self.accesses.len() == self.accesses_max {
            self.accesses.pop_front();
        }
        self.accesses.push_back(Access { at, amount });
        self.mean = self.mean_amount();
        self.aged = None;
    }

    /// A pseudo-request: lowers the heat to the one after an access at `now`, if that is lower. History
    /// does not keep the pseudo-request, or a cold extent's heat would end at one a period.
    pub fn age(&mut self, now: SimTime) {
        // The pseudo-request takes the place of the oldest access, or one more if there is room.
        let is_full = self.accesses.len() == self.accesses_max;
        let (Some(first), Some(heat)) = (self.accesses.get(usize::from(is_full)), self.heat())
        else {
            return;
        };
        let count = self.accesses.len() + usize::from(!is_full);
        let aged = count as f64 * self.mean / seconds_between(first.at, now);
        if aged < heat {
            self.aged = Some(aged);
        }
    }

    /// Accesses that the heat rests on, k at most.
    pub fn accesses(&self) -> u32 {
        self.accesses.len() as u32
    }

    /// Amount a second. None for fewer than two accesses.
    pub fn heat(&self) -> Option<f64> {
        let (first, last) = (self.accesses.front()?, self.accesses.back()?);
        if self.accesses.len() < 2 {
            return None;
        }
        let count = self.accesses.len() as f64;
        let heat = count * self.mean / seconds_between(first.at, last.at);
        Some(self.aged.unwrap_or(heat))
    }

    /// Multiplies every amount of the extent by `factor`.
    pub(super) fn scale(&mut self, factor: f64) {
        self.accesses.iter_mut().for_each(|access| access.amount *= factor);
        self.mean = self.mean_amount();
        self.aged = self.aged.map(|heat| heat * factor);
    }

    fn mean_amount(&self) -> f64 {
        let sum: f64 = self.accesses.iter().map(|access| access.amount).sum();
        sum / self.accesses.len() as f64
    }
}

/// Accesses of one instant count as a nanosecond apart.
pub(super) fn seconds_between(from: SimTime, to: SimTime) -> f64 {
    to.saturating_since(from).ns().max(1) as f64 * 1e-9
}
