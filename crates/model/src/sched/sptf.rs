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
        let mut best = None;
        let mut best_key = (u64::MAX, u64::MAX);
        let seek = moment.drive.seek();
        self.queue.outwards(moment.head.cylinder, seek, u64::MAX, |found, waiting| {
            let positioning = moment.drive.positioning(moment.now, moment.head, &waiting.target);
            let key = (positioning.total().ns(), waiting.sequence);
            if key < best_key {
                best_key = key;
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
