//! Destages of a write buffer in the rotational gaps of reads.

use std::collections::VecDeque;

use freewheel_sim::config::SimConfig;
use freewheel_sim::experiment::Experiment;
use freewheel_sim::source::{Request, Source, SourceError};
use freewheel_sim::{Completion, RunResult};
use freewheel_units::{Blocks, Op, Prng, SimDuration, SimTime, VolumeBlock};

const DRIVE: &str = r#"
    drive = "atlas10k"
    electronics = false
    workload = { kind = "closed", requests = 1, outstanding = 1, pattern = { size = "4KiB" } }
"#;

/// Clients that ask again after each answer, in a database of 1.6 GB. Reads lie in its odd pages and
/// writes in its even ones, so that no read asks for what was written.
struct Clients {
    prng: Prng,
    ready: VecDeque<SimTime>,
    read_share: f64,
    asked: u64,
    requests: u64,
}

impl Clients {
    fn new(count: u64, read_share: f64, requests: u64) -> Self {
        let ready = (0..count).map(|n| SimTime::from_ns(n * 1_000)).collect();
        Self { prng: Prng::new(count, "clients"), ready, read_share, asked: 0, requests }
    }
}

impl Source for Clients {
    fn next_arrival(&mut self) -> Result<Option<SimTime>, SourceError> {
        Ok(self.ready.front().copied().filter(|_| self.asked < self.requests))
    }

    fn take(&mut self) -> Request {
        self.ready.pop_front();
        self.asked += 1;
        let place = 1_000_000 + self.prng.below(200_000) * 16;
        let (op, start) = match self.prng.chance(self.read_share) {
            true => (Op::Read, place + 8),
            false => (Op::Write, place),
        };
        let (start, blocks) = (VolumeBlock::new(start), Blocks::new(8));
        Request { op, start, blocks, fua: false, tag: self.asked }
    }

    fn completed(&mut self, _: u64, now: SimTime) {
        self.ready.push_back(now + SimDuration::from_ms(1));
    }

    fn progress(&self) -> (u64, u64) {
        (self.asked, self.requests)
    }
}

fn run(mut clients: Clients, overrides: &[&str]) -> (RunResult, Vec<Completion>) {
    let overrides: Vec<String> = overrides.iter().map(|text| (*text).into()).collect();
    let config = SimConfig::parse(DRIVE, "test", &overrides).unwrap();
    let mut completions = Vec::new();
    let mut observer = |completion: &Completion| completions.push(*completion);
    let experiment = Experiment::new(config).unwrap();
    let result =
        experiment.new_run().with_observer(&mut observer).simulate_source(&mut clients).unwrap();
    (result, completions)
}

const IN_GAPS: &str = "cache.write_buffer.destage_in_gaps=true";

#[test]
fn requests_unchanged_without_other_destages() {
    // This buffer holds every write of the run, so no ordinary destage begins.
    let large = ["cache.write_buffer.size=256MiB", "cache.write_buffer.max_age=1h"];
    for policy in ["fcfs", "sptf", "clook"] {
        for drive in ["atlas10k", "cheetah9lp", "exos-7e8-8tb"] {
            let (policy, drive) =
                (format!("scheduler.policy={policy}"), format!("drive=\"{drive}\""));
            let plain = [&large[..], &[policy.as_str(), drive.as_str()]].concat();
            let clients = || Clients::new(6, 0.7, 4_000);
            let (without, expected) = run(clients(), &plain);
            let (with, completions) = run(clients(), &[&plain[..], &[IN_GAPS]].concat());
            let ends = |list: &[Completion]| -> Vec<_> {
                list.iter().map(|c| (c.request.tag, c.arrival, c.end)).collect()
            };
            assert_eq!(ends(&completions), ends(&expected), "{policy} {drive}");
            let (with_work, work) = (with.cache.unwrap(), without.cache.unwrap());
            assert_eq!((with_work.destages, work.destages), (0, 0), "{policy} {drive}");
            let written = with_work.in_gaps_bytes;
            assert!(written > 100 * 4096 && work.in_gaps_bytes == 0, "{policy} {drive}: {written}");
            let free = with.free.unwrap().time;
            assert_eq!((free.foreground_delay_ns, free.gaps_late), (0, 0), "{policy} {drive}");
            assert!(with_work.at_risk_byte_ns < work.at_risk_byte_ns, "{policy} {drive}");
        }
    }
}

#[test]
fn gaps_take_over_busy_destages() {
    let small = ["cache.write_buffer.size=4MiB", "scheduler.policy=sptf"];
    let clients = || Clients::new(16, 0.67, 24_000);
    let (without, _) = run(clients(), &small);
    let (with, completions) = run(clients(), &[&small[..], &[IN_GAPS]].concat());
    let destages = [&without, &with].map(|result| result.cache.unwrap().destages);
    let seconds = [&without, &with].map(|result| result.elapsed_ns as f64 / 1e9);
    println!("destages {destages:?}, seconds {seconds:?}");
    assert_eq!(completions.len(), 24_000);
    assert!(destages[1] * 10 < destages[0] * 7, "{destages:?}");
    assert!(seconds[1] < 0.93 * seconds[0], "{seconds:?}");
    let blocks = with.cache.unwrap().in_gaps_bytes / 4096;
    assert!(blocks > destages[0] - destages[1] - 1_024, "gaps wrote what was not destaged");
}

#[test]
fn gap_destages_with_electronics_refused() {
    for (key, words) in [
        ("electronics=true", "electronics = false"),
        ("drive=\"ultrastar-hc620-14tb\"", "host-managed"),
    ] {
        let overrides = ["electronics=false", key, "cache.write_buffer.size=1MiB", IN_GAPS];
        let overrides: Vec<String> = overrides.into_iter().map(String::from).collect();
        let config = SimConfig::parse(DRIVE, "test", &overrides).unwrap();
        let error = Experiment::new(config).unwrap_err().to_string();
        assert!(error.contains("write_buffer") && error.contains(words), "{error}");
    }
}
