//! Traces as they are replayed.

use super::run::{Bench, SMALL_TRACE, document, run, stdout};

const SQLITE: &str = "data/recorded/sqlite-ext4.csv.zst";

#[test]
fn recorded_traces_replay_arrivals_exactly() {
    for trace in ["fileserver", "pgbench", "sqlite"] {
        let file = format!("data/recorded/{trace}-ext4.csv.zst");
        let fidelity = document(&["trace", "fidelity", &file, "--json"]);
        assert_eq!(fidelity["requests"], document(&["trace", "info", &file, "--json"])["requests"]);
        assert_eq!(fidelity["exact"], fidelity["requests"], "{trace}: {fidelity}");
        assert_eq!(fidelity["displaced"]["requests"], 0);
    }
    let text = stdout(&["trace", "fidelity", SQLITE]);
    assert!(text.contains("arrive at their traced times  58,208 (100 %)"), "{text}");
}

/// Eighty requests at once, each of a second, so that the window of 64 is full.
#[test]
fn window_delayed_requests_counted_apart() {
    let bench = Bench::new(SMALL_TRACE);
    let line = |n: u64| format!("{n},R,0,512,0,{}\n", n + 1_000_000_000);
    let header = "arrival_ns,op,offset_bytes,length_bytes,fua,complete_ns\n";
    bench.put("full.csv", &(header.to_owned() + &(0..80).map(line).collect::<String>()));
    let text = stdout(&["trace", "fidelity", &bench.at("full.csv")]);
    assert!(text.contains("enter the full window late    16 (20 %)"), "{text}");
    assert!(text.contains("16 (20 %), by 1000 ms on average and 1000 ms at most"), "{text}");
}

#[test]
fn trace_without_completions_has_no_fidelity() {
    let bench = Bench::new(SMALL_TRACE);
    let header = "arrival_ns,op,offset_bytes,length_bytes,fua,complete_ns\n";
    bench.put("bare.csv", &format!("{header}0,R,0,512,0,\n5,R,512,512,0,\n"));
    let ran = run(&["trace", "fidelity", &bench.at("bare.csv")]);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("bare.csv records of 0 of its 2 requests when"), "{}", ran.stderr);
    assert!(ran.stderr.contains("take a trace with completions"), "{}", ran.stderr);
}

#[test]
fn inferred_completions_named_with_uncertainty() {
    let bench = Bench::new(SMALL_TRACE);
    let header = "arrival_ns,op,offset_bytes,length_bytes,fua,complete_ns\n";
    let line = |n: u64| format!("{},R,{},4096,0,\n", n * 7_000_000, n % 97 * 1_048_576);
    bench.put("bare.csv", &(header.to_owned() + &(0..200).map(line).collect::<String>()));
    let file = format!("workload.file={}", bench.at("bare.csv"));
    let dependent = ["--set", &file, "--set", "workload.replay=dependent"];
    let args = [&["sim", "examples/replay.toml"][..], &dependent].concat();
    let text = stdout(&args);
    assert!(text.contains("inferred from tr96, mean response"), "{text}");
    let inferred = document(&[&args[..], &["--json"]].concat());
    let parents = &inferred["result"]["inferred_completions"][0]["parents"];
    assert!(parents["either"].as_f64().unwrap() > 0.0, "{parents}");
}

#[test]
fn merged_traces_named_and_never_overwritten() {
    let bench = Bench::new(SMALL_TRACE);
    let merge = format!("workload.merge=['{}']", bench.at("trace.csv"));
    let args = ["sim", "examples/replay.toml", "--set", &merge, "--json"];
    let merged = document(&args);
    let [first, second] = [&merged["trace"], &merged["merged_traces"][0]];
    let requests = |info: &serde_json::Value| info["requests"].as_u64().unwrap();
    assert_eq!(requests(&merged["result"]), requests(first) + requests(second));
    let report = bench.at("trace.csv");
    let ran = run(&["sim", "examples/replay.toml", "--set", &merge, "--report", &report]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert_eq!(std::fs::read_to_string(report).unwrap(), SMALL_TRACE);
}

/// The recorded drive takes 14 to 20 ms for each read.
#[test]
fn drive_fitted_to_responses_runs_elsewhere() {
    let bench = Bench::new(SMALL_TRACE);
    let line = |n: u64| {
        let (at, offset) = (n * 100_000_000, n * 7919 % 4000 * 4096);
        format!("{at},R,{offset},4096,0,{}\n", at + 14_000_000 + n % 7 * 1_000_000)
    };
    let header = "arrival_ns,op,offset_bytes,length_bytes,fua,complete_ns\n";
    bench.put("slow.csv", &(header.to_owned() + &(0..400).map(line).collect::<String>()));
    let (trace, out) = (bench.at("slow.csv"), bench.at("out"));
    let study = ["study", &trace, "--drive", "tr96", "--no-scrub", "--no-changes", "--out", &out];
    let text = stdout(&[&study[..], &["--fit"]].concat());
    assert!(
        text.contains("Fitted to half of the requests, the drive has response times"),
        "{text}"
    );
    let drive = bench.at("out/fitted-drive.toml");
    let report = document(&[&study[..], &["--json", "--drive", &drive]].concat());
    assert_eq!(report["beside"][0]["drive"]["name"], "tr96-fitted", "{report}");
    let ran = run(&["study", &bench.at("trace.csv"), "--drive", "tr96", "--wrap", "--fit"]);
    assert!(ran.stderr.contains("leave out --fit"), "{}", ran.stderr);
}
