//! Traces as an experiment replays them.

use std::path::Path;

use freewheel_sim::config::{SimConfig, Workload};
use freewheel_sim::experiment::Experiment;
use freewheel_sim::source::{Fit, TracedThinkTime};
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
fn think_times_are_word_or_speedup() {
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
fn faster_processor_brings_requests_sooner() {
    let elapsed = |text: &str| run(&[&format!("workload.think_time={text}")]).elapsed_ns;
    let [kept, faster, endless, removed] =
        ["kept", "{ speedup = 4 }", "{ speedup = inf }", "removed"].map(elapsed);
    assert_eq!(kept, run(&[]).elapsed_ns);
    assert!(kept > faster && faster > endless && endless > removed);
}

#[test]
fn arrivals_scale_by_factor_only() {
    let arrivals = |speedup: &str| {
        let speedup = format!("workload.arrival_speedup={speedup}");
        let experiment = config(&["workload.replay=arrivals", &speedup]);
        let mut list = Vec::new();
        let mut observer = |c: &Completion| list.push((c.request.tag, c.arrival.ns()));
        let experiment = Experiment::new(experiment).unwrap();
        experiment.new_run().with_observer(&mut observer).simulate().unwrap();
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
fn pace_foreign_to_replay_refused() {
    let arrivals = "workload.replay=arrivals";
    let refused = refusal(&[arrivals, "workload.think_time=removed"]);
    assert!(refused.contains("`think_time` needs a dependent replay"), "{refused}");
    let refused = refusal(&["workload.arrival_speedup=2"]);
    assert!(refused.contains("this replay is dependent: give `think_time`"), "{refused}");
    let refused = refusal(&[arrivals, "workload.arrival_speedup=0"]);
    assert!(refused.contains("`arrival_speedup` is 0: 0.01 to 1000000 are allowed"), "{refused}");
}

#[test]
fn warm_up_counts_participating_devices() {
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

/// Arrivals that come in bursts, so that requests wait for each other.
fn bursts() -> Vec<Record> {
    let at = |n: u64| SimTime::from_ns(n / 5 * 40_000_000 + n % 5 * 3_000_000);
    let list = without_completions().into_iter().zip(0..);
    list.map(|(record, n)| Record { arrival: at(n), device: 0, ..record }).collect()
}

/// The bursts with the completions that the experiment's drive gives them by arrival.
fn with_completions_of(file: &str, drive: &str) -> Vec<Record> {
    let drive = format!("drive={drive}");
    let fcfs = ["scheduler={ policy = 'fcfs' }", "electronics=true", "workload.fit=as-is"];
    let by_arrival = [&fcfs[..], &[file, &drive, "workload.replay=arrivals"]].concat();
    let mut records = bursts();
    let mut observer = |c: &Completion| {
        let record = &mut records[c.request.tag as usize];
        record.completion = Some(record.arrival + c.response());
    };
    let experiment = Experiment::new(config(&by_arrival)).unwrap();
    experiment.new_run().with_observer(&mut observer).simulate().unwrap();
    records
}

#[test]
fn inferred_completions_match_reference_drive() {
    let folder = tempfile::tempdir().unwrap();
    let bare = write_trace(&folder.path().join("bare.parquet"), &bursts());
    let dependent = "workload.replay=dependent";
    for (reference, overrides) in
        [("tr96", &[][..]), ("atlas10k", &["workload.reference_drive=atlas10k"][..])]
    {
        let full = folder.path().join(format!("{reference}.parquet"));
        let full = write_trace(&full, &with_completions_of(&bare, reference));
        let recorded = run(&[&full, dependent]);
        let inferred = run(&[overrides, &[&bare, dependent]].concat());
        assert_eq!(inferred.result_hash, recorded.result_hash, "{reference}");
        let [completions] = &inferred.inferred_completions[..] else { panic!("one is inferred") };
        // Without a name, the smallest shipped drive.
        assert_eq!((&*completions.drive, completions.fit), (reference, Fit::AsIs));
        assert!(completions.mean_response_ns > 1_000_000, "{completions:?}");
        let parents = &completions.parents;
        assert!(parents.either >= parents.halved.max(parents.doubled), "{parents:?}");
        assert!(parents.either > 0.0 && parents.either < 1.0, "{parents:?}");
        assert_eq!(recorded.inferred_completions, []);
    }
    let by_arrival = run(&[&bare]);
    assert_eq!(by_arrival.inferred_completions, [], "auto stays by arrival");
    assert_ne!(by_arrival.result_hash, run(&[&bare, dependent]).result_hash);
}

#[test]
fn reference_drive_without_replay_refused() {
    let folder = tempfile::tempdir().unwrap();
    let bare = write_trace(&folder.path().join("bare.parquet"), &without_completions());
    for overrides in [&[][..], &["workload.replay=dependent"], &[&bare]] {
        let reference = ["workload.reference_drive=tr96"];
        let refused = refusal(&[overrides, &reference].concat());
        assert!(refused.contains("`reference_drive` is tr96, which only a dependent"), "{refused}");
    }
    let dependent = [&bare, "workload.replay=dependent"];
    let refused = refusal(&[&dependent[..], &["workload.reference_drive=nosuch"]].concat());
    assert!(refused.contains("`reference_drive`: no drive is called `nosuch`"), "{refused}");
    let refused = refusal(&[&dependent[..], &["array.layout=independent"]].concat());
    assert!(refused.contains("are inferred for one volume only"), "{refused}");
    // One of its devices alone is such a volume.
    let one = run(&[&dependent[..], &["workload.device=1"]].concat());
    assert_eq!((one.requests, one.inferred_completions.len()), (100, 1));
}

/// Load a millisecond later, elsewhere on the drive and in another order of operations.
fn other_bursts() -> Vec<Record> {
    let moved = |record: Record| {
        let op = if record.op == Op::Read { Op::Write } else { Op::Read };
        let blocks = Blocks::new(16);
        let arrival = SimTime::from_ns(record.arrival.ns() * 3 / 2 + 1_000_000);
        Record { op, blocks, arrival, ..record }
    };
    bursts().into_iter().filter(|record| record.op != Op::Flush).map(moved).collect()
}

/// Start, operation and arrival of every request, in order of completion.
fn completions(overrides: &[&str]) -> Vec<(u64, Op, u64, u64)> {
    let mut list = Vec::new();
    let mut observer = |c: &Completion| {
        list.push((c.request.start.get(), c.request.op, c.arrival.ns(), c.end.ns()));
    };
    let experiment = Experiment::new(config(overrides)).unwrap();
    experiment.new_run().with_observer(&mut observer).simulate().unwrap();
    list
}

#[test]
fn merged_traces_keep_arrival_order() {
    let folder = tempfile::tempdir().unwrap();
    let [one, two, both] = ["one", "two", "both"].map(|name| folder.path().join(name));
    let (first, second) = (bursts(), other_bursts());
    write_trace(&two, &second);
    // By hand: the second trace begins with the first and lies behind it, at a multiple of 4 KiB.
    let space = first.iter().map(|r| r.start.get() + r.blocks.get()).max().unwrap();
    let base = space.next_multiple_of(8);
    let origin = second[0].arrival;
    let behind = |record: &Record| Record {
        arrival: SimTime::ZERO + record.arrival.saturating_since(origin),
        start: VolumeBlock::new(record.start.get() + base),
        ..*record
    };
    let mut together: Vec<Record> =
        first.iter().copied().chain(second.iter().map(behind)).collect();
    together.sort_by_key(|record| record.arrival);
    let by_hand = write_trace(&both, &together);
    let file = write_trace(&one, &first);
    let merge = format!("workload.merge=['{}']", two.display());
    let as_is = ["workload.fit=as-is", "workload.replay=arrivals"];
    let merged = completions(&[&as_is[..], &[&file, &merge]].concat());
    assert_eq!(merged, completions(&[&as_is[..], &[&by_hand]].concat()));
    assert_eq!(merged.len(), first.len() + second.len());
}

#[test]
fn merged_streams_have_own_parents_and_windows() {
    let folder = tempfile::tempdir().unwrap();
    let recorded = format!("{RECORDED}/sqlite-ext4.csv.zst");
    let other = format!("{RECORDED}/fileserver-ext4.csv.zst");
    let merge = format!("workload.merge=['{other}']");
    let alone = |file: &str| run(&[&format!("workload.file={file}")]);
    let both = run(&[&merge]);
    let (one, two) = (alone(&recorded), alone(&other));
    assert_eq!(both.requests, one.requests + two.requests);
    assert_eq!(both.read_bytes, one.read_bytes + two.read_bytes);
    // Each waits for itself alone, so that together they take hardly longer than the longer one.
    let longer = one.elapsed_ns.max(two.elapsed_ns);
    assert!(both.elapsed_ns >= longer && both.elapsed_ns < one.elapsed_ns + two.elapsed_ns);
    // Two times one trace: each stream sees the drive of the other, and no parent of it.
    let bare = write_trace(&folder.path().join("bare.parquet"), &bursts());
    let itself = bare.replacen("workload.file=", "", 1);
    let twice = ["workload.replay=dependent", &bare, &format!("workload.merge=['{itself}']")];
    let result = run(&twice);
    let streams = result.inferred_completions.iter().map(|inferred| inferred.stream);
    assert_eq!(streams.collect::<Vec<_>>(), [0, 1]);
    assert_eq!(result.requests, 2 * bursts().len() as u64);
}

#[test]
fn merge_impossible_refused_with_relative_paths() {
    let merge = format!("workload.merge=['{RECORDED}/fileserver-ext4.csv.zst']");
    let refused = refusal(&[&merge, "workload.device=0"]);
    assert!(refused.contains("`merge` and `device` exclude each other"), "{refused}");
    let refused = refusal(&[&merge, "array.layout=independent"]);
    assert!(refused.contains("`merge` lays its traces onto one volume"), "{refused}");
    let refused = refusal(&["workload.merge=['no/such.csv']"]);
    assert!(refused.starts_with("no/such.csv: "), "{refused}");
    let refused = refusal(&[&merge, "drive=tr96", "workload.fit=as-is"]);
    assert!(refused.contains("the trace reaches"), "{refused}");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("merged.toml");
    let text = "workload = { kind = 'trace', file = 'a.csv', merge = ['b.csv'], reference_drive = 'c.toml' }";
    std::fs::write(&path, text).unwrap();
    let files = |overrides: &[String]| {
        let config = SimConfig::load(&path, overrides).unwrap();
        config.trace_files().iter().map(|path| path.to_path_buf()).collect::<Vec<_>>()
    };
    assert_eq!(files(&[]), ["a.csv", "b.csv"].map(|file| folder.path().join(file)));
    let other = files(&["workload.merge=['d.csv']".into()]);
    assert_eq!(other, [folder.path().join("a.csv"), Path::new("d.csv").into()]);
}
