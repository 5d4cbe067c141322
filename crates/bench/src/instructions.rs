//! Instructions a request by stage of the engine, counted by valgrind's callgrind: a measure that other
//! load on the machine does not change.
//!
//! Each case runs at two lengths, and the difference leaves out what is prepared once. An instruction belongs
//! to the source file that it was compiled from, so that inlining moves none to another stage. Where the
//! standard library or `units` is inlined, its instructions belong to the stage around them. So the build needs
//! line tables (`make bench-instructions`).

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use freewheel_sim::config::SimConfig;
use freewheel_sim::experiment::Experiment;

use crate::case::Case;
use crate::long::Folder;
use crate::print_origin;
use crate::record::Origin;
use crate::suite;

/// The hidden argument before an experiment and its requests.
pub const ONE_RUN: &str = "--instructions-run";

/// Requests of the shorter and of the longer run.
const LENGTHS: [u64; 2] = [10_000, 30_000];

/// In the order in which a request meets them.
const STAGES: [&str; 11] = [
    "source",
    "map",
    "cache",
    "queue",
    "electronics",
    "mechanics",
    "free work",
    "statistics",
    "loop",
    "library",
    "memory",
];

/// The stage of each part of the sources. The first that fits counts.
const PLACES: &[(&str, &str)] = &[
    ("sim/src/source", "source"),
    ("sim/src/events", "source"),
    ("units/src/prng", "source"),
    ("libm", "source"),
    ("sim/src/engine/map", "map"),
    ("sim/src/engine/zoned", "map"),
    ("array/src/files/map", "map"),
    ("model/src/striping", "map"),
    ("sim/src/engine/cache", "cache"),
    ("sim/src/cache", "cache"),
    ("model/src/cache", "cache"),
    ("model/src/lru", "cache"),
    ("/slab-", "cache"),
    ("sim/src/engine/queue", "queue"),
    ("sim/src/engine/pick", "queue"),
    ("sim/src/engine/promoted", "queue"),
    ("model/src/sched", "queue"),
    ("model/src/drive/positionings", "queue"),
    ("model/src/electronics", "electronics"),
    ("freeblock/src", "free work"),
    ("sim/src/background", "free work"),
    ("host/src", "free work"),
    ("sim/src/predicted_device", "free work"),
    ("model/src/drive", "mechanics"),
    ("sim/src/device", "mechanics"),
    ("sim/src/arm_executor", "mechanics"),
    ("sim/src/free_time", "mechanics"),
    ("sim/src/seek_errors", "mechanics"),
    ("sim/src/idle", "mechanics"),
    ("sim/src/result", "statistics"),
    ("sim/src/completion", "statistics"),
    ("sim/src/digest", "statistics"),
    ("model/src/stats", "statistics"),
    ("hdrhistogram", "statistics"),
    ("sim/src/engine", "loop"),
];

/// Prints a table of the cases whose names contain `part`.
pub fn run(part: &str) {
    let [less, more] = LENGTHS;
    print_origin(
        &Origin::here(),
        &format!("instructions a request, from {less} to {more} requests"),
    );
    let stages: String = STAGES.iter().map(|stage| format!(" {stage:>11}")).collect();
    println!("{:<58} {:>8}{stages}", "", "all");
    let mut seen = Vec::new();
    for case in suite::cases() {
        // A burst of another length is another queue.
        let is_burst = case.requests == suite::BURST;
        if is_burst || !case.name.contains(part) || seen.contains(&case.config) {
            continue;
        }
        let by_stage = measure(&case);
        let all: f64 = by_stage.values().sum();
        let columns: String = STAGES
            .iter()
            .map(|stage| format!(" {:>11.0}", by_stage.get(stage).copied().unwrap_or(0.0)))
            .collect();
        println!("{:<58} {all:>8.0}{columns}", case.name);
        seen.push(case.config);
    }
}

/// Instructions a request by stage.
fn measure(case: &Case) -> BTreeMap<&'static str, f64> {
    let folder = Folder::new();
    let [less, more] = LENGTHS.map(|requests| {
        let out = folder.path(&format!("callgrind.{requests}"));
        let program = std::env::current_exe().expect("the path of this program");
        let output = Command::new("valgrind")
            .args(["--quiet", "--tool=callgrind"])
            .arg(format!("--callgrind-out-file={}", out.display()))
            .arg(program)
            .args([ONE_RUN, &case.config, &requests.to_string()])
            .stderr(Stdio::inherit())
            .output()
            .unwrap_or_else(|error| panic!("valgrind (Debian's package of that name): {error}"));
        assert!(output.status.success(), "{} under valgrind: {}", case.name, output.status);
        let ran =
            String::from_utf8(output.stdout).ok().and_then(|text| text.trim().parse::<u64>().ok());
        let by_stage = instructions(&out);
        assert!(by_stage.contains_key("loop"), "no source files: build with line tables");
        (ran.expect("the number of requests"), by_stage)
    });
    let requests = (more.0 - less.0) as f64;
    more.1
        .iter()
        .map(|(&stage, &count)| {
            (stage, (count as f64 - (less.1.get(stage).copied().unwrap_or(0) as f64)) / requests)
        })
        .collect()
}

/// Runs an experiment of this many requests a drive, for valgrind to count. Prints those of all drives.
pub fn run_once(config: &str, requests: &str) {
    let change = format!("workload.requests={requests}");
    let config = SimConfig::parse(config, "benchmark", &[change]).expect("a valid benchmark");
    let result = Experiment::new(config).and_then(|it| it.run());
    println!("{}", result.expect("a workload that fits the drive").requests);
}

/// Instructions by stage of callgrind's output.
///
/// Lines `fn=` name a function, `fl=`, `fi=` and `fe=` a source file; the numbers after them are a line of
/// the source and its instructions. After `calls=` stands what the called function took, which it counts
/// itself. `(7) name` defines a number, and `(7)` refers to it.
fn instructions(path: &Path) -> BTreeMap<&'static str, u64> {
    let text = fs::read_to_string(path).expect("callgrind's output");
    let (mut files, mut functions) = (Names::default(), Names::default());
    let (mut stage, mut file, mut after_call) = ("library", None, false);
    let mut sums = BTreeMap::new();
    for line in text.lines() {
        match line.split_once('=') {
            Some(("fn", name)) => {
                let is_memory = is_memory(functions.resolve(name));
                stage = if is_memory { "memory" } else { file.unwrap_or("library") };
            }
            Some(("fl" | "fi" | "fe", name)) => {
                file = stage_of(files.resolve(name));
                stage = file.unwrap_or(stage);
            }
            Some(("cfn", name)) => drop(functions.resolve(name)),
            Some(("cfi" | "cfl", name)) => drop(files.resolve(name)),
            Some(("calls", _)) => after_call = true,
            _ if !line
                .starts_with(|first: char| first.is_ascii_digit() || "+-*".contains(first)) => {}
            _ if after_call => after_call = false,
            _ => {
                let count = line.split(' ').nth(1).and_then(|count| count.parse::<u64>().ok());
                *sums.entry(stage).or_default() += count.expect("a number of instructions");
            }
        }
    }
    sums
}

fn stage_of(file: &str) -> Option<&'static str> {
    PLACES.iter().find(|(place, _)| file.contains(place)).map(|(_, stage)| *stage)
}

/// True if a function of the C library copies or hands out memory. Rust's functions have paths.
fn is_memory(function: &str) -> bool {
    !function.contains("::")
        && ["__mem", "mem", "malloc", "calloc", "realloc", "free", "cfree", "_int_"]
            .iter()
            .any(|start| function.starts_with(start))
}

/// The names that a file of callgrind has numbered so far.
#[derive(Default)]
struct Names(HashMap<String, String>);

impl Names {
    fn resolve(&mut self, text: &str) -> &str {
        let (number, name) = text.split_once(' ').unwrap_or((text, ""));
        let known = self.0.entry(number.into()).or_default();
        if !name.is_empty() {
            *known = name.into();
        }
        known
    }
}
