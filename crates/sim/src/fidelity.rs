//! Check of a dependent replay: it repeats a trace's arrivals when every request takes its recorded time.
//!
//! A parent that is guessed wrongly, or a think time that is lost, shows as an arrival that does not come
//! back. The window of tr03 section 3.1 moves arrivals by design, so those count apart.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use freewheel_trace::{Record, TraceError, TraceInfo};
use freewheel_units::{Blocks, SimDuration, SimTime};
use serde::Serialize;

use crate::config::{CoarseTimes, ConfigError, TraceWorkload, check_timing, reopen};
use crate::experiment::Progress;
use crate::source::{
    Fit, HeldBy, Placement, Replay, ReplayTiming, Source, SourceError, TracedThinkTime, TracedTimes,
};

/// Deviation of a dependent replay from the arrivals of a trace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ReplayFidelity {
    /// Requests that take part: reads, writes, flushes and trims.
    pub requests: u64,
    /// Requests that arrive at their traced times, to the nanosecond.
    pub exact: u64,
    /// Requests that enter the full window late.
    pub entered_late: u64,
    /// Delayed requests, and all that follow from them: a delay stays with every later one that waits for
    /// another.
    pub delayed_by_window: Displacement,
    /// Other requests that arrive at another time.
    pub displaced: Displacement,
    /// Requests without a recorded completion. No other waits for them.
    pub without_completion: u64,
}

/// Differences between arrivals in the replay and in the trace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub struct Displacement {
    pub requests: u64,
    /// Mean over them; 0 without any.
    pub mean_ns: u64,
    pub max_ns: u64,
}

/// Requests between two reports of progress.
const REPORT_EVERY: u64 = 1 << 16;

/// Replays a trace with this first pass by dependence, each request taking its recorded time.
///
/// Errors: a trace that cannot be read, has no fine times, has no device of that number, or lacks too many
/// completions to tell which request waited for which.
pub fn replay_fidelity(
    workload: &TraceWorkload,
    trace: &TraceInfo,
    progress: Progress<'_>,
) -> Result<ReplayFidelity, ConfigError> {
    check_timing(trace.format, trace.survey.as_ref(), &workload.file)?;
    if !trace.tells_dependence() {
        return Err(ConfigError::missing_completions(&workload.file, trace));
    }
    let ends = trace.devices.iter().map(|(&id, device)| (id, device.end_block)).collect();
    let unlimited = Blocks::new(u64::MAX);
    let placement = Placement::new(&ends, workload.device, unlimited, Fit::AsIs)?;
    // With response times as recorded, no spread of arrivals can show in how exactly they come back.
    let workload = TraceWorkload { coarse_times: CoarseTimes::Bunched, ..workload.clone() };
    Ok(replayed(reopen(&workload, 0, trace)?, placement, trace.requests, progress)?)
}

fn replayed(
    records: impl Iterator<Item = Result<Record, TraceError>>,
    placement: Placement,
    total: u64,
    progress: Progress<'_>,
) -> Result<ReplayFidelity, SourceError> {
    let traced = RefCell::new(Traced::default());
    let takes_part = placement.clone();
    let records = records.inspect(|record| match record {
        Ok(record) if takes_part.includes(record) => traced.borrow_mut().observe(record),
        _ => {}
    });
    let timing = ReplayTiming::Dependent(TracedThinkTime::Kept);
    let mut replay = Replay::new(records, placement, timing, total);
    let mut under_way: BinaryHeap<Reverse<(SimTime, u64)>> = BinaryHeap::new();
    let mut sums = Sums::default();
    loop {
        let arrival = replay.next_arrival()?;
        let end = under_way.peek().map(|&Reverse((end, _))| end);
        match (arrival, end) {
            // Completions come before other events of an instant, as in the engine.
            (Some(at), end) if end.is_none_or(|end| at < end) => {
                let tag = replay.take().tag;
                let request = traced.borrow_mut().take(tag);
                sums.add(at, &request, replay.held_by(tag));
                under_way.push(Reverse((at + request.response, tag)));
                if sums.requests.is_multiple_of(REPORT_EVERY) {
                    let (done, total) = replay.progress();
                    progress(done, total);
                }
            }
            (_, Some(end)) => {
                let Reverse((_, tag)) = under_way.pop().expect("one was seen");
                replay.completed(tag, end);
            }
            _ => break,
        }
    }
    Ok(sums.fidelity(traced.into_inner().without_completion))
}

/// Times of a request in the trace.
#[derive(Debug, Clone, Copy)]
struct TracedRequest {
    arrival: SimTime,
    /// Zero where it was not recorded: no request waits for such a one.
    response: SimDuration,
}

/// Requests that were read and do not run yet, by number.
#[derive(Debug, Default)]
struct Traced {
    times: TracedTimes,
    read: u64,
    waiting: BTreeMap<u64, TracedRequest>,
    without_completion: u64,
}

impl Traced {
    fn observe(&mut self, record: &Record) {
        let arrival = self.times.arrival(record);
        let completion = self.times.completion(record);
        self.without_completion += u64::from(completion.is_none());
        let response = completion.map_or(SimDuration::ZERO, |completion| completion - arrival);
        self.waiting.insert(self.read, TracedRequest { arrival, response });
        self.read += 1;
    }

    fn take(&mut self, number: u64) -> TracedRequest {
        self.waiting.remove(&number).expect("a request was read before it arrives")
    }
}

#[derive(Debug, Default)]
struct Sums {
    requests: u64,
    exact: u64,
    entered_late: u64,
    held: Displacements,
    others: Displacements,
}

impl Sums {
    fn add(&mut self, at: SimTime, traced: &TracedRequest, held: Option<HeldBy>) {
        self.requests += 1;
        self.entered_late += u64::from(held == Some(HeldBy::Window));
        let displacement_ns = at.ns().abs_diff(traced.arrival.ns());
        match (displacement_ns, held) {
            (0, _) => self.exact += 1,
            (ns, Some(_)) => self.held.add(ns),
            (ns, None) => self.others.add(ns),
        }
    }

    fn fidelity(&self, without_completion: u64) -> ReplayFidelity {
        ReplayFidelity {
            requests: self.requests,
            exact: self.exact,
            entered_late: self.entered_late,
            delayed_by_window: self.held.summary(),
            displaced: self.others.summary(),
            without_completion,
        }
    }
}

#[derive(Debug, Default)]
struct Displacements {
    requests: u64,
    sum_ns: u128,
    max_ns: u64,
}

impl Displacements {
    fn add(&mut self, ns: u64) {
        self.requests += 1;
        self.sum_ns += u128::from(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    fn summary(&self) -> Displacement {
        let mean_ns = (self.sum_ns / u128::from(self.requests.max(1))) as u64;
        Displacement { requests: self.requests, mean_ns, max_ns: self.max_ns }
    }
}

#[cfg(test)]
mod tests {
    use freewheel_units::{Op, VolumeBlock};

    use super::*;

    fn record(arrival: u64, completion: Option<u64>) -> Record {
        Record {
            widened: false,
            arrival: SimTime::from_ns(arrival),
            op: Op::Read,
            device: 0,
            start: VolumeBlock::ZERO,
            blocks: Blocks::new(1),
            completion: completion.map(SimTime::from_ns),
            fua: false,
        }
    }

    fn fidelity(records: &[Record]) -> ReplayFidelity {
        let ends = BTreeMap::from([(0, 1000)]);
        let placement = Placement::new(&ends, None, Blocks::new(1000), Fit::AsIs).unwrap();
        let list = records.iter().copied().map(Ok);
        replayed(list, placement, records.len() as u64, &mut |_, _| {}).unwrap()
    }

    #[test]
    fn fidelity_exact_below_window() {
        let noise = |i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        // Responses of up to 60 arrivals, so that requests overlap and complete out of order.
        let records: Vec<Record> = (0..3000)
            .map(|i| record(i * 1000 + noise(i) % 900, Some(i * 1000 + 900 + noise(i) % 60_000)))
            .collect();
        let fidelity = fidelity(&records);
        assert_eq!((fidelity.requests, fidelity.exact), (3000, 3000));
    }

    #[test]
    fn fidelity_counts_window_delays_apart() {
        // 70 requests at 0 to 69 take 1,000 each: numbers 64 to 69 are read when the first six are done,
        // 1,000 - 64 late each, and the last one waits for number 69.
        let mut records: Vec<Record> = (0..70).map(|i| record(i, Some(i + 1000))).collect();
        records.push(record(2000, Some(2001)));
        let fidelity = fidelity(&records);
        assert_eq!((fidelity.requests, fidelity.exact, fidelity.entered_late), (71, 64, 6));
        let delayed = Displacement { requests: 7, mean_ns: 936, max_ns: 936 };
        assert_eq!(
            (fidelity.delayed_by_window, fidelity.displaced),
            (delayed, Displacement::default())
        );
    }

    #[test]
    fn fidelity_without_completions_counts_no_parents() {
        let records =
            [record(0, Some(10)), record(5, None), record(20, Some(30)), record(15, None)];
        let fidelity = fidelity(&records);
        assert_eq!((fidelity.exact, fidelity.without_completion), (4, 2));
    }
}
