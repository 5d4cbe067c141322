//! `freewheel cache` as a person runs it.

use super::run::{Bench, SMALL_TRACE, command, document, finish, run, stdout};

const SQLITE: &str = "data/recorded/sqlite-ext4.csv.zst";

/// Fails with this code, with an empty stdout, and says these texts.
fn refused(code: i32, args: &[&str], texts: &[&str]) {
    let ran = run(&[&["cache"], args].concat());
    assert_eq!((ran.code, &*ran.stdout), (code, ""), "{args:?}: {}", ran.stderr);
    for text in texts {
        assert!(ran.stderr.contains(text), "{args:?}: `{text}` is not in: {}", ran.stderr);
    }
}

#[test]
fn cache_table_fits_terminal_with_page() {
    let bench = Bench::new("");
    let out = bench.at("out");
    let text = stdout(&["cache", SQLITE, "--out", &out]);
    assert!(text.lines().count() <= 25, "{text}");
    assert!(text.lines().all(|line| line.chars().count() < 160), "{text}");
    for words in ["Footprint: 214 MiB", "W-TinyLFU", "256 MiB", "cut the mean response of reads"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let page = std::fs::read_to_string(bench.at("out/cache.html")).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("Caches for sqlite-ext4.csv.zst"));
    assert!(text.ends_with("out/cache.html\n"), "{text}");
}

#[test]
fn cache_uses_policies_sizes_runs_asked() {
    let bench = Bench::new("");
    let out = bench.at("out");
    let asked = ["--policy", "sieve,lru", "--size", "10%", "--size", "64MiB,1MiB"];
    let args = [&["cache", SQLITE, "--json", "--out", &out], &asked[..]].concat();
    let json = document(&args);
    let footprint = json["trace"]["footprint_bytes"].as_u64().unwrap();
    let tenth = footprint / 10 / 4096 * 4096;
    assert_eq!(json["sizes_bytes"], serde_json::json!([1 << 20, tenth, 64 << 20]));
    let names = |list: &serde_json::Value| -> Vec<String> {
        let list = list.as_array().unwrap().iter();
        list.map(|of| of["policy"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&json["curves"]), ["lru", "sieve"]);
    assert_eq!(names(&json["responses"]["policies"]), ["lru", "sieve"]);
    let misses = |at: usize| json["curves"][0]["miss_ratios"][at]["requests"].as_f64().unwrap();
    assert!(misses(0) >= misses(1) && misses(1) > misses(2), "{}", json["curves"]);
    let none = document(&[&args[..], &["--response", "none"]].concat());
    assert_eq!(none["responses"]["kind"], "not-asked");
    assert_eq!(none["curves"], json["curves"]);
    let written = std::fs::read_to_string(bench.at("out/cache.json")).unwrap();
    assert_eq!(serde_json::from_str::<serde_json::Value>(&written).unwrap(), none);
}

#[test]
fn cache_refuses_wrong_policy_or_size() {
    refused(2, &[SQLITE, "--policy", "s3fifo"], &["--policy", "`s3fifo`", "mean `s3-fifo`"]);
    refused(2, &[SQLITE, "--size", "64"], &["--size", "`64` has no unit", "as `1%`"]);
    refused(2, &[SQLITE, "--size", "0%"], &["--size", "`0%` is no share", "as `1%`"]);
    refused(2, &[SQLITE, "--sample", "2"], &["--sample", "`2` is no share"]);
    refused(2, &[SQLITE, "--warm-up", "100%"], &["--warm-up", "below 100%"]);
    refused(2, &[SQLITE, "--drive", "nosuch"], &["`nosuch`", "freewheel drive list"]);
    refused(2, &[SQLITE, "--size", "16TiB"], &["a cache of 16TiB is too large", "--size"]);
}

#[test]
fn cache_refuses_trace_without_reads() {
    let bench = Bench::new("");
    let trace = &*bench.at("trace.csv");
    refused(1, &[trace], &[trace, "is empty", "record or copy it again"]);
    let header = SMALL_TRACE.lines().next().unwrap();
    bench.put("trace.csv", &format!("{header}\n0,W,0,4096,0,5\n"));
    refused(1, &[trace], &[trace, "has no read", "freewheel trace info"]);
    bench
        .put("trace.csv", &format!("{header}\n0,R,0,4096,0,5\n9,W,0,4096,0,12\n19,W,0,512,0,22\n"));
    refused(1, &[trace], &[trace, "after the warm-up, its first 1 requests", "--warm-up"]);
    let counted = stdout(&["cache", trace, "--warm-up", "0%", "--out", &bench.at("out")]);
    assert!(counted.contains("1 reads of 4 KiB count"), "{counted}");
    assert_eq!(bench.names(), ["out", "sim.toml", "trace.csv"]);
}

#[test]
fn cache_without_times_has_misses_only() {
    let lines: String = (0..300).map(|at| format!("{} 1 0 {at}\n", at * 7 % 50)).collect();
    let bench = Bench::new(&lines);
    let text = stdout(&["cache", &bench.at("trace.csv"), "--out", &bench.at("out")]);
    assert!(
        text.contains("No response times: the trace, in the format arc-lis, has no times"),
        "{text}"
    );
}

#[test]
fn cache_same_bytes_for_threads_and_stdin() {
    let bench = Bench::new("");
    let cache = |threads: &str, trace: &str| {
        let out = bench.at("out");
        let args = ["cache", trace, "--sample", "50%", "--out", &out, "--json"];
        let mut command = command(&args);
        let input = std::fs::File::open(super::run::repository().join(SQLITE)).unwrap();
        let command = command.env("RAYON_NUM_THREADS", threads).stdin(input);
        let ran = finish(command.output().unwrap());
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        ran.stdout
    };
    let one = cache("1", SQLITE);
    assert!(one == cache("2", SQLITE), "the documents differ");
    assert!(one.replace(SQLITE, "stdin") == cache("2", "-"), "the documents differ");
}

/// A trace of libCacheSim in which each number is read twice with 4 KiB.
fn of_numbers(bench: &Bench, name: &str, number: impl Fn(u64) -> u64) -> String {
    let record = |at: u64| {
        let [time, size] = [at as u32, 4096].map(u32::to_le_bytes);
        let number = number(at % 200).to_le_bytes();
        [&time[..], &number, &size, &(-1i64).to_le_bytes()].concat()
    };
    let bytes: Vec<u8> = (0..400).flat_map(record).collect();
    std::fs::write(bench.at(name), bytes).unwrap();
    bench.at(name)
}

#[test]
fn cache_cautions_addresses_resembling_objects() {
    let bench = Bench::new("");
    let out = bench.at("out");
    let cache = |trace: &str, more: &[&str]| {
        let args = ["cache", trace, "--response", "none", "--out", &out];
        stdout(&[&args[..], more].concat())
    };
    let dense = of_numbers(&bench, "dense.oracleGeneral.bin", |number| number);
    let said = cache(&dense, &["--addresses"]);
    let caution = "look like numbers of objects, as they reach over the numbers that follow";
    assert!(said.contains(caution) && said.contains("give `--objects`"), "{said}");
    let page = std::fs::read_to_string(bench.at("out/cache.html")).unwrap();
    assert!(page.contains(caution));
    let json = document(&["cache", &dense, "--addresses", "--json", "--out", &out]);
    assert!(json["cautions"].to_string().contains(caution), "{json}");
    assert_eq!(json["trace"]["survey"]["numbers"]["against"], "overlap");
    assert!(!cache(&dense, &[]).contains("--objects"), "they are taken for objects");
    // Pages of a disk, of which one in 50 begins within another.
    let disk = |number: u64| number * 8 + if number % 50 == 1 { 4 } else { 0 };
    let said = cache(&of_numbers(&bench, "disk.oracleGeneral.bin", disk), &[]);
    assert!(said.contains("2.0 % of the numbers reach over another one"), "{said}");
    let pages = of_numbers(&bench, "pages.oracleGeneral.bin", |number| number * 8);
    assert!(!cache(&pages, &[]).contains("--objects"));
}

#[test]
fn cache_min_line_on_request() {
    let bench = Bench::new("");
    let out = bench.at("out");
    let args = ["cache", SQLITE, "--policy", "belady,lru", "--size", "16MiB", "--out", &out];
    let text = stdout(&args);
    assert!(text.contains("MIN") && !text.contains("SIEVE"), "{text}");
    let json = document(&[&args[..], &["--json"]].concat());
    let ratio = |at: usize| json["curves"][at]["miss_ratios"][0]["bytes"].as_f64().unwrap();
    assert_eq!(json["curves"][1]["policy"], "belady");
    assert!(0.0 < ratio(1) && ratio(1) < ratio(0), "{}", json["curves"]);
    let page = std::fs::read_to_string(bench.at("out/cache.html")).unwrap();
    assert!(page.contains("which knows the future"), "the page says what it is");
    refused(1, &[SQLITE, "--policy", "belady"], &["no cache policy that ships", "lru"]);
}

#[test]
fn cache_counts_objects_without_times() {
    let bench = Bench::new("");
    let file = bench.at("objects.csv");
    let text = "time,obj_id,obj_size,op\n1,7,600,get\n1,8,500,get\n2,7,600,get\n2,9,2000,get\n3,8,500,get\n";
    std::fs::write(&file, text).unwrap();
    let args = ["cache", &file, "--by-object", "--size", "1100B", "--policy", "lru,fifo,belady"];
    let json = document(&[&args[..], &["--json"]].concat());
    assert_eq!((&json["uses"], &json["objects"]), (&5.into(), &3.into()));
    for curve in json["curves"].as_array().unwrap() {
        // 9 is larger than the cache, and evicts none.
        let expected =
            serde_json::json!([{ "size_bytes": 1100, "misses": 3, "missed_bytes": 3100 }]);
        assert_eq!(curve["points"], expected, "{curve}");
    }
    let text = stdout(&args);
    assert!(text.contains("5 uses of 3 objects") && text.contains("60.0  60.0  60.0"), "{text}");
    refused(2, &[&file, "--by-object", "--policy", "arc"], &["arc is not defined", "sieve"]);
    refused(2, &[&file, "--by-object", "--sample", "1%"], &["--sample"]);
}
