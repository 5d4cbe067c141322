//! mq-deadline: ascending batches of one direction, and an age from which a request goes first.
//!
//! ```text
//!   reads:   by place  10  40  70     by age  40  70  10
//!   writes:  by place  20  50         by age  50  20
//!   sent:    reads from the place of the last read on, at most `fifo_batch`; then the direction is chosen
//!            anew: reads, unless writes have let reads go first `writes_starved` times
//! ```

use freewheel_units::{Lbn, Op, SimDuration, SimTime};

use super::sorted::SortedRequests;
use super::{IoRequest, IoScheduler, Merged};
use crate::spec::linux::MqDeadlineSpec;

/// Requests of one direction.
#[derive(Debug, Default)]
struct Direction {
    waiting: SortedRequests,
    /// Start of the last request that was sent.
    latest: Lbn,
}

impl Direction {
    /// The next request in ascending order.
    fn next(&self) -> Option<IoRequest> {
        self.waiting.first_from(self.latest)
    }

    /// The request to begin a batch with: the oldest when it has expired or no other lies ahead.
    fn first_of_batch(&self, now: SimTime, expire: SimDuration) -> Option<IoRequest> {
        let oldest = self.waiting.oldest()?;
        let is_expired = oldest.queued + expire <= now;
        if is_expired { Some(oldest) } else { self.next().or(Some(oldest)) }
    }
}

/// mq-deadline with its waiting requests.
#[derive(Debug)]
pub(super) struct MqDeadline {
    spec: MqDeadlineSpec,
    reads: Direction,
    writes: Direction,
    /// Direction of the batch.
    batch_op: Op,
    /// Requests of the batch so far.
    batched: u32,
    /// Batches of reads that have gone before waiting writes.
    starved: u32,
}

impl MqDeadline {
    pub fn new(spec: MqDeadlineSpec) -> Self {
        Self {
            spec,
            reads: Direction::default(),
            writes: Direction::default(),
            // As in the kernel: a batch of writes begins, with none sent.
            batch_op: Op::Write,
            batched: 0,
            starved: 0,
        }
    }

    fn direction(&mut self, op: Op) -> &mut Direction {
        if op == Op::Read { &mut self.reads } else { &mut self.writes }
    }

    /// The direction of the next batch; None when none waits.
    fn choose_direction(&mut self) -> Option<Op> {
        let has_writes = !self.writes.waiting.is_empty();
        if self.reads.waiting.is_empty() {
            self.starved = 0;
            return has_writes.then_some(Op::Write);
        }
        if has_writes {
            if self.starved >= self.spec.writes_starved {
                self.starved = 0;
                return Some(Op::Write);
            }
            self.starved += 1;
        }
        Some(Op::Read)
    }

    /// The next request of the batch, or the first of another.
    fn choose(&mut self, now: SimTime) -> Option<IoRequest> {
        let next = self.direction(self.batch_op).next();
        if self.batched < self.spec.fifo_batch && next.is_some() {
            return next;
        }
        let op = self.choose_direction()?;
        let MqDeadlineSpec { read_expire, write_expire, .. } = self.spec;
        let expire = if op == Op::Read { read_expire } else { write_expire };
        (self.batch_op, self.batched) = (op, 0);
        self.direction(op).first_of_batch(now, expire)
    }
}

impl IoScheduler for MqDeadline {
    fn merge(&mut self, request: &IoRequest) -> Option<Merged> {
        let front = self.spec.front_merges;
        self.direction(request.op).waiting.merge(request, front)
    }

    fn merge_late(&mut self, request: &IoRequest) -> Option<Merged> {
        self.direction(request.op).waiting.merge_late(request)
    }

    fn insert(&mut self, _: SimTime, request: IoRequest) {
        self.direction(request.op).waiting.insert(request);
    }

    fn dispatch(&mut self, now: SimTime) -> Option<IoRequest> {
        let chosen = self.choose(now)?;
        self.batched += 1;
        let direction = self.direction(chosen.op);
        direction.waiting.remove(&chosen);
        direction.latest = chosen.start;
        Some(chosen)
    }

    fn completed(&mut self, _: SimTime, _: &IoRequest, _: SimTime) {}
}
