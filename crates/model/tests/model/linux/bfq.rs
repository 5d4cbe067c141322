//! BFQ.

use freewheel_model::sched::linux::{BlockLayer, IoRequest};
use freewheel_model::sched::{BfqSpec, PolicySpec};
use freewheel_units::{Op, SimDuration, SimTime};
use proptest::prelude::*;

use super::load::{Load, at_ms, follows, layer, request, with};
use super::naive::{self, Rules, Tagged};

/// A queue as a list.
#[derive(Default)]
struct NaiveQueue {
    waiting: Vec<IoRequest>,
    /// Sequence of the next request.
    next: Option<u64>,
    is_checked: bool,
    at_drive: u32,
    is_busy: bool,
    budget: u64,
    left: u64,
    next_budget: u64,
    start: u64,
    finish: u64,
    began: SimTime,
    idles: Option<(SimTime, SimTime)>,
    /// True if each request was a seek, the latest last.
    seeks: Vec<bool>,
    last_end: u64,
    think: (u64, u64),
    ended: SimTime,
}

impl NaiveQueue {
    fn served(&self) -> u64 {
        self.budget - self.left
    }

    fn is_seeky(&self) -> bool {
        self.seeks.iter().rev().take(32).filter(|seek| **seek).count() > 19
    }

    fn find(&self, sequence: u64) -> Option<IoRequest> {
        self.waiting.iter().copied().find(|request| request.sequence == sequence)
    }
}

/// The rules, applied to lists. Number 0 is the synchronous queue.
struct NaiveBfq {
    spec: BfqSpec,
    has_tags: bool,
    queues: [NaiveQueue; 2],
    in_service: Option<usize>,
    virtual_now: u64,
    head: u64,
}

/// True if the second is nearer: ahead, or back by at most 16 MiB at twice the distance; else the lower.
fn is_nearer(first: &IoRequest, second: &IoRequest, head: u64) -> bool {
    let cost = |request: &IoRequest| {
        let start = request.start.get();
        if start >= head {
            Some(start - head)
        } else {
            Some(2 * (head - start)).filter(|cost| *cost <= 2 * 32_768)
        }
    };
    match (cost(first), cost(second)) {
        (None, Some(_)) => true,
        (Some(_), None) => false,
        (None, None) => second.start < first.start,
        (Some(a), Some(b)) if a == b => second.start > first.start,
        (Some(a), Some(b)) => b < a,
    }
}

impl NaiveBfq {
    fn new(spec: BfqSpec, has_tags: bool) -> Self {
        let first = u64::from(spec.max_budget) * 2 / 3;
        let sync = NaiveQueue { next_budget: first, seeks: vec![true], ..NaiveQueue::default() };
        let other = NaiveQueue { next_budget: first, ..NaiveQueue::default() };
        let queues = [sync, other];
        Self { spec, has_tags, queues, in_service: None, virtual_now: 0, head: 0 }
    }

    fn charge(number: usize, request: &IoRequest) -> u64 {
        u64::from(request.blocks) * [1, 3][number]
    }

    fn time(blocks: u64, weights: u64) -> u64 {
        (blocks << 22) / weights
    }

    fn busy(&self) -> u64 {
        self.queues.iter().filter(|queue| queue.is_busy).count() as u64
    }

    fn should_idle(&self, number: usize) -> bool {
        let queue = &self.queues[number];
        let idle_ns = self.spec.slice_idle.ns();
        let (samples, total) = queue.think;
        let is_short = samples <= 80 || (total + 128) / samples <= idle_ns;
        let is_sequential = !queue.is_seeky() && is_short;
        number == 0 && idle_ns > 0 && (!self.has_tags || is_sequential || self.busy() == 1)
    }

    fn is_over(&self, number: usize, now: SimTime) -> bool {
        let queue = &self.queues[number];
        let may = queue.idles.is_none() || queue.left >= queue.budget / 3;
        may && now >= queue.began + self.spec.timeout_sync
    }

    fn schedule(&mut self, number: usize, start: u64) {
        let queue = &mut self.queues[number];
        let next = queue.next.and_then(|next| queue.find(next)).unwrap();
        queue.budget = queue.next_budget.max(Self::charge(number, &next));
        queue.left = queue.budget;
        (queue.start, queue.finish) = (start, start + Self::time(queue.budget, 100));
    }

    fn end(&mut self, number: usize, now: SimTime, why: &str) {
        let (most, all) = (u64::from(self.spec.max_budget), 100 * self.busy());
        let queue = &mut self.queues[number];
        let time_ns = (queue.idles.map_or(now, |(from, _)| from) - queue.began).ns();
        let slow = match time_ns > 20_000_000 {
            true => number == 0 && queue.served() < most / 2,
            false => number == 0 && queue.is_seeky(),
        };
        if slow || (why == "timeout" && queue.left >= queue.budget / 3) {
            let ns = if time_ns < 1_000_000 { self.spec.slice_idle.ns() } else { time_ns };
            let timeout_ns = self.spec.timeout_sync.ns();
            let whole = (most * ns.min(timeout_ns) / timeout_ns).max(queue.served());
            self.virtual_now += Self::time(whole - queue.served(), all);
            queue.budget = queue.budget.max(whole);
            queue.left = queue.budget - whole;
        }
        let (least, last) = (most / 32, queue.next_budget);
        queue.next_budget = match (number, why) {
            (1, _) => most,
            (_, "idle") if queue.at_drive > 0 => most.min(2 * last),
            (_, "idle") if last > 5 * least => last - 4 * least,
            (_, "idle") => least,
            (_, "timeout") => most.min(2 * last),
            (_, "budget") => most.min(4 * last),
            _ => queue.served().max(least).min(most),
        };
        queue.finish = queue.start + Self::time(queue.served(), 100);
        queue.idles = None;
        queue.is_busy = !queue.waiting.is_empty();
        let (is_busy, finish) = (queue.is_busy, queue.finish);
        if is_busy {
            self.schedule(number, finish);
        }
        self.in_service = None;
    }

    fn catch_up(&mut self, now: SimTime) {
        if let Some(number) = self.in_service
            && let Some((_, until)) = self.queues[number].idles
            && until <= now
        {
            let why = if self.is_over(number, until) { "timeout" } else { "idle" };
            self.end(number, until, why);
        }
    }

    fn select(&mut self, now: SimTime) -> Option<usize> {
        let busy: Vec<usize> = (0..2).filter(|&number| self.queues[number].is_busy).collect();
        let earliest = busy.iter().map(|&number| self.queues[number].start).min()?;
        self.virtual_now = self.virtual_now.max(earliest);
        let due = busy.iter().filter(|&&number| self.queues[number].start <= self.virtual_now);
        let number = *due.min_by_key(|&&number| (self.queues[number].finish, number)).unwrap();
        (self.queues[number].began, self.queues[number].is_checked) = (now, false);
        self.in_service = Some(number);
        self.in_service
    }

    fn send(&mut self, number: usize, now: SimTime) -> IoRequest {
        let busy = self.busy();
        let queue = &mut self.queues[number];
        let taken = queue.next.and_then(|next| queue.find(next)).unwrap();
        let charge = Self::charge(number, &taken);
        queue.waiting.retain(|request| request.sequence != taken.sequence);
        queue.left -= charge;
        queue.at_drive += 1;
        queue.idles = None;
        self.virtual_now += Self::time(charge, 100 * busy);
        self.head = taken.end().get();
        let age = SimDuration::from_ms([125, 250][number]);
        let oldest = queue.waiting.iter().min_by_key(|request| request.sequence);
        let expired = oldest.filter(|oldest| !queue.is_checked && now >= oldest.queued + age);
        queue.is_checked = true;
        let key = |request: &&IoRequest| (request.start, request.sequence);
        let own = key(&&taken);
        let ahead = queue.waiting.iter().filter(|request| key(request) > own).min_by_key(key);
        let ahead = ahead.or(queue.waiting.iter().min_by_key(key));
        let before = queue.waiting.iter().filter(|request| key(request) < own).max_by_key(key);
        let near = match (ahead, before) {
            (Some(a), Some(b)) if is_nearer(a, b, taken.start.get()) => Some(b),
            (a, b) => a.or(b),
        };
        queue.next = expired.or(near).map(|request| request.sequence);
        taken
    }
}

impl NaiveBfq {
    /// The requests of a queue have become these, of which `joined` is one with `request` in it: the sequence of
    /// the next request may be gone, and its start may have moved.
    fn merged(&mut self, number: usize, waiting: Vec<IoRequest>, request: &IoRequest) {
        let joined = *waiting.last().unwrap();
        let (head, queue) = (self.head, &mut self.queues[number]);
        queue.waiting = waiting;
        let next = queue.next.and_then(|next| queue.find(next)).unwrap_or(joined);
        let moved = joined.start == request.start && is_nearer(&next, &joined, head);
        queue.next = Some(if moved { joined.sequence } else { next.sequence });
    }
}

impl Rules for NaiveBfq {
    fn join(&mut self, request: &IoRequest) -> bool {
        let number = usize::from(!request.is_sync());
        let mut waiting = self.queues[number].waiting.clone();
        naive::arrive(&mut waiting, *request, true);
        let is_new = waiting.contains(request);
        if !is_new {
            self.merged(number, waiting, request);
        }
        !is_new
    }

    fn waiting(&self, asynchronous: bool) -> usize {
        let count = |queue: &NaiveQueue| queue.waiting.len();
        count(&self.queues[1]) + if asynchronous { 0 } else { count(&self.queues[0]) }
    }

    fn take(&mut self, now: SimTime, request: IoRequest) {
        let number = usize::from(!request.is_sync());
        let idle_ns = self.spec.slice_idle.ns();
        let mut waiting = self.queues[number].waiting.clone();
        let before: Vec<u64> = waiting.iter().map(|request| request.sequence).collect();
        naive::arrive_late(&mut waiting, request);
        if !waiting.contains(&request) {
            return self.merged(number, waiting, &request);
        }
        self.catch_up(now);
        let (head, queue) = (self.head, &mut self.queues[number]);
        if queue.at_drive == 0 && !queue.is_busy {
            let elapsed = (now - queue.ended).ns().min(2 * idle_ns);
            queue.think = ((7 * queue.think.0 + 256) / 8, (7 * queue.think.1 + 256 * elapsed) / 8);
        }
        queue.seeks.push(queue.last_end.abs_diff(request.start.get()) > 800);
        queue.last_end = request.end().get();
        queue.waiting = waiting;
        let next = queue.next.filter(|_| !before.is_empty()).and_then(|next| queue.find(next));
        queue.next = match next {
            Some(next) if !is_nearer(&next, &request, head) => Some(next.sequence),
            _ => Some(request.sequence),
        };
        queue.idles = None;
        if !queue.is_busy {
            queue.is_busy = true;
            let start = self.virtual_now.max(queue.finish);
            self.schedule(number, start);
        }
    }

    fn dispatch(&mut self, now: SimTime) -> Option<IoRequest> {
        self.catch_up(now);
        loop {
            let number = match self.in_service {
                Some(number) => number,
                None => self.select(now)?,
            };
            let queue = &self.queues[number];
            let (is_empty, should_idle) = (queue.waiting.is_empty(), self.should_idle(number));
            if self.is_over(number, now) && !(is_empty && should_idle) {
                self.end(number, now, "timeout");
            } else if is_empty {
                if queue.idles.is_some() || (queue.at_drive > 0 && should_idle) {
                    return None;
                }
                self.end(number, now, "empty");
            } else if Self::charge(number, &queue.find(queue.next?)?) > queue.left {
                self.end(number, now, "budget");
            } else {
                return Some(self.send(number, now));
            }
        }
    }

    fn completed(&mut self, now: SimTime, request: &IoRequest, _: SimTime) {
        self.catch_up(now);
        let number = usize::from(!request.is_sync());
        self.queues[number].at_drive -= 1;
        self.queues[number].ended = now;
        if self.in_service != Some(number) {
            return;
        }
        let should_idle = self.should_idle(number);
        let queue = &mut self.queues[number];
        if queue.waiting.is_empty() && should_idle && queue.at_drive == 0 {
            let most = SimDuration::from_ms(if queue.is_seeky() { 2 } else { 1000 });
            queue.idles = Some((now, now + self.spec.slice_idle.min(most)));
        } else if self.is_over(number, now) {
            self.end(number, now, "timeout");
        } else if self.queues[number].waiting.is_empty() && !should_idle {
            self.end(number, now, "empty");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn bfq_sends_by_rules(
        slice_idle_us in 0u64..12_000, timeout_ms in 1u64..200, max_budget in 32u32..20_000,
        has_tags: bool, seed: u64, step_us in 100u64..20_000, depth in 1usize..12,
        places in 20u64..40_000, nr_requests in prop_oneof![8u32..40, Just(65_536)]
    ) {
        let spec = BfqSpec {
            slice_idle: SimDuration::from_us(slice_idle_us),
            timeout_sync: SimDuration::from_ms(timeout_ms),
            max_budget,
            nr_requests: Some(nr_requests),
        };
        // Half of them for asynchronous writes.
        let limits = [nr_requests as usize, nr_requests as usize / 2];
        let tags = if has_tags { 32 } else { 1 };
        let layer = BlockLayer::new(&PolicySpec::Bfq(spec), tags).unwrap().unwrap();
        let load = Load { step: SimDuration::from_us(step_us), depth, places };
        let oracle = &mut Tagged::new(NaiveBfq::new(spec, has_tags), limits);
        follows(layer, oracle, seed, load);
    }
}

fn arrive_all(layer: &mut BlockLayer, op: Op, first: u64, starts: impl Iterator<Item = u64>) {
    for (sequence, start) in (first..).zip(starts) {
        layer.arrive(at_ms(0), request(sequence, op, start, 8, at_ms(0)));
    }
}

#[test]
fn budgets_alternate_in_virtual_time() {
    let spec = BfqSpec { max_budget: 64, ..BfqSpec::USUAL };
    let mut layer = with(&PolicySpec::Bfq(spec));
    arrive_all(&mut layer, Op::Read, 0, (0..10).map(|n| 100 * n));
    arrive_all(&mut layer, Op::Write, 10, (0..10).map(|n| 9000 + 100 * n));
    let sent: Vec<Op> = (0..13).map(|_| layer.dispatch(at_ms(0)).unwrap().op).collect();
    // Both queues begin with 42 blocks, and a block that is written counts as three.
    //   reads   0 .. 42: 5 of 8 blocks, so that the next budget, 64 blocks, starts at 40
    //   writes  0 .. 42: 1 of 24 blocks; virtual time is (40 + 24) / 2 = 32
    //   writes 24 .. 88: 2 of 24 blocks; virtual time is 56, and reads are due again
    let lengths: Vec<usize> = sent.chunk_by(|a, b| a == b).map(<[Op]>::len).collect();
    assert_eq!((sent[0], lengths), (Op::Read, vec![5, 3, 5]));
    assert_eq!(layer.dispatch(at_ms(0)), None, "a sequential reader is waited for");
}

#[test]
fn bfq_reads_get_three_blocks_per_write() {
    let spec = BfqSpec { nr_requests: Some(65_536), ..BfqSpec::USUAL };
    let mut layer = with(&PolicySpec::Bfq(spec));
    let sequential = |n: u64| (n % 900) * 100;
    arrive_all(&mut layer, Op::Read, 0, (0..20_000).map(sequential));
    arrive_all(&mut layer, Op::Write, 20_000, (0..20_000).map(|n| 1_000_000 + sequential(n)));
    let sent: Vec<Op> = (0..16_000).map(|_| layer.dispatch(at_ms(0)).unwrap().op).collect();
    let reads = sent.iter().filter(|op| **op == Op::Read).count();
    assert!((11_500..12_500).contains(&reads), "{reads} of 16,000");
}

/// A reader of 40 requests, 100 or 10,000 blocks apart; then a write waits.
fn reader_then_write(step: u64) -> BlockLayer {
    let mut layer = layer("bfq");
    for n in 0..40 {
        let now = at_ms(n);
        layer.arrive(now, request(n, Op::Read, n * step, 8, now));
        assert_eq!(layer.dispatch(now).map(|request| request.sequence), Some(n));
        if n < 39 {
            layer.completed(now, n);
        }
    }
    layer.arrive(at_ms(39), request(40, Op::Write, 5, 8, at_ms(39)));
    layer
}

#[test]
fn bfq_idles_8_ms_for_sequential_reader() {
    let mut layer = reader_then_write(100);
    assert_eq!(layer.dispatch(at_ms(39)), None, "the read is at the drive");
    layer.completed(at_ms(40), 39);
    assert_eq!((layer.dispatch(at_ms(47)), layer.wakes_at()), (None, Some(at_ms(48))));
    assert_eq!(layer.dispatch(at_ms(48)).map(|request| request.sequence), Some(40));

    let mut layer = reader_then_write(100);
    layer.completed(at_ms(40), 39);
    layer.arrive(at_ms(47), request(41, Op::Read, 4000, 8, at_ms(47)));
    assert_eq!(layer.dispatch(at_ms(47)).map(|request| request.sequence), Some(41));
}

#[test]
fn bfq_does_not_idle_for_seeker() {
    let mut layer = reader_then_write(10_000);
    assert_eq!(layer.dispatch(at_ms(39)).map(|request| request.sequence), Some(40));
}

#[test]
fn bfq_serves_125_ms_waiter_per_slice() {
    for (ms, second) in [(124, 300), (125, 100)] {
        let mut layer = layer("bfq");
        // The head stands at 208: 100 lies behind it at twice the distance.
        arrive_all(&mut layer, Op::Read, 0, [200].into_iter());
        layer.dispatch(at_ms(0));
        arrive_all(&mut layer, Op::Read, 1, [100].into_iter());
        layer.completed(at_ms(0), 0);
        for (sequence, start) in [(2, 210), (3, 300), (4, 310)] {
            layer.arrive(at_ms(1), request(sequence, Op::Read, start, 8, at_ms(1)));
        }
        let now = at_ms(ms);
        let sent: Vec<u64> =
            std::iter::from_fn(|| layer.dispatch(now)).map(|request| request.start.get()).collect();
        assert_eq!(sent[1], second, "after {ms} ms: {sent:?}");
    }
}
