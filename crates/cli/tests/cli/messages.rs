use super::run::{Bench, SMALL_TRACE, run, stdout};

fn message(args: &[&str]) -> String {
    let ran = run(args);
    assert_ne!(ran.code, 0, "{args:?}");
    assert!(ran.stderr.starts_with("error: "), "{}", ran.stderr);
    ran.stderr
}

#[test]
fn wrong_name_answered_with_valid_names() {
    let bench = Bench::new(SMALL_TRACE);
    let drive = message(&["drive", "show", "atlas"]);
    let lists = "`freewheel drive list` shows them";
    assert!(drive.contains("`atlas`") && drive.contains(lists), "{drive}");
    assert!(drive.contains("did you mean `atlas10k`?"), "{drive}");
    let policy = message(&["study", &bench.at("trace.csv"), "--policy", "sptff"]);
    assert!(policy.contains("`sptff`") && policy.contains("sptf, sptf-sw, asatf"), "{policy}");
    let format = message(&["trace", "info", &bench.at("trace.csv"), "--format", "blktraces"]);
    let lists = "`freewheel trace formats` lists the";
    assert!(format.contains("`blktraces`") && format.contains(lists), "{format}");
    assert!(format.contains("did you mean `blktrace`?"), "{format}");
}

#[test]
fn malformed_record_named_with_value_and_help() {
    let bench = Bench::new(&SMALL_TRACE.replace("409600", "-7"));
    let error = message(&["trace", "info", &bench.at("trace.csv")]);
    assert!(error.contains("trace.csv: line 3 (record 2, ") && error.contains("`-7`"), "{error}");
    assert!(error.contains("--lenient"), "{error}");
    let error = message(&["sim", &bench.at("sim.toml")]);
    assert!(error.contains("--set workload.lenient=true"), "{error}");
}

#[test]
fn lenient_reading_says_what_it_skipped() {
    let bench = Bench::new(&SMALL_TRACE.replace("409600", "-7"));
    let ran = run(&["trace", "info", &bench.at("trace.csv"), "--lenient"]);
    assert_eq!(ran.code, 0);
    assert!(
        ran.stderr.contains("1 malformed record") && ran.stderr.contains("`-7`"),
        "{}",
        ran.stderr
    );
}

#[test]
fn trace_with_some_completions_says_count() {
    let bench = Bench::new(&SMALL_TRACE.replace(",12000000", ","));
    let said = stdout(&["trace", "info", &bench.at("trace.csv")]);
    assert!(said.contains("completions              recorded of 4 of 5 requests"), "{said}");
    let error = message(&["trace", "fidelity", &bench.at("trace.csv")]);
    assert!(error.contains("records of 4 of its 5 requests when they completed"), "{error}");
}

#[test]
fn experiment_wrong_key_shown_with_line() {
    let bench = Bench::new(SMALL_TRACE);
    bench.put("sim.toml", "drive = \"tr96\"\n\n[workload]\nkind = \"closed\"\nthinks = \"1ms\"\n");
    let error = message(&["sim", &bench.at("sim.toml")]);
    assert!(error.contains("sim.toml") && error.contains("line "), "{error}");
    assert!(error.contains("line 5: there is no key `workload.thinks`: there are "), "{error}");
    assert!(
        error.contains("`think_time_distribution`, `pattern`; did you mean `think_time`?"),
        "{error}"
    );
}

/// Faults read the same for a value in the file and by an override: origin, key, value, way out.
#[test]
fn experiment_errors_same_in_file_and_override() {
    let bench = Bench::new(SMALL_TRACE);
    let (good, bad) = (&*bench.at("good.toml"), &*bench.at("bad.toml"));
    let workload = "workload = { kind = \"closed\", requests = 10 }\n";
    bench.put("good.toml", workload);
    for (key, value, says) in [
        ("drive", "\"nosuch\"", "drive: no drive is called `nosuch`: give one that ships"),
        ("queue_depth", "0", "`queue_depth` is 0: 1 to 65536"),
        ("array.drives", "0", "array: `drives` is 0: 1 to "),
        (
            "freeblock.tasks",
            "[{ sample_share = 2 }]",
            "freeblock: tasks[0]: `sample_share` is 2: from 0.000001 to 1 is allowed",
        ),
        (
            "freeblock.tasks",
            "[{ rounds = 0 }]",
            "freeblock: tasks[0]: `rounds` is 0: at least 1 is needed; without `rounds`",
        ),
        (
            "freeblock.tasks",
            "[{ start = \"18446744073709551104B\" }]",
            "freeblock: tasks[0]: `start` is 18446744073709551104B: a whole number of blocks of 512 B is needed",
        ),
        (
            "host.behaviour.activity",
            "{ every = \"0s\", lasts = \"1ms\" }",
            "host: `behaviour.activity.every` is 0ns: 1ms to 365d are allowed",
        ),
        (
            "host.behaviour.spindle_drift",
            "\"2000ppm/1h\"",
            "host: `behaviour.spindle_drift` is 2000ppm/1h: at most 1000ppm, within 1s to 365d",
        ),
        (
            "host.scheduler.conservatism",
            "\"1s\"",
            "host: `scheduler.conservatism` is 1s: at most 100ms are allowed",
        ),
        ("host.scheduler.budget", "0", "host: `scheduler.budget` is 0: 0.000001 to 1 is allowed"),
    ] {
        bench.put("bad.toml", &format!("{key} = {value}\n{workload}"));
        let set = format!("{key}={value}");
        for (error, origin) in [
            (message(&["sim", bad]), bad),
            (message(&["sim", bad, "--set", "seed=2"]), bad),
            (message(&["sim", good, "--set", "seed=2", "--set", &set]), &*format!("--set {set}")),
        ] {
            assert!(error.starts_with(&format!("error: {origin}: {says}")), "{error}");
            assert!(error.contains("help: `freewheel "), "{error}");
        }
    }
    for (set, says) in [
        ("workload.nosuch=1", "there is no key `workload.nosuch`: there are `requests`, "),
        ("workload.kind.nosuch=1", "`kind` is a value and has no keys"),
    ] {
        let error = message(&["sim", good, "--set", "seed=2", "--set", set]);
        assert!(error.starts_with(&format!("error: --set {set}: ")), "{error}");
        assert!(error.contains(says) && error.contains("sim --schema"), "{error}");
    }
    for (key, value, says) in [
        ("read_share", "3", "`read_share` is 3: a share of 0 to 1 is needed"),
        ("size", "100B", "`size` is 100B: a multiple of 512B is needed"),
        ("size", "20GiB", "`size` is 20GiB, but the drive holds 9.20 GB"),
    ] {
        let set = format!("workload.pattern.{key}={value}");
        let error = message(&["sim", "examples/oltp.toml", "--set", "seed=2", "--set", &set]);
        assert!(error.starts_with(&format!("error: --set {set}: workload: {says}")), "{error}");
    }
}

/// The recorded trace reaches 12.3 GiB of its 16 GiB disk; the Atlas 10K holds 9.1 GB.
#[test]
fn trace_larger_than_drive_is_refused() {
    let trace = "data/recorded/pgbench-ext4.csv.zst";
    let error = message(&["study", trace, "--drive", "atlas10k"]);
    for text in ["12.3 GiB", "8.57 GiB", "larger drive (--drive NAME)", "--wrap", "--scale"] {
        assert!(error.contains(text), "{error}");
    }
    let set = ["--set", "drive=atlas10k", "--set", "workload.fit=as-is"];
    let error = message(&[&["sim", "examples/replay.toml"][..], &set].concat());
    for text in ["12.3 GiB", "8.57 GiB", "drive=NAME", "workload.fit=wrap", "workload.fit=scale"] {
        assert!(error.contains(text), "{error}");
    }
}

#[test]
fn log_of_independent_drives_is_refused() {
    let bench = Bench::new(SMALL_TRACE);
    let set = ["--set", "array.layout=independent", "--log", &bench.at("log.parquet")];
    let error = message(&[&["sim", &bench.at("sim.toml")][..], &set].concat());
    for text in ["independent drives", "array.layout=striped", "--seed", "workload.device=N"] {
        assert!(error.contains(text), "{error}");
    }
    assert_eq!(bench.names(), ["sim.toml", "trace.csv"]);
}

#[test]
fn missing_file_and_folder_told_in_words() {
    let bench = Bench::new(SMALL_TRACE);
    let (trace, folder) = (&*bench.at("trace.csv"), &*bench.at("."));
    let (sim, nosuch, copy) = (&*bench.at("sim.toml"), &*bench.at("no.toml"), &*bench.at("a.csv"));
    for (path, says) in [(nosuch, "there is no such file"), (folder, "is a folder, not a file")] {
        for (args, help) in [
            (&["sim", path][..], "the path of an experiment"),
            (&["study", path], "the path of a trace"),
            (&["trace", "info", path], "the path of a trace"),
            (&["trace", "characterize", path], "the path of a trace"),
            (&["trace", "convert", path, copy], "the path of a trace"),
            (&["drive", "show", path], "`freewheel drive list`"),
            (&["drive", "validate", path, trace], "`freewheel drive list`"),
            (
                &["study", trace, "--drive", path, "--out", &bench.at("out")],
                "`freewheel drive list`",
            ),
        ] {
            let error = message(args);
            assert!(error.starts_with(&format!("error: {path}: {says}\n")), "{args:?}: {error}");
            assert!(error.contains(help) && !error.contains("os error"), "{args:?}: {error}");
        }
        for (key, place, help) in [
            ("drive", "drive", "`freewheel drive list`"),
            ("workload.file", "workload: `file`", "by --set from the folder you are in"),
        ] {
            let set = format!("{key}={path}");
            let error = message(&["sim", sim, "--set", &set]);
            let says = format!("error: --set {set}: {place}: {path}: {says}\n");
            assert!(error.starts_with(&says) && error.contains(help), "{error}");
        }
    }
    assert_eq!(bench.names(), ["sim.toml", "trace.csv"]);
}

#[test]
fn file_of_other_kind_is_identified() {
    let bench = Bench::new(SMALL_TRACE);
    let [sim, trace, copy] = ["sim.toml", "trace.csv", "copy.parquet"].map(|name| bench.at(name));
    let (compressed, drive) = ("data/recorded/pgbench-ext4.csv.zst", "drives/tr96.toml");
    assert_eq!(run(&["trace", "convert", &trace, &copy]).code, 0);
    for (args, is, takes) in [
        (&["sim", &*trace][..], "a trace, and an experiment", "freewheel study "),
        (&["sim", &copy], "a trace, and an experiment", "--set workload.file="),
        (&["sim", compressed], "a trace, and an experiment", "--set workload.file="),
        (&["sim", drive], "a drive file, and an experiment", "--set drive="),
        (&["study", drive], "a drive file, and a trace", "study TRACE --drive "),
        (&["study", &sim], "an experiment, and a trace", "freewheel sim "),
        (&["trace", "info", &sim], "an experiment, and a trace", "freewheel sim "),
    ] {
        let (error, file) = (message(args), args.last().unwrap());
        assert!(error.starts_with(&format!("error: {file}: is {is} is wanted\n")), "{error}");
        assert!(error.contains(&format!("{takes}{file}")), "{error}");
    }
    bench.put("sim.toml", "drive = 5\n[workload]\nkind = \"closed\"\n");
    assert!(message(&["sim", &sim]).contains("line 1: `drive` is 5"));
}

#[test]
fn slip_answered_with_probable_name() {
    let bench = Bench::new(SMALL_TRACE);
    let (sim, slip) = (&*bench.at("sim.toml"), &*bench.at("sin.toml"));
    for (args, meant) in [
        (&["sim", slip][..], "sim.toml"),
        (&["study", &bench.at("trace.cvs")], "trace.csv"),
        (&["study", sim, "--policy", "sptff"], "sptf"),
        (&["study", sim, "--format", "freewheel-cvs"], "freewheel-csv"),
        (&["drive", "show", "atlas10"], "atlas10k"),
        (&["sim", sim, "--set", "drive=atlas10"], "atlas10k"),
        (&["sim", sim, "--set", "workload.fle=a"], "file"),
        (&["sim", sim, "--set", "scheduler.policy=spft"], "sptf"),
        (&["sim", sim, "--set", "freeblock.tasks=[{ kind = 'scrup' }]"], "scrub"),
    ] {
        let error = message(args);
        assert!(error.contains(&format!("; did you mean `{meant}`?")), "{args:?}: {error}");
    }
}
