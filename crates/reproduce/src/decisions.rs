//! Processor time of freeblock decisions, by the blocks that are wanted.
//!
//! Random gaps between random places of a drive, decided one after the other. When a hundredth of what
//! was wanted has been taken it is wanted again, so that the share stays. The upkeep of the index when
//! blocks are taken is timed apart: a server does that after it has handed out the decision, while the
//! drive moves. Registering what is wanted is in neither time.

use std::sync::Arc;

use freewheel_freeblock::{
    Delivered, Effort, LayerKey, Opportunity, Options, Planner, Rule, Scheduler,
};
use freewheel_model::drive::{Departure, Drive, RemainingAccess};
use freewheel_units::{Blocks, Lbn, Op, Prng, SimDuration, SimTime};

/// Decisions before those that are timed, which warm the caches.
const WARM_UP: usize = 500;

/// Which blocks are wanted.
#[derive(Debug, Clone, Copy)]
pub enum Fill {
    /// This part of all, each by chance.
    Part(f64),
    /// One on every track, somewhere: small pieces everywhere, the worst case of the paper's search.
    OneATrack,
}

/// Decisions to be timed.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)]
pub struct DecisionCase<'a> {
    /// The drive whose gaps are filled.
    pub drive: &'a Arc<Drive>,
    /// How a gap is filled.
    pub rule: Rule,
    /// Blocks of 512 B in a wanted block.
    pub size: u32,
    pub fill: Fill,
    pub decisions: usize,
}

/// Times of decisions.
#[derive(Debug, Clone)]
pub struct DecisionTimes {
    /// Nanoseconds of every decision, ascending.
    pub ns: Vec<u64>,
    /// Mean upkeep of the index behind a decision.
    pub upkeep_ns_mean: f64,
    /// Mean number of nodes that a decision looked at.
    pub nodes_mean: f64,
    /// Of all plans.
    pub hash: u64,
}

impl DecisionTimes {
    /// The time that this share of the decisions does not exceed.
    pub fn quantile_ns(&self, share: f64) -> u64 {
        self.ns[((self.ns.len() - 1) as f64 * share) as usize]
    }
}

/// Times decisions: `timer` makes a call and says how long it took.
pub fn time_decisions(
    case: &DecisionCase<'_>,
    timer: impl Fn(&mut dyn FnMut()) -> SimDuration,
) -> DecisionTimes {
    let DecisionCase { drive, rule, size, fill, decisions } = *case;
    let mut prng = Prng::new(1, "freeblock decisions");
    let mut scheduler = Scheduler::new(drive, Options { rule, ..Options::default() });
    let layer = scheduler.layer(LayerKey { op: Op::Read, size, offset: 0, weight: 1 });
    want(&mut scheduler, drive, layer, u64::from(size), fill, &mut prng);
    let most_taken = scheduler.wanted(layer) / 100;
    let (mut taken, mut blocks_taken): (Vec<Delivered>, u64) = (Vec::new(), 0);
    let (mut effort, mut upkeep_ns) = (Effort::default(), 0u64);
    let (mut ns, mut runs, mut hash) = (Vec::new(), Vec::new(), 0u64);
    for decision in 0..WARM_UP + decisions {
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
        let took = timer(&mut || scheduler.plan(&gap, &mut runs));
        let refreshed = timer(&mut || scheduler.refresh());
        if decision >= WARM_UP {
            upkeep_ns += refreshed.ns();
            ns.push(took.ns());
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
    ns.sort_unstable();
    DecisionTimes {
        ns,
        upkeep_ns_mean: mean(upkeep_ns, decisions),
        nodes_mean: mean(effort.nodes, decisions),
        hash,
    }
}

fn mean(sum: u64, decisions: usize) -> f64 {
    sum as f64 / decisions as f64
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
            // From one wanted block to the next: the distance follows from chance.
            let mut block = 0u64;
            loop {
                // libm and not the platform's logarithm: the same blocks everywhere.
                let skipped = libm::log(prng.unit()) / libm::log(1.0 - part);
                block = block.saturating_add(skipped as u64);
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
        let source = drive.target(place(prng, drive), Blocks::new(16), Op::Read);
        let op = if prng.below(3) < 2 { Op::Read } else { Op::Write };
        let target = drive.target(place(prng, drive), Blocks::new(16), op);
        let begin = SimTime::from_ns(prng.below(1 << 40));
        let departure = Departure::after_read(begin, source.at);
        let leg = drive
            .next_leg(&departure, &RemainingAccess::whole(&target), 0)
            .expect("a target has a leg");
        let gap = Opportunity::before(&departure, &leg, 0);
        if gap.latency() > SimDuration::ZERO {
            return gap;
        }
    }
}

fn place(prng: &mut Prng, drive: &Drive) -> Lbn {
    Lbn::new(prng.below(drive.blocks().get() - 16))
}
