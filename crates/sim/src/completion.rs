//! A request that is done, or refused.

use freewheel_model::electronics::{LimitEnd, Served};
use freewheel_units::{Op, SimDuration, SimTime};

use serde::Serialize;

use crate::source::Request;

/// A request that is done, with its stage times. They add up to its response time. A request that
/// several arms serve has the stages of its last piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Completion {
    /// The request as the source issued it.
    pub request: Request,
    pub arrival: SimTime,
    /// Time waited outside and inside the drive, or, of a flush, for the writes before it.
    pub queue: SimDuration,
    /// The part of it that passed inside the drive: for its electronics, media, bus, or room in its buffer.
    pub drive_queue: SimDuration,
    /// Command processing.
    pub overhead: SimDuration,
    /// Moving the arm, changing heads, settling.
    pub seek: SimDuration,
    pub rotate: SimDuration,
    /// Wanted sectors under the head.
    pub transfer: SimDuration,
    /// Moving data to or from the host beyond what the media transfer hides.
    pub bus: SimDuration,
    /// True if the drive's buffer served it.
    pub hit: bool,
    /// Outcome of the duration limit; [`LimitEnd::Aborted`] ended it with an error.
    pub limit: LimitEnd,
    /// Reason why the drive refused it. Then it took no time.
    pub refused: Option<Refusal>,
    /// Time at which it was done.
    pub end: SimTime,
    /// True if it arrived during the warm-up: results are without it.
    pub is_warm_up: bool,
}

impl Completion {
    /// A served request. The queue time is the part of its response that the stages leave over.
    #[inline]
    pub(crate) fn new(request: Request, arrival: SimTime, served: &Served) -> Self {
        let Served { hit, limit, overhead, seek, rotate, transfer, bus, end, .. } = *served;
        let queue = end - arrival - (overhead + seek + rotate + transfer + bus);
        Self {
            request,
            arrival,
            queue,
            // A request that joined a disk request under way waited for the end of it only.
            drive_queue: served.queue.min(queue),
            overhead,
            seek,
            rotate,
            transfer,
            bus,
            hit,
            limit,
            refused: None,
            end,
            is_warm_up: false,
        }
    }

    /// A request that was refused at the instant it arrived.
    pub(crate) fn refused(request: Request, now: SimTime, refusal: Refusal) -> Self {
        let served = Served { end: now, ..Served::default() };
        Self { refused: Some(refusal), ..Self::new(request, now, &served) }
    }

    /// From arrival to end.
    #[inline]
    pub fn response(&self) -> SimDuration {
        self.end - self.arrival
    }

    /// From arrival to the command to the drive.
    pub fn host_queue(&self) -> SimDuration {
        self.queue - self.drive_queue
    }

    /// Every stage but the queue.
    #[inline]
    pub fn service(&self) -> SimDuration {
        self.overhead + self.seek + self.rotate + self.transfer + self.bus
    }
}

/// Requests that did not keep their duration limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct LimitCounts {
    /// Requests that were completed past their limit.
    pub missed: u64,
    /// Reads that ended with an error at their limit. They count in no response time.
    pub aborted_reads: u64,
    /// Writes that ended with an error at their limit. They count in no response time.
    pub aborted_writes: u64,
}

impl LimitCounts {
    /// Requests that ended with an error.
    pub fn aborted(&self) -> u64 {
        self.aborted_reads + self.aborted_writes
    }

    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(crate) fn abort(&mut self, op: Op) {
        *(if op == Op::Write { &mut self.aborted_writes } else { &mut self.aborted_reads }) += 1;
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.missed += other.missed;
        self.aborted_reads += other.aborted_reads;
        self.aborted_writes += other.aborted_writes;
    }
}

/// Reason why a host-managed drive refuses a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The write does not begin at the write pointer of its zone.
    NotAtWritePointer,
    /// The write leaves its sequential zone, or leads from a conventional zone into one.
    OverZoneBoundary,
    /// The zone is full and was not reset.
    ZoneFull,
}

/// Writes that host-managed drives refused, by reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct RefusedWrites {
    /// All of them.
    pub count: u64,
    /// Writes that do not begin at the write pointer of their zone.
    pub not_at_write_pointer: u64,
    /// Writes that leave their sequential zone, or lead from a conventional zone into one.
    pub over_zone_boundary: u64,
    /// Writes to a zone that is full and was not reset.
    pub zone_full: u64,
}

impl RefusedWrites {
    pub(crate) fn add(&mut self, refusal: Refusal) {
        self.count += 1;
        *match refusal {
            Refusal::NotAtWritePointer => &mut self.not_at_write_pointer,
            Refusal::OverZoneBoundary => &mut self.over_zone_boundary,
            Refusal::ZoneFull => &mut self.zone_full,
        } += 1;
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.not_at_write_pointer += other.not_at_write_pointer;
        self.over_zone_boundary += other.over_zone_boundary;
        self.zone_full += other.zone_full;
    }
}
