//! Cost of a freeblock decision, at every fill and in the worst case: [`time_decisions`], on one core.

use std::sync::Arc;

use freewheel_freeblock::Rule;
use freewheel_live::stopwatch::timed;
use freewheel_reproduce::decisions::{DecisionCase, Fill, time_decisions};
use freewheel_sim::library;

use crate::print_origin;
use crate::record::{Origin, peak_memory_bytes};

/// Decisions that are timed for each row.
const DECISIONS: usize = 5_000;

/// Prints a table of the rows whose names contain `part`.
pub fn run(part: &str) {
    let origin = Origin::here();
    print_origin(&origin, &format!("{DECISIONS} decisions each, one core"));
    let columns = ["median", "p90", "p99", "longest", "upkeep", "nodes", "hash"];
    let [median, p90, p99, longest, upkeep, nodes, hash] = columns;
    println!(
        "{:<58} {median:>8} {p90:>8} {p99:>8} {longest:>8} {upkeep:>8} {nodes:>8}  {hash}",
        "us; upkeep in the mean"
    );
    let atlas = [100.0, 50.0, 20.0, 10.0, 5.0, 2.0, 1.0, 0.5, 0.2, 0.1];
    for rule in [Rule::Greedy, Rule::Paths] {
        for (size, name) in [(8, "4 KiB"), (128, "64 KiB"), (1, "1 sector")] {
            let fills = atlas.map(|percent| Fill::Part(percent / 100.0));
            rows(part, "atlas10k", rule, size, name, fills.into_iter().chain([Fill::OneATrack]));
        }
        let fills = [100.0, 50.0, 10.0, 1.0, 0.1].map(|percent| Fill::Part(percent / 100.0));
        rows(
            part,
            "exos-x24-24tb",
            rule,
            128,
            "64 KiB",
            fills.into_iter().chain([Fill::OneATrack]),
        );
        let fills = [100.0, 1.0, 0.1].map(|percent| Fill::Part(percent / 100.0));
        rows(part, "exos-x24-24tb", rule, 8, "4 KiB", fills.into_iter().chain([Fill::OneATrack]));
    }
    if let Some(bytes) = peak_memory_bytes() {
        println!("peak memory {} MiB", bytes >> 20);
    }
}

fn rows(
    part: &str,
    drive: &str,
    rule: Rule,
    size: u32,
    name: &str,
    fills: impl Iterator<Item = Fill>,
) {
    let spec = library::spec(drive).expect("a shipped drive");
    let drive = Arc::new(library::build(&spec, drive).expect("a shipped drive"));
    for fill in fills {
        let what = match fill {
            Fill::Part(part) => format!("{} % wanted", part * 100.0),
            Fill::OneATrack => "one block a track".into(),
        };
        let row = format!("{}, {rule:?}, blocks of {name}, {what}", spec.name);
        if !row.contains(part) {
            continue;
        }
        let case = DecisionCase { drive: &drive, rule, size, fill, decisions: DECISIONS };
        let measured = time_decisions(&case, |call| timed(call));
        let us = |at: f64| measured.quantile_ns(at) as f64 / 1e3;
        println!(
            "{:<58} {:>8.1} {:>8.1} {:>8.1} {:>8.1} {:>8.1} {:>8.1}  {:016x}",
            row,
            us(0.5),
            us(0.9),
            us(0.99),
            us(1.0),
            measured.upkeep_ns_mean / 1e3,
            measured.nodes_mean,
            measured.hash
        );
    }
}
