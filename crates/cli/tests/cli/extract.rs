//! `freewheel extract`, on emulated drives.

use super::run::{Bench, SMALL_TRACE, document, run, stdout};

/// A drive small enough to be found out in a moment.
const SMALL: &str = r#"
name = "small"
model = "a drive of 80 cylinders"
year = 2000
surfaces = 3
cylinders = 80
rotation_period = "6000001ns"
head_switch = "700us"
seek.read = { form = "three-point", single_ms = 0.6, average_ms = 2.0, full_ms = 4.0 }
overhead = { read = "200us", write = "200us" }
zones = [
    { first_cylinder = 0, last_cylinder = 49, blocks_per_track = 250, track_skew = "40/250", cylinder_skew = "60/250" },
    { first_cylinder = 50, last_cylinder = 79, blocks_per_track = 200, track_skew = "30/200", cylinder_skew = "51/200", spares = 17 },
]
[sources]
name = "assumed: for a test"
"#;

#[test]
fn a_drive_file_is_written_that_builds_and_has_a_source_for_every_value() {
    let bench = Bench::new(SMALL_TRACE);
    bench.put("small.toml", SMALL);
    let target = format!("emulated:{}?reply_jitter=10us&seed=3", bench.at("small.toml"));
    let file = bench.at("found.toml");
    let found = document(&["extract", &target, "-o", &file, "--json"]);
    assert_eq!(found["drive"]["name"], "found");
    for (key, value) in [("surfaces", 3), ("cylinders", 80), ("rotation_period_ns", 6_000_001)] {
        assert_eq!(found["drive"][key], value, "{key}");
    }
    assert_eq!(found["drive"]["blocks"], 50 * 3 * 250 + 30 * 3 * 200 - 17);
    let shown = document(&["drive", "show", &file, "--json"]);
    assert_eq!(shown["drive"], found["drive"]);
    let sources = shown["sources"].as_object().unwrap();
    for key in ["rotation_period", "zones", "seek", "head_switch", "overhead.read", "mapping"] {
        assert!(sources[key].as_str().unwrap().starts_with("extracted: "), "{key}");
    }
    for key in ["zero_latency", "overhead.write", "seek.write_settle"] {
        assert!(sources[key].as_str().unwrap().starts_with("assumed: "), "{key}");
    }
    assert!(found["commands"].as_u64().unwrap() > 1000);
}

#[test]
fn the_same_seeds_find_the_same_bytes_and_a_person_reads_how_sure_each_value_is() {
    let bench = Bench::new(SMALL_TRACE);
    bench.put("small.toml", SMALL);
    let target = format!("emulated:{}?seek_jitter=30us", bench.at("small.toml"));
    let file = bench.at("found.toml");
    let find = || {
        let text = stdout(&["extract", &target, "-o", &file]);
        (text, std::fs::read_to_string(&file).unwrap())
    };
    let (text, drive) = find();
    assert_eq!(find(), (text.clone(), drive));
    assert!(text.contains("rotation_period") && text.contains("approximate"), "{text}");
    assert!(text.contains("reads in"), "{text}");
}

#[test]
fn other_targets_are_refused_and_nothing_is_written() {
    let bench = Bench::new(SMALL_TRACE);
    let file = bench.at("found.toml");
    for target in ["/dev/sdz", "nbd://localhost", "emulated:nosuch", "emulated:atlas10k?x=1"] {
        let ran = run(&["extract", target, "-o", &file]);
        assert_eq!(ran.code, 2, "{target}: {}", ran.stderr);
        assert!(!std::path::Path::new(&file).exists());
    }
    assert!(run(&["extract", "/dev/sdz", "-o", &file]).stderr.contains("come next"));
}
