//! What a run is summed up in.

use freewheel_model::stats::{Distribution, Level, Summary};
use freewheel_units::{Op, SimDuration, SimTime};
use serde::Serialize;

use crate::completion::Completion;
use crate::device::Work;
use crate::zoned::{Refusal, RefusedWrites};

/// Sums while a run goes on.
#[derive(Default)]
pub(crate) struct Tally {
    reads: Distribution,
    writes: Distribution,
    flushes: Distribution,
    read_blocks: u64,
    write_blocks: u64,
    trims: u64,
    refused: RefusedWrites,
    buffer_reads: u64,
    buffer_writes: u64,
    stages: Stages,
    longest_wait: SimDuration,
    outstanding: Level,
    hash: u64,
}

/// Sums of stage times over all reads and writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Stages {
    /// Waiting for the head.
    pub queue_ns: u128,
    /// Command processing.
    pub overhead_ns: u128,
    /// Moving the arm, changing heads, settling.
    pub seek_ns: u128,
    /// Rotational latency.
    pub rotate_ns: u128,
    /// Wanted sectors under the head.
    pub transfer_ns: u128,
    /// Moving data to or from the host beyond what the media transfer hides.
    pub bus_ns: u128,
}

/// Sums of what the heads did: for requests, and for writing back what buffers had taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct HeadTime {
    /// Moving the arm, changing heads, settling.
    pub seek_ns: u128,
    /// Rotational latency.
    pub rotate_ns: u128,
    /// Wanted sectors under the head.
    pub transfer_ns: u128,
}

impl HeadTime {
    fn of(work: &[Work]) -> Self {
        let sum = |time: fn(&Work) -> SimDuration| {
            work.iter().map(|work| u128::from(time(work).ns())).sum()
        };
        Self {
            seek_ns: sum(|work| work.head_time.seek),
            rotate_ns: sum(|work| work.head_time.rotate),
            transfer_ns: sum(|work| work.head_time.transfer),
        }
    }

    /// All of it.
    pub fn total_ns(&self) -> u128 {
        self.seek_ns + self.rotate_ns + self.transfer_ns
    }

    /// Share spent seeking.
    pub fn seek_share(&self) -> f64 {
        share(self.seek_ns, self.total_ns())
    }

    /// Share spent in rotational latency: the potential free bandwidth.
    pub fn rotate_share(&self) -> f64 {
        share(self.rotate_ns, self.total_ns())
    }

    /// Share spent transferring.
    pub fn transfer_share(&self) -> f64 {
        share(self.transfer_ns, self.total_ns())
    }
}

fn share(part: u128, whole: u128) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// A run in numbers, with its distributions for drawing.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunResult {
    /// Reads, writes, flushes, trims and refused writes.
    pub requests: u64,
    /// Trims.
    pub trims: u64,
    /// Writes that a host-managed drive refused. They count in no other sum.
    pub refused_writes: RefusedWrites,
    /// From the start to the last completion.
    pub elapsed_ns: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Sums of stage times over reads and writes.
    pub stages: Stages,
    /// What the heads did.
    pub head_time: HeadTime,
    /// Response times of reads and writes together.
    pub response: Summary,
    /// Response times of reads.
    pub read_response: Summary,
    /// Response times of writes.
    pub write_response: Summary,
    /// Response times of flushes.
    pub flush_response: Summary,
    /// Longest time a read or write waited for the head.
    pub queue_ns_max: u64,
    /// Reads that the drive's buffer served.
    pub buffer_reads: u64,
    /// Writes that were done when the drive's buffer had taken them.
    pub buffer_writes: u64,
    /// Share of the time that the arm worked on requests or wrote back what the buffer had taken;
    /// of several arms the mean.
    pub utilisation: f64,
    /// Share of the time that the arm wrote back what the buffer had taken.
    pub destaging: f64,
    /// Reads and writes a second.
    pub requests_per_second: f64,
    /// Bytes a second.
    pub bytes_per_second: f64,
    /// Requests outstanding, flushes included, on average over time.
    pub outstanding_mean: f64,
    /// Most requests outstanding at once.
    pub outstanding_max: u64,
    /// Hash over every completion: equal runs have equal hashes.
    pub result_hash: String,
    /// Distribution of response times of reads and writes together.
    #[serde(skip)]
    pub response_distribution: Distribution,
    /// Distribution of response times of reads.
    #[serde(skip)]
    pub read_distribution: Distribution,
    /// Distribution of response times of writes.
    #[serde(skip)]
    pub write_distribution: Distribution,
}

impl Tally {
    #[inline]
    pub(crate) fn arrived(&mut self, now: SimTime) {
        self.outstanding.set(now, self.outstanding.value() + 1);
    }

    #[inline]
    pub(crate) fn completed(&mut self, completion: &Completion) {
        self.outstanding.set(completion.end, self.outstanding.value() - 1);
        self.hash = mix(self.hash, completion);
        let response = completion.response();
        match completion.request.op {
            Op::Read => {
                self.reads.record(response);
                self.read_blocks += completion.request.blocks.get();
            }
            Op::Write => {
                self.writes.record(response);
                self.write_blocks += completion.request.blocks.get();
            }
            Op::Flush => return self.flushes.record(response),
            Op::Trim => return self.trims += 1,
        }
        if completion.hit {
            let reads = completion.request.op == Op::Read;
            *(if reads { &mut self.buffer_reads } else { &mut self.buffer_writes }) += 1;
        }
        self.longest_wait = self.longest_wait.max(completion.queue);
        self.stages.queue_ns += u128::from(completion.queue.ns());
        self.stages.overhead_ns += u128::from(completion.overhead.ns());
        self.stages.seek_ns += u128::from(completion.seek.ns());
        self.stages.rotate_ns += u128::from(completion.rotate.ns());
        self.stages.transfer_ns += u128::from(completion.transfer.ns());
        self.stages.bus_ns += u128::from(completion.bus.ns());
    }

    pub(crate) fn refused(&mut self, completion: &Completion, refusal: Refusal) {
        self.outstanding.set(completion.end, self.outstanding.value() - 1);
        self.hash = mix(self.hash, completion);
        self.refused.add(refusal);
    }

    /// Sums it up at the end; `work` is that of each arm.
    pub(crate) fn finish(self, now: SimTime, work: &[Work]) -> RunResult {
        let arms_ns = u128::from(now.ns()) * work.len() as u128;
        let arm_share = |time: fn(&Work) -> SimDuration| {
            let sum: u128 = work.iter().map(|work| u128::from(time(work).ns())).sum();
            share(sum, arms_ns)
        };
        let mut both = self.reads.clone();
        both.add(&self.writes);
        let seconds = (now - SimTime::ZERO).as_secs_f64();
        let per_second = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
        let (read_bytes, write_bytes) = (self.read_blocks * 512, self.write_blocks * 512);
        RunResult {
            requests: both.count() + self.flushes.count() + self.trims + self.refused.count,
            trims: self.trims,
            refused_writes: self.refused,
            elapsed_ns: now.ns(),
            read_bytes,
            write_bytes,
            stages: self.stages,
            head_time: HeadTime::of(work),
            response: both.summary(),
            read_response: self.reads.summary(),
            write_response: self.writes.summary(),
            flush_response: self.flushes.summary(),
            queue_ns_max: self.longest_wait.ns(),
            buffer_reads: self.buffer_reads,
            buffer_writes: self.buffer_writes,
            utilisation: arm_share(Work::busy),
            destaging: arm_share(|work| work.destaging),
            requests_per_second: per_second(both.count()),
            bytes_per_second: per_second(read_bytes + write_bytes),
            outstanding_mean: self.outstanding.mean(now),
            outstanding_max: self.outstanding.max(),
            result_hash: format!("{:016x}", self.hash),
            response_distribution: both,
            read_distribution: self.reads,
            write_distribution: self.writes,
        }
    }
}

/// Order counts, and every bit of address and end.
#[inline]
fn mix(hash: u64, completion: &Completion) -> u64 {
    let word = completion.end.ns() ^ completion.request.start.get().rotate_left(40);
    (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
}

#[cfg(test)]
mod tests {
    use freewheel_model::drive;
    use freewheel_model::onboard::Served;
    use freewheel_units::{Blocks, Lbn};

    use super::*;
    use crate::source::Request;

    fn ms(n: u64) -> SimDuration {
        SimDuration::from_ms(n)
    }

    fn completion(op: Op, arrival_ms: u64, end_ms: u64, served: Served) -> Completion {
        let arrival = SimTime::ZERO + ms(arrival_ms);
        let request = Request { op, start: Lbn::ZERO, blocks: Blocks::new(8), tag: 0 };
        Completion::new(request, arrival, &Served { end: SimTime::ZERO + ms(end_ms), ..served })
    }

    /// A read of 6 ms at 0, a write that waits 3 ms and takes 5 ms, a flush: 20 ms in all.
    fn tally() -> RunResult {
        let mut tally = Tally::default();
        let read = Served { seek: ms(3), rotate: ms(2), transfer: ms(1), ..Served::default() };
        let write = Served { overhead: ms(1), rotate: ms(4), hit: true, ..Served::default() };
        tally.arrived(SimTime::ZERO);
        tally.arrived(SimTime::ZERO + ms(3));
        tally.completed(&completion(Op::Read, 0, 6, read));
        tally.completed(&completion(Op::Write, 3, 11, write));
        tally.arrived(SimTime::ZERO + ms(20));
        tally.completed(&completion(Op::Flush, 20, 20, Served::default()));
        let head_time = drive::HeadTime { seek: ms(3), rotate: ms(6), transfer: ms(1) };
        let work = Work { head_time, overhead: ms(1), destaging: ms(5) };
        tally.finish(SimTime::ZERO + ms(20), &[work])
    }

    #[test]
    fn sums_shares_and_rates_are_those_of_the_requests_one_by_one() {
        let result = tally();
        assert_eq!((result.requests, result.response.count), (3, 2));
        // Busy 6 + 5 of 20 ms; head time 6 + 4, of which 6 rotating.
        assert_eq!((result.utilisation, result.destaging), (0.55, 0.25));
        assert_eq!((result.buffer_reads, result.buffer_writes), (0, 1));
        assert_eq!(result.head_time.rotate_share(), 0.6);
        assert_eq!(result.stages.queue_ns, 3_000_000);
        assert_eq!(result.requests_per_second, 100.0);
        assert_eq!((result.read_bytes, result.write_bytes), (4096, 4096));
        assert_eq!(result.bytes_per_second, 409_600.0);
        assert_eq!(result.queue_ns_max, 3_000_000);
        // Responses of 6 and 8 ms.
        assert_eq!(result.response.mean_ns, 7e6);
    }

    #[test]
    fn outstanding_requests_are_weighed_by_time() {
        // One from 0 to 3, two to 6, one to 11, none to 20 ms: 3 + 6 + 5 of 20.
        let result = tally();
        assert_eq!((result.outstanding_mean, result.outstanding_max), (0.7, 2));
    }
}
