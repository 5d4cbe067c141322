//! BFQ: processes take turns at the drive, by budgets of blocks.
//!
//! ```text
//!   queue in service      sends in ascending order, until its budget or 125 ms are over or it is empty
//!   empty, sequential     the drive stays idle for up to 8 ms: the next request is most likely near
//!   the next queue        of those whose virtual start has come, the one with the earliest virtual finish
//!   virtual finish        start + budget / weight: a queue with a small budget is served soon
//!   the next budget       larger after a used one, smaller after an idle one
//! ```
//! A trace names no processes, so there are two queues of equal weight: one of all synchronous requests,
//! and the kernel's common one of asynchronous writes, whose blocks count threefold.
//!
//! Non-goals, as each needs processes: weight-raising of interactive and soft real-time processes
//! (`low_latency`), queue merging, bursts, injection, preemption, groups. The maximum budget stays as given,
//! where the kernel follows the measured rate of the drive.

use freewheel_units::{Lbn, SimDuration, SimTime};

use super::bfq_queue::{BfqQueue, Idling, WEIGHT, virtual_time};
use super::{IoRequest, IoScheduler, Merged};
use crate::spec::linux::BfqSpec;

/// Ages from which a request goes first.
const FIFO_EXPIRE_SYNC: SimDuration = SimDuration::from_ms(125);
const FIFO_EXPIRE_ASYNC: SimDuration = SimDuration::from_ms(250);
/// Longest time for which the drive stays idle for a process that seeks: `BFQ_MIN_TT`.
const IDLE_SEEKY: SimDuration = SimDuration::from_ms(2);
/// A shorter slice does not tell how fast a queue is.
const SLICE_SHORT: SimDuration = SimDuration::from_ms(1);
/// A longer slice tells by its blocks alone.
const SLICE_LONG: SimDuration = SimDuration::from_ms(20);
/// The least budget is this part of the maximum.
const BUDGET_PARTS: u64 = 32;

/// Numbers of the queues.
const SYNC: usize = 0;
const ASYNC: usize = 1;

/// Reason why a slice ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    TooIdle,
    Timeout,
    BudgetUsed,
    NoRequests,
}

/// BFQ with its waiting requests.
#[derive(Debug)]
pub(super) struct Bfq {
    spec: BfqSpec,
    /// The drive has its own queue.
    has_tags: bool,
    queues: [BfqQueue; 2],
    in_service: Option<usize>,
    virtual_now: u64,
    /// End of the last request that was sent.
    head: Lbn,
}

fn queue_of(request: &IoRequest) -> usize {
    if request.is_sync() { SYNC } else { ASYNC }
}

impl Bfq {
    pub fn new(spec: BfqSpec, has_tags: bool) -> Self {
        let first = u64::from(spec.max_budget) * 2 / 3;
        Self {
            spec,
            has_tags,
            queues: [
                BfqQueue::new(true, first, FIFO_EXPIRE_SYNC),
                BfqQueue::new(false, first, FIFO_EXPIRE_ASYNC),
            ],
            in_service: None,
            virtual_now: 0,
            head: Lbn::ZERO,
        }
    }

    fn max_budget(&self) -> u64 {
        self.spec.max_budget.into()
    }

    fn busy(&self) -> u64 {
        self.queues.iter().map(|queue| u64::from(queue.is_busy)).sum()
    }

    /// True if the drive had better stay idle for this queue in service when it is empty. A queue that is
    /// alone is as fast.
    fn should_idle(&self, number: usize) -> bool {
        let queue = &self.queues[number];
        let slice_idle = self.spec.slice_idle;
        let helps = !self.has_tags || queue.is_sequential(slice_idle);
        queue.is_sync && slice_idle > SimDuration::ZERO && (helps || self.busy() == 1)
    }

    fn is_over_time(&self, number: usize, now: SimTime) -> bool {
        let queue = &self.queues[number];
        // An idle queue that has used most of its budget may wait for its last requests.
        let may_end = queue.idles.is_none() || queue.budget - queue.service >= queue.budget / 3;
        may_end && now >= queue.slice_began + self.spec.timeout_sync
    }

    /// Ends the wait of the drive, if it was over by `now`.
    fn catch_up(&mut self, now: SimTime) {
        let Some(number) = self.in_service else { return };
        if let Some(Idling { until, .. }) = self.queues[number].idles
            && until <= now
        {
            let end = if self.is_over_time(number, until) { End::Timeout } else { End::TooIdle };
            self.end_slice(number, until, end);
        }
    }

    /// The queue to serve next, if one has requests.
    fn select(&mut self, now: SimTime) -> Option<usize> {
        let busy = self.queues.iter().filter(|queue| queue.is_busy);
        // With no queue due, virtual time leaps to the first that will be.
        self.virtual_now = self.virtual_now.max(busy.map(|queue| queue.start).min()?);
        let numbers = [SYNC, ASYNC].into_iter().filter(|&number| self.due(&self.queues[number]));
        let number = numbers.min_by_key(|&number| self.queues[number].finish)?;
        self.queues[number].begin_slice(now);
        self.in_service = Some(number);
        Some(number)
    }

    fn due(&self, queue: &BfqQueue) -> bool {
        queue.is_busy && queue.start <= self.virtual_now
    }

    /// Counts blocks as sent: virtual time advances by their part of all weights.
    fn serve(&mut self, blocks: u64) {
        self.virtual_now += virtual_time(blocks, WEIGHT * self.busy().max(1));
    }

    /// Ends the slice of the queue in service.
    fn end_slice(&mut self, number: usize, now: SimTime, end: End) {
        self.charge_time(number, now, end);
        self.queues[number].next_budget = self.next_budget(number, end);
        let queue = &mut self.queues[number];
        queue.finish = queue.start + virtual_time(queue.service, WEIGHT);
        queue.idles = None;
        queue.is_busy = !queue.waiting.is_empty();
        if queue.is_busy {
            queue.schedule(queue.finish);
        }
        self.in_service = None;
    }

    /// Charges a slow queue for its time as if it had used the drive fully, so that seeks cost that queue
    /// and not the others.
    fn charge_time(&mut self, number: usize, now: SimTime, end: End) {
        let queue = &self.queues[number];
        let used_to = queue.idles.map_or(now, |idling| idling.from);
        let time = used_to - queue.slice_began;
        let is_slow = queue.is_sync
            && if time > SLICE_LONG {
                queue.service < self.max_budget() / 2
            } else {
                queue.is_seeky()
            };
        let has_left = queue.budget - queue.service >= queue.budget / 3;
        let is_for_time = is_slow || (end == End::Timeout && has_left);
        if !is_for_time {
            return;
        }
        let time = if time < SLICE_SHORT { self.spec.slice_idle } else { time };
        let timeout_ns = self.spec.timeout_sync.ns();
        let charged = self.max_budget() * time.ns().min(timeout_ns) / timeout_ns;
        let more = charged.saturating_sub(queue.service);
        let queue = &mut self.queues[number];
        queue.service += more;
        queue.budget = queue.budget.max(queue.service);
        self.serve(more);
    }

    /// The budget of the queue's next slice.
    fn next_budget(&self, number: usize, end: End) -> u64 {
        let (most, least) = (self.max_budget(), self.max_budget() / BUDGET_PARTS);
        let queue = &self.queues[number];
        if !queue.is_sync {
            return most;
        }
        let last = queue.next_budget;
        match end {
            // Requests that are at the drive are why no other has come.
            End::TooIdle if queue.at_drive > 0 => (2 * last).min(most),
            End::TooIdle if last > 5 * least => last - 4 * least,
            End::TooIdle => least,
            End::Timeout => (2 * last).min(most),
            End::BudgetUsed => (4 * last).min(most),
            End::NoRequests => queue.service.clamp(least, most),
        }
    }

    /// The next request of the queue in service; None while the drive stays idle for it. Err says why its
    /// slice ends.
    fn next_of(&mut self, number: usize, now: SimTime) -> Result<Option<IoRequest>, End> {
        let should_idle = self.should_idle(number);
        let queue = &self.queues[number];
        if self.is_over_time(number, now) && !(queue.waiting.is_empty() && should_idle) {
            return Err(End::Timeout);
        }
        let Some(next) = queue.next else {
            let waits = queue.idles.is_some() || (queue.at_drive > 0 && should_idle);
            return if waits { Ok(None) } else { Err(End::NoRequests) };
        };
        let charge = queue.charge(&next);
        if charge > queue.budget - queue.service {
            return Err(End::BudgetUsed);
        }
        self.serve(charge);
        self.head = next.end();
        Ok(self.queues[number].take_next(now))
    }
}

impl IoScheduler for Bfq {
    fn merge(&mut self, request: &IoRequest) -> Option<Merged> {
        let queue = &mut self.queues[queue_of(request)];
        let merged = queue.waiting.merge(request, true)?;
        let is_front = queue.waiting.get(merged.into)?.start == request.start;
        queue.merged(merged.into, is_front, self.head);
        Some(merged)
    }

    fn merge_late(&mut self, request: &IoRequest) -> Option<Merged> {
        let queue = &mut self.queues[queue_of(request)];
        let merged = queue.waiting.merge_late(request)?;
        queue.merged(merged.into, false, self.head);
        Some(merged)
    }

    fn insert(&mut self, now: SimTime, request: IoRequest) {
        self.catch_up(now);
        let queue = &mut self.queues[queue_of(&request)];
        queue.insert(now, request, self.head, self.spec.slice_idle);
        queue.idles = None;
        if !queue.is_busy {
            queue.is_busy = true;
            queue.schedule(self.virtual_now.max(queue.finish));
        }
    }

    fn dispatch(&mut self, now: SimTime) -> Option<IoRequest> {
        self.catch_up(now);
        loop {
            let number = match self.in_service {
                Some(number) => number,
                None => self.select(now)?,
            };
            match self.next_of(number, now) {
                Ok(next) => return next,
                Err(end) => self.end_slice(number, now, end),
            }
        }
    }

    fn completed(&mut self, now: SimTime, request: &IoRequest, _: SimTime) {
        self.catch_up(now);
        let number = queue_of(request);
        self.queues[number].completed(now);
        if self.in_service != Some(number) {
            return;
        }
        let should_idle = self.should_idle(number);
        let queue = &mut self.queues[number];
        let is_empty = queue.waiting.is_empty();
        if is_empty && should_idle && queue.at_drive == 0 {
            let most = if queue.is_seeky() { IDLE_SEEKY } else { self.spec.slice_idle };
            let until = now + self.spec.slice_idle.min(most);
            queue.idles = Some(Idling { from: now, until });
        } else if self.is_over_time(number, now) {
            self.end_slice(number, now, End::Timeout);
        } else if is_empty && !should_idle {
            self.end_slice(number, now, End::NoRequests);
        }
    }

    /// The end of the wait for the queue in service, when another one has requests.
    fn wakes_at(&self) -> Option<SimTime> {
        let idling = self.queues[self.in_service?].idles?;
        let waits = self.queues.iter().any(|queue| !queue.waiting.is_empty());
        waits.then_some(idling.until)
    }
}
