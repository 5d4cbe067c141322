//! The segments of a drive's buffer: which blocks are in them, and which one goes next.

use freewheel_units::{Blocks, Lbn, SimDuration, SimTime};

use crate::spec::electronics::BufferSpec;

/// The segments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Buffer {
    segments: Vec<Segment>,
    size: u64,
    /// Number of first segments that serve writes alone.
    only_writes: usize,
    uses: u64,
}

/// One run of blocks, `start..end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Segment {
    pub start: Lbn,
    pub end: Lbn,
    /// Holds data that the host wrote.
    pub written: bool,
    /// Holds written data that waits for the media: it cannot be given up.
    pub dirty: bool,
    /// The media read into it or write from it until then: it cannot be given up before.
    pub media_until: SimTime,
    /// The end of the blocks that the host has got, or has given.
    delivered: Lbn,
    /// Idle time in which the drive read ahead into it, of blocks not requested yet.
    idle_work: SimDuration,
    last_use: u64,
}

impl Segment {
    pub(super) fn overlaps(&self, start: Lbn, end: Lbn) -> bool {
        self.start < end && start < self.end
    }

    fn covers(&self, start: Lbn, end: Lbn) -> bool {
        self.start <= start && end <= self.end
    }

    fn may_go(&self, now: SimTime) -> bool {
        !self.dirty && self.media_until <= now
    }
}

impl Buffer {
    pub(super) fn new(spec: &BufferSpec) -> Self {
        let separate = spec.separate_write_segments;
        Self {
            segments: vec![Segment::default(); spec.segments as usize],
            size: u64::from(spec.segment_blocks),
            only_writes: if separate { spec.write_segments as usize } else { 0 },
            uses: 0,
        }
    }

    #[inline]
    pub(super) fn segment(&self, index: usize) -> &Segment {
        &self.segments[index]
    }

    /// Whether another write finds a segment at `now`, when `most` may hold written data that is
    /// not on the media yet.
    pub(super) fn has_room_for_write(&self, now: SimTime, most: usize) -> bool {
        let on_its_way = |s: &&Segment| s.dirty || (s.written && s.media_until > now);
        self.segments.iter().filter(on_its_way).count() < most
            && self.segments_for(true).iter().any(|segment| segment.may_go(now))
    }

    fn segments_for(&self, written: bool) -> &[Segment] {
        match (self.only_writes, written) {
            (0, _) => &self.segments,
            (first, true) => &self.segments[..first],
            (first, false) => &self.segments[first..],
        }
    }

    /// The segment that holds `start`, else the one whose blocks end just there.
    #[inline]
    pub(super) fn holding(&self, start: Lbn, written_too: bool) -> Option<usize> {
        let mut ending = None;
        for (index, s) in self.segments.iter().enumerate() {
            if s.start <= start && start <= s.end && s.start < s.end && (written_too || !s.written)
            {
                if start < s.end {
                    return Some(index);
                }
                ending = ending.or(Some(index));
            }
        }
        ending
    }

    /// Whether a write of `start..end` can join a dirty segment: at its end, before its beginning, or
    /// over its blocks.
    pub(super) fn can_join(&self, index: usize, start: Lbn, end: Lbn, combine: bool) -> bool {
        let s = &self.segments[index];
        let adjoins = s.end == start || s.start == end;
        let both = end.get() - start.get() + s.end.get() - s.start.get();
        s.covers(start, end) || (combine && adjoins && both <= self.size)
    }

    /// Gives the least recently used segment that may go to the blocks `start..end`; None when
    /// none may.
    pub(super) fn claim(
        &mut self,
        now: SimTime,
        start: Lbn,
        end: Lbn,
        written: bool,
    ) -> Option<usize> {
        let offset = if written { 0 } else { self.only_writes };
        let candidates = self.segments_for(written).iter().enumerate();
        let may_go = candidates.filter(|(_, segment)| segment.may_go(now));
        let index = offset + may_go.min_by_key(|(_, segment)| segment.last_use)?.0;
        self.segments[index] = Segment {
            start,
            end,
            written,
            dirty: written,
            media_until: now,
            delivered: end,
            idle_work: SimDuration::ZERO,
            last_use: 0,
        };
        self.use_segment(index);
        Some(index)
    }

    #[inline]
    pub(super) fn use_segment(&mut self, index: usize) {
        self.uses += 1;
        self.segments[index].last_use = self.uses;
    }

    /// The host is given the blocks before `end`: how many of the last `blocks` for the first time,
    /// of blocks that the media were read for.
    pub(super) fn deliver(&mut self, index: usize, end: Lbn, blocks: u32) -> u32 {
        let segment = &mut self.segments[index];
        let new = end.get().saturating_sub(segment.delivered.get()).min(u64::from(blocks));
        segment.delivered = segment.delivered.max(end);
        if segment.written { 0 } else { new as u32 }
    }

    /// Adds idle time in which the drive read ahead into this segment.
    pub(super) fn add_idle_work(&mut self, index: usize, time: SimDuration) {
        self.segments[index].idle_work += time;
    }

    /// At most `time` of that, which is then no longer there.
    pub(super) fn take_idle_work(&mut self, index: usize, time: SimDuration) -> SimDuration {
        let idle_work = &mut self.segments[index].idle_work;
        let taken = time.min(*idle_work);
        *idle_work = idle_work.saturating_sub(taken);
        taken
    }

    /// The media read into this segment or write from it until `end`.
    pub(super) fn engage(&mut self, index: usize, end: SimTime) {
        self.segments[index].media_until = end;
    }

    /// Makes a clean segment hold everything up to `end`; where that is too much, the oldest
    /// blocks make room.
    #[inline]
    pub(super) fn extend(&mut self, index: usize, end: Lbn) {
        let segment = &mut self.segments[index];
        segment.end = segment.end.max(end);
        let oldest = segment.end.get().saturating_sub(self.size);
        segment.start = segment.start.max(Lbn::new(oldest));
    }

    /// Adds the blocks of a write to the dirty segment that it joins.
    pub(super) fn join(&mut self, index: usize, start: Lbn, end: Lbn) {
        let segment = &mut self.segments[index];
        segment.start = segment.start.min(start);
        segment.end = segment.end.max(end);
        self.use_segment(index);
    }

    /// The data of a segment go to the media until `end`, and it is clean from then on.
    pub(super) fn destage(&mut self, index: usize, end: SimTime) {
        self.segments[index].dirty = false;
        self.segments[index].media_until = end;
    }

    pub(super) fn dirty_blocks(&self) -> Blocks {
        let dirty = self.segments.iter().filter(|segment| segment.dirty);
        Blocks::new(dirty.map(|segment| segment.end.get() - segment.start.get()).sum())
    }

    /// Forgets clean copies of blocks that are read or written anew.
    pub(super) fn forget(&mut self, start: Lbn, end: Lbn, except: Option<usize>) {
        for (index, segment) in self.segments.iter_mut().enumerate() {
            if Some(index) != except && !segment.dirty && segment.overlaps(start, end) {
                segment.end = segment.start;
            }
        }
    }
}

/// The block behind a run.
#[inline]
pub(super) fn behind(start: Lbn, blocks: u32) -> Lbn {
    start + Blocks::new(u64::from(blocks))
}
