//! A drive with its electronics: commands in, times out.
//!
//! A unit is driven by events. [`DriveUnit::submit`] hands it a command, [`DriveUnit::next_event`] says when
//! something happens that somebody could see, and [`DriveUnit::advance`] lets it happen. What the drive
//! does on its own account (reading on, destaging in idle time) is worked out when it is next asked:
//! an idle drive has no events.

mod limits;
mod media;
mod serve;
mod shingled;
mod written;

use std::collections::VecDeque;
use std::sync::Arc;

use freewheel_units::{Blocks, Lbn, Op, SimDuration, SimTime};

use super::buffer::{Buffer, behind};
use super::bus::Bus;
use super::busy::Busy;
use super::command_queue::CommandQueue;
use super::extents::Extents;
use super::read_ahead::ReadAheadState;
use super::shares::DestageShares;
use super::write_back::WriteBack;
use crate::drive::{Access, Actuator, Drive, Exact, HeadTime, Position, Target};
use crate::sched::{CommandMark, Moment, ParsePolicyError, Waiting};
use crate::spec::by_op::ByOp;
use crate::spec::electronics::{
    BufferSpec, BusSpec, ElectronicsSpec, ExtraDisconnectSpec, OverheadSpec, QueueSpec,
    SectorFormat, WriteCache, WriteStartSpec,
};

pub use self::limits::LimitEnd;
use self::limits::Limits;
use self::shingled::Shingled;

/// A drive with its electronics, and their state.
pub struct DriveUnit {
    /// Mechanics, with command processing of no time: the electronics add it.
    drive: Arc<Drive>,
    buffer_spec: BufferSpec,
    overheads: OverheadSpec,
    bus_spec: BusSpec,
    read_write_switch: SimDuration,
    write_start: WriteStartSpec,
    queue: QueueSpec,
    sector: SectorFormat,
    buffer: Option<Buffer>,
    bus: Bus,
    media: Media,
    write_back: WriteBack,
    /// Buffer whose written data stand in extents; then `write_back` is empty.
    extents: Option<Box<Extents>>,
    /// Head time of writing back for each write, if an experiment asks for it.
    shares: Option<Box<DestageShares>>,
    /// Commands that need the media and whose processing is over.
    queue_inside: CommandQueue,
    /// Commands that need the media and are being processed, in order.
    processing: VecDeque<Command>,
    /// Commands that the queue holds.
    waiting: Vec<Command>,
    /// Writes for which the buffer has no room, in order.
    blocked: VecDeque<Command>,
    flushes: VecDeque<Flush>,
    /// State of a drive that looks at duration limits.
    limits: Option<Box<Limits>>,
    /// State of a drive with a media cache.
    shingled: Option<Box<Shingled>>,
    /// Commands whose end is known, the next one last. They are few.
    done: Vec<Done>,
    /// Commands inside that are not done.
    inside: u32,
    now: SimTime,
    /// The end of the last command, if that was a read.
    read_end: Option<Lbn>,
    /// End of the command before, if it was a write.
    write_end: Option<Lbn>,
    last_op: Op,
    /// Time at which the electronics have processed all commands that have arrived.
    processed: SimTime,
    /// Time at which the drive was last busy with something else than a read from its buffer.
    idle_from: SimTime,
    destage_is_next: bool,
    busy: Busy,
    /// Time that the electronics have spent on commands, without completion overheads.
    processing_time: SimDuration,
}

/// The arm and its work.
#[derive(Debug, Clone)]
struct Media {
    head: Position,
    last_op: Op,
    /// Time at which the head is done with what cannot be interrupted.
    free: SimTime,
    reading_on: Option<ReadAheadState>,
    /// Time at which the last destage ends.
    destaged: SimTime,
    /// Time spent on destages.
    destaging: SimDuration,
    /// Head time of commands and destages.
    head_time: HeadTime,
}

/// A command inside the drive.
#[derive(Debug, Clone, Copy)]
struct Command {
    waiting: Waiting,
    submitted: SimTime,
    overhead: SimDuration,
    /// End of its processing.
    ready: SimTime,
    /// Latest time at which it may begin to keep its limit of waiting.
    due: Option<SimTime>,
    /// None of its blocks is in the buffer, nor will be when its processing is over.
    misses: bool,
    /// Time by which its data begin to come over the bus later than it is ready.
    data_late: SimDuration,
}

/// A flush that waits for all destages up to one.
#[derive(Debug, Clone, Copy)]
struct Flush {
    sequence: u64,
    submitted: SimTime,
    newest: u64,
}

/// Next event of a drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextEvent {
    /// A command is done.
    Completion(SimTime),
    /// The drive decides what its media do next, from all that has been submitted until then.
    Decision(SimTime),
}

impl NextEvent {
    /// Time of the event.
    #[inline]
    pub fn time(self) -> SimTime {
        match self {
            Self::Completion(time) | Self::Decision(time) => time,
        }
    }
}

/// A command that is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Done {
    /// The command's [`Waiting::sequence`], or what [`DriveUnit::flush`] was given.
    pub sequence: u64,
    /// Outcome of the command.
    pub served: Served,
    /// True if it was a flush.
    pub flush: bool,
}

/// Outcome of a command. The stages add up to the time from its start to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Served {
    /// True if the buffer alone served it.
    pub hit: bool,
    /// Outcome of the duration limit.
    pub limit: LimitEnd,
    /// Command processing, at the beginning and at the end.
    pub overhead: SimDuration,
    /// Waiting inside the drive: for electronics, media, bus, or room in the buffer.
    pub queue: SimDuration,
    /// Moving the arm, changing heads, settling.
    pub seek: SimDuration,
    /// Waiting for the wanted sectors.
    pub rotate: SimDuration,
    /// Wanted sectors under the head.
    pub transfer: SimDuration,
    /// Moving data over the bus beyond what the media's part hides.
    pub bus: SimDuration,
    /// Time at which it was done.
    pub end: SimTime,
}

impl Served {
    /// Head time of the command.
    #[inline]
    pub fn head(&self) -> SimDuration {
        self.seek + self.rotate + self.transfer
    }
}

/// Part of a read that the buffer holds.
enum Held {
    /// All of it, or all of it by `there`.
    Whole {
        segment: usize,
        there: SimTime,
    },
    /// The blocks before `to`.
    Part {
        segment: usize,
        to: Lbn,
    },
    /// All of it, in extents.
    Written,
    Nothing,
}

impl DriveUnit {
    /// A drive with this electronics, its buffer empty and its head at rest. Without overheads in
    /// the electronics, commands are processed in the time that the drive itself states. An error
    /// when the queue's policy has a parameter out of range. Panics when [`Drive::build`] would
    /// refuse the electronics. Units of drives that state no time share the drive.
    pub fn new(drive: &Arc<Drive>, spec: &ElectronicsSpec) -> Result<Self, ParsePolicyError> {
        let queue = spec.queue.unwrap_or_default();
        spec.check().unwrap_or_else(|(key, value, rule)| panic!("{key} is {value}: {rule}"));
        Ok(Self {
            drive: without_overhead(drive),
            buffer: spec.buffer.as_ref().map(Buffer::new),
            buffer_spec: spec.buffer.clone().unwrap_or_default(),
            overheads: spec.with_processing(drive.overheads()).overheads.unwrap_or_default(),
            bus_spec: spec.bus.unwrap_or_default(),
            bus: Bus::default(),
            read_write_switch: spec.read_write_switch,
            write_start: spec.write_start.unwrap_or_default(),
            media: Media {
                head: Position::default(),
                last_op: Op::Read,
                free: SimTime::ZERO,
                reading_on: None,
                destaged: SimTime::ZERO,
                destaging: SimDuration::ZERO,
                head_time: HeadTime::default(),
            },
            write_back: WriteBack::default(),
            extents: spec.buffer.as_ref().and_then(|buffer| {
                let dirty = buffer.dirty.filter(|_| buffer.write_cache == WriteCache::On)?;
                Some(Box::new(Extents::new(buffer, &dirty)))
            }),
            shares: None,
            queue_inside: CommandQueue::new(&queue, spec.duration_limits.as_ref(), drive)?,
            shingled: spec.media_cache.as_ref().map(|spec| Box::new(Shingled::new(spec))),
            limits: spec.duration_limits.as_ref().map(|limits| Box::new(Limits::new(limits))),
            queue,
            sector: spec.sector,
            processing: VecDeque::new(),
            waiting: Vec::new(),
            blocked: VecDeque::new(),
            flushes: VecDeque::new(),
            done: Vec::new(),
            inside: 0,
            now: SimTime::ZERO,
            read_end: None,
            write_end: None,
            last_op: Op::Read,
            processed: SimTime::ZERO,
            idle_from: SimTime::ZERO,
            destage_is_next: false,
            busy: Busy::default(),
            processing_time: SimDuration::ZERO,
        })
    }

    /// Drive that also reports the head time of writing back for each write.
    #[must_use]
    pub fn with_destage_shares(self) -> Self {
        Self { shares: Some(Box::default()), ..self }
    }

    /// The sequence of a write that the buffer had taken and that has been on its way to the media
    /// since this was last asked, in that order, and its head time: its part by blocks of the destage
    /// that brings it. None when there is no further one, and of a unit without
    /// [`Self::with_destage_shares`].
    pub fn destage_share(&mut self) -> Option<(u64, SimDuration)> {
        self.shares.as_mut()?.take()
    }

    /// Drive in its initial state; the contents of the media cache stay.
    #[must_use]
    pub fn restarted(&self) -> Self {
        let spec = ElectronicsSpec {
            buffer: self.buffer.is_some().then(|| self.buffer_spec.clone()),
            overheads: Some(self.overheads),
            bus: Some(self.bus_spec),
            read_write_switch: self.read_write_switch,
            write_start: Some(self.write_start),
            queue: Some(self.queue),
            sector: self.sector,
            duration_limits: self.limits.as_ref().map(|limits| limits.spec.clone()),
            media_cache: self.shingled.as_ref().map(|shingled| shingled.spec()),
        };
        // A power cut empties the buffer, but data in the media cache are on the media already.
        let new = Self::new(&self.drive, &spec).expect("its policy was built before");
        Self { shingled: self.shingled.clone(), ..new }
    }

    /// The drive's mechanics.
    pub fn drive(&self) -> &Drive {
        &self.drive
    }

    /// Position of the head after all decided work.
    #[inline]
    pub fn head(&self) -> Position {
        self.media.head
    }

    /// Commands that it holds at once.
    pub fn queue_depth(&self) -> u32 {
        self.queue.depth
    }

    /// True if the drive takes another command.
    #[inline]
    pub fn has_room(&self) -> bool {
        self.inside < self.queue.depth
    }

    /// True if the drive has commands that are not done.
    #[inline]
    pub fn has_commands(&self) -> bool {
        self.inside > 0
    }

    /// Time at which the head is done with its work that it cannot leave.
    #[inline]
    pub fn media_free(&self) -> SimTime {
        self.media.free
    }

    /// Head time of commands and destages so far, and the transfer of blocks that were read ahead and asked
    /// for; reading ahead in vain is left out.
    pub fn head_time(&self) -> HeadTime {
        self.media.head_time
    }

    /// Time that the media spent on destages so far.
    pub fn destaging(&self) -> SimDuration {
        self.media.destaging
    }

    /// Time during which a command was inside, the drive wrote back, or read ahead what the host then
    /// asked for; up to the last command that is done. Reading ahead in vain is left out.
    pub fn busy(&self) -> SimDuration {
        self.busy.total()
    }

    /// Like [`Self::busy`], with the time until `now` of commands that are inside.
    pub fn busy_until(&self, now: SimTime) -> SimDuration {
        self.busy.total_until(now)
    }

    /// Time for which the bus was taken so far.
    pub fn bus_used(&self) -> SimDuration {
        self.bus.used()
    }

    /// Time that the electronics have spent on commands before their media or buffer so far, one
    /// after the other. Completion overheads may overlap and are left out.
    pub fn processing_time(&self) -> SimDuration {
        self.processing_time
    }

    /// Takes a command at `now`; for `actuator` see [`Self::advance`]. Panics when it has no room.
    #[inline]
    pub fn submit(&mut self, now: SimTime, waiting: &Waiting, actuator: &mut impl Actuator) {
        assert!(self.has_room(), "a drive's queue has {} places", self.queue.depth);
        self.begin(now);
        // `begin` has brought the drive's own work up to now, so the command meets the buffer and the
        // head as they really are.
        self.busy.command(now);
        self.inside += 1;
        // The buffer is asked at the arrival: a hit needs no turn at the media, and its answer is known
        // at once.
        let needs_media = match waiting.target.op {
            Op::Write => self.submit_write(waiting),
            _ => self.submit_read(waiting, actuator),
        };
        if let Some(command) = needs_media {
            self.wait_for_media(&command, actuator);
        }
        // Overheads depend on the operation before. So this changes only when the command is placed.
        self.last_op = waiting.target.op;
    }

    /// Asks at `now` for everything written so far to be on the media. False when it is, else what
    /// is done then carries `sequence`. A flush takes no place in the queue.
    pub fn flush(&mut self, now: SimTime, sequence: u64) -> bool {
        self.begin(now);
        // A destage may have begun whose data are not on the media yet: an empty list is not enough.
        if self.nothing_is_dirty() && self.media.destaged <= now {
            return false;
        }
        // The newest write so far marks the end: later writes never delay the flush.
        self.flushes.push_back(Flush { sequence, submitted: now, newest: self.newest_write() });
        self.end_flushes();
        true
    }

    /// The next visible event, if no command is submitted before.
    #[inline]
    pub fn next_event(&self) -> Option<NextEvent> {
        let done = self.done.last().map(|done| done.served.end);
        match (done, self.next_decision()) {
            // At the same instant the completion goes first: the host's next command may take part in the
            // decision.
            (Some(done), Some(decision)) if decision < done => Some(NextEvent::Decision(decision)),
            (Some(done), _) => Some(NextEvent::Completion(done)),
            (None, decision) => decision.map(NextEvent::Decision),
        }
    }

    /// Lets the event at `now` happen, and returns the command that is done, if one is.
    ///
    /// Commands go to the media through the `actuator`, as soon as it is known when: that may be
    /// before it is time. Their latency is free but in reads of which the drive itself keeps the
    /// blocks that pass. Destages and reading ahead are not the actuator's business.
    #[inline]
    pub fn advance(&mut self, now: SimTime, actuator: &mut impl Actuator) -> Option<Done> {
        self.now = now;
        if let Some(NextEvent::Completion(_)) = self.next_event() {
            let done = self.done.pop()?;
            // A flush takes no place in the queue, so its end frees none.
            self.inside -= u32::from(!done.flush);
            if self.inside == 0 {
                self.busy.commands_done(now);
            }
            return Some(done);
        }
        // Work comes before aborts: a command that gets the media at its very limit has kept the limit.
        if self.next_work().is_some_and(|work| work <= now) {
            self.decide(actuator);
        } else {
            self.abort_due();
        }
        None
    }

    /// Serves one command from `now` on, when no other is inside. Panics like [`Drive::target`].
    pub fn serve(&mut self, now: SimTime, op: Op, start: Lbn, blocks: u32) -> Served {
        let target = self.drive.target(start, Blocks::new(u64::from(blocks)), op);
        self.serve_alone(&Waiting {
            target,
            arrival: now,
            sequence: 0,
            fua: false,
            mark: CommandMark::None,
        })
    }

    /// Serves this command from its arrival on, when no other is inside.
    pub fn serve_alone(&mut self, waiting: &Waiting) -> Served {
        self.submit(waiting.arrival, waiting, &mut Exact);
        loop {
            let next = self.next_event().expect("a command is inside");
            if let Some(done) = self.advance(next.time(), &mut Exact) {
                return done.served;
            }
        }
    }

    fn begin(&mut self, now: SimTime) {
        self.now = now;
        self.catch_up();
    }

    /// True if a command waits for the media, or a write for room.
    #[inline]
    fn is_pressed(&self) -> bool {
        !(self.processing.is_empty() && self.waiting.is_empty() && self.blocked.is_empty())
    }

    /// Time of the next decision: the next work of the media, or the end of a command that has waited too
    /// long.
    #[inline]
    fn next_decision(&self) -> Option<SimTime> {
        let work = self.next_work();
        match self.next_abort() {
            None => work,
            Some(abort) => {
                // A limit may have passed while the electronics were busy, but no event lies in the past.
                let abort = abort.max(self.now);
                Some(work.map_or(abort, |work| work.min(abort)))
            }
        }
    }

    /// Time at which the drive next has to decide what the media do.
    #[inline]
    fn next_work(&self) -> Option<SimTime> {
        let ready = if !self.waiting.is_empty() || self.flush_needs_media() {
            self.now
        } else {
            // Each list is in order of processing, so the first of each is ready first.
            match (front(&self.processing), front(&self.blocked)) {
                (Some(a), Some(b)) => a.min(b),
                (a, b) => a.or(b)?,
            }
        };
        // Deciding earlier than the head is free would leave out commands that still come.
        Some(ready.max(self.media.free).max(self.now))
    }

    #[inline]
    fn flush_needs_media(&self) -> bool {
        !self.flushes.is_empty() && !self.nothing_is_dirty()
    }

    /// Gives the media their next work.
    fn decide(&mut self, actuator: &mut impl Actuator) {
        // All that became ready by now competes for this turn.
        while self.processing.front().is_some_and(|command| command.ready <= self.now) {
            let command = self.processing.pop_front().expect("one is there");
            self.queue_inside.push(command.waiting, command.submitted, command.due);
            self.waiting.push(command);
        }
        // In order of arrival: a smaller write must not pass a larger one for ever.
        while let Some(&command) = self.blocked.front()
            && let Some(joins) = self.room_for(&command)
        {
            self.blocked.pop_front();
            self.end_to_wait(&command);
            self.write_to_buffer(&command, self.now, joins);
        }
        let wanted = self.flush_needs_media() || !self.blocked.is_empty() || self.has_aged();
        let may = wanted && !self.nothing_is_dirty();
        // Destages that a write waits for, or that are due, and commands take turns; those that a flush
        // waits for go first: they are at most those that the buffer held when it came.
        if may && (self.destage_is_next || self.waiting.is_empty() || !self.flushes.is_empty()) {
            self.destage_is_next = false;
            self.destage_next(self.now);
        } else if let Some(command) = self.pick() {
            self.destage_is_next = true;
            self.serve_from_media(&command, actuator);
        }
    }

    #[inline]
    fn pick(&mut self) -> Option<Command> {
        let moment = Moment { now: self.now, head: self.media.head, drive: &self.drive };
        let picked = self.queue_inside.pick(&moment)?;
        let index = self
            .waiting
            .iter()
            .position(|command| command.waiting.sequence == picked.sequence)
            .expect("what the queue holds waits");
        let command = self.waiting.swap_remove(index);
        // The policy has let go of the command; marks and limits are kept apart, and end here.
        self.queue_inside.forget(picked.sequence, command.submitted, command.due);
        self.end_to_wait(&command);
        Some(command)
    }

    /// Processing of a command that comes now: one after the other.
    #[inline]
    fn process(&mut self, waiting: &Waiting, hit: bool) -> Command {
        let op = waiting.target.op;
        let mut overhead = self.overheads.of(op, hit, self.last_op);
        if !hit {
            // A hit keeps the bus; only a command that visits the media lets go of it meanwhile.
            overhead += self.bus_spec.disconnect(op, self.last_op);
        }
        let twice = self.extra_disconnect(waiting).filter(|_| !hit);
        if let Some(extra) = twice {
            overhead = extra.movement_after;
        }
        let data_late = twice.map_or(SimDuration::ZERO, |extra| extra.data_after - overhead);
        // The electronics work on one command at a time.
        let ready = self.now.max(self.processed) + overhead;
        self.processed = ready;
        self.processing_time += overhead;
        let due = self.due(waiting, overhead);
        let (submitted, misses) = (self.now, false);
        Command { waiting: *waiting, submitted, overhead, ready, due, misses, data_late }
    }

    /// Times of a write before whose data the drive lets go of the bus, too: after a write on which it does
    /// not follow.
    fn extra_disconnect(&self, waiting: &Waiting) -> Option<ExtraDisconnectSpec> {
        let extra = self.write_start.extra_disconnect?;
        let after = self.write_end.filter(|_| waiting.target.op == Op::Write)?;
        (after != waiting.target.start).then_some(extra)
    }

    /// Serves a read from the buffer, or gives it back as a command that needs the media. A read with
    /// FUA always does, and so does one of an unreadable block.
    #[inline]
    fn submit_read(&mut self, waiting: &Waiting, actuator: &impl Actuator) -> Option<Command> {
        let pressed = self.is_pressed();
        let mut misses = false;
        let from_media = is_from_media(waiting, actuator);
        // While other commands wait, a hit may pass them only where the firmware allows it.
        if !from_media && (!pressed || self.queue.hits_out_of_turn) {
            let start = waiting.target.start;
            // A promise of reading on holds only while no command can take the head away.
            match self.held(start, waiting.target.blocks, !pressed) {
                Held::Whole { segment, there } => {
                    let command = self.process(waiting, true);
                    self.serve_from_buffer(&command, segment, there, actuator);
                    return None;
                }
                Held::Written => {
                    let command = self.process(waiting, true);
                    self.serve_from_extents(&command);
                    return None;
                }
                Held::Part { .. } => {}
                // Without a queue, no command can bring the blocks into the buffer before the command's turn.
                // Then the second look at the buffer is saved.
                Held::Nothing => misses = self.queue.depth == 1 && !self.may_be_read_on_to(start),
            }
        }
        Some(Command { misses, ..self.process(waiting, false) })
    }

    #[inline]
    fn may_be_read_on_to(&self, start: Lbn) -> bool {
        let (Some(ahead), Some(buffer)) = (&self.media.reading_on, &self.buffer) else {
            return false;
        };
        buffer.segment(ahead.segment).start <= start && start <= ahead.limit
    }

    /// Takes a write into the buffer as soon as there is room, or gives it back as a command that
    /// needs the media: it is too large for the buffer, or has FUA.
    fn submit_write(&mut self, waiting: &Waiting) -> Option<Command> {
        let spec = &self.buffer_spec;
        let cached = self.buffer.is_some() && spec.write_cache != WriteCache::Off;
        if !cached || waiting.fua || waiting.target.blocks > spec.segment_blocks {
            return Some(self.process(waiting, false));
        }
        let command = self.process(waiting, true);
        let joins = self.join(&command);
        let has_room = joins.is_some() || self.has_room_for_write(waiting, command.ready);
        // A write that waits has a right to the next room; one that joins must not pass it either.
        if has_room && self.blocked.is_empty() {
            self.write_to_buffer(&command, command.ready, joins);
        } else {
            self.begin_to_wait(&command);
            self.blocked.push_back(command);
        }
        None
    }

    /// The media serve a command when they are free and its turn has come. Where no other command
    /// can come in between, that is known already; a flush that does comes behind it.
    #[inline]
    fn wait_for_media(&mut self, command: &Command, actuator: &mut impl Actuator) {
        if self.queue.depth == 1 && self.flushes.is_empty() && command.due.is_none() {
            // One command, no limit and no flush: no other can come in between, so the future is known.
            self.now = command.ready.max(self.media.free);
            self.serve_from_media(command, actuator);
        } else {
            self.begin_to_wait(command);
            self.processing.push_back(*command);
        }
    }

    /// True if the buffer takes a write now: in the dirty segment that it joins, if there is one, or in a
    /// new one.
    fn room_for(&self, command: &Command) -> Option<Option<usize>> {
        if command.ready > self.now {
            return None;
        }
        let joins = self.join(command);
        // A joined segment is dirty already, so the write adds none to it.
        let has_room = joins.is_some() || self.has_room_for_write(&command.waiting, self.now);
        has_room.then_some(joins)
    }

    fn join(&self, command: &Command) -> Option<usize> {
        let target = &command.waiting.target;
        let end = behind(target.start, target.blocks);
        let combine = self.buffer_spec.combine_sequential_writes;
        self.write_back.joinable(self.buffer.as_ref()?, target.start, end, combine)
    }

    /// Reports a command done when its last data are across at `across`.
    #[inline]
    fn finish(
        &mut self,
        command: &Command,
        hit: bool,
        media: &Access,
        bus: SimDuration,
        across: SimTime,
    ) {
        let op = command.waiting.target.op;
        let completion = self.overheads.completion(op);
        let end = across + completion;
        let overhead = command.overhead + completion;
        // What no other stage explains is waiting, so that the stages add up exactly.
        let accounted = overhead + media.total() + bus;
        let served = Served {
            hit,
            limit: LimitEnd::Kept,
            overhead,
            queue: end - command.submitted - accounted,
            seek: media.seek,
            rotate: media.rotate,
            transfer: media.transfer,
            bus,
            end,
        };
        let served = self.within_limits(command, served);
        let target = &command.waiting.target;
        // Only a read that follows on the last one touches it; a write in between breaks the row.
        let end_of = |wanted| (op == wanted).then(|| behind(target.start, target.blocks));
        (self.read_end, self.write_end) = (end_of(Op::Read), end_of(Op::Write));
        // Hits of reads leave the media alone, so that they do not put off idle work.
        if op == Op::Write || !hit {
            self.idle_from = self.idle_from.max(end);
        }
        let sequence = command.waiting.sequence;
        self.report(Done { sequence, served, flush: false });
    }

    #[inline]
    fn report(&mut self, done: Done) {
        // Mostly one command is done at a time.
        if self.done.is_empty() {
            return self.done.push(done);
        }
        // In falling order, so that the next one is popped; equal ends go by sequence.
        let later = self
            .done
            .iter()
            .rposition(|other| {
                (other.served.end, other.sequence) > (done.served.end, done.sequence)
            })
            .map_or(0, |index| index + 1);
        self.done.insert(later, done);
    }

    /// Flushes for which the last destage has begun are done when it ends.
    fn end_flushes(&mut self) {
        while let Some(flush) = self.flushes.front() {
            if self.waits_up_to(flush.newest) {
                break;
            }
            // The last destage that the flush needs has begun; its data are safe when it ends.
            let end = self.media.destaged.max(self.now);
            let served = Served { queue: end - flush.submitted, end, ..Served::default() };
            let done = Done { sequence: flush.sequence, served, flush: true };
            self.flushes.pop_front();
            self.report(done);
        }
    }
}

fn front(queue: &VecDeque<Command>) -> Option<SimTime> {
    queue.front().map(|command| command.ready)
}

/// True if a read comes from the media, in spite of the buffer.
pub(super) fn is_from_media(waiting: &Waiting, actuator: &impl Actuator) -> bool {
    let Target { start, blocks, .. } = waiting.target;
    waiting.fua || actuator.unreadable(start, behind(start, blocks)).is_some()
}

/// Drive with command processing that takes no time. Units share a drive where they can.
fn without_overhead(drive: &Arc<Drive>) -> Arc<Drive> {
    if [Op::Read, Op::Write].iter().all(|&op| drive.overhead(op) == SimDuration::ZERO) {
        Arc::clone(drive)
    } else {
        Arc::new(drive.with_overhead(ByOp::default()))
    }
}
