//! SPTF-SWn%: shortest seek among those whose positioning time is within n % of the shortest.

use super::by_cylinder::ByCylinder;
use super::{Moment, Policy, Waiting};

/// Between SPTF (n = 0) and SSTF (n = infinite): gives up a little positioning time for a shorter
/// seek, and so for more rotational latency that freeblock requests can use (osdi00 section 3.3).
#[derive(Debug)]
pub struct SptfSw {
    queue: ByCylinder,
    /// 1 + n, in units of 2^-32; None for infinite n, where every request is within the window
    /// even of a positioning time of zero.
    factor_q32: Option<u128>,
}

impl SptfSw {
    /// `window` is n as a fraction: 0.4 for SPTF-SW40%. Panics when it is negative or not a
    /// number; infinite is allowed and gives SSTF.
    pub fn new(window: f64) -> Self {
        assert!(window >= 0.0, "window of {window}");
        // In units of 2^-32 the multiplication below is the same on every machine. No positioning
        // time above zero is 2^30 times shorter than another.
        let finite = window.min(f64::from(1 << 30));
        let factor_q32 = window.is_finite().then_some(((1.0 + finite) * 4_294_967_296.0) as u128);
        Self { queue: ByCylinder::default(), factor_q32 }
    }

    fn limit_ns(&self, shortest_ns: u64) -> u64 {
        self.factor_q32
            .and_then(|factor| u64::try_from((u128::from(shortest_ns) * factor) >> 32).ok())
            .unwrap_or(u64::MAX)
    }
}

impl Policy for SptfSw {
    fn push(&mut self, waiting: Waiting) {
        self.queue.push(waiting);
    }

    fn pick(&mut self, moment: &Moment<'_>) -> Option<Waiting> {
        let from_head = moment.positionings();
        let (shortest_ns, _) = self.queue.least(
            moment,
            |_| 0,
            |request, limit_ns| request.total_ns(&from_head, limit_ns),
        )?;
        let window_ns = self.limit_ns(shortest_ns);
        self.queue.take_least(
            moment,
            |_| 0,
            |request, limit_ns| {
                let seek_ns = from_head.seek_ns(request.start);
                (seek_ns <= limit_ns && request.total_ns(&from_head, window_ns).is_some())
                    .then_some(seek_ns)
            },
        )
    }

    fn take(&mut self, sequence: u64) -> Option<Waiting> {
        self.queue.take(sequence)
    }

    fn len(&self) -> usize {
        self.queue.len()
    }
}
