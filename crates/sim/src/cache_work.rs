//! Work of a storage system's cache during a run.

use freewheel_model::cache::{PrefetchCounts, PrefetchKind, PrefetchTally};
use freewheel_units::BLOCK_BYTES;
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
    /// Bytes of the write buffer that rotational gaps wrote, beside the destages.
    pub in_gaps_bytes: u64,
    /// Bytes that reads asked for and the disk read.
    pub demand_bytes: u64,
    /// Bytes prefetched with and behind fetches.
    pub prefetched_bytes: u64,
    /// Bytes prefetched in idle time and in rotational latency.
    pub opportunistic_bytes: u64,
    /// Outcome of the blocks that prefetching brought.
    pub prefetch: PrefetchWork,
    /// Most bytes in memory that were not on the disk.
    pub at_risk_max_bytes: u64,
    /// Sum over time of those bytes: bytes times nanoseconds.
    pub at_risk_byte_ns: u128,
    /// Head time of fetches and the read-ahead behind them, command processing included.
    pub read_service_ns: u64,
    /// Service of destages and of writes that were not buffered.
    pub write_service_ns: u64,
    /// Service of reading on in idle time and before seeks that are just in time.
    pub opportunistic_ns: u64,
    /// Parts of `read_service_ns`.
    pub read_head: ServiceParts,
    /// Head time of fetches alone, for which reads wait; the rest is read-ahead behind them.
    pub fetch_head: ServiceParts,
    /// Parts of `write_service_ns`.
    pub write_head: ServiceParts,
}

/// Parts of head time; the rest of a service is command processing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct ServiceParts {
    /// Moving the arm, changing heads, settling.
    pub seek_ns: u64,
    /// Rotational latency.
    pub rotate_ns: u64,
    /// Blocks under the head.
    pub transfer_ns: u64,
}

impl ServiceParts {
    fn and(self, other: Self) -> Self {
        Self {
            seek_ns: self.seek_ns + other.seek_ns,
            rotate_ns: self.rotate_ns + other.rotate_ns,
            transfer_ns: self.transfer_ns + other.transfer_ns,
        }
    }

    fn since(self, before: &Self) -> Self {
        Self {
            seek_ns: self.seek_ns - before.seek_ns,
            rotate_ns: self.rotate_ns - before.rotate_ns,
            transfer_ns: self.transfer_ns - before.transfer_ns,
        }
    }
}

impl CacheWork {
    /// Sums of both; the larger of two maxima.
    pub fn and(self, other: Self) -> Self {
        Self {
            reads: self.reads + other.reads,
            read_misses: self.read_misses + other.read_misses,
            reads_of_blocks_in_flight: self.reads_of_blocks_in_flight
                + other.reads_of_blocks_in_flight,
            writes: self.writes + other.writes,
            write_misses: self.write_misses + other.write_misses,
            stalled_writes: self.stalled_writes + other.stalled_writes,
            destages: self.destages + other.destages,
            in_gaps_bytes: self.in_gaps_bytes + other.in_gaps_bytes,
            demand_bytes: self.demand_bytes + other.demand_bytes,
            prefetched_bytes: self.prefetched_bytes + other.prefetched_bytes,
            opportunistic_bytes: self.opportunistic_bytes + other.opportunistic_bytes,
            prefetch: self.prefetch.and(other.prefetch),
            at_risk_max_bytes: self.at_risk_max_bytes.max(other.at_risk_max_bytes),
            at_risk_byte_ns: self.at_risk_byte_ns + other.at_risk_byte_ns,
            read_service_ns: self.read_service_ns + other.read_service_ns,
            write_service_ns: self.write_service_ns + other.write_service_ns,
            opportunistic_ns: self.opportunistic_ns + other.opportunistic_ns,
            read_head: self.read_head.and(other.read_head),
            fetch_head: self.fetch_head.and(other.fetch_head),
            write_head: self.write_head.and(other.write_head),
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
            in_gaps_bytes: self.in_gaps_bytes - before.in_gaps_bytes,
            demand_bytes: self.demand_bytes - before.demand_bytes,
            prefetched_bytes: self.prefetched_bytes - before.prefetched_bytes,
            opportunistic_bytes: self.opportunistic_bytes - before.opportunistic_bytes,
            prefetch: self.prefetch.since(&before.prefetch),
            at_risk_max_bytes: self.at_risk_max_bytes,
            at_risk_byte_ns: self.at_risk_byte_ns - before.at_risk_byte_ns,
            read_service_ns: self.read_service_ns - before.read_service_ns,
            write_service_ns: self.write_service_ns - before.write_service_ns,
            opportunistic_ns: self.opportunistic_ns - before.opportunistic_ns,
            read_head: self.read_head.since(&before.read_head),
            fetch_head: self.fetch_head.since(&before.fetch_head),
            write_head: self.write_head.since(&before.write_head),
        }
    }
}

/// Benefit of each kind of prefetching.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct PrefetchWork {
    /// With and after the fetches of reads.
    pub with_reads: PrefetchWorth,
    /// Reading on by an idle disk.
    pub idle: PrefetchWorth,
    /// Blocks that pass the head before those of a fetch.
    pub free_blocks: PrefetchWorth,
    /// Blocks that the head reads because it leaves its track late.
    pub just_in_time_seek: PrefetchWorth,
}

/// Benefit of one kind of prefetching. Its accuracy is `used_bytes / brought_bytes`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct PrefetchWorth {
    /// Bytes that memory did not have before. Those neither used nor wasted are still there.
    pub brought_bytes: u64,
    /// Bytes that a read asked for while they were in memory or on their way.
    pub used_bytes: u64,
    /// Bytes that were evicted or overwritten before a read asked for them.
    pub wasted_bytes: u64,
    /// Reads that waited for blocks on their way.
    pub late_reads: u64,
    /// Head time beyond that of fetches without prefetching, command processing included.
    pub disk_ns: u64,
}

impl PrefetchWork {
    /// The counts of a cache. `with_reads_ns` and `idle_ns` are head time; the other kinds take none.
    pub(crate) fn new(tally: &PrefetchTally, with_reads_ns: u64, idle_ns: u64) -> Self {
        let worth = |kind, disk_ns| PrefetchWorth::new(&tally[kind], disk_ns);
        Self {
            with_reads: worth(PrefetchKind::WithReads, with_reads_ns),
            idle: worth(PrefetchKind::Idle, idle_ns),
            free_blocks: worth(PrefetchKind::FreeBlocks, 0),
            just_in_time_seek: worth(PrefetchKind::JustInTimeSeek, 0),
        }
    }

    fn and(self, other: Self) -> Self {
        Self {
            with_reads: self.with_reads.and(other.with_reads),
            idle: self.idle.and(other.idle),
            free_blocks: self.free_blocks.and(other.free_blocks),
            just_in_time_seek: self.just_in_time_seek.and(other.just_in_time_seek),
        }
    }

    fn since(self, before: &Self) -> Self {
        Self {
            with_reads: self.with_reads.since(&before.with_reads),
            idle: self.idle.since(&before.idle),
            free_blocks: self.free_blocks.since(&before.free_blocks),
            just_in_time_seek: self.just_in_time_seek.since(&before.just_in_time_seek),
        }
    }
}

impl PrefetchWorth {
    fn new(counts: &PrefetchCounts, disk_ns: u64) -> Self {
        Self {
            brought_bytes: counts.brought * BLOCK_BYTES,
            used_bytes: counts.used * BLOCK_BYTES,
            wasted_bytes: counts.wasted * BLOCK_BYTES,
            late_reads: counts.late_reads,
            disk_ns,
        }
    }

    fn and(self, other: Self) -> Self {
        Self {
            brought_bytes: self.brought_bytes + other.brought_bytes,
            used_bytes: self.used_bytes + other.used_bytes,
            wasted_bytes: self.wasted_bytes + other.wasted_bytes,
            late_reads: self.late_reads + other.late_reads,
            disk_ns: self.disk_ns + other.disk_ns,
        }
    }

    fn since(self, before: &Self) -> Self {
        Self {
            brought_bytes: self.brought_bytes - before.brought_bytes,
            used_bytes: self.used_bytes - before.used_bytes,
            wasted_bytes: self.wasted_bytes - before.wasted_bytes,
            late_reads: self.late_reads - before.late_reads,
            disk_ns: self.disk_ns - before.disk_ns,
        }
    }
}
