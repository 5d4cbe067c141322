//! Requests and bytes over time, in a bounded number of bins of equal width.

use freewheel_units::{Op, SimTime};
use serde::Serialize;

use crate::Record;

/// The most bins; when time runs past the last, the width doubles and neighbours merge.
const BINS_MAX: usize = 200;
const FIRST_WIDTH_NS: u64 = 1_000;

/// Requests and bytes over time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RateOverTime {
    /// The time at which the first bin begins: the first arrival.
    pub origin_ns: u64,
    /// The width of a bin: 1 us times a power of two.
    pub bin_ns: u64,
    /// At most 200 bins; from 101 on when the trace spans more than 200 us.
    pub bins: Vec<RateBin>,
}

/// Arrivals within one bin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct RateBin {
    /// Requests, flushes and trims included.
    pub requests: u64,
    /// Bytes asked for by reads.
    pub bytes_read: u64,
    /// Bytes asked for by writes.
    pub bytes_written: u64,
}

impl RateBin {
    fn add(&mut self, other: Self) {
        self.requests += other.requests;
        self.bytes_read = self.bytes_read.saturating_add(other.bytes_read);
        self.bytes_written = self.bytes_written.saturating_add(other.bytes_written);
    }

    fn of(record: &Record) -> Self {
        Self {
            requests: 1,
            bytes_read: if record.op == Op::Read { record.bytes().get() } else { 0 },
            bytes_written: if record.op == Op::Write { record.bytes().get() } else { 0 },
        }
    }
}

#[derive(Debug)]
pub(super) struct RateCollector {
    width_ns: u64,
    bins: Vec<RateBin>,
}

impl Default for RateCollector {
    fn default() -> Self {
        Self { width_ns: FIRST_WIDTH_NS, bins: Vec::new() }
    }
}

impl RateCollector {
    pub fn observe(&mut self, since_first_ns: u64, record: &Record) {
        while since_first_ns / self.width_ns >= BINS_MAX as u64 {
            self.widen();
        }
        let index = (since_first_ns / self.width_ns) as usize;
        if index >= self.bins.len() {
            self.bins.resize(index + 1, RateBin::default());
        }
        self.bins[index].add(RateBin::of(record));
    }

    fn widen(&mut self) {
        self.width_ns *= 2;
        self.bins = self
            .bins
            .chunks(2)
            .map(|pair| {
                let mut both = pair[0];
                pair[1..].iter().for_each(|bin| both.add(*bin));
                both
            })
            .collect();
    }

    pub fn finish(self, origin: SimTime) -> RateOverTime {
        RateOverTime { origin_ns: origin.ns(), bin_ns: self.width_ns, bins: self.bins }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use freewheel_units::{Blocks, VolumeBlock};

    fn read_at(ns: u64) -> Record {
        let (start, blocks) = (VolumeBlock::ZERO, Blocks::new(1));
        let arrival = SimTime::from_ns(ns);
        Record {
            widened: false,
            arrival,
            op: Op::Read,
            device: 0,
            start,
            blocks,
            completion: None,
            fua: false,
        }
    }

    #[test]
    fn bins_widen_without_loss() {
        let mut rate = RateCollector::default();
        for time in [0, 999, 1_000, 199_999, 200_000, 1_000_000_000, u64::MAX] {
            rate.observe(time, &read_at(time));
        }
        let rate = rate.finish(SimTime::ZERO);
        assert!((101..=BINS_MAX).contains(&rate.bins.len()), "{}", rate.bins.len());
        assert_eq!(rate.bins.iter().map(|bin| bin.requests).sum::<u64>(), 7);
        assert_eq!(rate.bins.iter().map(|bin| bin.bytes_read).sum::<u64>(), 7 * 512);
    }

    #[test]
    fn bins_are_exact_before_any_widening() {
        let mut rate = RateCollector::default();
        for time in [0, 999, 1_000] {
            rate.observe(time, &read_at(time));
        }
        let requests: Vec<_> = rate.bins.iter().map(|bin| bin.requests).collect();
        assert_eq!(requests, [2, 1]);
    }
}
