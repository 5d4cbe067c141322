//! The freeblock scheduler: what is wanted, where to look for it, and what to take.

use std::sync::Arc;

use freewheel_units::{Bytes, Lbn, Op, SimTime};

use super::bitmap::Bitmap;
use super::index::{Index, Objective};
use super::reach::Reach;
use super::search::{Field, Frontier, Looked, best_track};
use super::tracks::Tracks;
use super::wanted::{Delivered, Item, LayerKey, Wanted};
use super::{FreeRun, Opportunity, Planner};
use crate::drive::Drive;

/// A change to more than this part of the drive is worth a new index.
const REBUILD_SHARE: u64 = 16;

/// How a gap is filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Rule {
    /// The one track with most wanted blocks (osdi00 section 4).
    #[default]
    Greedy,
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
}

impl Scheduler {
    /// Nothing is wanted yet.
    pub fn new(drive: &Arc<Drive>, options: Options) -> Self {
        let tracks = Tracks::new(drive);
        let wanted = Wanted::new(options.held_max.get() / 512);
        let index = Index::new(&tracks, &wanted, Objective::Track);
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
        }
    }

    /// Number of the layer with this key.
    pub fn layer(&mut self, key: LayerKey) -> usize {
        self.wanted.layer(&self.tracks, key)
    }

    /// The drive it decides for.
    pub fn drive(&self) -> &Arc<Drive> {
        self.tracks.drive()
    }

    /// What shapes the decisions.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Adds a layer, whether or not there is one with this key.
    pub(super) fn add_layer(&mut self, key: LayerKey) -> usize {
        let layer = self.wanted.add_layer(&self.tracks, key);
        self.is_stale |= !self.index.fits(&self.tracks, &self.wanted);
        layer
    }

    /// Puts an empty layer with this key in the place of one that is empty.
    pub(super) fn replace_layer(&mut self, layer: usize, key: LayerKey) {
        self.wanted.replace_layer(&self.tracks, layer, key);
        self.is_stale |= !self.index.fits(&self.tracks, &self.wanted);
    }

    /// Changes the weight of a layer. A lower one leaves the index as it is: its bounds stay above
    /// what there is. A higher one costs a new index unless the layer is empty.
    pub(super) fn set_weight(&mut self, layer: usize, weight: u32) {
        let is_raised = weight > self.wanted.layers()[layer].key.weight;
        self.wanted.set_weight(layer, weight);
        self.is_stale |= is_raised && !self.wanted.blocks(layer).is_empty();
    }

    /// Weight of a layer.
    pub(super) fn weight(&self, layer: usize) -> u32 {
        self.wanted.layers()[layer].key.weight
    }

    /// The wanted blocks of a layer.
    pub(super) fn blocks(&self, layer: usize) -> &Bitmap {
        self.wanted.blocks(layer)
    }

    /// Memory that the bitmaps of what is wanted take.
    pub(super) fn wanted_memory(&self) -> Bytes {
        self.wanted.memory()
    }

    /// Data held of blocks of which pieces are missing.
    pub(super) fn held(&self) -> Bytes {
        self.wanted.held()
    }

    /// Memory for finding what is wanted: tracks, and the tree of bounds.
    pub(super) fn index_memory(&self) -> Bytes {
        self.tracks.memory() + self.index.memory()
    }

    /// Wants the blocks `from..to` of a layer; how many were not wanted before.
    pub fn want(&mut self, layer: usize, from: u64, to: u64) -> u64 {
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

    /// Something has changed about the blocks `from..to` of 512 B.
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
        if self.touched.len() as u64 * 2 > self.tracks.cylinders().into() {
            self.touched.clear();
            self.index.rebuild(&self.tracks, &self.wanted);
        }
        for cylinder in self.touched.drain(..) {
            self.index.update(&self.tracks, &self.wanted, cylinder);
        }
    }

    /// What was moved may be wanted: by layers that `serves` says.
    pub(super) fn moved(
        &mut self,
        start: Lbn,
        blocks: u32,
        serves: impl Fn(usize, &LayerKey) -> bool,
        at: SimTime,
    ) {
        let (from, to) = (start.get(), start.get() + u64::from(blocks));
        let deliveries = &mut self.deliveries;
        self.wanted.moved(&self.tracks, (from, to), serves, &mut |delivered| {
            deliveries.push(Delivery { delivered, at });
        });
        self.touch(from, to);
    }

    fn plan_greedy(&mut self, reach: &Reach<'_>, runs: &mut Vec<FreeRun>) -> Looked {
        let field = Field { tracks: &self.tracks, wanted: &self.wanted, index: &self.index };
        let budget = self.options.budget;
        let (best, looked) = best_track(&field, reach, &mut self.frontier, budget);
        let Some(best) = best else { return looked };
        let at = self.tracks.position(best.track);
        let Some(place) = self.tracks.place(best.track) else { return looked };
        self.items.clear();
        let (mut most, mut chosen) = (0, Op::Read);
        for op in [Op::Read, Op::Write] {
            let stay = reach.stay(at, op);
            let begin = reach.time(stay.from);
            let passing = self.tracks.passing(&place, begin, stay.length());
            let known = self.items.len();
            let (items, mut value) = (&mut self.items, 0);
            self.wanted.items(&self.tracks, best.track, &place, passing, op, &mut |item| {
                value += item.value;
                items.push((0, item));
            });
            let loser = if value > most { 0..known } else { known..items.len() };
            items.drain(loser);
            if value > most {
                (most, chosen) = (value, op);
            }
        }
        // In the order they pass.
        let rotation = self.tracks.drive().rotation();
        let phase = rotation.phase_ns(reach.time(reach.stay(at, chosen).from));
        let period = rotation.period_ns();
        for (when, item) in &mut self.items {
            let sector = self.tracks.sector_on(best.track, item.first);
            let edge = self.tracks.edge_ns(&place, sector);
            *when = if edge >= phase { edge - phase } else { edge + period - phase };
        }
        self.items.sort_unstable_by_key(|&(when, item)| (when, item.first));
        runs.extend(merged(self.items.iter().map(|(_, item)| item)));
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
        let drive = Arc::clone(self.tracks.drive());
        let reach = Reach::new(&drive, gap);
        let looked = match self.options.rule {
            Rule::Greedy => self.plan_greedy(&reach, runs),
        };
        self.effort.decisions += 1;
        self.effort.nodes += looked.nodes;
        self.effort.exhausted += u64::from(looked.exhausted);
    }

    fn done(&mut self, run: &FreeRun, at: SimTime) {
        let op = run.op;
        self.moved(run.start, run.blocks, |_, key| key.op == op, at);
    }

    fn passed(&mut self, op: Op, start: Lbn, blocks: u32, at: SimTime) {
        let _ = op;
        self.moved(start, blocks, |_, key| key.op == Op::Read, at);
    }
}
