//! Claims on public traces, which may not be redistributed, against the committed full run.
#![allow(missing_docs)]

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use freewheel_reproduce::{ReproduceOptions, Row, SEEDS, Verdict, reproduce};
use freewheel_testkit::data;
use freewheel_units::SimDuration;
use serde_json::Value;

const DISKSIM_ASCII: &str = "traces/disksim-ascii.trace.zst";
const HPLAJW: &str = "traces/hplajw-1week-1992.srt.zst";
const VSCSI: &str = "traces/cloudPhysicsIO.vscsi.zst";

/// The rows of a claim in full. The recorded traces and the public ones are copied into one folder.
fn rows(id: &str, public: &[&str]) -> Vec<Row> {
    let folder = tempfile::tempdir().unwrap();
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/recorded");
    let recorded = std::fs::read_dir(recorded).unwrap().map(|entry| entry.unwrap().path());
    for path in recorded.chain(public.iter().map(|name| data::file(name))) {
        std::fs::copy(&path, folder.path().join(path.file_name().unwrap())).unwrap();
    }
    let recordings = Some(folder.path().into());
    let options = ReproduceOptions { quick: false, seeds: SEEDS.to_vec(), recordings };
    let timer = |_: &mut dyn FnMut()| SimDuration::ZERO;
    reproduce(id, &options, &timer, &|_, _| {}).unwrap().rows
}

fn committed(id: &str) -> Vec<Value> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/reproduce.json");
    let mut run: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let Value::Array(rows) = run["rows"].take() else { panic!("{path} has no rows") };
    rows.into_iter().filter(|row| row["id"] == id).collect()
}

/// Reading JSON may change the last digit of a number.
fn is_same(ours: &Value, committed: &Value) -> bool {
    match (ours, committed) {
        (Value::Number(a), Value::Number(b)) => {
            let [a, b] = [a, b].map(|number| number.as_f64().unwrap());
            (a - b).abs() <= 1e-12 * a.abs()
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| is_same(a, b)))
        }
        (a, b) => a == b,
    }
}

fn assert_committed(id: &str, rows: &[Row]) {
    let committed = committed(id);
    assert_eq!(rows.len(), committed.len());
    for (row, committed) in rows.iter().zip(&committed) {
        let ours = serde_json::to_value(row).unwrap();
        assert!(is_same(&ours, committed), "{ours:#}\nis not what was committed: {committed:#}");
    }
}

#[test]
fn tr96_figure_8_matches_full_run() {
    assert_committed("tr96.fig8", &rows("tr96.fig8", &[DISKSIM_ASCII]));
}

#[test]
fn tr03_response_parts_match_full_run() {
    assert_committed("tr03.fig25", &rows("tr03.fig25", &[HPLAJW, VSCSI, DISKSIM_ASCII]));
}

#[test]
fn claim_with_generated_trace_is_uncompared() {
    let rows = rows("tr03.fig25", &[HPLAJW, DISKSIM_ASCII]);
    assert!(rows.iter().all(|row| row.verdict == Verdict::StandIn && row.band.is_none()));
    let note = rows.iter().find_map(|row| row.note.as_deref()).unwrap();
    assert!(note.contains("vscsi (generated) ") && note.contains("hplajw "), "{note}");
}

/// SHA-256 of an unpacked file, by the program of coreutils.
fn sha256(name: &str) -> String {
    let packed = std::fs::File::open(data::file(name)).unwrap();
    let bytes = zstd::decode_all(packed).unwrap();
    let mut command = Command::new("sha256sum");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(&bytes).unwrap();
    let said = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    said.split_whitespace().next().unwrap().into()
}

#[test]
fn rows_state_sha_256_of_traces() {
    let committed = committed("tr03.fig25");
    let says = committed[0]["stands_in"].as_str().unwrap();
    for name in [DISKSIM_ASCII, HPLAJW, VSCSI] {
        let sha256 = sha256(name);
        assert!(says.contains(&sha256), "{name}: {sha256} is not in {says}");
    }
}
