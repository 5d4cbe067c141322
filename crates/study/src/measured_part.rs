//! The part of a trace that a study measures: the requests after those that fill caches.

use freewheel_sim::config::{ConfigError, TraceWorkload, open};
use freewheel_trace::{Character, DurationSummary, Record, TraceInfo};
use freewheel_units::Op;
use serde::Serialize;

use crate::changes::Responses;
use crate::trace_runs::{REQUESTS_MIN, WARM_UP};

/// The part of the trace whose requests count in every response, share of time and rate of the runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct MeasuredPart {
    /// Requests before it, which fill caches; none where no change is tried.
    pub warm_up_requests: u64,
    /// Time from its first arrival to its last one.
    pub span_ns: u64,
    /// Reads and writes of the part.
    pub requests: u64,
    pub recorded_reads: Responses,
    pub recorded_writes: Responses,
    pub recorded_flushes: Responses,
}

/// The share of the requests that fills caches. Without a change there is no cache to fill, and of a short
/// trace too little would be left.
pub(crate) fn warm_up(info: &TraceInfo, tries_changes: bool) -> f64 {
    let left = (1.0 - WARM_UP) * (info.reads + info.writes) as f64;
    if tries_changes && left >= REQUESTS_MIN as f64 { WARM_UP } else { 0.0 }
}

impl MeasuredPart {
    /// The part after this number of requests. Reads the trace once more where it is not the whole.
    pub(crate) fn behind(
        warm_up_requests: u64,
        trace: &TraceWorkload,
        character: &Character,
        seed: u64,
    ) -> Result<Self, ConfigError> {
        if warm_up_requests == 0 {
            return Ok(Self::whole(character));
        }
        let none = Responses::default();
        let mut part = Self {
            warm_up_requests,
            span_ns: 0,
            requests: 0,
            recorded_reads: none,
            recorded_writes: none,
            recorded_flushes: none,
        };
        let (mut seen, mut first) = (0, None);
        for record in open(trace, seed)? {
            let record = record?;
            if !is_wanted(&record, trace) {
                continue;
            }
            seen += 1;
            if seen > warm_up_requests {
                let first = *first.get_or_insert(record.arrival);
                part.span_ns = part.span_ns.max(record.arrival.saturating_since(first).ns());
                part.add(&record);
            }
        }
        Ok(part)
    }

    fn whole(character: &Character) -> Self {
        let times = &character.response;
        Self {
            warm_up_requests: 0,
            span_ns: character.info.span_ns,
            requests: character.info.reads + character.info.writes,
            recorded_reads: sum(times.read),
            recorded_writes: sum(times.write),
            recorded_flushes: sum(times.flush),
        }
    }

    fn add(&mut self, record: &Record) {
        let recorded = match record.op {
            Op::Read => &mut self.recorded_reads,
            Op::Write => &mut self.recorded_writes,
            Op::Flush => &mut self.recorded_flushes,
            Op::Trim => return,
        };
        if let Some(completion) = record.completion {
            recorded.sum_ns += u128::from(completion.saturating_since(record.arrival).ns());
            recorded.count += 1;
        }
        self.requests += u64::from(record.op != Op::Flush);
    }

    /// The mean of the recorded responses of reads and writes; None where none was recorded.
    pub fn recorded_mean_ns(&self) -> Option<f64> {
        let (reads, writes) = (self.recorded_reads, self.recorded_writes);
        let both =
            Responses { sum_ns: reads.sum_ns + writes.sum_ns, count: reads.count + writes.count };
        both.mean_ns()
    }

    /// Span of its arrivals.
    pub fn seconds(&self) -> f64 {
        self.span_ns as f64 / 1e9
    }
}

fn is_wanted(record: &Record, trace: &TraceWorkload) -> bool {
    trace.device.is_none_or(|device| device == record.device)
}

fn sum(summary: Option<DurationSummary>) -> Responses {
    summary.map_or(Responses::default(), |it| Responses {
        sum_ns: (it.mean_ns * it.count as f64) as u128,
        count: it.count,
    })
}
