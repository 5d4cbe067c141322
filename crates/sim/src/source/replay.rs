//! A trace as a source.
//!
//! A replay has two timings. *By arrival*: every request arrives at its traced time, regardless of the
//! drive. *Dependent* (tr03 section 3.1): a request arrives a think time after its parent completes.
//! The parent is the last request that had completed before it arrived in the traced system. So a
//! faster drive receives requests sooner, and a slower one is not buried. Dependent replay needs
//! completions: recorded ones, or inferred ones.

use std::collections::BTreeMap;

use freewheel_trace::{Record, TraceError};
use freewheel_units::{Blocks, Op, SimTime, VolumeBlock};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::lineage::{Adoption, Lineage, Replayed, TracedTimes};
use super::traced_think_time::TracedThinkTime;
use super::{Placement, Request, Source, SourceError};
use crate::events::EventQueue;

/// Timing of a trace's replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReplayMode {
    /// Dependent where the trace records completions of more than 99 % of its requests, else by
    /// arrival.
    #[default]
    Auto,
    /// Requests arrive at their traced times.
    Arrivals,
    /// Each request arrives a think time after the completion of its parent.
    Dependent,
}

/// Time at which the requests of a trace arrive.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ReplayTiming {
    /// At their traced times.
    Arrivals {
        /// Factor by which the times between arrivals become shorter.
        speedup: f64,
    },
    /// After their parents complete.
    Dependent(TracedThinkTime),
}

impl ReplayTiming {
    /// At the traced times themselves.
    pub const TRACED: Self = Self::Arrivals { speedup: 1.0 };

    /// The arrival of a request that was traced at `time`.
    #[inline]
    fn arrival(self, time: SimTime) -> SimTime {
        match self {
            // Exactly the traced times, without the rounding of floats.
            Self::Arrivals { speedup } if speedup != 1.0 => {
                SimTime::from_ns((time.ns() as f64 / speedup).round() as u64)
            }
            _ => time,
        }
    }
}

/// Requests of a dependent replay that may be under way or waiting for their parent at once
/// (tr03 section 3.1).
pub const REPLAY_WINDOW: usize = 64;

/// Reason why a request arrives later than the completion of its parent says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeldBy {
    /// The request's record entered the full window late.
    Window,
    /// The full window has delayed its parent, or one before that.
    Ancestor,
}

/// A trace that is played back. Records are read as they are needed.
#[derive(Debug)]
pub struct Replay<I> {
    records: I,
    placement: Placement,
    timing: ReplayTiming,
    progress: (u64, u64),
    times: TracedTimes,
    /// Requests whose arrival is known.
    ready: EventQueue<Request>,
    lineage: Lineage,
    /// Requests not yet completed that arrive later than their parents' times say: the full window has
    /// delayed them, or an ancestor.
    held: BTreeMap<u64, HeldBy>,
    /// Time of the last completion in the replay.
    now: SimTime,
    /// Records read, and of those completed in the replay.
    read: u64,
    finished: u64,
    exhausted: bool,
}

impl<I: Iterator<Item = Result<Record, TraceError>>> Replay<I> {
    /// `total` is the number of records, for progress. A request whose record has no completion arrives
    /// like the others, but becomes no parent.
    pub fn new(records: I, placement: Placement, timing: ReplayTiming, total: u64) -> Self {
        Self {
            records,
            placement,
            timing,
            progress: (0, total),
            times: TracedTimes::default(),
            ready: EventQueue::default(),
            lineage: Lineage::default(),
            held: BTreeMap::new(),
            now: SimTime::ZERO,
            read: 0,
            finished: 0,
            exhausted: false,
        }
    }

    /// Reads one record and computes its arrival, or registers it with its parent.
    fn read_one(&mut self) -> Result<(), SourceError> {
        let Some(record) = self.records.next().transpose()? else {
            self.exhausted = true;
            return Ok(());
        };
        self.progress.0 += 1;
        if !self.placement.includes(&record) {
            return Ok(());
        }
        let arrival = self.times.arrival(&record);
        let request = self.request(&record)?;
        let ReplayTiming::Dependent(think_times) = self.timing else {
            self.ready.push(self.timing.arrival(arrival), request);
            return Ok(());
        };
        match self.lineage.adopt(request.tag, arrival, self.times.completion(&record)) {
            Adoption::Orphan => self.issue(arrival, request, false),
            Adoption::After(parent, traced) => {
                let think_time = think_times.apply(traced);
                match self.lineage.replayed.get(&parent) {
                    Some(&Replayed { at, held }) => self.issue(at + think_time, request, held),
                    None => {
                        self.lineage.waiting.entry(parent).or_default().push((think_time, request));
                    }
                }
            }
        }
        Ok(())
    }

    fn request(&mut self, record: &Record) -> Result<Request, SourceError> {
        let tag = self.read;
        self.read += 1;
        let (op, fua) = (record.op, record.fua);
        let nowhere = Request { op, start: VolumeBlock::ZERO, blocks: Blocks::ZERO, fua, tag };
        let placed = |start| Request { start, blocks: record.blocks, ..nowhere };
        let request = match record.op {
            Op::Flush => nowhere,
            // A trim of more than the drive holds lies nowhere.
            Op::Trim => self.placement.place(record).map_or(nowhere, placed),
            Op::Read | Op::Write => placed(self.placement.place(record)?),
        };
        self.placement.check_sectors(self.progress.0, request.start, request.blocks)?;
        Ok(request)
    }

    /// Schedules the request for `at`, or for now when the full window has delayed its record until
    /// now. `held` says whether its parent was delayed so.
    fn issue(&mut self, at: SimTime, request: Request, held: bool) {
        if at < self.now {
            self.held.insert(request.tag, HeldBy::Window);
        } else if held {
            self.held.insert(request.tag, HeldBy::Ancestor);
        }
        self.ready.push(at.max(self.now), request);
    }

    /// Delay of this request, which is not completed.
    pub(crate) fn held_by(&self, tag: u64) -> Option<HeldBy> {
        self.held.get(&tag).copied()
    }

    fn is_dependent(&self) -> bool {
        matches!(self.timing, ReplayTiming::Dependent(_))
    }

    /// True if another record must be read before the next arrival is certain.
    fn wants_more(&self) -> bool {
        if self.exhausted {
            return false;
        }
        if self.is_dependent() {
            // A full window cannot stall: the parent of its oldest request was read earlier, and so is
            // done.
            return self.read - self.finished < REPLAY_WINDOW as u64;
        }
        self.ready.is_empty()
    }
}

impl<I: Iterator<Item = Result<Record, TraceError>>> Source for Replay<I> {
    fn next_arrival(&mut self) -> Result<Option<SimTime>, SourceError> {
        while self.wants_more() {
            self.read_one()?;
        }
        Ok(self.ready.next_time())
    }

    fn take(&mut self) -> Request {
        self.ready.pop().expect("next_arrival gave a time").1
    }

    fn completed(&mut self, tag: u64, now: SimTime) {
        self.finished += 1;
        self.now = now;
        if !self.is_dependent() {
            return;
        }
        let held = self.held.remove(&tag).is_some();
        for (think_time, request) in self.lineage.waiting.remove(&tag).unwrap_or_default() {
            self.issue(now + think_time, request, held);
        }
        // Other completions are of no use to a later record; keeping them would let memory grow with
        // the trace.
        if self.lineage.may_be_parent(tag) {
            self.lineage.replayed.insert(tag, Replayed { at: now, held });
        }
    }

    fn progress(&self) -> (u64, u64) {
        self.progress
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;

    use freewheel_units::SimDuration;

    use super::*;
    use crate::source::Fit;

    fn record(arrival_ms: u64, completion_ms: u64) -> Record {
        Record {
            widened: false,
            arrival: SimTime::from_ns(arrival_ms * 1_000_000),
            op: Op::Read,
            device: 0,
            start: VolumeBlock::new(arrival_ms % 1000),
            blocks: Blocks::new(1),
            completion: Some(SimTime::from_ns(completion_ms * 1_000_000)),
            fua: false,
        }
    }

    const DEPENDENT: ReplayTiming = ReplayTiming::Dependent(TracedThinkTime::Kept);

    /// Replays on a drive that takes `service_ms` for each request, however many there are.
    fn arrivals(records: &[Record], timing: ReplayTiming, service_ms: u64) -> Vec<u64> {
        let placement =
            Placement::new(&BTreeMap::from([(0, 1000)]), None, Blocks::new(1000), Fit::AsIs);
        let list = records.iter().copied().map(Ok);
        let mut replay = Replay::new(list, placement.unwrap(), timing, records.len() as u64);
        let mut times = vec![0; records.len()];
        let mut busy: BinaryHeap<Reverse<(SimTime, u64)>> = BinaryHeap::new();
        loop {
            let arrival = replay.next_arrival().unwrap();
            match (busy.peek().copied(), arrival) {
                (Some(Reverse((end, tag))), next) if next.is_none_or(|next| end <= next) => {
                    busy.pop();
                    replay.completed(tag, end);
                }
                (_, Some(at)) => {
                    let request = replay.take();
                    times[request.tag as usize] = at.ns() / 1_000_000;
                    busy.push(Reverse((at + SimDuration::from_ms(service_ms), request.tag)));
                }
                _ => return times,
            }
        }
    }

    #[test]
    fn replay_by_arrival_keeps_traced_times() {
        let records = [record(0, 9), record(3, 4), record(20, 30)];
        assert_eq!(arrivals(&records, ReplayTiming::TRACED, 500), [0, 3, 20]);
    }

    #[test]
    fn dependent_request_follows_after_think_time() {
        // The third arrives 5 ms after the first completed at 10; the fourth 1 ms after the
        // third completed at 25.
        let records = [record(0, 10), record(2, 12), record(17, 25), record(26, 40)];
        // As fast as in the trace for the second: it completes at 12, the third comes at 17.
        assert_eq!(arrivals(&records, DEPENDENT, 10), [0, 2, 17, 28]);
        // On a drive of 1 ms: second done at 3, third at 3 + 5 = 8, fourth at 9 + 1.
        assert_eq!(arrivals(&records, DEPENDENT, 1), [0, 2, 8, 10]);
    }

    #[test]
    fn think_times_scaled_but_not_responses() {
        // Think times of 5 and 1 ms.
        let records = [record(0, 10), record(2, 12), record(17, 25), record(26, 40)];
        let removed = ReplayTiming::Dependent(TracedThinkTime::Removed);
        assert_eq!(arrivals(&records, removed, 10), [0, 2, 12, 22]);
        // A second of thinking becomes 922 ms, 10 s become 9913 ms.
        let records = [record(0, 10), record(1010, 1020), record(11_020, 11_030)];
        let faster = ReplayTiming::Dependent(TracedThinkTime::Speedup(4.0));
        assert_eq!(arrivals(&records, faster, 10), [0, 932, 932 + 10 + 9913]);
        // Arrivals alone come four times as fast, on any drive.
        let faster = ReplayTiming::Arrivals { speedup: 4.0 };
        assert_eq!(arrivals(&records, faster, 500), [0, 252, 2755]);
    }

    #[test]
    fn missing_completion_blocks_no_request() {
        let mut records = [record(0, 10), record(12, 16), record(17, 25), record(26, 40)];
        // The second completed at 16, the third comes 1 ms later; on a drive of 1 ms each: first done
        // at 1, second at 3 + 1, third at 5 + 1, fourth 1 ms later.
        assert_eq!(arrivals(&records, DEPENDENT, 1), [0, 3, 5, 7]);
        // Without that, the third came 7 ms after the first completed.
        records[1].completion = None;
        assert_eq!(arrivals(&records, DEPENDENT, 1), [0, 3, 8, 10]);
    }

    #[test]
    fn replay_on_equal_drive_keeps_arrivals() {
        let records: Vec<Record> = (0..200).map(|i| record(i * 7, i * 7 + 10)).collect();
        let expected: Vec<u64> = (0..200).map(|i| i * 7).collect();
        assert_eq!(arrivals(&records, DEPENDENT, 10), expected);
    }

    #[test]
    fn replay_reads_ahead_within_window() {
        // All wait for the first, which takes long.
        let mut records = vec![record(0, 1)];
        records.extend((0..500).map(|_| record(2, 3)));
        let placement =
            Placement::new(&BTreeMap::from([(0, 1000)]), None, Blocks::new(1000), Fit::AsIs);
        let list = records.iter().copied().map(Ok);
        let mut replay = Replay::new(list, placement.unwrap(), DEPENDENT, 501);
        replay.next_arrival().unwrap();
        replay.take();
        replay.next_arrival().unwrap();
        // The window of tr03 section 3.1.
        assert_eq!(replay.read, 64);
    }

    #[test]
    fn time_zero_is_first_participating_request() {
        let records = [record(5000, 5009), record(5003, 5004)];
        assert_eq!(arrivals(&records, ReplayTiming::TRACED, 1), [0, 3]);
        assert_eq!(arrivals(&records, DEPENDENT, 1), [0, 3]);
    }

    #[test]
    fn record_stepping_back_joins_previous() {
        let records = [record(10, 11), record(4, 12), record(20, 21)];
        assert_eq!(arrivals(&records, ReplayTiming::TRACED, 1), [0, 0, 10]);
    }
}
