//! The write buffer against one that keeps the versions of each block.
//!
//! Writes, destages, gaps, writes that take the place of dirty data, and trims come in any order, and
//! requests end in any order. At each moment every block has its newest version somewhere:
//!
//! ```text
//!   newest[b] = dirty[b], else on its way, else on the disk
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use freewheel_model::cache::{DestageOrder, FlushPoint, WriteBuffer, WriteBufferSpec, WriteCounts};
use freewheel_units::{Blocks, Bytes, Prng, SimDuration, SimTime};

/// Buffer blocks that are written to.
const NUMBERS: u64 = 24;

/// A 512-byte block.
#[derive(Clone, Copy, Default)]
struct Block {
    newest: u64,
    disk: u64,
    dirty: Option<u64>,
    /// From memory to the disk.
    under_way: Option<u64>,
}

impl Block {
    fn is_held(&self) -> bool {
        self.dirty.is_some() || self.under_way.is_some()
    }
}

/// Blocks on their way to the disk, and their versions.
struct Request {
    blocks: Range<u64>,
    carried: Vec<u64>,
    /// A write that took the place of dirty data. The cache lets no newer one of its blocks pass.
    supersedes: bool,
}

/// A time, and the number of a write of a buffer block.
type Since = (SimTime, u64);

struct Flush {
    point: FlushPoint,
    clock: u64,
    /// Contents that the disk must have at its end.
    owed: Vec<(u64, u64)>,
}

/// Number of times that something happened that a buffer may get wrong.
#[derive(Debug, Default)]
struct Events {
    destages: u64,
    in_gaps: u64,
    superseded_dirty: u64,
    superseded_part: u64,
    refused: u64,
    forgotten: u64,
    forgotten_behind: u64,
    written_behind: u64,
    flushes: u64,
}

struct Model {
    spec: WriteBufferSpec,
    /// Blocks of 512 bytes in a buffer block.
    size: u64,
    blocks: Vec<Block>,
    /// Time at which each dirty buffer block became dirty.
    since: BTreeMap<u64, Since>,
    /// Time of the data on their way.
    under_way_since: BTreeMap<u64, Since>,
    /// Last write of each buffer block.
    written: BTreeMap<u64, u64>,
    requests: Vec<Request>,
    flushes: Vec<Flush>,
    /// Buffer blocks that gaps may write.
    whole: BTreeSet<u64>,
    clock: u64,
    version: u64,
    drain_to: u64,
    is_destaging: bool,
    is_short: bool,
    counts: WriteCounts,
    events: Events,
}

impl Model {
    /// Buffer blocks in memory.
    fn capacity(&self) -> usize {
        (self.spec.size.get() / (512 * self.size)) as usize
    }

    fn numbers(&self, blocks: &Range<u64>) -> Range<u64> {
        blocks.start / self.size..blocks.end.div_ceil(self.size)
    }

    fn of(&self, number: u64) -> &[Block] {
        let first = (number * self.size) as usize;
        &self.blocks[first..first + self.size as usize]
    }

    fn is_dirty(&self, number: u64) -> bool {
        self.of(number).iter().any(|block| block.dirty.is_some())
    }

    fn moves(&self, number: u64) -> bool {
        self.of(number).iter().any(|block| block.under_way.is_some())
    }

    fn is_held(&self, number: u64) -> bool {
        self.of(number).iter().any(Block::is_held)
    }

    fn is_whole(&self, number: u64) -> bool {
        self.of(number).iter().all(|block| block.dirty.is_some()) && !self.moves(number)
    }

    /// Buffer blocks with dirty data that may leave.
    fn waiting(&self) -> impl Iterator<Item = u64> {
        (0..NUMBERS).filter(|&number| self.is_dirty(number) && !self.moves(number))
    }

    fn has_room(&self, blocks: &Range<u64>) -> bool {
        let of_write = self.numbers(blocks);
        let all = (0..NUMBERS).filter(|number| self.is_held(*number) || of_write.contains(number));
        all.count() <= self.capacity()
    }

    fn share(&self) -> f64 {
        self.waiting().count() as f64 / self.capacity() as f64
    }

    fn at_risk(&self) -> u64 {
        self.blocks.iter().filter(|block| block.is_held()).count() as u64
    }

    fn oldest(&self) -> Option<u64> {
        let waiting = self.waiting().map(|number| self.since[&number]);
        let all = waiting.chain(self.under_way_since.values().copied());
        all.map(|(_, write)| write).min()
    }

    fn write(&mut self, blocks: &Range<u64>, now: SimTime) {
        self.version += 1;
        self.counts.writes += 1;
        let is_miss = self.numbers(blocks).any(|number| !self.is_dirty(number));
        self.counts.misses += u64::from(is_miss);
        for number in self.numbers(blocks) {
            self.clock += 1;
            self.events.written_behind += u64::from(self.moves(number));
            self.since.entry(number).or_insert((now, self.clock));
            self.written.insert(number, self.clock);
        }
        for block in &mut self.blocks[blocks.start as usize..blocks.end as usize] {
            block.dirty = Some(self.version);
            block.newest = self.version;
        }
        self.counts.at_risk_max = self.counts.at_risk_max.max(self.at_risk());
        self.is_destaging |= self.share() > self.spec.high_mark;
    }

    /// Buffer block that has to leave now, by its rule; None when none has. Ascending order over the disk
    /// leaves open which.
    fn next(&mut self, now: SimTime) -> Option<Option<u64>> {
        let oldest = self.waiting().min_by_key(|number| self.since[number]);
        if let Some(oldest) = oldest {
            let (time, write) = self.since[&oldest];
            let is_due = self.spec.max_age.is_some_and(|age| time + age <= now);
            if is_due || write <= self.drain_to {
                return Some(Some(oldest));
            }
        }
        self.is_destaging &= self.share() >= self.spec.low_mark;
        if !self.is_destaging && !self.is_short {
            return None;
        }
        let first = self.waiting().min_by_key(|number| self.written[number])?;
        Some((self.spec.order == DestageOrder::Lrw).then_some(first))
    }

    /// Dirty data of these blocks leave.
    fn begin(&mut self, blocks: Range<u64>, supersedes: bool) {
        for number in self.numbers(&blocks) {
            if self.is_dirty(number) {
                assert!(!self.moves(number), "newer data of {number} overtake older ones");
            }
        }
        for block in &mut self.blocks[blocks.start as usize..blocks.end as usize] {
            block.under_way = block.dirty.take();
        }
        for number in self.numbers(&blocks) {
            if self.moves(number) && !self.under_way_since.contains_key(&number) {
                self.under_way_since.insert(number, self.since[&number]);
            }
        }
        let its = &self.blocks[blocks.start as usize..blocks.end as usize];
        let carried = match supersedes {
            true => its.iter().map(|block| block.newest).collect(),
            false => its.iter().map(|block| block.under_way.expect("a dirty block")).collect(),
        };
        self.requests.push(Request { blocks, carried, supersedes });
        self.cleaned();
    }

    /// Forgets the age of clean blocks.
    fn cleaned(&mut self) {
        let clean: Vec<u64> = (0..NUMBERS).filter(|&number| !self.is_dirty(number)).collect();
        clean.iter().for_each(|number| _ = self.since.remove(number));
        let here: Vec<u64> = (0..NUMBERS).filter(|&number| !self.moves(number)).collect();
        here.iter().for_each(|number| _ = self.under_way_since.remove(number));
    }

    fn destage(&mut self, buffer: &mut WriteBuffer, now: SimTime) {
        let expected = self.next(now);
        let blocks = buffer.next_destage(now);
        assert_eq!(blocks.is_some(), expected.is_some(), "a destage at {now}");
        let Some(blocks) = blocks else { return };
        if let Some(Some(number)) = expected {
            assert!(self.numbers(&blocks).contains(&number), "{blocks:?} before {number}");
        }
        assert!(blocks.end - blocks.start <= self.spec.destage_maximum.get() / 512);
        self.counts.destages += 1;
        self.counts.destaged_blocks += blocks.end - blocks.start;
        self.events.destages += 1;
        self.begin(blocks, false);
    }

    fn in_gap(&mut self, buffer: &mut WriteBuffer, prng: &mut Prng) {
        if self.whole.is_empty() {
            return;
        }
        let at = prng.below(self.whole.len() as u64) as usize;
        let first = *self.whole.iter().nth(at).expect("one of them");
        let is_next_whole = self.whole.contains(&(first + 1));
        let end = first + 1 + u64::from(is_next_whole && prng.chance(0.5));
        let blocks = first * self.size..end * self.size;
        buffer.begin_in_gap(blocks.clone());
        self.counts.in_gaps_blocks += blocks.end - blocks.start;
        self.events.in_gaps += 1;
        self.begin(blocks, false);
    }

    fn supersede(&mut self, buffer: &mut WriteBuffer, blocks: Range<u64>, now: SimTime) {
        let is_refused = self.numbers(&blocks).any(|number| self.moves(number));
        assert_eq!(buffer.supersede(blocks.clone(), now), !is_refused);
        self.events.refused += u64::from(is_refused);
        if is_refused {
            return;
        }
        self.version += 1;
        let its = &mut self.blocks[blocks.start as usize..blocks.end as usize];
        let is_some_dirty = its.iter().any(|block| block.dirty.is_some());
        self.events.superseded_dirty += u64::from(is_some_dirty);
        for block in its {
            block.newest = self.version;
            block.dirty = block.dirty.and(Some(self.version));
        }
        let numbers = self.numbers(&blocks);
        self.begin(blocks, true);
        let is_part = numbers.into_iter().any(|n| self.is_dirty(n) && self.moves(n));
        self.events.superseded_part += u64::from(is_part);
    }

    fn forget(&mut self, blocks: &Range<u64>) {
        for at in blocks.clone() {
            let block = &mut self.blocks[at as usize];
            if block.dirty.take().is_none() {
                continue;
            }
            self.events.forgotten += 1;
            self.events.forgotten_behind += u64::from(block.under_way.is_some());
            block.newest = block.under_way.unwrap_or(block.disk);
            // Data that were superseded or forgotten need not be written.
            let owed = self.flushes.iter_mut().flat_map(|flush| &mut flush.owed);
            owed.filter(|(of, _)| *of == at).for_each(|(_, version)| *version = 0);
        }
        self.cleaned();
    }

    /// A request ends.
    fn end(&mut self, at: usize, buffer: &mut WriteBuffer, now: SimTime) {
        let Request { blocks, carried, .. } = self.requests.swap_remove(at);
        buffer.destaged(blocks.clone(), now);
        for (at, version) in blocks.zip(carried) {
            let block = &mut self.blocks[at as usize];
            assert!(block.disk < version, "block {at}: newer data were there before");
            block.disk = version;
            block.under_way = None;
        }
        self.cleaned();
    }

    fn flush(&mut self, buffer: &mut WriteBuffer) {
        let point = buffer.flush_point();
        assert_eq!(point.is_some(), self.at_risk() > 0, "memory has something to flush");
        let Some(point) = point else { return };
        self.drain_to = self.clock;
        let held = (0..).zip(&self.blocks).filter(|(_, block)| block.is_held());
        let owed = held.map(|(at, block)| (at, block.newest)).collect();
        self.flushes.push(Flush { point, clock: self.clock, owed });
    }

    fn check(&mut self, buffer: &mut WriteBuffer, now: SimTime) {
        for (at, block) in (0..).zip(&self.blocks) {
            assert_eq!(buffer.holds(at), block.is_held(), "block {at} in memory");
            let carries = |request: &&Request| request.blocks.contains(&at);
            let carrier = self.requests.iter().find(carries);
            let moving = carrier.map(|it| it.carried[(at - it.blocks.start) as usize]);
            let there = block.dirty.or(moving).unwrap_or(block.disk);
            assert_eq!(there, block.newest, "block {at} is lost");
        }
        let (mut absent, mut last) = (Vec::new(), None);
        let all = self.blocks.len() as u64;
        buffer.missing(0..all, |run| {
            assert!(last.is_none_or(|last| last < run.start), "runs are whole");
            last = Some(run.end);
            absent.extend(run);
        });
        let expected = (0..all).filter(|&at| !self.blocks[at as usize].is_held());
        assert_eq!(absent, expected.collect::<Vec<_>>());
        assert_eq!(buffer.is_empty(), self.at_risk() == 0);
        assert_eq!(buffer.counts(now), self.counts);
        let oldest = self.waiting().map(|number| self.since[&number].0).min();
        let due = oldest.and_then(|time| Some(time + self.spec.max_age?));
        assert_eq!(buffer.next_due(), due);
        assert_eq!(buffer.is_draining(), self.oldest().is_some_and(|it| it <= self.drain_to));
        self.check_flushes(buffer);
        self.check_whole(buffer);
    }

    fn check_flushes(&mut self, buffer: &WriteBuffer) {
        for at in (0..self.flushes.len()).rev() {
            let Flush { point, clock, ref owed } = self.flushes[at];
            let is_flushed = buffer.is_flushed(point);
            assert_eq!(is_flushed, self.oldest().is_none_or(|oldest| oldest > clock));
            if is_flushed {
                for &(block, version) in owed {
                    assert!(self.blocks[block as usize].disk >= version, "{block} was flushed");
                }
                self.events.flushes += 1;
                self.flushes.swap_remove(at);
            }
        }
    }

    /// Each buffer block that gaps may write has been named since it became such a one.
    fn check_whole(&mut self, buffer: &mut WriteBuffer) {
        let mut named = std::mem::take(&mut self.whole);
        named.retain(|&number| self.is_whole(number));
        buffer.take_whole(|blocks| {
            assert_eq!(blocks.end - blocks.start, self.size);
            let number = blocks.start / self.size;
            assert!(self.is_whole(number), "{blocks:?} is not whole");
            named.insert(number);
        });
        let whole = (0..NUMBERS).filter(|&number| self.is_whole(number));
        let is_used = self.spec.destage_in_gaps;
        assert_eq!(named, whole.filter(|_| is_used).collect(), "what gaps may write");
        self.whole = named;
    }

    /// True if a write may not pass one of its blocks that took the place of dirty data.
    fn is_held_back(&self, blocks: &Range<u64>) -> bool {
        let overlaps = |it: &Request| it.blocks.start < blocks.end && blocks.start < it.blocks.end;
        self.requests.iter().any(|request| request.supersedes && overlaps(request))
    }

    fn step(&mut self, buffer: &mut WriteBuffer, now: SimTime, prng: &mut Prng) {
        let all = self.blocks.len() as u64;
        let start = prng.below(all);
        let most = if prng.chance(0.5) { 3 * self.size } else { self.size };
        let mut blocks = start..(start + 1 + prng.below(most)).min(all);
        if prng.chance(0.3) {
            let Range { start, end } = self.numbers(&blocks);
            blocks = start * self.size..end * self.size;
        }
        match prng.below(16) {
            0..5 if !self.is_held_back(&blocks) => {
                let has_room = self.has_room(&blocks);
                assert_eq!(buffer.has_room(blocks.clone()), has_room);
                if has_room {
                    buffer.write(blocks.clone(), now);
                    self.write(&blocks, now);
                }
            }
            5..8 => self.destage(buffer, now),
            8 => self.in_gap(buffer, prng),
            9..11 if !self.is_held_back(&blocks) => self.supersede(buffer, blocks, now),
            11 => {
                buffer.forget(blocks.clone(), now);
                self.forget(&blocks);
            }
            12 if prng.chance(0.2) => self.flush(buffer),
            13 if prng.chance(0.2) => {
                self.is_short = prng.chance(0.5);
                buffer.set_short(self.is_short);
            }
            13..16 if !self.requests.is_empty() => {
                let at = prng.below(self.requests.len() as u64) as usize;
                self.end(at, buffer, now);
            }
            _ => {}
        }
    }

    /// Everything that is dirty goes to the disk.
    fn empty(&mut self, buffer: &mut WriteBuffer, mut now: SimTime) {
        self.is_short = true;
        buffer.set_short(true);
        while self.at_risk() > 0 || !self.requests.is_empty() {
            self.destage(buffer, now);
            if !self.requests.is_empty() {
                self.end(0, buffer, now);
            }
            self.check(buffer, now);
            now += self.pass(SimDuration::from_ns(1_000));
        }
        for (at, block) in self.blocks.iter().enumerate() {
            assert_eq!(block.disk, block.newest, "block {at} has never reached the disk");
        }
        assert!(buffer.is_empty() && self.flushes.is_empty());
    }

    /// Time in which what is in memory is at risk.
    fn pass(&mut self, time: SimDuration) -> SimDuration {
        self.counts.at_risk_ns += u128::from(self.at_risk()) * u128::from(time.ns());
        time
    }
}

/// Settings, and the blocks of 512 bytes in a buffer block.
fn any_spec(seed: u64, prng: &mut Prng) -> (WriteBufferSpec, u64) {
    let size = [8, 8, 3, 64, 1][seed as usize % 5];
    let high_mark = prng.unit();
    let spec = WriteBufferSpec {
        size: Bytes::new((4 + prng.below(16)) * 512 * size),
        high_mark,
        low_mark: high_mark * prng.unit(),
        order: [DestageOrder::Lrw, DestageOrder::Wow][prng.below(2) as usize],
        max_age: prng.chance(0.5).then(|| SimDuration::from_us(5_000 + prng.below(40_000))),
        volatile: prng.chance(0.5),
        destage_maximum: Bytes::new(512 * (size + prng.below(4 * size))),
        destages: None,
        destage_in_gaps: prng.chance(0.8),
    };
    (spec, size)
}

#[test]
fn write_buffer_keeps_versions_in_any_order() {
    let mut events = Vec::new();
    for seed in 0..40 {
        let prng = &mut Prng::new(seed, "write buffer");
        let (spec, size) = any_spec(seed, prng);
        let mut buffer = WriteBuffer::new(spec, Blocks::new(size));
        let mut model = Model {
            spec,
            size,
            blocks: vec![Block::default(); (NUMBERS * size) as usize],
            since: BTreeMap::new(),
            under_way_since: BTreeMap::new(),
            written: BTreeMap::new(),
            requests: Vec::new(),
            flushes: Vec::new(),
            whole: BTreeSet::new(),
            clock: 0,
            version: 0,
            drain_to: 0,
            is_destaging: false,
            is_short: false,
            counts: WriteCounts::default(),
            events: Events::default(),
        };
        let mut now = SimTime::ZERO;
        for _ in 0..1_000 {
            model.step(&mut buffer, now, prng);
            model.check(&mut buffer, now);
            // Several things may happen at one time.
            let ns = prng.below(2) * prng.below(2_000_000);
            now += model.pass(SimDuration::from_ns(ns));
        }
        model.empty(&mut buffer, now);
        events.push(model.events);
    }
    let least = |count: fn(&Events) -> u64, least: u64, what: &str| {
        let sum: u64 = events.iter().map(count).sum();
        assert!(sum >= least, "{what}: {sum}");
    };
    least(|it| it.destages, 1_000, "destages");
    least(|it| it.in_gaps, 100, "writes in gaps");
    least(|it| it.superseded_dirty, 300, "dirty data whose place was taken");
    least(|it| it.superseded_part, 100, "of a part of a buffer block");
    least(|it| it.refused, 100, "writes that had to wait for older data");
    least(|it| it.forgotten, 1_000, "forgotten blocks");
    least(|it| it.forgotten_behind, 100, "behind older data on their way");
    least(|it| it.written_behind, 1_000, "buffer blocks written behind older data");
    least(|it| it.flushes, 100, "flushes");
}
