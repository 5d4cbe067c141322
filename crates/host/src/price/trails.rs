//! Trails: blocks that the drive may have read unasked, around the last reads of clients.

use std::collections::VecDeque;

use freewheel_model::drive::Drive;
use freewheel_units::{Lbn, SimDuration};

use super::chances::{AGES, HitChances, PLACES};

/// Reads that are remembered. Assumed: several times the segments of a drive's buffer.
const TRAILS_MAX: usize = 512;

/// Places in a trail: its own blocks, right behind them, further behind, before them.
const OWN: usize = 0;
const NEXT: usize = 1;
const BEHIND: usize = 2;
const BEFORE: usize = PLACES - 1;

/// Blocks around a client's read that the drive may have read.
#[derive(Debug, Clone)]
pub(super) struct Trail {
    /// The first block that passed before the read.
    before: Lbn,
    start: Lbn,
    end: Lbn,
    /// The end of what is read on to.
    behind: Lbn,
    /// Free work took the time in which blocks passed before the read.
    is_taken: bool,
    /// The read lay in another trail.
    is_near: bool,
    /// Reads sent before it: of clients, and all.
    clients: u64,
    all: u64,
}

impl Trail {
    /// Trail of a read of `start..end`, with blocks passing for `latency` before it.
    pub fn of(
        drive: &Drive,
        (start, end): (Lbn, Lbn),
        latency: SimDuration,
        (is_taken, is_near): (bool, bool),
    ) -> Self {
        let layout = drive.layout();
        let (first, track_end) = layout.track_bounds(start);
        let track = u128::from(track_end.get() - first.get());
        let period = u128::from(drive.rotation().period().ns());
        let passing = (u128::from(latency.ns()) * track / period) as u64;
        let before = Lbn::new(start.get().saturating_sub(passing)).max(first);
        let last = Lbn::new(end.get() - 1);
        let behind = layout.track_bounds(last).1;
        // A drive that sees a sequential stream reads one track more.
        let capacity = Lbn::ZERO + drive.blocks();
        let behind = if behind < capacity { layout.track_bounds(behind).1 } else { behind };
        Self { before, start, end, behind, is_taken, is_near, clients: 0, all: 0 }
    }

    fn place(&self, block: Lbn) -> Option<usize> {
        if block < self.before || block >= self.behind {
            return None;
        }
        Some(match block {
            block if block < self.start => BEFORE,
            block if block < self.end => OWN,
            block if block == self.end => NEXT,
            _ => BEHIND,
        })
    }
}

/// A read in a trail.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found {
    place: usize,
    age: usize,
    is_taken: bool,
    brought_by: Option<(Lbn, bool)>,
}

impl Found {
    pub fn class(&self) -> (usize, usize) {
        (self.place, self.age)
    }

    /// True if the drive had the time to read these blocks.
    pub fn is_kept(&self) -> bool {
        !(self.is_taken && self.place == BEFORE)
    }

    /// The read before which these blocks passed, and whether it was near another.
    pub fn brought_by(&self) -> Option<(Lbn, bool)> {
        self.brought_by
    }
}

/// The last reads of clients.
#[derive(Debug, Clone, Default)]
pub(super) struct Trails {
    trails: VecDeque<Trail>,
    clients: u64,
    all: u64,
}

impl Trails {
    pub fn sent(&mut self, is_clients: bool) {
        self.all += 1;
        self.clients += u64::from(is_clients);
    }

    pub fn push(&mut self, trail: Trail) {
        self.trails.truncate(TRAILS_MAX - 1);
        self.trails.push_front(Trail { clients: self.clients, all: self.all, ..trail });
    }

    /// The greatest chance of a hit at `start`: without any free work, and as the buffer is now.
    pub fn chances_of(&self, start: Lbn, chances: &HitChances) -> [Option<(Found, f64)>; 2] {
        let mut best: [Option<(Found, f64)>; 2] = [None; 2];
        for trail in &self.trails {
            let Some(place) = trail.place(start) else { continue };
            let brought_by = (place == BEFORE).then_some((trail.start, trail.is_near));
            let alone = of_age(self.clients - trail.clients);
            let now = of_age(self.all - trail.all);
            let found = Found { place, age: now, is_taken: trail.is_taken, brought_by };
            let now = if found.is_kept() { chances.of(place, now) } else { 0.0 };
            for (best, chance) in best.iter_mut().zip([chances.of(place, alone), now]) {
                if best.is_none_or(|(_, most)| chance > most) {
                    *best = Some((found, chance));
                }
            }
        }
        best
    }
}

fn of_age(since: u64) -> usize {
    age(since)
}

/// Class of age of a trail by the number of commands that read since.
fn age(since: u64) -> usize {
    if since < 8 {
        return since as usize;
    }
    let doublings = since.ilog2();
    let quarter = (since >> (doublings - 2)) & 3;
    (8 + (doublings as usize - 3) * 4 + quarter as usize).min(AGES - 1)
}
