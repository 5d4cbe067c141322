//! What became of the time: of requests, of heads, of rotational gaps.

use freewheel_units::SimDuration;
use serde::Serialize;

use crate::device::Work;
use crate::servo::FreeTime;

/// Sums of stage times over all reads and writes. Of a request that several arms serve they are
/// those of the piece that was done last.
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

impl Stages {
    /// What heads did for these requests; of one that several arms serve, for the piece that was done
    /// last.
    pub fn head_time(&self) -> HeadTime {
        let Self { seek_ns, rotate_ns, transfer_ns, .. } = *self;
        HeadTime { seek_ns, rotate_ns, transfer_ns }
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.queue_ns += other.queue_ns;
        self.overhead_ns += other.overhead_ns;
        self.seek_ns += other.seek_ns;
        self.rotate_ns += other.rotate_ns;
        self.transfer_ns += other.transfer_ns;
        self.bus_ns += other.bus_ns;
    }
}

/// Sums of what the heads did: for requests with all their pieces and what is promoted, for writing back
/// what buffers had taken, and for commands that a scheduler outside the drive makes for free work.
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
    pub(super) fn of(work: &[Work]) -> Self {
        let sum = |time: fn(&Work) -> SimDuration| {
            work.iter().map(|work| u128::from(time(work).ns())).sum()
        };
        Self {
            seek_ns: sum(|work| work.head_time.seek),
            rotate_ns: sum(|work| work.head_time.rotate),
            transfer_ns: sum(|work| work.head_time.transfer),
        }
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.seek_ns += other.seek_ns;
        self.rotate_ns += other.rotate_ns;
        self.transfer_ns += other.transfer_ns;
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

/// Free work in rotational gaps.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct FreeResult {
    /// What became of the gaps.
    #[serde(flatten)]
    pub time: FreeTime,
    /// Achieved free bandwidth: bytes read and written for free a second, over all arms.
    pub bytes_per_second: f64,
    /// Potential free bandwidth: the mean media rate over the time that heads would only have
    /// waited (osdi00 section 3), over all arms.
    pub potential_bytes_per_second: f64,
    /// The mean media rate.
    pub media_bytes_per_second: u64,
}

impl FreeResult {
    pub(super) fn new(time: FreeTime, media_bytes_per_second: u64, elapsed_ns: u64) -> Self {
        let elapsed_ns = u128::from(elapsed_ns);
        let bytes = u128::from(time.read_bytes + time.write_bytes);
        Self {
            time,
            bytes_per_second: share(bytes * 1_000_000_000, elapsed_ns),
            potential_bytes_per_second: share(time.potential_ns, elapsed_ns)
                * media_bytes_per_second as f64,
            media_bytes_per_second,
        }
    }

    /// Share of the rotational latency in which free runs passed under the head.
    pub fn transfer_share(&self) -> f64 {
        share(self.time.transfer_ns, self.time.potential_ns)
    }

    /// Share of the rotational latency that went into further movements.
    pub fn extra_seek_share(&self) -> f64 {
        let spent = self.time.extra_seek_ns as f64;
        if self.time.potential_ns == 0 { 0.0 } else { spent / self.time.potential_ns as f64 }
    }

    /// Share of the rotational latency that is left.
    pub fn unused_share(&self) -> f64 {
        share(self.time.unused_ns, self.time.potential_ns)
    }
}

/// Which part of the whole this is; 0 of nothing.
pub(super) fn share(part: u128, whole: u128) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
