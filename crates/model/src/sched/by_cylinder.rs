//! Waiting requests by cylinder, searched outwards from the head.
//!
//! Requests stand in chunks of neighbouring cylinders; in a chunk the oldest comes first. The arm needs
//! at least [`SeekCurve::floor_ns`](crate::drive::SeekCurve::floor_ns) to reach a cylinder or any
//! beyond it. So a search may stop at the first chunk that this bound alone excludes. Where younger
//! requests have a handicap, it leaves a chunk at the first request whose handicap excludes it. With
//! many requests waiting, most of them are never looked at.

use super::{Moment, Waiting};
use crate::drive::{Positionings, RunStart};
use freewheel_units::SimTime;

/// Requests by cylinder and age.
#[derive(Debug)]
pub(super) struct ByCylinder {
    /// At least one chunk, in order of cylinders; only a single one may be empty.
    chunks: Vec<Chunk>,
    slots: Vec<Waiting>,
    free: Vec<u32>,
    /// Age counts as well: no chunk may be passed over for its cylinders alone, so there are fewer.
    is_by_age: bool,
}

/// Requests for cylinders of a range. Neighbouring ranges share at most a border.
#[derive(Debug)]
struct Chunk {
    /// First and last cylinder of the entries.
    first: u32,
    last: u32,
    /// In order of arrival.
    entries: Vec<Entry>,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    start: RunStart,
    arrival: SimTime,
    slot: u32,
}

/// Entries at which a chunk of a short queue is split in two.
const CHUNK_MAX: usize = 12;

/// Place of an entry, valid until the next insertion or removal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Found {
    chunk: usize,
    rank: usize,
}

/// A request that a search looks at.
pub(super) struct Candidate<'a> {
    pub start: &'a RunStart,
    queue: &'a ByCylinder,
    slot: u32,
}

impl<'a> Candidate<'a> {
    #[inline]
    pub(super) fn waiting(&self) -> &'a Waiting {
        &self.queue.slots[self.slot as usize]
    }

    /// Positioning time of the first run, if at most `limit_ns`.
    #[inline(always)]
    pub(super) fn total_ns(&self, from_head: &Positionings<'_>, limit_ns: u64) -> Option<u64> {
        if from_head.bound_ns(self.start) > limit_ns {
            return None;
        }
        Some(self.worked_out_ns(from_head)).filter(|total_ns| *total_ns <= limit_ns)
    }

    // Apart, so that the loop around keeps its registers.
    #[inline(never)]
    fn worked_out_ns(&self, from_head: &Positionings<'_>) -> u64 {
        from_head.total_ns(self.start, || &self.waiting().target)
    }
}

impl Default for ByCylinder {
    fn default() -> Self {
        Self {
            chunks: vec![Chunk::new(Vec::new())],
            slots: Vec::new(),
            free: Vec::new(),
            is_by_age: false,
        }
    }
}

impl Chunk {
    fn new(entries: Vec<Entry>) -> Self {
        let mut chunk = Self { first: 0, last: 0, entries };
        chunk.measure();
        chunk
    }

    /// Finds the range anew.
    fn measure(&mut self) {
        let cylinders = self.entries.iter().map(|entry| entry.start.cylinder());
        self.first = cylinders.clone().min().unwrap_or(0);
        self.last = cylinders.max().unwrap_or(0);
    }

    #[inline]
    fn insert(&mut self, entry: Entry) {
        let cylinder = entry.start.cylinder();
        let is_empty = self.entries.is_empty();
        self.first = if is_empty { cylinder } else { self.first.min(cylinder) };
        self.last = self.last.max(cylinder);
        let younger = self.entries.iter().rev().take_while(|other| other.arrival > entry.arrival);
        let rank = self.entries.len() - younger.count();
        self.entries.insert(rank, entry);
    }

    #[inline]
    fn remove(&mut self, rank: usize) -> Entry {
        let entry = self.entries.remove(rank);
        let cylinder = entry.start.cylinder();
        if cylinder == self.first || cylinder == self.last {
            self.measure();
        }
        entry
    }

    /// Takes out the upper half of the cylinders, at least one of which stays. None where there is only
    /// one.
    #[cold]
    fn split(&mut self) -> Option<Self> {
        if self.first == self.last {
            return None;
        }
        let mut cylinders: Vec<u32> = self.entries.iter().map(|e| e.start.cylinder()).collect();
        let middle = cylinders.len() / 2;
        let border = *cylinders.select_nth_unstable(middle).1;
        let border = border.max(self.first + 1);
        let entries = std::mem::take(&mut self.entries);
        let (upper, lower) = entries.into_iter().partition(|e| e.start.cylinder() >= border);
        self.entries = lower;
        self.measure();
        Some(Self::new(upper))
    }

    #[cold]
    fn absorb(&mut self, next: Self) {
        self.entries.extend(next.entries);
        self.entries.sort_by_key(|entry| entry.arrival);
        self.measure();
    }
}

impl ByCylinder {
    /// For searches with handicaps.
    pub(super) fn by_age() -> Self {
        Self { is_by_age: true, ..Self::default() }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(super) fn push(&mut self, waiting: Waiting) {
        let start = RunStart::of(&waiting.target);
        let entry = Entry { start, arrival: waiting.arrival, slot: self.store(waiting) };
        let at = self.chunk_of(start.cylinder());
        self.chunks[at].insert(entry);
        if self.chunks[at].entries.len() > self.chunk_max()
            && let Some(upper) = self.chunks[at].split()
        {
            self.chunks.insert(at + 1, upper);
        }
    }

    fn store(&mut self, waiting: Waiting) -> u32 {
        if let Some(slot) = self.free.pop() {
            self.slots[slot as usize] = waiting;
            return slot;
        }
        self.slots.push(waiting);
        u32::try_from(self.slots.len() - 1).expect("fewer than 2^32 waiting requests")
    }

    /// Entries at which a chunk is split in two. That number rises as the square root of all, so that
    /// chunks never become many.
    #[inline]
    fn chunk_max(&self) -> usize {
        let root = self.len().isqrt();
        CHUNK_MAX.max(if self.is_by_age { 2 * root } else { root / 2 })
    }

    /// The last chunk that does not begin behind a cylinder, or else the first.
    #[inline]
    fn chunk_of(&self, cylinder: u32) -> usize {
        self.chunks[1..].partition_point(|chunk| chunk.first <= cylinder)
    }

    pub(super) fn remove(&mut self, found: Found) -> Waiting {
        let entry = self.chunks[found.chunk].remove(found.rank);
        if self.chunks.len() > 1 {
            self.close_up(found.chunk);
        }
        self.free.push(entry.slot);
        self.slots[entry.slot as usize]
    }

    /// Takes the request of this sequence, by looking at all of them.
    pub(super) fn take(&mut self, sequence: u64) -> Option<Waiting> {
        let found = self.chunks.iter().enumerate().find_map(|(chunk, Chunk { entries, .. })| {
            Some(Found {
                chunk,
                rank: entries
                    .iter()
                    .position(|entry| self.slots[entry.slot as usize].sequence == sequence)?,
            })
        })?;
        Some(self.remove(found))
    }

    /// Puts a chunk of which little is left together with the next.
    #[inline]
    fn close_up(&mut self, chunk: usize) {
        let chunk = chunk.min(self.chunks.len() - 2);
        let [one, other] = [chunk, chunk + 1].map(|at| self.chunks[at].entries.len());
        if one + other <= CHUNK_MAX / 2 || one == 0 || other == 0 {
            let next = self.chunks.remove(chunk + 1);
            self.chunks[chunk].absorb(next);
        }
    }

    /// Time at which the request that waits longest arrived.
    pub(super) fn oldest(&self) -> Option<SimTime> {
        let oldest = self.chunks.iter().filter_map(|chunk| chunk.entries.first());
        oldest.map(|entry| entry.arrival).min()
    }

    /// Takes the request with the smallest key; see [`Self::least`].
    #[inline]
    pub(super) fn take_least(
        &mut self,
        moment: &Moment<'_>,
        handicap_ns: impl Fn(SimTime) -> u64,
        time_ns: impl Fn(&Candidate<'_>, u64) -> Option<u64>,
    ) -> Option<Waiting> {
        let (_, found) = self.least(moment, handicap_ns, time_ns)?;
        Some(self.remove(found))
    }

    /// The request with the smallest key, of equals the one that arrived first. A key is the sum of a
    /// handicap, which is no less for a later arrival, and of a time, which is no less than the arm
    /// needs to the request's cylinder. `time_ns` gives the time if it is at most as long as its
    /// argument, else None.
    #[inline]
    pub(super) fn least(
        &self,
        moment: &Moment<'_>,
        handicap_ns: impl Fn(SimTime) -> u64,
        time_ns: impl Fn(&Candidate<'_>, u64) -> Option<u64>,
    ) -> Option<(u64, Found)> {
        let mut best = Best { key: u64::MAX, slot: u32::MAX, found: None };
        let mut outwards = Outwards::new(self, moment.head.cylinder);
        while let Some((index, distance)) = outwards.next() {
            let floor_ns = moment.drive.seek().floor_ns(distance);
            if floor_ns > best.key {
                break;
            }
            for (rank, entry) in self.chunks[index].entries.iter().enumerate() {
                let handicap = handicap_ns(entry.arrival);
                let Some(limit) = best.key.checked_sub(handicap) else { break };
                if floor_ns > limit {
                    break;
                }
                let candidate = Candidate { start: &entry.start, queue: self, slot: entry.slot };
                if let Some(time) = time_ns(&candidate, limit) {
                    let found = Found { chunk: index, rank };
                    best.consider(self, handicap + time, entry.slot, found);
                }
            }
        }
        best.found.map(|found| (best.key, found))
    }
}

/// The best request seen.
struct Best {
    key: u64,
    slot: u32,
    found: Option<Found>,
}

impl Best {
    #[inline]
    fn consider(&mut self, queue: &ByCylinder, key: u64, slot: u32, found: Found) {
        if key < self.key
            || (key == self.key
                && self.found.is_some()
                && sequence(slot, queue) < sequence(self.slot, queue))
        {
            *self = Self { key, slot, found: Some(found) };
        }
    }
}

fn sequence(slot: u32, queue: &ByCylinder) -> u64 {
    queue.slots[slot as usize].sequence
}

/// Chunks from a cylinder outwards, on both sides, nearest first.
struct Outwards<'a> {
    chunks: &'a [Chunk],
    cylinder: u32,
    /// The next chunk at or above the cylinder.
    above: usize,
    /// The chunk after the next below it.
    below: usize,
}

impl<'a> Outwards<'a> {
    #[inline]
    fn new(queue: &'a ByCylinder, cylinder: u32) -> Self {
        let start = queue.chunk_of(cylinder);
        Self { chunks: &queue.chunks, cylinder, above: start, below: start }
    }

    /// The next chunk, and how far its nearest request is away at least.
    #[inline]
    fn next(&mut self) -> Option<(usize, u32)> {
        let above = self.chunks.get(self.above);
        let up = above.map(|chunk| chunk.first.saturating_sub(self.cylinder));
        let below = self.below.checked_sub(1);
        let down = below.map(|below| self.cylinder.saturating_sub(self.chunks[below].last));
        if let Some(up) = up
            && down.is_none_or(|down| up <= down)
        {
            self.above += 1;
            return Some((self.above - 1, up));
        }
        self.below = below?;
        Some((self.below, down?))
    }
}
