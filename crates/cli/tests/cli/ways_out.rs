//! Mistakes of a newcomer: each answer names the mistake and the way out.

use std::process::Command;

use super::run::{Bench, SMALL_TRACE, command, finish, run, stdout};

/// Runs a command that must fail, checks that stdout is empty, and returns stderr.
fn refused(args: &[&str]) -> String {
    let ran = run(args);
    assert_ne!(ran.code, 0, "{args:?}: {}", ran.stdout);
    assert_eq!(ran.stdout, "", "{args:?}");
    assert!(ran.stderr.starts_with("error: "), "{args:?}: {}", ran.stderr);
    ran.stderr
}

fn assert_says(error: &str, texts: &[&str]) {
    for text in texts {
        assert!(error.contains(text), "`{text}` is not in: {error}");
    }
    assert!(!error.contains("os error"), "{error}");
}

/// A trace of 40,000 requests in a compressed file of which the last byte is missing.
fn put_cut_trace(bench: &Bench) -> String {
    let path = bench.at("cut.csv.zst");
    let mut text = String::from("arrival_ns,op,offset_bytes,length_bytes,fua,complete_ns\n");
    for n in 0..40_000u64 {
        let page = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48;
        text +=
            &format!("{},R,{},4096,0,{}\n", n * 9_000_000, page * 4096, n * 9_000_000 + 5_000_000);
    }
    bench.put("whole.csv", &text);
    stdout(&["trace", "convert", &bench.at("whole.csv"), &path]);
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    path
}

#[test]
fn truncated_trace_names_offset_and_working_option() {
    let bench = Bench::new(SMALL_TRACE);
    let cut = &*put_cut_trace(&bench);
    let bytes = std::fs::metadata(cut).unwrap().len();
    let out = &*bench.at("out.csv");
    let offset = format!("cut.csv.zst: its zstd data break off at byte {}", grouped(bytes));
    let said = [&*offset, "records come before that"];
    for args in [
        &["trace", "info", cut][..],
        &["trace", "characterize", cut],
        &["trace", "convert", cut, out],
        &["study", cut, "--drive", "tr96", "--no-scrub", "--out", &bench.at("report")],
    ] {
        let error = refused(args);
        assert_says(&error, &said);
        assert_says(&error, &["--lenient", "copy or download the file again"]);
        let made = bench.names().iter().any(|name| name.starts_with("out") || name == "report");
        assert!(!made, "{args:?}: {:?}", bench.names());
        let lenient = run(&[args, &["--lenient"]].concat());
        assert_eq!(lenient.code, 0, "{args:?}: {}", lenient.stderr);
        let all = lenient.stdout + &lenient.stderr;
        assert!(all.contains("its zstd data break off at byte "), "{args:?}: {all}");
        let _ = std::fs::remove_file(out);
    }
    let sim =
        ["sim", &bench.at("sim.toml"), "--set", &format!("workload.file={cut}")].map(str::to_owned);
    let sim: Vec<&str> = sim.iter().map(String::as_str).collect();
    let error = refused(&sim);
    assert_says(&error, &[said[0], "--set workload.lenient=true reads"]);
    let ran = run(&[&sim[..], &["--set", "workload.lenient=true"]].concat());
    assert!(ran.code == 0 && ran.stderr.contains("the rest is left out"), "{}", ran.stderr);
}

fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().map(|g| std::str::from_utf8(g).unwrap()).collect();
    groups.join(",")
}

#[test]
fn compressed_file_unreadable_offers_no_lenience() {
    let bench = Bench::new(SMALL_TRACE);
    std::fs::write(bench.at("a.csv.gz"), b"\x1f\x8b\x08 and no gzip behind").unwrap();
    let error = refused(&["trace", "info", &bench.at("a.csv.gz")]);
    assert_says(&error, &["a.csv.gz: its gzip data are damaged", "no part of it can be read"]);
    assert!(!error.contains("--lenient"), "{error}");
}

#[test]
fn trace_with_bom_equals_without() {
    let bench = Bench::new(&format!("\u{feff}{SMALL_TRACE}"));
    let copy = bench.at("copy.csv");
    stdout(&["trace", "convert", &bench.at("trace.csv"), &copy]);
    assert_eq!(std::fs::read_to_string(copy).unwrap(), SMALL_TRACE);
}

#[test]
fn empty_trace_is_called_empty() {
    let bench = Bench::new("");
    for args in [&["trace", "info"][..], &["study"]] {
        let error = refused(&[args, &[&bench.at("trace.csv")]].concat());
        assert_says(
            &error,
            &["trace.csv: is empty: it holds no requests", "record or copy it again"],
        );
        assert!(!error.contains("--format"), "{error}");
    }
    let error = refused(&["sim", &bench.at("sim.toml")]);
    assert_says(&error, &["trace.csv: is empty", "record or copy it again"]);
    assert!(!error.contains("workload.format"), "{error}");
}

#[test]
fn wrong_seed_answered_with_range() {
    let bench = Bench::new(SMALL_TRACE);
    let (trace, sim) = (&*bench.at("trace.csv"), &*bench.at("sim.toml"));
    let range = "a whole number of 0 to 9223372036854775807";
    for verb in [&["study", trace][..], &["sim", sim], &["reproduce", "osdi00.fig2"]] {
        for seed in ["abc", "-1", "9223372036854775808", "99999999999999999999", "1.5", ""] {
            let seed_is = format!("--seed={seed}");
            let error = refused(&[verb, &[&seed_is]].concat());
            assert_says(&error, &[&format!("'{seed}' for '--seed <SEED>'"), range]);
        }
    }
    for seed in ["abc", "-1", "9223372036854775808", "1.5"] {
        let set = format!("seed={seed}");
        let error = refused(&["sim", sim, "--set", &set]);
        assert_says(&error, &[&format!("--set {set}: `seed` is "), range]);
        bench.put("seed.toml", &format!("seed = {seed}\nworkload = {{ kind = \"closed\" }}\n"));
        let error = refused(&["sim", &bench.at("seed.toml")]);
        // Without quotes `abc` is no value of TOML at all.
        let says = if seed == "abc" { "abc" } else { "9223372036854775807" };
        assert_says(&error, &["seed.toml", seed, says]);
    }
}

#[test]
fn ambiguous_window_refused_with_both_forms() {
    let bench = Bench::new(SMALL_TRACE);
    let (trace, sim) = (&*bench.at("trace.csv"), &*bench.at("sim.toml"));
    let allowed = "a fraction of 0 to 1, as 0.4, or 0% to 1000%, as 40%";
    for window in ["9", "1001%", "-1%", "x"] {
        let error = refused(&["study", trace, "--policy", &format!("sptf-sw:{window}")]);
        assert_says(&error, &[&format!("`{window}`"), allowed]);
        let set = format!("scheduler.window={window}");
        let error = refused(&["sim", sim, "--set", "scheduler.policy=sptf-sw", "--set", &set]);
        assert_says(&error, &[&set, &format!("`{window}`"), allowed]);
    }
    let config = |window: &str| {
        let set = format!("scheduler={{ policy = \"sptf-sw\", window = {window} }}");
        let document = super::run::document(&["sim", sim, "--json", "--set", &set]);
        document["config"]["scheduler"]["window"].clone()
    };
    assert_eq!([config("0.6"), config("\"60%\"")], [0.6, 0.6]);
    assert_eq!(config("\"900%\""), "900%");
}

#[test]
fn other_policy_set_over_old_parameter() {
    let bench = Bench::new(SMALL_TRACE);
    let aged = &*bench.at("aged.toml");
    let scheduler = "scheduler = { policy = \"asatf\", age_factor = 0.5 }";
    bench.put(
        "aged.toml",
        &format!(
            "drive = \"tr96\"\n{scheduler}\nworkload = {{ kind = \"closed\", requests = 10 }}\n"
        ),
    );
    let config = |sets: &[&str]| {
        let sets = sets.iter().flat_map(|set| ["--set", set]);
        let args: Vec<&str> = ["sim", aged, "--json"].into_iter().chain(sets).collect();
        super::run::document(&args)["config"]["scheduler"].to_string()
    };
    assert_eq!(config(&["scheduler.policy=fcfs"]), r#"{"policy":"fcfs"}"#);
    assert_eq!(config(&["scheduler.age_factor="]), r#"{"age_factor":0.01,"policy":"asatf"}"#);
    let error = refused(&["sim", aged, "--set", "scheduler.age_facto="]);
    assert_says(&error, &["--set scheduler.age_facto=: ", "is not in it: leave this out"]);
    let help = stdout(&["sim", "--help"]);
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(help.contains("KEY= removes the key") && help.contains("Another scheduler.policy"));
}

#[test]
fn output_unwritable_blames_output() {
    let bench = Bench::new(SMALL_TRACE);
    let trace = &*bench.at("trace.csv");
    std::fs::create_dir(bench.at("folder.csv")).unwrap();
    for (output, says) in [
        ("nosuch/out.csv", "there is no folder "),
        ("nosuch/out.parquet", "there is no folder "),
        ("trace.csv/out.csv", "is not a folder: choose another"),
        ("folder.csv", "is a folder, not a file: give the name of a file in it"),
    ] {
        let output = bench.at(output);
        let error = refused(&["trace", "convert", trace, &output]);
        assert!(error.starts_with(&format!("error: {output}: ")), "{error}");
        assert_says(&error, &[says]);
        assert!(!error.contains("the path of a trace"), "{error}");
    }
    assert_eq!(bench.names(), ["folder.csv", "sim.toml", "trace.csv"]);
}

/// Renaming a finished file to /dev/null would take its place.
#[test]
#[cfg(unix)]
fn device_not_replaced_by_report() {
    let bench = Bench::new(SMALL_TRACE);
    for args in [
        &["sim", &bench.at("sim.toml"), "--report", "/dev/null"][..],
        &["reproduce", "osdi00.fig2", "--quick", "--report", "/dev/full"],
    ] {
        let error = refused(args);
        assert_says(&error, &["is a device or a pipe", "give the name of a file"]);
    }
    assert!(!std::fs::metadata("/dev/null").unwrap().is_file());
}

#[test]
fn drive_from_other_file_kind_is_identified() {
    let bench = Bench::new(SMALL_TRACE);
    let (trace, sim) = (&*bench.at("trace.csv"), &*bench.at("sim.toml"));
    let set = format!("drive={trace}");
    for (args, file, is) in [
        (&["drive", "show", trace][..], trace, "a trace"),
        (&["drive", "show", sim], sim, "an experiment"),
        (&["drive", "scale", trace, "--years", "5"], trace, "a trace"),
        (&["drive", "validate", trace, trace], trace, "a trace"),
        (&["study", trace, "--drive", trace, "--out", &bench.at("out")], trace, "a trace"),
        (&["sim", sim, "--set", &set], trace, "a trace"),
    ] {
        let error = refused(args);
        assert_says(
            &error,
            &[&format!("{file}: is {is}, and a drive is wanted"), "`freewheel drive list`"],
        );
    }
}

#[test]
fn drive_from_unknown_file_names_wanted() {
    let bench = Bench::new(SMALL_TRACE);
    let says = ["README.md: is no TOML document (TOML parse error at line", "a drive is wanted"];
    let out = &*bench.at("out");
    for args in [
        &["drive", "show", "README.md"][..],
        &["study", &bench.at("trace.csv"), "--drive", "README.md", "--out", out],
    ] {
        assert_says(&refused(args), &[&says[..], &["drive show NAME --toml"]].concat());
    }
    // Of a TOML file the fault itself is shown.
    bench.put("mine.toml", "name = \n");
    assert_says(&refused(&["drive", "show", &bench.at("mine.toml")]), &["line 1", "name = "]);
}

#[test]
fn drive_file_not_over_existing_file() {
    let bench = Bench::new(SMALL_TRACE);
    let trace = &*bench.at("trace.csv");
    for args in [
        &["drive", "scale", "tr96", "--years", "1", "-o", trace][..],
        &["drive", "import", trace, "-o", trace],
        &["extract", "emulated:tr96", "-o", trace],
    ] {
        assert_says(&refused(args), &["trace.csv: is there already", "choose another name"]);
    }
    bench.put("mine.toml", &stdout(&["drive", "show", "tr96", "--toml"]));
    let mine = &*bench.at("mine.toml");
    for args in [
        &["drive", "show", mine, "--html", mine][..],
        &["drive", "validate", mine, trace, "--report", mine],
        &["drive", "validate", mine, trace, "--report", trace],
        &["trace", "convert", trace, trace],
        &["sim", &bench.at("sim.toml"), "--set", &format!("drive={mine}"), "--report", mine],
    ] {
        assert_says(&refused(args), &[": is what is read", "choose another name"]);
    }
    assert_eq!(std::fs::read_to_string(trace).unwrap(), SMALL_TRACE);
}

#[test]
fn header_names_missing_and_wanted_columns() {
    let wanted = "write arrival_ns,op,offset_bytes,length_bytes,fua,complete_ns";
    for (header, says) in [
        (
            "time_ns,op,offset_bytes,length_bytes,fua,complete_ns",
            "missing: arrival_ns; not known: time_ns",
        ),
        (
            "arrival_us,op,offset,length_bytes,fua",
            "missing: arrival_ns, offset_bytes, complete_ns; not known: arrival_us, offset",
        ),
        ("op,arrival_ns,offset_bytes,length_bytes,fua,complete_ns", "the order or the number"),
    ] {
        let bench = Bench::new(&format!("{header}\n1,R,0,4096,0,\n2,R,0,4096,0,\n"));
        let error = refused(&["trace", "info", &bench.at("trace.csv")]);
        assert_says(&error, &["header is `", says, wanted, "change its first line"]);
        assert!(!error.contains("not a whole number"), "{error}");
    }
    // Names of other people's columns are no header of ours, and a trace needs none.
    let other = Bench::new("time,lba,sectors\n1,2,3\n");
    let error = refused(&["trace", "info", &other.at("trace.csv")]);
    assert_says(&error, &["its format was not recognised", "`freewheel trace formats`"]);
    let none = Bench::new("1,R,0,4096,0,\n2,R,0,4096,0,\n");
    assert!(stdout(&["trace", "info", &none.at("trace.csv")]).contains("freewheel-csv"));
}

#[test]
fn scrub_effort_of_nothing_is_refused() {
    let bench = Bench::new(SMALL_TRACE);
    let (trace, out) = (&*bench.at("trace.csv"), &*bench.at("out"));
    let ran = run(&["study", trace, "--scrub-effort", "0s", "--out", out]);
    assert_eq!((ran.code, &*ran.stdout), (2, ""));
    assert_says(&ran.stderr, &["--scrub-effort: ", "1s to 1d are allowed", "`--no-scrub`"]);
}

#[test]
fn toml_reader_identifies_json_and_unquoted() {
    let bench = Bench::new(SMALL_TRACE);
    for (text, says) in [
        ("{ \"drive\": \"tr96\" }", "this is JSON, and TOML is needed"),
        ("drive = tr96\n", "a text needs quotes"),
    ] {
        bench.put("other.toml", text);
        assert_says(&refused(&["sim", &bench.at("other.toml")]), &["other.toml", says]);
        assert_says(&refused(&["drive", "show", &bench.at("other.toml")]), &["other.toml", says]);
    }
    std::fs::write(bench.at("other.toml"), b"\xff\xfed\0").unwrap();
    assert_says(&refused(&["sim", &bench.at("other.toml")]), &["UTF-16", "save it as UTF-8"]);
}

#[test]
fn output_does_not_replace_input() {
    let bench = Bench::new(SMALL_TRACE);
    let (trace, sim) = (&*bench.at("trace.csv"), &*bench.at("sim.toml"));
    for read in [trace, sim] {
        let error = refused(&["sim", sim, "--report", read]);
        assert_says(&error, &[&format!("{read}: is what is read"), "choose another name"]);
    }
    assert_eq!(std::fs::read_to_string(trace).unwrap(), SMALL_TRACE);
}

#[test]
fn option_number_answered_with_allowed_range() {
    let bench = Bench::new(SMALL_TRACE);
    let (trace, copy) = (&*bench.at("trace.csv"), &*bench.at("copy.csv"));
    let device = "'x' for '--device <N>': write a whole number of 0 to 4294967295";
    assert_says(&refused(&["study", trace, "--device", "x"]), &[device]);
    assert_says(&refused(&["trace", "convert", trace, copy, "--device", "x"]), &[device]);
    let error = refused(&["trace", "convert", trace, copy, "--device", "7"]);
    assert_says(&error, &["trace.csv: the trace has no device 7: its devices are 0"]);
    let error = refused(&["drive", "scale", "tr96", "--years", "x"]);
    assert_says(&error, &["'x' for '--years <N>': write a number"]);
    let error = refused(&["drive", "scale", "tr96", "--years", "1000"]);
    assert_says(&error, &["0.01 to 100 are allowed", "fewer --years"]);
    let error = refused(&["drive", "scale", "tr96", "--rpm", "15000"]);
    assert_says(&error, &["'15000' for '--rpm", "for a speed write 15000rpm"]);
    assert!(!error.contains("--years"), "{error}");
    let error = refused(&["drive", "scale", "tr96", "--seek", "500"]);
    assert_says(&error, &["the factor `seek` is 500", "give --seek"]);
    assert!(!error.contains("--years"), "{error}");
    let error = refused(&["sim", &bench.at("sim.toml"), "--set", "foo.bar=1"]);
    assert_says(&error, &["--set foo.bar=1: there is no key `foo`"]);
    assert!(!error.contains("the file has it"), "{error}");
    assert_eq!(bench.names(), ["sim.toml", "trace.csv"]);
}

#[test]
fn wrong_format_answered_with_likely_one() {
    let bench = Bench::new(SMALL_TRACE);
    let error = refused(&["trace", "info", &bench.at("trace.csv"), "--format", "msr-csv"]);
    assert_says(
        &error,
        &["line 1 ", "read as msr-csv, but looks like freewheel-csv: leave --format out"],
    );
    let error = refused(&["sim", &bench.at("sim.toml"), "--set", "workload.format=spc"]);
    assert_says(&error, &["read as spc, but looks like freewheel-csv: leave workload.format out"]);
}

#[test]
fn trace_without_requests_is_refused() {
    let bench = Bench::new("arrival_ns,op,offset_bytes,length_bytes,fua,complete_ns\n");
    let header = "arrival_ns,op,offset_bytes,length_bytes,fua,complete_ns\n";
    bench.put("flushes.csv", &format!("{header}0,F,0,0,0,5\n9,F,0,0,0,15\n"));
    let error = refused(&["study", &bench.at("flushes.csv"), "--out", &bench.at("out")]);
    assert_says(&error, &["no read and no write", "`freewheel trace info`"]);
    let error = refused(&["study", &bench.at("trace.csv"), "--out", &bench.at("out")]);
    assert_says(&error, &["trace.csv: no request comes from it", "give another one"]);
    let error = refused(&["sim", &bench.at("sim.toml")]);
    assert_says(&error, &["trace.csv: no request comes from it", "give another one"]);
}

#[test]
fn claim_list_takes_no_report() {
    assert_says(&refused(&["reproduce", "--list", "--report", "a.html"]), &["cannot be used with"]);
}

#[test]
#[cfg(target_os = "linux")]
fn pipe_needing_two_reads_is_refused() {
    let bench = Bench::new(SMALL_TRACE);
    let piped = |args: &[&str]| {
        let trace = std::fs::File::open(bench.at("trace.csv")).unwrap();
        let mut cat = std::process::Command::new("cat");
        let mut cat = cat.stdin(trace).stdout(std::process::Stdio::piped()).spawn().unwrap();
        let ran = finish(command(args).stdin(cat.stdout.take().unwrap()).output().unwrap());
        cat.wait().unwrap();
        ran
    };
    assert_eq!(piped(&["trace", "info", "/dev/stdin"]).code, 0);
    let sim = bench.at("sim.toml");
    for args in [
        &["study", "/dev/stdin", "--out", &bench.at("out")][..],
        &["sim", &sim, "--set", "workload.file=/dev/stdin"],
    ] {
        let ran = piped(args);
        assert_eq!(ran.code, 1, "{}", ran.stderr);
        assert_says(&ran.stderr, &["/dev/stdin: is a pipe or a device", "save it as a file first"]);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn full_disk_told_in_words() {
    let full = std::fs::File::create("/dev/full").unwrap();
    let ran = finish(command(&["drive", "list"]).stdout(full).output().unwrap());
    assert_says(&ran.stderr, &["standard output: there is no room left where it goes"]);
    let bench = Bench::new(SMALL_TRACE);
    let ran = super::run::run_with_files_of(
        0,
        &["trace", "convert", &bench.at("trace.csv"), &bench.at("a.csv")],
    );
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert_says(&ran.stderr, &["a.csv: the file would be larger than is allowed here"]);
    assert_eq!(bench.names(), ["sim.toml", "trace.csv"]);
}

#[test]
#[cfg(target_os = "linux")]
fn non_utf_8_name_refused_before_work() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let bench = Bench::new(SMALL_TRACE);
    let path = std::path::Path::new(&bench.at("")).join(OsStr::from_bytes(b"gr\xf6sse.csv"));
    std::fs::copy(bench.at("trace.csv"), &path).unwrap();
    let ran = finish(command(&["study"]).arg(&path).output().unwrap());
    assert_eq!(ran.code, 1);
    assert_says(&ran.stderr, &["its name is not UTF-8", "rename it"]);
    // A conversion repeats no name but on the terminal.
    let copy = path.with_extension("parquet");
    let ran = command(&["trace", "convert"]).args([&path, &copy]).output().unwrap();
    assert!(ran.status.success() && copy.exists(), "{}", String::from_utf8_lossy(&ran.stderr));
}

#[test]
fn policies_may_be_several_at_once() {
    let bench = Bench::new(SMALL_TRACE);
    let out = bench.at("out");
    let study =
        ["study", &bench.at("trace.csv"), "--drive", "tr96", "--no-scrub", "--out", &out, "--json"];
    let runs = |policies: &[&str]| stdout(&[&study[..], policies].concat());
    let listed = runs(&["--policy", "look,sptf-sw:60%"]);
    assert_eq!(listed, runs(&["--policy", "look", "--policy", "sptf-sw:0.6"]));
}

#[test]
fn study_without_room_leaves_no_folder() {
    let (bench, folder) = (Bench::new(SMALL_TRACE), tempfile::tempdir().unwrap());
    let trace = bench.at("trace.csv");
    let study = ["study", &trace, "--drive", "tr96", "--no-scrub", "--out", "new/out"];
    let ran = super::run::run_with_room_of(16 << 10, folder.path(), "true", &study);
    let Some(ran) = ran else { return };
    assert_eq!((ran.code, &*ran.stdout), (1, ""), "{}", ran.stderr);
    assert_says(&ran.stderr, &["new/out/report.html: the file system is full"]);
    let log =
        ["sim", "examples/oltp.toml", "--set", "workload.requests=100000", "--log", "l.parquet"];
    let log = [
        log[0],
        &super::run::repository().join(log[1]).display().to_string(),
        log[2],
        log[3],
        log[4],
        log[5],
    ]
    .map(str::to_owned);
    let log: Vec<&str> = log.iter().map(String::as_str).collect();
    let ran = super::run::run_with_room_of(16 << 10, folder.path(), "true", &log).unwrap();
    assert_eq!((ran.code, &*ran.stdout), (1, ""), "{}", ran.stderr);
    assert_says(&ran.stderr, &["error: l.parquet: the file system is full"]);
}

/// The pipe is gone when its trace is read: opening it again would wait for ever.
#[test]
fn named_pipe_malformed_record_not_reopened() {
    let bench = Bench::new(&SMALL_TRACE.replace("409600", "-7"));
    let pipe = bench.at("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let trace = bench.at("trace.csv");
    let limited = "cat \"$2\" > \"$1\" & exec timeout 20 \"$0\" trace info \"$1\"";
    let program = env!("CARGO_BIN_EXE_freewheel");
    let output = Command::new("sh").args(["-c", limited, program, &pipe, &trace]).output().unwrap();
    let ran = finish(output);
    assert_eq!(ran.code, 1, "124 is that of a program that hangs: {}", ran.stderr);
    assert_says(&ran.stderr, &["pipe: line 3 (record 2, ", "`-7`", "mend that record"]);
}

#[test]
fn compressed_trace_malformed_record_suggests_damage() {
    let bench = Bench::new(&SMALL_TRACE.replace("409600", "-7"));
    let packed = Command::new("gzip").arg(bench.at("trace.csv")).status().unwrap();
    assert!(packed.success());
    let error = refused(&["trace", "info", &bench.at("trace.csv.gz")]);
    let says = "the gzip data may be damaged: copy or download the file again; if that does not help, \
                mend that record, or --lenient";
    assert_says(&error, &["`-7`", says]);
}

#[test]
fn lenient_conversion_without_records_is_refused() {
    let header = "arrival_ns,op,offset_bytes,length_bytes,fua,complete_ns\n";
    let bench = Bench::new(&format!("{header}x\ny\n"));
    let convert = ["trace", "convert", &bench.at("trace.csv"), &bench.at("out.csv"), "--lenient"];
    let error = refused(&convert);
    assert_says(&error, &["trace.csv: none of its records can be read: all 2 are malformed"]);
    assert_eq!(bench.names(), ["sim.toml", "trace.csv"]);
}
