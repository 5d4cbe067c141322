//! Load of a disk by the requests of files, and their waiting time there.

use crate::partition::Moments;

/// Requests that arrive at a disk, as an M/G/1 queue sees them. The loads of several files add up.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct QueueLoad {
    /// Requests a second.
    pub rate: f64,
    /// Seconds of head time that a second brings: rate times E\[t\]. At 1 the disk is always busy.
    pub busy: f64,
    /// Rate times E\[t²\], in s.
    pub second: f64,
}

/// Share of time from which on the wait by which moves are compared goes on along its tangent. So a disk
/// that cannot serve its load has a finite one, and the more overloaded of two such disks has the longer.
pub(super) const TANGENT_FROM: f64 = 0.95;

impl QueueLoad {
    /// `rate` requests a second with this service time.
    pub fn new(rate: f64, service: &Moments) -> Self {
        Self { rate, busy: rate * service.mean, second: rate * service.second }
    }

    /// Both loads on one disk.
    #[must_use]
    pub fn plus(self, other: &Self) -> Self {
        Self {
            rate: self.rate + other.rate,
            busy: self.busy + other.busy,
            second: self.second + other.second,
        }
    }

    /// Load without a part.
    #[must_use]
    pub fn minus(self, part: &Self) -> Self {
        Self {
            rate: left(self.rate, part.rate),
            busy: left(self.busy, part.busy),
            second: left(self.second, part.second),
        }
    }

    /// Each request with a time before it that does not depend on its own: first and second moment.
    #[must_use]
    pub fn after(self, time: [f64; 2]) -> Self {
        let [mean, second] = time;
        Self {
            rate: self.rate,
            busy: self.busy + self.rate * mean,
            second: self.second + 2.0 * mean * self.busy + self.rate * second,
        }
    }

    /// Mean wait in seconds before the head begins with a request (21), to compare moves by: the exact one
    /// up to 95 % busy, and its tangent beyond.
    pub fn compared_wait_s(&self) -> f64 {
        let idle = 1.0 - self.busy.min(TANGENT_FROM);
        let beyond = (self.busy - TANGENT_FROM).max(0.0);
        0.5 * self.second * (1.0 / idle + beyond / (idle * idle))
    }

    /// The wait that a copy's pieces are expected to have: that of a disk which is 95 % busy at most. The
    /// queue of a disk that cannot serve its load has no end, and a copy from it has one.
    pub fn wait_of_copy_s(&self) -> f64 {
        0.5 * self.second / (1.0 - self.busy.min(TANGENT_FROM))
    }

    /// Requests that wait or are served, to compare moves by: rate times response, by Little's law.
    pub fn compared_present(&self) -> f64 {
        self.rate * self.compared_wait_s() + self.busy
    }

    /// Requests that wait or are served, on average. None where the disk cannot serve its load.
    pub fn requests_present(&self) -> Option<f64> {
        self.is_sustained().then(|| self.rate * (0.5 * self.second / (1.0 - self.busy)) + self.busy)
    }

    /// True if the disk can serve the load at all.
    pub fn is_sustained(&self) -> bool {
        self.busy < 1.0
    }
}

/// Rounding may leave a little less than zero.
fn left(all: f64, part: f64) -> f64 {
    (all - part).max(0.0)
}
