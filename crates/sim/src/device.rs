//! An arm behind one interface: bare mechanics, or a whole drive.

use std::collections::VecDeque;
use std::sync::Arc;

use freewheel_freeblock::{Planner, PromotionId};
use freewheel_host::{Account, CostSums, MarginInUse};
use freewheel_model::cache::BlockRange;
use freewheel_model::drive::{
    Access, Actuator, Departure, Drive, HeadTime, Latency, Position, Target,
};
use freewheel_model::electronics::{Done, DriveUnit, MediaCacheWork, NextEvent, Served};
use freewheel_model::sched::Waiting;
use freewheel_units::{Blocks, Lbn, Op, SimDuration, SimTime};

use crate::arm_executor::ArmExecutor;
use crate::cache_work::CacheWork;
use crate::free_time::FreeTime;
use crate::idle::IdleTime;

/// One arm with the electronics between it and the scheduler.
///
/// ```
/// use freewheel_model::striping::Striping;
/// use freewheel_model::drive::Position;
/// use freewheel_model::electronics::{Done, NextEvent, Served};
/// use freewheel_model::sched::{Fcfs, Waiting};
/// use freewheel_sim::source::{Closed, Pattern, PatternSpec, ThinkTime};
/// use freewheel_sim::{Arm, Device, Work, library, run};
/// use freewheel_units::{SimDuration, SimTime};
///
/// /// Serves one request at a time, each in a millisecond.
/// #[derive(Default)]
/// struct Constant {
///     in_service: Option<Done>,
/// }
///
/// impl Device for Constant {
///     fn has_room(&self) -> bool {
///         self.in_service.is_none()
///     }
///
///     fn free_at(&self, now: SimTime) -> (SimTime, Position) {
///         (self.in_service.map_or(now, |done| done.served.end), Position::default())
///     }
///
///     fn submit(&mut self, now: SimTime, waiting: &Waiting) {
///         let transfer = SimDuration::from_ms(1);
///         let served = Served { transfer, end: now + transfer, ..Served::default() };
///         self.in_service = Some(Done { sequence: waiting.sequence, served, flush: false });
///     }
///
///     fn flush(&mut self, _: SimTime, _: u64) -> bool {
///         false
///     }
///
///     fn next_event(&self) -> Option<NextEvent> {
///         self.in_service.map(|done| NextEvent::Completion(done.served.end))
///     }
///
///     fn advance(&mut self, _: SimTime) -> Option<Done> {
///         self.in_service.take()
///     }
///
///     fn work(&self, _: SimTime) -> Work {
///         Work::default()
///     }
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let drive = std::sync::Arc::new(library::drive("tr96")?.1);
/// let striping = Striping::single(drive.blocks());
/// let pattern = Pattern::new(PatternSpec::default(), drive.blocks(), 1)?;
/// let mut source = Closed::new(pattern, 5, ThinkTime::Constant(SimDuration::ZERO), 100, 1);
/// let mut arms = [Arm { drive, policy: Box::<Fcfs>::default(), device: Constant::default() }];
/// let result = run(&striping, None, &mut arms, &mut source, &mut |_| {})?;
/// assert_eq!(result.response.max_ns, 5_000_000);
/// # Ok(())
/// # }
/// ```
pub trait Device {
    /// True if the device takes another request.
    fn has_room(&self) -> bool;
    /// Time and place from which the head can start other work, as far as known at `now`.
    fn free_at(&self, now: SimTime) -> (SimTime, Position);
    /// Target of a request for the queue in front of the device.
    #[inline]
    fn target(&self, drive: &Drive, start: Lbn, blocks: Blocks, op: Op) -> Target {
        drive.target(start, blocks, op)
    }
    /// A request has arrived for the device and will be submitted later; `promotion` is set when the
    /// planner promoted it.
    fn arrived(&mut self, now: SimTime, waiting: &Waiting, promotion: Option<PromotionId>) {
        let _ = (now, waiting, promotion);
    }
    /// Planner of its free work.
    fn planner(&mut self) -> Option<&mut dyn Planner> {
        None
    }
    /// Takes a request. Panics when it has no room.
    fn submit(&mut self, now: SimTime, waiting: &Waiting);
    /// Requests that all written data reach the media. False when they have; else the event that ends
    /// the flush carries `sequence`.
    fn flush(&mut self, now: SimTime, sequence: u64) -> bool;
    /// These blocks are trimmed: memory in front of the drive forgets them. Returns whether the device
    /// may have new events.
    fn trim(&mut self, now: SimTime, blocks: BlockRange<Lbn>) -> bool {
        let _ = (now, blocks);
        false
    }
    /// The next event.
    fn next_event(&self) -> Option<NextEvent>;
    /// Handles the event at `now`.
    fn advance(&mut self, now: SimTime) -> Option<Done>;
    /// Sums from the start of the run to `now`. Accesses under way count whole.
    fn work(&self, now: SimTime) -> Work;
}

/// Sums over a run of one arm.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Work {
    /// Time during which a command was in the drive or the drive wrote back.
    pub busy: SimDuration,
    /// Head time of requests and of the destages and reading ahead behind them.
    pub head_time: HeadTime,
    /// Time of command processing.
    pub processing: SimDuration,
    /// Time in which the bus was in use.
    pub bus: SimDuration,
    /// End of the head's work, if that was after the last completion.
    pub until: SimTime,
    /// Blocks in the buffer that were not on their way to the media yet.
    pub dirty_blocks: Blocks,
    /// Sums of the drive's media cache; with one only.
    pub media_cache: Option<MediaCacheWork>,
    /// Head time of destages.
    pub destaging: SimDuration,
    /// Use of rotational gaps; with a planner only.
    pub free: Option<FreeTime>,
    /// Work in idle time; where there was some.
    pub idle: Option<IdleTime>,
    /// The storage system's cache; with one only.
    pub cache: Option<CacheWork>,
    /// Account of the host scheduler; with one only.
    pub host: Option<Account>,
    /// Margins that the host scheduler has learned.
    pub margins: Vec<MarginInUse>,
    /// Cost of free work to clients, as the host scheduler has measured it.
    pub cost: Option<CostSums>,
}

impl Work {
    /// The part after `before`, an earlier state of the same run without background work.
    pub(crate) fn since(&self, before: &Self) -> Self {
        let cache = self.cache.zip(before.cache).map(|(after, before)| after.since(&before));
        Self {
            busy: self.busy.saturating_sub(before.busy),
            head_time: HeadTime {
                seek: self.head_time.seek - before.head_time.seek,
                rotate: self.head_time.rotate - before.head_time.rotate,
                transfer: self.head_time.transfer - before.head_time.transfer,
            },
            processing: self.processing - before.processing,
            bus: self.bus - before.bus,
            destaging: self.destaging - before.destaging,
            cache: cache.or(self.cache),
            ..self.clone()
        }
    }
}

/// Bare mechanics: one request at a time, after the drive's own processing time.
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
    /// A head at rest, moved by `executor`.
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

    /// Without a buffer, every write that is done is on the media.
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
        // Command processing counts as head time, as the arm is blocked meanwhile.
        self.executor.foreground_took(done.sequence, done.served.overhead + done.served.head());
        self.executor.foreground_done(done.sequence, now);
        Some(done)
    }

    fn work(&self, _: SimTime) -> Work {
        let Self { head_time, overhead: processing, .. } = *self;
        let (free, idle) = (self.executor.free_time(), self.executor.idle_time());
        let busy = head_time.total() + processing;
        Work { busy, head_time, processing, free, idle, ..Work::default() }
    }
}

/// Checks per turn for the end of a drive's own work. Assumed: a check is late by a few blocks at most.
const LOOKS: u64 = 100;

/// A whole drive.
pub struct WholeDrive<'p> {
    unit: DriveUnit,
    executor: ArmExecutor<'p>,
    /// Done writes that may be in the buffer only, for the executor's planner. Each has the buffer's
    /// number of the newest write at that time, and the request's sequence.
    in_buffer: VecDeque<(u64, u64)>,
}

impl<'p> WholeDrive<'p> {
    /// Joins the electronics and the executor of one arm.
    pub fn new(unit: DriveUnit, executor: ArmExecutor<'p>) -> Self {
        let unit = if executor.has_planner() { unit.with_destage_shares() } else { unit };
        Self { unit, executor, in_buffer: VecDeque::new() }
    }

    /// Reports writes that have reached the media to the planner.
    #[inline]
    fn end_writes(&mut self, now: SimTime) {
        while let Some((sequence, head)) = self.unit.destage_share() {
            self.executor.foreground_took(sequence, head);
        }
        // Buffer numbers rise, so the first write that is not on the media ends the search.
        while let Some(&(write, sequence)) = self.in_buffer.front() {
            if !self.unit.is_written(write, now) {
                break;
            }
            self.in_buffer.pop_front();
            self.executor.foreground_done(sequence, now);
        }
    }

    /// Reports a request that is done to the planner; a write only once it is on the media.
    fn end(&mut self, now: SimTime, op: Op, done: &Done) {
        if !done.served.hit {
            self.executor.count_idle(self.unit.drive(), done.served.queue);
        } else if op == Op::Write || self.unit.has_read_on() {
            // A destage, or reading ahead, moves the head without a waiting request.
            self.executor.forget_idle();
        }
        if op == Op::Write && done.served.hit {
            self.in_buffer.push_back((self.unit.newest_write(), done.sequence));
        } else {
            self.executor.foreground_took(done.sequence, done.served.head());
            self.executor.foreground_done(done.sequence, now);
        }
    }

    /// Ends or begins a run in idle time, if the drive itself is idle.
    #[cold]
    fn advance_idle(&mut self, now: SimTime) {
        let is_idle = self.unit.is_idle(now);
        self.end_writes(now);
        let head = self.unit.departure(now);
        if let Some((access, op)) = self.executor.advance_idle(self.unit.drive(), head, is_idle) {
            self.unit.lend_head(access.end, op, now + access.total());
        } else if !is_idle && !self.has_requests() {
            // The drive announces neither the end of its work nor the start of the next.
            let soon = self.unit.drive().rotation().period() / LOOKS;
            self.executor.begin_idle(now, self.unit.media_free().max(now + soon));
        }
    }

    /// True if requests are in the drive or in the queue outside. Writes in the buffer only count as done.
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
        if self.executor.has_planner() {
            self.end_writes(now);
        }
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
        if !self.executor.has_planner() {
            return self.unit.advance(now, &mut self.executor);
        }
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

    fn work(&self, now: SimTime) -> Work {
        Work {
            busy: self.unit.busy_until(now),
            head_time: self.unit.head_time(),
            processing: self.unit.processing_time(),
            bus: self.unit.bus_used(),
            until: self.unit.media_free(),
            dirty_blocks: self.unit.dirty_blocks(),
            media_cache: self.unit.media_cache_work(),
            destaging: self.unit.destaging(),
            free: self.executor.free_time(),
            idle: self.executor.idle_time(),
            cache: None,
            host: None,
            margins: Vec::new(),
            cost: None,
        }
    }
}
