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
fn fleet_has_row_for_every_drive() {
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
    assert!(page.contains("3 of 4 drives: 3 are hot"), "{}", &page[..400]);
    assert_eq!(fs::read_dir(out.join("drives")).unwrap().count(), 1);
    assert!(!out.join("fleet.parquet.journal").exists());
    let page_name = fs::read_dir(out.join("drives")).unwrap().next().unwrap().unwrap().file_name();
    assert!(page.contains(&format!("drives/{}", page_name.display())));
    // What is there is not written over, and the journal of another fleet is not taken for this one's.
    let ran = run(&words);
    assert!(ran.code == 1 && ran.stderr.contains("fleet.parquet"), "{}", ran.stderr);
    fs::remove_file(out.join("fleet.parquet")).unwrap();
    fs::write(out.join("fleet.parquet.journal"), "freewheel fleet of another kind\n").unwrap();
    let ran = run(&words);
    assert!(ran.code == 1 && ran.stderr.contains("choose another --out"), "{}", ran.stderr);
}

#[test]
fn fleet_of_devices_leaves_user_folders() {
    let folder = tempfile::tempdir().unwrap();
    let (out, file) = (folder.path().join("out"), folder.path().join("two.csv"));
    let own = out.join("devices/notes.txt");
    fs::create_dir_all(own.parent().unwrap()).unwrap();
    fs::write(&own, "mine").unwrap();
    // MSR Cambridge: time, host, disk, kind, offset, bytes, response.
    let rows = (0..800_u64).map(|n| {
        format!(
            "{},usr,{},Read,{},4096,900\n",
            128_166_372_003_061_629 + n * 90_000,
            n % 2,
            n * 8192
        )
    });
    fs::write(&file, rows.collect::<String>()).unwrap();
    let [file, out_text] = [&file, &out].map(|path| path.to_str().unwrap());
    let words = ["fleet", file, "--drive", "atlas10k", "--wrap", "--out", out_text];
    let done = document(&[&words[..], &["--no-changes", "--reports", "0", "--json"]].concat());
    let rows = done["drives"].as_array().unwrap();
    let requests: Vec<u64> = rows.iter().map(|row| row["requests"].as_u64().unwrap()).collect();
    assert_eq!(requests, [400, 400]);
    assert_eq!(fs::read_to_string(own).unwrap(), "mine");
    let names = fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["devices", "fleet.html", "fleet.json", "fleet.parquet"]);
}

#[test]
fn fleet_wrong_words_answered_with_help() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (empty, list, out) = (at("empty"), at("list.csv"), at("out"));
    fs::create_dir(&empty).unwrap();
    fs::write(&list, "trace,rack\n").unwrap();
    let traces = traces(folder.path()).to_str().unwrap().to_owned();
    let cases: [(&[&str], u8, &str); 6] = [
        (&[&traces, "--drive", "atlas11k"], 1, "atlas11k"),
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
