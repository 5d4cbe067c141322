//! The whole cache against a naive model that knows the version of each block everywhere.
//!
//! Versions count answered writes. The disk serves its queue in any order, and may end
//! several requests at once.
//! At each moment memory and disk together have the newest version of each block:
//!
//! ```text
//!   newest[b] = buffered[b], else disk[b]
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use freewheel_model::cache::{
    BlockRange, CacheRequest, DestageOrder, DiskRequest, FlushPoint, OpportunisticSpec,
    PrefetchKind, PrefetchSpec, Purpose, StorageCache, StorageCacheSpec, WriteBufferSpec,
};
use freewheel_units::{Blocks, Bytes, Lbn, Op, Prng, SimDuration, SimTime};

const CAPACITY: u64 = 2_000;
const SIZE: u64 = 8;

fn at(ms: u64) -> SimTime {
    SimTime::from_ns(ms * 1_000_000)
}

/// A client's request that is not answered.
struct Waiting {
    request: CacheRequest,
    /// Newest versions when a read arrived.
    newest: Vec<u64>,
    /// Blocks that memory may have had then, or a disk request has brought since.
    is_here: Vec<bool>,
}

/// A disk request, with the versions that a write carries.
struct Job {
    request: DiskRequest,
    carried: Vec<u64>,
    /// Blocks that its rotational gap writes.
    in_gap: Option<Written>,
}

/// Blocks on their way to the disk.
struct Written {
    blocks: Range<u64>,
    carried: Vec<u64>,
}

impl Job {
    fn new(request: DiskRequest) -> Self {
        Self { request, carried: Vec::new(), in_gap: None }
    }
}

struct Flush {
    point: FlushPoint,
    /// Contents that the disk must have at its end.
    owed: Vec<(u64, u64)>,
}

/// The naive model around a cache.
struct Model {
    cache: StorageCache,
    spec: StorageCacheSpec,
    now: u64,
    answers: u64,
    newest: Vec<u64>,
    disk: Vec<u64>,
    /// Newest version in the write buffer, and when the block became dirty.
    buffered: BTreeMap<u64, Dirty>,
    /// Blocks that memory may have; an eviction leaves them here.
    memory: Vec<bool>,
    waiting: BTreeMap<u64, Waiting>,
    clients: Vec<Job>,
    destages: Vec<Job>,
    destages_under_way: u32,
    flushes: Vec<Flush>,
    /// Buffer blocks that gaps may write, by their first block.
    whole: BTreeSet<u64>,
}

#[derive(Clone, Copy)]
struct Dirty {
    version: u64,
    /// Version on its way to the disk; 0 for none.
    under_way: u64,
    since: u64,
}

fn blocks(request: &CacheRequest) -> Range<usize> {
    let start = request.start.get() as usize;
    start..start + request.blocks.get() as usize
}

fn range(request: &DiskRequest) -> Range<usize> {
    let Range { start, end } = request.range();
    start as usize..end as usize
}

impl Model {
    fn new((spec, reads_ahead_in_fetch): (StorageCacheSpec, bool)) -> Self {
        let cache = StorageCache::new(spec, Blocks::new(CAPACITY));
        let cells = CAPACITY as usize;
        Self {
            cache: match reads_ahead_in_fetch {
                true => cache.reading_ahead_in_fetches(),
                false => cache,
            },
            spec,
            now: 0,
            answers: 0,
            newest: vec![0; cells],
            disk: vec![0; cells],
            buffered: BTreeMap::new(),
            memory: vec![false; cells],
            waiting: BTreeMap::new(),
            clients: Vec::new(),
            destages: Vec::new(),
            destages_under_way: 0,
            flushes: Vec::new(),
            whole: BTreeSet::new(),
        }
    }

    fn arrive(&mut self, request: CacheRequest) {
        if request.op == Op::Trim {
            self.cache.trim(BlockRange::new(request.start, request.blocks), at(self.now));
            self.trim(&request);
            return self.collect();
        }
        let its = blocks(&request);
        let is_buffered = |block: &usize| self.buffered.contains_key(&(*block as u64));
        let in_memory = |block: &usize| self.memory[*block] && !request.fua;
        let is_here = its.clone().map(|b| in_memory(&b) || is_buffered(&b)).collect();
        let waiting = Waiting { request, newest: self.newest[its].to_vec(), is_here };
        assert!(self.waiting.insert(request.tag, waiting).is_none());
        self.cache.arrive(request, at(self.now));
        self.collect();
    }

    /// Takes answers and disk requests from the cache.
    fn collect(&mut self) {
        let mut answered = Vec::new();
        self.cache.take_answered(|tag| answered.push(tag));
        for tag in answered {
            let waiting = self.waiting.remove(&tag).expect("one answer for each request");
            match waiting.request.op {
                Op::Read => assert!(waiting.is_here.iter().all(|&is_here| is_here), "{tag}"),
                _ => self.write(&waiting.request),
            }
        }
        let Self { cache, clients, buffered, whole, .. } = self;
        cache.take_whole(|blocks| _ = whole.insert(blocks.start));
        cache.take_issued(|request| {
            if request.purpose == Purpose::WriteThrough {
                forget(whole, &request.range());
                // Older data of its blocks are as good as on their way.
                for (block, dirty) in buffered.range_mut(request.range()) {
                    assert_eq!(dirty.under_way, 0, "block {block} is on its way already");
                    dirty.under_way = dirty.version;
                }
            }
            clients.push(Job::new(request));
        });
        self.end_flushes();
    }

    /// True if the buffer keeps a write.
    fn is_buffered(&self, request: &CacheRequest) -> bool {
        let its = blocks(request);
        let entries = (its.end as u64).div_ceil(SIZE) - its.start as u64 / SIZE;
        let takes = |buffer: WriteBufferSpec| !(request.fua && buffer.volatile);
        let holds = |buffer: WriteBufferSpec| entries <= buffer.size.get() / (512 * SIZE);
        self.spec.write_buffer.is_some_and(|buffer| takes(buffer) && holds(buffer))
    }

    fn write(&mut self, request: &CacheRequest) {
        self.answers += 1;
        let (version, since) = (self.answers, self.now);
        let is_buffered = self.is_buffered(request);
        for block in blocks(request) {
            self.newest[block] = version;
            // A cache block that is in memory gains it.
            self.memory[block] = true;
            if is_buffered {
                let dirty = Dirty { version, under_way: 0, since };
                let entry = self.buffered.entry(block as u64).or_insert(dirty);
                if entry.version == entry.under_way {
                    entry.since = since;
                }
                entry.version = version;
            } else {
                self.disk[block] = version;
                self.buffered.remove(&(block as u64));
            }
        }
    }

    /// Trims blocks: the content of a trimmed block is free, so the disk's counts as the newest.
    fn trim(&mut self, request: &CacheRequest) {
        let Range { start, end } = blocks(request);
        forget(&mut self.whole, &(start as u64..end as u64));
        for block in blocks(request) {
            // Any data do for a read.
            self.memory[block] = true;
            match self.buffered.get_mut(&(block as u64)) {
                Some(dirty) if dirty.under_way != 0 => dirty.version = dirty.under_way,
                _ => drop(self.buffered.remove(&(block as u64))),
            }
            let held = self.buffered.get(&(block as u64)).map(|dirty| dirty.version);
            self.newest[block] = held.unwrap_or(self.disk[block]);
        }
        for waiting in self.waiting.values_mut() {
            let its = blocks(&waiting.request).zip(&mut waiting.newest);
            let trimmed = its.filter(|(block, _)| blocks(request).contains(block));
            trimmed.for_each(|(_, newest)| *newest = 0);
        }
        for owed in self.flushes.iter_mut().flat_map(|flush| &mut flush.owed) {
            let is_trimmed = blocks(request).contains(&(owed.0 as usize));
            owed.1 = if is_trimmed { 0 } else { owed.1 };
        }
    }

    fn flush(&mut self) {
        let owed = self.buffered.iter().map(|(&block, dirty)| (block, dirty.version)).collect();
        match self.cache.flush_point() {
            Some(point) => self.flushes.push(Flush { point, owed }),
            None => assert!(self.buffered.is_empty() || !self.is_volatile(), "{}", self.now),
        }
        self.end_flushes();
    }

    fn is_volatile(&self) -> bool {
        self.spec.write_buffer.is_some_and(|buffer| buffer.volatile)
    }

    fn end_flushes(&mut self) {
        while self.flushes.first().is_some_and(|flush| self.cache.is_flushed(flush.point)) {
            for (block, version) in self.flushes.remove(0).owed {
                assert!(self.disk[block as usize] >= version, "block {block} was flushed");
            }
        }
    }

    /// Destages enter their queue, or the clients' one.
    fn queue_destages(&mut self) {
        while let Some(request) = self.cache.next_destage(at(self.now)) {
            assert!(
                request.blocks
                    <= self
                        .spec
                        .write_buffer
                        .expect("a buffer")
                        .destage_maximum
                        .blocks_rounded_up()
            );
            let Written { carried, .. } = self.send(request.range());
            self.destages_under_way += 1;
            self.destages.push(Job { carried, ..Job::new(request) });
        }
        self.check_ages();
        if self.cache.is_short() {
            self.clients.append(&mut self.destages);
        }
    }

    /// Dirty blocks leave for the disk.
    fn send(&mut self, blocks: Range<u64>) -> Written {
        forget(&mut self.whole, &blocks);
        let mut carried = Vec::new();
        for block in blocks.clone() {
            let dirty = self.buffered.get_mut(&block).expect("a dirty block");
            assert_eq!(dirty.under_way, 0, "block {block} is on its way already");
            dirty.under_way = dirty.version;
            carried.push(dirty.version);
        }
        Written { blocks, carried }
    }

    /// The gap of the job that begins writes some buffer block.
    fn fill_gap(&mut self, job: &mut Job, prng: &mut Prng) {
        if !prng.chance(0.3) || self.whole.is_empty() {
            return;
        }
        let at = prng.below(self.whole.len() as u64) as usize;
        let start = *self.whole.iter().nth(at).expect("one of them");
        self.cache.begin_in_gap(start..start + SIZE);
        job.in_gap = Some(self.send(start..start + SIZE));
    }

    /// No block waits longer than the limit unless the most destages are under way, or older data of
    /// its buffer block.
    fn check_ages(&self) {
        let Some(age) = self.spec.write_buffer.and_then(|buffer| buffer.max_age) else { return };
        let has_most = self.destages_under_way == self.spec.destages_max();
        for (&block, dirty) in &self.buffered {
            let first = block / SIZE * SIZE;
            let moves = self.buffered.range(first..first + SIZE).any(|(_, d)| d.under_way != 0);
            let is_late = at(self.now) >= at(dirty.since) + age;
            assert!(!is_late || moves || has_most, "{block}");
        }
    }

    /// Next job of the disk, from its queue in any order.
    fn next(&mut self, prng: &mut Prng) -> Option<Job> {
        if let Some(request) = self.cache.next_at_once() {
            return Some(Job::new(request));
        }
        self.queue_destages();
        for queue in [&mut self.clients, &mut self.destages] {
            if !queue.is_empty() {
                return Some(queue.swap_remove(prng.below(queue.len() as u64) as usize));
            }
        }
        self.cache.next_opportunistic().map(Job::new)
    }

    /// The disk has done a request.
    fn ended(&mut self, job: &Job, passed: &[Range<u64>]) {
        let its = range(&job.request);
        if let Some(written) = &job.in_gap {
            self.destaged(written.blocks.clone(), &written.carried);
            self.cache.written_in_gap(written.blocks.clone(), at(self.now));
        }
        match job.request.purpose {
            Purpose::Destage => {
                self.destages_under_way -= 1;
                self.destaged(job.request.range(), &job.carried);
            }
            Purpose::WriteThrough => {}
            _ => self.brought(its),
        }
        passed.iter().for_each(|part| self.brought(part.start as usize..part.end as usize));
        let passed: Vec<_> =
            passed.iter().map(|part| (PrefetchKind::FreeBlocks, part.clone())).collect();
        self.cache.ended(&job.request, &passed, at(self.now));
        self.collect();
    }

    /// The disk has done at least one of its requests, in any order.
    fn end_some(&mut self, jobs: &mut Vec<Job>, prng: &mut Prng) {
        while !jobs.is_empty() {
            let done = jobs.swap_remove(prng.below(jobs.len() as u64) as usize);
            let passed = passed(&done, prng);
            self.ended(&done, &passed);
            if prng.chance(0.5) {
                break;
            }
        }
    }

    fn destaged(&mut self, blocks: Range<u64>, carried: &[u64]) {
        for (block, &version) in blocks.zip(carried) {
            let on_disk = &mut self.disk[block as usize];
            assert!(*on_disk < version, "block {block}: newer data were there before");
            *on_disk = version;
            let dirty = self.buffered.get_mut(&block).expect("a block on its way");
            dirty.under_way = 0;
            if dirty.version == version {
                self.buffered.remove(&block);
            }
        }
    }

    /// Blocks enter memory, where newer data of the write buffer take their place.
    fn brought(&mut self, its: Range<usize>) {
        for block in its.clone() {
            let held = self.buffered.get(&(block as u64)).map(|dirty| dirty.version);
            assert_eq!(held.unwrap_or(self.disk[block]), self.newest[block], "block {block}");
            self.memory[block] = true;
        }
        for waiting in self.waiting.values_mut() {
            for (at, block) in blocks(&waiting.request).enumerate() {
                if its.contains(&block) {
                    assert!(self.newest[block] >= waiting.newest[at], "a read goes back in time");
                    waiting.is_here[at] = true;
                }
            }
        }
    }

    fn has_work(&mut self) -> bool {
        !self.waiting.is_empty() || !self.clients.is_empty() || !self.flushes.is_empty()
    }
}

/// Gaps may not write what has a part of these blocks.
fn forget(whole: &mut BTreeSet<u64>, blocks: &Range<u64>) {
    whole.retain(|&start| start >= blocks.end || start + SIZE <= blocks.start);
}

/// Memory of some cache blocks.
fn memory(prng: &mut Prng) -> Bytes {
    Bytes::from_kib(prng.below(3) * 80)
}

/// Every feature at once, chosen by the seed.
fn any(prng: &mut Prng) -> (StorageCacheSpec, bool) {
    let mut conditional = PrefetchSpec::conditional(Bytes::from_kib(8));
    if let PrefetchSpec::Conditional { backward, .. } = &mut conditional {
        *backward = prng.chance(0.5);
    }
    let prefetch = [
        PrefetchSpec::Off,
        PrefetchSpec::LargeFetchUnit { unit: Bytes::from_kib(32) },
        PrefetchSpec::ReadAhead { amount: Bytes::from_kib(20) },
        conditional,
        PrefetchSpec::amp(),
    ][prng.below(5) as usize];
    let high_mark = prng.unit();
    let buffer = WriteBufferSpec {
        size: Bytes::new((1 + prng.below(20)) * 512 * SIZE),
        high_mark,
        low_mark: high_mark * prng.unit(),
        order: [DestageOrder::Lrw, DestageOrder::Wow][prng.below(2) as usize],
        max_age: prng.chance(0.7).then(|| SimDuration::from_ms(5 + prng.below(200))),
        volatile: prng.chance(0.7),
        destage_maximum: Bytes::new(512 * (SIZE + prng.below(100))),
        destages: None,
        destage_in_gaps: true,
    };
    let size = memory(prng);
    let prefetch_buffer = prng.chance(0.5).then(|| memory(prng));
    let reads_ahead_in_fetch = prng.chance(0.5);
    let read_ahead = Bytes::from_kib(prng.below(2) * 50);
    let opportunistic = OpportunisticSpec { read_ahead, ..OpportunisticSpec::default() };
    let write_buffer = prng.chance(0.8).then_some(buffer);
    let queue_depth = 1 + prng.below(8) as u32;
    let of_sizes =
        StorageCacheSpec { size, prefetch_buffer, write_buffer, ..StorageCacheSpec::default() };
    (StorageCacheSpec { prefetch, opportunistic, queue_depth, ..of_sizes }, reads_ahead_in_fetch)
}

/// A request; half of them in a small area, so that they overlap.
fn request(tag: u64, hot: u64, prng: &mut Prng) -> CacheRequest {
    let most = if prng.chance(0.1) { 200 } else { 24 };
    let blocks = 1 + prng.below(most);
    let start = if prng.chance(0.5) { hot + prng.below(60) } else { prng.below(CAPACITY - 200) };
    let op = match prng.below(20) {
        0 => Op::Trim,
        1..10 => Op::Read,
        _ => Op::Write,
    };
    let (start, blocks) = (Lbn::new(start), Blocks::new(blocks));
    CacheRequest { tag, op, start, blocks, fua: op != Op::Trim && prng.chance(0.15) }
}

/// Blocks that pass the head before a fetch, as a planner may find them.
fn passed(job: &Job, prng: &mut Prng) -> Vec<Range<u64>> {
    let start = job.request.start.get();
    let is_some = job.request.purpose == Purpose::Fetch && prng.chance(0.2) && start > 0;
    let from = start - prng.below(start.clamp(1, 30));
    is_some.then_some(from..start).into_iter().filter(|part| !part.is_empty()).collect()
}

#[test]
fn blocks_keep_newest_version_in_any_order() {
    for seed in 0..400 {
        let prng = &mut Prng::new(seed, "versions");
        let mut model = Model::new(any(prng));
        let hot = prng.below(CAPACITY - 300);
        let load = 0.1 + 0.5 * prng.unit();
        let depth = 1 + prng.below(3) as usize;
        let (mut arrived, mut jobs) = (0, Vec::new());
        // After the last arrival the disk has time for everything.
        while arrived < 400 || !jobs.is_empty() || model.has_work() {
            model.now += 1;
            assert!(model.now < 100_000, "seed {seed}: the run does not end");
            if arrived < 400 && prng.chance(load) {
                arrived += 1;
                model.arrive(request(arrived, hot, prng));
            } else if prng.chance(0.03) {
                model.flush();
            } else {
                model.end_some(&mut jobs, prng);
            }
            while jobs.len() < depth
                && let Some(mut job) = model.next(prng)
            {
                model.fill_gap(&mut job, prng);
                jobs.push(job);
            }
        }
        assert!(model.waiting.is_empty(), "seed {seed}");
        for block in 0..CAPACITY as usize {
            let held = model.buffered.get(&(block as u64)).map(|dirty| dirty.version);
            assert_eq!(held.unwrap_or(model.disk[block]), model.newest[block], "seed {seed}");
        }
    }
}
