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
//! disk's queue. Read-ahead follows its fetch at once or is a part of it, so that the head reads on without
//! a pause. Destages go when no client waits, or among the clients' requests as long as a write waits for
//! room. Opportunistic read-ahead goes last, in small pieces, so that a request waits for one piece at
//! most.

use std::collections::VecDeque;
use std::ops::Range;

use freewheel_units::{Blocks, Lbn, Op, SimTime};
use slab::Slab;

use super::disk_request::{CacheRequest, DiskRequest, Purpose};
use super::key_policy::KeyPolicy;
use super::prefetch::Prefetcher;
use super::prefetch_counts::{PrefetchKind, PrefetchTally};
use super::range_index::RangeIndex;
use super::read_cache::{BlockRange, ReadCache};
use super::readings::{Joined, Reader, Reading, Readings};
use super::storage_spec::StorageCacheSpec;
use super::write_buffer::{FlushPoint, WriteBuffer, WriteCounts};

/// Counts of requests by outcome.
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
    /// Outcome of prefetched blocks that memory did not have.
    pub prefetch: PrefetchTally,
    /// The write buffer's counts; zeros without one.
    pub buffered: WriteCounts,
}

/// Writes that go to the disk without the write buffer.
#[derive(Debug, Default)]
struct WriteThroughs {
    /// Tags by the disk request's slot.
    tags: Vec<u64>,
    index: RangeIndex,
}

/// The cache in front of one disk.
#[derive(Debug)]
pub struct StorageCache {
    spec: StorageCacheSpec,
    /// Fetch and read-ahead are one disk request, and reads wait for both; else the read-ahead is a second
    /// request. A disk that holds several requests would serve others between the two.
    reads_ahead_in_fetch: bool,
    capacity: u64,
    read: ReadCache<Lbn>,
    prefetch_buffer: Option<ReadCache<Lbn>>,
    prefetcher: Prefetcher,
    write: Option<WriteBuffer>,
    requests_made: u64,
    /// Slots of disk requests under way.
    slots: Slab<()>,
    readings: Readings,
    write_throughs: WriteThroughs,
    destages: u32,
    /// Writes that wait for room, or for older data of theirs on the way to the disk, in order.
    stalled: VecDeque<CacheRequest>,
    /// Read-ahead that follows fetches which have ended. A disk with a queue may end several at once.
    at_once: VecDeque<DiskRequest>,
    /// Blocks that opportunistic read-ahead may read on: where it stands, and its end.
    read_on: Range<u64>,
    counts: CacheCounts,
    missing: Vec<BlockRange<Lbn>>,
    /// Parts of one request that the prefetch buffer lacks. Kept to reuse the memory.
    absent: Vec<BlockRange<Lbn>>,
    left: Vec<BlockRange<Lbn>>,
    /// Tags of requests that have been answered.
    answered: Vec<u64>,
    /// New disk requests for which clients wait.
    issued: Vec<DiskRequest>,
}

/// Blocks of one opportunistic access: a request that arrives waits for this much at most.
const PIECE_BLOCKS: u64 = 8;

/// `start..end`, or nothing.
fn range(start: u64, end: u64) -> BlockRange<Lbn> {
    BlockRange::new(Lbn::new(start), Blocks::new(end.saturating_sub(start)))
}

impl StorageCache {
    /// An empty cache for a disk of `capacity` blocks.
    pub fn new(spec: StorageCacheSpec, capacity: Blocks) -> Self {
        let prefetcher = Prefetcher::new(spec.prefetch, capacity);
        let mut read = ReadCache::new(spec.read_cache(spec.size));
        if prefetcher.learns() {
            read.keep_in_vain();
        }
        let of_memory = |size| ReadCache::new(spec.read_cache(size));
        let buffer = |buffer| WriteBuffer::new(buffer, spec.cache_block());
        Self {
            spec,
            reads_ahead_in_fetch: false,
            capacity: capacity.get(),
            read,
            prefetch_buffer: spec.prefetch_buffer.map(of_memory),
            prefetcher,
            write: spec.write_buffer.map(buffer),
            requests_made: 0,
            slots: Slab::default(),
            readings: Readings::default(),
            write_throughs: WriteThroughs::default(),
            destages: 0,
            stalled: VecDeque::new(),
            at_once: VecDeque::new(),
            read_on: 0..0,
            counts: CacheCounts::default(),
            missing: Vec::new(),
            absent: Vec::new(),
            left: Vec::new(),
            answered: Vec::new(),
            issued: Vec::new(),
        }
    }

    /// The empty cache in front of a disk that holds several requests: the read-ahead is a part of its fetch.
    pub fn reading_ahead_in_fetches(self) -> Self {
        Self { reads_ahead_in_fetch: true, ..self }
    }

    /// The empty cache, with a policy for this many cache blocks in place of the specification's.
    pub fn with_policy(mut self, make: impl FnOnce(u32) -> Box<dyn KeyPolicy>) -> Self {
        let spec = self.spec.read_cache(self.spec.size);
        self.read = ReadCache::with_policy(spec, make(spec.capacity));
        if self.prefetcher.learns() {
            self.read.keep_in_vain();
        }
        self
    }

    /// Counts up to `now`.
    pub fn counts(&self, now: SimTime) -> CacheCounts {
        let buffered = self.write.as_ref().map(|buffer| buffer.counts(now)).unwrap_or_default();
        let mut prefetch = self.readings.late();
        prefetch += self.read.prefetched();
        self.prefetch_buffer.iter().for_each(|buffer| prefetch += buffer.prefetched());
        CacheCounts { buffered, prefetch, ..self.counts }
    }

    /// Settings of the cache.
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

    /// A read or a write arrives. Panics for others: flushes are [`Self::flush_point`], trims
    /// [`Self::trim`].
    pub fn arrive(&mut self, request: CacheRequest, now: SimTime) {
        match request.op {
            Op::Read => self.arrive_read(request),
            Op::Write => self.arrive_write(request, now),
            Op::Trim | Op::Flush => panic!("nothing is to answer for a {}", request.op),
        }
    }

    fn arrive_read(&mut self, request: CacheRequest) {
        self.counts.reads += 1;
        let blocks = request.range();
        self.prefetcher.read(&blocks);
        if request.fua {
            return self.read_media(&request);
        }
        let Some(missing) = self.missing_from_memory(&request) else {
            self.answered.push(request.tag);
            return self.prefetch_next(&blocks);
        };
        let waiting = self.readings.wait(request.tag);
        let Joined { left, is_late } = self.readings.join(&missing, waiting);
        if is_late {
            self.prefetcher.waited(&blocks);
        }
        match left {
            None => {
                self.counts.reads_of_blocks_in_flight += 1;
                self.prefetch_next(&blocks);
            }
            Some(missing) => {
                self.counts.read_misses += 1;
                self.fetch(&request, missing, waiting);
            }
        }
    }

    /// A read with FUA. What the write buffer has is newer than on the media and comes from there; the
    /// media bring the rest, in spite of other data that memory holds.
    fn read_media(&mut self, request: &CacheRequest) {
        let whole = BlockRange::new(request.start, request.blocks);
        let Some(missing) = self.missing_from_buffer(&[whole]) else {
            return self.answered.push(request.tag);
        };
        self.counts.read_misses += 1;
        let waiting = self.readings.wait(request.tag);
        self.fetch(request, missing, waiting);
    }

    /// Prefetches in time for the reads that follow a hit. The request waits in the disk's queue among
    /// those of clients, who will need it soon.
    fn prefetch_next(&mut self, blocks: &Range<u64>) {
        let Some(set) = self.prefetcher.hit(blocks) else { return };
        self.counts.prefetched_blocks += set.end - set.start;
        let request = self.request(Purpose::ReadAhead, &set);
        let reading = Reading::prefetch(set, PrefetchKind::WithReads, Vec::new());
        self.readings.begin(&request, reading);
        self.issued.push(request);
    }

    /// Memory forgets these blocks, which may make room for writes. Data on their way to the disk
    /// arrive there.
    pub fn trim(&mut self, blocks: BlockRange<Lbn>, now: SimTime) {
        let numbers = blocks.start.get()..blocks.end().get();
        self.read.invalidate(blocks);
        self.prefetch_buffer.iter_mut().for_each(|buffer| buffer.invalidate(blocks));
        self.write.iter_mut().for_each(|buffer| buffer.forget(numbers.clone(), now));
        self.take_writes(now);
    }

    /// The hull of the blocks that no memory holds; None when memory holds all.
    fn missing_from_memory(&mut self, request: &CacheRequest) -> Option<Range<u64>> {
        let mut missing = std::mem::take(&mut self.missing);
        let whole = BlockRange::new(request.start, request.blocks);
        self.read.access(whole, Op::Read, &mut missing);
        if self.prefetch_buffer.is_some() {
            self.promote(&mut missing);
        }
        let hull = self.missing_from_buffer(&missing);
        self.missing = missing;
        hull
    }

    /// The hull of the blocks of these ascending runs that the write buffer has not.
    fn missing_from_buffer(&self, runs: &[BlockRange<Lbn>]) -> Option<Range<u64>> {
        let mut hull: Option<Range<u64>> = None;
        for run in runs {
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
        hull
    }

    /// Moves missing blocks that were prefetched opportunistically into the read cache.
    fn promote(&mut self, missing: &mut Vec<BlockRange<Lbn>>) {
        let Self { prefetch_buffer: Some(buffer), read, absent, left, .. } = self else { return };
        absent.clear();
        for &run in &*missing {
            buffer.access(run, Op::Read, left);
            if *left != [run] {
                read.insert(run);
                left.iter().for_each(|&absent| read.invalidate(absent));
                buffer.invalidate(run);
            }
            absent.append(left);
        }
        std::mem::swap(missing, absent);
    }

    fn fetch(&mut self, read: &CacheRequest, missing: Range<u64>, waiting: usize) {
        let mut plan = self.prefetcher.plan(&read.range(), missing.clone());
        if self.reads_ahead_in_fetch {
            plan.fetch.end = plan.ahead_to;
        }
        let (length, demand) = (plan.fetch.end - plan.fetch.start, missing.end - missing.start);
        self.counts.demand_blocks += demand;
        self.counts.prefetched_blocks += length - demand;
        let request = self.request(Purpose::Fetch, &plan.fetch);
        let prefetched = Blocks::new(length - demand);
        let request = DiskRequest { prefetched, fua: read.fua, ..request };
        let total = self.spec.opportunistic.read_ahead.blocks_rounded_up().get();
        let reading = Reading {
            readers: vec![Reader { waiting, blocks: missing.clone() }],
            demand: missing,
            ahead_to: plan.ahead_to,
            read_on_to: (plan.fetch.end + total).min(self.capacity),
            ..Reading::prefetch(plan.fetch, PrefetchKind::WithReads, Vec::new())
        };
        self.readings.wait_for_one_more(waiting);
        self.readings.begin(&request, reading);
        self.issued.push(request);
    }

    fn request(&mut self, purpose: Purpose, blocks: &Range<u64>) -> DiskRequest {
        let (number, slot) = (self.requests_made, self.slots.insert(()) as u32);
        self.requests_made += 1;
        DiskRequest::new(number, slot, purpose, blocks)
    }

    fn arrive_write(&mut self, request: CacheRequest, now: SimTime) {
        self.counts.writes += 1;
        self.stalled.push_back(request);
        let before = self.stalled.len();
        self.take_writes(now);
        self.counts.stalled_writes += u64::from(self.stalled.len() == before);
    }

    /// Takes waiting writes in order, as far as there is room.
    fn take_writes(&mut self, now: SimTime) {
        let mut refusal = None;
        while let Some(&request) = self.stalled.front() {
            refusal = self.take_write(&request, now);
            if refusal.is_some() {
                break;
            }
            self.stalled.pop_front();
        }
        let is_short = refusal == Some(Refusal::Room);
        self.write.iter_mut().for_each(|buffer| buffer.set_short(is_short));
    }

    /// Takes a write into the buffer or sends it to the disk, or says why it has to wait.
    fn take_write(&mut self, request: &CacheRequest, now: SimTime) -> Option<Refusal> {
        let blocks = request.range();
        let Some(buffer) = &mut self.write else {
            self.write_through(request);
            return None;
        };
        // Older data of these blocks are on their way. A policy may let newer data pass them.
        if self.write_throughs.index.overlaps(&blocks) {
            return Some(Refusal::Order);
        }
        let is_forced = request.fua && buffer.spec().volatile;
        if is_forced || !buffer.can_hold(blocks.clone()) {
            if !buffer.supersede(blocks.clone(), now) {
                return Some(Refusal::Order);
            }
            self.write_through(request);
            return None;
        }
        if !buffer.has_room(blocks.clone()) {
            return Some(Refusal::Room);
        }
        buffer.write(blocks, now);
        self.update(BlockRange::new(request.start, request.blocks));
        self.answered.push(request.tag);
        None
    }

    fn write_through(&mut self, write: &CacheRequest) {
        let (tag, blocks) = (write.tag, write.range());
        let request = self.request(Purpose::WriteThrough, &blocks);
        let request = DiskRequest { fua: write.fua || self.is_safe(), ..request };
        let slot = DiskRequest::slot(request.id);
        let WriteThroughs { tags, index } = &mut self.write_throughs;
        tags.resize(tags.len().max(slot as usize + 1), 0);
        tags[slot as usize] = tag;
        index.insert(&blocks, slot);
        self.issued.push(request);
    }

    /// True if written data are in memory that a power cut does not clear, until the media have them.
    fn is_safe(&self) -> bool {
        self.write.as_ref().is_some_and(|buffer| !buffer.spec().volatile)
    }

    /// Data of a write are the newest from now on. A fetch that ended after the write arrived may have
    /// brought older ones, so memory is updated when the write is taken or done, not when it arrives.
    fn update(&mut self, blocks: BlockRange<Lbn>) {
        self.read.access(blocks, Op::Write, &mut self.missing);
        if let Some(buffer) = &mut self.prefetch_buffer {
            buffer.invalidate(blocks);
        }
    }

    /// A disk request has ended. `passed` are blocks that passed the head on its way, as
    /// [`OpportunisticSpec`] allows, with what the head read them for.
    pub fn ended(
        &mut self,
        request: &DiskRequest,
        passed: &[(PrefetchKind, Range<u64>)],
        now: SimTime,
    ) {
        self.slots.remove(DiskRequest::slot(request.id) as usize);
        match request.purpose {
            Purpose::Fetch | Purpose::ReadAhead | Purpose::Opportunistic => {
                self.read_ended(request)
            }
            Purpose::WriteThrough => self.write_through_ended(request, now),
            Purpose::Destage => {
                self.destages -= 1;
                let buffer = self.write.as_mut().expect("destages come from a buffer");
                buffer.destaged(request.range(), now);
                self.take_writes(now);
            }
        }
        for (kind, blocks) in passed.iter().filter(|(_, blocks)| !blocks.is_empty()) {
            self.counts.opportunistic_blocks += blocks.end - blocks.start;
            self.keep_opportunistic(blocks, *kind, &[]);
        }
    }

    fn write_through_ended(&mut self, request: &DiskRequest, now: SimTime) {
        let slot = DiskRequest::slot(request.id);
        self.write_throughs.index.remove(request.start.get(), slot);
        self.answered.push(self.write_throughs.tags[slot as usize]);
        self.update(BlockRange::new(request.start, request.blocks));
        if let Some(buffer) = &mut self.write {
            buffer.destaged(request.range(), now);
            self.take_writes(now);
        }
    }

    fn read_ended(&mut self, request: &DiskRequest) {
        let reading = self.readings.end(request);
        let blocks = request.range();
        match request.purpose {
            Purpose::Opportunistic => {
                self.keep_opportunistic(&blocks, reading.kind, &reading.readers)
            }
            _ => self.keep_fetched(&reading),
        }
        if self.prefetcher.learns() {
            let Self { read, prefetcher, .. } = self;
            read.take_in_vain(|blocks| {
                prefetcher.wasted(&(blocks.start.get()..blocks.end().get()));
            });
        }
        for Reader { waiting, .. } in reading.readers {
            self.answered.extend(self.readings.part_is_here(waiting));
        }
        if request.purpose == Purpose::Opportunistic {
            return;
        }
        let Reading { ahead_to, read_on_to, .. } = reading;
        self.read_on = ahead_to..read_on_to.max(ahead_to);
        if ahead_to > blocks.end {
            self.counts.prefetched_blocks += ahead_to - blocks.end;
            let (ahead, readers) = (blocks.end..ahead_to, reading.ahead_readers);
            let request = self.request(Purpose::ReadAhead, &ahead);
            let reading = Reading { read_on_to, ..Reading::prefetch(ahead, reading.kind, readers) };
            self.readings.begin(&request, reading);
            self.at_once.push_back(request);
        }
    }

    /// Blocks of a fetch or of read-ahead enter the read cache, in ascending order.
    fn keep_fetched(&mut self, reading: &Reading) {
        let Reading { blocks, demand, kind, readers, .. } = reading;
        if demand == blocks {
            return self.read.insert(range(blocks.start, blocks.end));
        }
        self.read.prefetch(range(blocks.start, demand.start), *kind);
        self.read.insert(range(demand.start, demand.end));
        self.read.prefetch(range(demand.end, blocks.end), *kind);
        use_prefetched(&mut self.read, blocks, readers);
    }

    /// Blocks that were prefetched opportunistically enter their buffer, or the read cache.
    fn keep_opportunistic(&mut self, blocks: &Range<u64>, kind: PrefetchKind, readers: &[Reader]) {
        let Self { read, prefetch_buffer, .. } = self;
        let Some(buffer) = prefetch_buffer else {
            read.prefetch(range(blocks.start, blocks.end), kind);
            return use_prefetched(read, blocks, readers);
        };
        // The read cache has room for more, and keeps data longer.
        read.incomplete(range(blocks.start, blocks.end), |absent| buffer.prefetch(absent, kind));
        use_prefetched(buffer, blocks, readers);
    }

    /// A read-ahead that must follow a fetch that has just ended, before anything else.
    pub fn next_at_once(&mut self) -> Option<DiskRequest> {
        self.at_once.pop_front()
    }

    /// The next destage to queue, if one is wanted and fewer than the most are under way.
    pub fn next_destage(&mut self, now: SimTime) -> Option<DiskRequest> {
        if self.destages >= self.spec.destages_max() {
            return None;
        }
        let blocks = self.write.as_mut()?.next_destage(now)?;
        self.destages += 1;
        let request = self.request(Purpose::Destage, &blocks);
        Some(DiskRequest { fua: self.is_safe(), ..request })
    }

    /// Calls `found` with each buffer block that rotational gaps may write, of those that have changed
    /// since the last call.
    pub fn take_whole(&mut self, found: impl FnMut(Range<u64>)) {
        if let Some(buffer) = &mut self.write {
            buffer.take_whole(found);
        }
    }

    /// A rotational gap writes buffer blocks that [`Self::take_whole`] has named. Call
    /// [`Self::written_in_gap`] when the disk has them.
    pub fn begin_in_gap(&mut self, blocks: Range<u64>) {
        self.write.as_mut().expect("gaps write blocks of a buffer").begin_in_gap(blocks);
    }

    /// The disk has what a gap wrote.
    pub fn written_in_gap(&mut self, blocks: Range<u64>, now: SimTime) {
        let buffer = self.write.as_mut().expect("gaps write blocks of a buffer");
        buffer.destaged(blocks, now);
        self.take_writes(now);
    }

    /// True if destages have the priority of clients' requests: a write waits for room, or a flush.
    pub fn is_short(&self) -> bool {
        !self.stalled.is_empty() || self.write.as_ref().is_some_and(WriteBuffer::is_draining)
    }

    /// Time at which data of the write buffer are due, if after `now`.
    pub fn next_due(&self, now: SimTime) -> Option<SimTime> {
        self.write.as_ref()?.next_due().filter(|&due| due > now)
    }

    /// Next piece that the idle disk should read on. One that memory holds as a whole is passed over.
    pub fn next_opportunistic(&mut self) -> Option<DiskRequest> {
        let blocks = self.next_piece()?;
        self.counts.opportunistic_blocks += blocks.end - blocks.start;
        let request = self.request(Purpose::Opportunistic, &blocks);
        let reading = Reading::prefetch(blocks, PrefetchKind::Idle, Vec::new());
        self.readings.begin(&request, reading);
        Some(request)
    }

    fn next_piece(&mut self) -> Option<Range<u64>> {
        while !self.read_on.is_empty() {
            let start = self.read_on.start;
            // Pieces end where sectors of any size do, so that no sector is read twice.
            let end = (start + 1).next_multiple_of(PIECE_BLOCKS).min(self.read_on.end);
            self.read_on.start = end;
            if !self.holds_all(start..end) {
                return Some(start..end);
            }
        }
        None
    }

    /// True if memory has every one of these blocks, so that a disk has no block to read there.
    pub fn holds_all(&self, mut blocks: Range<u64>) -> bool {
        blocks.all(|block| self.holds(block))
    }

    /// True if some memory has a block.
    fn holds(&self, block: u64) -> bool {
        let place = range(block, block + 1);
        let prefetched = self.prefetch_buffer.as_ref();
        self.read.contains(place)
            || prefetched.is_some_and(|buffer| buffer.contains(place))
            || self.write.as_ref().is_some_and(|buffer| buffer.holds(block))
    }

    /// A request that needs the disk has arrived or a destage begins: opportunistic read-ahead is over.
    pub fn end_read_on(&mut self) {
        self.read_on.start = self.read_on.end;
    }

    /// Begins a flush: data that volatile memory holds now must reach the disk, with the priority of
    /// clients' requests. None when all of them have.
    pub fn flush_point(&mut self) -> Option<FlushPoint> {
        self.write.as_mut().filter(|buffer| buffer.spec().volatile)?.flush_point()
    }

    /// True if the data of a flush have reached the disk.
    pub fn is_flushed(&self, point: FlushPoint) -> bool {
        self.write.as_ref().is_none_or(|buffer| buffer.is_flushed(point))
    }
}

/// Blocks that have just been prefetched are what these reads wait for.
fn use_prefetched(cache: &mut ReadCache<Lbn>, blocks: &Range<u64>, readers: &[Reader]) {
    for part in readers.iter().map(|reader| reader.part_of(blocks)) {
        cache.prefetch_was_used(range(part.start, part.end));
    }
}

/// Reason why a write waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refusal {
    /// The buffer is full.
    Room,
    /// Older data of its blocks are on their way to the disk.
    Order,
}
