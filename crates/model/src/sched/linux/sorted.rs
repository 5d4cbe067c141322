//! Waiting requests of one direction: by place, by end, and by age.

use std::collections::BTreeMap;

use freewheel_units::Lbn;

use super::{IoRequest, Merged};

/// Most blocks of a merged request: 1,280 KiB, the kernel's default of `max_sectors_kb`.
pub(super) const MERGED_BLOCKS_MAX: u32 = 2560;

/// Requests by (start, sequence), by (end, sequence), and by sequence, which is by age.
#[derive(Debug, Default)]
pub(super) struct SortedRequests {
    by_start: BTreeMap<(Lbn, u64), IoRequest>,
    /// Start of the request with this end.
    by_end: BTreeMap<(Lbn, u64), Lbn>,
    /// Start of the request of this age.
    by_age: BTreeMap<u64, Lbn>,
}

impl SortedRequests {
    pub fn is_empty(&self) -> bool {
        self.by_start.is_empty()
    }

    pub fn insert(&mut self, request: IoRequest) {
        self.by_end.insert((request.end(), request.sequence), request.start);
        self.by_age.insert(request.sequence, request.start);
        self.by_start.insert((request.start, request.sequence), request);
    }

    /// Takes out a request that is there.
    pub fn remove(&mut self, request: &IoRequest) {
        self.by_end.remove(&(request.end(), request.sequence));
        self.by_age.remove(&request.sequence);
        self.by_start.remove(&(request.start, request.sequence));
    }

    /// The oldest request.
    pub fn oldest(&self) -> Option<IoRequest> {
        let (&sequence, &start) = self.by_age.first_key_value()?;
        self.by_start.get(&(start, sequence)).copied()
    }

    /// The first request that begins at `at` or above.
    pub fn first_from(&self, at: Lbn) -> Option<IoRequest> {
        self.by_start.range((at, 0)..).next().map(|(_, request)| *request)
    }

    fn ending_at(&self, at: Lbn) -> Option<IoRequest> {
        let (&(_, sequence), &start) = self.by_end.range((at, 0)..=(at, u64::MAX)).next()?;
        self.by_start.get(&(start, sequence)).copied()
    }

    fn starting_at(&self, at: Lbn) -> Option<IoRequest> {
        self.first_from(at).filter(|request| request.start == at)
    }

    /// Joins a new request with the one that ends where it begins. With `front`, else with the one that
    /// begins where it ends. A request that now adjoins a third one takes that in too.
    pub fn merge(&mut self, new: &IoRequest, front: bool) -> Option<Merged> {
        let is_behind = self.ending_at(new.start).filter(|before| may_join(before, new));
        let is_before =
            || self.starting_at(new.end()).filter(|after| front && may_join(new, after));
        let (waiting, third) = match is_behind {
            Some(before) => (before, self.starting_at(new.end())),
            None => (is_before()?, self.ending_at(new.start)),
        };
        self.remove(&waiting);
        let mut joined = join(&waiting, new);
        let third = third.filter(|third| may_join(third, &joined));
        if let Some(third) = &third {
            self.remove(third);
            joined = join(&joined, third);
        }
        self.insert(joined);
        let absorbed = third.map(|third| third.sequence.max(waiting.sequence));
        Some(Merged { into: joined.sequence, absorbed })
    }
}

fn may_join(a: &IoRequest, b: &IoRequest) -> bool {
    !a.fua && !b.fua && a.blocks.saturating_add(b.blocks) <= MERGED_BLOCKS_MAX
}

/// Both as one, with the age of the older.
fn join(a: &IoRequest, b: &IoRequest) -> IoRequest {
    let older = if a.sequence < b.sequence { a } else { b };
    IoRequest { start: a.start.min(b.start), blocks: a.blocks + b.blocks, ..*older }
}
