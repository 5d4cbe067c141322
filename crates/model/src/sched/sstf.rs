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
        let mut best = None;
        let mut best_key = (u64::MAX, u64::MAX);
        let seek = moment.drive.seek();
        self.queue.outwards(moment.head.cylinder, seek, u64::MAX, |found, waiting| {
            let seek_ns = moment.drive.seek_to(moment.head, &waiting.target).ns();
            if (seek_ns, waiting.sequence) < best_key {
                best_key = (seek_ns, waiting.sequence);
                best = Some(found);
            }
            best_key.0
        });
        best.map(|found| self.queue.remove(found))
    }

    fn len(&self) -> usize {
        self.queue.len()
    }
}
