//! Places and times of requests in a run, and the 99th percentile by them.

use freewheel_model::stats::Distribution;
use freewheel_sim::Completion;
use freewheel_units::{Blocks, Op};
use serde::Serialize;

/// Most columns of time. A longer run doubles their width, so memory does not grow with it.
const COLUMNS_MAX: usize = 96;

const ROWS: usize = 16;

/// Width of the first columns, in nanoseconds.
const FIRST_BIN_NS: u64 = 1 << 20;

/// Reads and writes by place and time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlaceTime {
    /// Size of the address space.
    pub space_bytes: u64,
    /// Width of a column of time.
    pub bin_ns: u64,
    /// Requests by row, the start of the address space first, in each column.
    pub counts: Vec<[u64; ROWS]>,
    /// 99th percentile of the responses of requests that arrived in each column; 0 without any.
    pub p99_ns: Vec<u64>,
}

pub(crate) struct PlaceTimeCollector {
    blocks: u64,
    bin_ns: u64,
    columns: Vec<Column>,
}

#[derive(Clone, Default)]
struct Column {
    counts: [u64; ROWS],
    responses: Distribution,
}

impl PlaceTimeCollector {
    /// For requests within this many blocks.
    pub fn new(space: Blocks) -> Self {
        Self { blocks: space.get().max(1), bin_ns: FIRST_BIN_NS, columns: Vec::new() }
    }

    pub fn observe(&mut self, completion: &Completion) {
        if !matches!(completion.request.op, Op::Read | Op::Write) {
            return;
        }
        while completion.arrival.ns() / self.bin_ns >= COLUMNS_MAX as u64 {
            self.halve();
        }
        let at = (completion.arrival.ns() / self.bin_ns) as usize;
        if at >= self.columns.len() {
            self.columns.resize(at + 1, Column::default());
        }
        let place = completion.request.start.get().min(self.blocks - 1);
        let row = (u128::from(place) * ROWS as u128 / u128::from(self.blocks)) as usize;
        self.columns[at].counts[row] += 1;
        self.columns[at].responses.record(completion.response());
    }

    /// Joins pairs of columns.
    fn halve(&mut self) {
        self.bin_ns *= 2;
        let pairs = self.columns.chunks(2).map(|pair| {
            let mut joined = pair[0].clone();
            if let Some(second) = pair.get(1) {
                joined.counts.iter_mut().zip(second.counts).for_each(|(sum, count)| *sum += count);
                joined.responses.add(&second.responses);
            }
            joined
        });
        self.columns = pairs.collect();
    }

    pub fn finish(self) -> PlaceTime {
        PlaceTime {
            space_bytes: Blocks::new(self.blocks).bytes().get(),
            bin_ns: self.bin_ns,
            p99_ns: self.columns.iter().map(|c| c.responses.quantile_ns(0.99)).collect(),
            counts: self.columns.into_iter().map(|column| column.counts).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use freewheel_model::electronics::LimitEnd;
    use freewheel_sim::source::Request;
    use freewheel_units::{SimDuration, SimTime, VolumeBlock};

    use super::*;

    fn read(start: u64, arrival_ms: u64, response_ms: u64) -> Completion {
        let start = VolumeBlock::new(start);
        let request = Request { op: Op::Read, start, blocks: Blocks::new(8), fua: false, tag: 0 };
        let arrival = SimTime::ZERO + SimDuration::from_ms(arrival_ms);
        let none = SimDuration::ZERO;
        Completion {
            request,
            arrival,
            queue: SimDuration::from_ms(response_ms),
            drive_queue: none,
            overhead: none,
            seek: none,
            rotate: none,
            transfer: none,
            bus: none,
            hit: false,
            limit: LimitEnd::Kept,
            refused: None,
            end: arrival + SimDuration::from_ms(response_ms),
            is_warm_up: false,
        }
    }

    #[test]
    fn place_time_joins_columns_without_loss() {
        let mut collector = PlaceTimeCollector::new(Blocks::new(1600));
        let reads: Vec<Completion> =
            (0..1000).map(|at| read(at * 37 % 1600, at * 7, 1 + at % 5)).collect();
        reads.iter().for_each(|completion| collector.observe(completion));
        let result = collector.finish();
        assert!(result.counts.len() <= COLUMNS_MAX && result.counts.len() > COLUMNS_MAX / 2);
        for (column, counts) in result.counts.iter().enumerate() {
            for (row, &count) in counts.iter().enumerate() {
                let is_here = |c: &&Completion| {
                    c.arrival.ns() / result.bin_ns == column as u64
                        && c.request.start.get() / 100 == row as u64
                };
                assert_eq!(count, reads.iter().filter(is_here).count() as u64);
            }
        }
        assert!(result.p99_ns.iter().all(|&p99| p99 >= 4_900_000), "{:?}", result.p99_ns);
    }
}
