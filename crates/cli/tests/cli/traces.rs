//! Traces of other people's tools: damaged ones, ones that cannot be timed, and ones on standard input.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use super::run::{Bench, Ran, SMALL_TRACE, command, finish, run, stdout};

/// A sample of the fuzz corpus.
fn sample(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    fs::read(folder.join(name)).unwrap()
}

/// Runs with these bytes on standard input.
fn piped(bytes: &[u8], args: &[&str]) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("input");
    fs::write(&path, bytes).unwrap();
    let mut cat = std::process::Command::new("cat");
    let mut cat = cat.arg(&path).stdout(Stdio::piped()).spawn().unwrap();
    let ran = finish(command(args).stdin(cat.stdout.take().unwrap()).output().unwrap());
    cat.wait().unwrap();
    ran
}

/// A text sample, and one of its fields made wrong.
struct Text {
    sample: &'static str,
    right: &'static str,
    wrong: &'static str,
    field: &'static str,
}

const fn text(
    sample: &'static str,
    right: &'static str,
    wrong: &'static str,
    field: &'static str,
) -> Text {
    Text { sample, right, wrong, field }
}

const TEXTS: [Text; 12] = [
    text("alibaba_csv/clean", "725,R", "725,X", "opcode"),
    text("tencent_csv/clean", "8,1,1627", "8,7,1627", "IOType"),
    text("tencent_bytes_csv/clean", "40960,4096", "40960,-1", "Size"),
    text("systor17/clean", "0.008044000", "soon", "Response"),
    text("hfplayer_csv/clean", "WR_IN", "TUR", "CMD.S"),
    text("flashnet_csv/clean", "146,1", "146,3", "io_type"),
    text("arc_lis/clean", "2 1 0", "2 0 0", "count"),
    text("thesios_csv/clean", "WRITE", "ERASE", "op_type"),
    text("fio_iolog/clean", "trim", "swim", "action"),
    text("fio_iolog_v2/clean", "write 774144", "write here", "offset"),
    text("mqsim/clean", "938532000 1", "938532000 one", "device"),
    text(
        "blkparse/clean",
        "144 + 256 [java]\n  8,16   5        3",
        "144 + some [java]\n  8,16   5        3",
        "blocks",
    ),
];

/// Checks that a trace in a file is refused with file, record, field and way out.
fn assert_refused(bytes: &[u8], field: &str) {
    let bench = Bench::new(SMALL_TRACE);
    let path = bench.at("damaged");
    fs::write(&path, bytes).unwrap();
    let ran = run(&["trace", "info", &path]);
    let error = ran.stderr;
    assert_eq!(ran.code, 1, "{error}");
    for says in [path.as_str(), "record ", &format!(": {field} is `"), "help: ", "--lenient"] {
        assert!(error.contains(says), "`{says}` is not in: {error}");
    }
    assert_eq!(run(&["trace", "info", "--lenient", &path]).code, 0, "{error}");
}

#[test]
fn text_trace_errors_named_with_help() {
    for Text { sample: name, right, wrong, field } in TEXTS {
        let clean = String::from_utf8(sample(name)).unwrap();
        assert!(clean.contains(right), "{name}");
        assert_refused(clean.replacen(right, wrong, 1).as_bytes(), field);
        // A record of something else, before the summary that blkparse prints last.
        let (records, rest) = clean.split_once("CPU0").unwrap_or((&clean, ""));
        let bench = Bench::new(SMALL_TRACE);
        bench.put("damaged", &format!("{records}?what is this?\n{rest}"));
        let ran = run(&["trace", "info", &bench.at("damaged")]);
        let line = format!("line {} (record ", records.lines().count() + 1);
        for says in [&line, "help: mend that record", "--lenient"] {
            assert!(ran.stderr.contains(says), "{name}: `{says}` is not in: {}", ran.stderr);
        }
        assert_eq!(ran.code, 1, "{name}");
    }
}

#[test]
fn text_trace_cut_short_names_column() {
    for Text { sample: name, .. } in TEXTS {
        let clean = String::from_utf8(sample(name)).unwrap();
        let records = clean.split("CPU0").next().unwrap().trim_end();
        let last = records.rfind('\n').unwrap() + 1;
        let cut = last + (records.len() - last) / 3;
        let bench = Bench::new(SMALL_TRACE);
        bench.put("cut", &records[..cut]);
        let ran = run(&["trace", "info", &bench.at("cut")]);
        let says = "the line ends before this column";
        assert!(ran.code == 1 && ran.stderr.contains(says), "{name}: {}", ran.stderr);
    }
}

#[test]
fn binary_trace_damage_named_with_help() {
    let changed = |name: &str, at: usize, byte: u8| {
        let mut bytes = sample(name);
        bytes[at] = byte;
        bytes
    };
    let cut = |name: &str| {
        let bytes = sample(name);
        bytes[..bytes.len() - 5].to_vec()
    };
    for (bytes, field) in [
        (cut("blktrace/v7"), "event"),
        (changed("blktrace/v7", 56 + 23, 0xff), "sector"),
        (changed("blktrace/v8", 72 + 64, 0), "magic"),
        (cut("lcs/v8"), "record"),
        (changed("lcs/v3", 8192 + 20, 99), "op"),
        (changed("lcs/v3", 8192 + 36 + 19, 9), "obj_size"),
        (cut("oracle_general/clean"), "record"),
        (changed("oracle_general/with_op", 27 + 16, 99), "op"),
        (cut("oracle_general/with_op"), "record"),
    ] {
        assert_refused(&bytes, field);
    }
}

#[test]
fn trace_of_uncertain_unit_lists_plausible_ones() {
    let bench = Bench::new(SMALL_TRACE);
    bench.put("whole", "938513 4 264719034 16 0\n938828 3 197570570 16 0\n");
    let ran = run(&["study", &bench.at("whole"), "--out", &bench.at("out")]);
    let says = ["in ms they mean 1.6 requests a second", "--time-unit ms, or --time-unit us"];
    assert!(ran.code == 1 && says.iter().all(|says| ran.stderr.contains(says)), "{}", ran.stderr);
    let whole = format!("workload.file={}", bench.at("whole"));
    let ran = run(&["sim", &bench.at("sim.toml"), "--set", &whole]);
    let says = "--set workload.time_unit=ms, or --set workload.time_unit=us";
    assert!(ran.code == 1 && ran.stderr.contains(says), "{}", ran.stderr);
    // A format that is named has its own unit.
    assert_eq!(run(&["trace", "info", "--format", "mqsim", &bench.at("whole")]).code, 0);
}

#[test]
fn traces_without_times_surveyed_not_timed() {
    let bench = Bench::new(SMALL_TRACE);
    for name in ["arc_lis/clean", "fio_iolog_v2/clean"] {
        let path = bench.at("for-caches");
        fs::write(&path, sample(name)).unwrap();
        assert_eq!(run(&["trace", "info", &path]).code, 0);
        let study = run(&["study", &path, "--out", &bench.at("out")]);
        let sim = run(&["sim", &bench.at("sim.toml"), "--set", &format!("workload.file={path}")]);
        for ran in [study, sim] {
            assert_eq!(ran.code, 1, "{name}");
            let way_out = "give a trace with the times of its requests";
            let says = ["has no times", "no response time of a disk can be told", way_out];
            for says in [&*path].into_iter().chain(says) {
                assert!(ran.stderr.contains(says), "{name}: `{says}` is not in: {}", ran.stderr);
            }
        }
        assert!(!Path::new(&bench.at("out")).exists());
    }
}

#[test]
fn cache_simulator_blocks_timed_objects_not() {
    let bench = Bench::new(SMALL_TRACE);
    for name in ["lcs/v3", "oracle_general/clean"] {
        let path = bench.at("for-caches");
        fs::write(&path, sample(name)).unwrap();
        let study = |option| {
            let out = bench.at("out");
            run(&["study", &path, "--scale", "--no-scrub", "--no-changes", option, "--out", &out])
        };
        assert_eq!(study("--addresses").code, 0, "{}", study("--addresses").stderr);
        let refused = study("--objects");
        for says in ["names objects, which have no places on a disk", "`freewheel cache`"] {
            assert!(refused.code == 1 && refused.stderr.contains(says), "{}", refused.stderr);
        }
    }
}

#[test]
fn trace_on_stdin_equals_file() {
    let bench = Bench::new(SMALL_TRACE);
    let trace = bench.at("trace.csv");
    for verb in ["info", "characterize"] {
        let of_file = run(&["trace", verb, &trace, "--json"]);
        let of_stdin = piped(SMALL_TRACE.as_bytes(), &["trace", verb, "-", "--json"]);
        assert_eq!((of_stdin.code, of_stdin.stdout), (0, of_file.stdout), "{}", of_stdin.stderr);
    }
    let (one, two) = (bench.at("one.csv"), bench.at("two.csv"));
    assert_eq!(run(&["trace", "convert", &trace, &one]).code, 0);
    assert_eq!(piped(SMALL_TRACE.as_bytes(), &["trace", "convert", "-", &two]).code, 0);
    assert_eq!(fs::read(one).unwrap(), fs::read(two).unwrap());
}

#[test]
fn study_of_stdin_equals_file() {
    let bench = Bench::new(SMALL_TRACE);
    let options = ["--drive", "tr96", "--json"];
    let (one, two) = (bench.at("one"), bench.at("two"));
    let trace = bench.at("trace.csv");
    let of_file = run(&[&["study", &trace, "--out", &one][..], &options].concat());
    let of_stdin =
        piped(SMALL_TRACE.as_bytes(), &[&["study", "-", "--out", &two][..], &options].concat());
    assert_eq!(of_stdin.code, 0, "{}", of_stdin.stderr);
    assert_eq!(of_stdin.stdout, of_file.stdout.replace(&trace, "stdin"));
    let page = fs::read_to_string(format!("{two}/report.html")).unwrap();
    assert!(page.contains("<title>stdin on "));
}

#[test]
fn stdin_error_names_no_temporary_file() {
    let bench = Bench::new(SMALL_TRACE);
    let damaged = SMALL_TRACE.replace("20000000,W", "20000000,X");
    for args in [&["trace", "info", "-"][..], &["study", "-", "--out", &bench.at("out")]] {
        let ran = piped(damaged.as_bytes(), args);
        assert_eq!(ran.code, 1);
        assert!(ran.stderr.contains("standard input: line 6 (record 5, "), "{}", ran.stderr);
    }
}

#[test]
fn trace_info_shows_busiest_of_many_devices() {
    let bench = Bench::new("");
    // Device 0 has one request, device 1 two, and so on.
    let line = |ms: usize, device: usize| format!("{ms}.000 {device} {} 8 1\n", ms * 8);
    let trace = |devices: usize| {
        let lines = (0..devices).flat_map(|ms| (ms..devices).map(move |device| line(ms, device)));
        let name = format!("{devices}.trace");
        bench.put(&name, &lines.collect::<String>());
        bench.at(&name)
    };
    let info = |trace: &str| stdout(&["trace", "info", trace, "--time-unit", "ms"]);
    let many = trace(30);
    let said = info(&many);
    for words in [
        "The busiest 20 of 30 devices:",
        "\n    29        30  6.5 %",
        "10 others have 12 % of the requests",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(!said.contains("\n     9        10 "), "{said}");
    let few = info(&trace(20));
    assert!(!few.contains("others") && few.contains("\n     0         1  0.5 %"), "{few}");
    // A message and a plan name no more.
    let refused = run(&["trace", "convert", &many, "-", "--time-unit", "ms", "--device", "99"]);
    assert_ne!(refused.code, 0);
    let place = ["plan", "place", &many, "--time-unit", "ms", "--device", "99"];
    let refused = run(&place);
    assert!(refused.stderr.contains("18, 19 and 10 others"), "{}", refused.stderr);
    let place = ["plan", "place", &many, "--time-unit", "ms", "--drive", "atlas10k"];
    let more = ["--load-time", "whole", "--requests", "1000", "--out", &bench.at("out")];
    let said = stdout(&[&place[..], &more].concat());
    assert!(said.contains("\n10 others, at most "), "{said}");
}
