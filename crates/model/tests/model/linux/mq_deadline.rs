//! mq-deadline.

use freewheel_model::sched::linux::{BlockLayer, IoRequest};
use freewheel_model::sched::{MqDeadlineSpec, PolicySpec};
use freewheel_units::{Lbn, Op, SimDuration, SimTime};
use proptest::prelude::*;

use super::load::{Load, at_ms, follows, layer, request, with};
use super::naive::{self, Rules, Tagged};

/// The rules of the documentation, applied to a list.
struct NaiveDeadline {
    spec: MqDeadlineSpec,
    waiting: Vec<IoRequest>,
    /// Starts of the last read and write that were sent.
    latest: [Lbn; 2],
    batch_op: Op,
    batched: u32,
    starved: u32,
}

impl NaiveDeadline {
    fn new(spec: MqDeadlineSpec) -> Self {
        let latest = [Lbn::ZERO; 2];
        Self { spec, waiting: Vec::new(), latest, batch_op: Op::Write, batched: 0, starved: 0 }
    }

    fn of(&self, op: Op) -> impl Iterator<Item = IoRequest> {
        self.waiting.iter().copied().filter(move |request| request.op == op)
    }

    fn ahead(&self, op: Op) -> Option<IoRequest> {
        let latest = self.latest[usize::from(op == Op::Write)];
        let ahead = self.of(op).filter(|request| request.start >= latest);
        ahead.min_by_key(|request| (request.start, request.sequence))
    }

    fn next_batch(&mut self, now: SimTime) -> Option<IoRequest> {
        let (reads, writes) = (self.of(Op::Read).count(), self.of(Op::Write).count());
        let op = match (reads, writes) {
            (0, 0) => return None,
            (0, _) => Op::Write,
            (_, 0) => Op::Read,
            _ if self.starved == self.spec.writes_starved => Op::Write,
            _ => {
                self.starved += 1;
                Op::Read
            }
        };
        if op == Op::Write {
            self.starved = 0;
        }
        (self.batch_op, self.batched) = (op, 0);
        let expire = if op == Op::Read { self.spec.read_expire } else { self.spec.write_expire };
        let oldest = self.of(op).min_by_key(|request| request.sequence)?;
        if now >= oldest.queued + expire { Some(oldest) } else { self.ahead(op).or(Some(oldest)) }
    }
}

impl Rules for NaiveDeadline {
    fn join(&mut self, request: &IoRequest) -> bool {
        let before = self.waiting.clone();
        naive::arrive(&mut self.waiting, *request, self.spec.front_merges);
        let is_new = self.waiting.contains(request);
        if is_new {
            self.waiting = before;
        }
        !is_new
    }

    fn take(&mut self, _: SimTime, request: IoRequest) {
        naive::arrive_late(&mut self.waiting, request);
    }

    fn waiting(&self, asynchronous: bool) -> usize {
        self.waiting.iter().filter(|request| !asynchronous || !request.is_sync()).count()
    }

    fn dispatch(&mut self, now: SimTime) -> Option<IoRequest> {
        let may_go_on = self.batched < self.spec.fifo_batch;
        let next = self.ahead(self.batch_op).filter(|_| may_go_on);
        let sent = next.or_else(|| self.next_batch(now))?;
        self.batched += 1;
        self.latest[usize::from(sent.op == Op::Write)] = sent.start;
        self.waiting.retain(|request| request.sequence != sent.sequence);
        Some(sent)
    }

    fn completed(&mut self, _: SimTime, _: &IoRequest, _: SimTime) {}
}

fn any_spec() -> impl Strategy<Value = MqDeadlineSpec> {
    (0u64..200, 0u64..200, 0u32..20, 0u32..4, any::<bool>(), any_tags()).prop_map(
        |(read_ms, write_ms, fifo_batch, writes_starved, front_merges, tags)| MqDeadlineSpec {
            read_expire: SimDuration::from_ms(read_ms),
            write_expire: SimDuration::from_ms(write_ms),
            fifo_batch,
            writes_starved,
            front_merges,
            nr_requests: Some(tags),
        },
    )
}

/// Few, so that requests wait for them, or more than arrive.
fn any_tags() -> impl Strategy<Value = u32> {
    prop_oneof![4u32..20, Just(65_536)]
}

proptest! {
    #[test]
    fn mq_deadline_sends_by_rules(
        spec in any_spec(), seed: u64, depth in 1usize..8, places in 20u64..2000
    ) {
        let load = Load { step: SimDuration::from_ms(5), depth, places };
        let tags = spec.nr_requests.unwrap() as usize;
        let oracle = &mut Tagged::new(NaiveDeadline::new(spec), [tags, tags]);
        follows(with(&PolicySpec::MqDeadline(spec)), oracle, seed, load);
    }
}

fn order(layer: &mut BlockLayer, now: SimTime) -> Vec<u64> {
    std::iter::from_fn(|| layer.dispatch(now)).map(|request| request.start.get()).collect()
}

fn arrive_all(layer: &mut BlockLayer, now: SimTime, op: Op, first: u64, starts: &[u64]) {
    for (sequence, &start) in (first..).zip(starts) {
        layer.arrive(now, request(sequence, op, start, 8, now));
    }
}

#[test]
fn batch_ascends_and_wraps_to_oldest() {
    let mut layer = layer("mq-deadline");
    arrive_all(&mut layer, at_ms(0), Op::Read, 0, &[500, 100, 300]);
    assert_eq!(order(&mut layer, at_ms(0)), [100, 300, 500]);
    arrive_all(&mut layer, at_ms(1), Op::Read, 3, &[200, 100]);
    assert_eq!(order(&mut layer, at_ms(1)), [200, 100], "nothing lies ahead of 500");
}

#[test]
fn batch_of_16_reads_twice_before_writes() {
    let spec = MqDeadlineSpec { nr_requests: Some(1000), ..MqDeadlineSpec::USUAL };
    let mut layer = with(&PolicySpec::MqDeadline(spec));
    // Steps of 100 blocks, so that no two merge.
    let writes: Vec<u64> = (0..20).map(|n| 100_000 + 100 * n).collect();
    let reads: Vec<u64> = (0..60).map(|n| 100 * n).collect();
    arrive_all(&mut layer, at_ms(0), Op::Read, 0, &reads);
    layer.dispatch(at_ms(0));
    arrive_all(&mut layer, at_ms(0), Op::Write, 100, &writes);
    let is_write: Vec<bool> = order(&mut layer, at_ms(0)).iter().map(|&at| at >= 100_000).collect();
    let lengths: Vec<usize> = is_write.chunk_by(|a, b| a == b).map(<[bool]>::len).collect();
    // 15 are left of the batch of reads, and two batches go before writes that wait.
    assert_eq!(lengths, [15 + 2 * 16, 16, 12, 4]);
}

#[test]
fn reads_wait_500_ms_writes_5_s() {
    for (op, ms) in [(Op::Read, 500), (Op::Write, 5000)] {
        for (wait, first) in [(ms - 1, 2000), (ms, 50)] {
            let mut layer = layer("mq-deadline");
            arrive_all(&mut layer, at_ms(0), op, 0, &[1000]);
            assert_eq!(order(&mut layer, at_ms(0)), [1000]);
            arrive_all(&mut layer, at_ms(0), op, 1, &[50, 2000]);
            // The batch of this direction ends, so that the age of the oldest is looked at.
            let other = if op == Op::Read { Op::Write } else { Op::Read };
            arrive_all(&mut layer, at_ms(0), other, 10, &[0]);
            (0..15).for_each(|n| layer.arrive(at_ms(0), request(20 + n, op, 1000, 8, at_ms(0))));
            for _ in 0..15 {
                layer.dispatch(at_ms(0));
            }
            let sent = order(&mut layer, at_ms(wait));
            let next = sent.iter().find(|&&start| start != 0).unwrap();
            assert_eq!(*next, first, "{op:?} after {wait} ms");
        }
    }
}

#[test]
fn adjoining_requests_merge_and_end_together() {
    let mut layer = layer("mq-deadline");
    arrive_all(&mut layer, at_ms(0), Op::Write, 0, &[100, 116, 108, 92]);
    arrive_all(&mut layer, at_ms(0), Op::Read, 4, &[124]);
    let merged = layer.dispatch(at_ms(0)).unwrap();
    let read = layer.dispatch(at_ms(0)).unwrap();
    assert_eq!((read.op, read.start.get()), (Op::Read, 124), "a read joins no write");
    assert_eq!((merged.start.get(), merged.blocks, merged.sequence), (92, 32, 0));
    let mut done = layer.completed(at_ms(9), merged.sequence);
    done.sort();
    assert_eq!(done, [0, 1, 2, 3]);
}

#[test]
fn merge_only_behind_without_front_merges() {
    let spec = MqDeadlineSpec { front_merges: false, ..MqDeadlineSpec::USUAL };
    let mut layer = with(&PolicySpec::MqDeadline(spec));
    arrive_all(&mut layer, at_ms(0), Op::Write, 0, &[100, 92, 108]);
    let sizes: Vec<u32> =
        std::iter::from_fn(|| layer.dispatch(at_ms(0))).map(|request| request.blocks).collect();
    assert_eq!(sizes, [8, 16]);
}

#[test]
fn merged_request_at_most_1280_kib() {
    let mut layer = layer("mq-deadline");
    for sequence in 0..6 {
        layer.arrive(at_ms(0), request(sequence, Op::Write, 1000 * sequence, 1000, at_ms(0)));
    }
    let sizes: Vec<u32> =
        std::iter::from_fn(|| layer.dispatch(at_ms(0))).map(|request| request.blocks).collect();
    assert_eq!(sizes, [2000, 2000, 2000]);
}
