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

use freewheel_freeblock::tasks::Extent;
use freewheel_units::{BLOCK_BYTES, Blocks};

use crate::runs::Runs;

/// Most blocks of 512 B that a task keeps: 64 MiB, as planners keep of pieces.
const HELD_MAX: u64 = (64 << 20) / BLOCK_BYTES;

/// Blocks of 512 B that are written before a flush: 1 MiB. A drive whose write cache is off, as in front of
/// a scheduler, flushes in no time.
const FLUSHED_AT_ONCE: u64 = (1 << 20) / BLOCK_BYTES;

/// Failures after which a block is given up.
const FAILURES_MAX: u32 = 3;

/// How often a block is read anew because clients write parts of it; beyond that it is left.
const RESTARTS_MAX: u32 = 16;

/// Most extents that a report lists of each kind.
const LISTED_MAX: usize = 1000;

/// How far a block has come.
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
    /// The last command that the device had been sent when it was written.
    behind: u64,
}

impl Held {
    fn blocks(&self) -> u64 {
        self.data.len() as u64 / BLOCK_BYTES
    }
}

/// What a step has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// It is to be repeated.
    Again,
    /// The block is done with, one way or the other.
    Over,
}

/// Results of a refresh. A block that was read ends as refreshed, differing, unwritten, superseded or busy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RefreshReport {
    /// Blocks of 512 B that were written and read back the same.
    pub refreshed: Blocks,
    /// Blocks that clients wrote meanwhile, which has refreshed them.
    pub superseded: Blocks,
    /// Blocks that were left because clients wrote parts of them again and again.
    pub busy: Blocks,
    /// Blocks that were read back with other data than were written: the first thousand extents.
    pub differing: Vec<Extent>,
    /// Number of these blocks.
    pub differing_blocks: Blocks,
    /// Blocks that could not be written, or not be read since: the first thousand extents.
    pub unwritten: Vec<Extent>,
    /// Number of these blocks.
    pub unwritten_blocks: Blocks,
}

/// Blocks of a refresh that have been read and not been read back.
#[derive(Debug, Default)]
pub(crate) struct RefreshBlocks {
    /// By first block of 512 B; apart from each other.
    held: BTreeMap<u64, Held>,
    /// Those that no gap is used for: requests of their own write them and read them back.
    alone: BTreeSet<u64>,
    blocks: u64,
    unflushed: u64,
    restarts: BTreeMap<u64, u32>,
    refreshed: u64,
    superseded: u64,
    busy: u64,
    differing: Runs,
    unwritten: Runs,
    /// Requests of its own write and read back all that is kept before they read more.
    pub drains: bool,
}

impl RefreshBlocks {
    /// Whether there is memory for so many blocks of 512 B more.
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
        let (stage, failures, behind) = (Stage::Read, 0, 0);
        self.held.insert(start, Held { data, stage, failures, behind });
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

    /// Clients have written so many blocks of 512 B, which needed no refresh any more.
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

    /// Whether a flush is due; `may_read` as long as there is more to read.
    pub fn is_flush_due(&self, may_read: bool) -> bool {
        let is_more_to_write = || self.held.values().any(|held| held.stage == Stage::Read);
        self.unflushed >= FLUSHED_AT_ONCE || self.unflushed > 0 && !may_read && !is_more_to_write()
    }

    /// A flush goes to the device.
    pub fn flush_begins(&mut self) {
        self.unflushed = 0;
        let written = self.held.values_mut().filter(|held| held.stage == Stage::Written);
        written.for_each(|held| held.stage = Stage::Flushing);
    }

    /// It has come back; returns what may be read back in gaps. `behind` is the last command sent.
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

    /// Whether a command could have brought a block as it has been written.
    pub fn is_behind(&self, start: u64, command: u64) -> bool {
        self.held.get(&start).is_some_and(|held| command > held.behind)
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

    /// The read-back of a block has failed, or has brought none of its data. By a request of its own that
    /// is a failure of the block; otherwise such a request tells.
    pub fn not_read_back(&mut self, start: u64, by_own: bool) {
        let Some(held) = self.held.get_mut(&start) else { return };
        self.alone.insert(start);
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

    /// The write of `from..to` has failed; returns its blocks and what is to be done about each.
    pub fn not_written(&mut self, from: u64, to: u64) -> Vec<(Extent, Step)> {
        let starts = self.touching(from, to).into_iter();
        let starts: Vec<u64> =
            starts.filter(|start| self.held[start].stage == Stage::Read).collect();
        let extent = |blocks: &Self, start| Extent::new(start, blocks.held[&start].blocks());
        starts.into_iter().map(|start| (extent(self, start), self.fails(start))).collect()
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

    /// The next block that a request of its own writes: of `all`, or of those that gaps cannot write.
    pub fn next_write(&self, all: bool) -> Option<Extent> {
        self.next_in(Stage::Read, all)
    }

    /// The same of what is to be read back.
    pub fn next_read_back(&self, all: bool) -> Option<Extent> {
        self.next_in(Stage::Flushed, all)
    }

    fn next_in(&self, stage: Stage, all: bool) -> Option<Extent> {
        let is_next = |start: &u64| self.held[start].stage == stage;
        let start = match all {
            true => self.held.keys().find(|start| is_next(start)),
            false => self.alone.iter().find(|start| is_next(start)),
        };
        start.map(|start| Extent::new(*start, self.held[start].blocks()))
    }

    /// Results so far.
    pub fn report(&self) -> RefreshReport {
        let listed = |runs: &Runs| runs.iter().take(LISTED_MAX).collect();
        RefreshReport {
            refreshed: Blocks::new(self.refreshed),
            superseded: Blocks::new(self.superseded),
            busy: Blocks::new(self.busy),
            differing: listed(&self.differing),
            differing_blocks: Blocks::new(self.differing.blocks()),
            unwritten: listed(&self.unwritten),
            unwritten_blocks: Blocks::new(self.unwritten.blocks()),
        }
    }
}
