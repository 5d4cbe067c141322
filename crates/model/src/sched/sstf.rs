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
        self.queue
            .take_least(moment, |waiting| moment.drive.seek_to(moment.head, &waiting.target).ns())
    }

    fn len(&self) -> usize {
        self.queue.len()
    }
}
