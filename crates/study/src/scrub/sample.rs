//! A trace without end, made of pieces of a trace of any length: evenly spread, one after the
//! other and over and over.

use freewheel_sim::config::ConfigError;
use freewheel_trace::{Record, TraceError};
use freewheel_units::{SimDuration, SimTime};

/// Most records that are kept: 4 MB of them.
const RECORDS_MAX: u64 = 1 << 16;

/// Consecutive records in a piece. Assumed: enough that what the first of them lack (the requests
/// before, which are in the queue or the buffer) does not count.
const PIECE: u64 = 256;

/// Consecutive records of the trace.
#[derive(Debug, Clone, Default)]
struct TracePiece {
    /// Since the record before.
    before: SimDuration,
    records: Vec<Record>,
}

/// Pieces of a trace.
#[derive(Debug, Clone)]
pub(super) struct Sample {
    pieces: Vec<TracePiece>,
}

impl Sample {
    /// Reads the pieces of a trace with this many requests that take part: those to `device`, if one was
    /// chosen.
    pub fn read(
        records: impl Iterator<Item = Result<Record, TraceError>>,
        device: Option<u32>,
        requests: u64,
    ) -> Result<Self, ConfigError> {
        let mut sampler = Sampler::new(requests);
        for record in records {
            let record = record?;
            if device.is_none_or(|device| device == record.device) {
                sampler.observe(record);
            }
        }
        Ok(Self { pieces: sampler.pieces })
    }

    /// The pieces in such an order that any few that follow on each other are spread evenly over the
    /// trace. Between two the drive is given `rest` for each record, as long as it took beyond the
    /// trace's own time: a load that it cannot keep up with would pile up for ever.
    pub fn for_ever(&self, rest: SimDuration) -> CyclicSource<'_> {
        let pieces = self.pieces.len();
        // The golden section leaves no stretch out for long.
        let golden = (pieces as f64 * 0.618_034) as usize;
        let step = (golden.max(1)..).find(|&step| gcd(step, pieces) == 1).unwrap_or(1);
        let begins = self.pieces.first().and_then(|piece| piece.records.first());
        let clock = begins.map_or(SimTime::ZERO, |record| record.arrival);
        CyclicSource { pieces: &self.pieces, step, rest, piece: 0, at: 0, clock, last: clock }
    }
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Sorts records into pieces in their order.
struct Sampler {
    requests: u64,
    count: u64,
    seen: u64,
    last: Option<SimTime>,
    pieces: Vec<TracePiece>,
}

impl Sampler {
    fn new(requests: u64) -> Self {
        let count = requests.min(RECORDS_MAX).div_ceil(PIECE).max(1);
        Self { requests, count, seen: 0, last: None, pieces: Vec::new() }
    }

    /// First record of a piece.
    fn begin(&self, piece: u64) -> u64 {
        (u128::from(piece) * u128::from(self.requests) / u128::from(self.count)) as u64
    }

    fn observe(&mut self, record: Record) {
        let next = self.pieces.len() as u64;
        if next < self.count && self.seen == self.begin(next) {
            let before = self.last.map(|last| record.arrival.saturating_since(last));
            let before = before.unwrap_or(SimDuration::ZERO);
            self.pieces.push(TracePiece { before, records: Vec::new() });
        }
        self.seen += 1;
        self.last = Some(record.arrival.max(self.last.unwrap_or(record.arrival)));
        if let Some(piece) = self.pieces.last_mut().filter(|p| p.records.len() < PIECE as usize) {
            piece.records.push(record);
        }
    }
}

/// The records of a sample without end; none of an empty one.
#[derive(Debug)]
pub(super) struct CyclicSource<'a> {
    pieces: &'a [TracePiece],
    step: usize,
    rest: SimDuration,
    piece: usize,
    at: usize,
    /// Time at which this piece begins.
    clock: SimTime,
    /// Latest arrival so far.
    last: SimTime,
}

impl Iterator for CyclicSource<'_> {
    type Item = Result<Record, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        let piece = self.pieces.get(self.piece)?;
        if self.at == piece.records.len() {
            let rest = self.rest * piece.records.len() as u64;
            self.piece = (self.piece + self.step) % self.pieces.len();
            self.at = 0;
            self.clock = self.last + self.pieces[self.piece].before + rest;
        }
        let records = &self.pieces[self.piece].records;
        let (origin, record) = (records.first()?.arrival, records[self.at]);
        self.at += 1;
        let shifted = |time: SimTime| self.clock + time.saturating_since(origin);
        let arrival = shifted(record.arrival);
        self.last = self.last.max(arrival);
        let completion = record.completion.map(shifted);
        Some(Ok(Record { arrival, completion, ..record }))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use freewheel_units::{Blocks, Op, VolumeBlock};

    use super::*;

    fn sample(requests: u64) -> Sample {
        let mut sampler = Sampler::new(requests);
        for number in 0..requests {
            sampler.observe(Record {
                arrival: SimTime::from_ns(1000 + number * 10),
                op: Op::Read,
                device: 0,
                start: VolumeBlock::new(number),
                blocks: Blocks::new(1),
                completion: Some(SimTime::from_ns(1000 + number * 10 + 7)),
                fua: false,
                widened: false,
            });
        }
        Sample { pieces: sampler.pieces }
    }

    fn first(sample: &Sample, count: usize, rest: u64) -> Vec<Record> {
        let records = sample.for_ever(SimDuration::from_ns(rest)).take(count);
        records.map(|record| record.unwrap()).collect()
    }

    #[test]
    fn sample_of_one_piece_is_unchanged() {
        let records = first(&sample(3), 7, 5);
        let starts: Vec<u64> = records.iter().map(|record| record.start.get()).collect();
        assert_eq!(starts, [0, 1, 2, 0, 1, 2, 0]);
        let times: Vec<u64> = records.iter().map(|record| record.arrival.ns()).collect();
        // Three records rest for 15.
        assert_eq!(times, [1000, 1010, 1020, 1035, 1045, 1055, 1070]);
        assert!(records.iter().all(|r| r.completion == Some(r.arrival + SimDuration::from_ns(7))));
    }

    #[test]
    fn sample_of_empty_trace_is_empty() {
        assert_eq!(first(&sample(0), 7, 5), []);
    }

    #[test]
    fn sample_of_short_trace_is_whole() {
        for requests in [1, 255, 256, 257, 1000, 5000] {
            let records = first(&sample(requests), requests as usize, 0);
            let starts: BTreeSet<u64> = records.iter().map(|record| record.start.get()).collect();
            assert_eq!(starts.len() as u64, requests);
            assert!(records.windows(2).all(|pair| pair[0].arrival <= pair[1].arrival));
        }
    }

    #[test]
    fn sample_of_long_trace_has_every_part() {
        let requests = 1_000_000;
        let sample = sample(requests);
        let kept: usize = sample.pieces.iter().map(|piece| piece.records.len()).sum();
        assert_eq!(kept as u64, RECORDS_MAX);
        // A sixteenth of the pieces touches every tenth of the trace.
        let records = first(&sample, RECORDS_MAX as usize / 16, 0);
        let tenths: BTreeSet<u64> =
            records.iter().map(|record| record.start.get() * 10 / requests).collect();
        assert_eq!(tenths.len(), 10);
    }
}
