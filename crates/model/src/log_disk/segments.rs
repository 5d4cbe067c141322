//! Places of all logical blocks, and contents of all segments.

use std::collections::BTreeSet;

use freewheel_units::SimTime;

use super::cost_benefit::{self, Candidate};
use super::{LogicalBlock, Place};

/// The block-number map, the segment summaries and the table of segment usage.
#[derive(Debug, Clone)]
pub(super) struct Segments {
    /// Data blocks of a segment.
    slots: u32,
    /// By logical block.
    places: Vec<Option<Place>>,
    /// Time at which each logical block was modified, which copying does not change.
    modified: Vec<SimTime>,
    /// Logical blocks put into each segment since it was opened.
    summaries: Vec<Vec<LogicalBlock>>,
    live: Vec<u32>,
    /// Youngest modification of a block that was put into the segment, live or dead by now.
    youngest: Vec<SimTime>,
    open: u32,
    free: BTreeSet<u32>,
}

impl Segments {
    /// All free but the first, which is under construction.
    pub fn new(segments: u32, slots: u32, logical_blocks: u32) -> Self {
        Self {
            slots,
            places: vec![None; logical_blocks as usize],
            modified: vec![SimTime::ZERO; logical_blocks as usize],
            summaries: vec![Vec::new(); segments as usize],
            live: vec![0; segments as usize],
            youngest: vec![SimTime::ZERO; segments as usize],
            open: 0,
            free: (1..segments).collect(),
        }
    }

    pub fn place(&self, block: LogicalBlock) -> Option<Place> {
        self.places[block as usize]
    }

    pub fn summary(&self, segment: u32) -> &[LogicalBlock] {
        &self.summaries[segment as usize]
    }

    pub fn live(&self, segment: u32) -> u32 {
        self.live[segment as usize]
    }

    pub fn open(&self) -> u32 {
        self.open
    }

    pub fn free_segments(&self) -> u32 {
        self.free.len() as u32
    }

    pub fn is_free(&self, segment: u32) -> bool {
        self.free.contains(&segment)
    }

    pub fn is_open_full(&self) -> bool {
        self.summaries[self.open as usize].len() as u32 == self.slots
    }

    /// The block was given new contents.
    pub fn touch(&mut self, block: LogicalBlock, now: SimTime) {
        self.modified[block as usize] = now;
    }

    /// Live blocks of a segment in order of their slots, from `first` on.
    pub fn live_slots(
        &self,
        segment: u32,
        first: u32,
    ) -> impl Iterator<Item = (u32, LogicalBlock)> {
        let slots = (0..).zip(self.summary(segment).iter().copied()).skip(first as usize);
        slots.filter(move |&(slot, block)| self.place(block) == Some(Place { segment, slot }))
    }

    /// Puts a block into the segment under construction, which must have room. Returns the place
    /// that is dead now.
    pub fn append(&mut self, block: LogicalBlock) -> Option<Place> {
        assert!(!self.is_open_full(), "the segment under construction is full");
        let dead = self.remove(block);
        let open = self.open as usize;
        let slot = self.summaries[open].len() as u32;
        self.summaries[open].push(block);
        self.live[open] += 1;
        self.places[block as usize] = Some(Place { segment: self.open, slot });
        self.replaced(block);
        dead
    }

    /// A block in the segment under construction has its newest contents there.
    pub fn replaced(&mut self, block: LogicalBlock) {
        let youngest = &mut self.youngest[self.open as usize];
        *youngest = (*youngest).max(self.modified[block as usize]);
    }

    /// Forgets where a block is. Returns the place that is dead now. A segment without live blocks is
    /// free: the blocks that replace its own are in the segment under construction, which is on the
    /// media before the free one is written again.
    pub fn remove(&mut self, block: LogicalBlock) -> Option<Place> {
        let dead = self.places[block as usize].take()?;
        let live = &mut self.live[dead.segment as usize];
        *live -= 1;
        if *live == 0 && dead.segment != self.open {
            self.free.insert(dead.segment);
        }
        Some(dead)
    }

    /// The segment under construction is on the media: continues with the next free one, around the end
    /// of the disk. Panics when none is free.
    pub fn open_next(&mut self) {
        let written = self.open;
        let behind = self.free.range(written..).next().or(self.free.first());
        self.open = *behind.expect("a free segment: the log is full of live blocks");
        self.free.remove(&self.open);
        self.summaries[self.open as usize].clear();
        self.youngest[self.open as usize] = SimTime::ZERO;
        if self.live[written as usize] == 0 {
            self.free.insert(written);
        }
    }

    /// The best segment to clean at `now` of those that are written and not `excluded`.
    pub fn best_to_clean(&self, now: SimTime, excluded: &BTreeSet<u32>) -> Option<u32> {
        let candidates = (0..self.live.len() as u32)
            .filter(|&segment| {
                segment != self.open && !self.is_free(segment) && !excluded.contains(&segment)
            })
            .map(|segment| Candidate {
                segment,
                live: self.live(segment),
                age: now - self.youngest[segment as usize],
            });
        cost_benefit::best(candidates, self.slots).map(|best| best.segment)
    }
}
