//! Request sizes, and how much of the load is reading.

use freewheel_units::{BLOCK_BYTES, Op};
use serde::Serialize;

use super::quantiles::Quantiles;
use super::share;
use crate::{Record, TraceInfo};

/// Shares of reads and writes in the load. Flushes and trims do not count.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Mix {
    /// Reads among reads and writes.
    pub read_request_share: f64,
    /// Bytes read among bytes read and written.
    pub read_bytes_share: f64,
}

impl Mix {
    pub(super) fn of(info: &TraceInfo) -> Self {
        Self {
            read_request_share: share(info.reads, info.reads + info.writes),
            read_bytes_share: share(info.bytes_read, info.bytes),
        }
    }
}

/// Request sizes by operation.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct Sizes {
    /// Sizes of reads and writes.
    pub all: SizeSummary,
    pub read: SizeSummary,
    pub write: SizeSummary,
}

/// A distribution of request sizes.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct SizeSummary {
    pub requests: u64,
    pub mean_bytes: f64,
    pub median_bytes: u64,
    pub max_bytes: u64,
    /// By power of two, ascending, without the empty ones before and after.
    pub buckets: Vec<SizeBucket>,
}

/// Requests of about one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SizeBucket {
    /// The largest size in it, a power of two; the smallest is half of that and one byte.
    pub up_to_bytes: u64,
    /// Number of requests.
    pub requests: u64,
}

/// Sizes of one operation, in blocks.
#[derive(Debug, Default)]
struct OpSizes {
    blocks: Quantiles,
    /// By the exponent of the power of two, in blocks.
    buckets: Vec<u64>,
}

impl OpSizes {
    fn observe(&mut self, blocks: u64) {
        self.blocks.record(blocks);
        let exponent = blocks.next_power_of_two().trailing_zeros() as usize;
        if exponent >= self.buckets.len() {
            self.buckets.resize(exponent + 1, 0);
        }
        self.buckets[exponent] += 1;
    }

    fn finish(&self) -> SizeSummary {
        SizeSummary {
            requests: self.blocks.count(),
            mean_bytes: self.blocks.mean() * BLOCK_BYTES as f64,
            median_bytes: self.blocks.at(0.5) * BLOCK_BYTES,
            max_bytes: self.blocks.max() * BLOCK_BYTES,
            buckets: self
                .buckets
                .iter()
                .enumerate()
                .map(|(exponent, &requests)| SizeBucket {
                    up_to_bytes: BLOCK_BYTES << exponent,
                    requests,
                })
                .skip_while(is_empty)
                .collect(),
        }
    }
}

fn is_empty(bucket: &SizeBucket) -> bool {
    bucket.requests == 0
}

#[derive(Debug, Default)]
pub(super) struct SizeCollector {
    all: OpSizes,
    read: OpSizes,
    write: OpSizes,
}

impl SizeCollector {
    pub fn observe(&mut self, record: &Record) {
        if matches!(record.op, Op::Read | Op::Write) {
            self.all.observe(record.blocks.get());
        }
        match record.op {
            Op::Read => self.read.observe(record.blocks.get()),
            Op::Write => self.write.observe(record.blocks.get()),
            Op::Flush | Op::Trim => {}
        }
    }

    pub fn finish(self) -> Sizes {
        let (all, read, write) = (self.all.finish(), self.read.finish(), self.write.finish());
        Sizes { all, read, write }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bucket_ends_at_power_of_two() {
        let mut sizes = OpSizes::default();
        for blocks in [5, 8, 9] {
            sizes.observe(blocks);
        }
        let buckets = sizes.finish().buckets;
        let want = [(8 * 512, 2), (16 * 512, 1)]
            .map(|(up_to_bytes, requests)| SizeBucket { up_to_bytes, requests });
        assert_eq!(buckets, want);
    }
}
