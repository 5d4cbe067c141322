//! Activity of the media: commands, and reading ahead and destaging on the drive's own account.

use freewheel_units::{Op, SimDuration, SimTime};

use super::{DriveUnit, Media};
use crate::drive::{
    Access, Actuator, Departure, Exact, Latency, Position, Positionings, RunStart, Target,
};
use crate::sched::PolicySpec;

impl DriveUnit {
    /// Does what the drive would have done on its own account until now.
    #[inline]
    pub(super) fn catch_up(&mut self) {
        if !self.is_pressed() {
            self.destage_in_idle_time();
            self.clean_in_idle_time();
        }
        self.read_on(self.now);
    }

    pub(super) fn destage_in_idle_time(&mut self) {
        while let Some(ready) = self.oldest_ready() {
            // All three must hold: the data are in the buffer, the head is free, and the drive is idle for
            // long enough.
            let begin = ready.max(self.media.free).max(self.destage_from());
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
        // Reading on has no events: its progress is computed when it is asked for.
        let reached = ahead.advance(&self.drive, now);
        buffer.extend(ahead.segment, reached.end);
        self.media.head = reached.head;
        let (begin, end) = ahead.take_time(now);
        // The time counts as work only if the host asks for these blocks later.
        buffer.add_idle_work(ahead.segment, self.busy.idle_within(begin, end));
        if ahead.is_stopped(now) {
            self.media.reading_on = None;
        }
    }

    pub(super) fn stop_reading_on(&mut self, now: SimTime) {
        self.read_on(now);
        self.media.reading_on = None;
    }

    /// Writes a dirty segment to the media from `begin` on: the oldest, or, where the drive orders
    /// its commands, the one that is reached first of those that a flush waits for, if there is one.
    pub(super) fn destage_next(&mut self, begin: SimTime) {
        let Some(buffer) = &self.buffer else { return };
        // A flush waits for earlier writes only.
        let newest = self.flushes.front().map_or(u64::MAX, |flush| flush.newest);
        if let Some(extents) = &self.extents {
            // A drive has written data in extents or in segments, never in both.
            if let Some(id) = self.next_extent(extents, begin, newest) {
                self.destage_extent(id, begin);
            }
            return;
        }
        let oldest = self.write_back.oldest().map(|destage| destage.segment);
        let next = if self.queue.scheduler == PolicySpec::Fcfs {
            oldest
        } else {
            let (drive, head) = (&self.drive, self.media.head);
            let from_head = Positionings::new(drive, begin, head);
            // A lower bound of the seek lets the search end at the first cylinder that cannot win.
            self.write_back
                .cheapest(
                    buffer,
                    newest,
                    head.cylinder,
                    |distance| drive.seek().floor_for_ns(Op::Write, distance),
                    |destage, most| {
                        let (target, start) = (&destage.target, RunStart::of(&destage.target));
                        // Data that are still coming over the bus cannot be written yet.
                        let may_win = destage.ready <= begin && from_head.bound_ns(&start) <= most;
                        may_win.then(|| from_head.total_ns(&start, || target))
                    },
                )
                .or(oldest)
        };
        if let Some(segment) = next {
            self.destage(segment, begin);
        }
    }

    pub(super) fn destage(&mut self, segment: usize, begin: SimTime) {
        self.stop_reading_on(begin);
        // From here on the segment is clean for the buffer, and under way for the media.
        let destage = self.write_back.take(segment);
        self.write_out(begin.max(destage.ready), destage.id, &destage.target);
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

    /// The media take written data from `begin` on.
    pub(super) fn write_out(&mut self, begin: SimTime, destage: u64, target: &Target) {
        // Destages are not the actuator's business: they give no gap away, and their seeks are exact.
        let access = self.visit_media(begin, target, Latency::Used, &mut Exact);
        self.media.destaged = self.media.free;
        self.media.destaging += access.total();
        // The drive works though no command is inside.
        self.busy.own_work(begin, self.media.free);
        if let Some(shares) = &mut self.shares {
            shares.destaged(destage, access.total());
        }
    }

    /// True if at `now` the drive is idle, without work on its own account either: no command is inside,
    /// all that was written is on the media, and reading ahead has come to its limit.
    pub fn is_idle(&mut self, now: SimTime) -> bool {
        if self.inside > 0 || !self.flushes.is_empty() || !self.done.is_empty() {
            return false;
        }
        self.now = now;
        self.catch_up();
        // Reading on that has come to its limit leaves the head at rest.
        let is_reading = self.media.reading_on.is_some_and(|ahead| !ahead.is_over());
        self.nothing_is_dirty() && !is_reading && self.media.free <= now
    }

    /// True if it has begun to read ahead since [`Self::lend_head`] and the last command that needed the
    /// media.
    pub fn has_read_on(&self) -> bool {
        self.media.reading_on.is_some()
    }

    /// The head, if it leaves at `begin`.
    pub fn departure(&self, begin: SimTime) -> Departure {
        let Media { head: from, last_op, .. } = self.media;
        Departure { begin, from, last_op, read_write_switch: self.read_write_switch }
    }

    /// Somebody else has the head until `until`, when it will have done `op` at `at`. What was read
    /// ahead stays in the buffer; the drive does not go on with it.
    pub fn lend_head(&mut self, at: Position, op: Op, until: SimTime) {
        self.media.reading_on = None;
        self.media.head = at;
        self.media.last_op = op;
        self.media.free = until;
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
        match self.shingled {
            None => self.visit_place(begin, target, latency, actuator),
            Some(_) => self.visit_shingled(begin, target, latency, actuator),
        }
    }

    /// Reads or writes from `begin` on, where the addresses lie.
    #[inline]
    pub(super) fn visit_place(
        &mut self,
        begin: SimTime,
        target: &Target,
        latency: Latency,
        actuator: &mut impl Actuator,
    ) -> Access {
        let departure = self.departure(begin);
        let drive = &self.drive;
        let access =
            self.sector.sectors().access(drive, &departure, target, |departure, target| {
                actuator.access(drive, departure, target, latency)
            });
        self.media.head = access.end;
        self.media.free = begin + access.total();
        self.media.last_op = target.op;
        self.media.head_time.add(&access);
        access
    }
}
