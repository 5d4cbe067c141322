//! Growth: time and memory against requests, drives, queue depth and wanted blocks, and how fast traces
//! of each format are read.
//!
//! A separate process measures each row, as the peak memory of a process never falls.

use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use freewheel_freeblock::Rule;
use freewheel_live::stopwatch::timed;
use freewheel_reproduce::decisions::{DecisionCase, Fill, time_decisions};
use freewheel_sim::library;
use freewheel_trace::Format;
use serde::{Deserialize, Serialize};

use crate::case::{Case, RUNS, bare_atlas, measure, random};
use crate::long::{Folder, replay};
use crate::parse;
use crate::print_origin;
use crate::record::{Figure, Origin, append, peak_memory_bytes};

/// The hidden argument before a [`Row`] as JSON.
pub const ONE_ROW: &str = "--scale-row";

/// Requests of a run that is repeated.
const REPEATED_MAX: u64 = 10_000_000;

/// Freeblock decisions of a row.
const DECISIONS: usize = 2_000;

/// Extra cost of noise, when a row is compared with n log n.
const TOLERANCE: f64 = 1.25;

/// A row for a process to measure.
#[derive(Serialize, Deserialize)]
struct Row {
    /// Quantity that grows; rows of one name are compared with the row before.
    family: String,
    /// Amount of it.
    scale: u64,
    work: Work,
}

#[derive(Serialize, Deserialize)]
enum Work {
    /// An experiment of this many requests.
    Run { requests: u64, config: String },
    /// Decisions on the 24 TB drive with `scale` wanted blocks of `size` blocks of 512 B.
    Decide { size: u32 },
    /// Reading a trace of `scale` records.
    Parse(Format),
}

/// The measured values of a row.
#[derive(Serialize, Deserialize)]
struct Answer {
    /// Requests, decisions or records a second of every run, ascending.
    rates: Vec<f64>,
    /// Bytes of a trace.
    bytes: Option<u64>,
    hash: String,
    /// Time of the whole row, with what is prepared.
    seconds: f64,
    peak_memory_bytes: Option<u64>,
}

impl Answer {
    fn median(&self) -> f64 {
        self.rates[self.rates.len() / 2]
    }
}

/// Prints tables, and appends their numbers to `file`.
pub fn run(file: Option<&str>) {
    let origin = Origin::here();
    print_origin(
        &origin,
        &format!(
            "median of {RUNS} runs, what is prepared included; one above {REPEATED_MAX} requests, and of decisions"
        ),
    );
    growth(file, &origin);
    formats(file, &origin);
}

/// Prints the costs that grow with an amount.
fn growth(file: Option<&str>, origin: &Origin) {
    println!(
        "{:<40} {:>13} {:>10} {:>10} {:>9} {:>9} {:>8}  hash",
        "", "amount", "M/s", "ns each", "seconds", "peak MiB", "growth"
    );
    let mut before: Option<(String, u64, f64)> = None;
    let mut report = |row: Row| {
        let answer = ask(&row);
        let ns = 1e9 / answer.median();
        let growth = before.take().filter(|(family, ..)| *family == row.family);
        let growth =
            growth.map(|(_, scale, ns_before)| Growth::new(scale, ns_before, row.scale, ns));
        println!(
            "{:<40} {:>13} {:>10.3} {ns:>10.0} {:>9.1} {:>9} {:>8}  {}",
            row.family,
            row.scale,
            answer.median() / 1e6,
            answer.seconds,
            mebibytes(answer.peak_memory_bytes),
            growth.map_or_else(String::new, |growth| growth.text()),
            answer.hash
        );
        record(file, &row, &answer, origin);
        before = Some((row.family, row.scale, ns));
    };
    lengths().for_each(&mut report);
    let folder = Folder::new();
    for requests in [100_000, 1_000_000, 10_000_000] {
        let config = replay(&folder.trace(requests));
        let family = "requests of a Parquet trace, fcfs".into();
        report(Row { family, scale: requests, work: Work::Run { requests, config } });
    }
    drives().for_each(&mut report);
    depths().for_each(&mut report);
    wanted().for_each(&mut report);
    println!(
        "growth: exponent of the cost of one against the row before; * over {TOLERANCE} times that of log n"
    );
}

fn formats(file: Option<&str>, origin: &Origin) {
    println!(
        "\n{:<40} {:>13} {:>10} {:>10} {:>10} {:>9}  hash",
        "", "records", "GB/s", "M/s", "bytes each", "peak MiB"
    );
    for format in parse::FORMATS {
        let row = Row {
            family: format!("reading {}", format.name()),
            scale: parse::RECORDS,
            work: Work::Parse(format),
        };
        let answer = ask(&row);
        let each = answer.bytes.unwrap_or_default() as f64 / parse::RECORDS as f64;
        println!(
            "{:<40} {:>13} {:>10.3} {:>10.2} {each:>10.1} {:>9}  {}",
            row.family,
            row.scale,
            each * answer.median() / 1e9,
            answer.median() / 1e6,
            mebibytes(answer.peak_memory_bytes),
            answer.hash,
        );
        record(file, &row, &answer, origin);
    }
}

fn record(file: Option<&str>, row: &Row, answer: &Answer, origin: &Origin) {
    let Some(file) = file else { return };
    let (what, requests) = match row.work {
        Work::Run { requests, .. } => ("simulated requests", requests),
        Work::Decide { .. } => ("decisions", DECISIONS as u64),
        Work::Parse(_) => ("records", parse::RECORDS),
    };
    let figure = Figure {
        name: &format!("{}: {}", row.family, row.scale),
        unit: format!("{what} a second, one core"),
        rates: &answer.rates,
        requests,
        peak_memory_bytes: answer.peak_memory_bytes,
        disksim: None,
        hash: &answer.hash,
    };
    append(file, &figure, origin);
}

fn mebibytes(bytes: Option<u64>) -> String {
    bytes.map_or("unknown".into(), |bytes| format!("{:.1}", bytes as f64 / f64::from(1 << 20)))
}

/// Change of the cost of one from one amount to the next.
struct Growth {
    exponent: f64,
    exceeds_log: bool,
}

impl Growth {
    fn new(scale_before: u64, ns_before: f64, scale: u64, ns: f64) -> Self {
        let [less, more] = [scale_before, scale].map(|scale| scale as f64);
        let cost = ns / ns_before;
        // n log n in all is log n each. 2n, so that one has a cost.
        let log = (2.0 * more).ln() / (2.0 * less).ln();
        let exponent = cost.ln() / (more / less).ln();
        Self { exponent, exceeds_log: cost > log * TOLERANCE }
    }

    fn text(&self) -> String {
        format!("{:+.2}{}", self.exponent, if self.exceeds_log { "*" } else { "" })
    }
}

fn lengths() -> impl Iterator<Item = Row> {
    (5..=9).map(|power| {
        let requests = 10u64.pow(power);
        let config = random(&bare_atlas("fcfs"), 1, requests);
        let family = "generated requests, fcfs".into();
        Row { family, scale: requests, work: Work::Run { requests, config } }
    })
}

/// Striped drives with two outstanding requests each.
fn drives() -> impl Iterator<Item = Row> {
    let sizes = [1, 10, 100, 1_000, 10_000];
    let both = [(false, "bare", 1_000_000), (true, "electronics", 300_000)];
    both.into_iter().flat_map(move |(electronics, what, requests)| {
        sizes.into_iter().map(move |drives| {
            let keys = format!(
                "drive = \"atlas10k\"\nelectronics = {electronics}\narray.drives = {drives}"
            );
            let config = random(&keys, 2 * drives, requests);
            let family = format!("striped drives, {what}");
            Row { family, scale: drives, work: Work::Run { requests, config } }
        })
    })
}

fn depths() -> impl Iterator<Item = Row> {
    ["sptf", "asatf"].into_iter().flat_map(|policy| {
        [1, 4, 16, 64, 256, 1024].into_iter().map(move |depth| {
            let requests = 400_000;
            let config = random(&bare_atlas(policy), depth, requests);
            let family = format!("outstanding requests, {policy}");
            Row { family, scale: depth, work: Work::Run { requests, config } }
        })
    })
}

/// Wanted blocks of 4 KiB, each by chance, on the drive of 24 TB.
fn wanted() -> impl Iterator<Item = Row> {
    (3..=9).map(|power| Row {
        family: "wanted blocks of 4 KiB, 24 TB, greedy".into(),
        scale: 10u64.pow(power),
        work: Work::Decide { size: 8 },
    })
}

/// Lets another process of this program measure a row.
fn ask(row: &Row) -> Answer {
    let program = std::env::current_exe().expect("the path of this program");
    let argument = serde_json::to_string(row).expect("a row can be written");
    let child = Command::new(program).args([ONE_ROW, &argument]).stderr(Stdio::inherit()).output();
    let output = child.expect("another process of this program");
    assert!(output.status.success(), "{} of {}: {}", row.scale, row.family, output.status);
    serde_json::from_slice(&output.stdout).expect("an answer")
}

/// Measures a row given as JSON, and prints the answer.
pub fn run_row(row: &str) {
    let row: Row = serde_json::from_str(row).expect("a row");
    let start = Instant::now();
    let (rates, hash, bytes) = match row.work {
        Work::Run { requests, config } => {
            let runs = if requests <= REPEATED_MAX { RUNS } else { 1 };
            let measured = measure(&Case::new(row.family, requests, config), runs);
            (measured.rates, measured.hash, None)
        }
        Work::Decide { size } => {
            let (rate, hash) = decide(row.scale, size);
            (vec![rate], hash, None)
        }
        Work::Parse(format) => {
            let read = parse::measure(format);
            (read.rates, read.hash, Some(read.bytes))
        }
    };
    let seconds = start.elapsed().as_secs_f64();
    let answer = Answer { rates, bytes, hash, seconds, peak_memory_bytes: peak_memory_bytes() };
    let answer = serde_json::to_string(&answer).expect("an answer can be written");
    std::io::stdout().write_all(answer.as_bytes()).expect("an open output");
}

/// Decisions a second with this many wanted blocks, and the hash of the plans.
fn decide(wanted: u64, size: u32) -> (f64, String) {
    let spec = library::spec("exos-x24-24tb").expect("a shipped drive");
    let drive = Arc::new(library::build(&spec, "exos-x24-24tb").expect("a shipped drive"));
    let share = wanted as f64 * f64::from(size) / drive.blocks().get() as f64;
    let (rule, fill) = (Rule::Greedy, Fill::Part(share));
    let case = DecisionCase { drive: &drive, rule, size, fill, decisions: DECISIONS };
    let times = time_decisions(&case, |call| timed(call));
    let ns: u64 = times.ns.iter().sum();
    (DECISIONS as f64 / ns as f64 * 1e9, format!("{:016x}", times.hash))
}
