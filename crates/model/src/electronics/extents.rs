//! Written data in extents: runs of blocks of any length, by the thousand, on their way to the media.
//!
//! A dirty extent waits for the media. No two of them share a block: a write over dirty blocks joins
//! their extent, and so does one that adjoins it, so that one visit of the media takes both. An extent
//! whose data are on the media is kept for reads, until its place is needed.

use std::collections::{BTreeMap, VecDeque};

use freewheel_units::{Blocks, Lbn, SimDuration, SimTime};

use crate::drive::{RunStart, Target};
use crate::spec::electronics::{BufferSpec, DirtySpec};

/// Extents that one search looks at: those of the nearest cylinders.
const CHOICE_MAX: usize = 128;

/// A dirty extent, `start..end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extent {
    /// Ascending in order of writing; of an extent that others joined, the number of the oldest.
    pub id: u64,
    pub start: Lbn,
    pub end: Lbn,
    /// Time at which all of its data are in the buffer.
    pub ready: SimTime,
    /// The write of its data.
    pub target: Target,
}

/// Properties of a dirty extent that a search compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Candidate {
    pub start: RunStart,
    pub ready: SimTime,
}

/// An extent whose data are on the media, or will be at `written`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Kept {
    start: Lbn,
    end: Lbn,
    written: SimTime,
}

/// All extents of a buffer.
#[derive(Debug, Clone)]
pub(super) struct Extents {
    extents_max: usize,
    blocks_max: u64,
    age_limit: SimDuration,
    /// Blocks of a segment, and most blocks of an extent that adjoining writes make.
    segment_blocks: u64,
    joins_adjoining: bool,
    /// By number, from that of the oldest dirty extent on; none where it is no longer dirty.
    numbers: VecDeque<Number>,
    dirty: usize,
    /// Numbers of dirty extents by their first block.
    by_start: BTreeMap<Lbn, u64>,
    /// Dirty extents by cylinder and number.
    by_cylinder: BTreeMap<(u32, u64), Candidate>,
    dirty_blocks: u64,
    issued: u64,
    /// In the order in which they come to the media.
    kept: VecDeque<Kept>,
    kept_blocks: u64,
    /// Number of extents before the first of `kept`.
    kept_before: u64,
    /// By first block, how many were kept before. Those that were written anew are left out.
    kept_by_start: BTreeMap<Lbn, u64>,
    /// Segments whose memory is theirs.
    borrowed: Vec<usize>,
}

/// A number that was issued, and its extent as long as that is dirty.
#[derive(Debug, Clone)]
struct Number {
    issued_at: SimTime,
    dirty: Option<Extent>,
}

/// Dirty extents after a write has joined them.
struct Joined {
    start: Lbn,
    end: Lbn,
    /// Extents that become one, from the last on.
    ids: Vec<u64>,
    blocks: u64,
}

impl Extents {
    pub fn new(buffer: &BufferSpec, spec: &DirtySpec) -> Self {
        Self {
            extents_max: spec.extents as usize,
            blocks_max: spec.blocks_max(),
            age_limit: spec.age_limit,
            segment_blocks: u64::from(buffer.segment_blocks),
            joins_adjoining: buffer.combine_sequential_writes,
            numbers: VecDeque::new(),
            dirty: 0,
            by_start: BTreeMap::new(),
            by_cylinder: BTreeMap::new(),
            dirty_blocks: 0,
            issued: 0,
            kept: VecDeque::new(),
            kept_blocks: 0,
            kept_before: 0,
            kept_by_start: BTreeMap::new(),
            borrowed: Vec::new(),
        }
    }

    /// True if no data wait for the media.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.dirty == 0
    }

    /// The newest that has been issued so far: a flush waits for all up to it.
    pub fn newest_id(&self) -> u64 {
        self.issued
    }

    /// True if one issued no later than `id` still waits.
    #[inline]
    pub fn waits_up_to(&self, id: u64) -> bool {
        self.oldest().is_some_and(|oldest| oldest.id <= id)
    }

    #[inline]
    pub fn oldest(&self) -> Option<&Extent> {
        self.numbers.front().and_then(|number| number.dirty.as_ref())
    }

    /// Index in `numbers` of a number that has not been forgotten.
    #[inline]
    fn rank(&self, id: u64) -> usize {
        (id + self.numbers.len() as u64 - self.issued - 1) as usize
    }

    #[inline]
    fn extent(&self, id: u64) -> &Extent {
        self.numbers[self.rank(id)].dirty.as_ref().expect("a dirty extent waits")
    }

    pub fn dirty_blocks(&self) -> Blocks {
        Blocks::new(self.dirty_blocks)
    }

    pub fn target(&self, id: u64) -> &Target {
        &self.extent(id).target
    }

    /// Dirty extents with a block of `start..end`, or beside these blocks; from the last on.
    fn near(&self, start: Lbn, end: Lbn) -> impl Iterator<Item = &Extent> {
        let before = self.by_start.range(..=end).rev().map(|(_, &id)| self.extent(id));
        before.take_while(move |extent| extent.end >= start)
    }

    /// The oldest dirty extent with a block of `start..end`.
    #[inline]
    pub fn in_the_way(&self, start: Lbn, end: Lbn) -> Option<u64> {
        self.near(start, end)
            .filter(|extent| extent.start < end && start < extent.end)
            .map(|extent| extent.id)
            .min()
    }

    /// Dirty extents after a write of `start..end`. It takes in those that it overlaps, and those that it
    /// adjoins as long as the whole is no longer than a segment.
    fn joined(&self, start: Lbn, end: Lbn) -> Joined {
        let mut joined = Joined { start, end, ids: Vec::new(), blocks: 0 };
        for extent in self.near(start, end) {
            let overlaps = extent.start < end && start < extent.end;
            let (first, behind) = (joined.start.min(extent.start), joined.end.max(extent.end));
            let fits = behind.get() - first.get() <= self.segment_blocks;
            if overlaps || (self.joins_adjoining && fits) {
                (joined.start, joined.end) = (first, behind);
                joined.ids.push(extent.id);
                joined.blocks += extent.end.get() - extent.start.get();
            }
        }
        joined
    }

    /// Extents and blocks whose data are on their way to the media at `at`.
    fn on_the_way(&self, at: SimTime) -> (usize, u64) {
        let under_way = self.kept.iter().rev().take_while(|kept| kept.written > at);
        under_way.fold((0, 0), |(extents, blocks), kept| {
            (extents + 1, blocks + kept.end.get() - kept.start.get())
        })
    }

    /// Number of segments that a write of `start..end` at `at` needs beyond borrowed memory, if table and
    /// memory have room.
    pub fn room_for(&self, start: Lbn, end: Lbn, at: SimTime) -> Option<usize> {
        let (extents, blocks) = self.on_the_way(at);
        let (extents, blocks) = (extents + self.dirty, blocks + self.dirty_blocks);
        let room = |extents, blocks: u64| {
            let segments = blocks.div_ceil(self.segment_blocks) as usize;
            let fits = extents <= self.extents_max && blocks <= self.blocks_max;
            fits.then(|| segments.saturating_sub(self.borrowed.len()))
        };
        // Most often it fits even if it joins none.
        room(extents + 1, blocks + end.get() - start.get()).or_else(|| {
            let joined = self.joined(start, end);
            let more = joined.end.get() - joined.start.get() - joined.blocks;
            room(extents + 1 - joined.ids.len(), blocks + more)
        })
    }

    /// The memory of this segment is theirs.
    pub fn borrow_segment(&mut self, segment: usize) {
        self.borrowed.push(segment);
    }

    /// A segment whose memory they do not need at `at`; kept extents make room. They keep the last one.
    pub fn return_segment(&mut self, at: SimTime) -> Option<usize> {
        let blocks = self.dirty_blocks + self.on_the_way(at).1;
        if self.borrowed.len() < 2
            || blocks > (self.borrowed.len() as u64 - 1) * self.segment_blocks
        {
            return None;
        }
        let segment = self.borrowed.pop();
        self.drop_kept(at);
        segment
    }

    /// Forgets the oldest kept extents until table and memory suffice.
    fn drop_kept(&mut self, at: SimTime) {
        let memory = self.borrowed.len() as u64 * self.segment_blocks;
        while let Some(&oldest) = self.kept.front()
            && oldest.written <= at
            && (self.dirty + self.kept.len() > self.extents_max
                || self.dirty_blocks + self.kept_blocks > memory.min(self.blocks_max))
        {
            self.kept.pop_front();
            self.kept_blocks -= oldest.end.get() - oldest.start.get();
            if self.kept_by_start.get(&oldest.start) == Some(&self.kept_before) {
                self.kept_by_start.remove(&oldest.start);
            }
            self.kept_before += 1;
        }
    }

    /// Takes in a write of `start..end` at `at`, whose data are there at `ready`: the number of its
    /// extent, and the numbers of those that are now part of it. `target` gives the write of some blocks.
    pub fn write(
        &mut self,
        start: Lbn,
        end: Lbn,
        at: SimTime,
        ready: SimTime,
        target: impl FnOnce(Lbn, Blocks) -> Target,
    ) -> (u64, Vec<u64>) {
        self.forget(start, end);
        let Joined { start, end, mut ids, .. } = self.joined(start, end);
        let ready = ids.iter().map(|&id| self.remove(id).ready).fold(ready, SimTime::max);
        let id = match ids.iter().min() {
            Some(&oldest) => oldest,
            None => self.issue(at),
        };
        ids.retain(|&joined| joined != id);
        let target = target(start, Blocks::new(end.get() - start.get()));
        self.insert(Extent { id, start, end, ready, target });
        self.drop_old_numbers();
        self.drop_kept(at);
        (id, ids)
    }

    fn issue(&mut self, at: SimTime) -> u64 {
        self.issued += 1;
        let issued_at = self.numbers.back().map_or(at, |before| at.max(before.issued_at));
        self.numbers.push_back(Number { issued_at, dirty: None });
        self.issued
    }

    fn insert(&mut self, extent: Extent) {
        let candidate = Candidate { start: RunStart::of(&extent.target), ready: extent.ready };
        self.by_cylinder.insert((extent.target.at.cylinder, extent.id), candidate);
        self.by_start.insert(extent.start, extent.id);
        let rank = self.rank(extent.id);
        self.numbers[rank].dirty = Some(extent);
        self.dirty += 1;
        self.dirty_blocks += extent.end.get() - extent.start.get();
    }

    fn remove(&mut self, id: u64) -> Extent {
        let rank = self.rank(id);
        let extent = self.numbers[rank].dirty.take().expect("a dirty extent waits");
        self.dirty -= 1;
        self.by_start.remove(&extent.start);
        self.by_cylinder.remove(&(extent.target.at.cylinder, id));
        self.dirty_blocks -= extent.end.get() - extent.start.get();
        extent
    }

    /// Forgets the numbers before the oldest dirty one.
    fn drop_old_numbers(&mut self) {
        while self.numbers.front().is_some_and(|number| number.dirty.is_none()) {
            self.numbers.pop_front();
        }
    }

    /// Takes out an extent that goes to the media.
    pub fn take(&mut self, id: u64) -> Extent {
        let extent = self.remove(id);
        self.drop_old_numbers();
        extent
    }

    /// An extent comes to the media at `written`, and its data are kept.
    pub fn keep(&mut self, extent: &Extent, written: SimTime) {
        self.kept_by_start.insert(extent.start, self.kept_before + self.kept.len() as u64);
        self.kept.push_back(Kept { start: extent.start, end: extent.end, written });
        self.kept_blocks += extent.end.get() - extent.start.get();
    }

    fn kept_at(&self, rank: u64) -> &Kept {
        &self.kept[(rank - self.kept_before) as usize]
    }

    /// Forgets kept extents with a block of `start..end`, which is written anew.
    pub fn forget(&mut self, start: Lbn, end: Lbn) {
        while let Some((&first, &rank)) = self.kept_by_start.range(..end).next_back()
            && self.kept_at(rank).end > start
        {
            self.kept_by_start.remove(&first);
        }
    }

    /// True if all of `start..end` is here.
    pub fn hold(&self, start: Lbn, end: Lbn) -> bool {
        let mut at = start;
        while at < end {
            let dirty = self.by_start.range(..=at).next_back().map(|(_, &id)| self.extent(id).end);
            let kept = self.kept_by_start.range(..=at).next_back();
            let kept = kept.map(|(_, &rank)| self.kept_at(rank).end);
            match dirty.max(kept) {
                Some(behind) if behind > at => at = behind,
                _ => return false,
            }
        }
        true
    }

    /// True if one has waited for the age limit at `at`.
    #[inline]
    pub fn has_aged(&self, at: SimTime) -> bool {
        self.numbers.front().is_some_and(|oldest| oldest.issued_at + self.age_limit <= at)
    }

    /// The newest of those that have waited for the age limit at `at`.
    fn newest_aged(&self, at: SimTime) -> Option<u64> {
        let aged = self.numbers.partition_point(|number| number.issued_at + self.age_limit <= at);
        (aged > 0).then(|| self.issued + aged as u64 - self.numbers.len() as u64)
    }

    /// Extent with the smallest cost at `at` among those up to `newest`, the oldest of equals. Those that
    /// have reached the age limit go first. `cost` is none for what cannot go yet; when none can, it is
    /// the oldest.
    ///
    /// The search goes outwards from `cylinder`. It ends after [`CHOICE_MAX`] extents, or when all that is
    /// left is so far away that it costs more: `floor` is the least cost of that distance or more. `cost`
    /// gets the least cost so far, and may be none for one that costs more than that.
    pub fn cheapest(
        &self,
        at: SimTime,
        newest: u64,
        cylinder: u32,
        floor: impl Fn(u32) -> u64,
        cost: impl Fn(u64, &Candidate, u64) -> Option<u64>,
    ) -> Option<u64> {
        let newest = self.newest_aged(at).map_or(newest, |aged| aged.min(newest));
        let oldest = self.oldest().map(|oldest| oldest.id).filter(|&oldest| oldest <= newest)?;
        let (mut least, mut best) = ((u64::MAX, u64::MAX), oldest);
        let mut consider = |id: u64, candidate: &Candidate| {
            if let Some(cost) = cost(id, candidate, least.0)
                && (cost, id) < least
            {
                (least, best) = ((cost, id), id);
            }
            least.0
        };
        if let Some(few) = self.few_up_to(newest) {
            for extent in few {
                let candidate = &self.by_cylinder[&(extent.target.at.cylinder, extent.id)];
                consider(extent.id, candidate);
            }
            return Some(best);
        }
        let mut most = u64::MAX;
        let eligible = self.outwards(cylinder).filter(|&(_, id, _)| id <= newest);
        for (distance, id, candidate) in eligible.take(CHOICE_MAX) {
            if floor(distance) > most {
                break;
            }
            most = consider(id, candidate);
        }
        Some(best)
    }

    /// Dirty extents from a cylinder outwards, the nearest first: distance, number, and what is known.
    fn outwards(&self, cylinder: u32) -> impl Iterator<Item = (u32, u64, &Candidate)> {
        let mut above = self.by_cylinder.range((cylinder, 0)..).peekable();
        let mut below = self.by_cylinder.range(..(cylinder, 0)).rev().peekable();
        std::iter::from_fn(move || {
            let up = above.peek().map(|(place, _)| place.0 - cylinder);
            let down = below.peek().map(|(place, _)| cylinder - place.0);
            let upwards = down.is_none_or(|down| up.is_some_and(|up| up <= down));
            let (place, candidate) = if upwards { above.next()? } else { below.next()? };
            Some((place.0.abs_diff(cylinder), place.1, candidate))
        })
    }

    /// Extents up to a number, if they are a small part of all: looking at each is then faster.
    fn few_up_to(&self, newest: u64) -> Option<impl Iterator<Item = &Extent>> {
        const FEW: usize = 64;
        let is_part = newest < self.issued && self.rank(newest) < FEW;
        is_part.then(|| {
            let few = self.numbers.range(..=self.rank(newest));
            few.filter_map(|number| number.dirty.as_ref())
        })
    }
}

#[cfg(test)]
mod tests;
