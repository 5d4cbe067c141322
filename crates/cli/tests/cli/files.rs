use super::run::{Bench, Ran, SMALL_TRACE, command, document, run, run_with_room_of, stdout};

const INPUTS: [&str; 2] = ["sim.toml", "trace.csv"];

/// A request of 1 GiB, which `tr96` with its 0.5 GB refuses when it comes.
fn too_large() -> String {
    SMALL_TRACE.replace("20000000,W,0,4096", "20000000,W,0,1073741824")
}

#[test]
fn failed_run_leaves_no_file() {
    let bench = Bench::new(&too_large());
    let (log, report) = (bench.at("log.parquet"), bench.at("report.html"));
    let outputs = ["--log", &log, "--report", &report, "--set", "workload.fit=wrap"];
    let ran = run(&[&["sim", &bench.at("sim.toml")][..], &outputs].concat());
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("larger than the drive"), "{}", ran.stderr);
    let (trace, out) = (bench.at("trace.csv"), bench.at("new/out"));
    assert_eq!(run(&["study", &trace, "--drive", "tr96", "--wrap", "--out", &out]).code, 1);
    assert_eq!(bench.names(), INPUTS);
}

#[test]
fn failed_conversion_leaves_no_file() {
    let bench = Bench::new(&SMALL_TRACE.replace("20000000,W", "20000000,X"));
    for output in ["copy.parquet", "copy.csv.zst"] {
        let ran = run(&["trace", "convert", &bench.at("trace.csv"), &bench.at(output)]);
        assert_eq!(ran.code, 1, "{}", ran.stderr);
    }
    assert_eq!(bench.names(), INPUTS);
}

#[test]
fn report_unwritable_known_before_run() {
    let bench = Bench::new(SMALL_TRACE);
    for name in ["nosuch/report.html", ""] {
        let ran = run(&["sim", &bench.at("sim.toml"), "--report", &bench.at(name)]);
        assert_eq!((ran.code, &*ran.stdout), (1, ""), "{}", ran.stderr);
    }
    let in_a_file = bench.at("trace.csv/out");
    let ran = run(&["study", &bench.at("trace.csv"), "--drive", "tr96", "--out", &in_a_file]);
    assert_eq!((ran.code, &*ran.stdout), (1, ""), "{}", ran.stderr);
    assert_eq!(bench.names(), INPUTS);
}

#[test]
fn folder_made_in_part_is_removed() {
    let bench = Bench::new(SMALL_TRACE);
    // No file system has names of 300 bytes; the folder around it can be made.
    let out = bench.at(&format!("deep/{}", "n".repeat(300)));
    let ran = run(&["study", &bench.at("trace.csv"), "--drive", "tr96", "--out", &out]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert_eq!(bench.names(), INPUTS);
}

#[test]
fn folder_missing_named_before_run() {
    let bench = Bench::new(SMALL_TRACE);
    let (sim, folder, out) =
        (bench.at("sim.toml"), bench.at("nosuch"), bench.at("nosuch/out.parquet"));
    let control = bench.at("control");
    for args in [
        &["extract", "emulated:tr96", "-o", &out][..],
        &["backup", &out, "--control", &control],
        &["scrub", "--manifest", &out, "--control", &control],
        &["sim", &sim, "--report", &out],
        &["sim", &sim, "--log", &out],
    ] {
        let ran = run(args);
        assert_eq!((ran.code, &*ran.stdout), (1, ""), "{args:?}: {}", ran.stderr);
        let says = format!("{out}: there is no folder {folder}: create it, or choose another");
        assert!(ran.stderr.contains(&says), "{args:?}: {}", ran.stderr);
    }
    assert_eq!(bench.names(), INPUTS);
}

#[test]
fn log_not_parquet_refused_before_run() {
    let bench = Bench::new(SMALL_TRACE);
    for name in ["log.csv", "log.csv.zst", "log"] {
        let ran = run(&["sim", &bench.at("sim.toml"), "--log", &bench.at(name)]);
        assert_eq!((ran.code, &*ran.stdout), (2, ""), "{name}: {}", ran.stderr);
        for says in [&bench.at(name), "--log", "ends in .parquet"] {
            assert!(ran.stderr.contains(says), "{name}: {}", ran.stderr);
        }
    }
    assert_eq!(bench.names(), INPUTS);
}

#[test]
fn socket_folder_missing_named_with_option() {
    let bench = Bench::new(SMALL_TRACE);
    let (socket, folder) = (bench.at("nosuch/socket"), bench.at("nosuch"));
    let at_hand = bench.at("socket");
    let serve = ["serve", "emulated:tr96", "--drive", "tr96", "--socket"];
    for (option, args) in [
        ("--socket", &["emulate", "tr96", "--socket", &socket][..]),
        ("--socket", &[&serve[..], &[&socket]].concat()),
        ("--control", &[&serve[..], &[&at_hand, "--control", &socket]].concat()),
    ] {
        let ran = run(args);
        assert_eq!((ran.code, &*ran.stdout), (1, ""), "{args:?}: {}", ran.stderr);
        let says = format!(
            "error: {option} {socket}: there is no folder {folder}: create it, or choose another"
        );
        assert!(ran.stderr.starts_with(&says), "{args:?}: {}", ran.stderr);
    }
    let store = bench.at("nosuch/store");
    let ran = run(&["emulate", "tr96", "--socket", &at_hand, "--store", &store]);
    let says = format!("{store}: there is no folder {folder}: create it");
    assert!(ran.code == 1 && ran.stderr.contains(&says), "{}", ran.stderr);
    assert_eq!(bench.names(), INPUTS);
}

#[test]
fn simulation_writes_log_and_report() {
    let bench = Bench::new(SMALL_TRACE);
    let (log, report) = (bench.at("log.parquet"), bench.at("report.html"));
    stdout(&["sim", &bench.at("sim.toml"), "--log", &log, "--report", &report]);
    assert_eq!(bench.names(), ["log.parquet", "report.html", "sim.toml", "trace.csv"]);
    // Parquet begins and ends with its magic.
    let bytes = std::fs::read(log).unwrap();
    assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
    assert!(std::fs::read_to_string(report).unwrap().contains("<html"));
}

#[test]
fn study_writes_printed_page_and_document() {
    let bench = Bench::new(SMALL_TRACE);
    let (trace, out) = (bench.at("trace.csv"), bench.at("deep/out"));
    let study = ["study", &trace, "--drive", "tr96", "--out", &out];
    let printed = stdout(&[&study[..], &["--json"]].concat());
    assert_eq!(std::fs::read_to_string(bench.at("deep/out/report.json")).unwrap(), printed);
    assert!(std::fs::read_to_string(bench.at("deep/out/report.html")).unwrap().contains("<html"));
    let page = bench.at("deep/out/report.html");
    let findings = stdout(&study);
    assert!(findings.ends_with(&format!("report: {page}\n")));
    // Of so few requests no scrub is estimated.
    assert!(findings.contains("too short to judge by") && !findings.contains("a decision"));
}

#[test]
fn study_experiments_repeat_alone() {
    let line = |at: u64| format!("{},R,{},4096,0,\n", at * 20_000_000, at * 7_919 % 500 * 8192);
    let rows: String = (0..400).map(line).collect();
    let bench =
        Bench::new(&format!("arrival_ns,op,offset_bytes,length_bytes,fua,complete_ns\n{rows}"));
    let (trace, out, configs) = (bench.at("trace.csv"), bench.at("out"), bench.at("configs"));
    let study = document(&[
        "study",
        &trace,
        "--drive",
        "atlas10k",
        "--no-scrub",
        "--goal",
        "p99-reads",
        "--json",
        "--out",
        &out,
        "--configs",
        &configs,
    ]);
    let changes = &study["changes"];
    assert_eq!(changes["goal"], "p99-reads");
    let mut files: Vec<_> =
        std::fs::read_dir(&configs).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    let tried = changes["tried"].as_array().unwrap();
    let together = usize::from(!changes["together"].is_null());
    assert_eq!(files.len(), 1 + tried.len() + together);
    for (file, measured) in files.iter().zip([&changes["today"], &tried[0]["measured"]]) {
        let run = document(&["sim", &file.display().to_string(), "--json"]);
        assert_eq!(run["result"]["response"], measured["response"], "{}", file.display());
    }
    let wrong = run(&["study", &trace, "--goal", "p98"]);
    assert!(wrong.code == 2 && wrong.stderr.contains("p99-reads"), "{}", wrong.stderr);
}

#[test]
fn converted_trace_equals_original() {
    let bench = Bench::new(SMALL_TRACE);
    let copy = bench.at("copy.parquet");
    let said = stdout(&["trace", "convert", &bench.at("trace.csv"), &copy]);
    assert_eq!(said, format!("5 records of freewheel-csv to {copy}\n"));
    let back = bench.at("back.csv");
    stdout(&["trace", "convert", &copy, &back]);
    assert_eq!(std::fs::read_to_string(back).unwrap(), SMALL_TRACE);
}

#[test]
fn converted_trace_keeps_fua() {
    let forced = SMALL_TRACE.replace("409600,8192,0", "409600,8192,1");
    let bench = Bench::new(&forced);
    let [copy, back] = ["copy.parquet", "back.csv"].map(|name| bench.at(name));
    stdout(&["trace", "convert", &bench.at("trace.csv"), &copy]);
    stdout(&["trace", "convert", &copy, &back]);
    assert_eq!(std::fs::read_to_string(back).unwrap(), forced);
    let said = stdout(&["trace", "info", &copy]);
    assert!(said.contains("force unit access (FUA)") && said.contains("1 writes"), "{said}");
    assert_eq!(document(&["trace", "info", &copy, "--json"])["fua_writes"], 1);
    let character = document(&["trace", "characterize", &copy, "--json"]);
    assert_eq!(
        (&character["info"]["fua_writes"], &character["info"]["fua_reads"]),
        (&1.into(), &0.into())
    );
}

/// Makes `disk`, as large as the Atlas 10K, all holes.
const DISK: &str = "truncate -s 9199079936 disk";

/// Runs a server in such a folder, which has none for its socket.
fn serve_with_room(bytes: u64, prepare: &str, args: &[&str]) -> Option<Ran> {
    let folder = tempfile::tempdir().unwrap();
    let ran = run_with_room_of(bytes, folder.path(), prepare, args)?;
    assert_eq!(ran.code, 1, "{args:?}: {}", ran.stderr);
    Some(ran)
}

const SERVE: [&str; 6] = ["serve", "disk", "--drive", "atlas10k", "--socket", "nosuch/socket"];
const EMULATE: [&str; 6] = ["emulate", "atlas10k", "--store", "store", "--socket", "nosuch/socket"];

#[test]
fn server_on_full_file_system_leaves_nothing() {
    let full = format!("{DISK}; cat /dev/zero > fill 2> /dev/null || true; export TMPDIR=.");
    let unnamed = [&EMULATE[..2], &EMULATE[4..]].concat();
    for (args, texts) in [
        (&SERVE[..], &["disk: its file system has no room left", "cp --sparse=always"]),
        (&EMULATE, &["store: its file system has no room left", "--store FILE"]),
        (&unnamed, &[".: its file system has no room left", "TMPDIR"]),
    ] {
        let Some(ran) = serve_with_room(1 << 20, &full, args) else { return };
        for text in texts.iter().chain(&["may take 9.20 GB"]) {
            assert!(ran.stderr.contains(text), "{text}: {}", ran.stderr);
        }
        assert_eq!(ran.stdout, "disk\nfill\n");
    }
}

#[test]
fn server_says_holes_exceed_room() {
    for (args, name) in [(SERVE, "disk"), (EMULATE, "store")] {
        let text = format!("note: 0.001 GB are left where {name} is and 9.199 GB may come: ");
        for (room, is_short) in [(1 << 20, true), (10 << 30, false)] {
            let Some(ran) = serve_with_room(room, DISK, &args) else { return };
            assert!(ran.stderr.contains("there is no folder nosuch"), "{}", ran.stderr);
            assert_eq!(ran.stderr.contains(&text), is_short, "{}", ran.stderr);
            assert_eq!(ran.stderr.contains("note: "), is_short, "{}", ran.stderr);
        }
    }
}

#[test]
fn experiment_paths_relative_to_own_folder() {
    let (bench, current) = (Bench::new(SMALL_TRACE), tempfile::tempdir().unwrap());
    let sim = &*bench.at("sim.toml");
    bench.put("mine.toml", &stdout(&["drive", "show", "tr96", "--toml"]));
    std::fs::copy(bench.at("mine.toml"), current.path().join("theirs.toml")).unwrap();
    std::fs::copy(bench.at("trace.csv"), current.path().join("theirs.csv")).unwrap();
    let runs = |drive: &str, sets: &[&str]| {
        let workload = "workload = { kind = \"trace\", file = \"trace.csv\" }";
        bench.put("sim.toml", &format!("drive = \"{drive}\"\n{workload}\n"));
        let sets = sets.iter().flat_map(|set| ["--set", set]);
        let arguments: Vec<&str> = ["sim", sim].into_iter().chain(sets).collect();
        let ran = command(&arguments).current_dir(current.path()).output().unwrap();
        ran.status.success()
    };
    assert!(runs("tr96", &[]) && runs("mine.toml", &[]) && runs("./mine.toml", &[]));
    assert!(runs("./mine.toml", &["drive=./theirs.toml", "workload.file=theirs.csv"]));
    let whole = "workload={ kind = 'trace', file = 'theirs.csv' }";
    assert!(runs("./mine.toml", &[whole, "drive=tr96"]));
    assert!(!runs("./theirs.toml", &[]) && !runs("tr96", &["drive=./mine.toml"]));
    assert!(!runs("tr96", &["workload.file=trace.csv"]));
}
