//! What the media do: commands, and reading ahead and destaging on the drive's own account.

use freewheel_units::{Blocks, Op, SimDuration, SimTime};

use super::{Media, Unit};
use crate::drive::{Access, Actuator, Departure, Drive, Exact, Latency, Target};
use crate::onboard::buffer::Buffer;
use crate::onboard::write_back::Destage;
use crate::sched::PolicySpec;

impl Unit {
    /// Does what the drive would have done on its own account until now.
    #[inline]
    pub(super) fn catch_up(&mut self) {
        if !self.is_pressed() {
            self.destage_in_idle_time();
        }
        self.read_on(self.now);
    }

    pub(super) fn destage_in_idle_time(&mut self) {
        while let Some(oldest) = self.write_back.oldest() {
            let begin = oldest.ready.max(self.media.free).max(self.destage_from());
            if begin >= self.now {
                break;
            }
            self.destage_next(begin);
        }
    }

    /// From when on the drive destages without need.
    pub(super) fn destage_from(&self) -> SimTime {
        match self.buffer_spec.destage_after_idle {
            SimDuration::ZERO => SimTime::ZERO,
            idle => self.idle_from + idle,
        }
    }

    #[inline]
    pub(super) fn read_on(&mut self, now: SimTime) {
        let (Some(ahead), Some(buffer)) = (&mut self.media.reading_on, &mut self.buffer) else {
            return;
        };
        let reached = ahead.advance(&self.drive, now);
        buffer.extend(ahead.segment, reached.end);
        self.media.head = reached.head;
    }

    pub(super) fn stop_reading_on(&mut self, now: SimTime) {
        self.read_on(now);
        self.media.reading_on = None;
    }

    /// Writes a dirty segment to the media from `begin` on: the oldest, or, where the drive orders
    /// its commands, the one that is reached first of those that a flush waits for, if there is one.
    pub(super) fn destage_next(&mut self, begin: SimTime) {
        let Some(buffer) = &self.buffer else { return };
        let index = if self.queue.scheduler == PolicySpec::Fcfs {
            0
        } else {
            let newest = self.flushes.front().map_or(u64::MAX, |flush| flush.newest);
            let reach = |destage: &Destage| {
                if destage.ready > begin || destage.id > newest {
                    return u64::MAX;
                }
                let target = target_of(&self.drive, buffer, destage);
                self.drive.positioning(begin, self.media.head, &target).total().ns()
            };
            // A flush waits for what was written before it, and for nothing that came later.
            let newest = self.flushes.front().map_or(u64::MAX, |flush| flush.newest);
            self.write_back.cheapest(buffer, newest, reach).unwrap_or(0)
        };
        self.destage(index, begin);
    }

    pub(super) fn destage(&mut self, index: usize, begin: SimTime) {
        self.stop_reading_on(begin);
        let Some(buffer) = &self.buffer else { return };
        let destage = self.write_back.take(index);
        let begin = begin.max(destage.ready);
        let target = target_of(&self.drive, buffer, &destage);
        let access = self.visit_media(begin, &target, Latency::Used, &mut Exact);
        self.media.destaged = self.media.free;
        self.media.destaging += access.total();
        if let Some(buffer) = &mut self.buffer {
            if !self.buffer_spec.read_hits_on_written {
                // What was read of these blocks meanwhile is older.
                let written = *buffer.segment(destage.segment);
                buffer.forget(written.start, written.end, Some(destage.segment));
            }
            buffer.destage(destage.segment, self.media.free);
        }
        self.end_flushes();
    }

    /// Reads or writes from `begin` on.
    #[inline]
    pub(super) fn visit_media(
        &mut self,
        begin: SimTime,
        target: &Target,
        latency: Latency,
        actuator: &mut impl Actuator,
    ) -> Access {
        let Media { head: from, last_op, .. } = self.media;
        let read_write_switch = self.read_write_switch;
        let departure = Departure { begin, from, last_op, read_write_switch };
        let access = actuator.access(&self.drive, &departure, target, latency);
        self.media.head = access.end;
        self.media.free = begin + access.total();
        self.media.last_op = target.op;
        self.media.head_time.add(&access);
        access
    }
}

/// What a destage writes.
fn target_of(drive: &Drive, buffer: &Buffer, destage: &Destage) -> Target {
    let held = buffer.segment(destage.segment);
    drive.target(held.start, Blocks::new(held.end.get() - held.start.get()), Op::Write)
}
