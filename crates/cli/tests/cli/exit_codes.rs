use super::run::{Bench, SMALL_TRACE, command, finish, run};

fn assert_code(code: i32, args: &[&str]) {
    let ran = run(args);
    assert_eq!(ran.code, code, "{args:?}: {}{}", ran.stdout, ran.stderr);
    assert_eq!(ran.stderr.is_empty(), code == 0, "{args:?}: {}", ran.stderr);
}

#[test]
fn exit_0_when_done() {
    assert_code(0, &["--help"]);
    assert_code(0, &["drive", "show", "atlas10k"]);
    assert_code(0, &["trace", "formats"]);
}

#[test]
fn exit_1_on_failure_of_understood() {
    let bench =
        Bench::new("arrival_ns,op,offset_bytes,length_bytes,fua,complete_ns\n0,R,x,8,0,1\n");
    let trace = &*bench.at("trace.csv");
    assert_code(1, &["trace", "info", "no/such/trace.csv"]);
    assert_code(1, &["trace", "info", trace]);
    assert_code(1, &["study", trace]);
    assert_code(1, &["sim", "no/such/experiment.toml"]);
    assert_code(1, &["sim", &bench.at("sim.toml")]);
    bench.put("sim.toml", "drive = \"nosuch\"\nworkload = { kind = \"closed\" }\n");
    assert_code(1, &["sim", &bench.at("sim.toml")]);
    bench.put("sim.toml", "drive = ");
    assert_code(1, &["sim", &bench.at("sim.toml")]);
    // The file is wrong with or without the override.
    assert_code(1, &["sim", &bench.at("sim.toml"), "--set", "seed=2"]);
}

#[test]
fn exit_1_on_claim_without_recording() {
    let bench = Bench::new(SMALL_TRACE);
    let folder = bench.at("nothing");
    let ran = run(&["reproduce", "beyond.scrub-24tb", "--quick", "--recordings", &folder]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(ran.stdout.contains("NOT RUN"), "{}", ran.stdout);
    for part in ["1 number fails", "pgbench-ext4.csv.zst is not in", &*folder, "`--recordings`"] {
        assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
    }
}

#[test]
fn exit_0_on_claim_with_generated_trace() {
    let bench = Bench::new(SMALL_TRACE);
    let (folder, page) = (bench.at("nothing"), bench.at("page.html"));
    let args = ["reproduce", "tr96.fig8", "--quick", "--recordings", &folder, "--report", &page];
    let ran = run(&args);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let page = std::fs::read_to_string(page).unwrap();
    for text in [&ran.stdout, &page] {
        assert!(text.contains("stand-in") && !text.contains("reproduced"), "{text}");
        let says = "a generated trace of the form of disksim-ascii.trace.zst, seed 1";
        for part in [says, "https://www.pdl.cmu.edu/DiskSim/", "SHA-256"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}

#[test]
fn exit_1_on_wrong_experiment_or_override() {
    let bench = Bench::new(SMALL_TRACE);
    let (good, bad) = (&*bench.at("sim.toml"), &*bench.at("bad.toml"));
    let workload = "workload = { kind = \"closed\", requests = 10 }\n";
    for (key, value) in [
        ("drive", "\"nosuch\""),
        ("scheduler.policy", "\"nosuch\""),
        ("queue_depth", "0"),
        ("array.drives", "0"),
        ("freeblock.tasks", "[{ sample_share = 2 }]"),
        ("nosuch", "1"),
    ] {
        bench.put("bad.toml", &format!("{key} = {value}\n{workload}"));
        assert_code(1, &["sim", bad]);
        assert_code(1, &["sim", good, "--set", &format!("{key}={value}")]);
    }
    assert_code(1, &["sim", good, "--set", "workload.nosuch=1"]);
    assert_code(1, &["sim", good, "--set", "workload.kind.nosuch=1"]);
}

#[test]
fn exit_2_on_wrong_command_line() {
    let bench = Bench::new(SMALL_TRACE);
    let (trace, config) = (&*bench.at("trace.csv"), &*bench.at("sim.toml"));
    assert_code(2, &[]);
    assert_code(2, &["nosuch"]);
    assert_code(2, &["sim"]);
    assert_code(2, &["sim", config, "--seed", "-1"]);
    assert_code(2, &["sim", config, "--set", "seed"]);
    assert_code(2, &["drive", "show", "nosuch"]);
    assert_code(2, &["study", trace, "--drive", "nosuch"]);
    assert_code(2, &["study", trace, "--policy", "nosuch"]);
    assert_code(2, &["study", trace, "--wrap", "--scale"]);
    assert_code(2, &["trace", "info", trace, "--format", "nosuch"]);
    assert_code(2, &["trace", "convert", trace, &bench.at("copy.txt")]);
    assert_code(2, &["reproduce", "nosuch"]);
}

#[test]
fn errors_to_stderr_also_with_json() {
    let ran = run(&["trace", "info", "no/such/trace.csv", "--json"]);
    assert_eq!((ran.code, &*ran.stdout), (1, ""));
    assert!(ran.stderr.starts_with("error: no/such/trace.csv: "), "{}", ran.stderr);
}

#[test]
#[cfg(target_os = "linux")]
fn stdout_unwritable_is_failure() {
    let full = std::fs::File::create("/dev/full").unwrap();
    let output = command(&["drive", "list"]).stdout(full).output().unwrap();
    let ran = finish(output);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.starts_with("error: standard output: "), "{}", ran.stderr);
}
