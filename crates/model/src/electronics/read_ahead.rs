//! Reading on after a read: how far, and how far it has come.

use freewheel_units::{Blocks, Lbn, Op, SimDuration, SimTime};

use crate::drive::{Drive, Position};
use crate::spec::electronics::{BufferSpec, ReadAhead};

/// A drive reading on into a segment. Its state is that of the last whole run of sectors; how far
/// it is within the next one follows from the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ReadAheadState {
    pub segment: usize,
    /// The next block to read.
    next: Lbn,
    /// The end of the blocks to read.
    pub limit: Lbn,
    /// Time at which the head was about to read `next`.
    at: SimTime,
    head: Position,
    /// The run from `next` on, once it is worked out.
    run: Option<ReadAheadRun>,
    /// Up to when [`Self::take_time`] has reported.
    reported_until: SimTime,
    /// Time at which it stops before its limit, if it does.
    stop: Option<SimTime>,
}

/// Progress of reading on at some time.
pub(super) struct ReadAheadPosition {
    /// The end of the blocks read whole.
    pub end: Lbn,
    pub head: Position,
}

impl ReadAheadState {
    pub(super) fn new(segment: usize, next: Lbn, limit: Lbn, at: SimTime, head: Position) -> Self {
        Self { segment, next, limit, at, head, run: None, reported_until: at, stop: None }
    }

    /// Lets it stop at `time`, which may lie in the future: until then the head may be taken from it
    /// earlier.
    pub(super) fn stop_at(&mut self, time: SimTime) {
        self.stop = Some(self.stop.map_or(time, |stop| stop.min(time)));
    }

    /// True if it was stopped before `now` or then.
    pub(super) fn is_stopped(&self, now: SimTime) -> bool {
        self.stop.is_some_and(|stop| stop <= now)
    }

    fn before_stop(&self, now: SimTime) -> SimTime {
        self.stop.map_or(now, |stop| stop.min(now))
    }

    /// The time for which it has read since this was last asked, after it has advanced to `now`.
    pub(super) fn take_time(&mut self, now: SimTime) -> (SimTime, SimTime) {
        let end = if self.is_over() { self.at } else { self.before_stop(now) };
        let begin = self.reported_until;
        self.reported_until = begin.max(end);
        (begin, end)
    }

    /// Advances to `now`, and says how far it has come.
    pub(super) fn advance(&mut self, drive: &Drive, now: SimTime) -> ReadAheadPosition {
        let now = self.before_stop(now);
        while self.next < self.limit && self.at < now {
            let run = self.run.unwrap_or_else(|| self.next_run(drive));
            if run.end > now {
                self.run = Some(run);
                return self.within(run, now);
            }
            self.follow(&run);
        }
        ReadAheadPosition { end: self.next, head: self.head }
    }

    /// Time at which the block before `end` will have been read; `end` lies within the limit.
    pub(super) fn time_of(&self, drive: &Drive, end: Lbn) -> SimTime {
        let mut ahead = *self;
        while ahead.next < end {
            let run = ahead.run.unwrap_or_else(|| ahead.next_run(drive));
            if run.behind >= end {
                let width = run.transfer.ns() / (run.behind.get() - ahead.next.get());
                let behind_ns = width * (run.behind.get() - end.get());
                return SimTime::from_ns(run.end.ns() - behind_ns);
            }
            ahead.follow(&run);
        }
        ahead.at
    }

    /// Time at which the block before `end` will have been read, if within the limit and before the stop.
    pub(super) fn promises(&self, drive: &Drive, end: Lbn) -> Option<SimTime> {
        let there = (end <= self.limit).then(|| self.time_of(drive, end))?;
        self.stop.is_none_or(|stop| there <= stop).then_some(there)
    }

    /// True if it has come to its limit, as far as it has advanced.
    pub(super) fn is_over(&self) -> bool {
        self.next >= self.limit
    }

    fn follow(&mut self, run: &ReadAheadRun) {
        (self.next, self.at, self.head, self.run) = (run.behind, run.end, run.head, None);
    }

    /// Moves the limit on, if it is further than the one there is.
    pub(super) fn extend_limit(&mut self, limit: Lbn) {
        if limit > self.limit {
            self.limit = limit;
            self.run = None;
        }
    }

    fn next_run(&self, drive: &Drive) -> ReadAheadRun {
        let wanted = (self.limit.get() - self.next.get()).min(u64::from(u32::MAX)) as u32;
        let target = drive.first_run(self.next, wanted, Op::Read);
        let access = drive.media_access(self.at, self.head, &target);
        ReadAheadRun {
            behind: self.next + Blocks::new(u64::from(target.blocks)),
            end: self.at + access.total(),
            transfer: access.transfer,
            head: access.end,
        }
    }

    fn within(&self, run: ReadAheadRun, now: SimTime) -> ReadAheadPosition {
        let left = (run.end - now).ns();
        let transfer = run.transfer.ns();
        if left >= transfer {
            // Still on the way to the first sector of the run.
            return ReadAheadPosition { end: self.next, head: self.head };
        }
        let blocks = run.behind.get() - self.next.get();
        let read = (transfer - left) * blocks / transfer;
        ReadAheadPosition { end: self.next + Blocks::new(read), head: run.head }
    }
}

/// The next run of sectors to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ReadAheadRun {
    behind: Lbn,
    end: SimTime,
    transfer: SimDuration,
    head: Position,
}

/// A read of `start..end` behind which a drive may read on.
pub(super) struct ReadForAhead {
    pub start: Lbn,
    pub end: Lbn,
    /// Bounds of the plain track of `start`, where they are known.
    pub track: Option<(Lbn, Lbn)>,
    /// First block of the segment.
    pub segment_start: Lbn,
    /// True if it begins where the read before it ended.
    pub touches: bool,
}

/// The end of the blocks that a drive reads on to.
pub(super) fn limit(drive: &Drive, spec: &BufferSpec, read: &ReadForAhead) -> Lbn {
    let &ReadForAhead { start, end, track, segment_start, touches } = read;
    let capacity = Lbn::ZERO + drive.blocks();
    if end >= capacity {
        return capacity;
    }
    let last = Lbn::new(end.get() - 1);
    let most = match spec.read_ahead_max_blocks {
        0 => spec.segment_blocks,
        blocks => blocks,
    };
    let longest = end + Blocks::new(u64::from(most));
    let reach = match spec.read_ahead {
        ReadAhead::None => end,
        ReadAhead::Track => drive.layout().track_bounds(last).1,
        ReadAhead::Cylinder => drive.layout().cylinder_end(last),
        ReadAhead::Segment => longest,
        ReadAhead::Adaptive => adaptive(drive, track, Some(segment_start), end),
        ReadAhead::AfterTouching if touches => adaptive(drive, track, None, end),
        ReadAhead::AfterTouching => end,
    };
    let reach = reach.min(longest).max(least(spec, end));
    let room = start + Blocks::new(u64::from(spec.segment_blocks));
    let reach = if spec.keep_requested { reach.min(room) } else { reach };
    reach.min(capacity).max(end)
}

/// The end of the blocks that are read on to even if requests wait.
pub(super) fn least(spec: &BufferSpec, end: Lbn) -> Lbn {
    end + Blocks::new(u64::from(spec.read_ahead_min_blocks))
}

/// To the end of the track that comes next; when the segment holds the track before, too, or is not
/// asked, one track more.
fn adaptive(drive: &Drive, track: Option<(Lbn, Lbn)>, segment_start: Option<Lbn>, end: Lbn) -> Lbn {
    let layout = drive.layout();
    let same = track.filter(|&(first, behind)| first <= end && end < behind);
    let (track_first, track_end) = same.unwrap_or_else(|| layout.track_bounds(end));
    let sequential = segment_start.is_none_or(|start| start < track_first);
    if sequential && track_end < Lbn::ZERO + drive.blocks() {
        layout.track_bounds(track_end).1
    } else {
        track_end
    }
}
