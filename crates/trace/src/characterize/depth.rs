//! Queueing in the traced system: outstanding requests and response times.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use freewheel_units::{Op, SimTime};
use serde::Serialize;

use super::quantiles::{DurationSummary, Quantiles};
use crate::Record;

/// Most outstanding requests that are tracked, in 8 MB. Beyond them, the one with the earliest
/// completion counts as complete.
const OUTSTANDING_MAX: usize = 1 << 20;

/// Earlier requests, with flushes, that are incomplete when a request arrives. All devices count
/// together.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct DepthSummary {
    /// Mean over the arrivals.
    pub mean: f64,
    pub p50: u64,
    /// 95th percentile.
    pub p95: u64,
    pub max: u64,
}

/// Traced response times by operation: from arrival to completion. `None` where none is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct ResponseTimes {
    pub read: Option<DurationSummary>,
    pub write: Option<DurationSummary>,
    pub flush: Option<DurationSummary>,
    pub trim: Option<DurationSummary>,
}

#[derive(Debug, Default)]
pub(super) struct DepthCollector {
    /// Completions of the outstanding requests, the next first.
    completions: BinaryHeap<Reverse<SimTime>>,
    depth: Quantiles,
    responses: [Quantiles; 4],
    completed: u64,
}

impl DepthCollector {
    /// `now` is the latest arrival so far.
    pub fn observe(&mut self, now: SimTime, record: &Record) {
        while self.completions.peek().is_some_and(|Reverse(completion)| *completion <= now) {
            self.completions.pop();
        }
        self.depth.record(self.completions.len() as u64);
        if let Some(completion) = record.completion {
            self.completed += 1;
            self.push(completion);
            let response = completion.saturating_since(record.arrival);
            self.responses[record.op as usize].record(response.ns());
        }
    }

    fn push(&mut self, completion: SimTime) {
        if self.completions.len() == OUTSTANDING_MAX {
            self.completions.pop();
        }
        self.completions.push(Reverse(completion));
    }

    pub fn finish(self) -> (Option<DepthSummary>, ResponseTimes) {
        let depth = (self.completed > 0).then(|| DepthSummary {
            mean: self.depth.mean(),
            p50: self.depth.at(0.5),
            p95: self.depth.at(0.95),
            max: self.depth.max(),
        });
        let [read, write, flush, trim] = [Op::Read, Op::Write, Op::Flush, Op::Trim]
            .map(|op| DurationSummary::of(&self.responses[op as usize]));
        (depth, ResponseTimes { read, write, flush, trim })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use freewheel_units::{Blocks, VolumeBlock};

    #[test]
    fn request_completing_at_arrival_not_outstanding() {
        let mut collector = DepthCollector::default();
        for (arrival, completion) in [(0, 10), (5, 30), (10, 20), (40, 50)] {
            let [arrival, completion] = [arrival, completion].map(SimTime::from_ns);
            let (start, blocks) = (VolumeBlock::ZERO, Blocks::new(1));
            let completion = Some(completion);
            let record = Record {
                widened: false,
                arrival,
                op: Op::Read,
                device: 0,
                start,
                blocks,
                completion,
                fua: false,
            };
            collector.observe(arrival, &record);
        }
        let (depth, response) = collector.finish();
        // Depths 0, 1, 1, 0; response times 10, 25, 10, 10.
        let depth = depth.unwrap();
        assert_eq!((depth.mean, depth.p50, depth.max), (0.5, 0, 1));
        assert_eq!(response.read.unwrap().mean_ns, 13.75);
        assert_eq!(response.write, None);
    }
}
