//! Blocks of a refresh between their read and their read-back: a pure table, without planner or device.
//!
//! ```text
//!   wanted --read--> Read --write--> Written --flush--> Flushed --read back--> same: refreshed
//!     ^                |               |                   |
//!     +----------------+---------------+-------------------+   a client is about to write there,
//!                                                              or has: the data are forgotten
//! ```
//! A device with force unit access, or without a volatile cache, needs no flush: a write leads to Flushed.
//!
//! **Data of a refresh are never older than a client's write.** They are forgotten when a client's write
//! of any part of the block arrives, and again when it ends. In between the order of overlapping requests
//! keeps the refresh from writing. What the device was asked for before the end of that write does not
//! count as read.
//!
//! Goals: no clock, planner or device; every block ends in one way. Non-goals: which block is next.

use std::collections::{BTreeMap, BTreeSet};

use freewheel_freeblock::tasks::{Extent, TaskId};
use freewheel_units::{BLOCK_BYTES, Blocks};

use crate::runs::Runs;

/// Most blocks of 512 B that a task keeps: 64 MiB, as planners keep of pieces.
const HELD_MAX: u64 = (64 << 20) / BLOCK_BYTES;

/// Blocks of 512 B that are written before a flush: 1 MiB. A drive whose write cache is off, as in front of
/// a scheduler, flushes in no time.
const FLUSHED_AT_ONCE: u64 = (1 << 20) / BLOCK_BYTES;

/// Failures after which a block is given up.
const FAILURES_MAX: u32 = 3;

/// Most times that a block is read again because clients write parts of it; beyond that it is left.
const RESTARTS_MAX: u32 = 16;

/// Most extents that a report lists of each kind.
const LISTED_MAX: usize = 1000;

/// Stage of a block of a refresh.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Read,
    Written,
    /// A flush that covers it is at the device.
    Flushing,
    Flushed,
}

#[derive(Debug)]
struct Held {
    data: Vec<u8>,
    stage: Stage,
    failures: u32,
    /// A request with other blocks has failed, so that it is asked for alone.
    is_single: bool,
    /// The last command that the device had been sent when it was written.
    behind: u64,
}

impl Held {
    fn blocks(&self) -> u64 {
        self.data.len() as u64 / BLOCK_BYTES
    }
}

/// Passes that gaps make for a refresh beside its first reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pass {
    Write,
    ReadBack,
}

/// A refresh: its blocks, and the planner's tasks that write them and read them back.
#[derive(Debug, Default)]
pub(crate) struct Refresh {
    pub blocks: RefreshBlocks,
    pub writer: Option<TaskId>,
    pub reader: Option<TaskId>,
    /// Separate requests that write or read back and have not come back.
    pub own: u32,
}

/// Outcome of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// The step is to be repeated.
    Again,
    /// The block is done with, one way or the other.
    Over,
}

/// Results of a refresh. A block that was read ends as refreshed, differing, unwritten, superseded or busy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct RefreshReport {
    /// Blocks of 512 B that were written and read back the same.
    pub refreshed: Blocks,
    /// Blocks that clients wrote meanwhile, which has refreshed them.
    pub superseded: Blocks,
    /// Blocks that were left because clients wrote parts of them again and again.
    pub busy: Blocks,
    /// Blocks that were read back with other data than were written: the first thousand extents.
    pub differing: Vec<Extent>,
    pub differing_blocks: Blocks,
    /// Blocks that could not be written, or not be read since: the first thousand extents.
    pub unwritten: Vec<Extent>,
    pub unwritten_blocks: Blocks,
}

/// Blocks of a refresh that have been read and not been read back.
#[derive(Debug, Default)]
pub(crate) struct RefreshBlocks {
    /// By first block of 512 B; apart from each other.
    held: BTreeMap<u64, Held>,
    /// Blocks that no gap is used for: requests of their own write them and read them back.
    alone: BTreeSet<u64>,
    blocks: u64,
    unflushed: u64,
    restarts: BTreeMap<u64, u32>,
    refreshed: u64,
    superseded: u64,
    busy: u64,
    differing: Runs,
    unwritten: Runs,
    /// Separate requests write and read back all that is kept before they read more.
    pub drains: bool,
}

impl RefreshBlocks {
    /// True if there is memory for this number of blocks of 512 B more.
    pub fn has_room(&self, blocks: u64) -> bool {
        self.blocks + blocks <= HELD_MAX
    }

    /// Blocks of 512 B that there is memory for in all.
    pub fn room(&self) -> u64 {
        HELD_MAX
    }

    /// Blocks of 512 B that are kept.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Keeps what was read of a block.
    pub fn hold(&mut self, block: Extent, data: Vec<u8>, in_gaps: bool) {
        let (start, blocks) = (block.start.get(), block.blocks.get());
        self.forget(start, start + blocks);
        self.blocks += blocks;
        let held = Held { data, stage: Stage::Read, failures: 0, is_single: false, behind: 0 };
        self.held.insert(start, held);
        if !in_gaps {
            self.alone.insert(start);
        }
    }

    /// First blocks of what has a part in `from..to`.
    fn touching(&self, from: u64, to: u64) -> Vec<u64> {
        let before = self.held.range(..from).next_back();
        let before = before.filter(|(start, held)| *start + held.blocks() > from);
        let inside = self.held.range(from..to.max(from)).map(|(start, _)| *start);
        before.map(|(start, _)| *start).into_iter().chain(inside).collect()
    }

    /// Forgets what has a part in `from..to`, and returns it.
    pub fn forget(&mut self, from: u64, to: u64) -> Vec<Extent> {
        let starts = self.touching(from, to).into_iter();
        starts.filter_map(|start| Some(Extent::new(start, self.remove(start)?.blocks()))).collect()
    }

    fn remove(&mut self, start: u64) -> Option<Held> {
        let held = self.held.remove(&start)?;
        self.alone.remove(&start);
        self.blocks -= held.blocks();
        self.drains &= !self.held.is_empty();
        self.unflushed -= if held.stage == Stage::Written { held.blocks() } else { 0 };
        Some(held)
    }

    /// Forgets all, and that clients wrote parts of it: a round is over.
    pub fn clear(&mut self) {
        self.forget(0, u64::MAX);
        self.restarts.clear();
        self.drains = false;
    }

    /// A block has to be read anew. False if that was so too often: it is left.
    pub fn restarts(&mut self, block: Extent) -> bool {
        let restarts = self.restarts.entry(block.start.get()).or_default();
        *restarts += 1;
        let may = *restarts <= RESTARTS_MAX;
        self.busy += if may { 0 } else { block.blocks.get() };
        may
    }

    /// Clients have written this number of blocks of 512 B, which needed no refresh any more.
    pub fn superseded(&mut self, blocks: u64) {
        self.superseded += blocks;
    }

    /// Data to write to `from..to`; None unless all of it has been read and not been written.
    pub fn to_write(&self, from: u64, to: u64) -> Option<Vec<u8>> {
        let mut data = Vec::with_capacity(((to - from) * BLOCK_BYTES) as usize);
        let mut at = from;
        for start in self.touching(from, to) {
            let held = &self.held[&start];
            if held.stage != Stage::Read || start > at {
                return None;
            }
            let end = to.min(start + held.blocks());
            let bytes = |block: u64| ((block - start) * BLOCK_BYTES) as usize;
            data.extend_from_slice(&held.data[bytes(at)..bytes(end)]);
            at = end;
        }
        (at == to).then_some(data)
    }

    /// The blocks of `extent` have been written, when the device had been sent command `behind`; returns
    /// those that may be read back in gaps at once.
    pub fn wrote(&mut self, extent: Extent, behind: u64, by_flush: bool) -> Vec<Extent> {
        let mut ready = Vec::new();
        let (from, to) = (extent.start.get(), extent.start.get() + extent.blocks.get());
        let Self { held, alone, .. } = self;
        for (&start, held) in held.range_mut(from..to) {
            if held.stage == Stage::Read && start + held.blocks() <= to {
                held.behind = behind;
                held.stage = if by_flush { Stage::Written } else { Stage::Flushed };
                self.unflushed += if by_flush { held.blocks() } else { 0 };
                if !by_flush && !alone.contains(&start) {
                    ready.push(Extent::new(start, held.blocks()));
                }
            }
        }
        ready
    }

    /// True if a flush is due; `may_read` as long as there is more to read. No block is read before all that
    /// is kept has drained, for which the last blocks need their flush.
    pub fn is_flush_due(&self, may_read: bool) -> bool {
        let may_read = may_read && !self.drains;
        self.unflushed >= FLUSHED_AT_ONCE
            || self.unflushed > 0
                && !may_read
                && !self.held.values().any(|held| held.stage == Stage::Read)
    }

    /// A flush goes to the device.
    pub fn flush_begins(&mut self) {
        self.unflushed = 0;
        let written = self.held.values_mut().filter(|held| held.stage == Stage::Written);
        written.for_each(|held| held.stage = Stage::Flushing);
    }

    /// Ends a flush, and returns the extents that gaps may read back. `behind` is the last command sent.
    pub fn flushed(&mut self, behind: u64) -> Vec<Extent> {
        let mut ready = Vec::new();
        let Self { held, alone, .. } = self;
        for (&start, held) in held {
            if held.stage == Stage::Flushing {
                (held.stage, held.behind) = (Stage::Flushed, behind);
                if !alone.contains(&start) {
                    ready.push(Extent::new(start, held.blocks()));
                }
            }
        }
        ready
    }

    /// True if a command could have brought a block as it has been written.
    pub fn is_behind(&self, start: u64, command: u64) -> bool {
        self.held.get(&start).is_some_and(|held| command > held.behind)
    }

    /// Blocks in an extent that are to be read back.
    pub fn to_read_back(&self, extent: Extent) -> Vec<Extent> {
        let (from, to) = (extent.start.get(), extent.start.get() + extent.blocks.get());
        let flushed = self.held.range(from..to).filter(|(_, held)| held.stage == Stage::Flushed);
        let inside = flushed.filter(|(start, held)| *start + held.blocks() <= to);
        inside.map(|(&start, held)| Extent::new(start, held.blocks())).collect()
    }

    /// A block was read back. Returns whether it is as it was written; None for one that is not kept.
    pub fn read_back(&mut self, block: Extent, data: &[u8]) -> Option<bool> {
        let start = block.start.get();
        self.held.get(&start).filter(|held| held.stage == Stage::Flushed)?;
        let held = self.remove(start)?;
        let is_same = held.data == data;
        match is_same {
            true => self.refreshed += block.blocks.get(),
            false => self.differing.insert(block),
        }
        Some(is_same)
    }

    /// The read-back of a block has failed, or has brought none of its data. By a request of the block
    /// alone that is a failure of the block; otherwise such a request tells.
    pub fn not_read_back(&mut self, start: u64, by_own: bool) {
        let held = self.held.get_mut(&start).filter(|held| held.stage == Stage::Flushed);
        let Some(held) = held else { return };
        self.alone.insert(start);
        held.is_single = true;
        if by_own {
            held.stage = Stage::Read;
            self.fails(start);
        }
    }

    /// Gaps cannot be used for a block.
    pub fn leave_alone(&mut self, start: u64) {
        if self.held.contains_key(&start) {
            self.alone.insert(start);
        }
    }

    /// The write of `from..to` has failed; returns its blocks and what is to be done about each. Of several
    /// blocks each is then tried alone.
    pub fn not_written(&mut self, from: u64, to: u64) -> Vec<(Extent, Step)> {
        let starts = self.touching(from, to).into_iter();
        let starts: Vec<u64> =
            starts.filter(|start| self.held[start].stage == Stage::Read).collect();
        let extent = |blocks: &Self, start| Extent::new(start, blocks.held[&start].blocks());
        let is_single = starts.len() == 1;
        starts
            .into_iter()
            .map(|start| {
                let extent = extent(self, start);
                let held = self.held.get_mut(&start).expect("it is kept");
                held.is_single = true;
                (extent, if is_single { self.fails(start) } else { Step::Again })
            })
            .collect()
    }

    fn fails(&mut self, start: u64) -> Step {
        let Some(held) = self.held.get_mut(&start) else { return Step::Over };
        held.failures += 1;
        if held.failures < FAILURES_MAX {
            return Step::Again;
        }
        let extent = Extent::new(start, held.blocks());
        self.remove(start);
        self.unwritten.insert(extent);
        Step::Over
    }

    /// The next blocks that a separate request writes, at most `most` of 512 B unless the first has more:
    /// of `all`, or of those that gaps cannot write.
    pub fn next_write(&self, all: bool, most: u64) -> Option<Extent> {
        self.next_in(Stage::Read, all, most)
    }

    /// Next extent to read back.
    pub fn next_read_back(&self, all: bool, most: u64) -> Option<Extent> {
        self.next_in(Stage::Flushed, all, most)
    }

    fn next_in(&self, stage: Stage, all: bool, most: u64) -> Option<Extent> {
        let is_next = |start: &&u64| self.held[start].stage == stage;
        let first = match all {
            true => self.held.keys().find(is_next),
            false => self.alone.iter().find(is_next),
        };
        let first = *first?;
        let mut end = first + self.held[&first].blocks();
        let may_join = |start: u64| {
            let held =
                self.held.get(&start).filter(|held| held.stage == stage && !held.is_single)?;
            (all || self.alone.contains(&start)).then(|| held.blocks())
        };
        while !self.held[&first].is_single
            && let Some(more) = may_join(end).filter(|more| end + more - first <= most)
        {
            end += more;
        }
        Some(Extent::new(first, end - first))
    }

    pub fn report(&self) -> RefreshReport {
        RefreshReport {
            refreshed: Blocks::new(self.refreshed),
            superseded: Blocks::new(self.superseded),
            busy: Blocks::new(self.busy),
            differing: self.differing.iter().take(LISTED_MAX).collect(),
            differing_blocks: Blocks::new(self.differing.blocks()),
            unwritten: self.unwritten.iter().take(LISTED_MAX).collect(),
            unwritten_blocks: Blocks::new(self.unwritten.blocks()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Table as a list that every question scans.
    #[derive(Default)]
    struct Listed {
        all: Vec<ListedBlock>,
        refreshed: u64,
        differing: u64,
        unwritten: u64,
    }

    struct ListedBlock {
        start: u64,
        data: Vec<u8>,
        stage: Stage,
        is_alone: bool,
        is_single: bool,
        failures: u32,
    }

    impl ListedBlock {
        fn end(&self) -> u64 {
            self.start + self.data.len() as u64 / BLOCK_BYTES
        }

        fn touches(&self, from: u64, to: u64) -> bool {
            (self.start..self.end()).any(|block| (from..to).contains(&block))
        }
    }

    impl Listed {
        fn forget(&mut self, from: u64, to: u64) {
            self.all.retain(|block| !block.touches(from, to));
        }

        /// Block by block.
        fn to_write(&self, from: u64, to: u64) -> Option<Vec<u8>> {
            let one = |at: u64| {
                let mut of = self.all.iter().filter(|block| block.stage == Stage::Read);
                let block = of.find(|block| block.touches(at, at + 1))?;
                let byte = ((at - block.start) * BLOCK_BYTES) as usize;
                Some(block.data[byte..byte + BLOCK_BYTES as usize].to_vec())
            };
            let parts: Option<Vec<Vec<u8>>> = (from..to).map(one).collect();
            parts.map(|parts| parts.concat())
        }

        fn next(&self, stage: Stage, all: bool, most: u64) -> Option<Extent> {
            let of = self.all.iter().filter(|block| block.stage == stage);
            let of: Vec<&ListedBlock> = of.filter(|block| all || block.is_alone).collect();
            let first = of.iter().min_by_key(|block| block.start)?;
            let mut end = first.end();
            for _ in 0..of.len() {
                let joined = of.iter().find(|block| block.start == end && !block.is_single);
                let joined = joined.filter(|block| block.end() - first.start <= most);
                end = joined.filter(|_| !first.is_single).map_or(end, |block| block.end());
            }
            Some(Extent::new(first.start, end - first.start))
        }

        fn fails(&mut self, start: u64) {
            let Some(at) = self.all.iter().position(|block| block.start == start) else { return };
            self.all[at].failures += 1;
            if self.all[at].failures == FAILURES_MAX {
                self.unwritten += self.all[at].end() - start;
                self.all.remove(at);
            }
        }

        fn set(&mut self, from: Stage, to: Stage) {
            let of = self.all.iter_mut().filter(|block| block.stage == from);
            of.for_each(|block| block.stage = to);
        }
    }

    /// Blocks of 512 B with this in them.
    fn data(blocks: u64, fill: u8) -> Vec<u8> {
        (0..blocks).flat_map(|block| [fill.wrapping_add(block as u8); 512]).collect()
    }

    /// One call on both.
    fn step(
        table: &mut RefreshBlocks,
        listed: &mut Listed,
        by_flush: bool,
        (what, place, fill): (u8, u64, u8),
    ) {
        let (start, size) = (place * 4, 1 + u64::from(fill) % 4);
        let block = Extent::new(start, size);
        match what {
            0..=3 => {
                table.hold(block, data(size, fill), size == 4);
                listed.forget(start, start + size);
                let (data, stage, is_alone) = (data(size, fill), Stage::Read, size < 4);
                let (is_single, failures) = (false, 0);
                listed.all.push(ListedBlock { start, data, stage, is_alone, is_single, failures });
            }
            4 => {
                let (from, to) = (start + size, start + 2 * size + 3);
                table.forget(from, to);
                listed.forget(from, to);
            }
            5 | 6 => {
                table.wrote(Extent::new(start, 8), 0, by_flush);
                let done = if by_flush { Stage::Written } else { Stage::Flushed };
                let inside = |block: &&mut ListedBlock| {
                    block.start >= start && block.end() <= start + 8 && block.stage == Stage::Read
                };
                listed.all.iter_mut().filter(inside).for_each(|block| block.stage = done);
            }
            7 => {
                table.flush_begins();
                listed.set(Stage::Written, Stage::Flushing);
            }
            8 => {
                table.flushed(0);
                listed.set(Stage::Flushing, Stage::Flushed);
            }
            9 | 10 => read_back(table, listed, start, fill),
            11 => {
                let to = start + 1 + size;
                table.not_written(start, to);
                let of = listed.all.iter_mut().filter(|block| block.stage == Stage::Read);
                let of: Vec<&mut ListedBlock> =
                    of.filter(|block| block.touches(start, to)).collect();
                let starts: Vec<u64> = of.iter().map(|block| block.start).collect();
                of.into_iter().for_each(|block| block.is_single = true);
                if let [single] = starts[..] {
                    listed.fails(single);
                }
            }
            _ => {
                let by_own = what == 12;
                table.not_read_back(start, by_own);
                let mut of = listed.all.iter_mut().filter(|block| block.stage == Stage::Flushed);
                if let Some(block) = of.find(|block| block.start == start) {
                    (block.is_alone, block.is_single) = (true, true);
                    block.stage = if by_own { Stage::Read } else { block.stage };
                    if by_own {
                        listed.fails(start);
                    }
                }
            }
        }
    }

    fn read_back(table: &mut RefreshBlocks, listed: &mut Listed, start: u64, fill: u8) {
        let at = listed.all.iter().position(|b| b.start == start && b.stage == Stage::Flushed);
        let Some(at) = at else {
            assert_eq!(table.read_back(Extent::new(start, 1), &[]), None);
            return;
        };
        let block = listed.all.remove(at);
        let mut found = block.data.clone();
        found[5] ^= u8::from(fill > 200);
        let size = block.end() - start;
        let is_same = table.read_back(Extent::new(start, size), &found);
        assert_eq!(is_same, Some(fill <= 200));
        *if fill > 200 { &mut listed.differing } else { &mut listed.refreshed } += size;
    }

    proptest! {
        #[test]
        fn refresh_table_matches_block_list(
            by_flush in any::<bool>(),
            steps in prop::collection::vec((0u8..14, 0u64..12, any::<u8>()), 0..80),
        ) {
            let (mut table, mut listed) = (RefreshBlocks::default(), Listed::default());
            for one in steps {
                step(&mut table, &mut listed, by_flush, one);
                let kept = listed.all.iter().map(|block| block.end() - block.start).sum::<u64>();
                prop_assert_eq!(table.blocks(), kept);
                let unflushed = listed.all.iter().filter(|block| block.stage == Stage::Written);
                let unflushed = unflushed.map(|block| block.end() - block.start).sum::<u64>();
                prop_assert_eq!(table.unflushed, unflushed);
                for (from, to) in (0..48).flat_map(|from| [1, 3, 7].map(|more| (from, from + more))) {
                    prop_assert_eq!(table.to_write(from, to), listed.to_write(from, to));
                }
                for all in [true, false] {
                    for most in [0, 9] {
                        let write = table.next_write(all, most);
                        prop_assert_eq!(write, listed.next(Stage::Read, all, most));
                        let back = table.next_read_back(all, most);
                        prop_assert_eq!(back, listed.next(Stage::Flushed, all, most));
                    }
                }
            }
            let report = table.report();
            prop_assert_eq!(report.refreshed.get(), listed.refreshed);
            let (unwritten, differing) = (report.unwritten_blocks, report.differing_blocks);
            prop_assert!(unwritten.get() <= listed.unwritten && differing.get() <= listed.differing);
        }
    }

    #[test]
    fn block_written_again_and_again_is_left() {
        let mut table = RefreshBlocks::default();
        let block = Extent::new(8, 8);
        assert!((0..RESTARTS_MAX).all(|_| table.restarts(block)));
        assert!(!table.restarts(block));
        assert_eq!(table.report().busy.get(), 8);
        table.clear();
        assert!(table.restarts(block), "in the next round it may be read");
    }

    #[test]
    fn flush_is_due_after_megabyte_or_idle() {
        let mut table = RefreshBlocks::default();
        let block = |number: u64| Extent::new(number * 8, 8);
        for number in 0..FLUSHED_AT_ONCE / 8 {
            table.hold(block(number), data(8, 1), true);
        }
        for number in 0..FLUSHED_AT_ONCE / 8 - 1 {
            table.wrote(block(number), 3, true);
        }
        assert!(!table.is_flush_due(false), "one is to be written");
        assert_eq!(
            table.wrote(block(FLUSHED_AT_ONCE / 8 - 1), 3, true),
            [],
            "not before the flush"
        );
        assert!(table.is_flush_due(true));
        table.flush_begins();
        assert!(!table.is_flush_due(false));
        assert_eq!(table.flushed(9).len() as u64, FLUSHED_AT_ONCE / 8);
        assert!(!table.is_behind(0, 9) && table.is_behind(0, 10));
        table.hold(block(0), data(8, 1), true);
        table.wrote(block(0), 3, true);
        assert!(table.is_flush_due(false) && !table.is_flush_due(true));
    }

    #[test]
    fn draining_memory_flushes_last_blocks() {
        let mut table = RefreshBlocks { drains: true, ..RefreshBlocks::default() };
        table.hold(Extent::new(0, 8), data(8, 1), true);
        table.wrote(Extent::new(0, 8), 3, true);
        // There is more to read, and no block is read before the memory has drained.
        assert!(table.is_flush_due(true));
        table.flush_begins();
        table.flushed(4);
        table.read_back(Extent::new(0, 8), &data(8, 1));
        assert!(!table.drains);
    }
}
