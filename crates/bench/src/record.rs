//! Measurements with their conditions, as lines of JSON.

use std::fs::OpenOptions;
use std::io::Write;
use std::process::Command;

use serde::Serialize;

use crate::case::{Case, Measured};

/// Version, machine and place of a measurement.
#[derive(Serialize)]
pub struct Origin {
    pub commit: String,
    pub machine: String,
}

impl Origin {
    /// This commit on this machine.
    pub fn here() -> Self {
        Self { commit: commit(), machine: machine() }
    }
}

#[derive(Serialize)]
struct Measurement<'a> {
    name: &'a str,
    value: f64,
    unit: String,
    runs: usize,
    slowest: f64,
    fastest: f64,
    /// Requests of a run.
    requests: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    peak_memory_bytes: Option<u64>,
    /// Requests a second of the DiskSim that ran in turn, and Freewheel's multiple of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    disksim: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    times_disksim: Option<f64>,
    result_hash: &'a str,
    #[serde(flatten)]
    origin: &'a Origin,
}

/// A measured rate, before its conditions are added.
pub struct Figure<'a> {
    pub name: &'a str,
    pub unit: String,
    /// Rate of every run, ascending.
    pub rates: &'a [f64],
    /// Requests of a run, or what is counted in their place.
    pub requests: u64,
    pub peak_memory_bytes: Option<u64>,
    /// Requests a second of the DiskSim that ran in turn.
    pub disksim: Option<f64>,
    pub hash: &'a str,
}

impl<'a> Figure<'a> {
    /// Simulated requests a second of a case.
    pub fn of_case(case: &'a Case, measured: &'a Measured, disksim: Option<f64>) -> Self {
        let cores =
            if case.threads == 1 { "one core".into() } else { format!("{} cores", case.threads) };
        Self {
            name: &case.name,
            unit: format!("simulated requests a second, {cores}"),
            rates: &measured.rates,
            requests: case.requests,
            peak_memory_bytes: None,
            disksim,
            hash: &measured.hash,
        }
    }
}

/// Appends a measurement to `file`. Panics on failure.
pub fn append(file: &str, figure: &Figure<'_>, origin: &Origin) {
    let Figure { name, rates, requests, peak_memory_bytes, disksim, hash, .. } = *figure;
    let value = rates[rates.len() / 2];
    let measurement = Measurement {
        name,
        value,
        unit: figure.unit.clone(),
        runs: rates.len(),
        slowest: rates[0],
        fastest: rates[rates.len() - 1],
        requests,
        peak_memory_bytes,
        disksim,
        times_disksim: disksim.map(|theirs| value / theirs),
        result_hash: hash,
        origin,
    };
    let line = serde_json::to_string(&measurement).expect("a measurement can be written");
    let opened = OpenOptions::new().create(true).append(true).open(file);
    let written = opened.and_then(|mut file| writeln!(file, "{line}"));
    written.unwrap_or_else(|error| panic!("{file}: {error}"));
}

/// High-water mark of this process's resident memory, where the system tells (Linux).
pub fn peak_memory_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}

fn commit() -> String {
    let output = Command::new("git").args(["describe", "--always", "--dirty"]).output();
    let text = output.ok().and_then(|output| String::from_utf8(output.stdout).ok());
    text.map_or("unknown".into(), |text| text.trim().into())
}

fn machine() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split(": ").nth(1));
    format!("{}, {} cores", model.unwrap_or("unknown processor"), cores())
}

/// Cores that this process may use.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
