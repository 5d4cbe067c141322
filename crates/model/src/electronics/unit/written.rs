//! Written data of the buffer, in segments or in extents.

use freewheel_units::{Blocks, Op, SimTime};

use super::{Command, DriveUnit};
use crate::drive::{Access, Positionings};
use crate::electronics::buffer::{Buffer, behind};
use crate::electronics::extents::Extents;
use crate::sched::{PolicySpec, Waiting};
use crate::spec::electronics::WriteCache;

impl DriveUnit {
    /// Blocks written to the buffer that are not on the media, nor on the way there.
    pub fn dirty_blocks(&self) -> Blocks {
        let in_extents =
            self.extents.as_ref().map_or(Blocks::ZERO, |extents| extents.dirty_blocks());
        self.buffer.as_ref().map_or(Blocks::ZERO, Buffer::dirty_blocks) + in_extents
    }

    /// Number of the last write that the buffer has taken.
    pub fn newest_write(&self) -> u64 {
        match &self.extents {
            Some(extents) => extents.newest_id(),
            None => self.write_back.newest_id(),
        }
    }

    /// True if everything up to a write that the buffer has taken is known to be on the media at `now`.
    /// What the drive has done since its last command is not known.
    pub fn is_written(&self, write: u64, now: SimTime) -> bool {
        !self.waits_up_to(write) && self.media.destaged <= now
    }

    #[inline]
    pub(super) fn waits_up_to(&self, write: u64) -> bool {
        match &self.extents {
            Some(extents) => extents.waits_up_to(write),
            None => self.write_back.waits_up_to(write),
        }
    }

    #[inline]
    pub(super) fn nothing_is_dirty(&self) -> bool {
        // One of the two is always empty: a drive keeps written data in segments or in extents.
        self.write_back.is_empty() && self.extents.as_ref().is_none_or(|extents| extents.is_empty())
    }

    /// Time at which the data that have waited longest for the media are all in the buffer.
    #[inline]
    pub(super) fn oldest_ready(&self) -> Option<SimTime> {
        match &self.extents {
            Some(extents) => extents.oldest().map(|oldest| oldest.ready),
            None => self.write_back.oldest().map(|oldest| oldest.ready),
        }
    }

    /// True if written data have waited for the media as long as they may.
    #[inline]
    pub(super) fn has_aged(&self) -> bool {
        self.extents.as_ref().is_some_and(|extents| extents.has_aged(self.now))
    }

    /// True if the buffer has room at `at` for a write that joins no segment.
    pub(super) fn has_room_for_write(&self, write: &Waiting, at: SimTime) -> bool {
        let Some(buffer) = &self.buffer else { return false };
        if let Some(extents) = &self.extents {
            let (start, end) =
                (write.target.start, behind(write.target.start, write.target.blocks));
            // Extents borrow the memory of clean segments; dirty ones cannot be lent.
            let segments = extents.room_for(start, end, at);
            return segments.is_some_and(|more| more == 0 || more <= buffer.clean_segments(at));
        }
        let most = match self.buffer_spec.write_cache {
            // Such a drive keeps one row of writes at a time.
            WriteCache::Sequential => 1,
            _ => self.buffer_spec.write_segments as usize,
        };
        buffer.has_room_for_write(at, most)
    }

    /// Keeps a write in extents, for which there is room at `room` and whose data are there at
    /// `in_buffer`: the number of its extent.
    pub(super) fn write_to_extents(
        &mut self,
        write: &Waiting,
        room: SimTime,
        in_buffer: SimTime,
    ) -> Option<u64> {
        let (extents, buffer) = (self.extents.as_mut()?, self.buffer.as_mut()?);
        let (start, end) = (write.target.start, behind(write.target.start, write.target.blocks));
        for _ in 0..extents.room_for(start, end, room).unwrap_or(0) {
            let Some(segment) = buffer.lend(room) else { break };
            extents.borrow_segment(segment);
            // A lent segment cannot be filled by reading on any more.
            if self.media.reading_on.is_some_and(|ahead| ahead.segment == segment) {
                self.media.reading_on = None;
            }
        }
        let drive = &self.drive;
        let (id, merged) = extents.write(start, end, room, in_buffer, |start, blocks| {
            drive.target(start, blocks, Op::Write)
        });
        if let Some(shares) = &mut self.shares {
            // Extents that have merged reach the media together: their writes share one destage.
            merged.iter().for_each(|&other| shares.merged(other, id));
        }
        Some(id)
    }

    /// Gives segments back that extents do not need now.
    pub(super) fn return_segments(&mut self) {
        let (Some(extents), Some(buffer)) = (&mut self.extents, &mut self.buffer) else { return };
        while let Some(segment) = extents.return_segment(self.now) {
            buffer.take_back(segment);
        }
    }

    /// All of a read is in extents.
    pub(super) fn serve_from_extents(&mut self, command: &Command) {
        let bus = self.bus_spec.transfer(Op::Read, command.waiting.target.blocks);
        let ready = command.ready.max(self.now);
        let late = self.take_bus(ready, bus);
        self.finish(command, true, &Access::default(), bus, ready + late + bus);
    }

    /// The extent that goes to the media next if that is at `begin`, of those up to `newest`.
    pub(super) fn next_extent(
        &self,
        extents: &Extents,
        begin: SimTime,
        newest: u64,
    ) -> Option<u64> {
        if self.queue.scheduler == PolicySpec::Fcfs {
            return extents.oldest().map(|oldest| oldest.id);
        }
        let (drive, head) = (&self.drive, self.media.head);
        let from_head = Positionings::new(drive, begin, head);
        extents.cheapest(
            begin,
            newest,
            head.cylinder,
            |distance| drive.seek().floor_for_ns(Op::Write, distance),
            |id, candidate, most| {
                // The bound is cheap and never too high, so that most extents need no exact time.
                let may_win =
                    candidate.ready <= begin && from_head.bound_ns(&candidate.start) <= most;
                may_win.then(|| from_head.total_ns(&candidate.start, || extents.target(id)))
            },
        )
    }

    /// Writes an extent to the media from `begin` on.
    pub(super) fn destage_extent(&mut self, id: u64, begin: SimTime) {
        let Some(extents) = &mut self.extents else { return };
        let extent = extents.take(id);
        self.stop_reading_on(begin);
        self.write_out(begin.max(extent.ready), id, &extent.target);
        if let Some(extents) = &mut self.extents {
            // The data stay in memory for reads until their room is needed.
            extents.keep(&extent, self.media.free);
        }
        self.end_flushes();
    }
}
