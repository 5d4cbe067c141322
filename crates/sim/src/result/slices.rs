//! Parts of a run, each with its own sums.

use freewheel_model::stats::Distribution;
use freewheel_units::{Op, SimDuration, SimTime};
use serde::Serialize;

use super::time::HeadTime;
use crate::cache_work::CacheWork;
use crate::completion::Completion;
use crate::device::Work;

/// One of equal parts of a run, by requests in their order of arrival. Of independent drives: the parts of
/// this number together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SliceResult {
    /// Beginning of the slice, from the start of the run; the earliest of independent drives.
    pub start_ns: u64,
    /// Time to the next slice or the end of the run; the longest of independent drives.
    pub elapsed_ns: u64,
    /// Reads that arrived in it.
    pub reads: SliceResponses,
    /// Writes that arrived in it.
    pub writes: SliceResponses,
    /// Head time of accesses that began in it.
    pub head_ns: u128,
    /// Work of the storage system's caches in it, where there were some.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheWork>,
}

/// Response times of the reads or writes of a slice.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SliceResponses {
    /// Number of requests.
    pub requests: u64,
    /// Sum of their response times.
    pub response_ns_sum: u128,
    /// Mean response time, zero without requests.
    pub response_ns_mean: f64,
    /// 99 % of the response times are no longer.
    pub response_ns_p99: u64,
}

/// State of all arms where a slice begins.
#[derive(Debug, Clone, Copy, Default)]
struct Boundary {
    time: SimTime,
    head_ns: u128,
    cache: Option<CacheWork>,
}

/// Sums over a slice.
#[derive(Clone)]
pub(super) struct SliceTally {
    /// Sequence of its first request.
    first: u64,
    begin: Boundary,
    elapsed: SimDuration,
    head_ns: u128,
    cache: Option<CacheWork>,
    reads: Distribution,
    writes: Distribution,
}

/// Slices in order; empty for a run in one part.
#[derive(Default)]
pub(super) struct SliceTallies(Vec<SliceTally>);

impl SliceResponses {
    fn of(responses: &Distribution) -> Self {
        Self {
            requests: responses.count(),
            response_ns_sum: responses.sum_ns(),
            response_ns_mean: responses.mean_ns(),
            response_ns_p99: responses.quantile_ns(0.99),
        }
    }
}

impl Boundary {
    fn new(time: SimTime, work: &[Work]) -> Self {
        let cache = work.iter().filter_map(|work| work.cache).reduce(CacheWork::and);
        Self { time, head_ns: HeadTime::of(work).total_ns(), cache }
    }
}

impl SliceTally {
    fn new(first: u64, begin: Boundary) -> Self {
        Self {
            first,
            begin,
            elapsed: SimDuration::ZERO,
            head_ns: 0,
            cache: None,
            reads: Distribution::default(),
            writes: Distribution::default(),
        }
    }

    fn end(&mut self, end: &Boundary) {
        let Boundary { time, head_ns, cache } = self.begin;
        self.elapsed = end.time - time;
        self.head_ns = end.head_ns - head_ns;
        self.cache = end.cache.map(|after| after.since(&cache.unwrap_or_default()));
    }

    /// Adds the slice of another drive.
    fn add(&mut self, other: &Self) {
        self.begin.time = self.begin.time.min(other.begin.time);
        self.elapsed = self.elapsed.max(other.elapsed);
        self.head_ns += other.head_ns;
        self.cache = self.cache.into_iter().chain(other.cache).reduce(CacheWork::and);
        self.reads.add(&other.reads);
        self.writes.add(&other.writes);
    }

    fn result(&self) -> SliceResult {
        SliceResult {
            start_ns: self.begin.time.ns(),
            elapsed_ns: self.elapsed.ns(),
            reads: SliceResponses::of(&self.reads),
            writes: SliceResponses::of(&self.writes),
            head_ns: self.head_ns,
            cache: self.cache,
        }
    }
}

impl SliceTallies {
    /// Ends the slice before, and begins one with the request of sequence `first`.
    pub(super) fn begin(&mut self, first: u64, time: SimTime, work: &[Work]) {
        let boundary = Boundary::new(time, work);
        self.end_last(&boundary);
        self.0.push(SliceTally::new(first, boundary));
    }

    /// Ends the run.
    pub(super) fn end(&mut self, time: SimTime, work: &[Work]) {
        self.end_last(&Boundary::new(time, work));
    }

    fn end_last(&mut self, boundary: &Boundary) {
        if let Some(last) = self.0.last_mut() {
            last.end(boundary);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Counts a request with its slice, which may have ended meanwhile.
    pub(super) fn completed(&mut self, sequence: u64, completion: &Completion) {
        // Of several that begin with the same request, the last is not empty.
        let begun = self.0.partition_point(|slice| slice.first <= sequence);
        let slice = &mut self.0[begun - 1];
        match completion.request.op {
            Op::Read => slice.reads.record(completion.response()),
            Op::Write => slice.writes.record(completion.response()),
            Op::Flush | Op::Trim => {}
        }
    }

    /// Adds the slices of another drive, one to one.
    pub(super) fn add(&mut self, other: &Self) {
        let shared = self.0.len().min(other.0.len());
        let (same, more) = other.0.split_at(shared);
        self.0.iter_mut().zip(same).for_each(|(slice, other)| slice.add(other));
        self.0.extend_from_slice(more);
    }

    pub(super) fn results(&self) -> Vec<SliceResult> {
        self.0.iter().map(SliceTally::result).collect()
    }
}
