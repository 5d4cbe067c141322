//! Small files on which the verbs went wrong, and the right answers: see `crates/trace/tests/trace/trials.rs`.

use serde_json::Value;

use super::run::{Bench, document, run};

fn trial(name: &str) -> String {
    format!("{}/../testkit/trials/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// A study of the trace alone; mean and 99th percentile of the responses of the drive's own queue, in ms.
fn study(name: &str, options: &[&str]) -> (Value, f64, f64) {
    study_of(&trial(name), options)
}

fn study_of(trace: &str, options: &[&str]) -> (Value, f64, f64) {
    let bench = Bench::new("");
    let out = bench.at("out");
    let args = ["study", trace, "--no-scrub", "--no-changes", "--json", "--out", &out];
    let json = document(&[&args[..], options].concat());
    let run = json["runs"].as_array().unwrap().last().unwrap();
    let response = &run["result"]["response"];
    let ms = |key: &str| response[key].as_f64().unwrap() / 1e6;
    let (mean, p99) = (ms("mean_ns"), ms("p99_ns"));
    (json, mean, p99)
}

#[test]
fn log_of_two_runs_keeps_responses() {
    let (json, mean, _) = study("fio-appended.iolog", &[]);
    assert_eq!(mean, study("fio-appended-right.iolog", &[]).1);
    let says = json["findings"].to_string();
    assert!(says.contains("holds 2 recordings"), "{says}");
}

#[test]
fn joined_volumes_respond_as_merged() {
    let bench = Bench::new("");
    let joined = std::fs::read_to_string(trial("msr-two-volumes.csv")).unwrap();
    let mut lines: Vec<&str> = joined.lines().collect();
    lines.sort_by_key(|line| line.split(',').next().unwrap().parse::<u64>().unwrap());
    bench.put("merged.csv", &(lines.join("\n") + "\n"));
    let by_arrival = ["--replay", "arrivals"];
    let (_, mean, p99) = study_of(&trial("msr-two-volumes.csv"), &by_arrival);
    // In order both look like the steps of a coarse clock.
    let in_steps = [&by_arrival[..], &["--coarse-times", "bunched"]].concat();
    let (_, of_merged, p99_of_merged) = study_of(&bench.at("merged.csv"), &in_steps);
    assert_eq!((mean, p99), (of_merged, p99_of_merged));
}

#[test]
fn whole_second_requests_spread_and_told() {
    let (json, spread, _) = study("tencent-seconds.csv", &[]);
    let (bunched_json, bunched, _) = study("tencent-seconds.csv", &["--coarse-times", "bunched"]);
    assert!(spread < 0.7 * bunched, "{bunched} {spread}");
    // Each study has the other's mean beside its own.
    let other = |json: &Value| json["other_times"]["response"]["mean_ns"].as_f64().unwrap() / 1e6;
    assert_eq!((other(&json), other(&bunched_json)), (bunched, spread));
    let first = json["findings"][0]["headline"].as_str().unwrap();
    assert!(first.contains("steps of 1 s") && first.contains("bunched"), "{first}");
    // Another seed moves requests within their parts, and the mean by less than the spread does.
    let other_seed = study("tencent-seconds.csv", &["--seed", "2"]).1;
    assert!(other_seed != spread && other_seed < 0.7 * bunched, "{other_seed}");
}

#[test]
fn file_without_request_says_how_to_record() {
    let bench = Bench::new("");
    let (trace, out) = (trial("blkparse-completions-only.txt"), bench.at("out.csv"));
    let folder = bench.at("out");
    for args in [
        &["trace", "info", &trace][..],
        &["trace", "convert", &trace, &out],
        &["study", &trace, "--out", &folder],
        &["cache", &trace, "--out", &folder],
    ] {
        let ran = run(args);
        assert_eq!(ran.code, 1, "{args:?}: {}", ran.stdout);
        for words in ["5 completions", "without `-a complete`"] {
            assert!(ran.stderr.contains(words), "{args:?}: {}", ran.stderr);
        }
    }
    assert!(!std::path::Path::new(&out).exists());
}

#[test]
fn objects_miss_as_objects_do() {
    let bench = Bench::new("");
    let (trace, out) = (trial("objects-dense-ids.oracleGeneral.bin"), bench.at("out"));
    let args = ["cache", &trace, "--policy", "lru", "--size", "16KiB", "--warm-up", "0%"];
    let args = [&args[..], &["--response", "none", "--json", "--out", &out]].concat();
    let json = document(&args);
    assert_eq!(json["trace"]["footprint_bytes"], 32 << 10);
    assert_eq!(json["curves"][0]["miss_ratios"][0]["requests"], 1.0);
    // A disk has no place for an object.
    let ran = run(&["study", &trace, "--out", &out]);
    assert_eq!(ran.code, 1);
    for words in ["names objects", "--addresses"] {
        assert!(ran.stderr.contains(words), "{}", ran.stderr);
    }
}

#[test]
fn caches_see_requests_served_from_memory() {
    let bench = Bench::new("");
    let (trace, out) = (trial("thesios-cache-hits.csv"), bench.at("out"));
    let args = ["cache", &trace, "--policy", "lru", "--size", "1MiB", "--warm-up", "0%"];
    let args = [&args[..], &["--response", "none", "--json", "--out", &out]].concat();
    assert_eq!(document(&args)["trace"]["requests"], 6);
    let (json, ..) = study("thesios-cache-hits.csv", &[]);
    assert_eq!(json["trace"]["info"]["requests"], 1);
}

#[test]
fn layer_refused_where_format_has_one() {
    let bench = Bench::new("");
    let (trace, out) = (trial("msr-two-volumes.csv"), bench.at("out"));
    for args in [&["trace", "info", &trace][..], &["study", &trace, "--out", &out]] {
        let ran = run(&[args, &["--layer", "issued"]].concat());
        assert_eq!(ran.code, 1, "{}", ran.stdout);
        for words in ["msr-csv has the requests of one alone", "leave --layer out"] {
            assert!(ran.stderr.contains(words), "{}", ran.stderr);
        }
    }
}

#[test]
fn uncertain_unit_asked_with_options() {
    let line = |n: u64| format!("{} 0 {} 8 1\n", 1000 + n * 50_021, n * 8);
    let bench = Bench::new(&(0..100).map(line).collect::<String>());
    let trace = bench.at("trace.csv");
    let ran = run(&["trace", "info", &trace]);
    assert_eq!(ran.code, 1);
    for words in ["in us they mean 20 requests a second", "--time-unit us", "--time-unit ns"] {
        assert!(ran.stderr.contains(words), "{}", ran.stderr);
    }
    let info = document(&["trace", "info", &trace, "--time-unit", "us", "--json"]);
    assert_eq!(
        (&info["span_ns"], &info["time_unit"]),
        (&Value::from(99 * 50_021_000u64), &"us".into())
    );
    let ran = run(&["trace", "info", &trace, "--time-unit", "min"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("write s, ms, us or ns"), "{}", ran.stderr);
}
