//! Waiting requests in cylinder order, searched outwards from the head.
//!
//! The arm needs at least [`SeekCurve::floor_ns`](crate::drive::SeekCurve::floor_ns) to reach a
//! cylinder or any beyond it. So a search that starts at the head's cylinder and goes outwards may
//! stop as soon as that bound alone exceeds the best answer found: with many requests waiting, most
//! of them are never looked at.
//!
//! The order is kept in chunks of bounded length, so that an overloaded drive with a million
//! requests waiting costs little more to insert into than one with a thousand.

use super::{Moment, Waiting};

/// Requests by (cylinder, sequence).
#[derive(Debug)]
pub(super) struct ByCylinder {
    /// At least one chunk, each sorted, and in order; only a single one may be empty.
    chunks: Vec<Vec<Entry>>,
    slots: Vec<Waiting>,
    free: Vec<u32>,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    cylinder: u32,
    slot: u32,
    sequence: u64,
}

/// Entries at which a chunk is split in two: 8 KiB to move at most.
const CHUNK_MAX: usize = 512;

/// Where an entry is, until the next insertion or removal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Found {
    chunk: usize,
    rank: usize,
}

impl Default for ByCylinder {
    fn default() -> Self {
        Self { chunks: vec![Vec::new()], slots: Vec::new(), free: Vec::new() }
    }
}

impl ByCylinder {
    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(super) fn push(&mut self, waiting: Waiting) {
        let slot = self.store(waiting);
        let entry =
            Entry { cylinder: waiting.target.at.cylinder, slot, sequence: waiting.sequence };
        let place = self.place_of(entry.cylinder, entry.sequence);
        let chunk = &mut self.chunks[place.chunk];
        chunk.insert(place.rank, entry);
        if chunk.len() >= CHUNK_MAX {
            let mut upper = Vec::with_capacity(CHUNK_MAX);
            upper.extend(chunk.drain(CHUNK_MAX / 2..));
            self.chunks.insert(place.chunk + 1, upper);
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

    /// Where an entry with this key is or would be inserted.
    #[inline]
    fn place_of(&self, cylinder: u32, sequence: u64) -> Found {
        let key = (cylinder, sequence);
        let below = |entry: &Entry| (entry.cylinder, entry.sequence) < key;
        let chunk = self.chunks[1..].partition_point(|chunk| below(&chunk[0]));
        Found { chunk, rank: self.chunks[chunk].partition_point(below) }
    }

    /// Where a request that waits is.
    pub(super) fn find(&self, waiting: &Waiting) -> Found {
        let found = self.place_of(waiting.target.at.cylinder, waiting.sequence);
        // The end of a chunk is the start of the next.
        if found.rank == self.chunks[found.chunk].len() {
            Found { chunk: found.chunk + 1, rank: 0 }
        } else {
            found
        }
    }

    pub(super) fn remove(&mut self, found: Found) -> Waiting {
        let entry = self.chunks[found.chunk].remove(found.rank);
        if self.chunks[found.chunk].is_empty() && self.chunks.len() > 1 {
            self.chunks.remove(found.chunk);
        }
        self.free.push(entry.slot);
        self.slots[entry.slot as usize]
    }

    /// Takes the request with the smallest `key_ns`, of equals the one that arrived first. No
    /// request's key may be below the time to reach its cylinder.
    #[inline]
    pub(super) fn take_least(
        &mut self,
        moment: &Moment<'_>,
        key_ns: impl Fn(&Waiting) -> u64,
    ) -> Option<Waiting> {
        let mut best = None;
        let mut best_key = (u64::MAX, u64::MAX);
        let mut search = self.outwards(moment);
        while let Some((found, waiting)) = search.next(best_key.0) {
            let key = (key_ns(waiting), waiting.sequence);
            if key < best_key {
                best_key = key;
                best = Some(found);
            }
        }
        best.map(|found| self.remove(found))
    }

    /// A search that begins at the head's cylinder.
    #[inline]
    pub(super) fn outwards<'a>(&'a self, moment: &Moment<'a>) -> OutwardSearch<'a> {
        let cylinder = moment.head.cylinder;
        let start = self.place_of(cylinder, 0);
        OutwardSearch {
            queue: self,
            seek: moment.drive.seek(),
            cylinder,
            above: start,
            below: start,
        }
    }
}

/// Requests from the head's cylinder outwards, on both sides.
pub(super) struct OutwardSearch<'a> {
    queue: &'a ByCylinder,
    seek: &'a crate::drive::SeekCurve,
    cylinder: u32,
    /// The next entry at or above the cylinder.
    above: Found,
    /// The entry after the next below it.
    below: Found,
}

impl<'a> OutwardSearch<'a> {
    /// The next request, nearest cylinder first. None when there is none, or when reaching the
    /// nearest alone takes more than `limit_ns`.
    #[inline]
    pub(super) fn next(&mut self, limit_ns: u64) -> Option<(Found, &'a Waiting)> {
        self.skip_to_next_chunk();
        let up = self.entry(self.above).map(|entry| entry.cylinder - self.cylinder);
        let under = self.one_below();
        let down = under.map(|(_, entry)| self.cylinder - entry.cylinder);
        let upwards = match (up, down) {
            (None, None) => return None,
            (Some(up), Some(down)) => up <= down,
            (up, _) => up.is_some(),
        };
        let distance = if upwards { up? } else { down? };
        if self.seek.floor_ns(distance) > limit_ns {
            return None;
        }
        let found = if upwards { self.above } else { under?.0 };
        if upwards {
            self.above.rank += 1;
        } else {
            self.below = found;
        }
        let slot = self.queue.chunks[found.chunk][found.rank].slot;
        Some((found, &self.queue.slots[slot as usize]))
    }

    #[inline]
    fn entry(&self, at: Found) -> Option<&'a Entry> {
        self.queue.chunks.get(at.chunk)?.get(at.rank)
    }

    #[inline]
    fn skip_to_next_chunk(&mut self) {
        let length = self.queue.chunks.get(self.above.chunk).map_or(0, Vec::len);
        if self.above.rank >= length && self.above.chunk + 1 < self.queue.chunks.len() {
            self.above = Found { chunk: self.above.chunk + 1, rank: 0 };
        }
    }

    #[inline]
    fn one_below(&self) -> Option<(Found, &'a Entry)> {
        let at = if self.below.rank > 0 {
            Found { rank: self.below.rank - 1, ..self.below }
        } else {
            let chunk = self.below.chunk.checked_sub(1)?;
            Found { chunk, rank: self.queue.chunks[chunk].len() - 1 }
        };
        Some((at, self.entry(at)?))
    }
}
