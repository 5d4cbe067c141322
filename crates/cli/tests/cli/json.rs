use super::run::{Bench, SMALL_TRACE, command, document, finish};

#[test]
fn json_document_of_every_verb_has_version() {
    let bench = Bench::new(SMALL_TRACE);
    let (trace, config) = (&*bench.at("trace.csv"), &*bench.at("sim.toml"));
    let (copy, out) = (&*bench.at("copy.parquet"), &*bench.at("out"));
    let verbs: &[&[&str]] = &[
        &["drive", "list"],
        &["drive", "show", "exos-x24-24tb"],
        &["drive", "scale", "tr96", "--years", "1"],
        &["trace", "formats"],
        &["trace", "info", trace],
        &["trace", "characterize", trace],
        &["trace", "convert", trace, copy],
        &["sim", config],
        &["reproduce", "--list"],
        &["study", trace, "--drive", "tr96", "--out", out],
    ];
    for verb in verbs {
        document(&[verb, &["--json"][..]].concat());
    }
}

#[test]
fn trace_info_has_fields_for_tools() {
    let bench = Bench::new(SMALL_TRACE);
    let info = document(&["trace", "info", &bench.at("trace.csv"), "--json"]);
    assert_eq!(info["format"], "freewheel-csv");
    assert_eq!((&info["requests"], &info["reads"]), (&5.into(), &2.into()));
    assert_eq!((&info["span_ns"], &info["bytes"]), (&20_000_000.into(), &20_480.into()));
    // 4 KiB pages 0, 2, 100 and 101.
    assert_eq!(info["footprint_bytes"], 4 * 4096);
}

/// The counts of `data/recorded/README.md`.
#[test]
fn trace_info_counts_what_was_recorded() {
    let recorded = [
        ("pgbench-ext4", [110_854, 42_250, 54_541, 14_063]),
        ("fileserver-ext4", [103_247, 97_619, 5_294, 334]),
        ("sqlite-ext4", [58_208, 8_461, 34_355, 15_392]),
    ];
    for (name, counts) in recorded {
        let info = document(&["trace", "info", &format!("data/recorded/{name}.csv.zst"), "--json"]);
        let found =
            ["requests", "reads", "writes", "flushes"].map(|key| info[key].as_u64().unwrap());
        assert_eq!(found, counts, "{name}");
        assert_eq!(info["trims"], 0);
    }
}

#[test]
fn simulation_document_repeats_resolved_config() {
    let args = ["sim", "examples/random.toml", "--set", "workload.requests=300", "--seed", "9"];
    let run = document(&[&args[..], &["--json"]].concat());
    assert_eq!(run["config"]["workload"]["requests"], 300);
    assert_eq!(run["config"]["seed"], 9);
    assert_eq!(run["result"]["requests"], 300);
    assert_eq!(run["drive"]["name"], "atlas10k");
    // A default that the file does not mention.
    assert_eq!(run["config"]["workload"]["pattern"]["align"], "4KiB");
}

/// The way out that the refusal of a log names.
#[test]
fn independent_drive_reruns_alone_by_seed() {
    let sim =
        |more: &[&str]| document(&[&["sim", "examples/oltp.toml", "--json"][..], more].concat());
    let all = sim(&["--set", "array.layout=independent", "--set", "array.drives=3"]);
    assert_eq!(all["config"]["array"]["layout"], "independent");
    let drives = all["result"]["drives"].as_array().unwrap();
    assert_eq!((drives.len(), &all["result"]["requests"]), (3, &60_000.into()));
    let last = &drives[2];
    let alone = sim(&["--seed", &last["seed"].to_string()]);
    for (key, place) in [
        ("requests", "/requests"),
        ("response_ns_mean", "/response/mean_ns"),
        ("response_ns_p99", "/response/p99_ns"),
        ("elapsed_ns", "/elapsed_ns"),
        ("utilisation", "/utilisation"),
        ("result_hash", "/result_hash"),
    ] {
        assert_eq!(Some(&last[key]), alone["result"].pointer(place), "{key}");
    }
    assert!(alone["result"]["drives"].is_null());
}

#[test]
fn drive_show_gives_modelled_and_advertised() {
    let sheet = document(&["drive", "show", "exos-x24-24tb", "--json"]);
    let outer = sheet["zones"][0]["sustained_bytes_per_second"].as_f64().unwrap();
    assert!((outer / 285e6 - 1.0).abs() < 0.05, "outermost zone: {outer} bytes a second");
    assert_eq!(sheet["advertised"]["capacity"].as_str().unwrap().parse(), Ok(TB24));
    assert!(sheet["sources"]["seek"].as_str().unwrap().starts_with("assumed"));
    assert_eq!(sheet["electronics"]["buffer"]["write_cache"], "on");
    assert!(sheet["zoned"].is_null() && sheet["drive"]["actuators"] == 1);
    let checks = sheet["self_check"].as_array().unwrap();
    let outer = checks.iter().find(|row| row["quantity"] == "outer_rate_bytes_per_second").unwrap();
    assert_eq!((&outer["ok"], &outer["advertised"]), (&true.into(), &285_000_000.into()));
    let seek = checks.iter().find(|row| row["quantity"] == "mean_seek_read_ns").unwrap();
    assert!(seek["ok"].is_null() && seek["advertised"].is_null() && seek["modelled"].is_u64());
}

#[test]
fn drive_with_two_actuators_shown_whole() {
    let shown = document(&["drive", "show", "exos-2x18-18tb", "--json"]);
    assert_eq!(shown["drive"]["actuators"], 2);
    let of_one: u64 = shown["zones"]
        .as_array()
        .unwrap()
        .iter()
        .map(|zone| zone["blocks"].as_u64().unwrap())
        .sum();
    assert_eq!(shown["drive"]["blocks"], 2 * of_one);
    let list = document(&["drive", "list", "--json"]);
    let drives = list["drives"].as_array().unwrap();
    let listed = drives.iter().find(|drive| drive["name"] == "exos-2x18-18tb").unwrap();
    assert_eq!(listed, &shown["drive"]);
}

const TB24: freewheel::measures::Bytes = freewheel::measures::Bytes::new(24_000_000_000_000);

#[test]
fn reader_going_away_is_no_error() {
    let mut show = command(&["drive", "show", "exos-x24-24tb", "--json"]);
    show.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut child = show.spawn().unwrap();
    drop(child.stdout.take());
    let ran = finish(child.wait_with_output().unwrap());
    assert_eq!((ran.code, &*ran.stderr), (0, ""));
}
