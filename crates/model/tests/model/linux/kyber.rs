//! Kyber.

use freewheel_model::sched::linux::IoRequest;
use freewheel_model::sched::{KyberSpec, PolicySpec};
use freewheel_units::{Op, SimDuration, SimTime};
use proptest::prelude::*;

use super::load::{Load, Oracle, at_ms, follows, layer, request, with};
use super::naive::joins_latest;

/// A kind of request with its latencies as they were.
struct NaiveDomain {
    queue: Vec<IoRequest>,
    /// Requests that none joins any more.
    ready: Vec<IoRequest>,
    target_ns: u64,
    batch: u32,
    tokens_max: u64,
    tokens: u64,
    at_drive: u64,
    whole_ns: Vec<u64>,
    in_drive_ns: Vec<u64>,
    enough_at: Option<SimTime>,
    last: Option<u64>,
}

impl NaiveDomain {
    fn new(target: SimDuration, batch: u32, tokens_max: u64) -> Self {
        Self {
            queue: Vec::new(),
            ready: Vec::new(),
            target_ns: target.ns(),
            batch,
            tokens_max,
            tokens: tokens_max,
            at_drive: 0,
            whole_ns: Vec::new(),
            in_drive_ns: Vec::new(),
            enough_at: None,
            last: None,
        }
    }

    /// Quarters of the target, begun ones counted, that `percent` of the latencies do not exceed. None
    /// with fewer than 500 of them within a second.
    fn quarters(&mut self, now: SimTime, latencies: &mut Vec<u64>, percent: usize) -> Option<u64> {
        if latencies.is_empty() {
            return None;
        }
        let enough_at = *self.enough_at.get_or_insert(now + SimDuration::from_secs(1));
        if latencies.len() < 500 && now < enough_at {
            return None;
        }
        self.enough_at = None;
        latencies.sort();
        let rank = (latencies.len() * percent).div_ceil(100);
        let latency = latencies[rank - 1];
        latencies.clear();
        Some(latency.div_ceil((self.target_ns / 4).max(1)).clamp(1, 8))
    }
}

struct NaiveKyber {
    domains: [NaiveDomain; 2],
    current: usize,
    batched: u32,
    looks_at: Option<SimTime>,
}

impl NaiveKyber {
    fn new(spec: KyberSpec) -> Self {
        let reads = NaiveDomain::new(spec.read_latency, 16, 256);
        let writes = NaiveDomain::new(spec.write_latency, 8, 128);
        Self { domains: [reads, writes], current: 0, batched: 0, looks_at: None }
    }

    fn look(&mut self, now: SimTime) {
        let Some(at) = self.looks_at.filter(|at| *at <= now) else { return };
        self.looks_at = None;
        let mut congested = false;
        for domain in &mut self.domains {
            let mut latencies = std::mem::take(&mut domain.in_drive_ns);
            congested |=
                domain.quarters(at, &mut latencies, 90).is_some_and(|quarters| quarters > 4);
            domain.in_drive_ns = latencies;
        }
        for domain in &mut self.domains {
            let mut latencies = std::mem::take(&mut domain.whole_ns);
            let new = domain.quarters(at, &mut latencies, 99);
            domain.whole_ns = latencies;
            let used = if congested { new.or(domain.last) } else { new };
            domain.last = if congested { None } else { new.or(domain.last) };
            if let Some(quarters) = used
                && (congested || quarters > 4)
            {
                domain.tokens = (domain.tokens * quarters / 4).clamp(1, domain.tokens_max);
            }
        }
    }
}

impl Oracle for NaiveKyber {
    fn arrive(&mut self, now: SimTime, request: IoRequest) {
        self.look(now);
        let queue = &mut self.domains[usize::from(request.op == Op::Write)].queue;
        if !joins_latest(queue, &request) {
            queue.push(request);
        }
    }

    fn dispatch(&mut self, now: SimTime) -> Option<IoRequest> {
        self.look(now);
        let may_go_on = self.batched < self.domains[self.current].batch;
        let order = [self.current, 1 - self.current, self.current];
        for (try_number, kind) in order.into_iter().enumerate() {
            if try_number == 0 && !may_go_on {
                continue;
            }
            if try_number == 1 {
                self.batched = 0;
            }
            let domain = &mut self.domains[kind];
            if domain.ready.is_empty() && domain.at_drive < domain.tokens {
                domain.ready = std::mem::take(&mut domain.queue);
            }
            if domain.at_drive < domain.tokens && !domain.ready.is_empty() {
                domain.at_drive += 1;
                (self.current, self.batched) = (kind, self.batched + 1);
                return Some(domain.ready.remove(0));
            }
        }
        None
    }

    fn completed(&mut self, now: SimTime, request: &IoRequest, dispatched: SimTime) {
        self.look(now);
        let domain = &mut self.domains[usize::from(request.op == Op::Write)];
        domain.at_drive -= 1;
        domain.whole_ns.push((now - request.queued).ns());
        domain.in_drive_ns.push((now - dispatched).ns());
        self.looks_at = self.looks_at.or(Some(now + SimDuration::from_ms(100)));
    }
}

proptest! {
    #[test]
    fn kyber_sends_by_rules(
        read_us in 0u64..20_000, write_us in 0u64..20_000, seed: u64,
        step_us in 100u64..20_000, depth in 1usize..40
    ) {
        let spec = KyberSpec {
            read_latency: SimDuration::from_us(read_us),
            write_latency: SimDuration::from_us(write_us),
            nr_requests: Some(65_536),
        };
        let load = Load { step: SimDuration::from_us(step_us), depth, places: 2000 };
        follows(with(&PolicySpec::Kyber(spec)), &mut NaiveKyber::new(spec), seed, load);
    }
}

#[test]
fn kyber_reads_by_16_writes_by_8() {
    let mut layer = layer("kyber");
    for sequence in 0..30 {
        layer.arrive(at_ms(0), request(2 * sequence, Op::Read, 100 * sequence, 8, at_ms(0)));
        layer.arrive(at_ms(0), request(2 * sequence + 1, Op::Write, 100 * sequence, 8, at_ms(0)));
    }
    let sent: Vec<Op> = std::iter::from_fn(|| layer.dispatch(at_ms(0))).map(|r| r.op).collect();
    let lengths: Vec<usize> = sent.chunk_by(|a, b| a == b).map(<[Op]>::len).collect();
    // 64 requests have tags; asynchronous writes have 75 % of them at most.
    assert_eq!((sent[0], lengths), (Op::Read, vec![16, 8, 14, 22]));
}

/// Reads that the drive takes at once, after 600 reads and 600 writes that have taken this long.
fn tokens_of_reads(read: SimDuration, write: SimDuration) -> usize {
    let mut layer =
        with(&PolicySpec::Kyber(KyberSpec { nr_requests: Some(4096), ..KyberSpec::USUAL }));
    let mut now = SimTime::ZERO;
    for sequence in 0..1200 {
        let (op, time) = if sequence % 2 == 0 { (Op::Read, read) } else { (Op::Write, write) };
        layer.arrive(now, request(sequence, op, 100 * sequence, 8, now));
        let sent = layer.dispatch(now).expect("the drive is idle");
        now += time;
        layer.completed(now, sent.sequence);
    }
    for sequence in 2000..2400 {
        layer.arrive(now, request(sequence, Op::Read, 100 * sequence, 8, now));
    }
    std::iter::from_fn(|| layer.dispatch(now)).count()
}

#[test]
fn kyber_slow_writes_take_read_tokens() {
    let us = SimDuration::from_us;
    assert_eq!(tokens_of_reads(us(1900), us(9000)), 256, "within the targets");
    // A p99 in the third quarter of 2 ms leaves three quarters of the tokens, once for 500 reads.
    let left = tokens_of_reads(us(1400), us(30_000));
    assert_eq!(left, 256 * 3 / 4);
}
