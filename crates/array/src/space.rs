//! Free space of one disk.

use std::collections::{BTreeMap, BTreeSet};

use freewheel_units::{Blocks, Lbn};

/// Room of a disk for an extent (tr96 section 3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SpaceStatus {
    /// FREE: in one piece.
    Free,
    /// FRAG: enough room, but in several pieces.
    Fragmented,
    /// FULL: not enough room.
    Full,
}

/// The free ranges of a disk, none of which touches another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FreeSpace {
    by_start: BTreeMap<u64, u64>,
    by_length: BTreeSet<Hole>,
    free: u64,
}

/// Ordered by length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Hole {
    blocks: u64,
    start: u64,
}

impl FreeSpace {
    /// An empty disk.
    pub fn new(capacity: Blocks) -> Self {
        let mut space =
            Self { by_start: BTreeMap::new(), by_length: BTreeSet::new(), free: capacity.get() };
        if capacity > Blocks::ZERO {
            space.insert(Hole { start: 0, blocks: capacity.get() });
        }
        space
    }

    /// Free blocks, in one piece or several.
    pub fn free(&self) -> Blocks {
        Blocks::new(self.free)
    }

    /// Free ranges in ascending order: first block and length.
    pub fn holes(&self) -> impl Iterator<Item = (Lbn, Blocks)> {
        self.by_start.iter().map(|(&start, &blocks)| (Lbn::new(start), Blocks::new(blocks)))
    }

    /// Room for `blocks` blocks.
    pub fn status(&self, blocks: Blocks) -> SpaceStatus {
        if self.by_length.last().is_some_and(|hole| hole.blocks >= blocks.get()) {
            SpaceStatus::Free
        } else if self.free >= blocks.get() {
            SpaceStatus::Fragmented
        } else {
            SpaceStatus::Full
        }
    }

    /// Takes the beginning of the shortest range that holds `blocks` blocks. None without one. Panics
    /// for no blocks.
    pub fn take(&mut self, blocks: Blocks) -> Option<Lbn> {
        assert!(blocks > Blocks::ZERO, "an extent without blocks");
        let start = self.shortest(blocks)?;
        self.take_at(start, blocks);
        Some(start)
    }

    /// First block of the range that [`FreeSpace::take`] would use.
    pub fn shortest(&self, blocks: Blocks) -> Option<Lbn> {
        let least = Hole { blocks: blocks.get(), start: 0 };
        self.by_length.range(least..).next().map(|hole| Lbn::new(hole.start))
    }

    /// The beginning of `blocks` free blocks in one piece, as near as possible to `near`; the lowest of two that
    /// are as near.
    pub fn nearest(&self, blocks: Blocks, near: Lbn) -> Option<Lbn> {
        let fitting = self.by_start.iter().filter(|(_, hole)| **hole >= blocks.get());
        let found = fitting
            .map(|(&start, &hole)| near.get().clamp(start, start + hole - blocks.get()))
            .min_by_key(|start| start.abs_diff(near.get()));
        found.map(Lbn::new)
    }

    /// Takes these blocks. Panics when one of them is not free.
    pub fn take_at(&mut self, start: Lbn, blocks: Blocks) {
        let (from, end) = (start.get(), (start + blocks).get());
        let hole = self.by_start.range(..=from).next_back();
        let hole = hole.map(|(&start, &blocks)| Hole { start, blocks });
        let hole = hole.filter(|hole| hole.start + hole.blocks >= end);
        let hole = hole.unwrap_or_else(|| panic!("{start} + {blocks} is not free"));
        self.remove(hole);
        if hole.start < from {
            self.insert(Hole { start: hole.start, blocks: from - hole.start });
        }
        let hole_end = hole.start + hole.blocks;
        if end < hole_end {
            self.insert(Hole { start: end, blocks: hole_end - end });
        }
        self.free -= blocks.get();
    }

    /// Gives blocks back. Panics when one of them is free already.
    pub fn give(&mut self, start: Lbn, blocks: Blocks) {
        let (mut from, mut end) = (start.get(), (start + blocks).get());
        let before = self.by_start.range(..end).next_back();
        if let Some(before) = before.map(|(&start, &blocks)| Hole { start, blocks }) {
            let hole_end = before.start + before.blocks;
            assert!(hole_end <= from, "{start} + {blocks} is free already");
            if hole_end == from {
                self.remove(before);
                from = before.start;
            }
        }
        if let Some(&after) = self.by_start.get(&end) {
            self.remove(Hole { start: end, blocks: after });
            end += after;
        }
        self.insert(Hole { start: from, blocks: end - from });
        self.free += blocks.get();
    }

    fn insert(&mut self, hole: Hole) {
        self.by_start.insert(hole.start, hole.blocks);
        self.by_length.insert(hole);
    }

    fn remove(&mut self, hole: Hole) {
        self.by_start.remove(&hole.start);
        self.by_length.remove(&hole);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CAPACITY: u64 = 40;

    /// Lengths of the runs of free blocks of a bitmap, with their starts.
    fn runs(taken: &[bool]) -> Vec<(Lbn, Blocks)> {
        let mut runs: Vec<(u64, u64)> = Vec::new();
        for (block, _) in taken.iter().enumerate().filter(|(_, taken)| !**taken) {
            match runs.last_mut() {
                Some((start, blocks)) if *start + *blocks == block as u64 => *blocks += 1,
                _ => runs.push((block as u64, 1)),
            }
        }
        runs.iter().map(|&(start, blocks)| (Lbn::new(start), Blocks::new(blocks))).collect()
    }

    proptest! {
        #[test]
        fn free_ranges_match_bitmap(
            steps in prop::collection::vec((any::<bool>(), 1u64..12, any::<prop::sample::Index>()), 1..60)
        ) {
            let mut space = FreeSpace::new(Blocks::new(CAPACITY));
            let mut taken = [false; CAPACITY as usize];
            let mut extents: Vec<(Lbn, Blocks)> = Vec::new();
            for (gives, blocks, which) in steps {
                let wanted = Blocks::new(blocks);
                let free = runs(&taken);
                let all: u64 = free.iter().map(|(_, blocks)| blocks.get()).sum();
                let fitting = free.iter().filter(|(_, hole)| *hole >= wanted);
                let expected = match fitting.clone().count() {
                    0 if all >= blocks => SpaceStatus::Fragmented,
                    0 => SpaceStatus::Full,
                    _ => SpaceStatus::Free,
                };
                prop_assert_eq!(space.status(wanted), expected);
                if gives && !extents.is_empty() {
                    let (start, blocks) = extents.swap_remove(which.index(extents.len()));
                    space.give(start, blocks);
                    taken[start.get() as usize..][..blocks.get() as usize].fill(false);
                } else {
                    let shortest = fitting.min_by_key(|(start, hole)| (*hole, *start));
                    let found = space.take(wanted);
                    prop_assert_eq!(found, shortest.map(|(start, _)| *start));
                    if let Some(start) = found {
                        taken[start.get() as usize..][..blocks as usize].fill(true);
                        extents.push((start, wanted));
                    }
                }
                let near = (7 * blocks) % CAPACITY;
                let is_free = |start: &u64| taken[*start as usize..][..blocks as usize].iter().all(|taken| !taken);
                let free = (0..=CAPACITY - blocks).filter(is_free);
                let nearest = free.min_by_key(|start| start.abs_diff(near)).map(Lbn::new);
                prop_assert_eq!(space.nearest(wanted, Lbn::new(near)), nearest);
                prop_assert_eq!(space.holes().collect::<Vec<_>>(), runs(&taken));
                let free = taken.iter().filter(|taken| !**taken).count() as u64;
                prop_assert_eq!(space.free(), Blocks::new(free));
            }
        }
    }

    #[test]
    #[should_panic(expected = "is free already")]
    fn giving_back_twice_is_an_error() {
        let mut space = FreeSpace::new(Blocks::new(CAPACITY));
        space.take_at(Lbn::new(4), Blocks::new(4));
        space.give(Lbn::new(6), Blocks::new(3));
    }
}
