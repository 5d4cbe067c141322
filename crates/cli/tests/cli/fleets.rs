//! Fleets of drives.

use std::fs;
use std::path::{Path, PathBuf};

use crate::run::{document, repository, run};

/// Requests of the recorded trace in each trace.
const REQUESTS: usize = 400;

/// Traces of three drives in two servers.
fn traces(folder: &Path) -> PathBuf {
    let traces = folder.join("traces");
    let recorded = repository().join("data/recorded/sqlite-ext4.csv.zst");
    let all = folder.join("all.csv");
    let [recorded, all_text] = [&recorded, &all].map(|path| path.to_str().unwrap());
    assert_eq!(run(&["trace", "convert", recorded, all_text]).code, 0);
    let text = fs::read_to_string(&all).unwrap();
    let (head, rows) = text.split_once('\n').unwrap();
    let rows: Vec<&str> = rows.lines().take(3 * REQUESTS).collect();
    for (name, rows) in ["web1/0.csv", "web1/1.csv", "db-0.csv"].iter().zip(rows.chunks(REQUESTS)) {
        let path = traces.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{head}\n{}\n", rows.join("\n"))).unwrap();
    }
    traces
}

#[test]
fn every_drive_has_a_row_and_what_is_no_trace_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let traces = traces(folder.path());
    fs::write(traces.join("notes.txt"), "not a trace\n").unwrap();
    let list = folder.path().join("list.csv");
    fs::write(&list, "trace,drive,bay\nweb1/1,tr96,17\n").unwrap();
    let out = folder.path().join("out");
    let [traces, list, out_text] = [&traces, &list, &out].map(|path| path.to_str().unwrap());
    let words =
        ["fleet", traces, "--drive", "atlas10k", "--wrap", "--list", list, "--out", out_text];
    let words = [&words[..], &["--no-changes", "--hot", "0", "--reports", "1"]].concat();
    let done = document(&[&words[..], &["--json"]].concat());
    let drives = done["drives"].as_array().unwrap();
    let column = |name: &str| drives.iter().map(|row| row[name].clone()).collect::<Vec<_>>();
    assert_eq!(column("name"), ["db-0", "notes", "web1/0", "web1/1"]);
    assert_eq!(column("server"), ["db", "", "web1", "web1"]);
    assert_eq!(column("bay"), ["0", "notes", "0", "17"]);
    assert_eq!(column("drive"), ["atlas10k", "atlas10k", "atlas10k", "tr96"]);
    assert!(drives[1]["fault"].as_str().unwrap().contains("notes.txt"));
    assert!(drives[0]["utilisation"].as_f64().unwrap() > 0.0 && drives[0]["fault"].is_null());
    assert_eq!(done["summary"]["studied"], 3);
    let page = fs::read_to_string(out.join("fleet.html")).unwrap();
    assert!(page.contains("3 drives: 3 are hot"), "{}", &page[..400]);
    assert_eq!(fs::read_dir(out.join("drives")).unwrap().count(), 1);
    assert!(!out.join("fleet.parquet.journal").exists());
    // The same once more, from a journal that knows one row of another fleet.
    fs::write(out.join("fleet.parquet.journal"), "freewheel fleet of another kind\n").unwrap();
    let ran = run(&words);
    assert!(ran.code == 1 && ran.stderr.contains("choose another --out"), "{}", ran.stderr);
}

#[test]
fn wrong_words_say_the_way_out() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (empty, list, out) = (at("empty"), at("list.csv"), at("out"));
    fs::create_dir(&empty).unwrap();
    fs::write(&list, "trace,rack\n").unwrap();
    let traces = traces(folder.path()).to_str().unwrap().to_owned();
    let cases: [(&[&str], u8, &str); 5] = [
        (&[&empty], 1, "no trace is in this folder"),
        (&[&traces, "--list", &list], 1, "`rack` is not known"),
        (&[&traces, "--hot", "120%"], 2, "0 to 1 are allowed"),
        (&[&traces, "--jobs", "2", "--dask", "here:1"], 2, "cannot be used with"),
        (&[&at("missing")], 1, "missing"),
    ];
    for (words, code, says) in cases {
        let ran = run(&[&["fleet", "--out", &out], words].concat());
        assert!(
            i32::from(code) == ran.code && ran.stderr.contains(says),
            "{words:?}: {}",
            ran.stderr
        );
    }
}
