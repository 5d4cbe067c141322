//! Cost against scale: drives, queue depth, length of a run.
//!
//! A separate process measures each row, as the peak memory of a process never falls.

use std::io::Write;
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

use crate::case::{Case, Measured, RUNS, bare_atlas, measure, random};
use crate::long::{Folder, replay};
use crate::print_origin;
use crate::record::{Origin, append, peak_memory_bytes};

/// The hidden argument before a [`Row`] as JSON.
pub const ONE_ROW: &str = "--scale-row";

/// Requests of a run that is repeated.
const REPEATED_MAX: u64 = 10_000_000;

/// A row for a process to measure.
#[derive(Serialize, Deserialize)]
struct Row {
    name: String,
    requests: u64,
    config: String,
}

/// The measured values of a row.
#[derive(Serialize, Deserialize)]
struct Answer {
    rates: Vec<f64>,
    hash: String,
    peak_memory_bytes: Option<u64>,
}

/// Prints a table, and appends its numbers to `file`.
pub fn run(file: Option<&str>) {
    let origin = Origin::here();
    print_origin(&origin, &format!("median of {RUNS} runs, one above {REPEATED_MAX} requests"));
    println!(
        "{:<44} {:>11} {:>10} {:>10} {:>9}  hash",
        "", "requests", "M/s", "ns each", "peak MiB"
    );
    let mut report = |row: Row| {
        let answer = ask(&row);
        let peak = answer.peak_memory_bytes;
        let case = Case::new(row.name, row.requests, row.config);
        let measured = Measured { rates: answer.rates, hash: answer.hash };
        print_line(&case, &measured, peak);
        if let Some(file) = file {
            append(file, &case, &measured, None, peak, &origin);
        }
    };
    drives().for_each(&mut report);
    depths().for_each(&mut report);
    lengths().for_each(&mut report);
    let folder = Folder::new();
    for requests in [100_000, 1_000_000, 10_000_000] {
        let config = replay(&folder.trace(requests));
        report(Row { name: format!("Parquet trace of {requests}"), requests, config });
    }
}

fn print_line(case: &Case, measured: &Measured, peak_memory_bytes: Option<u64>) {
    let rate = measured.median();
    let peak = peak_memory_bytes
        .map_or("unknown".into(), |bytes| format!("{:.1}", bytes as f64 / f64::from(1 << 20)));
    println!(
        "{:<44} {:>11} {:>10.3} {:>10.0} {peak:>9}  {}",
        case.name,
        case.requests,
        rate / 1e6,
        1e9 / rate,
        measured.hash
    );
}

/// Striped drives with two outstanding requests each.
fn drives() -> impl Iterator<Item = Row> {
    let sizes = [1, 10, 100, 1000];
    let both = [(false, "bare", 1_000_000), (true, "electronics", 300_000)];
    both.into_iter().flat_map(move |(electronics, what, requests)| {
        sizes.into_iter().map(move |drives| {
            let keys = format!(
                "drive = \"atlas10k\"\nelectronics = {electronics}\narray.drives = {drives}"
            );
            let config = random(&keys, 2 * drives, requests);
            Row { name: format!("striped drives, {what}: {drives}"), requests, config }
        })
    })
}

fn depths() -> impl Iterator<Item = Row> {
    [1, 4, 16, 64, 256, 1024].into_iter().map(|depth| {
        let (requests, name) = (400_000, format!("outstanding, sptf: {depth}"));
        Row { name, requests, config: random(&bare_atlas("sptf"), depth, requests) }
    })
}

fn lengths() -> impl Iterator<Item = Row> {
    (5..=9).map(|power| {
        let requests = 10u64.pow(power);
        let config = random(&bare_atlas("fcfs"), 1, requests);
        Row { name: format!("generated requests, fcfs: {requests}"), requests, config }
    })
}

/// Lets another process of this program measure a row.
fn ask(row: &Row) -> Answer {
    let program = std::env::current_exe().expect("the path of this program");
    let argument = serde_json::to_string(row).expect("a row can be written");
    let child = Command::new(program).args([ONE_ROW, &argument]).stderr(Stdio::inherit()).output();
    let output = child.expect("another process of this program");
    assert!(output.status.success(), "{}: {}", row.name, output.status);
    serde_json::from_slice(&output.stdout).expect("an answer")
}

/// Measures a row given as JSON, and prints the answer.
pub fn run_row(row: &str) {
    let row: Row = serde_json::from_str(row).expect("a row");
    let runs = if row.requests <= REPEATED_MAX { RUNS } else { 1 };
    let measured = measure(&Case::new(row.name, row.requests, row.config), runs);
    let Measured { rates, hash } = measured;
    let answer = Answer { rates, hash, peak_memory_bytes: peak_memory_bytes() };
    let answer = serde_json::to_string(&answer).expect("an answer can be written");
    std::io::stdout().write_all(answer.as_bytes()).expect("an open output");
}
