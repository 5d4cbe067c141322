//! The freeblock scheduler: what is wanted, where to look for it, and what to take.

use std::sync::Arc;

use freewheel_units::{Bytes, Lbn, Op, SimTime};

use super::index::{Index, Objective};
use super::path::{Chain, Chains, Window, between, worth_within};
use super::prices::Prices;
use super::reach::Reach;
use super::search::{Field, Frontier, Looked, best_track};
use super::tracks::Tracks;
use super::wanted::{Delivered, Item, LayerKey, Wanted};
use super::{FreeRun, Opportunity, Planner};
use crate::drive::{Drive, Position};

/// A change to more than this part of the drive is worth a new index.
const REBUILD_SHARE: u64 = 16;

/// How a gap is filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Rule {
    /// The one track with most wanted blocks (osdi00 section 4).
    #[default]
    Greedy,
    /// The best path over the tracks of one cylinder, with what else can be had on the cylinders of
    /// source and destination; regions of the disk that lag behind count for more.
    Paths,
}

/// What shapes the decisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// How a gap is filled.
    pub rule: Rule,
    /// Most nodes that one decision looks at.
    pub budget: u64,
    /// Most memory for pieces of blocks that are not complete.
    pub held_max: Bytes,
}

impl Default for Options {
    /// 64 MiB is little for a host and an eighth of the buffer of a drive of today.
    fn default() -> Self {
        Self { rule: Rule::Greedy, budget: u64::MAX, held_max: Bytes::new(64 << 20) }
    }
}

/// What decisions cost so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Effort {
    /// Gaps that were decided on.
    pub decisions: u64,
    /// Nodes looked at.
    pub nodes: u64,
    /// Decisions that stopped for their budget, so that something better may have been missed.
    pub exhausted: u64,
}

/// Something wanted that has been done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delivery {
    /// What.
    pub delivered: Delivered,
    /// When it was on the media or had left it.
    pub at: SimTime,
}

/// Decides what to do in gaps for what is wanted.
#[derive(Debug, Clone)]
pub struct Scheduler {
    options: Options,
    tracks: Tracks,
    wanted: Wanted,
    index: Index,
    frontier: Frontier,
    /// Cylinders on which something has changed since the index was brought up to date.
    touched: Vec<u32>,
    /// So much has changed that the index is worked out anew.
    is_stale: bool,
    deliveries: Vec<Delivery>,
    effort: Effort,
    items: Vec<(u64, Item)>,
    prices: Prices,
    at_source: Chains,
    at_destination: Chains,
    at_third: Chains,
}

impl Scheduler {
    /// Nothing is wanted yet.
    pub fn new(drive: &Arc<Drive>, options: Options) -> Self {
        let tracks = Tracks::new(drive);
        let wanted = Wanted::new(options.held_max.get() / 512);
        let objective = match options.rule {
            Rule::Greedy => Objective::Track,
            Rule::Paths => Objective::Cylinder,
        };
        let index = Index::new(&tracks, &wanted, objective);
        let prices = Prices::new(&index);
        Self {
            options,
            tracks,
            wanted,
            index,
            frontier: Frontier::default(),
            touched: Vec::new(),
            is_stale: false,
            deliveries: Vec::new(),
            effort: Effort::default(),
            items: Vec::new(),
            prices,
            at_source: Chains::default(),
            at_destination: Chains::default(),
            at_third: Chains::default(),
        }
    }

    /// Number of the layer with this key.
    pub fn layer(&mut self, key: LayerKey) -> usize {
        self.wanted.layer(&self.tracks, key)
    }

    /// Wants the blocks `from..to` of a layer; how many were not wanted before.
    pub fn want(&mut self, layer: usize, from: u64, to: u64) -> u64 {
        let start = |block| self.wanted.layers()[layer].start(block);
        self.prices.wanted(&self.tracks, start(from), start(to));
        let new = self.wanted.want(&self.tracks, layer, from, to);
        self.touch_blocks(layer, from, to);
        new
    }

    /// Wants the blocks `from..to` of a layer no longer; how many were wanted.
    pub fn unwant(&mut self, layer: usize, from: u64, to: u64) -> u64 {
        let gone = self.wanted.unwant(&self.tracks, layer, from, to);
        self.touch_blocks(layer, from, to);
        gone
    }

    fn touch_blocks(&mut self, layer: usize, from: u64, to: u64) {
        let layer = &self.wanted.layers()[layer];
        let (from, to) = (layer.start(from), layer.start(to));
        if (to - from) > self.tracks.drive().blocks().get() / REBUILD_SHARE {
            self.is_stale = true;
        } else {
            self.touch(from, to);
        }
    }

    /// More is wanted of the blocks `from..to` of 512 B.
    fn touch(&mut self, from: u64, to: u64) {
        let mut block = from;
        while block < to {
            let (track, stretch) = self.tracks.stretch_of(block);
            let cylinder = self.tracks.position(track).cylinder;
            if self.touched.last() != Some(&cylinder) {
                self.touched.push(cylinder);
            }
            block = stretch.end();
        }
    }

    /// How many blocks of a layer are wanted.
    pub fn wanted(&self, layer: usize) -> u64 {
        self.wanted.count(layer)
    }

    /// The first wanted blocks of a layer from `from` on that follow on each other: `first..end`, at
    /// most `most`.
    pub fn next_wanted(&self, layer: usize, from: u64, most: u64) -> Option<(u64, u64)> {
        self.wanted.next_run(layer, from, most)
    }

    /// What decisions cost so far.
    pub fn effort(&self) -> Effort {
        self.effort
    }

    /// Takes what has been done since the last call, in the order it was done.
    pub fn deliveries(&mut self) -> std::vec::Drain<'_, Delivery> {
        self.deliveries.drain(..)
    }

    fn refresh(&mut self) {
        if std::mem::take(&mut self.is_stale) {
            self.touched.clear();
            self.index.rebuild(&self.tracks, &self.wanted);
        }
        self.touched.sort_unstable();
        self.touched.dedup();
        for cylinder in self.touched.drain(..) {
            self.index.update(&self.tracks, &self.wanted, cylinder);
        }
    }

    /// What was moved may be wanted: by layers that `serves` says.
    fn moved(&mut self, start: Lbn, blocks: u32, serves: impl Fn(&LayerKey) -> bool, at: SimTime) {
        let (from, to) = (start.get(), start.get() + u64::from(blocks));
        let Self { deliveries, prices, tracks, .. } = self;
        self.wanted.moved(tracks, (from, to), serves, &mut |key, delivered| {
            let size = u64::from(key.size);
            let from = u64::from(key.offset) + delivered.first * size;
            prices.delivered(tracks, from, from + delivered.blocks * size);
            deliveries.push(Delivery { delivered, at });
        });
        let mut block = from;
        while block < to {
            let (track, stretch) = self.tracks.stretch_of(block);
            self.index.fewer(self.tracks.position(track).cylinder);
            block = stretch.end();
        }
    }

    fn plan_greedy(&mut self, reach: &Reach<'_>, runs: &mut Vec<FreeRun>) -> Looked {
        let budget = self.options.budget;
        let Self { tracks, wanted, index, frontier, items, .. } = self;
        let (best, looked) =
            best_track(&mut Field { tracks, wanted, index }, reach, frontier, budget);
        let Some(best) = best else { return looked };
        let Some(place) = tracks.place(best.track) else { return looked };
        let rotation = tracks.drive().rotation();
        items.clear();
        for op in [Op::Read, Op::Write] {
            let stay = reach.stay(tracks.position(best.track), op);
            let begin = reach.time(stay.from);
            let passing = tracks.passing(&place, begin, stay.length());
            let phase = rotation.phase_ns(begin);
            wanted.items(tracks, best.track, &place, passing, op, &mut |item| {
                let edge = tracks.edge_ns(&place, tracks.sector_on(best.track, item.first));
                items.push((stay.from + rotation.forward_ns(phase, edge), item));
            });
        }
        // In the order they pass.
        items.sort_unstable_by_key(|&(when, item)| (when, item.first));
        runs.extend(merged(items.iter().map(|(_, item)| item)));
        looked
    }
}

/// Steps that one cylinder's path is sought among; where more are wanted, its best track is taken.
const STEPS_MAX: u32 = 512;

impl Scheduler {
    /// Gathers what is wanted on a cylinder in a window: of all tracks, or where that is more than
    /// a path is sought in, of the one named.
    fn gather(
        tracks: &Tracks,
        wanted: &Wanted,
        reach: &Reach<'_>,
        chains: &mut Chains,
        at: Position,
        window: &impl Window,
        price: u64,
    ) {
        let (sum, ..) = worth_within(tracks, wanted, reach, at.cylinder, window);
        let size = wanted.size_min();
        let surfaces =
            if sum > STEPS_MAX * size { at.surface..at.surface + 1 } else { 0..tracks.surfaces() };
        chains.clear();
        chains.gather(tracks, wanted, reach, at.cylinder, surfaces, window, price);
    }

    fn plan_paths(&mut self, reach: &Reach<'_>, runs: &mut Vec<FreeRun>) -> Looked {
        let Self { tracks, wanted, index, prices, at_source, at_destination, at_third, .. } = self;
        let gap = reach.gap;
        let (surfaces, length) = (tracks.surfaces(), reach.length());
        let (source, destination) = ((gap.from, 0), (gap.to, length, gap.op));
        // Moving on, whichever the heads and whatever comes next.
        let cross = |from: u32, to: u32| {
            let [from, to] =
                [(from, 0), (to, 1)].map(|(cylinder, surface)| Position { cylinder, surface });
            reach.move_ns(from, to, Op::Read).max(reach.move_ns(from, to, Op::Write))
        };
        let switch = if wanted.has(Op::Write) {
            cross(0, 0)
        } else {
            tracks.drive().seek().time_ns(Op::Read, 0, true)
        };
        self.items.clear();
        let items = &mut self.items;
        let take = |chains: &Chains, chain: Chain, items: &mut Vec<(u64, Item)>| {
            items.extend(chains.walk(chain).map(|step| (step.start, step.item)));
        };
        let take_reversed = |chains: &Chains, chain: Chain, items: &mut Vec<(u64, Item)>| {
            items.extend(chains.walk(chain).map(|step| (length - step.end, step.item)));
        };

        // Source and destination: leave late, arrive early.
        let window = between(reach, gap.from.cylinder, source, destination);
        Self::gather(
            tracks,
            wanted,
            reach,
            at_source,
            gap.from,
            &window,
            prices.of_cylinder(gap.from.cylinder),
        );
        let best = at_source.solve(surfaces, switch);
        let mut known = best.worth;
        if gap.from.cylinder == gap.to.cylinder {
            take(at_source, best, items);
        } else {
            let window = between(reach, gap.to.cylinder, source, destination);
            let price = prices.of_cylinder(gap.to.cylinder);
            Self::gather(tracks, wanted, reach, at_destination, gap.to, &window, price);
            at_destination.reverse(length);
            at_destination.solve(surfaces, switch);
            let cross = cross(gap.from.cylinder, gap.to.cylinder);
            let mut split = (best, Chain::EMPTY);
            for (step, after) in at_destination.chains() {
                let begins = length - step.end;
                let before = at_source.ended_by(begins.saturating_sub(cross));
                let before = if begins >= cross { before } else { Chain::EMPTY };
                if before.worth + after.worth > known {
                    known = before.worth + after.worth;
                    split = (before, after);
                }
            }
            take(at_source, split.0, items);
            take_reversed(at_destination, split.1, items);
        }

        // A third cylinder.
        let mut third = None;
        let budget = self.options.budget;
        let price = |node| prices.of_node(node);
        let looked = self.frontier.search(
            &mut Field { tracks, wanted, index },
            reach,
            price,
            known,
            budget,
            |tracks, wanted, cylinder, best| {
                let window = between(reach, cylinder, source, destination);
                let price = prices.of_cylinder(cylinder);
                let (sum, most, surface) = worth_within(tracks, wanted, reach, cylinder, &window);
                if u64::from(sum) * price <= best {
                    return best;
                }
                let worth = if sum > STEPS_MAX * wanted.size_min() {
                    u64::from(most) * price
                } else {
                    at_third.clear();
                    at_third.gather(tracks, wanted, reach, cylinder, 0..surfaces, &window, price);
                    at_third.solve(surfaces, switch).worth
                };
                if worth > best {
                    third = Some(Position { cylinder, surface });
                }
                best.max(worth)
            },
        );
        if let Some(third) = third {
            items.clear();
            let window = between(reach, third.cylinder, source, destination);
            let price = prices.of_cylinder(third.cylinder);
            Self::gather(tracks, wanted, reach, at_third, third, &window, price);
            let best = at_third.solve(surfaces, switch);
            take(at_third, best, items);
            // What time it leaves at the source and at the destination.
            let begins = items.iter().map(|&(start, _)| start).min().unwrap_or(0);
            let ends = at_third.walk(best).map(|step| step.end).max().unwrap_or(length);
            let leaves = begins.saturating_sub(cross(gap.from.cylinder, third.cylinder));
            let before = at_source.ended_by(leaves);
            take(at_source, before, items);
            let arrives = ends + cross(third.cylinder, gap.to.cylinder);
            if gap.from.cylinder == gap.to.cylinder {
                let window = between(reach, gap.to.cylinder, source, destination);
                let price = prices.of_cylinder(gap.to.cylinder);
                Self::gather(tracks, wanted, reach, at_destination, gap.to, &window, price);
                at_destination.reverse(length);
                at_destination.solve(surfaces, switch);
            }
            let after = at_destination.ended_by(length.saturating_sub(arrives));
            take_reversed(at_destination, after, items);
        }
        items.sort_unstable_by_key(|&(when, item)| (when, item.first));
        runs.extend(merged(items.iter().map(|(_, item)| item)));
        looked
    }
}

/// Items that follow on each other made one run; what is in a run before is left out.
fn merged<'a>(items: impl Iterator<Item = &'a Item>) -> Vec<FreeRun> {
    let mut runs: Vec<FreeRun> = Vec::new();
    for item in items {
        let end = item.first + u64::from(item.blocks);
        if let Some(last) = runs.last_mut().filter(|last| last.op == item.op) {
            let last_end = last.start.get() + u64::from(last.blocks);
            if last.start.get() <= item.first && item.first <= last_end {
                last.blocks = (end.max(last_end) - last.start.get()) as u32;
                continue;
            }
        }
        runs.push(FreeRun { start: Lbn::new(item.first), blocks: item.blocks, op: item.op });
    }
    runs
}

impl Planner for Scheduler {
    fn plan(&mut self, gap: &Opportunity, runs: &mut Vec<FreeRun>) {
        runs.clear();
        self.refresh();
        self.prices.refresh(self.effort.decisions);
        let drive = Arc::clone(self.tracks.drive());
        let reach = Reach::new(&drive, gap);
        let looked = match self.options.rule {
            Rule::Greedy => self.plan_greedy(&reach, runs),
            Rule::Paths => self.plan_paths(&reach, runs),
        };
        self.effort.decisions += 1;
        self.effort.nodes += looked.nodes;
        self.effort.exhausted += u64::from(looked.exhausted);
    }

    fn done(&mut self, run: &FreeRun, at: SimTime) {
        let op = run.op;
        self.moved(run.start, run.blocks, |key| key.op == op, at);
    }

    fn passed(&mut self, op: Op, start: Lbn, blocks: u32, at: SimTime) {
        let _ = op;
        self.moved(start, blocks, |key| key.op == Op::Read, at);
    }
}
