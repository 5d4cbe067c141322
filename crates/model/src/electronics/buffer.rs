//! The segments of a drive's buffer: which blocks are in them, and which one goes next.

use freewheel_units::{Blocks, Lbn, SimDuration, SimTime};

use super::by_start::ByStart;
use crate::spec::electronics::BufferSpec;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Buffer {
    segments: Vec<Segment>,
    size: u64,
    /// Number of first segments that serve writes alone.
    only_writes: usize,
    uses: u64,
    by_start: ByStart,
    /// Segments that are not dirty, the least recently used one first.
    clean: Vec<Clean>,
    /// Segments whose written data are on the media or on their way there, by the time they arrive.
    destaged: Vec<(SimTime, u32)>,
}

/// A segment that is not dirty, in order of use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Clean {
    last_use: u64,
    segment: u32,
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

    fn is_empty(&self) -> bool {
        self.start == self.end
    }
}

impl Buffer {
    pub(super) fn new(spec: &BufferSpec) -> Self {
        let separate = spec.separate_write_segments;
        let clean = (0..spec.segments).map(|segment| Clean { last_use: 0, segment });
        Self {
            segments: vec![Segment::default(); spec.segments as usize],
            size: u64::from(spec.segment_blocks),
            only_writes: if separate { spec.write_segments as usize } else { 0 },
            uses: 0,
            by_start: ByStart::new(u64::from(spec.segment_blocks)),
            clean: clean.collect(),
            destaged: Vec::new(),
        }
    }

    #[inline]
    pub(super) fn segment(&self, index: usize) -> &Segment {
        &self.segments[index]
    }

    /// True if another write finds a segment at `now`, when `most` may hold written data that is not on the
    /// media yet.
    pub(super) fn has_room_for_write(&self, now: SimTime, most: usize) -> bool {
        let dirty = self.segments.len() - self.clean.len();
        let on_the_way = self.destaged.iter().rev().take_while(|(end, _)| *end > now).count();
        dirty + on_the_way < most && self.next_to_go(now, true).is_some()
    }

    /// Rank among the clean segments of the one that goes next at `now` for written data or read ones:
    /// the least recently used.
    #[inline]
    fn next_to_go(&self, now: SimTime, written: bool) -> Option<usize> {
        self.clean.iter().position(|clean| {
            let segment = clean.segment as usize;
            let serves = self.only_writes == 0 || written == (segment < self.only_writes);
            serves && self.segments[segment].media_until <= now
        })
    }

    /// The segment that holds `start`, else the one whose blocks end just there.
    #[inline]
    pub(super) fn holding(&self, start: Lbn, written_too: bool) -> Option<usize> {
        let (mut holding, mut ending) = (None::<usize>, None::<usize>);
        for index in self.by_start.near(start, start) {
            let s = &self.segments[index];
            if start <= s.end && (written_too || !s.written) {
                let first = if start < s.end { &mut holding } else { &mut ending };
                *first = Some(first.map_or(index, |other| other.min(index)));
            }
        }
        holding.or(ending)
    }

    /// Dirty segments that hold a block of `start..end`, or end or begin beside these blocks.
    #[inline]
    pub(super) fn dirty_near(
        &self,
        start: Lbn,
        end: Lbn,
    ) -> impl Iterator<Item = usize> + Clone + '_ {
        let near = self.by_start.near(start, end);
        near.filter(move |&index| self.segments[index].dirty && start <= self.segments[index].end)
    }

    /// True if a write of `start..end` can join a dirty segment: at its end, before its beginning, or over
    /// its blocks.
    pub(super) fn can_join(&self, index: usize, start: Lbn, end: Lbn, combine: bool) -> bool {
        let s = &self.segments[index];
        let adjoins = s.end == start || s.start == end;
        let both = end.get() - start.get() + s.end.get() - s.start.get();
        s.covers(start, end) || (combine && adjoins && both <= self.size)
    }

    /// Gives the least recently used segment that may go to the blocks `start..end`; None when
    /// none may. Of more blocks than a segment holds the oldest are left out.
    pub(super) fn claim(
        &mut self,
        now: SimTime,
        start: Lbn,
        end: Lbn,
        written: bool,
    ) -> Option<usize> {
        let rank = self.next_to_go(now, written)?;
        let index = self.clean.remove(rank).segment as usize;
        let before = self.segments[index];
        if before.written {
            let place = (before.media_until, index as u32);
            let rank = self.destaged.partition_point(|other| *other < place);
            self.destaged.remove(rank);
        }
        self.uses += 1;
        if !written {
            self.clean.push(Clean { last_use: self.uses, segment: index as u32 });
        }
        self.segments[index] = Segment {
            start: before.start,
            end: before.end,
            written,
            dirty: written,
            media_until: now,
            delivered: end,
            idle_work: SimDuration::ZERO,
            last_use: self.uses,
        };
        let most = Lbn::new(end.get().saturating_sub(self.size));
        self.set_blocks(index, start.max(most), end);
        Some(index)
    }

    pub(super) fn use_segment(&mut self, index: usize) {
        self.uses += 1;
        let last_use = std::mem::replace(&mut self.segments[index].last_use, self.uses);
        if self.segments[index].dirty {
            return;
        }
        let segment = index as u32;
        let rank = self.clean_rank(Clean { last_use, segment });
        self.clean.remove(rank);
        self.clean.push(Clean { last_use: self.uses, segment });
    }

    fn clean_rank(&self, clean: Clean) -> usize {
        self.clean.partition_point(|other| *other < clean)
    }

    /// A segment holds these blocks from now on.
    #[inline]
    fn set_blocks(&mut self, index: usize, start: Lbn, end: Lbn) {
        let segment = &mut self.segments[index];
        let before = *segment;
        (segment.start, segment.end) = (start, end);
        match (before.is_empty(), segment.is_empty()) {
            (false, false) if before.start != start => {
                self.by_start.replace(index, before.start, start);
            }
            (true, false) => self.by_start.insert(index, start),
            (false, true) => self.by_start.remove(index, before.start),
            _ => {}
        }
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
        let segment = &self.segments[index];
        let end = segment.end.max(end);
        let most = Lbn::new(end.get().saturating_sub(self.size));
        self.set_blocks(index, segment.start.max(most), end);
    }

    /// Adds the blocks of a write to the dirty segment that it joins.
    pub(super) fn join(&mut self, index: usize, start: Lbn, end: Lbn) {
        let segment = &self.segments[index];
        self.set_blocks(index, segment.start.min(start), segment.end.max(end));
        self.use_segment(index);
    }

    /// The data of a segment go to the media until `end`, and it is clean from then on.
    pub(super) fn destage(&mut self, index: usize, end: SimTime) {
        let segment = &mut self.segments[index];
        segment.dirty = false;
        segment.media_until = end;
        let clean = Clean { last_use: segment.last_use, segment: index as u32 };
        let rank = self.clean_rank(clean);
        self.clean.insert(rank, clean);
        let place = (end, index as u32);
        let rank = self.destaged.partition_point(|other| *other < place);
        self.destaged.insert(rank, place);
    }

    /// Segments that may be given up at `now`.
    pub(super) fn clean_segments(&self, now: SimTime) -> usize {
        let clean = self.clean.iter().map(|clean| &self.segments[clean.segment as usize]);
        clean.filter(|segment| segment.media_until <= now).count()
    }

    /// Lends the memory of the least recently used segment that may be given up: it is none of the
    /// buffer's until it is returned.
    pub(super) fn lend(&mut self, now: SimTime) -> Option<usize> {
        let rank = self.next_to_go(now, true)?;
        let index = self.clean.remove(rank).segment as usize;
        let start = self.segments[index].start;
        self.set_blocks(index, start, start);
        Some(index)
    }

    /// Takes back the memory of a segment that it has lent.
    pub(super) fn take_back(&mut self, index: usize) {
        self.segments[index] = Segment::default();
        let clean = Clean { last_use: 0, segment: index as u32 };
        let rank = self.clean_rank(clean);
        self.clean.insert(rank, clean);
    }

    pub(super) fn dirty_blocks(&self) -> Blocks {
        let dirty = self.segments.iter().filter(|segment| segment.dirty);
        Blocks::new(dirty.map(|segment| segment.end.get() - segment.start.get()).sum())
    }

    /// Forgets clean copies of blocks that are read or written anew.
    pub(super) fn forget(&mut self, start: Lbn, end: Lbn, except: Option<usize>) {
        let next = |buffer: &Self| {
            buffer.by_start.near(start, end).find(|&index| {
                let segment = &buffer.segments[index];
                Some(index) != except && !segment.dirty && segment.overlaps(start, end)
            })
        };
        while let Some(index) = next(self) {
            let start = self.segments[index].start;
            self.set_blocks(index, start, start);
        }
    }
}

/// The block behind a run.
#[inline]
pub(super) fn behind(start: Lbn, blocks: u32) -> Lbn {
    start + Blocks::new(u64::from(blocks))
}

#[cfg(test)]
mod tests;
