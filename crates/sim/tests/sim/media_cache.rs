//! The media cache of the drive that ships with one.

use freewheel_sim::RunResult;
use freewheel_sim::config::SimConfig;
use freewheel_sim::experiment::Experiment;
use freewheel_units::Bytes;

/// Random writes, each of which the media must have, to a cache of 1 GiB.
fn run(workload: &str) -> RunResult {
    let text = format!("drive = \"archive-st5000as0011-5tb\"\nwrite_cache = \"off\"\n{workload}");
    let experiment = Experiment::new(SimConfig::parse(&text, "test", &[]).unwrap()).unwrap();
    let mut spec = experiment.spec.clone();
    spec.electronics.media_cache.as_mut().unwrap().size = Bytes::from_kib(1 << 20);
    experiment.on_drive(spec).unwrap().run().unwrap()
}

/// A GiB holds 16,384 writes of 64 KiB.
const BURST: &str = "slices = 10\nworkload = { kind = \"closed\", requests = 18000, \
                     pattern = { read_share = 0, size = \"64KiB\" } }";

#[test]
fn burst_fast_until_media_cache_full() {
    let result = run(BURST);
    let means: Vec<f64> =
        result.slices.iter().map(|slice| slice.writes.response_ns_mean / 1e6).collect();
    // One after the other in the log: less than a turn of 10.2 ms.
    assert!(means[..9].iter().all(|mean| *mean < 10.2), "{means:?}");
    // Measured on the drive: 0.6 to 1.6 s for a band, and most writes need one of their own.
    assert!((300.0..1600.0).contains(&means[9]), "{means:?}");
    let work = result.media_cache.unwrap();
    let seconds = work.cleaning_ns as f64 / 1e9 / work.bands_cleaned as f64;
    assert!((0.4..1.6).contains(&seconds), "{seconds} s for a band");
    assert_eq!(work.bands_cleaned, work.bands_waited_for);
}

#[test]
fn idle_time_drains_the_cache() {
    let rare = "workload = { kind = \"closed\", requests = 30, think_time = \"20s\", \
                pattern = { read_share = 0, size = \"64KiB\" } }";
    let work = run(rare).media_cache.unwrap();
    assert_eq!((work.cached_writes, work.bands_waited_for), (30, 0));
    // Only the last write is still there; one over a border has two bands.
    assert!((29..35).contains(&work.bands_cleaned), "{work:?}");
    assert_eq!(work.cached_bytes, 64 << 10);
}

#[test]
fn sequential_writes_never_meet_the_cache() {
    let text = "drive = \"archive-st5000as0011-5tb\"\nwrite_cache = \"off\"\nworkload = { kind = \"closed\", \
                requests = 500, pattern = { read_share = 0, size = \"26MiB\", align = \"26MiB\" } }";
    let result =
        Experiment::new(SimConfig::parse(text, "test", &[]).unwrap()).unwrap().run().unwrap();
    let work = result.media_cache.unwrap();
    assert_eq!((work.straight_writes, work.cached_writes), (500, 0));
    assert!(result.bytes_per_second > 50e6, "{}", result.bytes_per_second);
}

#[test]
fn free_work_inside_media_cache_refused() {
    let text = "drive = \"archive-st5000as0011-5tb\"\nfreeblock = { tasks = [{}] }\n\
                workload = { kind = \"closed\" }";
    let error = Experiment::new(SimConfig::parse(text, "test", &[]).unwrap()).err().unwrap();
    assert!(error.to_string().contains("media cache"), "{error}");
}
