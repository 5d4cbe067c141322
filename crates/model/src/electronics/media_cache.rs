//! The media cache of a drive that manages its shingled tracks: which blocks are in it, and where.
//!
//! ```text
//!   writes   --append-->   |  log on the cache's tracks, a ring  |
//!   of bands from their start on: straight to the band
//!   cleaning: the band of the oldest data in the log is read, with all that the log has of it, and written
//! ```
//! The log's space comes back in the order in which it was written: FIFO.
//!
//! Non-goals: what a drive keeps of a band whose sequential write breaks off; the map's own writes.

use std::collections::{BTreeMap, VecDeque};

use freewheel_units::{BLOCK_BYTES, Lbn};
use serde::Serialize;

use crate::spec::media_cache::MediaCacheSpec;

/// Bands that are written from their start on at once. Assumed: the number of a drive's read streams.
const STREAMS: usize = 32;

/// The log and the map of a media cache.
#[derive(Debug, Clone)]
pub(super) struct MediaCache {
    band_blocks: u64,
    blocks: u64,
    extents_max: usize,
    /// Runs of blocks in the log, by their first block.
    map: BTreeMap<u64, Extent>,
    /// Records of the log that have not been reclaimed, the oldest first.
    log: VecDeque<Record>,
    /// Number of the log's first record.
    first_record: u64,
    /// Place of the next record.
    head: u64,
    /// Blocks of the log that no record holds.
    free: u64,
    /// Ends of sequential writes to bands, the latest last.
    streams: VecDeque<u64>,
    pub work: MediaCacheWork,
}

/// Blocks in the log.
#[derive(Debug, Clone, Copy)]
struct Extent {
    end: u64,
    place: u64,
    record: u64,
}

/// A write to the log.
#[derive(Debug, Clone, Copy)]
struct Record {
    /// Blocks, with those that were left out at the end of the ring.
    blocks: u64,
    /// Blocks in the log that are the newest of their addresses.
    live: u64,
    start: u64,
}

/// Place of a run of blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PlacedRun {
    /// First block, by its address.
    pub start: Lbn,
    pub blocks: u64,
    /// Place in the cache, from its beginning; None in the band.
    pub place: Option<u64>,
}

/// Sums of a media cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct MediaCacheWork {
    /// Writes that went to the cache.
    pub cached_writes: u64,
    /// Writes that went straight to their bands.
    pub straight_writes: u64,
    /// Bands that were rewritten.
    pub bands_cleaned: u64,
    /// Bands of them that a write waited for.
    pub bands_waited_for: u64,
    /// Time of rewriting them.
    pub cleaning_ns: u64,
    /// Bytes in the cache.
    pub cached_bytes: u64,
}

impl MediaCacheWork {
    /// Sums of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            cached_writes: self.cached_writes + other.cached_writes,
            straight_writes: self.straight_writes + other.straight_writes,
            bands_cleaned: self.bands_cleaned + other.bands_cleaned,
            bands_waited_for: self.bands_waited_for + other.bands_waited_for,
            cleaning_ns: self.cleaning_ns + other.cleaning_ns,
            cached_bytes: self.cached_bytes + other.cached_bytes,
        }
    }
}

impl MediaCache {
    pub fn new(spec: &MediaCacheSpec) -> Self {
        let blocks = spec.size.get() / BLOCK_BYTES;
        Self {
            band_blocks: spec.band.get() / BLOCK_BYTES,
            blocks,
            extents_max: spec.extents as usize,
            map: BTreeMap::new(),
            log: VecDeque::new(),
            first_record: 0,
            head: 0,
            free: blocks,
            streams: VecDeque::new(),
            work: MediaCacheWork::default(),
        }
    }

    /// The blocks of the band at this address that are on the drive.
    pub fn band(&self, at: Lbn, drive_blocks: u64) -> (Lbn, u64) {
        let start = at.get() / self.band_blocks * self.band_blocks;
        (Lbn::new(start), self.band_blocks.min(drive_blocks - start))
    }

    /// Places of blocks, in the order of their addresses.
    pub fn pieces(&self, start: Lbn, end: Lbn) -> Vec<PlacedRun> {
        let (mut at, end) = (start.get(), end.get());
        let mut pieces = Vec::new();
        let mut push = |from: u64, to: u64, place: Option<u64>| {
            if from < to {
                pieces.push(PlacedRun { start: Lbn::new(from), blocks: to - from, place });
            }
        };
        for (from, extent) in self.overlapping(at, end) {
            push(at, from.max(at), None);
            let begin = from.max(at);
            push(begin, extent.end.min(end), Some(extent.place + (begin - from)));
            at = extent.end.min(end);
        }
        push(at, end, None);
        pieces
    }

    /// True if the cache has any of these blocks.
    pub fn has_any(&self, start: Lbn, end: Lbn) -> bool {
        start < end && self.overlapping(start.get(), end.get()).next().is_some()
    }

    /// Extents that overlap these blocks, in their order.
    fn overlapping(&self, start: u64, end: u64) -> impl Iterator<Item = (u64, Extent)> {
        let before = self.map.range(..start).next_back().filter(|(_, extent)| extent.end > start);
        let within = self.map.range(start..end);
        before.into_iter().chain(within).map(|(from, extent)| (*from, *extent))
    }

    /// True if a write goes straight to its band: it begins one, or continues where such a write ended. Then
    /// the cache forgets the blocks.
    pub fn goes_straight(&mut self, start: Lbn, end: Lbn) -> bool {
        let (start, end) = (start.get(), end.get());
        let known = self.streams.iter().position(|at| *at == start);
        if known.is_none() && !start.is_multiple_of(self.band_blocks) {
            return false;
        }
        if let Some(known) = known {
            self.streams.remove(known);
        } else if self.streams.len() == STREAMS {
            self.streams.pop_front();
        }
        self.streams.push_back(end);
        self.forget(start, end);
        self.work.straight_writes += 1;
        true
    }

    /// True if the log takes a write of this length: its ring has them in one run, and its map has room
    /// for what the write makes of extents.
    pub fn has_room(&self, blocks: u64) -> bool {
        // A write in the middle of an extent makes three of it.
        self.free >= blocks + self.left_out(blocks) && self.map.len() + 2 <= self.extents_max.max(2)
    }

    /// True if the log could ever take it.
    pub fn is_possible(&self, blocks: u64) -> bool {
        blocks <= self.blocks / 2
    }

    /// Blocks at the end of the ring that a write leaves out, as it needs one run.
    fn left_out(&self, blocks: u64) -> u64 {
        let to_end = self.blocks - self.head;
        if blocks > to_end { to_end } else { 0 }
    }

    /// Appends a write, for which there is room: its place.
    pub fn append(&mut self, start: Lbn, end: Lbn) -> u64 {
        let (start, end) = (start.get(), end.get());
        let blocks = end - start;
        let left_out = self.left_out(blocks);
        self.forget(start, end);
        let place = (self.head + left_out) % self.blocks;
        self.head = (place + blocks) % self.blocks;
        self.free -= blocks + left_out;
        let record = self.first_record + self.log.len() as u64;
        self.log.push_back(Record { blocks: blocks + left_out, live: blocks, start });
        self.map.insert(start, Extent { end, place, record });
        self.work.cached_writes += 1;
        place
    }

    /// The address of the oldest data, whose band is cleaned next.
    pub fn oldest(&self) -> Option<Lbn> {
        self.log.front().map(|record| {
            let number = self.first_record;
            let found = self
                .overlapping(record.start, record.start + record.blocks)
                .find_map(|(from, extent)| (extent.record == number).then_some(from));
            Lbn::new(found.unwrap_or(record.start))
        })
    }

    /// Forgets these blocks, which are in their band now.
    pub fn forget(&mut self, start: u64, end: u64) {
        let all: Vec<(u64, Extent)> = self.overlapping(start, end).collect();
        for (from, extent) in all {
            self.map.remove(&from);
            let (begin, behind) = (from.max(start), extent.end.min(end));
            if from < begin {
                self.map.insert(from, Extent { end: begin, ..extent });
            }
            if behind < extent.end {
                let place = extent.place + (behind - from);
                self.map.insert(behind, Extent { place, ..extent });
            }
            self.log[(extent.record - self.first_record) as usize].live -= behind - begin;
        }
        while let Some(record) = self.log.front().filter(|record| record.live == 0) {
            self.free += record.blocks;
            self.log.pop_front();
            self.first_record += 1;
        }
    }

    /// Blocks in the cache that are the newest of their addresses.
    pub fn cached_blocks(&self) -> u64 {
        self.log.iter().map(|record| record.live).sum()
    }
}

#[cfg(test)]
mod tests;
