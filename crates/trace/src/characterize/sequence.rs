//! Order of requests in space.

use std::collections::BTreeMap;

use freewheel_units::{BLOCK_BYTES, Op};
use serde::Serialize;

use super::quantiles::Quantiles;
use super::share;
use crate::Record;

/// Recent requests of a device that another may continue.
const STREAMS: usize = 32;

/// Requests that begin where another of their device ended. Only reads and writes count.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Sequentiality {
    /// Requests that begin where the request before ended.
    pub sequential_share: f64,
    /// Reads that begin where the read before ended, among reads.
    pub read_sequential_share: f64,
    /// Writes that begin where the write before ended, among writes.
    pub write_sequential_share: f64,
    /// Requests that begin where any of the 32 requests before ended.
    pub stream_share: f64,
    /// Mean length of a run: a request and those that continue it, without another between.
    pub run_mean_requests: f64,
    /// Mean length of a run in bytes.
    pub run_mean_bytes: f64,
}

/// Distances from the end of a request to the start of the next one on its device, in blocks of
/// 512 bytes; only reads and writes count. The quantiles are of the distance without its sign.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct JumpSummary {
    /// Jumps to a higher address, among all.
    pub forward_share: f64,
    /// Jumps to a lower address, among all. The rest continue where the request before ended.
    pub backward_share: f64,
    pub mean_blocks: f64,
    /// 10th percentile.
    pub p10_blocks: u64,
    /// 25th percentile.
    pub p25_blocks: u64,
    pub p50_blocks: u64,
    /// 75th percentile.
    pub p75_blocks: u64,
    /// 90th percentile.
    pub p90_blocks: u64,
    /// 99th percentile.
    pub p99_blocks: u64,
    pub max_blocks: u64,
}

/// The ends of recent requests of one device.
#[derive(Debug, Default)]
struct DeviceEnds {
    last: Option<u64>,
    last_read: Option<u64>,
    last_write: Option<u64>,
    recent: [u64; STREAMS],
    /// Requests so far; `recent` is filled round-robin.
    requests: usize,
}

impl DeviceEnds {
    fn is_in_stream(&self, start: u64) -> bool {
        self.recent[..self.requests.min(STREAMS)].contains(&start)
    }

    fn last_of(&mut self, op: Op) -> &mut Option<u64> {
        if op == Op::Read { &mut self.last_read } else { &mut self.last_write }
    }

    fn push(&mut self, op: Op, end: u64) {
        self.last = Some(end);
        *self.last_of(op) = Some(end);
        self.recent[self.requests % STREAMS] = end;
        self.requests += 1;
    }
}

#[derive(Debug, Default)]
pub(super) struct SequenceCollector {
    devices: BTreeMap<u32, DeviceEnds>,
    reads: u64,
    writes: u64,
    sequential: u64,
    sequential_reads: u64,
    sequential_writes: u64,
    in_stream: u64,
    blocks: u128,
    forward: u64,
    backward: u64,
    jumps: Quantiles,
}

impl SequenceCollector {
    pub fn observe(&mut self, record: &Record) {
        if !record.op.moves_data() {
            return;
        }
        let start = record.start.get();
        let ends = self.devices.entry(record.device).or_default();
        let goes_on = *ends.last_of(record.op) == Some(start);
        let (last, in_stream) = (ends.last, ends.is_in_stream(start));
        ends.push(record.op, record.end().get());
        self.count(record.op, goes_on);
        self.sequential += u64::from(last == Some(start));
        self.in_stream += u64::from(in_stream);
        self.blocks += u128::from(record.blocks.get());
        if let Some(last) = last {
            self.jump(last, start);
        }
    }

    fn count(&mut self, op: Op, goes_on: bool) {
        let (requests, sequential) = match op {
            Op::Read => (&mut self.reads, &mut self.sequential_reads),
            _ => (&mut self.writes, &mut self.sequential_writes),
        };
        *requests += 1;
        *sequential += u64::from(goes_on);
    }

    fn jump(&mut self, from: u64, to: u64) {
        self.forward += u64::from(to > from);
        self.backward += u64::from(to < from);
        self.jumps.record(to.abs_diff(from));
    }

    pub fn finish(self) -> (Sequentiality, JumpSummary) {
        (self.sequentiality(), self.jump_summary())
    }

    fn sequentiality(&self) -> Sequentiality {
        let requests = self.reads + self.writes;
        let runs = requests - self.sequential;
        let blocks_a_run = if runs == 0 { 0.0 } else { self.blocks as f64 / runs as f64 };
        Sequentiality {
            sequential_share: share(self.sequential, requests),
            read_sequential_share: share(self.sequential_reads, self.reads),
            write_sequential_share: share(self.sequential_writes, self.writes),
            stream_share: share(self.in_stream, requests),
            run_mean_requests: share(requests, runs),
            run_mean_bytes: blocks_a_run * BLOCK_BYTES as f64,
        }
    }

    fn jump_summary(&self) -> JumpSummary {
        let jumps = &self.jumps;
        JumpSummary {
            forward_share: share(self.forward, jumps.count()),
            backward_share: share(self.backward, jumps.count()),
            mean_blocks: jumps.mean(),
            p10_blocks: jumps.at(0.10),
            p25_blocks: jumps.at(0.25),
            p50_blocks: jumps.at(0.50),
            p75_blocks: jumps.at(0.75),
            p90_blocks: jumps.at(0.90),
            p99_blocks: jumps.at(0.99),
            max_blocks: jumps.max(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use freewheel_units::{Blocks, SimTime, VolumeBlock};

    fn observe_all(requests: &[(Op, u32, u64, u64)]) -> (Sequentiality, JumpSummary) {
        let mut collector = SequenceCollector::default();
        for &(op, device, start, blocks) in requests {
            let (start, blocks) = (VolumeBlock::new(start), Blocks::new(blocks));
            let arrival = SimTime::ZERO;
            collector.observe(&Record {
                widened: false,
                arrival,
                op,
                device,
                start,
                blocks,
                completion: None,
                fua: false,
            });
        }
        collector.finish()
    }

    #[test]
    fn sequential_run_is_request_and_continuations() {
        let (sequence, _) =
            observe_all(&[(Op::Read, 0, 0, 8), (Op::Read, 0, 8, 8), (Op::Read, 0, 100, 8)]);
        assert_eq!(sequence.sequential_share, 1.0 / 3.0);
        assert_eq!(sequence.run_mean_requests, 1.5);
        assert_eq!(sequence.run_mean_bytes, 12.0 * 512.0);
    }

    #[test]
    fn interleaved_streams_are_not_sequential() {
        let requests: Vec<_> = (0..10)
            .flat_map(|n| [(Op::Read, 0, n * 8, 8), (Op::Read, 0, 9000 + n * 8, 8)])
            .collect();
        let (sequence, _) = observe_all(&requests);
        assert_eq!((sequence.sequential_share, sequence.stream_share), (0.0, 0.9));
    }

    #[test]
    fn devices_do_not_continue_one_another() {
        let (sequence, jump) = observe_all(&[(Op::Read, 0, 0, 8), (Op::Read, 1, 8, 8)]);
        assert_eq!((sequence.sequential_share, sequence.stream_share), (0.0, 0.0));
        assert_eq!(jump.max_blocks, 0);
    }

    #[test]
    fn reads_among_writes_stay_sequential() {
        let (sequence, _) =
            observe_all(&[(Op::Read, 0, 0, 8), (Op::Write, 0, 500, 8), (Op::Read, 0, 8, 8)]);
        assert_eq!((sequence.sequential_share, sequence.read_sequential_share), (0.0, 0.5));
    }

    #[test]
    fn jump_measured_from_end_with_direction() {
        let (_, jump) =
            observe_all(&[(Op::Read, 0, 100, 8), (Op::Write, 0, 8, 8), (Op::Read, 0, 1016, 8)]);
        assert_eq!((jump.forward_share, jump.backward_share), (0.5, 0.5));
        assert_eq!((jump.p50_blocks, jump.max_blocks), (100, 1000));
    }
}
