//! Sweeps of an experiment's keys.

use std::fs;

use crate::run::{document, repository, run};

const OVER: [&str; 4] =
    ["--over", "scheduler.policy=fcfs,sptf", "--over", "workload.outstanding=1,4,16"];

/// A sweep of a short experiment into this file.
fn sweep<'a>(output: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let first = ["sweep", "examples/random.toml", "--set", "workload.requests=300", "-o", output];
    [&first[..], &OVER, more].concat()
}

#[test]
fn sweep_tables_same_on_threads_never_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let [one, three] = ["one.parquet", "three.parquet"].map(at);
    let done = document(&sweep(&one, &["--jobs", "1", "--json"]));
    assert_eq!((&done["configurations"], &done["resumed"]), (&6.into(), &0.into()));
    let said = run(&sweep(&three, &["--jobs", "3"])).stdout;
    assert!(said.contains("6 configurations; the best") && said.contains("policy=sptf"), "{said}");
    let [of_one, of_three] = [&one, &three].map(|file| fs::read(file).unwrap());
    assert!(of_one == of_three && !of_one.is_empty());
    let again = run(&sweep(&one, &[]));
    assert!(again.code == 1 && again.stderr.contains("one.parquet"), "{}", again.stderr);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "no journal is left");
}

#[test]
fn sweep_errors_known_before_runs() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("sweep.parquet").to_str().unwrap().to_owned();
    let config = repository().join("examples/random.toml");
    let config = config.to_str().unwrap();
    let cases = [
        ("workload.outstanding", 2, "write key=a,b,c"),
        ("workload.outstanding=1,,2", 2, "is empty"),
        ("workload.outstanding=1,0", 1, "1 to 1000000 are allowed"),
        ("scheduler.policy=fcfs,sttf", 1, "did you mean"),
        ("workload.outstandin=1,2", 1, "outstandin"),
    ];
    for (over, code, says) in cases {
        let ran = run(&["sweep", config, "--over", over, "-o", &output]);
        assert!(ran.code == code && ran.stderr.contains(says), "{over}: {}", ran.stderr);
    }
    fs::write(format!("{output}.journal"), "freewheel sweep of another kind\n").unwrap();
    let ran = run(&["sweep", config, "--over", "seed=1,2", "-o", &output]);
    assert!(ran.code == 1 && ran.stderr.contains("choose another -o"), "{}", ran.stderr);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "the journal is left as it is");
}
