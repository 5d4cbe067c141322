//! Completions that a trace does not record, as a reference drive would have had them.

use std::sync::Arc;

use freewheel_trace::{Record, TraceError};
use freewheel_units::{SimDuration, SimTime};
use serde::Serialize;

use super::Fit;
use super::lineage::{Adoption, Lineage, TracedTimes};

/// Response times of a trace's requests on a reference drive, by the place of each among the requests that
/// take part. They take 8 bytes a request.
#[derive(Debug, Clone, Default)]
pub(crate) struct InferredResponses(Arc<Vec<u64>>);

impl InferredResponses {
    /// In nanoseconds.
    pub fn new(responses_ns: Vec<u64>) -> Self {
        Self(Arc::new(responses_ns))
    }

    fn response(&self, index: usize) -> Option<SimDuration> {
        self.0.get(index).copied().map(SimDuration::from_ns)
    }
}

/// Records of which those without a completion get the inferred one.
#[derive(Debug)]
pub struct WithCompletions<I> {
    records: I,
    responses: Option<InferredResponses>,
    /// The only device that takes part, if one was chosen.
    device: Option<u32>,
    /// Records so far that take part.
    count: usize,
    /// Latest arrival so far: a record with an earlier time arrives at this time.
    latest: SimTime,
}

impl<I> WithCompletions<I> {
    pub(crate) fn new(
        records: I,
        responses: Option<InferredResponses>,
        device: Option<u32>,
    ) -> Self {
        Self { records, responses, device, count: 0, latest: SimTime::ZERO }
    }
}

impl<I: Iterator<Item = Result<Record, TraceError>>> Iterator for WithCompletions<I> {
    type Item = I::Item;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let record = self.records.next()?;
        let (Some(responses), Ok(record)) = (&self.responses, &record) else { return Some(record) };
        let mut record = *record;
        if self.device.is_none_or(|device| device == record.device) {
            self.latest = self.latest.max(record.arrival);
            let inferred = responses.response(self.count).map(|response| self.latest + response);
            record.completion = record.completion.or(inferred);
            self.count += 1;
        }
        Some(Ok(record))
    }
}

/// The reference drive of a trace whose completions are inferred, and how much hangs on it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InferredCompletions {
    /// Number of the trace among those merged; 0 for a trace alone.
    pub stream: u32,
    /// Name of the reference drive.
    pub drive: String,
    /// Fit of the trace onto the volume.
    pub fit: Fit,
    /// Mean response time of the requests there.
    pub mean_response_ns: u64,
    /// Shares of requests that wait for another one at other response times.
    pub parents: ParentDoubt,
}

/// Share of a trace's dependence that hangs on the reference drive. Shares are of the requests that take
/// part.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ParentDoubt {
    /// Share of requests that wait for another one when inferred response times are halved.
    pub halved: f64,
    /// Share with doubled response times.
    pub doubled: f64,
    /// Share of requests to which either happens.
    pub either: f64,
}

/// The parents of a trace's requests at three lengths of the inferred response times.
#[derive(Debug, Default)]
pub(crate) struct ParentComparison {
    times: TracedTimes,
    inferred: Lineage,
    halved: Lineage,
    doubled: Lineage,
    requests: u64,
    changed_when_halved: u64,
    changed_when_doubled: u64,
    changed: u64,
}

impl ParentComparison {
    /// Takes the next record that takes part, as the trace has it.
    pub fn observe(&mut self, record: &Record, responses: &InferredResponses) {
        let index = self.requests;
        self.requests += 1;
        let arrival = self.times.arrival(record);
        let recorded = self.times.completion(record);
        let response = responses.response(index as usize);
        let parent = |lineage: &mut Lineage, scale: fn(u64) -> u64| {
            let inferred = response.map(|time| arrival + SimDuration::from_ns(scale(time.ns())));
            match lineage.adopt(index, arrival, recorded.or(inferred)) {
                Adoption::Orphan => None,
                Adoption::After(parent, _) => Some(parent),
            }
        };
        let inferred = parent(&mut self.inferred, |ns| ns);
        let halved = parent(&mut self.halved, |ns| ns / 2) != inferred;
        let doubled = parent(&mut self.doubled, |ns| ns.saturating_mul(2)) != inferred;
        self.changed_when_halved += u64::from(halved);
        self.changed_when_doubled += u64::from(doubled);
        self.changed += u64::from(halved || doubled);
    }

    /// The shares; zero of an empty trace.
    pub fn doubt(&self) -> ParentDoubt {
        ParentDoubt {
            halved: self.share(self.changed_when_halved),
            doubled: self.share(self.changed_when_doubled),
            either: self.share(self.changed),
        }
    }

    fn share(&self, count: u64) -> f64 {
        count as f64 / self.requests.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use freewheel_units::{Blocks, Op, VolumeBlock};

    use super::*;

    fn record(arrival: u64, device: u32, completion: Option<u64>) -> Record {
        Record {
            widened: false,
            arrival: SimTime::from_ns(arrival),
            op: Op::Read,
            device,
            start: VolumeBlock::ZERO,
            blocks: Blocks::new(1),
            completion: completion.map(SimTime::from_ns),
            fua: false,
        }
    }

    #[test]
    fn inferred_completions_fill_only_missing_ones() {
        let records = [
            record(10, 0, None),
            record(11, 7, None),
            record(20, 0, Some(22)),
            record(15, 0, None),
        ];
        let responses = Some(InferredResponses::new(vec![5, 100, 9]));
        let filled =
            WithCompletions::new(records.into_iter().map(Ok::<_, TraceError>), responses, Some(0));
        let completions: Vec<Option<u64>> =
            filled.map(|record| record.unwrap().completion.map(SimTime::ns)).collect();
        // The last one steps back, and arrives with the one before it.
        assert_eq!(completions, [Some(15), None, Some(22), Some(29)]);
    }

    /// Parents by looking at every request before.
    fn parents(records: &[Record], responses: &[u64], scale: fn(u64) -> u64) -> Vec<Option<usize>> {
        let done = |i: usize| records[i].arrival.ns() + scale(responses[i]);
        let before = |i: usize| (0..i).filter(move |&j| done(j) <= records[i].arrival.ns());
        (0..records.len()).map(|i| before(i).max_by_key(|&j| (done(j), j))).collect()
    }

    #[test]
    fn parent_comparison_matches_full_search() {
        let noise = |i: u64, of: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33 & of;
        let mut now = 0;
        let arrivals = (0..400).map(|i| {
            now += noise(i, 63);
            now
        });
        let records: Vec<Record> = arrivals.map(|at| record(at, 0, None)).collect();
        let list: Vec<u64> = (0..400).map(|i| 1 + noise(i + 1000, 127)).collect();
        let responses = InferredResponses::new(list.clone());
        let mut comparison = ParentComparison::default();
        records.iter().for_each(|record| comparison.observe(record, &responses));
        let [plain, halved, doubled] =
            [|ns| ns, |ns| ns / 2, |ns| ns * 2].map(|scale| parents(&records, &list, scale));
        let share = |differs: &dyn Fn(usize) -> bool| {
            (0..400).filter(|&i| differs(i)).count() as f64 / 400.0
        };
        let expected = ParentDoubt {
            halved: share(&|i| halved[i] != plain[i]),
            doubled: share(&|i| doubled[i] != plain[i]),
            either: share(&|i| halved[i] != plain[i] || doubled[i] != plain[i]),
        };
        assert!(expected.halved > 0.1 && expected.either > expected.doubled);
        assert_eq!(comparison.doubt(), expected);
    }
}
