//! none: no scheduler.

use freewheel_units::SimTime;

use super::software_queue::SoftwareQueue;
use super::{IoRequest, IoScheduler, Merged};

/// Requests go to the drive in order of arrival while it has room. Without a scheduler a request needs one of
/// the adapter's tags, and waits in the software queue where the drive's own queue is shorter: there another may
/// join it. A busy drive's requests are taken out one by one (`blk_mq_do_dispatch_ctx`).
#[derive(Debug, Default)]
pub(super) struct NoScheduler {
    queue: SoftwareQueue,
}

impl IoScheduler for NoScheduler {
    fn merge(&mut self, request: &IoRequest) -> Option<Merged> {
        self.queue.merge(request)
    }

    fn insert(&mut self, _: SimTime, request: IoRequest) {
        self.queue.push(request);
    }

    fn dispatch(&mut self, _: SimTime) -> Option<IoRequest> {
        self.queue.pop()
    }

    fn completed(&mut self, _: SimTime, _: &IoRequest, _: SimTime) {}
}
