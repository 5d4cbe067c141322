//! Reads from the disk that are under way, and the clients' reads that wait for them.
//!
//! A client's read may wait for several disk requests, and a disk request may bring blocks for several
//! reads. A fetch brings its own blocks first and those of its read-ahead after a second access:
//!
//! ```text
//!   fetch      [####|~~~~~~~~)   brings all of it
//!   reads        [#1#)             waits for the fetch
//!                 [##2##)          waits for the fetch and for the read-ahead
//!                      [3)         waits for the read-ahead
//! ```

use std::ops::Range;

use slab::Slab;

use super::disk_request::DiskRequest;
use super::prefetch_counts::{PrefetchKind, PrefetchTally};
use super::range_index::RangeIndex;

/// A client's read that waits for a part of a disk request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reader {
    /// Slot among the waiting reads.
    pub waiting: usize,
    /// Blocks that it waits for; some may be others'.
    pub blocks: Range<u64>,
}

impl Reader {
    /// Part of `blocks` that the read waits for.
    pub fn part_of(&self, blocks: &Range<u64>) -> Range<u64> {
        self.blocks.start.max(blocks.start)..self.blocks.end.min(blocks.end)
    }
}

/// A read from the disk that is waiting or on it.
#[derive(Debug, Clone)]
pub(super) struct Reading {
    pub blocks: Range<u64>,
    /// Blocks that a client's read asked for when it was issued. The others are prefetched.
    pub demand: Range<u64>,
    /// Cause of the prefetch.
    pub kind: PrefetchKind,
    /// End of the read-ahead behind the range.
    pub ahead_to: u64,
    /// Block at which an idle disk that reads on stops.
    pub read_on_to: u64,
    pub readers: Vec<Reader>,
    /// Reads that need some blocks of the read-ahead.
    pub ahead_readers: Vec<Reader>,
}

impl Reading {
    /// A read without a client.
    pub fn prefetch(blocks: Range<u64>, kind: PrefetchKind, readers: Vec<Reader>) -> Self {
        let (demand, ahead_to) = (blocks.start..blocks.start, blocks.end);
        Self {
            demand,
            kind,
            ahead_to,
            read_on_to: ahead_to,
            readers,
            ahead_readers: Vec::new(),
            blocks,
        }
    }

    /// True if blocks of `wanted` are prefetched by it.
    fn is_late(&self, wanted: &Range<u64>) -> bool {
        let from = wanted.start.max(self.blocks.start);
        let to = wanted.end.min(self.ahead_to);
        from < to && (from < self.demand.start || self.demand.end < to)
    }

    /// Registers a read that needs `wanted`; returns for how many accesses it waits.
    fn join(&mut self, wanted: &Range<u64>, waiting: usize) -> u32 {
        let end = self.blocks.end;
        let (now, later) =
            (overlaps(&self.blocks, wanted), overlaps(&(end..self.ahead_to), wanted));
        self.readers.extend(now.then(|| reader(waiting, wanted)));
        self.ahead_readers.extend(later.then(|| reader(waiting, wanted)));
        u32::from(now) + u32::from(later)
    }
}

fn overlaps(part: &Range<u64>, wanted: &Range<u64>) -> bool {
    part.start.max(wanted.start) < part.end.min(wanted.end)
}

fn reader(waiting: usize, wanted: &Range<u64>) -> Reader {
    Reader { waiting, blocks: wanted.clone() }
}

/// A client's read, and how many accesses it still waits for.
#[derive(Debug, Clone, Copy)]
struct WaitingRead {
    tag: u64,
    accesses: u32,
}

/// Parts of a read that are already on their way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Joined {
    /// Hull of the blocks that no access brings; None when all are on their way.
    pub left: Option<Range<u64>>,
    /// True if some of them are prefetched with reads.
    pub is_late: bool,
}

/// Reads from the disk by their disk request's slot.
#[derive(Debug, Default)]
pub(super) struct Readings {
    by_slot: Vec<Option<Reading>>,
    /// Range that each fetch brings, with its read-ahead.
    index: RangeIndex,
    waiting: Slab<WaitingRead>,
    found: Vec<(Range<u64>, u32)>,
    late: PrefetchTally,
}

impl Readings {
    /// Takes a disk request into the account.
    pub fn begin(&mut self, request: &DiskRequest, reading: Reading) {
        let slot = DiskRequest::slot(request.id);
        self.index.insert(&(reading.blocks.start..reading.ahead_to), slot);
        let at = slot as usize;
        self.by_slot.resize_with(self.by_slot.len().max(at + 1), || None);
        self.by_slot[at] = Some(reading);
    }

    /// A disk request has ended.
    pub fn end(&mut self, request: &DiskRequest) -> Reading {
        let slot = DiskRequest::slot(request.id);
        self.index.remove(request.start.get(), slot);
        self.by_slot[slot as usize].take().expect("a read under way")
    }

    /// A client's read that has not begun to wait. Returns its slot.
    pub fn wait(&mut self, tag: u64) -> usize {
        self.waiting.insert(WaitingRead { tag, accesses: 0 })
    }

    /// Makes a waiting read wait for one more access.
    pub fn wait_for_one_more(&mut self, waiting: usize) {
        self.waiting[waiting].accesses += 1;
    }

    /// Makes a waiting read wait for every access under way that brings some of the blocks.
    pub fn join(&mut self, missing: &Range<u64>, waiting: usize) -> Joined {
        let mut found = std::mem::take(&mut self.found);
        found.clear();
        self.index.overlapping(missing, |brings, slot| found.push((brings, slot)));
        let mut late = [0; 4];
        for &(_, slot) in &found {
            let reading = self.by_slot[slot as usize].as_mut().expect("a read under way");
            self.waiting[waiting].accesses += reading.join(missing, waiting);
            late[reading.kind as usize] |= u64::from(reading.is_late(missing));
        }
        for kind in PrefetchKind::ALL {
            self.late[kind].late_reads += late[kind as usize];
        }
        let left = without(missing.clone(), &found);
        self.found = found;
        Joined { left, is_late: late[PrefetchKind::WithReads as usize] > 0 }
    }

    /// Reads that waited for prefetched blocks.
    pub fn late(&self) -> PrefetchTally {
        self.late
    }

    /// An access has ended for one of its readers. Returns the tag when the read waits for no other.
    pub fn part_is_here(&mut self, waiting: usize) -> Option<u64> {
        let read = &mut self.waiting[waiting];
        read.accesses -= 1;
        (read.accesses == 0).then(|| self.waiting.remove(waiting).tag)
    }
}

/// Rest of a range when the ranges in flight have cut its front and its back; a part in the middle stays.
fn without(mut left: Range<u64>, in_flight: &[(Range<u64>, u32)]) -> Option<Range<u64>> {
    // Each cut may make the next one possible.
    loop {
        let before = left.clone();
        for (brings, _) in in_flight {
            if brings.contains(&left.start) {
                left.start = brings.end.min(left.end);
            }
            if left.start < left.end && brings.contains(&(left.end - 1)) {
                left.end = brings.start.max(left.start);
            }
        }
        if left.is_empty() {
            return None;
        }
        if left == before {
            return Some(left);
        }
    }
}
