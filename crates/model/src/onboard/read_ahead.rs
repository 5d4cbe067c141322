//! Reading on after a read: how far, and how far it has come.

use freewheel_units::{Blocks, Lbn, Op, SimDuration, SimTime};

use super::spec::{BufferSpec, ReadAhead};
use crate::drive::{Drive, Position};

/// A drive reading on into a segment. Its state is that of the last whole run of sectors; how far
/// it is within the next one follows from the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ReadingOn {
    pub segment: usize,
    /// The next block to read.
    next: Lbn,
    /// The block behind the last to read.
    pub limit: Lbn,
    /// When the head was about to read `next`, and where it was.
    at: SimTime,
    head: Position,
}

/// How far reading on has come by some time.
pub(super) struct Reached {
    /// The block behind the last read whole.
    pub end: Lbn,
    /// Where the head is.
    pub head: Position,
}

impl ReadingOn {
    pub(super) fn new(segment: usize, next: Lbn, limit: Lbn, at: SimTime, head: Position) -> Self {
        Self { segment, next, limit, at, head }
    }

    /// Advances to `now`, and says how far it has come.
    pub(super) fn advance(&mut self, drive: &Drive, now: SimTime) -> Reached {
        while self.next < self.limit && self.at < now {
            let run = self.next_run(drive);
            if run.end > now {
                return self.within(run, now);
            }
            self.next = run.behind;
            self.at = run.end;
            self.head = run.head;
        }
        Reached { end: self.next, head: self.head }
    }

    /// When the block before `end` will have been read; `end` lies within the limit.
    pub(super) fn time_of(&self, drive: &Drive, end: Lbn) -> SimTime {
        let mut ahead = *self;
        while ahead.next < end {
            let run = ahead.next_run(drive);
            if run.behind >= end {
                let width = run.transfer.ns() / (run.behind.get() - ahead.next.get());
                let behind_ns = width * (run.behind.get() - end.get());
                return SimTime::from_ns(run.end.ns() - behind_ns);
            }
            (ahead.next, ahead.at, ahead.head) = (run.behind, run.end, run.head);
        }
        ahead.at
    }

    fn next_run(&self, drive: &Drive) -> RunAhead {
        let wanted = (self.limit.get() - self.next.get()).min(u64::from(u32::MAX)) as u32;
        let run = drive.layout().run(self.next, wanted);
        let blocks = Blocks::new(u64::from(run.blocks));
        let target = drive.target(self.next, blocks, Op::Read);
        let access = drive.media_access(self.at, self.head, &target);
        RunAhead {
            behind: self.next + blocks,
            end: self.at + access.total(),
            transfer: access.transfer,
            head: access.end,
        }
    }

    fn within(&self, run: RunAhead, now: SimTime) -> Reached {
        let left = (run.end - now).ns();
        let transfer = run.transfer.ns();
        if left >= transfer {
            // Still on the way to the first sector of the run.
            return Reached { end: self.next, head: self.head };
        }
        let blocks = run.behind.get() - self.next.get();
        let read = u128::from(transfer - left) * u128::from(blocks) / u128::from(transfer);
        Reached { end: self.next + Blocks::new(read as u64), head: run.head }
    }
}

/// The next run of sectors to read.
struct RunAhead {
    behind: Lbn,
    end: SimTime,
    transfer: SimDuration,
    head: Position,
}

/// The block behind the last that a drive reads on to after a read of `start..end` whose segment
/// begins at `segment_start`.
pub(super) fn limit(
    drive: &Drive,
    spec: &BufferSpec,
    segment_start: Lbn,
    start: Lbn,
    end: Lbn,
) -> Lbn {
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
        ReadAhead::Track => drive.layout().track_end(last),
        ReadAhead::Cylinder => drive.layout().cylinder_end(last),
        ReadAhead::Segment => longest,
        ReadAhead::Adaptive => adaptive(drive, segment_start, end),
    };
    let reach = reach.min(longest).max(least(spec, end));
    let room = start + Blocks::new(u64::from(spec.segment_blocks));
    let reach = if spec.keep_requested { reach.min(room) } else { reach };
    reach.min(capacity).max(end)
}

/// The block behind the last that is read on to whatever waits.
pub(super) fn least(spec: &BufferSpec, end: Lbn) -> Lbn {
    end + Blocks::new(u64::from(spec.read_ahead_min_blocks))
}

/// To the end of the track that comes next; when the segment holds the track before, too, one
/// track more.
fn adaptive(drive: &Drive, segment_start: Lbn, end: Lbn) -> Lbn {
    let layout = drive.layout();
    let track_end = layout.track_end(end);
    let sequential = segment_start < layout.track_first(end);
    if sequential && track_end < Lbn::ZERO + drive.blocks() {
        layout.track_end(track_end)
    } else {
        track_end
    }
}
