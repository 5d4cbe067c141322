//! One experiment, run several times.

use std::time::Instant;

use freewheel_sim::RunResult;
use freewheel_sim::config::SimConfig;
use freewheel_sim::experiment::Experiment;

use crate::disksim::Load;

/// Runs of a case.
pub const RUNS: usize = 5;

/// An experiment and how to run it.
pub struct Case {
    pub name: String,
    /// Requests of a run, of all drives together.
    pub requests: u64,
    /// The experiment as TOML.
    pub config: String,
    /// Threads that may take part.
    pub threads: usize,
    /// Load for DiskSim, if it has the workload.
    pub disksim: Option<Load>,
}

impl Case {
    /// On one core.
    pub fn new(name: impl Into<String>, requests: u64, config: String) -> Self {
        Self { name: name.into(), requests, config, threads: 1, disksim: None }
    }

    /// Compares the case with DiskSim under the same load.
    pub fn beside_disksim(self, load: Load) -> Self {
        Self { disksim: Some(load), ..self }
    }

    /// Runs the case on `threads` threads.
    pub fn on_threads(self, threads: usize) -> Self {
        Self { threads, ..self }
    }
}

/// Results of several runs of a case.
pub struct Measured {
    /// Requests a second of every run, ascending.
    pub rates: Vec<f64>,
    /// Hash of the result, equal in every run.
    pub hash: String,
}

impl Measured {
    pub fn median(&self) -> f64 {
        self.rates[self.rates.len() / 2]
    }
}

/// osdi00's random workload: 4 KiB, two reads for each write, evenly spread. `keys` are additional
/// lines at the top of the experiment.
pub fn random(keys: &str, outstanding: u64, requests: u64) -> String {
    format!(
        "{keys}\nworkload = {{ kind = \"closed\", outstanding = {outstanding}, requests = {requests} }}\n"
    )
}

/// The Atlas 10K without its electronics.
pub fn bare_atlas(policy: &str) -> String {
    format!("drive = \"atlas10k\"\nelectronics = false\nscheduler = {{ policy = \"{policy}\" }}")
}

/// Runs an experiment once. Panics when it cannot be run.
pub fn run(config: &str) -> RunResult {
    let config = SimConfig::parse(config, "benchmark", &[]).expect("a valid benchmark");
    let experiment = Experiment::new(config).expect("a shipped drive");
    experiment.run().expect("a workload that fits the drive")
}

/// Runs a case `runs` times, from the text of the experiment to its result. Panics for different
/// hashes.
pub fn measure(case: &Case, runs: usize) -> Measured {
    let threads = rayon::ThreadPoolBuilder::new().num_threads(case.threads).build();
    let threads = threads.expect("threads");
    let mut hashes = Vec::new();
    let mut rates: Vec<f64> = (0..runs)
        .map(|_| {
            let start = Instant::now();
            let result = threads.install(|| run(&case.config));
            assert_eq!(result.requests, case.requests, "{}", case.name);
            hashes.push(result.result_hash);
            case.requests as f64 / start.elapsed().as_secs_f64()
        })
        .collect();
    rates.sort_by(f64::total_cmp);
    hashes.dedup();
    assert_eq!(hashes.len(), 1, "{}: runs differ: {hashes:?}", case.name);
    Measured { rates, hash: hashes.remove(0) }
}
