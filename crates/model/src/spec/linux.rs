//! Parameters of Linux's I/O schedulers, with the defaults of Linux 6.12.

use freewheel_units::SimDuration;

/// Parameters of mq-deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MqDeadlineSpec {
    /// Age from which a read goes before the sorted order.
    pub read_expire: SimDuration,
    /// Age from which a write goes before the sorted order.
    pub write_expire: SimDuration,
    /// Most requests of one direction in ascending order before the direction is chosen anew.
    pub fifo_batch: u32,
    /// Batches of reads that may go before waiting writes.
    pub writes_starved: u32,
    /// True if a request joins the one that begins where it ends.
    pub front_merges: bool,
    /// Requests in scheduler and drive at once; further ones wait before the scheduler. None for twice
    /// the drive's tags.
    pub nr_requests: Option<u32>,
}

impl MqDeadlineSpec {
    /// The kernel's defaults.
    pub const USUAL: Self = Self {
        read_expire: SimDuration::from_ms(500),
        write_expire: SimDuration::from_secs(5),
        fifo_batch: 16,
        writes_starved: 2,
        front_merges: true,
        nr_requests: None,
    };
}

/// Parameters of Kyber.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KyberSpec {
    /// Wanted latency of reads.
    pub read_latency: SimDuration,
    /// Wanted latency of writes.
    pub write_latency: SimDuration,
    /// As in [`MqDeadlineSpec::nr_requests`].
    pub nr_requests: Option<u32>,
}

impl KyberSpec {
    /// The kernel's defaults.
    pub const USUAL: Self = Self {
        read_latency: SimDuration::from_ms(2),
        write_latency: SimDuration::from_ms(10),
        nr_requests: None,
    };
}

/// Parameters of BFQ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BfqSpec {
    /// Time that the drive stays idle for the next request of a process that reads sequentially.
    pub slice_idle: SimDuration,
    /// Longest time of a queue at the drive while others wait.
    pub timeout_sync: SimDuration,
    /// Most blocks of a queue in a row while others wait.
    pub max_budget: u32,
    /// As in [`MqDeadlineSpec::nr_requests`].
    pub nr_requests: Option<u32>,
}

impl BfqSpec {
    /// The kernel's defaults. It starts with this budget, and then follows the drive's measured rate.
    pub const USUAL: Self = Self {
        slice_idle: SimDuration::from_ms(8),
        timeout_sync: SimDuration::from_ms(125),
        max_budget: 16_384,
        nr_requests: None,
    };
}
