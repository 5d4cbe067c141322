//! A storage system's cache in front of one disk: read cache, prefetching and write buffer together.
//!
//! It is a state machine without a clock or a disk. Requests and ends of disk requests go in; answers and
//! disk requests come out:
//!
//! ```text
//!   arrive(request) --> answered at once, or waits for disk requests
//!   ended(disk request) --> answers; what was fetched enters the cache
//!   next_at_once(), next_destage(), next_opportunistic() --> what the idle disk should do
//! ```
//!
//! The three kinds of disk work have an order. Fetches and writes that clients wait for wait in the
//! disk's queue. Read-ahead follows its fetch at once, so that the head reads on without a pause.
//! Destages go when no client waits, or among the clients' requests as long as a write waits for room.
//! Opportunistic read-ahead goes last, in small pieces, so that a request waits for one piece at most.

use std::collections::VecDeque;
use std::ops::Range;

use freewheel_units::{Blocks, Lbn, Op, SimTime};

use super::prefetch::{PrefetchSpec, Prefetcher};
use super::read_cache::{BlockRange, ReadCache, ReadCacheSpec};
use super::write_buffer::{WriteBuffer, WriteBufferSpec, WriteCounts};

/// Prefetching that costs no request any time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OpportunisticSpec {
    /// The idle disk reads on until this much was prefetched with a fetch, the read-ahead included. A
    /// request that arrives ends it.
    pub read_ahead: Blocks,
    /// Blocks that pass the head on the target's track before the target enter the cache.
    pub free_blocks: bool,
    /// The head leaves its track as late as it can, and reads on until then.
    pub just_in_time_seek: bool,
}

/// What a storage system's cache is like.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StorageCacheSpec {
    /// The read cache.
    pub read: ReadCacheSpec,
    /// A separate buffer for opportunistic data; None puts them into the read cache.
    pub prefetch_buffer: Option<ReadCacheSpec>,
    /// Prefetching with reads that miss.
    pub prefetch: PrefetchSpec,
    /// Prefetching in time that is idle or lost.
    pub opportunistic: OpportunisticSpec,
    /// The write buffer; None writes through.
    pub write: Option<WriteBufferSpec>,
    /// Most destages that wait for the disk or are on it.
    pub destages_max: u32,
}

/// A request that arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheRequest {
    /// Names the request in the answer.
    pub tag: u64,
    /// Read or write.
    pub op: Op,
    /// First block.
    pub start: Lbn,
    /// How many.
    pub blocks: Blocks,
    /// The disk must have a write before it is answered.
    pub fua: bool,
}

/// Why a disk request is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Purpose {
    /// A read that missed waits for it.
    Fetch,
    /// A write that is not buffered waits for it.
    WriteThrough,
    /// Prefetching behind a fetch, without a pause.
    ReadAhead,
    /// Prefetching by an idle disk.
    Opportunistic,
    /// Data of the write buffer.
    Destage,
}

/// What the disk should do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskRequest {
    /// Names the request in [`StorageCache::ended`].
    pub id: u64,
    /// Why.
    pub purpose: Purpose,
    /// First block.
    pub start: Lbn,
    /// How many, at least one.
    pub blocks: Blocks,
}

impl DiskRequest {
    /// Read or write.
    pub fn op(&self) -> Op {
        match self.purpose {
            Purpose::WriteThrough | Purpose::Destage => Op::Write,
            _ => Op::Read,
        }
    }

    fn range(&self) -> Range<u64> {
        self.start.get()..(self.start + self.blocks).get()
    }
}

/// What became of the requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheCounts {
    /// Reads.
    pub reads: u64,
    /// Reads for which a fetch was made: tr03's read misses. A read of blocks in flight is none.
    pub read_misses: u64,
    /// Reads that waited for blocks in flight alone.
    pub reads_of_blocks_in_flight: u64,
    /// Writes.
    pub writes: u64,
    /// Writes that waited for room in the write buffer.
    pub stalled_writes: u64,
    /// Blocks fetched because reads asked for them.
    pub demand_blocks: u64,
    /// Blocks prefetched with fetches and behind them.
    pub prefetched_blocks: u64,
    /// Blocks prefetched in time that was idle or lost.
    pub opportunistic_blocks: u64,
    /// The write buffer's counts; zeros without one.
    pub buffered: WriteCounts,
}

/// Reads from the disk that are waiting or on it.
#[derive(Debug, Clone)]
struct Reading {
    request: DiskRequest,
    /// Tags of the reads that need some of its blocks.
    readers: Vec<u64>,
    /// Where the read-ahead behind it ends.
    ahead_to: u64,
    /// Tags of the reads that need some blocks of the read-ahead.
    ahead_readers: Vec<u64>,
}

impl Reading {
    fn new(request: DiskRequest, ahead_to: u64, readers: Vec<u64>) -> Self {
        Self { request, readers, ahead_to, ahead_readers: Vec::new() }
    }

    /// Everything that it brings, with the read-ahead behind it.
    fn brings(&self) -> Range<u64> {
        self.request.start.get()..self.ahead_to
    }

    /// Registers a read that needs `blocks`; of how many disk requests.
    fn join(&mut self, blocks: &Range<u64>, tag: u64) -> u32 {
        let end = self.request.range().end;
        let overlaps = |part: Range<u64>| part.start.max(blocks.start) < part.end.min(blocks.end);
        let (now, later) = (overlaps(self.request.range()), overlaps(end..self.ahead_to));
        self.readers.extend(now.then_some(tag));
        self.ahead_readers.extend(later.then_some(tag));
        u32::from(now) + u32::from(later)
    }
}

/// The cache in front of one disk.
#[derive(Debug)]
pub struct StorageCache {
    spec: StorageCacheSpec,
    capacity: u64,
    read: ReadCache<Lbn>,
    prefetch_buffer: Option<ReadCache<Lbn>>,
    prefetcher: Prefetcher,
    write: Option<WriteBuffer>,
    next_id: u64,
    /// There are few, so they are searched from end to end.
    readings: Vec<Reading>,
    /// Disk requests that each waiting read still needs.
    waiting_reads: Vec<(u64, u32)>,
    /// A flush waits until the write buffer is empty.
    is_draining: bool,
    /// Writes that wait for room, or for older data of theirs on the way to the disk, in order.
    stalled: VecDeque<CacheRequest>,
    write_throughs: Vec<(u64, u64)>,
    destages: Vec<DiskRequest>,
    at_once: Option<DiskRequest>,
    /// Blocks that opportunistic read-ahead may read on: where it stands, and its end.
    read_on: Range<u64>,
    counts: CacheCounts,
    missing: Vec<BlockRange<Lbn>>,
    /// Tags of requests that have been answered.
    answered: Vec<u64>,
    /// New disk requests for which clients wait.
    issued: Vec<DiskRequest>,
}

/// Blocks of one opportunistic access: a request that arrives waits for this much at most.
const PIECE_BLOCKS: u64 = 8;

fn range(start: u64, end: u64) -> BlockRange<Lbn> {
    BlockRange::new(Lbn::new(start), Blocks::new(end - start))
}

impl StorageCache {
    /// An empty cache for a disk of `capacity` blocks.
    pub fn new(spec: StorageCacheSpec, capacity: Blocks) -> Self {
        Self {
            spec,
            capacity: capacity.get(),
            read: ReadCache::new(spec.read),
            prefetch_buffer: spec.prefetch_buffer.map(ReadCache::new),
            prefetcher: Prefetcher::new(spec.prefetch, capacity),
            write: spec.write.map(WriteBuffer::new),
            next_id: 0,
            readings: Vec::new(),
            waiting_reads: Vec::new(),
            is_draining: false,
            stalled: VecDeque::new(),
            write_throughs: Vec::new(),
            destages: Vec::new(),
            at_once: None,
            read_on: 0..0,
            counts: CacheCounts::default(),
            missing: Vec::new(),
            answered: Vec::new(),
            issued: Vec::new(),
        }
    }

    /// Counts so far.
    pub fn counts(&self) -> CacheCounts {
        let buffered = self.write.as_ref().map(WriteBuffer::counts).unwrap_or_default();
        CacheCounts { buffered, ..self.counts }
    }

    /// What the cache is like.
    pub fn spec(&self) -> &StorageCacheSpec {
        &self.spec
    }

    /// Takes the tags of requests answered since the last call.
    pub fn take_answered(&mut self, mut each: impl FnMut(u64)) {
        self.answered.drain(..).for_each(&mut each);
    }

    /// Takes the disk requests issued since the last call, for which clients wait.
    pub fn take_issued(&mut self, mut each: impl FnMut(DiskRequest)) {
        self.issued.drain(..).for_each(&mut each);
    }

    /// A read or a write arrives.
    pub fn arrive(&mut self, request: CacheRequest, now: SimTime) {
        match request.op {
            Op::Read => self.arrive_read(request),
            _ => self.arrive_write(request, now),
        }
    }

    fn arrive_read(&mut self, request: CacheRequest) {
        self.counts.reads += 1;
        let blocks = request.start.get()..(request.start + request.blocks).get();
        self.prefetcher.read(&blocks);
        let Some(missing) = self.missing_from_memory(&request) else {
            return self.answered.push(request.tag);
        };
        let in_flight = self.join_readings(&missing, request.tag);
        let fetched = match self.without_in_flight(missing) {
            None => {
                self.counts.reads_of_blocks_in_flight += 1;
                0
            }
            Some(missing) => {
                self.counts.read_misses += 1;
                self.fetch(&blocks, missing, request.tag);
                1
            }
        };
        self.waiting_reads.push((request.tag, in_flight + fetched));
    }

    /// The hull of the blocks that no memory holds; None when memory holds all.
    fn missing_from_memory(&mut self, request: &CacheRequest) -> Option<Range<u64>> {
        let mut missing = std::mem::take(&mut self.missing);
        let whole = BlockRange::new(request.start, request.blocks);
        self.read.access(whole, Op::Read, &mut missing);
        let mut hull: Option<Range<u64>> = None;
        if self.prefetch_buffer.is_some() {
            self.promote(&mut missing);
        }
        for run in &missing {
            let run = run.start.get()..run.end().get();
            let mut widen = |part: Range<u64>| {
                let start = hull.as_ref().map_or(part.start, |hull| hull.start);
                hull = Some(start..part.end);
            };
            match &self.write {
                Some(buffer) => buffer.missing(run, widen),
                None => widen(run),
            }
        }
        self.missing = missing;
        hull
    }

    /// Moves missing blocks that were prefetched opportunistically into the read cache.
    fn promote(&mut self, missing: &mut Vec<BlockRange<Lbn>>) {
        let Self { prefetch_buffer: Some(buffer), read, .. } = self else { return };
        let (mut rest, mut left) = (Vec::new(), Vec::new());
        for &run in &*missing {
            buffer.access(run, Op::Read, &mut left);
            if left != [run] {
                read.insert(run);
                left.iter().for_each(|&absent| read.invalidate(absent));
                buffer.invalidate(run);
            }
            rest.append(&mut left);
        }
        *missing = rest;
    }

    /// Joins the reads in flight that bring some of the blocks; how many.
    fn join_readings(&mut self, missing: &Range<u64>, tag: u64) -> u32 {
        self.readings.iter_mut().map(|reading| reading.join(missing, tag)).sum()
    }

    /// The hull of the blocks that no read in flight brings.
    fn without_in_flight(&self, missing: Range<u64>) -> Option<Range<u64>> {
        let mut left = missing;
        // A read in flight can cut the front or the back of what is left; each cut may make the next
        // one possible.
        loop {
            let before = left.clone();
            for reading in &self.readings {
                let brings = reading.brings();
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

    fn fetch(&mut self, blocks: &Range<u64>, missing: Range<u64>, tag: u64) {
        let demand = missing.end - missing.start;
        let plan = self.prefetcher.plan(blocks, missing);
        let length = plan.fetch.end - plan.fetch.start;
        self.counts.demand_blocks += demand;
        self.counts.prefetched_blocks += length - demand;
        let request = self.request(Purpose::Fetch, plan.fetch);
        self.readings.push(Reading::new(request, plan.ahead_to, vec![tag]));
        self.issued.push(request);
    }

    fn request(&mut self, purpose: Purpose, blocks: Range<u64>) -> DiskRequest {
        let id = self.next_id;
        self.next_id += 1;
        let (start, blocks) = (Lbn::new(blocks.start), Blocks::new(blocks.end - blocks.start));
        DiskRequest { id, purpose, start, blocks }
    }

    fn arrive_write(&mut self, request: CacheRequest, now: SimTime) {
        self.counts.writes += 1;
        let blocks = BlockRange::new(request.start, request.blocks);
        self.read.access(blocks, Op::Write, &mut self.missing);
        if let Some(buffer) = &mut self.prefetch_buffer {
            buffer.invalidate(blocks);
        }
        self.stalled.push_back(request);
        let before = self.stalled.len();
        self.take_writes(now);
        self.counts.stalled_writes += u64::from(self.stalled.len() == before);
    }

    /// Takes waiting writes in order, as far as there is room.
    fn take_writes(&mut self, now: SimTime) {
        while let Some(&request) = self.stalled.front() {
            if !self.take_write(&request, now) {
                break;
            }
            self.stalled.pop_front();
        }
        self.is_draining &= self.must_drain();
        let is_short = self.is_short();
        self.write.iter_mut().for_each(|buffer| buffer.set_short(is_short));
    }

    /// A flush waits: destages everything, with the priority of clients' requests.
    pub fn drain(&mut self) {
        self.is_draining = true;
        self.write.iter_mut().for_each(|buffer| buffer.set_short(true));
    }

    fn take_write(&mut self, request: &CacheRequest, now: SimTime) -> bool {
        let blocks = request.start.get()..(request.start + request.blocks).get();
        let Some(buffer) = &mut self.write else {
            self.write_through(request.tag, blocks);
            return true;
        };
        if request.fua || !buffer.can_hold(blocks.clone()) {
            // Older data of these blocks must reach the disk before, or not at all.
            let is_clear = buffer.discard(blocks.clone(), now);
            if is_clear {
                self.write_through(request.tag, blocks);
            }
            return is_clear;
        }
        let has_room = buffer.has_room(blocks.clone());
        if has_room {
            buffer.write(blocks, now);
            self.answered.push(request.tag);
        }
        has_room
    }

    fn write_through(&mut self, tag: u64, blocks: Range<u64>) {
        let request = self.request(Purpose::WriteThrough, blocks);
        self.write_throughs.push((request.id, tag));
        self.issued.push(request);
    }

    /// A disk request has ended. `passed` are blocks that passed the head on its way, as
    /// [`OpportunisticSpec`] allows.
    pub fn ended(&mut self, request: &DiskRequest, passed: &[Range<u64>], now: SimTime) {
        match request.purpose {
            Purpose::Fetch | Purpose::ReadAhead | Purpose::Opportunistic => {
                self.read_ended(request)
            }
            Purpose::WriteThrough => {
                let at = self.write_throughs.iter().position(|&(id, _)| id == request.id);
                let (_, tag) = self.write_throughs.remove(at.expect("a write under way"));
                self.answered.push(tag);
            }
            Purpose::Destage => {
                let at = self.destages.iter().position(|other| other.id == request.id);
                self.destages.swap_remove(at.expect("a destage under way"));
                let buffer = self.write.as_mut().expect("destages come from a buffer");
                buffer.destaged(request.range(), now);
                self.take_writes(now);
            }
        }
        for blocks in passed {
            self.counts.opportunistic_blocks += blocks.end - blocks.start;
            self.keep_opportunistic(blocks.clone());
        }
    }

    fn read_ended(&mut self, request: &DiskRequest) {
        let at = self.readings.iter().position(|reading| reading.request.id == request.id);
        let Reading { ahead_to, readers, ahead_readers, .. } =
            self.readings.remove(at.expect("a read under way"));
        let blocks = request.range();
        match request.purpose {
            Purpose::Opportunistic => self.keep_opportunistic(blocks.clone()),
            _ => self.read.insert(range(blocks.start, blocks.end)),
        }
        readers.into_iter().for_each(|tag| self.part_is_here(tag));
        if request.purpose == Purpose::Opportunistic {
            return;
        }
        let total = self.spec.opportunistic.read_ahead.get();
        let end = match request.purpose {
            Purpose::Fetch => (blocks.end + total).min(self.capacity),
            _ => self.read_on.end,
        };
        self.read_on = ahead_to.max(blocks.end)..end.max(blocks.end);
        if ahead_to > blocks.end {
            self.counts.prefetched_blocks += ahead_to - blocks.end;
            let request = self.request(Purpose::ReadAhead, blocks.end..ahead_to);
            self.readings.push(Reading::new(request, ahead_to, ahead_readers));
            self.at_once = Some(request);
        }
    }

    fn keep_opportunistic(&mut self, blocks: Range<u64>) {
        let blocks = range(blocks.start, blocks.end);
        match &mut self.prefetch_buffer {
            Some(buffer) if !self.read.contains(blocks) => buffer.insert(blocks),
            Some(_) => {}
            None => self.read.insert(blocks),
        }
    }

    fn part_is_here(&mut self, tag: u64) {
        let at = self.waiting_reads.iter().position(|&(other, _)| other == tag);
        let at = at.expect("a reader waits");
        self.waiting_reads[at].1 -= 1;
        if self.waiting_reads[at].1 == 0 {
            self.waiting_reads.swap_remove(at);
            self.answered.push(tag);
        }
    }

    /// A read-ahead that must follow the fetch that has just ended, before anything else.
    pub fn next_at_once(&mut self) -> Option<DiskRequest> {
        self.at_once.take()
    }

    /// The next destage to queue, if one is wanted and fewer than the most are under way.
    pub fn next_destage(&mut self, now: SimTime) -> Option<DiskRequest> {
        if self.destages.len() >= self.spec.destages_max as usize {
            return None;
        }
        let blocks = self.write.as_mut()?.next_destage(now)?;
        let request = self.request(Purpose::Destage, blocks);
        self.destages.push(request);
        Some(request)
    }

    /// Whether destages have the priority of clients' requests: a write waits for room, or a flush.
    pub fn is_short(&self) -> bool {
        self.is_draining || !self.stalled.is_empty()
    }

    /// When data of the write buffer are due, if that is after `now`.
    pub fn next_due(&self, now: SimTime) -> Option<SimTime> {
        self.write.as_ref()?.next_due().filter(|&due| due > now)
    }

    /// What the idle disk should read on. Blocks that memory holds already are passed over.
    pub fn next_opportunistic(&mut self) -> Option<DiskRequest> {
        let start = self.read_on.start;
        let end = (start + PIECE_BLOCKS).min(self.read_on.end);
        if start >= end {
            return None;
        }
        self.read_on.start = end;
        self.counts.opportunistic_blocks += end - start;
        let request = self.request(Purpose::Opportunistic, start..end);
        self.readings.push(Reading::new(request, end, Vec::new()));
        Some(request)
    }

    /// A request that needs the disk has arrived or a destage begins: opportunistic read-ahead is over.
    pub fn end_read_on(&mut self) {
        self.read_on.start = self.read_on.end;
    }

    /// Whether volatile memory holds data that the disk has not: a flush waits for them.
    pub fn must_drain(&self) -> bool {
        self.write.as_ref().is_some_and(|buffer| buffer.spec().is_volatile && !buffer.is_empty())
    }
}
