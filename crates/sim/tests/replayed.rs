//! Traces as an experiment replays them.
#![allow(missing_docs)]

use std::path::Path;

use freewheel_sim::config::{Experiment, SimConfig, Workload};
use freewheel_sim::source::TracedThinkTime;
use freewheel_sim::{Completion, RunResult};
use freewheel_trace::{ParquetWriter, Record};
use freewheel_units::{Blocks, Op, SimTime, VolumeBlock};

const RECORDED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/recorded");

fn config(overrides: &[&str]) -> SimConfig {
    let text = format!(
        "drive = 'ultrastar73lzx'\nelectronics = false\n[workload]\nkind = 'trace'\n\
         file = '{RECORDED}/sqlite-ext4.csv.zst'\nfit = 'scale'\n"
    );
    let overrides: Vec<String> = overrides.iter().map(|text| (*text).into()).collect();
    SimConfig::parse(&text, "test", &overrides).unwrap()
}

fn run(overrides: &[&str]) -> RunResult {
    Experiment::new(config(overrides)).unwrap().run().unwrap()
}

fn refusal(overrides: &[&str]) -> String {
    Experiment::new(config(overrides)).unwrap_err().to_string()
}

/// Writes a trace of the list, in order.
fn write_trace(path: &Path, records: &[Record]) -> String {
    let mut writer = ParquetWriter::create(path).unwrap();
    records.iter().for_each(|record| writer.write(record).unwrap());
    writer.finish().unwrap();
    format!("workload.file={}", path.display())
}

/// Every 2 ms a request; reads, writes, flushes and trims on two devices, without completions.
fn without_completions() -> Vec<Record> {
    let record = |n: u64| Record {
        widened: false,
        arrival: SimTime::from_ns(n * 2_000_000),
        op: [Op::Read, Op::Write, Op::Read, Op::Flush, Op::Trim][(n % 5) as usize],
        device: (n % 3 / 2) as u32,
        start: VolumeBlock::new(n % 50 * 2048),
        blocks: Blocks::new(if n % 5 == 3 { 0 } else { 8 }),
        completion: None,
        fua: false,
    };
    (0..300).map(record).collect()
}

#[test]
fn think_times_are_written_as_a_word_or_as_a_speedup() {
    let think_time = |text: &str| match config(&[text]).workload {
        Workload::Trace(trace) => trace.think_time,
        _ => unreachable!("it is a trace"),
    };
    assert_eq!(think_time("workload.think_time=kept"), TracedThinkTime::Kept);
    assert_eq!(think_time("workload.think_time=removed"), TracedThinkTime::Removed);
    for (text, speedup) in
        [("4", 4.0), ("2.5", 2.5), ("inf", f64::INFINITY), ("'inf'", f64::INFINITY)]
    {
        let key = format!("workload.think_time={{ speedup = {text} }}");
        assert_eq!(think_time(&key), TracedThinkTime::Speedup(speedup));
        // A result's TOML and JSON lead back to it.
        let written = config(&[&key]);
        let toml = toml::to_string(&written).unwrap();
        assert_eq!(SimConfig::parse(&toml, "test", &[]).unwrap(), written);
        let json = serde_json::to_string(&written).unwrap();
        assert_eq!(serde_json::from_str::<SimConfig>(&json).unwrap(), written);
    }
    for wrong in ["{ speedup = 0 }", "{ speedup = 'fast' }"] {
        let key = format!("workload.think_time={wrong}");
        let error = SimConfig::parse("workload.kind = 'trace'", "test", &[key]).unwrap_err();
        assert!(error.to_string().contains("a number from 0.01 on or \"inf\""), "{error}");
    }
}

#[test]
fn a_faster_processor_and_none_at_all_bring_requests_sooner() {
    let elapsed = |text: &str| run(&[&format!("workload.think_time={text}")]).elapsed_ns;
    let [kept, faster, endless, removed] =
        ["kept", "{ speedup = 4 }", "{ speedup = inf }", "removed"].map(elapsed);
    assert_eq!(kept, run(&[]).elapsed_ns);
    assert!(kept > faster && faster > endless && endless > removed);
}

#[test]
fn arrivals_come_sooner_by_their_factor_and_by_nothing_else() {
    let arrivals = |speedup: &str| {
        let speedup = format!("workload.arrival_speedup={speedup}");
        let experiment = config(&["workload.replay=arrivals", &speedup]);
        let mut list = Vec::new();
        let mut observer = |c: &Completion| list.push((c.request.tag, c.arrival.ns()));
        let experiment = Experiment::new(experiment).unwrap();
        experiment.run_observed(Some(&mut observer), &mut |_, _| {}).unwrap();
        list.sort_unstable();
        list
    };
    let (plain, faster, slower) = (arrivals("1"), arrivals("2"), arrivals("0.5"));
    for (number, (_, at)) in plain.iter().enumerate() {
        assert_eq!(faster[number].1, at.div_ceil(2));
        assert_eq!(slower[number].1, 2 * at);
    }
}

#[test]
fn a_pace_that_the_replay_does_not_take_is_refused() {
    let arrivals = "workload.replay=arrivals";
    let refused = refusal(&[arrivals, "workload.think_time=removed"]);
    assert!(refused.contains("`think_time` needs a dependent replay"), "{refused}");
    let refused = refusal(&["workload.arrival_speedup=2"]);
    assert!(refused.contains("this replay is dependent: give `think_time`"), "{refused}");
    let refused = refusal(&[arrivals, "workload.arrival_speedup=0"]);
    assert!(refused.contains("`arrival_speedup` is 0: 0.01 to 1000000 are allowed"), "{refused}");
}

#[test]
fn a_warm_up_counts_the_requests_of_the_devices_that_take_part() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plain.parquet");
    let file = write_trace(&path, &without_completions());
    let both = run(&[&file, "warm_up=0.5", "slices=2"]);
    assert_eq!((both.warm_up_requests, both.requests), (150, 150));
    assert_eq!((both.trims, both.flush_response.count), (30, 30));
    let requests = both.slices.iter().map(|slice| (slice.reads.requests, slice.writes.requests));
    assert_eq!(requests.collect::<Vec<_>>(), [(30, 15), (30, 15)]);
    let one = run(&[&file, "warm_up=0.5", "workload.device=1"]);
    assert_eq!((one.warm_up_requests, one.requests), (50, 50));
}
