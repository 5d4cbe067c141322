//! Memory: what takes too much of it is an error in words, and none ends by a signal.

use std::fmt::Write;
use std::process::Command;

use super::run::{Bench, Ran, finish, run};

/// Runs with this much address space at most, in KiB.
fn run_within(kib: u64, args: &[&str]) -> Ran {
    let limited = format!("ulimit -v {kib}; exec \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &limited, "sh", env!("CARGO_BIN_EXE_freewheel")]).args(args);
    finish(command.output().unwrap())
}

/// Requests of `blocks` each, one after the other.
fn trace(op: char, requests: u64, blocks: u64) -> Bench {
    let mut text = "arrival_ns,op,offset_bytes,length_bytes,fua,complete_ns\n".to_owned();
    for at in 0..requests {
        let bytes = blocks * 512;
        writeln!(text, "{},{op},{},{bytes},0,", at * 1_000_000, at * bytes).unwrap();
    }
    Bench::new(&text)
}

/// Blocks of 2 TiB, less one.
const LONGEST: u64 = u32::MAX as u64;

#[test]
fn request_too_long_is_error_with_line() {
    for op in ['R', 'W'] {
        let bench = trace(op, 2, LONGEST);
        let at = bench.at("trace.csv");
        for args in [
            &["trace", "info", &at][..],
            &["cache", &at],
            &["study", &at, "--drive", "exos-x24-24tb"],
        ] {
            let ran = run_within(1 << 20, args);
            assert_eq!(ran.code, 1, "{args:?}: {}", ran.stderr);
            assert!(ran.stderr.contains("trace.csv: line 2"), "{}", ran.stderr);
            assert!(ran.stderr.contains("4294967295"), "{}", ran.stderr);
            assert!(ran.stderr.contains("(4 GiB)"), "{}", ran.stderr);
            assert!(ran.stderr.contains("--lenient"), "{}", ran.stderr);
        }
    }
}

#[test]
fn requests_and_trims_long_take_little_memory() {
    for (op, requests, blocks, touched) in
        [('T', 200, LONGEST, 0), ('W', 2000, 1 << 23, 2000u64 << 32)]
    {
        let bench = trace(op, requests, blocks);
        let ran = run_within(400 << 10, &["trace", "info", &bench.at("trace.csv"), "--json"]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let info: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(info["footprint_bytes"], touched);
    }
}

#[test]
fn document_without_end_is_error() {
    for args in [
        &["drive", "show", "/dev/zero"][..],
        &["sim", "/dev/zero"],
        &["plan", "place", "/dev/zero"],
        &["trace", "info", "/dev/zero"],
    ] {
        let ran = run_within(1 << 20, args);
        assert_eq!(ran.code, 1, "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains("/dev/zero: is a device, not a file"), "{}", ran.stderr);
    }
    // By a pipe there is no end either.
    let endless = "yes '# a comment' | \"$@\"";
    let mut command = Command::new("sh");
    command.args(["-c", endless, "sh", env!("CARGO_BIN_EXE_freewheel")]);
    let ran = finish(command.args(["sim", "/dev/stdin"]).output().unwrap());
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("is longer than 64MiB"), "{}", ran.stderr);
}

#[test]
fn experiment_read_from_pipe() {
    let bench = Bench::new(super::run::SMALL_TRACE);
    let text = std::fs::read_to_string(bench.at("sim.toml")).unwrap();
    let text = text.replace("trace.csv", &bench.at("trace.csv"));
    bench.put("piped.toml", &text);
    let mut command = Command::new("sh");
    command.args(["-c", "cat \"$0\" | \"$@\"", &bench.at("piped.toml")]);
    command.args([env!("CARGO_BIN_EXE_freewheel"), "sim", "/dev/stdin"]);
    let ran = finish(command.output().unwrap());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

#[test]
fn server_without_memory_does_not_start() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket").display().to_string();
    for args in [
        &["emulate", "tr96", "--socket", &socket][..],
        &["serve", "emulated:tr96", "--drive", "tr96", "--socket", &socket],
    ] {
        for kib in [150_000, 800_000] {
            let ran = run_within(kib, args);
            assert_eq!(ran.code, 1, "{}", ran.stderr);
            assert!(ran.stderr.contains("RLIMIT_AS (ulimit -v) limits"), "{}", ran.stderr);
            assert!(ran.stderr.contains(", or unlimited)"), "{}", ran.stderr);
        }
    }
    assert!(run(&["drive", "list"]).code == 0 && !folder.path().join("socket").exists());
}
