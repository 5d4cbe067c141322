//! What a storage system's cache did during a run.

use serde::Serialize;

/// Sums over a run of one cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct CacheWork {
    /// Reads.
    pub reads: u64,
    /// Reads that needed a fetch; a read of blocks in flight needs none.
    pub read_misses: u64,
    /// Reads that waited for blocks in flight alone.
    pub reads_of_blocks_in_flight: u64,
    /// Writes.
    pub writes: u64,
    /// Writes that made a clean buffer block dirty; all, without a write buffer.
    pub write_misses: u64,
    /// Writes that waited for room in the write buffer.
    pub stalled_writes: u64,
    /// Destages.
    pub destages: u64,
    /// Bytes that reads asked for and the disk read.
    pub demand_bytes: u64,
    /// Bytes prefetched with and behind fetches.
    pub prefetched_bytes: u64,
    /// Bytes prefetched in idle time and in rotational latency.
    pub opportunistic_bytes: u64,
    /// Most bytes in memory that were not on the disk.
    pub at_risk_max_bytes: u64,
    /// Sum over time of those bytes: bytes times nanoseconds.
    pub at_risk_byte_ns: u128,
    /// Head time of fetches and the read-ahead behind them, command processing included.
    pub read_service_ns: u64,
    /// The same of destages and of writes that were not buffered.
    pub write_service_ns: u64,
    /// The same of reading on in idle time.
    pub opportunistic_ns: u64,
}

impl CacheWork {
    /// Sums of both; the larger of two maxima.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            reads: self.reads + other.reads,
            read_misses: self.read_misses + other.read_misses,
            reads_of_blocks_in_flight: self.reads_of_blocks_in_flight
                + other.reads_of_blocks_in_flight,
            writes: self.writes + other.writes,
            write_misses: self.write_misses + other.write_misses,
            stalled_writes: self.stalled_writes + other.stalled_writes,
            destages: self.destages + other.destages,
            demand_bytes: self.demand_bytes + other.demand_bytes,
            prefetched_bytes: self.prefetched_bytes + other.prefetched_bytes,
            opportunistic_bytes: self.opportunistic_bytes + other.opportunistic_bytes,
            at_risk_max_bytes: self.at_risk_max_bytes.max(other.at_risk_max_bytes),
            at_risk_byte_ns: self.at_risk_byte_ns + other.at_risk_byte_ns,
            read_service_ns: self.read_service_ns + other.read_service_ns,
            write_service_ns: self.write_service_ns + other.write_service_ns,
            opportunistic_ns: self.opportunistic_ns + other.opportunistic_ns,
        }
    }

    /// The part after `before`, an earlier state of the same run; the maximum is that of the whole run.
    pub(crate) fn since(self, before: &Self) -> Self {
        Self {
            reads: self.reads - before.reads,
            read_misses: self.read_misses - before.read_misses,
            reads_of_blocks_in_flight: self.reads_of_blocks_in_flight
                - before.reads_of_blocks_in_flight,
            writes: self.writes - before.writes,
            // A stalled write is a miss until the buffer takes it, perhaps over blocks that are dirty.
            write_misses: self.write_misses.saturating_sub(before.write_misses),
            stalled_writes: self.stalled_writes - before.stalled_writes,
            destages: self.destages - before.destages,
            demand_bytes: self.demand_bytes - before.demand_bytes,
            prefetched_bytes: self.prefetched_bytes - before.prefetched_bytes,
            opportunistic_bytes: self.opportunistic_bytes - before.opportunistic_bytes,
            at_risk_max_bytes: self.at_risk_max_bytes,
            at_risk_byte_ns: self.at_risk_byte_ns - before.at_risk_byte_ns,
            read_service_ns: self.read_service_ns - before.read_service_ns,
            write_service_ns: self.write_service_ns - before.write_service_ns,
            opportunistic_ns: self.opportunistic_ns - before.opportunistic_ns,
        }
    }
}
