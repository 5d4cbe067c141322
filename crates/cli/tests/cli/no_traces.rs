//! Files that are no traces, formats of no name, and several traces: what is said, and the way out.

use super::run::{Bench, SMALL_TRACE, run};

/// The error of a command, which must end with this code and print nothing.
fn refused(code: i32, args: &[&str]) -> String {
    let ran = run(args);
    assert_eq!((ran.code, &*ran.stdout), (code, ""), "{args:?}: {}", ran.stderr);
    ran.stderr
}

fn assert_says(error: &str, texts: &[&str]) {
    for text in texts {
        assert!(error.contains(text), "`{text}` is not in: {error}");
    }
}

#[test]
fn statistics_file_named_with_usable_recording() {
    let bench = Bench::new(SMALL_TRACE);
    bench.put("iostat.txt", "Linux 6.1\n\nDevice   r/s   w/s   rkB/s\nsda   1.0   2.0   3.0\n");
    let file = bench.at("iostat.txt");
    let out = bench.at("out");
    let says = [&*file, "is no trace, but the statistics of iostat", "blktrace -d /dev/sdb"];
    for args in [&["trace", "info", &file][..], &["study", &file, "--out", &out]] {
        assert_says(&refused(1, args), &says);
    }
    let workload = format!("workload.file={file}");
    let sim = refused(1, &["sim", &bench.at("sim.toml"), "--set", &workload]);
    assert_says(&sim, &says);
}

#[test]
fn unknown_file_answered_with_nearest_format() {
    let bench = Bench::new(SMALL_TRACE);
    bench.put("odd", "a\nfile of\nmany words\n0,8,512,r,1.5\n0,16,512,w,2.5\n");
    let error = refused(1, &["trace", "info", &bench.at("odd")]);
    assert_says(&error, &["it begins with `a`", "none of the ", "look like spc", "--format"]);
    assert!(!error.contains("hp-srt"), "{error}");
    let error = refused(2, &["trace", "info", "--format", "blktraces", &bench.at("odd")]);
    assert_says(&error, &["`freewheel trace formats`", "did you mean `blktrace`?"]);
    assert!(!error.contains("hp-srt"), "{error}");
}

#[test]
fn second_trace_answered_with_loop() {
    let bench = Bench::new(SMALL_TRACE);
    let trace = bench.at("trace.csv");
    bench.put("b.csv", SMALL_TRACE);
    let other = bench.at("b.csv");
    for verb in [&["study"][..], &["cache"], &["trace", "info"], &["trace", "characterize"]] {
        let error = refused(2, &[verb, &[&trace, &other, "c.csv"]].concat());
        let called = verb.join(" ");
        let takes = format!("`freewheel {called}` takes one trace at a time, and `{other}`");
        assert_says(&error, &[&takes, &format!("do freewheel {called} \"$trace\"; done")]);
    }
    // A word that names no file, and an option that is none, are answered as before.
    for args in [
        &["trace", "info", &trace, "--jsn"][..],
        &["drive", "list", &other],
        &["study", &trace, "--lenient", "yes"],
    ] {
        assert_says(&refused(2, args), &["unexpected argument"]);
    }
}
