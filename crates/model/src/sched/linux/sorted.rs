//! Waiting requests of one direction or process: by place, by end, and by age.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};

use freewheel_units::Lbn;

use super::{IoRequest, Merged};

/// Most blocks of a merged request: 1,280 KiB, the kernel's default of `max_sectors_kb`.
pub(super) const MERGED_BLOCKS_MAX: u32 = 2560;

/// Requests by (start, sequence), by (end, sequence), and by sequence, which is by age.
#[derive(Debug, Default)]
pub(super) struct SortedRequests {
    by_start: BTreeMap<(Lbn, u64), IoRequest>,
    /// Start of the request with this end. Those with FUA join no other and are left out.
    by_end: BTreeMap<(Lbn, u64), Lbn>,
    /// Start of the request of this age.
    by_age: BTreeMap<u64, Lbn>,
}

impl SortedRequests {
    pub fn is_empty(&self) -> bool {
        self.by_start.is_empty()
    }

    pub fn insert(&mut self, request: IoRequest) {
        if !request.fua {
            self.by_end.insert((request.end(), request.sequence), request.start);
        }
        self.by_age.insert(request.sequence, request.start);
        self.by_start.insert((request.start, request.sequence), request);
    }

    /// Takes out a request that is there.
    pub fn remove(&mut self, request: &IoRequest) {
        self.by_end.remove(&(request.end(), request.sequence));
        self.by_age.remove(&request.sequence);
        self.by_start.remove(&(request.start, request.sequence));
    }

    pub fn oldest(&self) -> Option<IoRequest> {
        self.get(*self.by_age.first_key_value()?.0)
    }

    /// The first request that begins at `at` or above.
    pub fn first_from(&self, at: Lbn) -> Option<IoRequest> {
        self.by_start.range((at, 0)..).next().map(|(_, request)| *request)
    }

    /// The request behind this one in ascending order, which need not be there any more.
    pub fn after(&self, request: &IoRequest) -> Option<IoRequest> {
        let key = (request.start, request.sequence);
        self.by_start.range((Excluded(key), Unbounded)).next().map(|(_, after)| *after)
    }

    /// The request before this one in ascending order.
    pub fn before(&self, request: &IoRequest) -> Option<IoRequest> {
        let key = (request.start, request.sequence);
        self.by_start.range(..key).next_back().map(|(_, before)| *before)
    }

    /// The request with this sequence.
    pub fn get(&self, sequence: u64) -> Option<IoRequest> {
        let start = *self.by_age.get(&sequence)?;
        self.by_start.get(&(start, sequence)).copied()
    }

    fn ending_at(&self, at: Lbn) -> Option<IoRequest> {
        let (&(_, sequence), &start) = self.by_end.range((at, 0)..=(at, u64::MAX)).next()?;
        self.by_start.get(&(start, sequence)).copied()
    }

    fn starting_at(&self, at: Lbn) -> Option<IoRequest> {
        let mut there = self.by_start.range((at, 0)..=(at, u64::MAX)).map(|(_, request)| *request);
        there.find(|request| !request.fua)
    }

    /// Joins a new request with the one that ends where it begins. With `front`, else with the one that
    /// begins where it ends. A request that now adjoins a third one takes that in too.
    pub fn merge(&mut self, new: &IoRequest, front: bool) -> Option<Merged> {
        let is_behind = self.ending_at(new.start).filter(|before| may_join(before, new));
        let (waiting, third) = match is_behind {
            Some(before) => (before, self.starting_at(new.end())),
            None => (self.is_before(new, front)?, self.ending_at(new.start)),
        };
        self.remove(&waiting);
        let mut joined = join(&waiting, new);
        let third = third.filter(|third| may_join(third, &joined));
        if let Some(third) = &third {
            self.remove(third);
            joined = join(&joined, third);
        }
        self.insert(joined);
        let absorbed =
            third.map(|third| third.sequence.max(waiting.sequence)).into_iter().collect();
        Some(Merged { into: joined.sequence, absorbed })
    }

    fn is_before(&self, new: &IoRequest, front: bool) -> Option<IoRequest> {
        self.starting_at(new.end()).filter(|after| front && may_join(new, after))
    }

    /// Joins a request with the one that ends where it begins, and both with one that ends where they begin, and
    /// so on: `elv_attempt_insert_merge` of Linux.
    pub fn merge_late(&mut self, new: &IoRequest) -> Option<Merged> {
        let mut joined = *new;
        let mut parts = Vec::new();
        while let Some(before) = self.ending_at(joined.start).filter(|it| may_join(it, &joined)) {
            self.remove(&before);
            parts.push(before.sequence);
            joined = join(&before, &joined);
        }
        let into = parts.iter().copied().min()?;
        parts.retain(|&part| part != into);
        self.insert(joined);
        Some(Merged { into, absorbed: parts })
    }
}

fn may_join(a: &IoRequest, b: &IoRequest) -> bool {
    let is_like = a.op == b.op && a.mark == b.mark && !a.fua && !b.fua;
    is_like && a.blocks.saturating_add(b.blocks) <= MERGED_BLOCKS_MAX
}

/// Both as one, with the age of the older.
fn join(a: &IoRequest, b: &IoRequest) -> IoRequest {
    let older = if a.sequence < b.sequence { a } else { b };
    IoRequest { start: a.start.min(b.start), blocks: a.blocks + b.blocks, ..*older }
}
