//! Curves of caches against slow and obvious computations of the same numbers.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use freewheel_model::cache::{BlockRange, CachePolicy, POLICIES, ReadCache, ReadCacheSpec};
use freewheel_sim::Completion;
use freewheel_sim::config::{SimConfig, TraceWorkload, Workload};
use freewheel_sim::experiment::Experiment;
use freewheel_study::{
    CacheCurves, CacheCurvesError, CacheCurvesOptions, CacheSize, ComparedPolicy, ResponseRuns,
    Responses, SimulatedResponses, cache_curves,
};
use freewheel_trace::{OpenOptions, TraceReader};
use freewheel_units::{Bytes, Op, Prng, SimDuration, VolumeBlock};

const HEADER: &str = "arrival_ns,op,offset_bytes,length_bytes,fua,complete_ns\n";

/// A trace of these lines.
fn trace(header: &str, lines: impl Iterator<Item = String>) -> tempfile::NamedTempFile {
    let mut file = tempfile::Builder::new().suffix(".csv").tempfile().unwrap();
    file.write_all((header.to_owned() + &lines.collect::<String>()).as_bytes()).unwrap();
    file
}

/// Reads, writes, flushes and trims of 512 B to 32 KiB in 8 MiB, the lower addresses more often.
fn mixed(count: u64, reads: f64) -> tempfile::NamedTempFile {
    let mut prng = Prng::new(7, "cache curves");
    let line = move |at: u64| {
        let arrival = at * 20_000_000;
        let op = match prng.below(50) {
            0 => return format!("{arrival},F,0,0,0,\n"),
            1 => "T",
            _ if prng.chance(reads) => "R",
            _ => "W",
        };
        let below = 1 + prng.below(16_384);
        let (start, blocks) = (prng.below(below), 1 + prng.below(64));
        format!("{arrival},{op},{},{},0,\n", start * 512, blocks * 512)
    };
    trace(HEADER, (0..count).map(line))
}

fn options(file: &tempfile::NamedTempFile) -> CacheCurvesOptions {
    let trace = TraceWorkload { file: file.path().into(), ..TraceWorkload::default() };
    CacheCurvesOptions {
        responses: ResponseRuns::None,
        sizes: [4, 64, 500, 3000, 16_384].map(kib).into(),
        ..CacheCurvesOptions::new(trace, "atlas10k")
    }
}

fn kib(count: u64) -> CacheSize {
    CacheSize::Memory(Bytes::from_kib(count))
}

fn curves(options: &CacheCurvesOptions) -> CacheCurves {
    cache_curves(options, &|_| {}).unwrap()
}

fn error(options: &CacheCurvesOptions) -> CacheCurvesError {
    cache_curves(options, &|_| {}).unwrap_err()
}

struct Access {
    op: Op,
    range: BlockRange<VolumeBlock>,
}

fn accesses(file: &tempfile::NamedTempFile) -> Vec<Access> {
    let reader = TraceReader::open(file.path(), &OpenOptions::default()).unwrap();
    let records = reader.map(Result::unwrap);
    records.map(|r| Access { op: r.op, range: BlockRange::new(r.start, r.blocks) }).collect()
}

/// Reads after the warm-up and their misses.
#[derive(Debug, Default, PartialEq)]
struct Counts {
    requests: u64,
    missed_requests: u64,
    blocks: u64,
    missed_blocks: u64,
}

impl Counts {
    fn add(&mut self, blocks: u64, missed: u64) {
        self.requests += 1;
        self.missed_requests += u64::from(missed > 0);
        self.blocks += blocks;
        self.missed_blocks += missed;
    }

    fn ratios(&self) -> [f64; 2] {
        let of = |part: u64, whole: u64| part as f64 / whole as f64;
        [of(self.missed_requests, self.requests), of(self.missed_blocks, self.blocks)]
    }
}

/// One cache alone, one request after the other.
fn alone(policy: CachePolicy, capacity: u32, accesses: &[Access], from: usize) -> Counts {
    let spec = ReadCacheSpec { policy, ..ReadCacheSpec::tr03(capacity) };
    let (mut cache, mut missing) = (ReadCache::new(spec), Vec::new());
    let mut counts = Counts::default();
    for (number, Access { op, range }) in accesses.iter().enumerate() {
        if !op.moves_data() {
            continue;
        }
        cache.access(*range, *op, &mut missing);
        let missed = missing.iter().map(|run| run.blocks.get()).sum();
        missing.drain(..).for_each(|run| cache.insert(run));
        if *op == Op::Read && number >= from {
            counts.add(range.blocks.get(), missed);
        }
    }
    counts
}

/// A cache block of a plain list.
struct Entry {
    key: u64,
    valid: BTreeSet<u64>,
}

fn place(list: &[Entry], key: u64) -> Option<usize> {
    list.iter().position(|entry| entry.key == key)
}

/// Reads a block: whether it was there. The list ends with the cache block used last.
fn read_block(list: &mut Vec<Entry>, capacity: usize, block: u64) -> bool {
    let key = block / 8;
    let entry = place(list, key).map(|at| list.remove(at));
    list.push(entry.unwrap_or(Entry { key, valid: BTreeSet::new() }));
    if list.len() > capacity {
        list.remove(0);
    }
    !list.last_mut().unwrap().valid.insert(block)
}

/// LRU as a list, block by block.
fn plain_lru(capacity: usize, accesses: &[Access], from: usize) -> Counts {
    let (mut list, mut counts) = (Vec::new(), Counts::default());
    for (number, Access { op, range }) in accesses.iter().enumerate() {
        let blocks = range.start.get()..range.end().get();
        match op {
            Op::Read => {
                let hits = blocks.filter(|&block| read_block(&mut list, capacity, block)).count();
                if number >= from {
                    counts.add(range.blocks.get(), range.blocks.get() - hits as u64);
                }
            }
            Op::Write => blocks.for_each(|block| {
                if let Some(at) = place(&list, block / 8) {
                    list[at].valid.insert(block);
                }
            }),
            Op::Flush | Op::Trim => {}
        }
    }
    counts
}

#[test]
fn cache_curves_match_single_caches() {
    // More than one chunk; the warm-up ends within one.
    let file = mixed(40_000, 0.7);
    let (found, accesses) = (curves(&options(&file)), accesses(&file));
    let from = found.counted.warm_up_requests as usize;
    let usual = POLICIES.iter().filter(|row| row.is_usual).count();
    assert_eq!((from, found.curves.len()), (17_200, usual));
    for curve in &found.curves {
        let ComparedPolicy::Shipped(policy) = curve.policy else { panic!("{}", curve.title) };
        if policy == CachePolicy::Lru {
            continue;
        }
        for at in &curve.miss_ratios {
            let counts = alone(policy, (at.size_bytes / 4096) as u32, &accesses, from);
            let (title, size) = (&curve.title, at.size_bytes);
            assert_eq!([at.requests.unwrap(), at.bytes], counts.ratios(), "{title} {size}");
            assert_eq!(found.counted.reads, counts.requests);
            assert_eq!(found.counted.read_bytes, counts.blocks * 512);
        }
    }
}

#[test]
fn cache_curves_lru_exact_at_every_size() {
    let file = mixed(4_000, 0.7);
    let mut options = options(&file);
    options.policies = vec![CachePolicy::Lru.into()];
    let (found, accesses) = (curves(&options), accesses(&file));
    let from = found.counted.warm_up_requests as usize;
    assert!(found.lru.len() > 20, "{}", found.lru.len());
    for at in &found.lru {
        let counts = plain_lru((at.size_bytes / 4096) as usize, &accesses, from);
        assert_eq!([at.requests.unwrap(), at.bytes], counts.ratios(), "{}", at.size_bytes);
    }
    // The table has the sizes that were asked for, out of the same curve.
    let asked: Vec<u64> = found.curves[0].miss_ratios.iter().map(|at| at.size_bytes).collect();
    assert_eq!(asked, found.sizes_bytes);
}

/// Share of uses of cache blocks by reads that miss in an LRU list, after the warm-up.
fn missed_uses(capacity: usize, accesses: &[Access], from: usize) -> f64 {
    let (mut times, mut keys) = (BTreeMap::new(), BTreeMap::new());
    let (mut clock, mut counts) = (0u64, Counts::default());
    for (number, Access { op, range }) in accesses.iter().enumerate() {
        if *op != Op::Read {
            continue;
        }
        for key in range.start.get() / 8..range.end().get().div_ceil(8) {
            clock += 1;
            let before: Option<u64> = times.insert(key, clock);
            before.and_then(|time| keys.remove(&time));
            keys.insert(clock, key);
            if keys.len() > capacity {
                let (_, evicted) = keys.pop_first().unwrap();
                times.remove(&evicted);
            }
            if number >= from {
                counts.add(1, u64::from(before.is_none()));
            }
        }
    }
    counts.ratios()[1]
}

#[test]
fn cache_curves_sample_within_error() {
    let reads = mixed(40_000, 1.0);
    let mut options = options(&reads);
    options.sizes = [500, 1500, 3000, 6000].map(kib).into();
    let accesses = accesses(&reads);
    let mut estimate = |percent: &str| {
        options.sample = Some(percent.parse().unwrap());
        curves(&options)
    };
    let (all, part) = (estimate("100%"), estimate("30%"));
    let from = all.counted.warm_up_requests as usize;
    for (all, part) in all.curves[0].miss_ratios.iter().zip(&part.curves[0].miss_ratios) {
        let exact = missed_uses((all.size_bytes / 4096) as usize, &accesses, from);
        // SHARDS rounds capacities to nine binary digits.
        assert!((all.bytes - exact).abs() < 0.003, "{} {exact}", all.bytes);
        let error = part.standard_error.unwrap();
        assert!(error < 0.1 && (part.bytes - exact).abs() < 4.0 * error, "{part:?} {exact}");
        assert_eq!(part.requests, None);
    }
    for (all, part) in all.curves.iter().zip(&part.curves).skip(1) {
        for (all, part) in all.miss_ratios.iter().zip(&part.miss_ratios) {
            assert!((all.bytes - part.bytes).abs() < 0.1, "{all:?} {part:?}");
        }
    }
}

fn mean_ns(all: &[SimDuration]) -> f64 {
    all.iter().map(|time| time.ns() as f64).sum::<f64>() / all.len() as f64
}

/// Mean responses of reads and of writes after the warm-up, in an experiment with this `[cache]`.
fn plain_run(options: &CacheCurvesOptions, cache: &str, from: u64) -> [f64; 2] {
    let drive = &options.drive;
    let text = format!("drive = \"{drive}\"\n{cache}\nworkload = {{ kind = \"closed\" }}");
    let mut config = SimConfig::parse(&text, "test", &[]).unwrap();
    config.workload = Workload::Trace(options.trace.clone());
    let [mut reads, mut writes] = [Vec::new(), Vec::new()];
    let mut observer = |completion: &Completion| {
        if completion.request.tag >= from {
            match completion.request.op {
                Op::Read => reads.push(completion.response()),
                Op::Write => writes.push(completion.response()),
                Op::Flush | Op::Trim => {}
            }
        }
    };
    let experiment = Experiment::new(config).unwrap();
    experiment.new_run().with_observer(&mut observer).simulate().unwrap();
    [mean_ns(&reads), mean_ns(&writes)]
}

fn simulated(curves: &CacheCurves) -> &SimulatedResponses {
    match &curves.responses {
        Responses::Simulated(simulated) => simulated,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn assert_near(ours: f64, theirs: f64) {
    assert!((ours / theirs - 1.0).abs() < 1e-9, "{ours} {theirs}");
}

#[test]
fn cache_curves_responses_match_experiment() {
    let file = mixed(3_000, 0.7);
    let mut options = options(&file);
    options.responses = ResponseRuns::Best;
    options.sizes = [1 << 10, 16 << 10].map(kib).into();
    let found = curves(&options);
    let (from, simulated) = (found.counted.warm_up_requests, simulated(&found));
    let without = &simulated.without_cache;
    let [reads, writes] = plain_run(&options, "", from);
    assert_near(without.reads.mean_ns, reads);
    assert_near(without.writes.mean_ns, writes);
    let counts = (without.reads.count, without.writes.count);
    assert_eq!(counts, (found.counted.reads, found.counted.writes));
    assert_eq!(simulated.policies.len(), 2);
    assert_eq!(simulated.policies[0].policy, CachePolicy::Lru);
    for of in &simulated.policies {
        for point in &of.points {
            let (size, policy) = (Bytes::new(point.size_bytes), of.policy);
            let cache = format!(
                "cache = {{ size = \"{size}\", policy = \"{policy}\", queue_depth = 4096 }}"
            );
            assert_near(point.reads.mean_ns, plain_run(&options, &cache, from)[0]);
        }
        assert!(of.points[1].reads.mean_ns < 0.9 * without.reads.mean_ns);
    }
}

#[test]
fn cache_curves_responses_of_least_missing_policy() {
    let file = mixed(3_000, 0.7);
    let mut options = options(&file);
    options.sizes = [64, 1024].map(kib).into();
    options.responses = ResponseRuns::Best;
    let best = curves(&options);
    let misses = |policy: CachePolicy| -> f64 {
        let curve = best.curves.iter().find(|curve| curve.policy == policy).unwrap();
        curve.miss_ratios.iter().filter_map(|at| at.requests).sum()
    };
    let other = simulated(&best).policies[1].policy;
    let usual = || POLICIES.iter().filter(|row| row.is_usual).map(|row| row.policy);
    let others = usual().filter(|&policy| policy != CachePolicy::Lru);
    others.for_each(|policy| assert!(misses(other) <= misses(policy), "{other} {policy}"));
    options.responses = ResponseRuns::All;
    options.sizes.truncate(1);
    assert_eq!(simulated(&curves(&options)).policies.len(), usual().count());
}

#[test]
fn cache_curves_arms_share_memory_equally() {
    let file = mixed(400, 0.7);
    let mut options = options(&file);
    options.drive = "exos-2x18-18tb".into();
    options.responses = ResponseRuns::Best;
    options.policies = vec![CachePolicy::Lru.into()];
    options.sizes = vec![kib(2 << 10)];
    let found = curves(&options);
    assert_eq!(simulated(&found).arms, 2);
    let cache = "cache = { size = \"1MiB\", queue_depth = 4096 }";
    let expected = plain_run(&options, cache, found.counted.warm_up_requests)[0];
    assert_near(simulated(&found).policies[0].points[0].reads.mean_ns, expected);
}

#[test]
fn cache_curves_devices_lie_end_to_end() {
    // Two devices read the same eight addresses in turn, over and over.
    let line = |at: u64| {
        let time = 128_166_372_000_000_000 + at * 100_000;
        format!("{time},host,{},Read,{},4096,1000\n", at % 2, at / 2 % 8 * 4096)
    };
    let file = trace("", (0..64).map(line));
    let mut options = options(&file);
    options.sizes = [32, 64].map(kib).into();
    options.warm_up = 0.5;
    options.policies = [CachePolicy::Lru, CachePolicy::Sieve].map(Into::into).into();
    let missed = |options: &CacheCurvesOptions| -> Vec<f64> {
        curves(options).curves[0].miss_ratios.iter().map(|at| at.bytes).collect()
    };
    assert_eq!(missed(&options), [1.0, 0.0]);
    options.trace.device = Some(1);
    assert_eq!(missed(&options), [0.0, 0.0]);
    options.trace.device = Some(5);
    assert!(error(&options).to_string().contains("no device 5"));
}

#[test]
fn cache_curves_untimed_trace_lacks_responses() {
    let file = trace("", (0..200u64).map(|at| format!("{} 2 0 {at}\n", at * 7 % 50)));
    let mut options = options(&file);
    options.responses = ResponseRuns::Best;
    let found = curves(&options);
    assert!(matches!(found.responses, Responses::NoTiming { .. }), "{:?}", found.responses);
    let misses: Vec<f64> = found.curves[0].miss_ratios.iter().map(|at| at.bytes).collect();
    assert!(misses[0] > 0.5 && misses[4] == 0.0, "{misses:?}");
}

#[test]
fn cache_curves_errors_name_what_is_allowed() {
    let says = |options: &CacheCurvesOptions| error(options).to_string();
    let writes = mixed(50, 0.0);
    let no_read = "the trace has no read, and a read cache serves reads alone";
    assert!(says(&options(&writes)).ends_with(no_read));
    let op = |at: u64| if at < 3 { "R" } else { "W" };
    let early = trace(HEADER, (0..10).map(|at| format!("{at}000,{},0,4096,0,\n", op(at))));
    assert!(says(&options(&early)).contains("no read after the warm-up, its first 4 requests"));
    let with = |change: &dyn Fn(&mut CacheCurvesOptions)| {
        let mut options = options(&early);
        change(&mut options);
        says(&options)
    };
    assert!(with(&|options| options.policies.clear()).contains("at least one is needed"));
    assert!(with(&|options| options.warm_up = 1.0).contains("is 1: 0 to below 1 is allowed"));
    let large = with(&|options| options.sizes = vec![kib(1 << 34)]);
    assert!(large.contains("a cache of 16TiB is too large"), "{large}");
    let drive = with(&|options| {
        options.responses = ResponseRuns::Best;
        options.drive = "nosuch".into();
    });
    assert!(drive.contains("nosuch"), "{drive}");
}
