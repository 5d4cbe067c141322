use super::run::{document, stdout};
use serde_json::Value;

fn result(example: &str) -> Value {
    document(&["sim", &format!("examples/{example}"), "--json"])["result"].take()
}

/// osdi00 section 3: of the head time of random requests about a third is rotation.
#[test]
fn random_example_third_of_time_rotation() {
    let stages = &result("random.toml")["stages"];
    let [seek, rotate, transfer] =
        ["seek_ns", "rotate_ns", "transfer_ns"].map(|stage| stages[stage].as_f64().unwrap());
    let share = rotate / (seek + rotate + transfer);
    assert!((0.30..0.37).contains(&share), "a share of {share}");
}

#[test]
fn shares_of_stages_request_and_all_time() {
    let columns = |electronics: &str| -> Vec<f64> {
        let sets = ["--set", "workload.requests=1000", "--set", electronics];
        let text = stdout(&[&["sim", "examples/random.toml"][..], &sets].concat());
        let shares = |stage: &str| -> Vec<f64> {
            let row = text.lines().find(|line| line.starts_with(stage)).unwrap();
            let is_share = |pair: &&[&str]| pair[1] == "%";
            let words: Vec<&str> = row.split_whitespace().collect();
            words.windows(2).filter(is_share).map(|pair| pair[0].parse().unwrap()).collect()
        };
        let [seek, rotate, transfer] = ["seek", "rotate", "transfer"].map(shares);
        let pairs = seek.iter().zip(&rotate).zip(&transfer);
        pairs.map(|((seek, rotate), transfer)| seek + rotate + transfer).collect()
    };
    // Each is rounded to a per cent.
    let is_whole = |sum: &f64| (sum - 100.0).abs() < 1.6;
    let (bare, with_buffer) = (columns("electronics=false"), columns("electronics=true"));
    assert!(bare.len() == 1 && bare.iter().all(is_whole), "{bare:?}");
    assert!(with_buffer.len() == 2 && with_buffer.iter().all(is_whole), "{with_buffer:?}");
}

#[test]
fn oltp_example_outstanding_within_clients() {
    let result = result("oltp.toml");
    assert_eq!(result["outstanding_max"], 10);
    assert_eq!(result["requests"], 20_000);
}

#[test]
fn replay_example_plays_whole_trace() {
    assert_eq!(result("replay.toml")["requests"], 110_854);
}

#[test]
fn shingled_example_reads_only_nothing_refused() {
    let result = result("shingled.toml");
    assert_eq!(result["read_response"]["count"], 5_000);
    assert_eq!(result["refused_writes"]["count"], 0);
}

#[test]
fn files_example_waits_less_than_unmoved() {
    let run = |every: &str| {
        let every = format!("workload.cooling.every={every}");
        let mut document = document(&["sim", "examples/files.toml", "--json", "--set", &every]);
        document["result"].take()
    };
    let (moved, kept) = (run("100"), run("1000000"));
    let mean = |result: &serde_json::Value| result["response"]["mean_ns"].as_f64().unwrap();
    assert!(mean(&moved) < 0.75 * mean(&kept), "{} {}", mean(&moved), mean(&kept));
    let cooling = &moved["files"]["cooling"];
    assert!(cooling["moves"].as_u64() > Some(50), "{cooling}");
    assert_eq!(kept["files"]["cooling"]["moves"], 0);
    assert_eq!(moved["disks"].as_array().unwrap().len(), 16);
}

#[test]
fn priority_example_clients_before_scrub() {
    let run = |set: &str| {
        let mut document = document(&[
            "sim",
            "examples/priority.toml",
            "--json",
            "--set",
            set,
            "--set",
            "workload.requests=4000",
        ]);
        document["result"]["response"]["mean_ns"].take().as_f64().unwrap()
    };
    let (first, alike) =
        (run("commands.clients.high_priority=true"), run("commands.clients.high_priority=false"));
    assert!(first < 0.9 * alike, "{first} {alike}");
}

#[test]
fn media_cache_example_fast_until_full() {
    let rate = |requests: &str| {
        let requests = format!("workload.requests={requests}");
        let mut document =
            document(&["sim", "examples/media-cache.toml", "--json", "--set", &requests]);
        document["result"]["requests_per_second"].take().as_f64().unwrap()
    };
    assert!(rate("20000") > 150.0);
    assert!(rate("210000") < 120.0);
}

#[test]
fn scan_example_reads_gaps_without_delay() {
    // A twentieth of the drive and once: the example itself takes its time.
    let overrides =
        ["--set", "freeblock.tasks[0].sample_share=0.05", "--set", "freeblock.tasks[0].rounds=1"];
    let mut arguments = vec!["sim", "examples/scan.toml", "--json"];
    arguments.extend(overrides);
    let mut document = document(&arguments);
    let result = document["result"].take();
    let background = &result["background"][0]["tasks"][0];
    assert_eq!(background["rounds"].as_array().unwrap().len(), 1);
    assert!(
        background["rounds"][0]["in_gaps"].as_u64()
            > background["rounds"][0]["in_passing"].as_u64()
    );
    assert_eq!(result["free"]["gaps_late"], 0);
    assert_eq!(result["free_work"]["tasks"][0]["rounds"], 1);
    assert_eq!(result["free_work"]["tasks"][0]["kind"], "sample");
    let text = stdout(&[&arguments[..2], &overrides].concat());
    for words in
        ["samples", "last blocks", "efficiency", "gained on the way", "cut short", "# regions of"]
    {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn tasks_example_serves_each_task() {
    let overrides =
        ["--set", "workload.requests=4000", "--set", "freeblock.tasks[0].sample_share=0.01"];
    let mut arguments = vec!["sim", "examples/tasks.toml"];
    arguments.extend(overrides);
    let text = stdout(&arguments);
    let said = [
        "Background task: sample",
        "Background task: scrub",
        "Background task: scan",
        "All background tasks",
        "deadline",
        "of the next one",
    ];
    for words in said {
        assert!(text.contains(words), "{words}: {text}");
    }
    arguments.push("--json");
    let document = document(&arguments);
    let tasks = document["result"]["free_work"]["tasks"].as_array().unwrap();
    let kinds: Vec<&str> = tasks.iter().map(|task| task["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["sample", "scrub", "scan"]);
    assert!(tasks[0]["rounds"].as_u64() > Some(0));
    let rate = |task: &Value| task["delivered_bytes_per_second"].as_f64().unwrap();
    assert!(tasks.iter().all(|task| rate(task) > 100_000.0), "{tasks:?}");
    assert_eq!(tasks[1]["deadline"]["deadline_ns"], 20 * 60 * 1_000_000_000u64);
    assert_eq!(document["result"]["free"]["gaps_late"], 0);
}

#[test]
fn backup_example_has_every_block() {
    let mut arguments =
        vec!["sim", "examples/backup.toml", "--set", "freeblock.tasks[0].length=256MiB"];
    let text = stdout(&arguments);
    for words in ["Background task: backup", "1 complete", "copies", "which waited"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    arguments.push("--json");
    let mut document = document(&arguments);
    let task = document["result"]["free_work"]["tasks"][0].take();
    let delivered = &task["delivered"];
    let ways = ["in_gaps", "in_passing", "in_idle", "promoted", "copied"];
    let came: u64 = ways.iter().map(|way| delivered[way].as_u64().unwrap()).sum();
    assert_eq!((Some(came), task["blocks"].as_u64()), (Some(4096), Some(4096)));
    assert!(delivered["copied"].as_u64() > Some(10), "{delivered}");
    assert!(task["expected_end_ns"].is_null() && task["ended_ns"].as_u64() > Some(0));
}

#[test]
fn write_example_writes_blocks_without_delay() {
    let mut arguments =
        vec!["sim", "examples/write.toml", "--set", "freeblock.tasks[0].length=32MiB"];
    let text = stdout(&arguments);
    for words in ["Background task: write", "1 complete", "superseded", "it ended after"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    arguments.push("--json");
    let document = document(&arguments);
    let task = &document["result"]["free_work"]["tasks"][0];
    let delivered = &task["delivered"];
    let ways = ["in_gaps", "superseded"].map(|way| delivered[way].as_u64().unwrap());
    assert_eq!((ways[0] + ways[1], task["blocks"].as_u64()), (8192, Some(8192)));
    assert!(ways[0] > 8000, "{delivered}");
    assert_eq!(document["result"]["free"]["gaps_late"], 0);
}

/// Numbers of what came of the blocks of an example's first task, and its whole result.
fn used(arguments: &[&str], kind: &str) -> (impl Fn(&str) -> u64 + use<>, serde_json::Value) {
    let mut result = document(&[arguments, &["--json"]].concat())["result"].take();
    let used = result["free_work"]["tasks"][0]["use"][kind].take();
    (move |key: &str| used[key].as_u64().unwrap_or_else(|| panic!("{key} of {used}")), result)
}

#[test]
fn compare_example_pairs_within_memory() {
    let length =
        ["--set", "freeblock.tasks[0].length=16MiB", "--set", "freeblock.tasks[0].rounds=1"];
    let arguments = [&["sim", "examples/compare.toml"], &length[..]].concat();
    let text = stdout(&arguments);
    for words in ["Background task: comparison", "1 complete", "4,096 pairs of 4.00 KiB"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let (compared, result) = used(&arguments, "compare");
    assert_eq!(compared("compared"), 4096);
    let unmatched = compared("unmatched_bytes_max");
    assert!(unmatched > 1 << 20 && unmatched <= compared("memory_bytes"), "{unmatched}");
    let task = &result["free_work"]["tasks"][0];
    let ways = ["in_gaps", "in_passing"].map(|way| task["delivered"][way].as_u64().unwrap());
    assert_eq!((ways[0] + ways[1], task["rounds"].as_u64()), (8192, Some(1)));
    assert_eq!(result["free"]["gaps_late"], 0);
}

/// Numbers of the cache in the result of an example with these overrides.
fn cache_of(example: &str, overrides: &[&str]) -> (serde_json::Value, serde_json::Value) {
    let overrides = overrides.iter().flat_map(|text| ["--set", text]);
    let arguments: Vec<&str> = ["sim", example, "--json", "--set", "workload.requests=5000"]
        .into_iter()
        .chain(overrides)
        .collect();
    let mut result = document(&arguments)["result"].take();
    (result["cache"].take(), result)
}

#[test]
fn prefetch_example_hits_gap_reads() {
    let text = stdout(&["sim", "examples/prefetch.toml", "--set", "workload.requests=5000"]);
    assert!(text.contains("prefetched free blocks"), "{text}");
    let (with, _) = cache_of("examples/prefetch.toml", &[]);
    let (without, _) =
        cache_of("examples/prefetch.toml", &["cache.opportunistic.free_blocks=false"]);
    let misses = |cache: &serde_json::Value| cache["read_misses"].as_u64().unwrap();
    assert!(misses(&with) + 50 < misses(&without), "{with}, {without}");
    assert_eq!(without["opportunistic_bytes"], 0);
}

#[test]
fn write_back_example_mostly_free() {
    let text = stdout(&["sim", "examples/write-back.toml", "--set", "workload.requests=5000"]);
    assert!(text.contains("in rotational gaps"), "{text}");
    let (with, result) = cache_of("examples/write-back.toml", &[]);
    let of = |key: &str| with[key].as_u64().unwrap();
    assert_eq!(Some(of("writes")), result["write_response"]["count"].as_u64());
    assert!(of("writes") > 1500 && 5 * of("destages") < of("writes"), "{with}");
    assert!(of("in_gaps_bytes") > 4096 * of("writes"), "{with}");
    let plain = ["cache.write_buffer.destage_in_gaps=false"];
    let (without, slower) = cache_of("examples/write-back.toml", &plain);
    assert_eq!(without["in_gaps_bytes"], 0);
    let rate = |run: &serde_json::Value| run["requests_per_second"].as_f64().unwrap();
    assert!(rate(&result) > rate(&slower), "{result}, {slower}");
}

#[test]
fn postmark_example_faster_with_free_cleaning() {
    let last = |cleaner: &str| {
        let cleaner = format!("workload.cleaner={cleaner}");
        // So full that there is something to clean in a short pass.
        let overrides = ["--set", &cleaner, "--set", "workload.transactions=8000"];
        let full = ["--set", "workload.utilisation=0.93", "--set", "workload.passes=1"];
        let arguments = [&["sim", "examples/postmark.toml"], &overrides[..], &full[..]].concat();
        let mut result = document(&[&arguments[..], &["--json"]].concat())["result"].take();
        result["postmark"]["passes"][0].take()
    };
    let text = stdout(&["sim", "examples/postmark.toml", "--set", "workload.transactions=500"]);
    for head in [
        "PostMark",
        "pass 2",
        "elapsed, s",
        "segments given to free reads",
        "live blocks read free",
    ] {
        assert!(text.contains(head), "{head}: {text}");
    }
    let [original, freeblock, ideal] = ["original", "freeblock", "ideal"].map(last);
    let rate = |pass: &serde_json::Value| pass["transactions_per_second"].as_f64().unwrap();
    assert!(rate(&freeblock) > 1.2 * rate(&original), "{original} {freeblock}");
    assert!(rate(&ideal) > 1.5 * rate(&original), "{original} {ideal}");
    assert_eq!(original["segments_cleaned"], ideal["segments_cleaned"]);
    assert!(freeblock["free_copied_blocks"].as_u64() > Some(1000), "{freeblock}");
    assert_eq!(original["free_copied_blocks"], 0);
}

#[test]
fn postmark_result_says_foreign_and_cleaner_limits() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("sim.html");
    let said = |sets: &[&str]| {
        let full = ["workload.transactions=8000", "workload.utilisation=0.93", "workload.passes=1"];
        let sets = full.iter().chain(sets).flat_map(|set| ["--set", set]);
        let report = ["--report", page.to_str().unwrap()];
        let arguments = ["sim", "examples/postmark.toml"].into_iter().chain(sets).chain(report);
        let text = stdout(&arguments.collect::<Vec<_>>());
        let page = std::fs::read_to_string(&page).unwrap();
        for head in ["<h2>PostMark</h2>", "elapsed, s", "live blocks read free"] {
            assert!(page.contains(head), "{head}: {page}");
        }
        let all = [
            "cleaner = \"original\"",
            "the drive keeps rotational latency",
            "makes no difference here",
        ];
        all.map(|words| {
            let escaped = words.replace('"', "&quot;");
            assert_eq!(text.contains(words), page.contains(&escaped), "{words}");
            text.contains(words)
        })
    };
    let ideal = "workload.cleaner=ideal";
    for (sets, which) in [
        (&[][..], [false; 3]),
        (&[ideal], [true, false, false]),
        (&["electronics=true"], [false, true, false]),
        (&["electronics=true", "keep_free_blocks_before=false"], [false; 3]),
        (&["scheduler.policy=sptf"], [false, false, true]),
    ] {
        assert_eq!(said(sets), which, "{sets:?}");
    }
}

#[test]
fn idle_example_separates_idle_cost_from_free() {
    let mut arguments = vec!["sim", "examples/idle.toml", "--set", "workload.requests=500"];
    let text = stdout(&arguments);
    assert!(text.contains("Idle time") && text.contains("of them delayed"), "{text}");
    arguments.push("--json");
    let mut document = document(&arguments);
    let cost = document["result"]["free_work"]["idle_cost"].take();
    assert!(cost["starts"].as_u64() > Some(100) && cost["response_ns_added"].as_f64() > Some(0.0));
    assert!(
        document["result"]["free_work"]["tasks"][0]["delivered"]["in_idle"].as_u64() > Some(1000)
    );
    assert_eq!(document["result"]["free"]["gaps"], 0);
    arguments.extend(["--set", "keep_free_blocks_before=false"]);
    assert!(self::document(&arguments)["result"]["free"]["gaps"].as_u64() > Some(100));
}

#[test]
fn host_scheduler_example_predicts_drive() {
    let result = result("outside.toml");
    let seen = |key: &str| result["host"][key].as_f64().unwrap();
    assert!(seen("within_50us") > 0.97 * seen("predicted"), "{}", result["host"]);
    assert!(seen("late_behind_free") < 0.002 * seen("predicted"), "{}", result["host"]);
    assert!(result["free"]["bytes_per_second"].as_f64().unwrap() > 5e7);
    // Its seeks are off by 50 us.
    let margins = result["margins"].as_array().unwrap();
    let sum = |key: &str| margins.iter().map(|of| of[key].as_u64().unwrap()).sum::<u64>();
    assert!(sum("movements") > 1000 && 10 * sum("late") < sum("movements"), "{margins:?}");
    let known: Vec<_> = margins.iter().filter(|of| of["movements"].as_u64() > Some(400)).collect();
    assert!(!known.is_empty(), "{margins:?}");
    for of in known {
        let us = of["margin_ns"].as_u64().unwrap() / 1000;
        assert!((20..100).contains(&us), "{of}");
    }
}

#[test]
fn examples_all_have_tests() {
    let folder = std::fs::read_dir(super::run::repository().join("examples")).unwrap();
    let mut names: Vec<String> =
        folder.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.retain(|name| name.ends_with(".toml"));
    names.sort();
    assert_eq!(
        names,
        [
            "backup.toml",
            "compare.toml",
            "files.toml",
            "idle.toml",
            // A snapshot, which `plans` runs.
            "jbod.toml",
            "media-cache.toml",
            "oltp.toml",
            "outside.toml",
            "postmark.toml",
            "prefetch.toml",
            "priority.toml",
            "random.toml",
            "replay.toml",
            "scan.toml",
            "shingled.toml",
            "tasks.toml",
            "write-back.toml",
            "write.toml"
        ]
    );
}
