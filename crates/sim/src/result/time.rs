//! Use of time: by requests, heads, and rotational gaps.

use freewheel_units::SimDuration;
use serde::Serialize;

use crate::device::Work;
use crate::free_time::FreeTime;

/// Sums of stage times over all reads and writes. A request that several arms serve counts with the
/// stages of its last piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Stages {
    /// Waiting for the head, outside and inside the drive.
    pub queue_ns: u128,
    /// The part of the queue time that passed inside the drive.
    pub drive_queue_ns: u128,
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
    /// The part of the queue time that passed before the drive had the command: `btt` of Linux calls the
    /// time from there on D2C, and the whole response Q2C.
    pub fn host_queue_ns(&self) -> u128 {
        self.queue_ns - self.drive_queue_ns
    }

    /// Head time of these requests, of their last pieces only.
    pub fn head_time(&self) -> HeadTime {
        let Self { seek_ns, rotate_ns, transfer_ns, .. } = *self;
        HeadTime { seek_ns, rotate_ns, transfer_ns }
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.queue_ns += other.queue_ns;
        self.drive_queue_ns += other.drive_queue_ns;
        self.overhead_ns += other.overhead_ns;
        self.seek_ns += other.seek_ns;
        self.rotate_ns += other.rotate_ns;
        self.transfer_ns += other.transfer_ns;
        self.bus_ns += other.bus_ns;
    }
}

/// Sums over heads: pieces of requests, promoted requests, destages, and a host scheduler's commands
/// for free work.
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

    /// Sum of all parts.
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

/// A part of a drive that serves one command at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Resource {
    /// The arm: seeks, rotational latency, transfers.
    Head,
    /// The bus to the host.
    Bus,
    /// Command processing.
    Electronics,
}

impl Resource {
    /// Name within a sentence.
    pub fn title(self) -> &'static str {
        match self {
            Self::Head => "the head",
            Self::Bus => "the bus",
            Self::Electronics => "command processing",
        }
    }
}

/// Shares of time in which the parts of a drive were busy. They may overlap.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct BusyShares {
    /// Work on requests, destages, and reading ahead of blocks that were then requested.
    pub head: f64,
    /// Transfers over the bus.
    pub bus: f64,
    /// Command processing, without completion overheads, which may overlap.
    pub electronics: f64,
    /// The part that was busy longest; it limits the drive when load grows.
    pub busiest: Resource,
}

impl BusyShares {
    /// Share of a part.
    pub fn of(&self, resource: Resource) -> f64 {
        match resource {
            Resource::Head => self.head,
            Resource::Bus => self.bus,
            Resource::Electronics => self.electronics,
        }
    }
}

/// Sums of time in which drives and their parts were busy.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct BusyTime {
    drive_ns: u128,
    head_ns: u128,
    bus_ns: u128,
    electronics_ns: u128,
}

impl BusyTime {
    pub(super) fn of(work: &[Work]) -> Self {
        let sum = |time: fn(&Work) -> SimDuration| {
            work.iter().map(|work| u128::from(time(work).ns())).sum()
        };
        Self {
            drive_ns: sum(|work| work.busy),
            head_ns: sum(|work| work.head_time.total()),
            bus_ns: sum(|work| work.bus),
            electronics_ns: sum(|work| work.processing),
        }
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.drive_ns += other.drive_ns;
        self.head_ns += other.head_ns;
        self.bus_ns += other.bus_ns;
        self.electronics_ns += other.electronics_ns;
    }

    /// Share of the time of all arms.
    pub(super) fn utilisation(&self, arms_ns: u128) -> f64 {
        share(self.drive_ns, arms_ns)
    }

    pub(super) fn shares(&self, arms_ns: u128) -> BusyShares {
        let Self { head_ns, bus_ns, electronics_ns, .. } = *self;
        let busiest = match head_ns.max(bus_ns).max(electronics_ns) {
            most if most == head_ns => Resource::Head,
            most if most == bus_ns => Resource::Bus,
            _ => Resource::Electronics,
        };
        let [head, bus, electronics] =
            [head_ns, bus_ns, electronics_ns].map(|ns| share(ns, arms_ns));
        BusyShares { head, bus, electronics, busiest }
    }
}

/// Free work in rotational gaps.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct FreeResult {
    /// Use of the gaps.
    #[serde(flatten)]
    pub time: FreeTime,
    /// Achieved free bandwidth: bytes read and written for free a second, over all arms.
    pub bytes_per_second: f64,
    /// Potential free bandwidth over all arms: the mean media rate, while heads would only wait (osdi00
    /// section 3).
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

    /// Share of the rotational latency that additional movements took.
    pub fn extra_seek_share(&self) -> f64 {
        let gap_use = self.time.extra_seek_ns as f64;
        if self.time.potential_ns == 0 { 0.0 } else { gap_use / self.time.potential_ns as f64 }
    }

    /// Share of the rotational latency without use.
    pub fn unused_share(&self) -> f64 {
        share(self.time.unused_ns, self.time.potential_ns)
    }
}

/// `part / whole`; 0 for an empty whole.
pub(super) fn share(part: u128, whole: u128) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
