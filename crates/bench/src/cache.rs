//! Uses a second of caches of keys, one row an eviction policy and one for the exact curve of LRU; and
//! whole storage systems with their drive.

use std::time::Instant;

use freewheel_model::cache::curve::LruCurve;
use freewheel_model::cache::{KeyCache, POLICIES};
use freewheel_units::Prng;

use crate::case::{Case, Measured, RUNS, bare_atlas, random};

const USES: u64 = 10_000_000;
const OBJECTS: u64 = 1_000_000;
const CAPACITY: u32 = 100_000;

/// tr03's system with many resources in front of the Atlas 10K, two thirds of which are in use.
const RESOURCE_RICH: &str = r#"
cache = { size = "60MiB", prefetch_buffer = "8MiB", prefetch = { kind = "conditional", segment = "8KiB" }, opportunistic = { read_ahead = "128KiB", free_blocks = true }, write_buffer = { size = "6MiB", max_age = "1h" } }
"#;

/// Storage systems with every kind of cache: one that seldom hits, and one that mostly does.
pub fn storage() -> [Case; 2] {
    let keys = bare_atlas("asatf") + RESOURCE_RICH;
    let near = "workload.pattern = { local_share = 0.998, local_sd = \"128KiB\" }\n";
    let random = random(&keys, 8, 400_000);
    let local = format!(
        "{keys}{near}workload.kind = \"closed\"\nworkload.outstanding = 8\nworkload.requests = 2000000\n"
    );
    [
        Case::new("random 4 KB closed, tr03's rich caches, 8 outstanding", 400_000, random),
        Case::new("near the one before, tr03's rich caches, 8 outstanding", 2_000_000, local),
    ]
}

/// Every row, measured. A row's hash is its number of misses.
pub fn rows() -> impl Iterator<Item = (Case, Measured)> {
    let keys = zipf();
    let curve = measure(|| {
        let mut curve = LruCurve::default();
        keys.iter().for_each(|&key| curve.process(key));
        curve.misses(CAPACITY)
    });
    let curve = (case("exact curve of LRU".into()), curve);
    let policies = POLICIES.iter().map(move |row| {
        (
            case(format!("a tenth in the cache, {}", row.name)),
            measure(|| USES - KeyCache::new(row.policy, CAPACITY).process_all(&keys)),
        )
    });
    policies.chain([curve])
}

fn case(what: String) -> Case {
    Case::new(format!("10^6 Zipf keys, {what}"), USES, String::new())
}

/// Keys by Zipf's law with an exponent of 1: key k is used in proportion to 1 / (k + 1).
fn zipf() -> Vec<u64> {
    let mut sum = 0.0;
    let sums: Vec<f64> = (0..OBJECTS)
        .map(|key| {
            sum += 1.0 / (key + 1) as f64;
            sum
        })
        .collect();
    let prng = &mut Prng::new(1, "zipf");
    (0..USES).map(|_| key(prng.unit() * sum, &sums)).collect()
}

fn key(at: f64, sums: &[f64]) -> u64 {
    sums.partition_point(|&sum| sum <= at) as u64
}

fn measure(misses: impl Fn() -> u64) -> Measured {
    let mut counts = Vec::new();
    let mut rates: Vec<f64> = (0..RUNS)
        .map(|_| {
            let start = Instant::now();
            counts.push(misses());
            USES as f64 / start.elapsed().as_secs_f64()
        })
        .collect();
    rates.sort_by(f64::total_cmp);
    counts.dedup();
    assert_eq!(counts.len(), 1, "runs differ: {counts:?}");
    Measured { rates, hash: format!("{} misses", counts[0]) }
}
