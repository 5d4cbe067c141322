//! A drive with its electronics: commands in one by one, times out.
//!
//! What the drive does on its own account between commands (reading on, destaging) is worked out
//! when the next command comes: nothing happens in between that anybody could see.

use std::collections::VecDeque;

use freewheel_units::{Blocks, Lbn, Op, SimDuration, SimTime};

use super::buffer::{Buffer, behind};
use super::read_ahead::{self, ReadingOn};
use super::spec::{AfterOp, BufferSpec, BusSpec, OnboardSpec, OverheadSpec, WriteCache};
use crate::drive::{Access, Drive, Position};

/// A drive with its electronics, and what it remembers.
#[derive(Debug, Clone)]
pub struct Unit {
    drive: Drive,
    buffer_spec: BufferSpec,
    overheads: OverheadSpec,
    bus: BusSpec,
    buffer: Option<Buffer>,
    head: Position,
    /// When the head is done with what cannot be interrupted.
    media_free: SimTime,
    reading_on: Option<ReadingOn>,
    destages: VecDeque<Destage>,
    last_op: Op,
    last_command_end: SimTime,
}

/// Written blocks on their way to the media.
#[derive(Debug, Clone, Copy)]
struct Destage {
    segment: usize,
    /// When all of them were in the buffer.
    ready: SimTime,
}

/// How a command was served. The stages add up to the time from its start to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Served {
    /// Whether the buffer alone served it.
    pub hit: bool,
    /// Command processing, at the beginning and at the end.
    pub overhead: SimDuration,
    /// Waiting for the drive's own work on the media.
    pub queue: SimDuration,
    /// Moving the arm, changing heads, settling.
    pub seek: SimDuration,
    /// Waiting for the wanted sectors.
    pub rotate: SimDuration,
    /// Wanted sectors under the head.
    pub transfer: SimDuration,
    /// Moving data over the bus beyond what the media's part hides.
    pub bus: SimDuration,
    /// When it was done.
    pub end: SimTime,
}

impl Unit {
    /// A drive with this electronics, its buffer empty and its head at rest.
    pub fn new(drive: Drive, spec: &OnboardSpec) -> Self {
        let buffer_spec = spec.buffer.clone().unwrap_or_default();
        Self {
            drive,
            buffer: spec.buffer.as_ref().map(Buffer::new),
            buffer_spec,
            overheads: spec.overheads.unwrap_or_default(),
            bus: spec.bus.unwrap_or_default(),
            head: Position::default(),
            media_free: SimTime::ZERO,
            reading_on: None,
            destages: VecDeque::new(),
            last_op: Op::Read,
            last_command_end: SimTime::ZERO,
        }
    }

    /// The drive.
    pub fn drive(&self) -> &Drive {
        &self.drive
    }

    /// Serves a command that begins at `now`, after the end of the one before. Panics like
    /// [`Drive::target`].
    pub fn serve(&mut self, now: SimTime, op: Op, start: Lbn, blocks: u32) -> Served {
        self.catch_up(now);
        let served = match op {
            Op::Write => self.write(now, start, blocks),
            _ => self.read(now, start, blocks),
        };
        self.last_op = op;
        self.last_command_end = served.end;
        served
    }

    fn after(&self, by: &AfterOp) -> SimDuration {
        if self.last_op == Op::Write { by.after_write } else { by.after_read }
    }

    /// Does what the drive would have done on its own account until `now`.
    fn catch_up(&mut self, now: SimTime) {
        while let Some(destage) = self.destages.front() {
            let idle = self.last_command_end + self.buffer_spec.destage_after_idle;
            let begin = destage.ready.max(self.media_free).max(idle);
            if begin >= now {
                break;
            }
            self.destage_next(begin);
        }
        self.read_on(now);
    }

    fn read_on(&mut self, now: SimTime) {
        let (Some(reading_on), Some(buffer)) = (&mut self.reading_on, &mut self.buffer) else {
            return;
        };
        let reached = reading_on.advance(&self.drive, now);
        buffer.extend(reading_on.segment, reached.end);
        self.head = reached.head;
    }

    fn stop_reading_on(&mut self, now: SimTime) {
        self.read_on(now);
        self.reading_on = None;
    }

    /// Writes the oldest dirty segment to the media from `begin` on.
    fn destage_next(&mut self, begin: SimTime) {
        self.stop_reading_on(begin);
        let (Some(destage), Some(buffer)) = (self.destages.pop_front(), &mut self.buffer) else {
            return;
        };
        let segment = buffer.segment(destage.segment);
        let blocks = Blocks::new(segment.end.get() - segment.start.get());
        let target = self.drive.target(segment.start, blocks, Op::Write);
        let access = self.drive.media_access(begin, self.head, &target);
        self.head = access.end;
        self.media_free = begin + access.total();
        buffer.clean(destage.segment);
    }

    fn read(&mut self, now: SimTime, start: Lbn, blocks: u32) -> Served {
        let end = behind(start, blocks);
        let written_too = self.buffer_spec.read_hits_on_written;
        let holding = self.buffer.as_ref().and_then(|b| b.holding(start, written_too));
        let Some(segment) = holding else { return self.read_miss(now, start, blocks) };
        let held_to = self.buffer.as_ref().map_or(start, |b| b.segment(segment).end);
        if end <= held_to {
            return self.read_hit(now, segment, start, blocks, now);
        }
        match self.reading_on {
            Some(ahead) if ahead.segment == segment && end <= ahead.limit => {
                let there = ahead.time_of(&self.drive, end);
                self.read_hit(now, segment, start, blocks, there)
            }
            _ => self.read_miss(now, start, blocks),
        }
    }

    /// All of it is in the buffer, or will be at `there` because the drive is reading on.
    fn read_hit(
        &mut self,
        now: SimTime,
        segment: usize,
        start: Lbn,
        blocks: u32,
        there: SimTime,
    ) -> Served {
        let overhead = self.after(&self.overheads.read_hit);
        let ready = now + overhead;
        let wait = there.saturating_since(ready);
        let bus = self.bus.arbitration + self.bus.block_time * u64::from(blocks);
        // What was in the buffer went over the bus while the rest came in.
        let last = self.bus.block_time;
        let bus = if wait > SimDuration::ZERO { bus.saturating_sub(wait).max(last) } else { bus };
        let end = ready + wait + bus + self.overheads.read_completion;
        if let Some(buffer) = &mut self.buffer {
            buffer.use_segment(segment);
        }
        self.extend_reading_on(segment, behind(start, blocks), there.max(now));
        Served {
            hit: true,
            overhead: overhead + self.overheads.read_completion,
            queue: SimDuration::ZERO,
            seek: SimDuration::ZERO,
            rotate: SimDuration::ZERO,
            transfer: wait,
            bus,
            end,
        }
    }

    /// A read that the buffer served moves the limit of reading on with it.
    fn extend_reading_on(&mut self, segment: usize, end: Lbn, now: SimTime) {
        self.read_on(now);
        let Some(buffer) = &self.buffer else { return };
        let held = *buffer.segment(segment);
        if let Some(ahead) = &mut self.reading_on
            && ahead.segment == segment
        {
            let limit = read_ahead::limit(&self.drive, &self.buffer_spec, held.start, end);
            ahead.limit = ahead.limit.max(limit);
        }
    }

    fn read_miss(&mut self, now: SimTime, start: Lbn, blocks: u32) -> Served {
        let overhead = self.after(&self.overheads.read_miss);
        let ready = now + overhead + self.bus.disconnect;
        self.stop_reading_on(ready);
        let begin = ready.max(self.media_free);
        let target = self.drive.target(start, Blocks::new(u64::from(blocks)), Op::Read);
        let access = self.drive.media_access(begin, self.head, &target);
        let media_end = begin + access.total();
        self.head = access.end;
        self.media_free = media_end;
        let bus = self.bus_behind_read(&access, blocks);
        self.fill(start, blocks, &access, media_end);
        Served {
            hit: false,
            overhead: overhead + self.bus.disconnect + self.overheads.read_completion,
            queue: begin - ready,
            seek: access.seek,
            rotate: access.rotate,
            transfer: access.transfer,
            bus,
            end: media_end + bus + self.overheads.read_completion,
        }
    }

    /// Time of the bus behind the end of the media's part: block after block goes over as it comes
    /// in, so a bus slower than the media is busy from the first block on, a faster one has only
    /// the last left.
    fn bus_behind_read(&self, access: &Access, blocks: u32) -> SimDuration {
        let block = self.bus.block_time;
        let start = self.bus.reconnect + self.bus.arbitration;
        let all = block * u64::from(blocks) + start;
        if self.bus.store_and_forward {
            return all;
        }
        all.saturating_sub(access.transfer).max(block)
    }

    /// Keeps what was read, and begins to read on.
    fn fill(&mut self, start: Lbn, blocks: u32, access: &Access, media_end: SimTime) {
        let first = self.first_free_block(start, access);
        let end = behind(start, blocks);
        let Some(buffer) = &mut self.buffer else { return };
        buffer.forget(first, end, None);
        let Some(segment) = buffer.claim(first, first, false) else { return };
        buffer.extend(segment, end);
        let limit = read_ahead::limit(&self.drive, &self.buffer_spec, first, end);
        self.reading_on =
            (limit > end).then(|| ReadingOn::new(segment, end, limit, media_end, access.end));
    }

    /// The first of the blocks that passed on the same track just before the wanted ones.
    fn first_free_block(&self, start: Lbn, access: &Access) -> Lbn {
        if !self.buffer_spec.keep_free_blocks_before {
            return start;
        }
        let place = self.drive.layout().locate(start);
        let Some(zone) = self.drive.layout().zone_at(place.cylinder) else { return start };
        let sectors = u64::from(self.drive.layout().zones()[zone].blocks_per_track());
        let passed = access.rotate.ns() * sectors / self.drive.rotation().period().ns();
        let before = start.get() - self.drive.layout().track_first(start).get();
        Lbn::new(start.get() - passed.min(before))
    }

    fn write(&mut self, now: SimTime, start: Lbn, blocks: u32) -> Served {
        let cached = self.buffer_spec.write_cache != WriteCache::Off;
        let fits = blocks <= self.buffer_spec.segment_blocks;
        if cached && fits && self.buffer.is_some() {
            self.write_to_buffer(now, start, blocks)
        } else {
            self.write_to_media(now, start, blocks)
        }
    }

    fn write_to_buffer(&mut self, now: SimTime, start: Lbn, blocks: u32) -> Served {
        let overhead = self.after(&self.overheads.write_hit);
        let ready = now + overhead;
        let joins = self.join(start, blocks);
        let room = if joins.is_some() { ready } else { self.wait_for_write_segment(ready) };
        let bus = self.bus.arbitration + self.bus.block_time * u64::from(blocks);
        let in_buffer = room + bus;
        if self.buffer_spec.write_stops_read_ahead {
            self.stop_reading_on(ready);
        }
        self.keep_written(start, blocks, joins, in_buffer);
        let completion = self.overheads.write_completion;
        Served {
            hit: true,
            overhead: overhead + completion,
            queue: room - ready,
            seek: SimDuration::ZERO,
            rotate: SimDuration::ZERO,
            transfer: SimDuration::ZERO,
            bus,
            end: in_buffer + completion,
        }
    }

    fn join(&self, start: Lbn, blocks: u32) -> Option<usize> {
        let joinable = self.buffer.as_ref()?.joinable(start, u64::from(blocks));
        joinable.filter(|_| self.buffer_spec.combine_sequential_writes)
    }

    fn keep_written(&mut self, start: Lbn, blocks: u32, joins: Option<usize>, ready: SimTime) {
        let end = behind(start, blocks);
        let Some(buffer) = &mut self.buffer else { return };
        if self.reading_on.is_some_and(|ahead| {
            let held = buffer.segment(ahead.segment);
            held.start < end && start < ahead.limit
        }) {
            self.reading_on = None;
        }
        buffer.forget(start, end, joins);
        let Some(segment) = joins else {
            if let Some(segment) = buffer.claim(start, end, true) {
                if self.reading_on.is_some_and(|ahead| ahead.segment == segment) {
                    self.reading_on = None;
                }
                self.destages.push_back(Destage { segment, ready });
            }
            return;
        };
        buffer.extend(segment, end);
        buffer.use_segment(segment);
        if let Some(destage) = self.destages.iter_mut().find(|d| d.segment == segment) {
            destage.ready = ready;
        }
    }

    /// When a write segment is free, from `ready` on: destages as many as it takes.
    fn wait_for_write_segment(&mut self, ready: SimTime) -> SimTime {
        let most = match self.buffer_spec.write_cache {
            WriteCache::Sequential => 1,
            _ => self.buffer_spec.write_segments as usize,
        };
        let mut now = ready;
        while self.buffer.as_ref().is_some_and(|b| b.dirty_segments() >= most) {
            let Some(destage) = self.destages.front() else { break };
            self.destage_next(now.max(destage.ready).max(self.media_free));
            now = now.max(self.media_free);
        }
        // A destage under way still holds its segment.
        if most == 1 { now.max(self.media_free) } else { now }
    }

    fn write_to_media(&mut self, now: SimTime, start: Lbn, blocks: u32) -> Served {
        let overhead = self.after(&self.overheads.write_miss);
        let ready = now + overhead + self.bus.disconnect;
        self.stop_reading_on(ready);
        let begin = ready.max(self.media_free);
        let target = self.drive.target(start, Blocks::new(u64::from(blocks)), Op::Write);
        let access = self.drive.media_access(begin, self.head, &target);
        self.head = access.end;
        self.media_free = begin + access.total();
        if let Some(buffer) = &mut self.buffer {
            buffer.forget(start, behind(start, blocks), None);
        }
        // Data comes over the bus while the arm moves; what does not fit into that is left.
        let bus = self.bus.arbitration + self.bus.block_time * u64::from(blocks);
        let bus = bus.saturating_sub(access.total());
        let completion = self.overheads.write_completion;
        Served {
            hit: false,
            overhead: overhead + self.bus.disconnect + completion,
            queue: begin - ready,
            seek: access.seek,
            rotate: access.rotate,
            transfer: access.transfer,
            bus,
            end: self.media_free + bus + completion,
        }
    }
}
