//! The whole cache in front of a disk that serves one request after the other.

use std::collections::{BTreeMap, VecDeque};

use freewheel_model::cache::{
    BlockRange, CacheCounts, CacheRequest, DiskRequest, OpportunisticSpec, PrefetchCounts,
    PrefetchKind, PrefetchSpec, Purpose, StorageCache, StorageCacheSpec, WriteBufferSpec,
};
use freewheel_units::{Blocks, Bytes, Lbn, Op, Prng, SimDuration, SimTime};

const CAPACITY: Blocks = Blocks::new(4_000);

fn at(ms: u64) -> SimTime {
    SimTime::from_ns(ms * 1_000_000)
}

/// Memory of this many cache blocks.
fn cache_of(capacity: u64) -> Bytes {
    Bytes::from_kib(4 * capacity)
}

/// No memory and no prefetching.
fn bare() -> StorageCacheSpec {
    StorageCacheSpec { size: Bytes::ZERO, ..StorageCacheSpec::default() }
}

fn buffer_of(capacity: u64) -> WriteBufferSpec {
    WriteBufferSpec {
        size: cache_of(capacity),
        max_age: Some(SimDuration::from_ms(500)),
        volatile: true,
        destage_maximum: Bytes::from_kib(32),
        ..WriteBufferSpec::default()
    }
}

fn read(start: u64, blocks: u64, tag: u64) -> CacheRequest {
    let (start, blocks) = (Lbn::new(start), Blocks::new(blocks));
    CacheRequest { tag, op: Op::Read, start, blocks, fua: false }
}

fn write(start: u64, blocks: u64, tag: u64) -> CacheRequest {
    CacheRequest { op: Op::Write, ..read(start, blocks, tag) }
}

/// A cache and its disk, step by step.
struct System {
    cache: StorageCache,
    queue: VecDeque<DiskRequest>,
    answered: Vec<u64>,
    /// Requests that the disk did, in order.
    done: Vec<(Purpose, u64, u64)>,
    now: u64,
}

impl System {
    fn new(spec: StorageCacheSpec) -> Self {
        Self::of(spec, CAPACITY.get())
    }

    fn of(spec: StorageCacheSpec, capacity: u64) -> Self {
        let cache = StorageCache::new(spec, Blocks::new(capacity));
        Self { cache, queue: VecDeque::new(), answered: Vec::new(), done: Vec::new(), now: 0 }
    }

    fn collect(&mut self) {
        self.cache.take_answered(|tag| self.answered.push(tag));
        self.cache.take_issued(|request| self.queue.push_back(request));
    }

    fn arrive(&mut self, request: CacheRequest) {
        self.cache.arrive(request, at(self.now));
        self.collect();
    }

    /// Next request that the disk takes.
    fn next(&mut self) -> Option<DiskRequest> {
        if let Some(request) = self.cache.next_at_once() {
            return Some(request);
        }
        if self.cache.is_short() {
            while let Some(request) = self.cache.next_destage(at(self.now)) {
                self.queue.push_back(request);
            }
        }
        let next = self.queue.pop_front().or_else(|| self.cache.next_destage(at(self.now)));
        next.or_else(|| self.cache.next_opportunistic())
    }

    /// The disk does one request in a millisecond; false when it has no work.
    fn step(&mut self) -> bool {
        let Some(request) = self.next() else { return false };
        self.now += 1;
        self.done.push((request.purpose, request.start.get(), request.blocks.get()));
        self.cache.ended(&request, &[], at(self.now));
        self.collect();
        true
    }

    fn counts(&self) -> CacheCounts {
        self.cache.counts(at(self.now))
    }

    fn run(&mut self) {
        while self.step() {}
    }
}

#[test]
fn cache_of_no_size_passes_requests_unchanged() {
    let mut system = System::new(bare());
    let requests = [read(0, 8, 1), write(16, 3, 2), read(0, 8, 3), read(2, 9, 4)];
    requests.into_iter().for_each(|request| {
        system.arrive(request);
        system.run();
    });
    assert_eq!(
        system.done,
        [
            (Purpose::Fetch, 0, 8),
            (Purpose::WriteThrough, 16, 3),
            (Purpose::Fetch, 0, 8),
            (Purpose::Fetch, 2, 9)
        ]
    );
    assert_eq!(system.answered, [1, 2, 3, 4]);
}

#[test]
fn read_answered_before_read_ahead() {
    let prefetch = PrefetchSpec::ReadAhead { amount: Bytes::new(64 * 512) };
    let mut system = System::new(StorageCacheSpec { size: cache_of(100), prefetch, ..bare() });
    system.arrive(read(8, 8, 1));
    assert!(system.step());
    assert_eq!(system.answered, [1]);
    // A read of blocks in flight waits for the read-ahead, and is no miss.
    system.arrive(read(16, 8, 2));
    system.run();
    system.arrive(read(60, 8, 3));
    assert_eq!(system.done, [(Purpose::Fetch, 8, 8), (Purpose::ReadAhead, 16, 64)]);
    assert_eq!(system.answered, [1, 2, 3]);
    let counts = system.counts();
    assert_eq!((counts.reads, counts.read_misses, counts.reads_of_blocks_in_flight), (3, 1, 1));
}

#[test]
fn read_waits_for_read_ahead_in_fetch() {
    let prefetch = PrefetchSpec::ReadAhead { amount: Bytes::new(64 * 512) };
    let mut system = System::new(StorageCacheSpec { size: cache_of(100), prefetch, ..bare() });
    system.cache = system.cache.reading_ahead_in_fetches();
    system.arrive(read(8, 8, 1));
    assert!(system.answered.is_empty());
    system.run();
    system.arrive(read(60, 8, 2));
    assert_eq!(system.done, [(Purpose::Fetch, 8, 72)]);
    assert_eq!(system.answered, [1, 2]);
    let counts = system.counts();
    assert_eq!((counts.demand_blocks, counts.prefetched_blocks, counts.read_misses), (8, 64, 1));
}

#[test]
fn fetches_ending_together_each_read_ahead() {
    let prefetch = PrefetchSpec::ReadAhead { amount: Bytes::new(16 * 512) };
    let mut system = System::new(StorageCacheSpec { size: cache_of(100), prefetch, ..bare() });
    system.arrive(read(0, 8, 1));
    system.arrive(read(1_000, 8, 2));
    let fetches = [system.next().unwrap(), system.next().unwrap()];
    fetches.iter().for_each(|fetch| system.cache.ended(fetch, &[], at(1)));
    system.collect();
    system.arrive(read(8, 8, 3));
    system.arrive(read(1_008, 8, 4));
    system.run();
    assert_eq!(system.done, [(Purpose::ReadAhead, 8, 16), (Purpose::ReadAhead, 1_008, 16)]);
    assert_eq!(system.answered, [1, 2, 3, 4]);
}

#[test]
fn idle_disk_reads_on_until_request() {
    let opportunistic =
        OpportunisticSpec { read_ahead: Bytes::new(256 * 512), ..OpportunisticSpec::default() };
    let prefetch = PrefetchSpec::ReadAhead { amount: Bytes::new(64 * 512) };
    let spec = StorageCacheSpec { size: cache_of(100), prefetch, opportunistic, ..bare() };
    let mut system = System::new(spec);
    system.arrive(read(0, 8, 1));
    system.run();
    // 64 blocks behind the read at any rate, and in pieces up to 256.
    let pieces = (0..24).map(|n| (Purpose::Opportunistic, 72 + 8 * n, 8));
    let expected: Vec<_> =
        [(Purpose::Fetch, 0, 8), (Purpose::ReadAhead, 8, 64)].into_iter().chain(pieces).collect();
    assert_eq!(system.done, expected);

    let mut system = System::new(spec);
    system.arrive(read(0, 8, 1));
    (0..4).for_each(|_| assert!(system.step()));
    system.arrive(read(2_000, 8, 2));
    system.step();
    assert_eq!(system.done.last(), Some(&(Purpose::Fetch, 2_000, 8)));
}

#[test]
fn opportunistic_data_stay_in_own_buffer() {
    let opportunistic =
        OpportunisticSpec { read_ahead: Bytes::new(8 * 512), ..OpportunisticSpec::default() };
    let read_cache = cache_of(2);
    let spec = StorageCacheSpec {
        size: read_cache,
        prefetch_buffer: Some(cache_of(1)),
        opportunistic,
        ..bare()
    };
    let mut system = System::new(spec);
    system.arrive(read(0, 8, 1));
    system.run();
    system.arrive(read(8, 4, 2));
    system.arrive(read(8, 4, 3));
    assert_eq!((system.answered.as_slice(), system.done.len()), ([1, 2, 3].as_slice(), 2));
}

#[test]
fn buffered_write_waits_only_when_full() {
    let mut system = System::new(StorageCacheSpec { write_buffer: Some(buffer_of(2)), ..bare() });
    system.arrive(write(0, 8, 1));
    system.arrive(write(100, 12, 2));
    assert_eq!(system.answered, [1], "the second needs two buffer blocks, and one is free");
    system.run();
    assert_eq!(system.answered, [1, 2]);
    assert_eq!(system.counts().stalled_writes, 1);
}

/// The disk's requests that carry FUA.
fn forced(system: &mut System) -> Vec<(Purpose, u64)> {
    let mut forced = Vec::new();
    while let Some(request) = system.next() {
        if request.fua {
            forced.push((request.purpose, request.start.get()));
        }
        system.cache.ended(&request, &[], at(system.now));
        system.collect();
    }
    forced
}

#[test]
fn buffer_surviving_power_cut_counts_as_media() {
    let with = |volatile| {
        let write_buffer = Some(WriteBufferSpec { volatile, ..buffer_of(2) });
        System::new(StorageCacheSpec { write_buffer, ..bare() })
    };
    let requests = [
        write(0, 8, 1),
        CacheRequest { fua: true, ..write(8, 8, 2) },
        CacheRequest { fua: true, ..write(200, 100, 3) },
        write(400, 100, 4),
    ];
    // Volatile: what has FUA goes to the media, and destages may wait in the disk's own cache.
    let mut system = with(true);
    requests.into_iter().for_each(|request| system.arrive(request));
    assert_eq!(system.answered, [1]);
    assert!(system.cache.flush_point().is_some());
    assert_eq!(forced(&mut system), [(Purpose::WriteThrough, 8), (Purpose::WriteThrough, 200)]);
    // Safe: the buffer answers, and lets go of data only when the media have them.
    let mut system = with(false);
    requests.into_iter().for_each(|request| system.arrive(request));
    assert_eq!(system.answered, [1, 2]);
    assert!(system.cache.flush_point().is_none());
    system.now = 600;
    let all = [(Purpose::WriteThrough, 200), (Purpose::WriteThrough, 400), (Purpose::Destage, 0)];
    assert_eq!(forced(&mut system), all);
    // Without a buffer each request speaks for itself.
    let mut system = System::new(bare());
    requests.into_iter().for_each(|request| system.arrive(request));
    assert_eq!(forced(&mut system), [(Purpose::WriteThrough, 8), (Purpose::WriteThrough, 200)]);
}

#[test]
fn fua_read_from_media_except_buffer_only() {
    let spec = StorageCacheSpec { size: cache_of(8), write_buffer: Some(buffer_of(8)), ..bare() };
    let mut system = System::new(spec);
    let forced_read = |start, tag| CacheRequest { fua: true, ..read(start, 8, tag) };
    system.arrive(read(0, 8, 1));
    system.arrive(forced_read(0, 2));
    assert_eq!(
        forced(&mut system),
        [(Purpose::Fetch, 0)],
        "the other fetch may hit the disk's cache"
    );
    system.arrive(forced_read(0, 3));
    assert_eq!(forced(&mut system), [(Purpose::Fetch, 0)], "it is in memory by now");
    system.arrive(write(4, 12, 4));
    system.arrive(forced_read(8, 5));
    system.arrive(forced_read(2, 6));
    assert_eq!(forced(&mut system), [(Purpose::Fetch, 2)]);
    assert_eq!(system.answered, [1, 2, 3, 4, 5, 6]);
}

#[test]
fn idle_disk_skips_blocks_in_memory() {
    let opportunistic =
        OpportunisticSpec { read_ahead: Bytes::new(24 * 512), ..OpportunisticSpec::default() };
    let write_buffer = Some(buffer_of(8));
    let spec = StorageCacheSpec { size: cache_of(8), write_buffer, opportunistic, ..bare() };
    let mut system = System::new(spec);
    system.arrive(read(8, 4, 1));
    system.arrive(write(12, 4, 2));
    system.arrive(write(16, 4, 3));
    assert!(system.step());
    system.cache.end_read_on();
    system.done.clear();
    system.arrive(read(0, 8, 4));
    system.run();
    // Read cache and write buffer have blocks 8 to 15, half each. Of 16 to 23 they have a half only.
    let pieces = [16, 24].map(|start| (Purpose::Opportunistic, start, 8));
    assert_eq!((system.done[0], &system.done[1..]), ((Purpose::Fetch, 0, 8), &pieces[..]));
}

#[test]
fn oversized_and_fua_writes_go_to_disk() {
    let mut system = System::new(StorageCacheSpec { write_buffer: Some(buffer_of(2)), ..bare() });
    system.arrive(write(0, 8, 1));
    system.arrive(CacheRequest { fua: true, ..write(4, 8, 2) });
    system.arrive(write(200, 100, 3));
    assert_eq!(system.answered, [1]);
    system.run();
    assert_eq!(system.answered, [1, 2, 3]);
    // The FUA write replaces blocks 4 to 7 in memory; 0 to 3 are young and stay.
    assert_eq!(system.done, [(Purpose::WriteThrough, 4, 8), (Purpose::WriteThrough, 200, 100)]);
    system.now = 600;
    system.run();
    assert_eq!(system.done.last(), Some(&(Purpose::Destage, 0, 4)));
}

#[test]
fn read_of_written_blocks_fetches_only_between() {
    let mut system = System::new(StorageCacheSpec { write_buffer: Some(buffer_of(8)), ..bare() });
    system.arrive(write(8, 8, 1));
    system.arrive(read(8, 8, 2));
    system.arrive(read(12, 8, 3));
    system.run();
    assert_eq!(system.answered, [1, 2, 3]);
    assert_eq!(system.done, [(Purpose::Fetch, 16, 4)]);
}

#[test]
fn prefetch_worth_counted_block_by_block() {
    let prefetch = PrefetchSpec::ReadAhead { amount: Bytes::new(16 * 512) };
    let opportunistic =
        OpportunisticSpec { read_ahead: Bytes::new(32 * 512), ..OpportunisticSpec::default() };
    let spec = StorageCacheSpec {
        size: cache_of(4),
        prefetch_buffer: Some(cache_of(4)),
        prefetch,
        opportunistic,
        ..bare()
    };
    let mut system = System::new(spec);
    system.arrive(read(0, 8, 1));
    assert!(system.step());
    // The read-ahead of blocks 8 to 23 is on its way: 4 of them are used, by a late read.
    system.arrive(read(8, 4, 2));
    system.run();
    let counts = |system: &System, kind| system.counts().prefetch[kind];
    let ahead = PrefetchCounts { brought: 16, used: 4, wasted: 0, late_reads: 1 };
    assert_eq!(counts(&system, PrefetchKind::WithReads), ahead);
    // An idle disk has read on to block 39. A read of 12 blocks finds 4 of them in their buffer.
    system.arrive(read(16, 12, 3));
    let idle = PrefetchCounts { brought: 16, used: 4, wasted: 0, late_reads: 0 };
    assert_eq!(counts(&system, PrefetchKind::Idle), idle);
    // A write of blocks that no client read makes their prefetch a waste; so does their eviction.
    system.arrive(write(12, 2, 4));
    system.run();
    let ahead = PrefetchCounts { used: 12, wasted: 2, ..ahead };
    assert_eq!(counts(&system, PrefetchKind::WithReads), ahead);
    system.arrive(read(1_000, 32, 5));
    system.run();
    let PrefetchCounts { brought, used, wasted, .. } = counts(&system, PrefetchKind::WithReads);
    // Of blocks 12 to 15, 14 and 15 are gone; and the 16 behind the last read are there.
    assert_eq!((brought, used, wasted), (32, 12, 4));
}

/// AMP in front of a read cache of this many cache blocks.
fn with_amp(capacity: u64) -> System {
    let prefetch = PrefetchSpec::amp();
    System::of(StorageCacheSpec { size: cache_of(capacity), prefetch, ..bare() }, 4_000_000)
}

/// Reads of 8 blocks, each with time for `steps` of the disk behind it.
fn reads(system: &mut System, starts: impl IntoIterator<Item = u64>, steps: u32) {
    for start in starts {
        let tag = system.counts().reads;
        system.arrive(read(start, 8, tag));
        (0..steps).for_each(|_| _ = system.step());
    }
}

#[test]
fn amp_serves_sequential_stream_ignores_random() {
    // The disk does an access while the stream reads ten times.
    let mut system = with_amp(2_000);
    reads(&mut system, [0, 8], 3);
    for n in 2..2_000 {
        reads(&mut system, [8 * n], u32::from(n % 10 == 0));
    }
    system.run();
    let counts = system.counts();
    let PrefetchCounts { brought, used, wasted, late_reads } =
        counts.prefetch[PrefetchKind::WithReads];
    assert_eq!((counts.read_misses, wasted), (2, 0), "the two reads that show the stream");
    assert!(used == 1_998 * 8 && brought - used <= 2 * 2_048, "{counts:?}");
    // Once the distance is learned, no read waits.
    assert!((1..100).contains(&late_reads), "{counts:?}");
    reads(&mut system, (0..1_000).map(|n| n * 7_919 % 1_000 * 800 + 100_000), 2);
    let random = system.counts();
    assert_eq!(random.read_misses - counts.read_misses, 1_000);
    assert_eq!(random.prefetched_blocks, counts.prefetched_blocks);
}

#[test]
fn amp_wastes_less_than_fixed_amount() {
    // 40 streams turn about in a cache of 160 blocks of 4 KiB: there is room for 16 KiB of each.
    let turns = |prefetch| {
        let spec = StorageCacheSpec { size: cache_of(160), prefetch, ..bare() };
        let mut system = System::of(spec, 4_000_000);
        let starts = (0..400).flat_map(|n| (0..40).map(move |stream| stream * 50_000 + 8 * n));
        reads(&mut system, starts, 3);
        system.counts()
    };
    let fixed = turns(PrefetchSpec::ReadAhead { amount: Bytes::new(64 * 512) });
    let amp = turns(PrefetchSpec::amp());
    let wasted = |counts: CacheCounts| counts.prefetch[PrefetchKind::WithReads].wasted;
    assert!(wasted(amp) * 10 < wasted(fixed), "{amp:?} {fixed:?}");
    assert!(amp.read_misses * 2 < fixed.read_misses, "{amp:?} {fixed:?}");
}

#[test]
fn paused_stream_resumes_with_smaller_set() {
    let mut system = with_amp(400);
    reads(&mut system, (0..100).map(|n| 8 * n), 3);
    let set = |system: &System| {
        let (.., blocks) = system.done.iter().rfind(|done| done.0 == Purpose::ReadAhead).unwrap();
        *blocks
    };
    let before = set(&system);
    assert!(before > 64, "the stream has grown: {before}");
    // Ten others take the whole cache meanwhile.
    reads(&mut system, (0..1_000).map(|n| 1_000_000 + n % 10 * 100_000 + n / 10 * 8), 3);
    let misses = system.counts().read_misses;
    reads(&mut system, (100..102).map(|n| 8 * n), 3);
    assert_eq!(system.counts().read_misses, misses + 1, "its blocks were evicted");
    assert!(set(&system) < before, "{} {before}", set(&system));
}

#[test]
fn passing_blocks_count_by_read_purpose() {
    for kind in [PrefetchKind::FreeBlocks, PrefetchKind::JustInTimeSeek] {
        let mut system = System::new(StorageCacheSpec { size: cache_of(8), ..bare() });
        system.arrive(read(16, 8, 1));
        let fetch = system.next().unwrap();
        system.cache.ended(&fetch, &[(kind, 8..16), (kind, 0..0)], at(1));
        system.collect();
        system.arrive(read(12, 8, 2));
        let counts = system.counts();
        let expected = PrefetchCounts { brought: 8, used: 4, wasted: 0, late_reads: 0 };
        assert_eq!((counts.prefetch[kind], counts.read_misses), (expected, 1));
    }
}

#[test]
fn flush_waits_for_earlier_writes_alone() {
    let full = WriteBufferSpec { high_mark: 1.0, low_mark: 1.0, max_age: None, ..buffer_of(16) };
    let mut system = System::new(StorageCacheSpec { write_buffer: Some(full), ..bare() });
    (0..4).for_each(|n| system.arrive(write(n * 16, 8, n)));
    let point = system.cache.flush_point().unwrap();
    let mut steps = 0;
    while !system.cache.is_flushed(point) {
        assert!(steps < 8, "four destages are enough: {:?}", system.done);
        // Blocks of the flush are written again, and others, as fast as the disk destages.
        system.arrive(write(steps % 4 * 16, 8, 100 + steps));
        system.arrive(write(1_000 + steps * 16, 8, 200 + steps));
        assert!(system.step());
        steps += 1;
    }
    assert!(!system.cache.is_short(), "what came later has the time of its age");
    assert!(system.cache.flush_point().is_some());
}

#[test]
fn trim_saves_destages() {
    let spec = StorageCacheSpec { size: cache_of(8), write_buffer: Some(buffer_of(8)), ..bare() };
    let mut system = System::new(spec);
    system.arrive(write(0, 16, 1));
    system.cache.trim(BlockRange::new(Lbn::new(4), Blocks::new(12)), at(1));
    system.now = 600;
    system.run();
    assert_eq!(system.done, [(Purpose::Destage, 0, 4)]);
    assert!(system.cache.flush_point().is_none());
}

#[test]
fn trim_drops_cached_blocks_admits_waiting_write() {
    let write_buffer = Some(buffer_of(1));
    let spec = StorageCacheSpec { size: cache_of(8), write_buffer, ..bare() };
    let mut system = System::new(spec);
    system.arrive(read(64, 8, 1));
    system.run();
    system.arrive(write(0, 8, 2));
    system.arrive(write(16, 8, 3));
    assert_eq!(system.answered, [1, 2]);
    system.cache.trim(BlockRange::new(Lbn::new(0), Blocks::new(72)), at(2));
    system.collect();
    assert_eq!(system.answered, [1, 2, 3]);
    system.done.clear();
    system.arrive(read(64, 8, 4));
    assert!(system.step());
    assert_eq!(system.done, [(Purpose::Fetch, 64, 8)]);
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
    let opportunistic = OpportunisticSpec {
        read_ahead: Bytes::from_kib(prng.below(2) * 50),
        free_blocks: true,
        just_in_time_seek: true,
    };
    let size = cache_of(prng.below(3) * 20);
    let prefetch_buffer = prng.chance(0.5).then(|| cache_of(10));
    let reads_ahead_in_fetch = prng.chance(0.5);
    let write_buffer = prng.chance(0.7).then(|| buffer_of(1 + prng.below(20)));
    let queue_depth = 1 + prng.below(8) as u32;
    let of_sizes = StorageCacheSpec { size, prefetch_buffer, write_buffer, ..bare() };
    (StorageCacheSpec { prefetch, opportunistic, queue_depth, ..of_sizes }, reads_ahead_in_fetch)
}

#[test]
fn requests_answered_once_in_any_order() {
    for seed in 0..200 {
        let prng = &mut Prng::new(seed, "storage cache");
        let (spec, reads_ahead_in_fetch) = any(prng);
        let mut system = System::new(spec);
        if reads_ahead_in_fetch {
            system.cache = system.cache.reading_ahead_in_fetches();
        }
        let mut arrived = 0;
        let hot = prng.below(3_000);
        while arrived < 300 || system.step() {
            if arrived < 300 && prng.chance(0.4) {
                arrived += 1;
                let start =
                    if prng.chance(0.6) { hot + prng.below(200) } else { prng.below(3_900) };
                let request = read(start, 1 + prng.below(40), arrived);
                let op = if prng.chance(0.5) { Op::Write } else { Op::Read };
                let fua = op == Op::Write && prng.chance(0.1);
                system.arrive(CacheRequest { op, fua, ..request });
            } else if arrived < 300 {
                system.step();
            }
        }
        let mut times: BTreeMap<u64, u32> = BTreeMap::new();
        system.answered.iter().for_each(|&tag| *times.entry(tag).or_default() += 1);
        let wrong: Vec<u64> = (1..=300).filter(|tag| times.get(tag) != Some(&1)).collect();
        assert!(wrong.is_empty(), "seed {seed}: {wrong:?}");
        let counts = system.counts();
        assert_eq!(counts.reads + counts.writes, 300);
        let fetches = system.done.iter().filter(|done| done.0 == Purpose::Fetch).count();
        assert_eq!(counts.read_misses, fetches as u64);
        for counts in PrefetchKind::ALL.map(|kind| counts.prefetch[kind]) {
            assert!(counts.used + counts.wasted <= counts.brought, "seed {seed}: {counts:?}");
        }
    }
}
