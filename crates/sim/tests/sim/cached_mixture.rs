//! Requests of every kind in any order, behind a cache: each is answered once, and the run ends.

use std::collections::BTreeMap;

use freewheel_sim::config::SimConfig;
use freewheel_sim::experiment::Experiment;
use freewheel_sim::source::{Request, Source, SourceError};
use freewheel_sim::{CacheWork, Completion};
use freewheel_units::{Blocks, Op, Prng, SimTime, VolumeBlock};

const STRIPED: &str = r#"
    drive = "atlas10k"
    array = { drives = 2, stripe_unit = "8KiB" }
    workload = { kind = "closed", requests = 1, outstanding = 1, pattern = { size = "4KiB" } }
"#;

const REQUESTS: u64 = 1_500;

/// An open source of requests of all kinds; most lie in a small area, so that they overlap.
struct Mixture {
    prng: Prng,
    next: SimTime,
    /// Mean time between requests.
    gap_ns: u64,
    asked: u64,
    /// Answers by tag.
    answers: BTreeMap<u64, u32>,
}

impl Mixture {
    fn op(&mut self) -> Op {
        match self.prng.below(20) {
            0 => Op::Trim,
            1 => Op::Flush,
            2..11 => Op::Read,
            _ => Op::Write,
        }
    }
}

impl Source for Mixture {
    fn next_arrival(&mut self) -> Result<Option<SimTime>, SourceError> {
        Ok(Some(self.next).filter(|_| self.asked < REQUESTS))
    }

    fn take(&mut self) -> Request {
        self.asked += 1;
        // Several requests arrive at one instant.
        let gap = if self.prng.chance(0.3) { 0 } else { self.prng.below(2 * self.gap_ns) };
        self.next = SimTime::from_ns(self.next.ns() + gap);
        let op = self.op();
        let space = if self.prng.chance(0.7) { 400 } else { 4_000_000 };
        let start = VolumeBlock::new(self.prng.below(space));
        let most = if self.prng.chance(0.05) { 600 } else { 30 };
        let blocks = Blocks::new(1 + self.prng.below(most));
        let fua = op.moves_data() && self.prng.chance(0.2);
        let (start, blocks) = match op {
            Op::Flush => (VolumeBlock::new(0), Blocks::ZERO),
            _ => (start, blocks),
        };
        Request { op, start, blocks, fua, tag: self.asked }
    }

    fn completed(&mut self, tag: u64, _: SimTime) {
        *self.answers.entry(tag).or_default() += 1;
    }

    fn progress(&self) -> (u64, u64) {
        (self.asked, REQUESTS)
    }
}

const PREFETCH: [&str; 5] = [
    "{ kind = 'off' }",
    "{ kind = 'read-ahead', amount = '32KiB' }",
    "{ kind = 'large-fetch-unit', unit = '64KiB' }",
    "{ kind = 'conditional', segment = '8KiB', backward = true }",
    "{ kind = 'amp' }",
];

const DRIVES: [&[&str]; 3] = [
    &["electronics=true", "queue_depth=4"],
    &["electronics=false"],
    &["electronics=false", "cache.write_buffer.destage_in_gaps=true"],
];

const BOTH: &str = "{ free_blocks = true, just_in_time_seek = true }";

/// A cache of any kind.
fn any_cache(prng: &mut Prng, is_volatile: bool) -> Vec<String> {
    let of =
        |prng: &mut Prng, list: &[&str]| String::from(list[prng.below(list.len() as u64) as usize]);
    let passing = ["{ free_blocks = true }", "{ just_in_time_seek = true }", BOTH];
    let mut all = vec![
        format!("cache.prefetch={}", of(prng, &PREFETCH)),
        format!("cache.size={}", of(prng, &["0B", "256KiB"])),
        format!("cache.queue_depth={}", 1 + prng.below(20)),
        format!("cache.opportunistic={}", of(prng, &passing)),
        format!("cache.opportunistic.read_ahead={}", of(prng, &["0B", "64KiB"])),
        format!("cache.write_buffer.size={}", of(prng, &["16KiB", "256KiB", "4MiB"])),
        format!("cache.write_buffer.order={}", of(prng, &["lrw", "wow"])),
        format!("cache.write_buffer.max_age={}ms", 20 + prng.below(500)),
        format!("cache.write_buffer.destage_maximum={}", of(prng, &["4KiB", "64KiB"])),
        format!("cache.write_buffer.volatile={is_volatile}"),
    ];
    if prng.chance(0.5) {
        all.push("cache.prefetch_buffer=128KiB".into());
    }
    all
}

/// Runs a mixture, and checks its answers.
fn run(seed: u64, overrides: &[String]) -> CacheWork {
    let config = SimConfig::parse(STRIPED, "test", overrides).unwrap();
    let mut prng = Prng::new(seed, "mixture");
    let gap_ns = 500_000 + prng.below(8_000_000);
    let (next, answers) = (SimTime::ZERO, BTreeMap::new());
    let mut source = Mixture { prng, next, gap_ns, asked: 0, answers };
    let mut ends = Vec::new();
    let mut observer = |completion: &Completion| ends.push(completion.end);
    let experiment = Experiment::new(config).unwrap();
    let result =
        experiment.new_run().with_observer(&mut observer).simulate_source(&mut source).unwrap();
    assert!(source.answers.keys().copied().eq(1..=REQUESTS), "{seed} {overrides:?}");
    assert!(source.answers.values().all(|&count| count == 1), "{seed} {overrides:?}");
    assert!(ends.is_sorted() && ends.len() as u64 == REQUESTS, "{seed} {overrides:?}");
    result.cache.unwrap()
}

#[test]
fn requests_answered_once_and_run_ends() {
    for seed in 0..30 {
        let prng = &mut Prng::new(seed, "caches");
        let is_volatile = seed % 2 == 0;
        let drive = DRIVES[seed as usize % 3].iter().map(|text| String::from(*text));
        let overrides: Vec<String> =
            any_cache(prng, is_volatile).into_iter().chain(drive).collect();
        let work = run(seed, &overrides);
        assert!(work.destages > 20 && work.read_misses > 20, "{seed}: {work:?}");
    }
}
