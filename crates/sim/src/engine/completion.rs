//! A request that is done.

use freewheel_model::electronics::Served;
use freewheel_units::{SimDuration, SimTime};

use crate::engine::Refusal;
use crate::source::Request;

/// A request that is done, with its stage times. They add up to its response time. A request that
/// several arms serve has the stages of its last piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// The request as the source issued it.
    pub request: Request,
    /// Time of its arrival.
    pub arrival: SimTime,
    /// Time waited outside and inside the drive, or, of a flush, for the writes before it.
    pub queue: SimDuration,
    /// Command processing.
    pub overhead: SimDuration,
    /// Moving the arm, changing heads, settling.
    pub seek: SimDuration,
    /// Rotational latency.
    pub rotate: SimDuration,
    /// Wanted sectors under the head.
    pub transfer: SimDuration,
    /// Moving data to or from the host beyond what the media transfer hides.
    pub bus: SimDuration,
    /// Whether the drive's buffer served it.
    pub hit: bool,
    /// Why the drive refused it. Then it took no time.
    pub refused: Option<Refusal>,
    /// When it was done.
    pub end: SimTime,
}

impl Completion {
    /// A served request. The queue time is the part of its response that the stages leave over.
    #[inline]
    pub(crate) fn new(request: Request, arrival: SimTime, served: &Served) -> Self {
        let Served { hit, overhead, seek, rotate, transfer, bus, end, .. } = *served;
        let queue = end - arrival - (overhead + seek + rotate + transfer + bus);
        let refused = None;
        Self { request, arrival, queue, overhead, seek, rotate, transfer, bus, hit, refused, end }
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

    /// Every stage but the queue.
    #[inline]
    pub fn service(&self) -> SimDuration {
        self.overhead + self.seek + self.rotate + self.transfer + self.bus
    }
}
