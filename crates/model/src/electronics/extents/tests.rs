//! Extents beside blocks one by one.

use std::collections::{BTreeMap, BTreeSet};

use freewheel_units::{Bytes, Op, Prng};
use proptest::prelude::*;

use super::*;
use crate::drive::Drive;
use crate::spec::electronics::WriteCache;

fn drive() -> Drive {
    let text = include_str!("../../../../../drives/atlas10k.toml");
    Drive::build(&toml::from_str(text).unwrap()).unwrap()
}

fn at(ms: u64) -> SimTime {
    SimTime::ZERO + SimDuration::from_ms(ms)
}

/// A dirty extent of the oracle.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Run {
    start: u64,
    end: u64,
    id: u64,
    written: SimTime,
}

/// Extents, and beside them every dirty run in a list, and every block with the write that it is from.
struct Traced {
    drive: Drive,
    extents: Extents,
    spec: (BufferSpec, DirtySpec),
    runs: Vec<Run>,
    issued: u64,
    newest: BTreeMap<u64, u64>,
    on_media: BTreeMap<u64, u64>,
    /// Ends of destages, with their blocks.
    under_way: Vec<(SimTime, u64)>,
}

impl Traced {
    fn new(prng: &mut Prng) -> Self {
        let segment_blocks = 8 + prng.below(8) as u32;
        let dirty = DirtySpec {
            extents: 1 + prng.below(8) as u32,
            bytes: Bytes::new(512 * (u64::from(segment_blocks) + prng.below(60))),
            age_limit: SimDuration::from_ms(5 + prng.below(40)),
        };
        let buffer = BufferSpec {
            segments: 20,
            segment_blocks,
            write_segments: 1,
            write_cache: WriteCache::On,
            combine_sequential_writes: prng.chance(0.6),
            dirty: Some(dirty),
            ..BufferSpec::default()
        };
        Self {
            drive: drive(),
            extents: Extents::new(&buffer, &dirty),
            spec: (buffer, dirty),
            runs: Vec::new(),
            issued: 0,
            newest: BTreeMap::new(),
            on_media: BTreeMap::new(),
            under_way: Vec::new(),
        }
    }

    fn blocks(runs: &[Run]) -> u64 {
        runs.iter().map(|run| run.end - run.start).sum()
    }

    /// The runs after a write, by looking at all of them; the last first.
    fn after(&self, start: u64, end: u64, now: SimTime) -> Vec<Run> {
        let mut run = Run { start, end, id: self.issued + 1, written: now };
        let (mut runs, mut others) = (self.runs.clone(), Vec::new());
        runs.sort();
        for other in runs.into_iter().rev() {
            let overlaps = other.start < end && start < other.end;
            let adjoins = other.end == start || other.start == end;
            let whole = run.end.max(other.end) - run.start.min(other.start);
            let fits = whole <= u64::from(self.spec.0.segment_blocks);
            if overlaps || (adjoins && fits && self.spec.0.combine_sequential_writes) {
                (run.start, run.end) = (run.start.min(other.start), run.end.max(other.end));
                if other.id < run.id {
                    (run.id, run.written) = (other.id, other.written);
                }
            } else {
                others.push(other);
            }
        }
        others.push(run);
        others
    }

    fn fits(&self, runs: &[Run], now: SimTime) -> bool {
        let under_way = self.under_way.iter().filter(|(end, _)| *end > now);
        let (count, blocks) = under_way.fold((0, 0), |(n, sum), (_, blocks)| (n + 1, sum + blocks));
        runs.len() + count <= self.spec.1.extents as usize
            && Self::blocks(runs) + blocks <= self.spec.1.blocks_max()
    }

    /// False when the extents and the oracle do not agree on whether there is room.
    fn write(&mut self, start: u64, end: u64, version: u64, now: SimTime) -> bool {
        let runs = self.after(start, end, now);
        let (from, to) = (Lbn::new(start), Lbn::new(end));
        let room = self.extents.room_for(from, to, now);
        if room.is_some() != self.fits(&runs, now) {
            return false;
        }
        let Some(segments) = room else { return true };
        (0..segments).for_each(|_| self.extents.borrow_segment(0));
        let drive = &self.drive;
        let target = |start, blocks| drive.target(start, blocks, Op::Write);
        let (id, _) = self.extents.write(from, to, now, now, target);
        if id > self.issued {
            self.issued = id;
        }
        self.runs = runs;
        self.newest.extend((start..end).map(|block| (block, version)));
        true
    }

    /// Takes the extent to the media until `end`; false when it is not one of the oracle's.
    fn destage(&mut self, id: u64, end: SimTime) -> bool {
        let extent = self.extents.take(id);
        self.extents.keep(&extent, end);
        let Some(rank) = self.runs.iter().position(|run| run.id == id) else { return false };
        let run = self.runs.remove(rank);
        self.under_way.push((end, run.end - run.start));
        self.on_media.extend((run.start..run.end).map(|block| (block, self.newest[&block])));
        (run.start, run.end) == (extent.start.get(), extent.end.get())
    }

    fn dirty(&self) -> BTreeSet<u64> {
        self.runs.iter().flat_map(|run| run.start..run.end).collect()
    }

    /// That both have the same runs, and that no block is lost: it is dirty, or newest on the media.
    fn check(&self) -> Result<(), TestCaseError> {
        let extents = self.extents.by_start.values().map(|&id| self.extents.extent(id));
        let extents = extents.map(|e| (e.start.get(), e.end.get(), e.id)).collect::<Vec<_>>();
        let mut runs = self.runs.clone();
        runs.sort();
        let runs = runs.iter().map(|run| (run.start, run.end, run.id)).collect::<Vec<_>>();
        prop_assert_eq!(extents, runs);
        prop_assert_eq!(self.extents.dirty_blocks().get(), Self::blocks(&self.runs));
        prop_assert_eq!(self.extents.by_cylinder.len(), self.runs.len());
        let dirty = self.dirty();
        prop_assert_eq!(dirty.len() as u64, Self::blocks(&self.runs), "a block is in one extent");
        for (block, version) in &self.newest {
            prop_assert!(dirty.contains(block) || self.on_media[block] == *version);
        }
        Ok(())
    }

    /// The number of the extent to go next, by looking at all of them.
    fn cheapest(&self, now: SimTime, newest: u64, cost: impl Fn(u64) -> u64) -> Option<u64> {
        let age = self.spec.1.age_limit;
        let aged = self.runs.iter().filter(|run| run.written + age <= now).map(|run| run.id).max();
        let newest = aged.map_or(newest, |aged| aged.min(newest));
        let eligible = self.runs.iter().map(|run| run.id).filter(|&id| id <= newest);
        eligible.min_by_key(|&id| (cost(id), id))
    }
}

proptest! {
    #[test]
    fn extents_match_run_list_lose_no_write(seed: u64) {
        let prng = &mut Prng::new(seed, "extents");
        let mut traced = Traced::new(prng);
        let (mut now, mut media) = (at(0), at(0));
        for version in 0..120 {
            now += SimDuration::from_us(prng.below(3000));
            let start = prng.below(60);
            let end = start + 1 + prng.below(8);
            let (from, to) = (Lbn::new(start), Lbn::new(end));
            if prng.chance(0.6) {
                prop_assert!(traced.write(start, end, version, now), "room at {version}");
            } else if let Some(id) = if prng.chance(0.7) { traced.extents.cheapest(now, u64::MAX, 0, |_| 0, |id, _, _| Some(id * 7 % 10)) } else { traced.extents.in_the_way(from, to) } {
                media = media.max(now) + SimDuration::from_us(prng.below(4000));
                prop_assert!(traced.destage(id, media));
            }
            if prng.chance(0.2) {
                traced.extents.return_segment(now);
            }
            traced.check()?;
            // Dirty blocks are there for reads, and blocks of which none was written are not.
            let (dirty, known) = (traced.dirty(), &traced.newest);
            let held = traced.extents.hold(from, to);
            prop_assert!(held || !(start..end).all(|block| dirty.contains(&block)));
            prop_assert!(!held || (start..end).all(|block| known.contains_key(&block)));
        }
    }

    #[test]
    fn next_extent_matches_full_scan(seed: u64) {
        let prng = &mut Prng::new(seed, "next extent");
        let drive = drive();
        let dirty = DirtySpec {
            extents: 1000,
            bytes: Bytes::from_kib(4000),
            age_limit: SimDuration::from_ms(100),
        };
        let mut traced = Traced::new(prng);
        traced.extents = Extents::new(&traced.spec.0, &dirty);
        traced.spec.1 = dirty;
        let count = if prng.chance(0.5) { prng.below(20) } else { 70 + prng.below(50) };
        let mut now = at(0);
        for version in 0..count {
            now += SimDuration::from_us(prng.below(3000));
            let start = prng.below(drive.blocks().get() / 8) * 8;
            prop_assert!(traced.write(start, start + 8, version, now));
        }
        for _ in 0..prng.below(count + 1) / 2 {
            let id = 1 + prng.below(count);
            if traced.runs.iter().any(|run| run.id == id) {
                prop_assert!(traced.destage(id, now));
            }
        }
        let cylinder = prng.below(10_000) as u32;
        let newest = if prng.chance(0.5) { u64::MAX } else { prng.below(count + 2) };
        let floor = |distance: u32| u64::from(distance / 1000);
        let cost = |id: u64| {
            let run = traced.runs.iter().find(|run| run.id == id).unwrap();
            let target = drive.target(Lbn::new(run.start), Blocks::new(8), Op::Write);
            floor(target.at.cylinder.abs_diff(cylinder)) + id * 7 % 4
        };
        let found = traced.extents.cheapest(now, newest, cylinder, floor, |id, _, most| {
            Some(cost(id)).filter(|&cost| cost <= most)
        });
        prop_assert_eq!(found, traced.cheapest(now, newest, cost));
    }
}

#[test]
fn extent_search_looks_at_few() {
    let drive = drive();
    let dirty = DirtySpec {
        extents: 5000,
        bytes: Bytes::from_kib(40_000),
        age_limit: SimDuration::from_secs(30),
    };
    let buffer = BufferSpec { segments: 64, segment_blocks: 8000, ..BufferSpec::default() };
    let mut extents = Extents::new(&buffer, &dirty);
    let prng = &mut Prng::new(1, "thousands");
    for _ in 0..5000 {
        // All in the first tenth, so that no distance ends the search.
        let start = Lbn::new(prng.below(drive.blocks().get() / 80) * 8);
        let target = |start, blocks| drive.target(start, blocks, Op::Write);
        extents.write(start, start + Blocks::new(8), at(0), at(0), target);
    }
    let looks = std::cell::Cell::new(0);
    let next = extents.cheapest(
        at(1),
        u64::MAX,
        100,
        |_| 0,
        |id, _, _| {
            looks.set(looks.get() + 1);
            Some(id)
        },
    );
    assert!(next.is_some());
    assert_eq!(looks.get(), CHOICE_MAX);
}
