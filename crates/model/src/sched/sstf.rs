//! Shortest seek time first.

use super::by_cylinder::ByCylinder;
use super::{Moment, Policy, Waiting};

/// Serves the request with the shortest seek. Seek *time* counts, with head switch and write
/// settling, and not distance: measured curves are not monotone.
#[derive(Debug, Default)]
pub struct Sstf {
    queue: ByCylinder,
}

impl Policy for Sstf {
    fn push(&mut self, waiting: Waiting) {
        self.queue.push(waiting);
    }

    fn pick(&mut self, moment: &Moment<'_>) -> Option<Waiting> {
        let from_head = moment.positionings();
        self.queue.take_least(
            moment,
            |_| 0,
            |request, limit_ns| {
                Some(from_head.seek_ns(request.start)).filter(|seek_ns| *seek_ns <= limit_ns)
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
