use super::run::{Bench, command, finish, stdout};

#[test]
fn simulation_repeats_byte_for_byte() {
    for args in [&["sim", "examples/oltp.toml"][..], &["sim", "examples/oltp.toml", "--json"]] {
        assert_eq!(stdout(args), stdout(args));
    }
}

#[test]
fn decision_times_appear_in_text_alone() {
    let set =
        ["--set", "workload.requests=300", "--set", "freeblock.tasks=[{ block_size = '64KiB' }]"];
    let args = [&["sim", "examples/random.toml"][..], &set].concat();
    let line = "a decision took here: p50 ";
    assert_eq!(stdout(&args).matches(line).count(), 1);
    let bench = Bench::new("");
    let document = |page: &str| {
        let page = bench.at(page);
        let document = stdout(&[&args[..], &["--json", "--report", &page]].concat());
        (document, std::fs::read_to_string(page).unwrap())
    };
    assert_eq!(document("first.html"), document("second.html"));
    assert!(!stdout(&["sim", "examples/oltp.toml"]).contains(line), "none are made");
}

#[test]
fn seed_changes_result() {
    let run = |seed| stdout(&["sim", "examples/oltp.toml", "--seed", seed, "--json"]);
    assert_ne!(run("1"), run("2"));
}

#[test]
fn log_repeats_byte_for_byte() {
    let bench = Bench::new("");
    let log = |name: &str| {
        let path = bench.at(name);
        stdout(&["sim", "examples/oltp.toml", "--log", &path]);
        std::fs::read(path).unwrap()
    };
    assert_eq!(log("first.parquet"), log("second.parquet"));
}

#[test]
fn study_same_bytes_on_two_threads() {
    let bench = Bench::new("");
    let study = |threads: &str| {
        let out = bench.at("out");
        let trace = "data/recorded/sqlite-ext4.csv.zst";
        // A small drive: the estimate of its scrub takes a second.
        let args = ["study", trace, "--scale", "--drive", "atlas10k", "--out", &out, "--json"];
        let mut command = command(&args);
        let ran = finish(command.env("RAYON_NUM_THREADS", threads).output().unwrap());
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        (ran.stdout, std::fs::read_to_string(bench.at("out/report.html")).unwrap())
    };
    let one = study("1");
    assert!(one == study("2"), "the documents differ");
}

#[test]
fn independent_drives_same_bytes_on_two_threads() {
    let set = ["--set", "array.layout=independent", "--set", "array.drives=20"];
    for format in [&[][..], &["--json"]] {
        let args = [&["sim", "examples/oltp.toml"][..], &set, format].concat();
        let run = |threads: &str| {
            let output = command(&args).env("RAYON_NUM_THREADS", threads).output();
            let ran = finish(output.unwrap());
            assert_eq!(ran.code, 0, "{}", ran.stderr);
            ran.stdout
        };
        assert_eq!(run("1"), run("2"));
    }
}
