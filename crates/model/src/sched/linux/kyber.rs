//! Kyber: reads and writes in order of arrival, and fewer of a kind at the drive while latencies are long.
//!
//! Each kind has tokens: a request takes one to the drive and returns it when done. A tenth of a second
//! after a completion, Kyber looks at latencies since it last did:
//!
//! ```text
//!   buckets of a quarter of the target:   1  2  3  4 | 5  6  7  more
//!                                            good    |     bad
//!   p90 of the time in the drive is bad, of any kind:  the drive is congested
//!   then, or when the p99 of a kind's whole time is bad:  its tokens become tokens * bucket(p99) / 4
//! ```
//! A request for which there is a token takes all of its kind out of the software queue, and none joins those
//! after that (`kyber_flush_busy_kcqs` in `block/kyber-iosched.c`).
//!
//! So a kind with short latencies gives way to a kind with long ones, and a kind with long latencies gets
//! more tokens.

use std::collections::VecDeque;

use freewheel_units::{Op, SimDuration, SimTime};

use super::software_queue::SoftwareQueue;
use super::{IoRequest, IoScheduler, Merged};
use crate::spec::linux::KyberSpec;

/// Buckets to a target.
const TARGET_BUCKETS: u64 = 4;
const BUCKETS: usize = 8;
/// Samples from which a percentile is taken at once.
const SAMPLES_ENOUGH: u64 = 500;
/// Time after which fewer will do.
const SAMPLES_WAIT: SimDuration = SimDuration::from_secs(1);
/// From a completion to the next look at latencies.
const LOOK_AFTER: SimDuration = SimDuration::from_ms(100);

type Histogram = [u64; BUCKETS];

/// A kind of request, with what the kernel fixes for it.
#[derive(Debug)]
struct Domain {
    /// Queue in which requests arrive, and may be joined.
    queue: SoftwareQueue,
    /// Requests that were taken from `queue` together: no request joins them.
    ready: VecDeque<IoRequest>,
    target: SimDuration,
    /// Most requests sent in a row while the other kind waits.
    batch: u32,
    tokens_max: u64,
    tokens: u64,
    at_drive: u64,
    /// From the scheduler to the end.
    whole: Histogram,
    /// From the drive to the end.
    in_drive: Histogram,
    /// Time from which fewer samples suffice; one time for both histograms, as in the kernel.
    enough_at: Option<SimTime>,
    /// Bucket of the last percentile, until a congestion has used it.
    last_p99: Option<u64>,
}

impl Domain {
    fn new(target: SimDuration, batch: u32, tokens_max: u64) -> Self {
        Self {
            queue: SoftwareQueue::default(),
            ready: VecDeque::new(),
            target,
            batch,
            tokens_max,
            tokens: tokens_max,
            at_drive: 0,
            whole: Histogram::default(),
            in_drive: Histogram::default(),
            enough_at: None,
            last_p99: None,
        }
    }

    fn dispatch(&mut self) -> Option<IoRequest> {
        if self.at_drive >= self.tokens {
            return None;
        }
        if self.ready.is_empty() {
            self.ready = self.queue.take();
        }
        let request = self.ready.pop_front()?;
        self.at_drive += 1;
        Some(request)
    }

    fn bucket(&self, latency: SimDuration) -> usize {
        let width = (self.target.ns() / TARGET_BUCKETS).max(1);
        let bucket = latency.ns().saturating_sub(1) / width;
        (bucket as usize).min(BUCKETS - 1)
    }

    /// True if samples suffice for a percentile at `now`. The first look at too few of them begins the
    /// wait.
    fn has_enough(&mut self, now: SimTime, samples: u64) -> bool {
        if samples == 0 {
            return false;
        }
        let enough_at = *self.enough_at.get_or_insert(now + SAMPLES_WAIT);
        let is_enough = samples >= SAMPLES_ENOUGH || enough_at <= now;
        if is_enough {
            self.enough_at = None;
        }
        is_enough
    }

    /// True if one of ten recent requests took longer than the target at the drive. False with too few.
    fn is_congested(&mut self, now: SimTime) -> bool {
        if !self.has_enough(now, self.in_drive.iter().sum()) {
            return false;
        }
        percentile(&std::mem::take(&mut self.in_drive), 90) >= TARGET_BUCKETS
    }

    /// Sets the number of tokens.
    fn resize(&mut self, now: SimTime, is_congested: bool) {
        let is_enough = self.has_enough(now, self.whole.iter().sum());
        let new = is_enough.then(|| percentile(&std::mem::take(&mut self.whole), 99));
        // Kinds reach enough samples at different times, so a percentile waits for the next congestion.
        let last = if is_congested { self.last_p99.take() } else { None };
        if !is_congested && new.is_some() {
            self.last_p99 = new;
        }
        if let Some(p99) = new.or(last).filter(|&p99| is_congested || p99 >= TARGET_BUCKETS) {
            let tokens = self.tokens * (p99 + 1) / TARGET_BUCKETS;
            self.tokens = tokens.clamp(1, self.tokens_max);
        }
    }
}

/// Number of the bucket, from zero, below which `percent` of the samples end.
fn percentile(samples: &Histogram, percent: u64) -> u64 {
    let mut left = (samples.iter().sum::<u64>() * percent).div_ceil(100);
    for (bucket, &count) in samples[..BUCKETS - 1].iter().enumerate() {
        if count >= left {
            return bucket as u64;
        }
        left -= count;
    }
    BUCKETS as u64 - 1
}

/// Kyber with its waiting requests.
#[derive(Debug)]
pub(super) struct Kyber {
    /// Reads and writes. The kernel's two further kinds, discards and others, pass this scheduler.
    domains: [Domain; 2],
    current: usize,
    batched: u32,
    looks_at: Option<SimTime>,
}

fn domain_of(op: Op) -> usize {
    usize::from(op != Op::Read)
}

impl Kyber {
    pub fn new(spec: KyberSpec) -> Self {
        let reads = Domain::new(spec.read_latency, 16, 256);
        let writes = Domain::new(spec.write_latency, 8, 128);
        Self { domains: [reads, writes], current: 0, batched: 0, looks_at: None }
    }

    /// Looks at latencies, if it was time by `now`. A late look has the result of one in time,
    /// as every sample comes behind one.
    fn catch_up(&mut self, now: SimTime) {
        let Some(at) = self.looks_at.filter(|&at| at <= now) else { return };
        self.looks_at = None;
        // Every kind is looked at, as that also begins its wait for samples.
        let is_congested =
            self.domains.iter_mut().fold(false, |any, domain| domain.is_congested(at) | any);
        self.domains.iter_mut().for_each(|domain| domain.resize(at, is_congested));
    }

    fn take(&mut self, domain: usize) -> Option<IoRequest> {
        let request = self.domains[domain].dispatch()?;
        self.current = domain;
        self.batched += 1;
        Some(request)
    }
}

impl IoScheduler for Kyber {
    fn merge(&mut self, request: &IoRequest) -> Option<Merged> {
        self.domains[domain_of(request.op)].queue.merge(request)
    }

    fn insert(&mut self, now: SimTime, request: IoRequest) {
        self.catch_up(now);
        self.domains[domain_of(request.op)].queue.push(request);
    }

    fn dispatch(&mut self, now: SimTime) -> Option<IoRequest> {
        self.catch_up(now);
        if self.batched < self.domains[self.current].batch
            && let Some(request) = self.take(self.current)
        {
            return Some(request);
        }
        self.batched = 0;
        // The other kind first, then this one again.
        self.take(1 - self.current).or_else(|| self.take(self.current))
    }

    fn completed(&mut self, now: SimTime, request: &IoRequest, dispatched: SimTime) {
        self.catch_up(now);
        let domain = &mut self.domains[domain_of(request.op)];
        domain.at_drive -= 1;
        let (whole, in_drive) = (now - request.queued, now - dispatched);
        let (whole, in_drive) = (domain.bucket(whole), domain.bucket(in_drive));
        domain.whole[whole] += 1;
        domain.in_drive[in_drive] += 1;
        self.looks_at.get_or_insert(now + LOOK_AFTER);
    }
}
