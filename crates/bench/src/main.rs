//! How fast Freewheel is.
//!
//! Goals: every number is a median over several runs in one process, stands beside its unit,
//! commit and machine, and carries the hash of what was computed, so that faster never means
//! different. Non-goals: a verdict (machines differ), micro-benchmarks of single functions.
//!
//! `freewheel-bench [FILE]` prints a table and appends one JSON document a line to FILE.
//! `freewheel-bench --long` shows instead that memory does not grow with the length of a run: a
//! generated workload and a trace of 100,000,000 requests each (the trace takes 2 GB of disk).
//!
//! What invalidates a number: another load on the machine, a debug build, another hash.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use freewheel::sim::RunResult;
use freewheel::sim::config::{Experiment, SimConfig};
use freewheel::trace::{ParquetWriter, Record};
use freewheel::units::{Blocks, Op, Prng, SimTime, VolumeBlock};
use serde::Serialize;

/// One benchmark.
struct Case {
    name: String,
    /// Requests of a run.
    requests: u64,
    config: String,
}

/// One measured number.
#[derive(Serialize)]
struct Measurement<'a> {
    name: &'a str,
    value: f64,
    unit: &'static str,
    runs: usize,
    slowest: f64,
    fastest: f64,
    result_hash: &'a str,
    commit: &'a str,
    machine: &'a str,
}

const RUNS: usize = 5;
/// Requests of the run that shows that memory does not grow with length.
const LONG_RUN: u64 = 100_000_000;

fn main() {
    let file = std::env::args().nth(1);
    let (commit, machine) = (commit(), machine());
    if file.as_deref() == Some("--long") {
        println!("commit {commit}, {machine}, release build");
        return long_runs();
    }
    println!("commit {commit}, {machine}; {RUNS} runs each, release build");
    println!("{:<44} {:>12} {:>12} {:>12}  hash", "", "median", "slowest", "fastest");
    for case in cases() {
        let (rates, hash) = measure(&case);
        let measurement = Measurement {
            name: &case.name,
            value: rates[RUNS / 2],
            unit: "simulated requests a second, one core",
            runs: RUNS,
            slowest: rates[0],
            fastest: rates[RUNS - 1],
            result_hash: &hash,
            commit: &commit,
            machine: &machine,
        };
        print_line(&measurement);
        if let Some(file) = &file {
            append(file, &measurement);
        }
    }
}

fn print_line(m: &Measurement<'_>) {
    let million = |value: f64| format!("{:.2} M/s", value / 1e6);
    let [median, slowest, fastest] = [m.value, m.slowest, m.fastest].map(million);
    println!("{:<44} {median:>12} {slowest:>12} {fastest:>12}  {}", m.name, m.result_hash);
}

fn append(file: &str, measurement: &Measurement<'_>) {
    let line = serde_json::to_string(measurement).expect("a measurement can be written");
    let opened = OpenOptions::new().create(true).append(true).open(file);
    let written = opened.and_then(|mut file| writeln!(file, "{line}"));
    written.unwrap_or_else(|error| panic!("{file}: {error}"));
}

fn cases() -> Vec<Case> {
    let mut cases = vec![closed("fcfs", 1, 4_000_000), closed("sptf", 20, 1_000_000)];
    for policy in ["fcfs", "clook", "sstf", "sptf", "sptf-sw", "asatf"] {
        for depth in [1, 4, 16, 64, 256, 1024] {
            cases.push(closed(policy, depth, 400_000));
        }
    }
    cases.push(Case {
        name: "open Poisson, 100/s, SPTF".into(),
        requests: 1_000_000,
        config: "drive = \"atlas10k\"\nelectronics = false\nscheduler = { policy = \"sptf\" }\n\
                 workload = { kind = \"open\", mean_gap = \"10ms\", requests = 1000000 }\n"
            .into(),
    });
    for policy in ["fcfs", "clook", "look", "sstf", "sptf", "sptf-sw", "asatf"] {
        cases.push(overloaded(policy));
    }
    cases
}

/// A queue that only grows: 20,000 requests arrive within 0.2 seconds.
fn overloaded(policy: &str) -> Case {
    Case {
        name: format!("20,000 waiting at once, {policy}"),
        requests: 20_000,
        config: format!(
            "drive = \"atlas10k\"\nelectronics = false\nscheduler = {{ policy = \"{policy}\" }}\n\
             workload = {{ kind = \"open\", mean_gap = \"10us\", requests = 20000 }}\n"
        ),
    }
}

/// osdi00's random workload on the Atlas 10K with this many requests outstanding.
fn closed(policy: &str, outstanding: u32, requests: u64) -> Case {
    Case {
        name: format!("random 4 KB closed, {policy}, {outstanding} outstanding"),
        requests,
        config: format!(
            "drive = \"atlas10k\"\nelectronics = false\nscheduler = {{ policy = \"{policy}\" }}\n\
             workload = {{ kind = \"closed\", outstanding = {outstanding}, requests = {requests} }}\n"
        ),
    }
}

fn run(config: &str) -> RunResult {
    let config = SimConfig::parse(config, "benchmark", &[]).expect("a valid benchmark");
    let experiment = Experiment::new(config).expect("a shipped drive");
    experiment.run().expect("a generated workload cannot fail")
}

/// Requests a second of every run, ascending, and the hash, which must not differ.
fn measure(case: &Case) -> (Vec<f64>, String) {
    let mut hashes = Vec::new();
    let mut rates: Vec<f64> = (0..RUNS)
        .map(|_| {
            let start = Instant::now();
            let result = run(&case.config);
            hashes.push(result.result_hash);
            case.requests as f64 / start.elapsed().as_secs_f64()
        })
        .collect();
    rates.sort_by(f64::total_cmp);
    hashes.dedup();
    assert_eq!(hashes.len(), 1, "{}: runs differ: {hashes:?}", case.name);
    (rates, hashes.remove(0))
}

fn long_runs() {
    let closed = closed("fcfs", 1, LONG_RUN).config;
    report_long("generated workload", || run(&closed));
    let folder = std::env::temp_dir().join(format!("freewheel-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for the trace");
    let trace = folder.join("long.parquet");
    write_trace(&trace, LONG_RUN);
    let replay = format!(
        "drive = \"atlas10k\"\nelectronics = false\nworkload = {{ kind = \"trace\", file = \"{}\" }}\n",
        trace.display()
    );
    report_long("trace", || run(&replay));
    std::fs::remove_dir_all(&folder).expect("the folder of the trace");
}

fn report_long(what: &str, run: impl FnOnce() -> RunResult) {
    let start = Instant::now();
    let result = run();
    let peak = peak_memory_mib().map_or("unknown".into(), |mib| format!("{mib} MiB"));
    println!(
        "{what} of {LONG_RUN} requests: {:.1} s, peak memory of this process {peak}, hash {}",
        start.elapsed().as_secs_f64(),
        result.result_hash
    );
}

/// Random reads and writes of 4 KiB all over the Atlas 10K, 10 ms apart.
fn write_trace(path: &Path, requests: u64) {
    let mut writer = ParquetWriter::create(path).expect("room for the trace");
    let mut prng = Prng::new(1, "long trace");
    for i in 0..requests {
        let record = Record {
            arrival: SimTime::from_ns(i * 10_000_000),
            op: if prng.chance(2.0 / 3.0) { Op::Read } else { Op::Write },
            device: 0,
            start: VolumeBlock::new(prng.below(2_240_000) * 8),
            blocks: Blocks::new(8),
            completion: None,
        };
        writer.write(&record).expect("room for the trace");
    }
    writer.finish().expect("room for the trace");
}

/// High-water mark of resident memory, where the system tells (Linux).
fn peak_memory_mib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib / 1024)
}

fn commit() -> String {
    let output = Command::new("git").args(["describe", "--always", "--dirty"]).output();
    let text = output.ok().and_then(|output| String::from_utf8(output.stdout).ok());
    text.map_or("unknown".into(), |text| text.trim().into())
}

fn machine() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split(": ").nth(1));
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    format!("{}, {cores} cores", model.unwrap_or("unknown processor"))
}
