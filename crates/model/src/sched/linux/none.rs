//! none: no scheduler.

use std::collections::VecDeque;

use freewheel_units::SimTime;

use super::{IoRequest, IoScheduler, Merged};

/// Requests go to the drive in order of arrival while it has room. A request has no place to wait in
/// which another could join it.
#[derive(Debug, Default)]
pub(super) struct NoScheduler {
    queue: VecDeque<IoRequest>,
}

impl IoScheduler for NoScheduler {
    fn merge(&mut self, _: &IoRequest) -> Option<Merged> {
        None
    }

    fn insert(&mut self, _: SimTime, request: IoRequest) {
        self.queue.push_back(request);
    }

    fn dispatch(&mut self, _: SimTime) -> Option<IoRequest> {
        self.queue.pop_front()
    }

    fn completed(&mut self, _: SimTime, _: &IoRequest, _: SimTime) {}
}
