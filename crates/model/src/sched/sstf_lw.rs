//! SSTF-LW: shortest seek first, where rotational latency makes up for seek time.

use super::by_cylinder::ByCylinder;
use super::{Moment, Policy, Waiting};

/// For drives with freeblock work: seek time is lost to everybody, rotational latency is what freeblock
/// requests live on. Serves the request with the least seek time less `latency_weight` times its
/// latency. A latency_weight of zero gives SSTF, and SPTF would be one of minus one: the paper's
/// SPTF-SW (osdi00 section 3.3) trades positioning time for latency between those two, this extends
/// beyond SSTF.
#[derive(Debug)]
pub struct SstfLw {
    queue: ByCylinder,
    /// In units of 2^-32, so that it multiplies the same on every machine.
    latency_weight_q32: u128,
}

impl SstfLw {
    /// Panics when `latency_weight` is negative or not a number.
    pub fn new(latency_weight: f64) -> Self {
        assert!(
            latency_weight >= 0.0 && latency_weight.is_finite(),
            "latency_weight of {latency_weight}"
        );
        Self {
            queue: ByCylinder::default(),
            latency_weight_q32: (latency_weight * 4_294_967_296.0) as u128,
        }
    }
}

impl Policy for SstfLw {
    fn push(&mut self, waiting: Waiting) {
        self.queue.push(waiting);
    }

    fn pick(&mut self, moment: &Moment<'_>) -> Option<Waiting> {
        let Self { queue, latency_weight_q32 } = self;
        let period = moment.drive.rotation().period();
        queue.take_least(
            moment,
            |_| 0,
            |request, limit_ns| {
                let target = &request.waiting().target;
                let positioning = moment.drive.positioning(moment.now, moment.head, target);
                // Counted as what is missing of a turn, which is never negative.
                let missing = u128::from(period.saturating_sub(positioning.rotate).ns());
                let lost = (missing * *latency_weight_q32) >> 32;
                let key_ns = positioning.seek.ns() + u64::try_from(lost).unwrap_or(u64::MAX / 2);
                (key_ns <= limit_ns).then_some(key_ns)
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
