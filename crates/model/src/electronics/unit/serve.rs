//! Service of a command: by the buffer, by the media, by both.

use freewheel_units::{Blocks, Lbn, Op, SimDuration, SimTime};

use super::{Command, DriveUnit, Held, is_from_media};
use crate::drive::{Access, Actuator, Drive, Latency, Target};
use crate::electronics::buffer::behind;
use crate::electronics::read_ahead::{self, ReadAheadState, ReadForAhead};

impl DriveUnit {
    /// Part of a read that the buffer holds; with `may_promise` also blocks that are being read ahead.
    pub(super) fn held(&self, start: Lbn, blocks: u32, may_promise: bool) -> Held {
        let Some(buffer) = &self.buffer else { return Held::Nothing };
        let written_too = self.buffer_spec.read_hits_on_written;
        let end = behind(start, blocks);
        if let Some(extents) = &self.extents {
            if written_too && extents.hold(start, end) {
                return Held::Written;
            }
            // Dirty data overlap the read in part: they must reach the media before it.
            if extents.in_the_way(start, end).is_some() {
                return Held::Nothing;
            }
        }
        let Some(segment) = buffer.holding(start, written_too) else { return Held::Nothing };
        if !written_too && self.write_back.in_the_way(buffer, start, end).is_some() {
            return Held::Nothing;
        }
        let held = buffer.segment(segment);
        if end <= held.end {
            // Written data are whole; blocks that are being read are there when the head has passed them.
            let there = if held.written { self.now } else { held.media_until };
            return Held::Whole { segment, there };
        }
        // A read that begins after the segment's data is an almost hit: it waits for reading on.
        let begun = start < held.end;
        if let Some(ahead) = &self.media.reading_on
            && may_promise
            && ahead.segment == segment
            && (begun || self.buffer_spec.almost_hits)
            && let Some(there) = ahead.promises(&self.drive, end)
        {
            return Held::Whole { segment, there };
        }
        if begun && self.buffer_spec.partial_hits && !held.written {
            Held::Part { segment, to: held.end }
        } else {
            Held::Nothing
        }
    }

    /// All of it is in the buffer, or will be at `there`.
    pub(super) fn serve_from_buffer(
        &mut self,
        command: &Command,
        segment: usize,
        there: SimTime,
        actuator: &impl Actuator,
    ) {
        let target = &command.waiting.target;
        let ready = command.ready.max(self.now);
        let wait = there.saturating_since(ready);
        let all = self.bus_spec.transfer(target.op, target.blocks);
        // What was in the buffer went over the bus while the rest came in.
        let tail = if wait > SimDuration::ZERO {
            all.saturating_sub(wait).max(self.bus_spec.block_time)
        } else {
            all
        };
        // The bus began early enough to end with the last block, but never before the command was ready.
        let from = SimTime::from_ns((ready + wait + tail).ns() - all.ns().min((wait + tail).ns()));
        let late = self.take_bus(from, all);
        let media = Access { transfer: wait, ..Access::default() };
        // The head was promised to these blocks: no other command gets it before they have come.
        self.media.free = self.media.free.max(there);
        self.count_read_ahead(target.start, target.blocks, segment);
        self.read_ahead_after_hit(target.start, target.blocks, segment, actuator);
        self.finish(command, true, &media, tail, ready + wait + tail + late);
    }

    /// The head passed over blocks read ahead in idle time; those that are asked for now for the first
    /// time were worth it.
    pub(super) fn count_read_ahead(&mut self, start: Lbn, blocks: u32, segment: usize) {
        let Some(buffer) = &mut self.buffer else { return };
        // Blocks that were delivered before count once.
        let new = buffer.deliver(segment, behind(start, blocks), blocks);
        if new > 0 {
            let end = behind(start, blocks);
            let time = passing(&self.drive, Lbn::new(end.get() - u64::from(new)), end);
            self.media.head_time.transfer += time;
            self.busy.idle_was_work(buffer.take_idle_work(segment, time));
        }
    }

    /// Takes the bus for `length` from `from` on, or as soon after as it is free: how much later.
    #[inline]
    pub(super) fn take_bus(&mut self, from: SimTime, length: SimDuration) -> SimDuration {
        if length == SimDuration::ZERO {
            return SimDuration::ZERO;
        }
        self.bus.take(self.now, from, length) - from
    }

    /// A read that the buffer served moves the limit of reading on with it, or begins it again.
    pub(super) fn read_ahead_after_hit(
        &mut self,
        start: Lbn,
        blocks: u32,
        segment: usize,
        actuator: &impl Actuator,
    ) {
        let Some(buffer) = &mut self.buffer else { return };
        buffer.use_segment(segment);
        let held = *buffer.segment(segment);
        let end = behind(start, blocks);
        let (track, segment_start, touches) = (None, held.start, self.read_end == Some(start));
        let read = ReadForAhead { track, segment_start, start, end, touches };
        let limit = read_ahead::limit(&self.drive, &self.buffer_spec, &read);
        let limit = actuator.unreadable(end, limit).unwrap_or(limit);
        if let Some(ahead) = &mut self.media.reading_on
            && ahead.segment == segment
        {
            // The limit never shrinks: the head may be there already.
            ahead.extend_limit(limit);
            self.read_on(self.now);
        } else if self.buffer_spec.read_ahead_on_hit
            && !held.written
            && !self.is_pressed()
            && limit > held.end
            && !self.shingled.as_ref().is_some_and(|shingled| shingled.has_any(held.end, limit))
        {
            // Reading on begins where the segment ends, as soon as the head is free.
            let from = self.now.max(self.media.free);
            self.stop_reading_on(from);
            let ahead = ReadAheadState::new(segment, held.end, limit, from, self.media.head);
            self.media.reading_on = Some(ahead);
        }
    }

    pub(super) fn serve_from_media(&mut self, command: &Command, actuator: &mut impl Actuator) {
        self.read_on(self.now);
        if command.waiting.target.op == Op::Write {
            // A write that gets here does not fit the buffer or has FUA.
            return self.write_to_media(command, actuator);
        }
        // With FUA a read comes from the media, even when the buffer has the same data. What the
        // buffer alone has of these blocks is written before that, as for any read of the media.
        if command.misses || is_from_media(&command.waiting, actuator) {
            return self.read_from_media(command, None, actuator);
        }
        let target = &command.waiting.target;
        // The buffer is asked again: a command before this one may have brought the blocks.
        match self.held(target.start, target.blocks, false) {
            Held::Whole { segment, there } if there <= self.now => {
                self.serve_from_buffer(command, segment, there, actuator);
            }
            Held::Written => self.serve_from_extents(command),
            Held::Part { segment, to } => {
                self.read_from_media(command, Some((segment, to)), actuator);
            }
            _ => self.read_from_media(command, None, actuator),
        }
    }

    /// A read of which the buffer has no block, or the blocks of a segment before an LBN.
    pub(super) fn read_from_media(
        &mut self,
        command: &Command,
        held: Option<(usize, Lbn)>,
        actuator: &mut impl Actuator,
    ) {
        let wanted = command.waiting.target;
        // The rest of its sectors comes with it.
        let end = behind(wanted.start, wanted.blocks);
        let (start, end) = self.sector.sectors().cover(wanted.start, end);
        let target = match held {
            Some((_, to)) => self.drive.target(to, Blocks::new(end.get() - to.get()), Op::Read),
            None => wanted,
        };
        let begin = self.make_way(start, end);
        // A drive that keeps what passes while it waits does not leave the track meanwhile.
        let keeps = self.buffer.is_some() && self.buffer_spec.keep_free_blocks_before;
        let latency = if keeps { Latency::Used } else { Latency::Free };
        let access = self.visit_media(begin, &target, latency, actuator);
        // The media's part ends here; the bus may need longer, and the head does not wait for it.
        let media_end = self.media.free;
        let tail = self.bus_behind_read(&access, wanted.blocks, target.blocks);
        let late = self.take_bus_of_read(begin, media_end + tail, wanted.blocks);
        // The blocks of a failed read are not kept, and the drive does not read on behind it.
        if actuator.unreadable(start, end).is_none() {
            self.fill(start, end, held, &access, media_end, actuator);
        }
        self.finish(command, false, &access, tail, media_end + tail + late);
    }

    /// Time of the bus after the end of the media's part: block after block goes over as it comes in,
    /// so a bus slower than the media is busy from the first block on, a faster one has only the last
    /// left. What the buffer held already goes over while the arm moves.
    #[inline]
    pub(super) fn bus_behind_read(
        &self,
        access: &Access,
        blocks: u32,
        from_media: u32,
    ) -> SimDuration {
        let all = self.bus_spec.reconnect + self.bus_spec.transfer(Op::Read, blocks);
        let marked = u64::from(blocks) * u64::from(self.bus_spec.read_water_mark);
        let marked = marked.div_ceil(100).saturating_sub((blocks - from_media).into());
        if marked > 0 {
            // It takes the bus when this number of blocks have come from the media, and then does not wait
            // for them.
            let left = u64::from(from_media) - marked;
            let until_end = access.transfer * left / u64::from(from_media);
            return all.saturating_sub(until_end).max(self.bus_spec.block_time);
        }
        // Only blocks of the media can hold the bus up; those of the buffer went before.
        let new = self.bus_spec.reconnect + self.bus_spec.transfer(Op::Read, from_media);
        let behind_new = new.saturating_sub(access.transfer);
        behind_new.max(all.saturating_sub(access.total())).max(self.bus_spec.block_time)
    }

    /// Takes the bus for the data of a read that are over at `end`; where it keeps the bus all the
    /// time, from `begin` on.
    #[inline]
    pub(super) fn take_bus_of_read(
        &mut self,
        begin: SimTime,
        end: SimTime,
        blocks: u32,
    ) -> SimDuration {
        let all = self.bus_spec.reconnect + self.bus_spec.transfer(Op::Read, blocks);
        // The bus cannot be taken from before the command began.
        let longest = end - begin;
        let length = if self.bus_spec.hold { longest } else { all.min(longest) };
        self.take_bus(SimTime::from_ns(end.ns() - length.ns()), length)
    }

    /// Keeps what was read, and begins to read on.
    pub(super) fn fill(
        &mut self,
        start: Lbn,
        end: Lbn,
        held: Option<(usize, Lbn)>,
        access: &Access,
        media_end: SimTime,
        actuator: &impl Actuator,
    ) {
        let track = self.drive.layout().plain_track_bounds(start);
        let first = self.first_free_block(start, track, access, actuator);
        if held.is_none() {
            self.return_segments();
        }
        let Some(buffer) = &mut self.buffer else { return };
        let segment = match held {
            Some((segment, to)) => {
                // Blocks are in one segment at most, so that a later write cannot miss a second copy.
                buffer.forget(to, end, Some(segment));
                buffer.use_segment(segment);
                segment
            }
            None => {
                buffer.forget(first, end, None);
                // All segments may hold dirty data: then no block of the read is kept.
                let Some(segment) = buffer.claim(self.now, first, end, false) else { return };
                segment
            }
        };
        buffer.extend(segment, end);
        buffer.deliver(segment, end, 0);
        buffer.engage(segment, media_end);
        let segment_start = buffer.segment(segment).start;
        let touches = self.read_end == Some(start);
        let read = ReadForAhead { track, segment_start, start, end, touches };
        let limit = read_ahead::limit(&self.drive, &self.buffer_spec, &read);
        let limit = actuator.unreadable(end, limit).unwrap_or(limit);
        // Blocks in the media cache lie elsewhere, so that the head does not pass them.
        if limit <= end || self.is_moved(start, limit) {
            return;
        }
        let ahead = ReadAheadState::new(segment, end, limit, media_end, access.end);
        if self.buffer_spec.read_ahead_min_blocks > 0 {
            let least = read_ahead::least(&self.buffer_spec, end).min(limit);
            // The drive finishes its least read-ahead before it turns to another command.
            self.media.free = ahead.time_of(&self.drive, least);
        }
        self.media.reading_on = Some(ahead);
    }

    /// The first of the blocks that passed on the same track just before the wanted ones, after the last
    /// unreadable one. `track` has the bounds of a plain track.
    pub(super) fn first_free_block(
        &self,
        start: Lbn,
        track: Option<(Lbn, Lbn)>,
        access: &Access,
        actuator: &impl Actuator,
    ) -> Lbn {
        if !self.buffer_spec.keep_free_blocks_before {
            return start;
        }
        let (first, end) = track.unwrap_or_else(|| self.drive.layout().track_bounds(start));
        // The blocks of a whole track, where slips and spares are few.
        let on_track = (end.get() - first.get()) as u32;
        let passed = self.drive.rotation().parts_passing(access.rotate, on_track);
        let before = start.get() - first.get();
        let mut first = Lbn::new(start.get() - passed.min(before));
        while let Some(unreadable) = actuator.unreadable(first, start) {
            first = behind(unreadable, 1);
        }
        // A block in the media cache did not pass there.
        if self.is_moved(first, behind(start, 1)) { start } else { first }
    }

    /// The buffer takes a write for which it has room from `room` on, in the dirty segment `joins` or
    /// in a new one.
    pub(super) fn write_to_buffer(
        &mut self,
        command: &Command,
        room: SimTime,
        joins: Option<usize>,
    ) {
        let bus = self.bus_spec.transfer(Op::Write, command.waiting.target.blocks);
        let late = self.take_bus(room, bus);
        let in_buffer = room + late + bus;
        if self.buffer_spec.write_stops_read_ahead
            && let Some(ahead) = &mut self.media.reading_on
        {
            // Such drives stop reading on at a write, though the head is not needed yet.
            ahead.stop_at(command.ready);
        }
        self.keep_written(command, room, in_buffer, joins);
        self.finish(command, true, &Access::default(), bus, in_buffer);
    }

    pub(super) fn keep_written(
        &mut self,
        command: &Command,
        room: SimTime,
        in_buffer: SimTime,
        joins: Option<usize>,
    ) {
        let target = &command.waiting.target;
        let (start, end) = (target.start, behind(target.start, target.blocks));
        let Some(buffer) = &mut self.buffer else { return };
        if self
            .media
            .reading_on
            .is_some_and(|ahead| buffer.segment(ahead.segment).start < end && start < ahead.limit)
        {
            self.media.reading_on = None;
        }
        // Older copies of these blocks would answer later reads.
        buffer.forget(start, end, joins);
        let destage = if self.extents.is_some() {
            self.write_to_extents(&command.waiting, room, in_buffer)
        } else if let Some(segment) = joins {
            buffer.join(segment, start, end);
            let held = buffer.segment(segment);
            let blocks = Blocks::new(held.end.get() - held.start.get());
            // The joined segment is written as one: its target covers the blocks of both writes.
            let target = self.drive.target(held.start, blocks, Op::Write);
            Some(self.write_back.postpone(segment, in_buffer, target))
        } else if let Some(segment) = buffer.claim(room, start, end, true) {
            // The write has claimed the segment that reading on was filling.
            if self.media.reading_on.is_some_and(|ahead| ahead.segment == segment) {
                self.media.reading_on = None;
            }
            Some(self.write_back.push(segment, in_buffer, *target))
        } else {
            None
        };
        if let (Some(shares), Some(destage)) = (&mut self.shares, destage) {
            shares.joined(destage, command.waiting.sequence, target.blocks);
        }
    }

    pub(super) fn write_to_media(&mut self, command: &Command, actuator: &mut impl Actuator) {
        let target = command.waiting.target;
        let end = behind(target.start, target.blocks);
        let begin = self.make_way(target.start, end);
        let longer = self.seek_is_longer(&target, begin);
        // A write keeps no blocks that pass, so its latency is free for other work.
        let access = self.visit_media(begin + longer, &target, Latency::Free, actuator);
        self.media.head_time.seek += longer;
        let access = Access { seek: access.seek + longer, ..access };
        if let Some(buffer) = &mut self.buffer {
            buffer.forget(target.start, end, None);
        }
        if let Some(extents) = &mut self.extents {
            extents.forget(target.start, end);
        }
        // Data come over the bus while the arm moves.
        let transfer = self.bus_spec.transfer(target.op, target.blocks);
        let length = if self.bus_spec.hold { transfer.max(access.total()) } else { transfer };
        let late = command.data_late + self.take_bus(begin + command.data_late, length);
        // A command that waited for the media had its data sent meanwhile.
        let ahead = begin.saturating_since(command.ready);
        let waited = self.wait_for_data(&access, target.blocks, late + transfer, ahead);
        // Waiting for data shows as rotation: the head stays on the track for whole turns.
        let access = Access { rotate: access.rotate + waited, ..access };
        // All data were there when the last block passed; a command that keeps the bus has waited for it.
        let tail = if self.bus_spec.hold {
            (late + length).saturating_sub(access.total())
        } else {
            SimDuration::ZERO
        };
        self.finish(command, false, &access, tail, self.media.free + tail);
    }

    /// Time by which the movement before a write takes longer than its seek.
    fn seek_is_longer(&self, target: &Target, begin: SimTime) -> SimDuration {
        let least = self.write_start.seek_at_least;
        if least == SimDuration::ZERO || self.write_end == Some(target.start) {
            return SimDuration::ZERO;
        }
        // A target of a queue in order of arrival has no place.
        let placed = self.drive.target(target.start, Blocks::new(target.blocks.into()), Op::Write);
        let seek = self.drive.travel(&self.departure(begin), placed.at, Op::Write, 0);
        least.saturating_sub(seek)
    }

    /// A block that is not in the buffer when its place passes is written a turn later. `until_all` is how long
    /// all take that begin to come with the access; they have begun `ahead` of it. The first and the last are
    /// those that may be late, as both media and bus take the same time for each.
    fn wait_for_data(
        &mut self,
        access: &Access,
        blocks: u32,
        until_all: SimDuration,
        ahead: SimDuration,
    ) -> SimDuration {
        let others = u64::from(blocks.max(1) - 1);
        let until_first = until_all.saturating_sub(self.bus_spec.of_block(Op::Write) * others);
        let [until_all, until_first] =
            [until_all, until_first].map(|time| time.saturating_sub(ahead));
        let passes = access.total().saturating_sub(access.transfer);
        let last_passes = passes + access.transfer * others / u64::from(blocks.max(1));
        // Either end may be the one that is late; between them both advance evenly.
        let late = until_first.saturating_sub(passes).max(until_all.saturating_sub(last_passes));
        if late == SimDuration::ZERO {
            return late;
        }
        let turn = self.drive.rotation().period();
        // A sector that has passed comes again after a whole turn, never sooner.
        let waited = turn * late.ns().div_ceil(turn.ns());
        self.media.head_time.add(&Access { rotate: waited, ..Access::default() });
        self.media.free += waited;
        waited
    }

    /// Ends reading on, and writes out what waits in the buffer of the blocks `start..end`: when
    /// the media are free for the command.
    pub(super) fn make_way(&mut self, start: Lbn, end: Lbn) -> SimTime {
        self.media.reading_on = None;
        let mut begin = self.now;
        while let Some(buffer) = &self.buffer
            && let Some(segment) = self.write_back.in_the_way(buffer, start, end)
        {
            self.destage(segment, begin);
            begin = self.media.free;
        }
        while let Some(id) =
            self.extents.as_ref().and_then(|extents| extents.in_the_way(start, end))
        {
            self.destage_extent(id, begin);
            begin = self.media.free;
        }
        begin
    }
}

/// Time for which the head is over these blocks. A track of few has as long ones as any other of its zone.
fn passing(drive: &Drive, start: Lbn, end: Lbn) -> SimDuration {
    let (layout, turn_ns) = (drive.layout(), drive.rotation().period().ns());
    let (mut at, mut ns) = (start, 0);
    while at < end {
        // Track by track, as the number of blocks on a track differs from zone to zone.
        let behind_run = layout.track_bounds(at).1.min(end);
        let zone = &layout.zones()[layout.run(at, 1).zone];
        let on_track = u64::from(zone.blocks_per_track());
        ns += turn_ns * (behind_run.get() - at.get()) / on_track;
        at = behind_run;
    }
    SimDuration::from_ns(ns)
}
