//! Shortest positioning time first.

use super::by_cylinder::ByCylinder;
use super::{Moment, Policy, Waiting};

/// Serves the request with the smallest sum of seek time and rotational latency (osdi00
/// section 3.3).
#[derive(Debug, Default)]
pub struct Sptf {
    queue: ByCylinder,
}

impl Policy for Sptf {
    fn push(&mut self, waiting: Waiting) {
        self.queue.push(waiting);
    }

    fn pick(&mut self, moment: &Moment<'_>) -> Option<Waiting> {
        let from_head = moment.positionings();
        self.queue.take_least(
            moment,
            |_| 0,
            |request, limit_ns| request.total_ns(&from_head, limit_ns),
        )
    }

    fn take(&mut self, sequence: u64) -> Option<Waiting> {
        self.queue.take(sequence)
    }

    fn len(&self) -> usize {
        self.queue.len()
    }
}
