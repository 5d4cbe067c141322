//! What an arm does with a request, behind one interface: bare mechanics, or a whole drive.

use std::sync::Arc;

use freewheel_model::drive::{Access, Drive, HeadTime, Position};
use freewheel_model::onboard::{Done, NextEvent, Served, Unit};
use freewheel_model::sched::Waiting;
use freewheel_units::{Blocks, Prng, SimDuration, SimTime};

/// One arm with what is between it and the scheduler outside.
pub trait Device {
    /// Whether it takes another request.
    fn has_room(&self) -> bool;
    /// Where and from when on the head can be given other work, as far as can be said at `now`.
    fn free_at(&self, now: SimTime) -> (SimTime, Position);
    /// Takes a request. Panics when it has no room.
    fn submit(&mut self, now: SimTime, waiting: &Waiting);
    /// Asks for all written data to be on the media. False when they are, else what is done then
    /// carries `sequence`.
    fn flush(&mut self, now: SimTime, sequence: u64) -> bool;
    /// What happens next.
    fn next_event(&self) -> Option<NextEvent>;
    /// Lets the event at `now` happen.
    fn advance(&mut self, now: SimTime) -> Option<Done>;
    /// What it did over the whole run.
    fn work(&self) -> Work;
}

impl Work {
    pub(crate) fn busy(&self) -> SimDuration {
        self.head_time.total() + self.overhead
    }
}

/// What an arm did over a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Work {
    /// The head's time for requests and for what they left behind.
    pub head_time: HeadTime,
    /// Command processing during which the arm could do nothing else.
    pub overhead: SimDuration,
    /// When the head was done with all of it, if that was after the last completion.
    pub until: SimTime,
    /// Blocks that the buffer had taken and that were not on their way to the media yet.
    pub dirty_blocks: Blocks,
    /// Time of the head's spent on writing back what the buffer had taken.
    pub destaging: SimDuration,
}

/// Bare mechanics: one request at a time, the drive's own processing time before each.
pub struct Mechanics {
    drive: Arc<Drive>,
    head: Position,
    in_service: Option<Done>,
    seek_errors: SeekErrors,
    work: Work,
}

impl Mechanics {
    /// The head at rest; `errors` differ from arm to arm.
    pub fn new(drive: &Arc<Drive>, errors: SeekErrors) -> Self {
        Self {
            drive: Arc::clone(drive),
            head: Position::default(),
            in_service: None,
            seek_errors: errors,
            work: Work::default(),
        }
    }
}

impl Device for Mechanics {
    #[inline]
    fn has_room(&self) -> bool {
        self.in_service.is_none()
    }

    #[inline]
    fn free_at(&self, now: SimTime) -> (SimTime, Position) {
        (now, self.head)
    }

    #[inline]
    fn submit(&mut self, now: SimTime, waiting: &Waiting) {
        let error = self.seek_errors.draw();
        let access = self.drive.access_with_seek_error(now, self.head, &waiting.target, error);
        self.head = access.end;
        self.work.head_time.add(&access);
        self.work.overhead += access.overhead;
        let Access { overhead, seek, rotate, transfer, .. } = access;
        let end = now + access.total();
        let served = Served { overhead, seek, rotate, transfer, end, ..Served::default() };
        self.in_service = Some(Done { sequence: waiting.sequence, served, flush: false });
    }

    /// There is no buffer: what was reported done is on the media.
    fn flush(&mut self, _: SimTime, _: u64) -> bool {
        false
    }

    #[inline]
    fn next_event(&self) -> Option<NextEvent> {
        self.in_service.as_ref().map(|done| NextEvent::Completion(done.served.end))
    }

    #[inline]
    fn advance(&mut self, _: SimTime) -> Option<Done> {
        self.in_service.take()
    }

    fn work(&self) -> Work {
        self.work
    }
}

/// A whole drive.
pub struct WholeDrive {
    unit: Unit,
    seek_errors: SeekErrors,
}

impl WholeDrive {
    /// `errors` differ from arm to arm.
    pub fn new(unit: Unit, errors: SeekErrors) -> Self {
        Self { unit, seek_errors: errors }
    }
}

impl Device for WholeDrive {
    #[inline]
    fn has_room(&self) -> bool {
        self.unit.has_room()
    }

    #[inline]
    fn free_at(&self, now: SimTime) -> (SimTime, Position) {
        (now.max(self.unit.media_free()), self.unit.head())
    }

    #[inline]
    fn submit(&mut self, now: SimTime, waiting: &Waiting) {
        let Self { unit, seek_errors } = self;
        unit.submit(now, waiting, || seek_errors.draw());
    }

    fn flush(&mut self, now: SimTime, sequence: u64) -> bool {
        self.unit.flush(now, sequence)
    }

    #[inline]
    fn next_event(&self) -> Option<NextEvent> {
        self.unit.next_event()
    }

    #[inline]
    fn advance(&mut self, now: SimTime) -> Option<Done> {
        let Self { unit, seek_errors } = self;
        unit.advance(now, || seek_errors.draw())
    }

    fn work(&self) -> Work {
        Work {
            head_time: self.unit.head_time(),
            overhead: SimDuration::ZERO,
            until: self.unit.media_free(),
            dirty_blocks: self.unit.dirty_blocks(),
            destaging: self.unit.destaging(),
        }
    }
}

/// Differences between real seeks and the curve, drawn within the drive's tolerance.
pub struct SeekErrors {
    prng: Prng,
    tolerance_ns: u64,
}

impl SeekErrors {
    /// Those of an arm.
    pub fn new(drive: &Drive, seed: u64, arm: u32) -> Self {
        let stream = if arm == 0 { "seek errors".into() } else { format!("seek errors {arm}") };
        Self { prng: Prng::new(seed, &stream), tolerance_ns: drive.seek_tolerance().ns() }
    }

    #[inline]
    fn draw(&mut self) -> i64 {
        if self.tolerance_ns == 0 {
            return 0;
        }
        self.prng.below(2 * self.tolerance_ns + 1) as i64 - self.tolerance_ns as i64
    }
}
