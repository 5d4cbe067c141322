//! One queue of BFQ: the waiting requests of a process, its budget, and how it behaves.

use std::cmp::Reverse;

use freewheel_units::{Lbn, SimDuration, SimTime};

use super::IoRequest;
use super::sorted::SortedRequests;

/// Distance in blocks that makes a request a seek: `BFQQ_SEEK_THR`.
const SEEK_BLOCKS: u64 = 800;
/// A process with more seeks among its last 32 requests is one that seeks: `BFQQ_SEEKY`.
const SEEKS_MAX: u32 = 19;
/// Longest way back that is taken, and how many ways ahead it counts as: `bfq_back_max`,
/// `bfq_back_penalty`.
const BACK_BLOCKS_MAX: u64 = 32_768;
const BACK_PENALTY: u64 = 2;
/// Blocks that an asynchronous block counts as: `bfq_async_charge_factor`.
const ASYNC_CHARGE: u64 = 3;
pub(super) const WEIGHT: u64 = 100;
/// Bits of a virtual time after the point: `BFQ_SERVICE_SHIFT`.
const SERVICE_SHIFT: u32 = 22;
/// Weighted samples from which a mean think time is relied on: `bfq_sample_valid`.
const THINK_SAMPLES: u64 = 80;

/// The waiting requests of a process, and its account with BFQ.
#[derive(Debug)]
pub(super) struct BfqQueue {
    pub is_sync: bool,
    pub waiting: SortedRequests,
    /// The request to send next.
    pub next: Option<IoRequest>,
    /// Age from which a request goes first, once a slice.
    fifo_expire: SimDuration,
    /// The age has been looked at in this slice.
    fifo_is_checked: bool,
    pub at_drive: u32,
    /// The queue has requests, or is the one in service.
    pub is_busy: bool,
    /// Blocks of the present slice.
    pub budget: u64,
    /// Blocks of it that were sent.
    pub service: u64,
    /// Blocks that the next slice gets.
    pub next_budget: u64,
    /// Virtual time from which the budget is due.
    pub start: u64,
    /// Virtual time at which the budget would be served.
    pub finish: u64,
    pub slice_began: SimTime,
    pub idles: Option<Idling>,
    /// A bit for each of the last 32 requests, set for a seek.
    seeks: u32,
    last_end: Lbn,
    think: ThinkTime,
}

/// Time for which the drive stays idle for a queue.
#[derive(Debug, Clone, Copy)]
pub(super) struct Idling {
    pub from: SimTime,
    pub until: SimTime,
}

/// Mean time from a completion to the next request, of which the latest count most.
#[derive(Debug, Default)]
struct ThinkTime {
    samples: u64,
    total_ns: u64,
    /// End of the last request.
    ended: SimTime,
}

impl ThinkTime {
    /// Counts a time of at most twice `slice_idle`, in the kernel's fixed-point mean.
    fn count(&mut self, now: SimTime, slice_idle: SimDuration) {
        let elapsed_ns = (now - self.ended).ns().min(2 * slice_idle.ns());
        self.samples = (7 * self.samples + 256) / 8;
        self.total_ns = (7 * self.total_ns + 256 * elapsed_ns) / 8;
    }

    /// False once enough times are known and their mean is beyond `slice_idle`.
    fn is_short(&self, slice_idle: SimDuration) -> bool {
        self.samples <= THINK_SAMPLES || (self.total_ns + 128) / self.samples <= slice_idle.ns()
    }
}

impl BfqQueue {
    pub fn new(is_sync: bool, budget: u64, fifo_expire: SimDuration) -> Self {
        Self {
            is_sync,
            waiting: SortedRequests::default(),
            next: None,
            fifo_expire,
            fifo_is_checked: false,
            at_drive: 0,
            is_busy: false,
            budget: 0,
            service: 0,
            next_budget: budget,
            start: 0,
            finish: 0,
            slice_began: SimTime::ZERO,
            idles: None,
            // The first request of a process is most likely a seek.
            seeks: u32::from(is_sync),
            last_end: Lbn::ZERO,
            think: ThinkTime::default(),
        }
    }

    /// Blocks that a request counts as.
    pub fn charge(&self, request: &IoRequest) -> u64 {
        u64::from(request.blocks) * if self.is_sync { 1 } else { ASYNC_CHARGE }
    }

    pub fn is_seeky(&self) -> bool {
        self.seeks.count_ones() > SEEKS_MAX
    }

    /// True if an idle drive would soon get the next sequential request.
    pub fn is_sequential(&self, slice_idle: SimDuration) -> bool {
        !self.is_seeky() && self.think.is_short(slice_idle)
    }

    pub fn insert(&mut self, now: SimTime, request: IoRequest, head: Lbn, slice_idle: SimDuration) {
        // A request beside others of its process tells of no think time.
        if self.at_drive == 0 && !self.is_busy {
            self.think.count(now, slice_idle);
        }
        let distance = self.last_end.get().abs_diff(request.start.get());
        self.seeks = (self.seeks << 1) | u32::from(distance > SEEK_BLOCKS);
        self.last_end = request.end();
        self.waiting.insert(request);
        self.next = nearer(self.next, Some(request), head);
    }

    /// Requests have been joined to the one with the sequence `into`; with `front` it begins earlier now.
    pub fn merged(&mut self, into: u64, front: bool, head: Lbn) {
        let joined = self.waiting.get(into);
        // The next request may have been joined to another one.
        let next = self.next.and_then(|next| self.waiting.get(next.sequence)).or(joined);
        self.next = if front { nearer(next, joined, head) } else { next };
    }

    /// Takes out the next request.
    pub fn take_next(&mut self, now: SimTime) -> Option<IoRequest> {
        let taken = self.next?;
        self.waiting.remove(&taken);
        self.service += self.charge(&taken);
        self.at_drive += 1;
        self.next = self.expired(now).or_else(|| {
            let ahead = self.waiting.after(&taken).or_else(|| self.waiting.first_from(Lbn::ZERO));
            nearer(ahead, self.waiting.before(&taken), taken.start)
        });
        Some(taken)
    }

    /// The oldest request, if it has waited for too long and none was asked for in this slice.
    fn expired(&mut self, now: SimTime) -> Option<IoRequest> {
        if std::mem::replace(&mut self.fifo_is_checked, true) {
            return None;
        }
        self.waiting.oldest().filter(|oldest| oldest.queued + self.fifo_expire <= now)
    }

    pub fn completed(&mut self, now: SimTime) {
        self.at_drive -= 1;
        self.think.ended = now;
    }

    pub fn begin_slice(&mut self, now: SimTime) {
        self.slice_began = now;
        self.fifo_is_checked = false;
    }

    /// Gives the queue a budget for its next slice, from the virtual time `start` on.
    pub fn schedule(&mut self, start: u64) {
        // A request larger than the budget would never go.
        let least = self.next.map_or(0, |next| self.charge(&next));
        self.budget = self.next_budget.max(least);
        self.service = 0;
        self.start = start;
        self.finish = start + virtual_time(self.budget, WEIGHT);
    }
}

/// The virtual time that this number of blocks takes for this weight.
pub(super) fn virtual_time(blocks: u64, weight: u64) -> u64 {
    (blocks << SERVICE_SHIFT) / weight
}

/// The way to a request. Shorter ways are less.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Way {
    /// True if the way back is beyond the limit. All such ways cost one long seek, so the lowest address
    /// counts as the shortest: the most lies ahead of it.
    is_far_back: bool,
    blocks: u64,
    /// Order of equal ways: the one ahead first.
    start: Reverse<Lbn>,
}

fn way(request: &IoRequest, head: Lbn) -> Way {
    let (start, head) = (request.start.get(), head.get());
    let back = head.saturating_sub(start);
    let is_far_back = back > BACK_BLOCKS_MAX;
    let blocks = match (back, is_far_back) {
        (0, _) => start - head,
        (_, true) => start,
        (_, false) => back * BACK_PENALTY,
    };
    Way { is_far_back, blocks, start: Reverse(request.start) }
}

/// The nearer of two requests.
fn nearer(a: Option<IoRequest>, b: Option<IoRequest>, head: Lbn) -> Option<IoRequest> {
    let (Some(first), Some(second)) = (a, b) else { return a.or(b) };
    Some(if way(&second, head) < way(&first, head) { second } else { first })
}
