//! Cache flushes.

use freewheel_units::Op;
use serde::Serialize;

use super::quantiles::{DurationSummary, Quantiles};
use super::share;

/// Frequency of flushes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct FlushBehaviour {
    /// Number of flushes.
    pub flushes: u64,
    /// Mean number of writes from one flush to the next, those after the last not counted.
    pub writes_per_flush: f64,
    /// Time from one flush to the next; `None` with fewer than two.
    pub interval: Option<DurationSummary>,
}

#[derive(Debug, Default)]
pub(super) struct FlushCollector {
    flushes: u64,
    writes: u64,
    writes_flushed: u64,
    last_ns: Option<u64>,
    intervals: Quantiles,
}

impl FlushCollector {
    pub fn observe(&mut self, since_first_ns: u64, op: Op) {
        match op {
            Op::Write => self.writes += 1,
            Op::Flush => self.flush(since_first_ns),
            Op::Read | Op::Trim => {}
        }
    }

    fn flush(&mut self, since_first_ns: u64) {
        self.flushes += 1;
        self.writes_flushed = self.writes;
        if let Some(last_ns) = self.last_ns.replace(since_first_ns) {
            self.intervals.record(since_first_ns - last_ns);
        }
    }

    pub fn finish(self) -> FlushBehaviour {
        FlushBehaviour {
            flushes: self.flushes,
            writes_per_flush: share(self.writes_flushed, self.flushes),
            interval: DurationSummary::of(&self.intervals),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_after_last_flush_not_counted() {
        let mut collector = FlushCollector::default();
        let ops = [Op::Write, Op::Write, Op::Flush, Op::Flush, Op::Write];
        (0..).zip(ops).for_each(|(time, op)| collector.observe(time * 10, op));
        let flush = collector.finish();
        assert_eq!((flush.flushes, flush.writes_per_flush), (2, 1.0));
        assert_eq!(flush.interval.unwrap().mean_ns, 10.0);
    }
}
