//! What a freeblock decision costs, at every fill and in the worst case.
//!
//! Random gaps between random places of a drive, decided one after the other on one core. When a
//! hundredth of what was wanted has been taken it is wanted again, so that the fill stays. What it takes
//! to keep the index up when blocks are taken stands apart: a server does that when it has handed out
//! what was decided, while the drive moves. What it costs to want blocks is in neither.

use std::sync::Arc;
use std::time::{Duration, Instant};

use freewheel::model::drive::{Departure, Drive, Rest};
use freewheel::model::freeblock::{
    Delivered, Effort, LayerKey, Opportunity, Options, Planner, Rule, Scheduler,
};
use freewheel::sim::library;
use freewheel::units::{Blocks, Lbn, Op, Prng, SimDuration, SimTime};

use crate::print_origin;
use crate::record::{Origin, peak_memory_bytes};

/// Decisions that are timed for each row.
const DECISIONS: usize = 5_000;

/// Decisions before them, which warm the caches.
const WARM_UP: usize = 500;

/// Which blocks are wanted.
#[derive(Clone, Copy)]
enum Fill {
    /// This part of all, each by chance.
    Part(f64),
    /// One on every track, somewhere: small pieces everywhere, the worst case of the paper's search.
    OneATrack,
}

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
        let measured = measure(&drive, rule, size, fill);
        let us = |at: f64| measured.ns[((measured.ns.len() - 1) as f64 * at) as usize] / 1e3;
        println!(
            "{:<58} {:>8.1} {:>8.1} {:>8.1} {:>8.1} {:>8.1} {:>8.1}  {:016x}",
            row,
            us(0.5),
            us(0.9),
            us(0.99),
            us(1.0),
            measured.upkeep_us,
            measured.nodes,
            measured.hash
        );
    }
}

struct Measured {
    /// Of every decision, ascending.
    ns: Vec<f64>,
    /// What each takes of the index's upkeep, in the mean.
    upkeep_us: f64,
    /// Nodes that a decision looked at.
    nodes: f64,
    /// Over all plans.
    hash: u64,
}

fn measure(drive: &Arc<Drive>, rule: Rule, size: u32, fill: Fill) -> Measured {
    let mut prng = Prng::new(1, "freeblock decisions");
    let mut scheduler = Scheduler::new(drive, Options { rule, ..Options::default() });
    let layer = scheduler.layer(LayerKey { op: Op::Read, size, offset: 0, weight: 1 });
    want(&mut scheduler, drive, layer, u64::from(size), fill, &mut prng);
    let most_taken = scheduler.wanted(layer) / 100;
    let (mut taken, mut blocks_taken): (Vec<Delivered>, u64) = (Vec::new(), 0);
    let mut effort = Effort::default();
    let (mut ns, mut runs, mut hash) = (Vec::new(), Vec::new(), 0u64);
    let mut upkeep = Duration::ZERO;
    for decision in 0..WARM_UP + DECISIONS {
        if blocks_taken > most_taken {
            blocks_taken = 0;
            for blocks in taken.drain(..) {
                scheduler.want(layer, blocks.first, blocks.first + blocks.blocks);
            }
            // The first decision after that brings the index up to date.
            scheduler.plan(&any_gap(drive, &mut prng), &mut runs);
        }
        let gap = any_gap(drive, &mut prng);
        let before = scheduler.effort();
        let start = Instant::now();
        scheduler.plan(&gap, &mut runs);
        let took = start.elapsed();
        scheduler.refresh();
        if decision >= WARM_UP {
            upkeep += start.elapsed() - took;
            ns.push(took.as_nanos() as f64);
            effort.nodes += scheduler.effort().nodes - before.nodes;
        }
        for run in &runs {
            let word = run.start.get() ^ u64::from(run.blocks) << 48;
            hash = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
            scheduler.done(run, gap.due);
        }
        for delivery in scheduler.deliveries() {
            blocks_taken += delivery.delivered.blocks;
            taken.push(delivery.delivered);
        }
    }
    let nodes = effort.nodes as f64 / DECISIONS as f64;
    let upkeep_us = upkeep.as_nanos() as f64 / 1e3 / DECISIONS as f64;
    ns.sort_by(f64::total_cmp);
    Measured { ns, upkeep_us, nodes, hash }
}

fn want(
    scheduler: &mut Scheduler,
    drive: &Drive,
    layer: usize,
    size: u64,
    fill: Fill,
    prng: &mut Prng,
) {
    let blocks = drive.blocks().get() / size;
    match fill {
        Fill::Part(part) if part >= 1.0 => drop(scheduler.want(layer, 0, blocks)),
        Fill::Part(part) => {
            // From one wanted block to the next: as many as it takes until chance says yes.
            let mut block = 0;
            loop {
                block += (prng.unit().ln() / (1.0 - part).ln()) as u64;
                if block >= blocks {
                    break;
                }
                scheduler.want(layer, block, block + 1);
                block += 1;
            }
        }
        Fill::OneATrack => {
            let mut first = Lbn::ZERO;
            while first.get() < drive.blocks().get() {
                let end = drive.layout().track_bounds(first).1;
                let block = (first.get() + prng.below(end.get() - first.get())) / size;
                scheduler.want(layer, block.min(blocks - 1), block.min(blocks - 1) + 1);
                first = end;
            }
        }
    }
}

/// The gap before a request of 8 KiB anywhere, the head being anywhere.
fn any_gap(drive: &Drive, prng: &mut Prng) -> Opportunity {
    loop {
        let place = |prng: &mut Prng| Lbn::new(prng.below(drive.blocks().get() - 16));
        let source = drive.target(place(prng), Blocks::new(16), Op::Read);
        let op = if prng.below(3) < 2 { Op::Read } else { Op::Write };
        let target = drive.target(place(prng), Blocks::new(16), op);
        let begin = SimTime::from_ns(prng.below(1 << 40));
        let departure = Departure::after_read(begin, source.at);
        let leg = drive.next_leg(&departure, &Rest::whole(&target), 0).expect("a target has a leg");
        let gap = Opportunity::before(&departure, &leg, 0);
        if gap.latency() > SimDuration::ZERO {
            return gap;
        }
    }
}
