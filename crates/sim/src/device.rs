//! What an arm does with a request, behind one interface: bare mechanics, or a whole drive.

use std::collections::VecDeque;
use std::sync::Arc;

use freewheel_freeblock::{Planner, PromotionId};
use freewheel_host::{Account, MarginInUse};
use freewheel_model::drive::{Access, Actuator, Departure, Drive, HeadTime, Latency, Position};
use freewheel_model::electronics::{Done, NextEvent, Served, Unit};
use freewheel_model::sched::Waiting;
use freewheel_units::{Blocks, Op, SimDuration, SimTime};

use crate::arm_executor::{ArmExecutor, FreeTime};
use crate::idle::IdleTime;

/// One arm with what is between it and the scheduler outside.
pub trait Device {
    /// Whether it takes another request.
    fn has_room(&self) -> bool;
    /// Where and from when on the head can be given other work, as far as can be said at `now`.
    fn free_at(&self, now: SimTime) -> (SimTime, Position);
    /// A request has arrived for it, which is submitted in its turn; `promotion` is set when
    /// the planner promoted it.
    fn arrived(&mut self, now: SimTime, waiting: &Waiting, promotion: Option<PromotionId>) {
        let _ = (now, waiting, promotion);
    }
    /// The planner of its free work, if there is one.
    fn planner(&mut self) -> Option<&mut dyn Planner> {
        None
    }
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

/// What an arm did over a run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Work {
    /// Time during which a command was in the drive or the drive wrote back.
    pub busy: SimDuration,
    /// The head's time for requests and for what they left behind.
    pub head_time: HeadTime,
    /// Time of command processing.
    pub processing: SimDuration,
    /// Time for which the bus was taken.
    pub bus: SimDuration,
    /// When the head was done with all of it, if that was after the last completion.
    pub until: SimTime,
    /// Blocks that the buffer had taken and that were not on their way to the media yet.
    pub dirty_blocks: Blocks,
    /// Time of the head's spent on writing back what the buffer had taken.
    pub destaging: SimDuration,
    /// What became of rotational gaps, where there is a planner.
    pub free: Option<FreeTime>,
    /// What was done in idle time, where something was.
    pub idle: Option<IdleTime>,
    /// What a scheduler outside it saw and did, where there is one.
    pub host: Option<Account>,
    /// The margins that it has learned, where it has.
    pub margins: Vec<MarginInUse>,
}

/// Bare mechanics: one request at a time, the drive's own processing time before each.
pub struct Mechanics<'p> {
    drive: Arc<Drive>,
    head: Position,
    last_op: Op,
    in_service: Option<Done>,
    executor: ArmExecutor<'p>,
    head_time: HeadTime,
    overhead: SimDuration,
}

impl<'p> Mechanics<'p> {
    /// The head at rest, moved by a servo of its own.
    pub fn new(drive: &Arc<Drive>, executor: ArmExecutor<'p>) -> Self {
        Self {
            drive: Arc::clone(drive),
            head: Position::default(),
            last_op: Op::Read,
            in_service: None,
            executor,
            head_time: HeadTime::default(),
            overhead: SimDuration::ZERO,
        }
    }

    #[inline]
    fn departure(&self, begin: SimTime) -> Departure {
        let Self { head: from, last_op, .. } = *self;
        Departure { begin, from, last_op, read_write_switch: SimDuration::ZERO }
    }
}

impl Device for Mechanics<'_> {
    #[inline]
    fn has_room(&self) -> bool {
        self.in_service.is_none() && !self.executor.is_in_idle_run()
    }

    #[inline]
    fn free_at(&self, now: SimTime) -> (SimTime, Position) {
        (now, self.head)
    }

    #[inline]
    fn arrived(&mut self, now: SimTime, waiting: &Waiting, promotion: Option<PromotionId>) {
        self.executor.foreground_arrived(now, waiting, promotion);
    }

    #[inline]
    fn planner(&mut self) -> Option<&mut dyn Planner> {
        self.executor.planner()
    }

    #[inline]
    fn submit(&mut self, now: SimTime, waiting: &Waiting) {
        let target = &waiting.target;
        let overhead = self.drive.overhead(target.op);
        let departure = self.departure(now + overhead);
        let access = self.executor.access(&self.drive, &departure, target, Latency::Free);
        let access = Access { overhead, ..access };
        (self.head, self.last_op) = (access.end, target.op);
        self.head_time.add(&access);
        self.overhead += overhead;
        let Access { seek, rotate, transfer, .. } = access;
        let end = now + access.total();
        self.executor.count_idle(&self.drive, now - waiting.arrival);
        let served = Served { overhead, seek, rotate, transfer, end, ..Served::default() };
        self.in_service = Some(Done { sequence: waiting.sequence, served, flush: false });
    }

    /// There is no buffer: what was reported done is on the media.
    fn flush(&mut self, _: SimTime, _: u64) -> bool {
        false
    }

    #[inline]
    fn next_event(&self) -> Option<NextEvent> {
        match &self.in_service {
            Some(done) => Some(NextEvent::Completion(done.served.end)),
            None => self.executor.next_idle_event().map(NextEvent::Decision),
        }
    }

    #[inline]
    fn advance(&mut self, now: SimTime) -> Option<Done> {
        let Some(done) = self.in_service.take() else {
            let head = self.departure(now);
            if let Some((access, op)) = self.executor.advance_idle(&self.drive, head, true) {
                (self.head, self.last_op) = (access.end, op);
            }
            return None;
        };
        // The arm could do nothing else while the command was processed.
        self.executor.foreground_took(done.sequence, done.served.overhead + done.served.head());
        self.executor.foreground_done(done.sequence, now);
        Some(done)
    }

    fn work(&self) -> Work {
        let Self { head_time, overhead: processing, .. } = *self;
        let (free, idle) = (self.executor.free_time(), self.executor.idle_time());
        let busy = head_time.total() + processing;
        Work { busy, head_time, processing, free, idle, ..Work::default() }
    }
}

/// How often in a turn, at most, to look whether a drive is done with its own work. Assumed: no later
/// than a few blocks pass.
const LOOKS: u64 = 100;

/// A whole drive.
pub struct WholeDrive<'p> {
    unit: Unit,
    executor: ArmExecutor<'p>,
    /// Writes that are done and may still be in the buffer alone, for the servo's planner: the
    /// number that the buffer gave to the last write until then, and the request's sequence.
    in_buffer: VecDeque<(u64, u64)>,
}

impl<'p> WholeDrive<'p> {
    /// The unit and the servo of one arm.
    pub fn new(unit: Unit, executor: ArmExecutor<'p>) -> Self {
        let unit = if executor.has_planner() { unit.with_destage_shares() } else { unit };
        Self { unit, executor, in_buffer: VecDeque::new() }
    }

    /// Tells the planner of writes that have reached the media.
    #[inline]
    fn end_writes(&mut self, now: SimTime) {
        while let Some((sequence, head)) = self.unit.destage_share() {
            self.executor.foreground_took(sequence, head);
        }
        while let Some(&(write, sequence)) = self.in_buffer.front() {
            if !self.unit.is_written(write, now) {
                break;
            }
            self.in_buffer.pop_front();
            self.executor.foreground_done(sequence, now);
        }
    }

    /// Tells the planner of a request that is done, of a write only when it is on the media.
    fn end(&mut self, now: SimTime, op: Op, done: &Done) {
        if !done.served.hit {
            self.executor.count_idle(self.unit.drive(), done.served.queue);
        } else if op == Op::Write || self.unit.has_read_on() {
            // Writing it back, or reading on behind it, moves the head for nobody who waits.
            self.executor.forget_idle();
        }
        if op == Op::Write && done.served.hit {
            self.in_buffer.push_back((self.unit.newest_write(), done.sequence));
        } else {
            self.executor.foreground_took(done.sequence, done.served.head());
            self.executor.foreground_done(done.sequence, now);
        }
    }

    /// A run in idle time ends or begins, if the drive itself has nothing to do.
    #[cold]
    fn advance_idle(&mut self, now: SimTime) {
        let is_idle = self.unit.is_idle(now);
        self.end_writes(now);
        let head = self.unit.departure(now);
        if let Some((access, op)) = self.executor.advance_idle(self.unit.drive(), head, is_idle) {
            self.unit.lend_head(access.end, op, now + access.total());
        } else if !is_idle && !self.has_requests() {
            // It says neither when its own work ends nor when that goes on.
            let soon = self.unit.drive().rotation().period() / LOOKS;
            self.executor.begin_idle(now, self.unit.media_free().max(now + soon));
        }
    }

    /// Whether requests are not done, in the drive or in the queue outside. Writes that only the
    /// buffer has are done.
    #[inline]
    fn has_requests(&self) -> bool {
        self.unit.has_commands() || self.executor.foreground_count() > self.in_buffer.len()
    }
}

impl Device for WholeDrive<'_> {
    #[inline]
    fn has_room(&self) -> bool {
        self.unit.has_room()
    }

    #[inline]
    fn free_at(&self, now: SimTime) -> (SimTime, Position) {
        (now.max(self.unit.media_free()), self.unit.head())
    }

    #[inline]
    fn arrived(&mut self, now: SimTime, waiting: &Waiting, promotion: Option<PromotionId>) {
        self.executor.foreground_arrived(now, waiting, promotion);
    }

    #[inline]
    fn planner(&mut self) -> Option<&mut dyn Planner> {
        self.executor.planner()
    }

    #[inline]
    fn submit(&mut self, now: SimTime, waiting: &Waiting) {
        self.end_writes(now);
        self.unit.submit(now, waiting, &mut self.executor);
    }

    fn flush(&mut self, now: SimTime, sequence: u64) -> bool {
        self.unit.flush(now, sequence)
    }

    #[inline]
    fn next_event(&self) -> Option<NextEvent> {
        let next = self.unit.next_event();
        let Some(idle) = self.executor.next_idle_event() else { return next };
        next.filter(|next| next.time() <= idle).or(Some(NextEvent::Decision(idle)))
    }

    #[inline]
    fn advance(&mut self, now: SimTime) -> Option<Done> {
        if self.unit.next_event().is_none_or(|next| next.time() > now) {
            self.advance_idle(now);
            return None;
        }
        self.end_writes(now);
        let done = self.unit.advance(now, &mut self.executor)?;
        if let Some(request) = self.executor.foreground(done.sequence) {
            let op = request.op;
            self.end(now, op, &done);
            if !self.has_requests() {
                self.executor.begin_idle(now, now);
            }
        }
        Some(done)
    }

    fn work(&self) -> Work {
        Work {
            busy: self.unit.busy(),
            head_time: self.unit.head_time(),
            processing: self.unit.processing_time(),
            bus: self.unit.bus_used(),
            until: self.unit.media_free(),
            dirty_blocks: self.unit.dirty_blocks(),
            destaging: self.unit.destaging(),
            free: self.executor.free_time(),
            idle: self.executor.idle_time(),
            host: None,
            margins: Vec::new(),
        }
    }
}
