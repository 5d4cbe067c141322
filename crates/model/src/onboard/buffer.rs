//! The segments of a drive's buffer: which blocks are in them, and which one goes next.

use freewheel_units::{Blocks, Lbn};

use super::spec::BufferSpec;

/// The segments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Buffer {
    segments: Vec<Segment>,
    size: u64,
    uses: u64,
}

/// One run of blocks, `start..end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Segment {
    pub start: Lbn,
    pub end: Lbn,
    /// Holds data that the host wrote.
    pub written: bool,
    /// Holds written data that is not on the media yet: it cannot be given up.
    pub dirty: bool,
    last_use: u64,
}

impl Segment {
    fn overlaps(&self, start: Lbn, end: Lbn) -> bool {
        self.start < end && start < self.end
    }
}

impl Buffer {
    pub(super) fn new(spec: &BufferSpec) -> Self {
        Self {
            segments: vec![Segment::default(); spec.segments as usize],
            size: u64::from(spec.segment_blocks),
            uses: 0,
        }
    }

    pub(super) fn segment(&self, index: usize) -> &Segment {
        &self.segments[index]
    }

    pub(super) fn dirty_segments(&self) -> usize {
        self.segments.iter().filter(|segment| segment.dirty).count()
    }

    /// The segment that holds `start`, or whose data ends just there.
    pub(super) fn holding(&self, start: Lbn, written_too: bool) -> Option<usize> {
        let holds = |s: &Segment| s.start <= start && start <= s.end && s.start < s.end;
        self.segments.iter().position(|s| holds(s) && (written_too || !s.written))
    }

    /// The dirty segment that a write from `start` on can join.
    pub(super) fn joinable(&self, start: Lbn, blocks: u64) -> Option<usize> {
        let joins = |s: &Segment| {
            s.dirty && s.end == start && s.end.get() - s.start.get() + blocks <= self.size
        };
        self.segments.iter().position(joins)
    }

    /// Gives the least recently used segment that may go to the blocks `start..end`; None when all
    /// are dirty.
    pub(super) fn claim(&mut self, start: Lbn, end: Lbn, written: bool) -> Option<usize> {
        let candidates = self.segments.iter().enumerate().filter(|(_, s)| !s.dirty);
        let (index, _) = candidates.min_by_key(|(_, segment)| segment.last_use)?;
        self.segments[index] = Segment { start, end, written, dirty: written, last_use: 0 };
        self.use_segment(index);
        Some(index)
    }

    pub(super) fn use_segment(&mut self, index: usize) {
        self.uses += 1;
        self.segments[index].last_use = self.uses;
    }

    pub(super) fn extend(&mut self, index: usize, end: Lbn) {
        let segment = &mut self.segments[index];
        segment.end = segment.end.max(end);
        // A ring: the oldest blocks make room.
        let oldest = segment.end.get().saturating_sub(self.size);
        if !segment.dirty && segment.start.get() < oldest {
            segment.start = Lbn::new(oldest);
        }
    }

    pub(super) fn clean(&mut self, index: usize) {
        self.segments[index].dirty = false;
    }

    /// Forgets clean copies of blocks that are written anew.
    pub(super) fn forget(&mut self, start: Lbn, end: Lbn, except: Option<usize>) {
        for (index, segment) in self.segments.iter_mut().enumerate() {
            if Some(index) != except && !segment.dirty && segment.overlaps(start, end) {
                segment.end = segment.start;
            }
        }
    }
}

/// The block behind a run.
pub(super) fn behind(start: Lbn, blocks: u32) -> Lbn {
    start + Blocks::new(u64::from(blocks))
}
