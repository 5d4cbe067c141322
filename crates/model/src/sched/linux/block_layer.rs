//! Tags, merging and a scheduler: what lies between the callers and a drive.

use std::collections::{BTreeMap, VecDeque};

use freewheel_units::SimTime;

use super::bfq::Bfq;
use super::kyber::Kyber;
use super::mq_deadline::MqDeadline;
use super::none::NoScheduler;
use super::{IoRequest, IoScheduler, Merged};
use crate::spec::policy::{ParsePolicyError, PolicySpec};

/// Tags of a drive, at least and at most, of which the kernel makes twice the number of requests: an AHCI
/// adapter's 32, and `BLKDEV_DEFAULT_RQ`.
const TAGS: [u32; 2] = [32, 128];
/// Share of the requests that asynchronous ones may hold under kyber.
const KYBER_ASYNC_PERCENT: u64 = 75;
/// Limit of asynchronous requests under bfq.
const BFQ_ASYNC_PERCENT: u64 = 50;

/// Limits of a scheduler.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// Requests in scheduler and drive.
    requests: u64,
    /// Asynchronous ones among them.
    asynchronous: u64,
}

/// A request in scheduler or drive.
#[derive(Debug)]
struct InFlight {
    /// Requests of callers that it is made of.
    parts: Vec<u64>,
    is_sync: bool,
    /// As it left for the drive, and when.
    dispatched: Option<(IoRequest, SimTime)>,
}

/// The block layer of one drive: pure state that gets arrivals, room and completions.
pub struct BlockLayer {
    scheduler: Box<dyn IoScheduler>,
    limits: Limits,
    merges: bool,
    /// Requests without a tag, in order of arrival: synchronous ones, and the others.
    without_tag: [VecDeque<IoRequest>; 2],
    /// By sequence.
    in_flight: BTreeMap<u64, InFlight>,
    /// Asynchronous requests in flight.
    asynchronous: u64,
}

impl std::fmt::Debug for BlockLayer {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("BlockLayer").field("in_flight", &self.in_flight).finish_non_exhaustive()
    }
}

impl BlockLayer {
    /// The scheduler in front of a drive whose queue holds `depth` commands. None for a policy that is not
    /// one of Linux; Err names a parameter out of range.
    pub fn new(spec: &PolicySpec, depth: u32) -> Result<Option<Self>, ParsePolicyError> {
        spec.check()?;
        let usual = 2 * depth.clamp(TAGS[0], TAGS[1]);
        let of = |requests: Option<u32>, async_percent: u64| {
            let requests = u64::from(requests.unwrap_or(usual));
            Limits { requests, asynchronous: (requests * async_percent / 100).max(1) }
        };
        let (scheduler, limits): (Box<dyn IoScheduler>, Limits) = match *spec {
            PolicySpec::LinuxNone => {
                // The tags are those of the adapter, which has no fewer than the drive's queue.
                let requests = u64::from(depth.max(TAGS[0]));
                let limits = Limits { requests, asynchronous: requests };
                (Box::new(NoScheduler::default()), limits)
            }
            PolicySpec::MqDeadline(spec) => {
                (Box::new(MqDeadline::new(spec)), of(spec.nr_requests, 100))
            }
            PolicySpec::Kyber(spec) => {
                (Box::new(Kyber::new(spec)), of(spec.nr_requests, KYBER_ASYNC_PERCENT))
            }
            PolicySpec::Bfq(spec) => {
                (Box::new(Bfq::new(spec, depth > 1)), of(spec.nr_requests, BFQ_ASYNC_PERCENT))
            }
            _ => return Ok(None),
        };
        Ok(Some(Self {
            scheduler,
            limits,
            merges: true,
            without_tag: Default::default(),
            in_flight: BTreeMap::new(),
            asynchronous: 0,
        }))
    }

    /// Scheduler in which no request joins another.
    #[must_use]
    pub fn without_merges(self) -> Self {
        Self { merges: false, ..self }
    }

    /// A request arrives. Sequences rise.
    pub fn arrive(&mut self, now: SimTime, request: IoRequest) {
        if self.merges
            && let Some(merged) = self.scheduler.merge(&request)
        {
            self.join(&request, &merged);
            return self.give_tags(now);
        }
        self.without_tag[usize::from(!request.is_sync())].push_back(request);
        self.give_tags(now);
    }

    /// A request, and those that it has joined to the same, become part of that.
    fn join(&mut self, request: &IoRequest, merged: &Merged) {
        let mut parts = vec![request.sequence];
        for &other in &merged.absorbed {
            parts.extend(self.remove(other).parts);
        }
        let into = self.in_flight.get_mut(&merged.into).expect("it waits");
        into.parts.extend(parts);
    }

    fn remove(&mut self, sequence: u64) -> InFlight {
        let request = self.in_flight.remove(&sequence).expect("it is in flight");
        self.asynchronous -= u64::from(!request.is_sync);
        request
    }

    /// Passes requests on to the scheduler while there are tags, the oldest first. Asynchronous requests
    /// beyond their share hold back no synchronous one, which has another caller.
    fn give_tags(&mut self, now: SimTime) {
        while (self.in_flight.len() as u64) < self.limits.requests {
            let may_async = self.asynchronous < self.limits.asynchronous;
            let [sync, asynchronous] = &mut self.without_tag;
            let is_async = match (age(sync), age(asynchronous).filter(|_| may_async)) {
                (None, None) => return,
                (Some(sync), Some(other)) => other < sync,
                (sync, _) => sync.is_none(),
            };
            let queue = if is_async { asynchronous } else { sync };
            let request = queue.pop_front().expect("it has an age");
            let request = IoRequest { queued: now, ..request };
            let merged = if self.merges { self.scheduler.merge_late(&request) } else { None };
            match merged {
                Some(merged) => self.join(&request, &merged),
                None => self.give_tag(now, request),
            }
        }
    }

    fn give_tag(&mut self, now: SimTime, request: IoRequest) {
        let is_sync = request.is_sync();
        self.asynchronous += u64::from(!is_sync);
        let parts = vec![request.sequence];
        self.in_flight.insert(request.sequence, InFlight { parts, is_sync, dispatched: None });
        self.scheduler.insert(now, request);
    }

    /// The next request for a drive with room.
    pub fn dispatch(&mut self, now: SimTime) -> Option<IoRequest> {
        let request = self.scheduler.dispatch(now)?;
        let in_flight = self.in_flight.get_mut(&request.sequence).expect("it waits");
        in_flight.dispatched = Some((request, now));
        Some(request)
    }

    /// The drive has completed the request with this sequence. Returns the sequences of the callers'
    /// requests in it. Panics for one that was not dispatched.
    pub fn completed(&mut self, now: SimTime, sequence: u64) -> Vec<u64> {
        let done = self.remove(sequence);
        let (request, dispatched) = done.dispatched.expect("it was dispatched");
        self.scheduler.completed(now, &request, dispatched);
        self.give_tags(now);
        done.parts
    }

    /// Earliest dispatch of a request that is kept back now, if no event comes before.
    pub fn wakes_at(&self) -> Option<SimTime> {
        self.scheduler.wakes_at()
    }
}

fn age(queue: &VecDeque<IoRequest>) -> Option<u64> {
    queue.front().map(|request| request.sequence)
}
