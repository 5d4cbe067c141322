//! The freeblock scheduler: what is wanted, where to look for it, and what to take.

use std::num::NonZeroU32;
use std::sync::Arc;

use freewheel_units::{Bytes, Lbn, Op, SimTime};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bitmap::Bitmap;
use crate::effort::Effort;
use crate::idle;
use crate::opportunity::Opportunity;
use crate::search::{
    Delivered, Field, Fineness, Greedy, Index, LayerKey, Objective, Paths, Ration, Reach,
    RegionWeights, Search, SearchCost, SearchProgress, Timed, Tracks, Wanted,
};
use crate::{ForegroundEvent, ForegroundObserver, FreeRun, Planner, ResumableSearch};
use freewheel_model::drive::{Departure, Drive};

/// A change to more than this part of the drive is worth a new index.
const REBUILD_SHARE: u64 = 16;

/// Steps of a path, unless said otherwise: a decision takes time as their number, and where there
/// are more the best track holds nearly as much as can be had in a gap.
pub const STEPS_MAX: u32 = 512;

/// Cylinders of a drive whose searches for paths have no end before the best is sure, at most.
const SMALL_CYLINDERS_MAX: u32 = 131_072;

/// Patience on larger drives, unless said otherwise.
pub const PATIENCE_NODES: u64 = 160;

/// The end of a search for a path where bounds are far above what a drive offers.
/// Its work is counted in nodes; 64 pieces of cylinders that are ordered into paths count as one more. After
/// a part of this number it ends when no path can exceed the best by more than a share of it: the fourth
/// power of that part.
///
/// ```text
///  patience of 160 nodes, best 1000      work     to be beaten    greatest bound left
///                                           0             1000    1400
///                                          80             1062    1300
///                                         120             1316    1240: the search ends
/// ```
///
/// A bound twice the best ends it after all of the nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Patience {
    /// [`PATIENCE_NODES`] from 131,073 cylinders on; without an end on smaller drives, whose searches are
    /// short.
    #[default]
    BySize,
    /// This number of nodes.
    Nodes(NonZeroU32),
    /// Until the best is sure.
    Endless,
}

/// Rule that fills a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// The one track with most wanted blocks (osdi00 section 4).
    Greedy,
    /// The best path over the tracks of one cylinder, with what else can be had on the cylinders of
    /// source and destination; regions of the disk that lag behind count for more.
    #[default]
    Paths,
}

/// Options of the decisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Rule that fills a gap.
    pub rule: Rule,
    /// True if, under [`Rule::Paths`], regions that lag behind count for more.
    pub region_weights: bool,
    /// Most nodes that one decision looks at.
    pub budget: u64,
    /// Under [`Rule::Paths`], the most that may be wanted of a cylinder for a path over its tracks to
    /// be sought: where more is, the best of them is taken.
    pub steps_max: u32,
    /// Most memory for pieces of blocks that are not complete.
    pub held_max: Bytes,
    /// Resolution of bounds in windows of the turn, under [`Rule::Greedy`].
    pub fineness: Fineness,
    /// A search ends when no track can beat the best so far by more than this part of it, as a power of
    /// two: 3 is an eighth. None for the best there is.
    pub slack_log2: Option<u32>,
    /// Under [`Rule::Paths`], how long a search continues for a little more.
    pub patience: Patience,
    /// Closeness of the index's bounds under [`Rule::Paths`]; [`Rule::Greedy`] has its own.
    pub bounds: Bounds,
}

/// Bounds on what a path over a cylinder offers. Rough ones are made faster, and searches in gaps look at more
/// cylinders: an exact search finds as good a plan with any, one with a budget or a patience may not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Bounds {
    /// Close from the beginning.
    #[default]
    Close,
    /// Rough in a new index, in a tenth of the time; close where searches have looked in vain.
    RoughAtFirst,
    /// Any worth where anything is wanted: for work in idle time, which takes the nearest.
    Rough,
}

impl Default for Options {
    /// 64 MiB is little for a host and an eighth of the buffer of a drive of today.
    fn default() -> Self {
        Self {
            rule: Rule::default(),
            region_weights: true,
            budget: u64::MAX,
            steps_max: STEPS_MAX,
            held_max: Bytes::new(64 << 20),
            fineness: Fineness::default(),
            slack_log2: None,
            patience: Patience::default(),
            bounds: Bounds::default(),
        }
    }
}

impl Options {
    /// True if the worth of a block depends on its region.
    fn has_region_weights(&self) -> bool {
        self.rule == Rule::Paths && self.region_weights
    }

    /// Nodes of the patience on a drive; None without an end.
    pub fn patience_nodes(&self, drive: &Drive) -> Option<u64> {
        let is_large = drive.seek().distance_max() >= SMALL_CYLINDERS_MAX;
        match (self.rule, self.patience) {
            (Rule::Greedy, _) | (_, Patience::Endless) => None,
            (_, Patience::Nodes(nodes)) => Some(nodes.get().into()),
            (_, Patience::BySize) => is_large.then_some(PATIENCE_NODES),
        }
    }
}

/// Something wanted that has been done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delivery {
    /// Blocks of a layer.
    pub delivered: Delivered,
    /// Time at which it was on the media or had left it.
    pub at: SimTime,
}

/// Decides what to do in gaps for what is wanted.
#[derive(Debug, Clone)]
pub struct Scheduler {
    options: Options,
    tracks: Tracks,
    wanted: Wanted,
    index: Index,
    search: Search,
    /// The gap of a search under way.
    gap: Option<Opportunity>,
    /// Cylinders on which something has changed since the index was brought up to date, and such as were
    /// looked at in vain.
    touched: Vec<u32>,
    /// The index must be rebuilt.
    is_stale: bool,
    deliveries: Vec<Delivery>,
    effort: Effort,
    region_weights: RegionWeights,
    greedy: Greedy,
    paths: Paths,
    /// The plan at hand.
    items: Vec<Timed>,
}

impl Scheduler {
    /// No block is wanted yet.
    pub fn new(drive: &Arc<Drive>, options: Options) -> Self {
        let tracks = Tracks::new(drive);
        let wanted = Wanted::new(&tracks, options.held_max.get() / 512);
        let objective = match (options.rule, options.bounds) {
            (Rule::Greedy, _) => Objective::Track,
            (Rule::Paths, Bounds::Rough) => Objective::Presence,
            (Rule::Paths, _) => Objective::Cylinder,
        };
        let index = Index::new(&tracks, &wanted, objective, options.fineness);
        let is_rough = options.bounds == Bounds::RoughAtFirst;
        let index = if is_rough { index.rough_at_first() } else { index };
        let region_weights = RegionWeights::new(&index);
        Self {
            options,
            tracks,
            wanted,
            index,
            search: Search::new(options.slack_log2, options.patience_nodes(drive)),
            gap: None,
            touched: Vec::new(),
            is_stale: false,
            deliveries: Vec::new(),
            effort: Effort::default(),
            region_weights,
            greedy: Greedy::new(),
            paths: Paths::new(options.steps_max),
            items: Vec::new(),
        }
    }

    /// Number of the layer with this key, made if there is none. What is read of its blocks in
    /// pieces is held until they are complete.
    pub fn layer(&mut self, key: LayerKey) -> usize {
        let layer = self.wanted.layer(&self.tracks, key);
        self.is_stale |= !self.index.fits(&self.tracks, &self.wanted);
        layer
    }

    /// The drive it decides for.
    pub fn drive(&self) -> &Arc<Drive> {
        self.tracks.drive()
    }

    /// Options of the decisions.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Adds a layer, whether or not there is one with this key. Without `holds_pieces` blocks that come
    /// in pieces need no memory: their data are not needed.
    pub fn add_layer(&mut self, key: LayerKey, holds_pieces: bool) -> usize {
        let layer = self.wanted.add_layer(&self.tracks, key, holds_pieces);
        self.is_stale |= !self.index.fits(&self.tracks, &self.wanted);
        layer
    }

    /// Puts such a layer, empty, in the place of one that is empty.
    pub(super) fn replace_layer(&mut self, layer: usize, key: LayerKey, holds_pieces: bool) {
        self.wanted.replace_layer(&self.tracks, layer, key, holds_pieces);
        self.is_stale |= !self.index.fits(&self.tracks, &self.wanted);
    }

    /// Changes the weight of a layer. A lower one leaves the index as it is: its bounds still hold. A
    /// higher one has the cylinders of its blocks worked out anew, and where they are many the whole
    /// index.
    pub(super) fn set_weight(&mut self, layer: usize, weight: u32) {
        let is_raised = weight > self.wanted.layers()[layer].key.weight;
        self.wanted.set_weight(layer, weight);
        if !is_raised {
            return;
        }
        let blocks = self.wanted.blocks(layer);
        let is_much = blocks.count() * 2 > u64::from(self.tracks.cylinders());
        self.is_stale |= is_much || !self.index.fits(&self.tracks, &self.wanted);
        if !self.is_stale {
            let mut runs = Vec::new();
            blocks.for_each_run(0, blocks.bound(), |first, end| runs.push((first, end)));
            runs.into_iter().for_each(|(first, end)| self.touch_blocks(layer, first, end));
        }
    }

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
    pub fn held(&self) -> Bytes {
        self.wanted.held()
    }

    /// True if blocks that come in pieces are begun a few at a time, for want of memory.
    pub(super) fn is_rationed(&self) -> bool {
        self.wanted.is_rationed()
    }

    /// Memory for finding what is wanted: tracks, and the tree of bounds.
    pub(super) fn index_memory(&self) -> Bytes {
        self.tracks.memory() + self.index.memory()
    }

    /// Wants the blocks `from..to` of a layer; how many were not wanted before.
    pub fn want(&mut self, layer: usize, from: u64, to: u64) -> u64 {
        if self.options.has_region_weights() {
            let Self { wanted, region_weights, tracks, .. } = self;
            let layer_of = &wanted.layers()[layer];
            let mut at = from;
            let mut book = |from: u64, to: u64| {
                region_weights.wanted(tracks, layer_of.start(from), layer_of.start(to));
            };
            wanted.blocks(layer).for_each_run(from, to, |first, end| {
                if at < first {
                    book(at, first);
                }
                at = end;
            });
            if at < to {
                book(at, to);
            }
        }
        let new = self.wanted.want(&self.tracks, layer, from, to);
        self.touch_blocks(layer, from, to);
        new
    }

    /// Wants the blocks `from..to` of a layer no longer; how many were wanted.
    pub fn unwant(&mut self, layer: usize, from: u64, to: u64) -> u64 {
        if self.options.has_region_weights() {
            let Self { wanted, region_weights, tracks, .. } = self;
            let layer_of = &wanted.layers()[layer];
            wanted.blocks(layer).for_each_run(from, to, |first, end| {
                region_weights.unwanted(tracks, layer_of.start(first), layer_of.start(end));
            });
        }
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
            let (at, stretch) = self.tracks.stretch_of(block);
            if self.touched.last() != Some(&at.cylinder) {
                self.touched.push(at.cylinder);
            }
            block = stretch.end();
        }
    }

    /// Number of wanted blocks of a layer.
    pub fn wanted(&self, layer: usize) -> u64 {
        self.wanted.count(layer)
    }

    /// Number of wanted blocks of a layer in `from..to`.
    pub fn wanted_in(&self, layer: usize, from: u64, to: u64) -> u64 {
        let mut count = 0;
        self.blocks(layer).for_each_word(from, to, |_, bits| count += u64::from(bits.count_ones()));
        count
    }

    /// The next adjacent wanted blocks and pieces of a layer on one track, from block `from` of 512 B
    /// on: `first..end` of 512 B, about `most` of them.
    pub fn next_on_track(&self, layer: usize, from: u64, most: u64) -> Option<(u64, u64)> {
        self.wanted.next_on_track(&self.tracks, layer, from, most)
    }

    /// Weight of the region of a cylinder, in units of 1 / 256: greater where the region lags, and the
    /// same everywhere without region weights.
    pub fn region_weight(&self, cylinder: u32) -> u64 {
        self.region_weights.of_cylinder(cylinder)
    }

    /// Cost of decisions so far.
    pub fn effort(&self) -> Effort {
        self.effort
    }

    /// Takes what has been done since the last call, in the order it was done.
    pub fn deliveries(&mut self) -> std::vec::Drain<'_, Delivery> {
        self.deliveries.drain(..)
    }

    /// The run to do next with the head like this, while no foreground request is there: what is
    /// nearest, at most `most` blocks of 512 B unless what is wanted comes in larger ones.
    pub fn plan_idle(&mut self, head: &Departure, most: u32) -> Option<FreeRun> {
        self.refresh();
        let Self { tracks, wanted, index, items, .. } = self;
        let drive = Arc::clone(tracks.drive());
        let run = idle::plan(&mut Field { tracks, wanted, index }, &drive, head, most, items);
        wanted.decided();
        if run.is_some() || !self.wanted.has_room_elsewhere() {
            return run;
        }
        // Only blocks in pieces on closed cylinders are left.
        let mut here = 0;
        self.tracks.for_each_stretch(head.from, |stretch| here = stretch.first);
        self.next_run(here, most).or_else(|| self.next_run(0, most))
    }

    /// The first run at or behind a block of 512 B, wherever blocks are begun.
    fn next_run(&self, from: u64, most: u32) -> Option<FreeRun> {
        self.wanted
            .layers()
            .iter()
            .enumerate()
            .filter_map(|(number, layer)| {
                let (first, end) = self.next_on_track(number, from, most.into())?;
                Some(FreeRun {
                    start: Lbn::new(first),
                    blocks: (end - first) as u32,
                    op: layer.key.op,
                })
            })
            .min_by_key(|run| run.start)
    }

    /// True if gaps that reach a cylinder begin blocks that come in pieces: not everywhere where far more
    /// of them are wanted than there is memory for, and nowhere once it is full.
    pub fn begins_on(&self, cylinder: u32) -> bool {
        self.wanted.begins_on(cylinder)
    }

    /// Does now what the next decision would have to do first, after one was made or more has become
    /// wanted.
    pub fn refresh(&mut self) {
        match self.wanted.ration() {
            Ration::Same => {}
            Ration::Closed(cylinders) => {
                cylinders.into_iter().for_each(|cylinders| self.index.fewer_on(cylinders));
            }
            Ration::Opened(cylinder) => self.touched.push(cylinder),
        }
        self.touched.extend(self.wanted.raised());
        if self.needs_rebuild() {
            self.is_stale = false;
            self.touched.clear();
            self.index.rebuild(&self.tracks, &self.wanted);
        }
        self.touched.sort_unstable();
        self.touched.dedup();
        for cylinder in self.touched.drain(..) {
            self.index.update(&self.tracks, &self.wanted, cylinder);
        }
    }

    /// True if the index is to be made anew: when weights or sizes are others, or more than half of the
    /// cylinders have changed.
    pub(super) fn needs_rebuild(&mut self) -> bool {
        if !self.is_stale && self.is_much(&self.touched) {
            self.touched.sort_unstable();
            self.touched.dedup();
        }
        self.is_stale || self.is_much(&self.touched)
    }

    fn is_much(&self, touched: &[u32]) -> bool {
        touched.len() as u64 * 2 > self.tracks.cylinders().into()
    }

    /// Calls `act` for the gap of the search under way; None without one.
    fn in_gap<T>(&mut self, act: impl FnOnce(&mut Self, &Reach<'_>) -> T) -> Option<T> {
        let gap = self.gap?;
        let drive = Arc::clone(self.tracks.drive());
        let reach = Reach::new(&drive, &gap, self.index.slots());
        Some(act(self, &reach))
    }

    /// Looks at the cylinders of source and destination.
    fn begin(&mut self, reach: &Reach<'_>) {
        let has_region_weights = self.options.has_region_weights();
        let Self { options, tracks, wanted, index, search, region_weights, .. } = self;
        if has_region_weights {
            debug_assert_eq!(region_weights.left(), wanted.left(), "blocks on the books");
            region_weights.refresh();
        }
        let field = &Field { tracks, wanted, index };
        search.cost = SearchCost::default();
        match options.rule {
            Rule::Greedy => {
                let known = self.greedy.begin(field, reach);
                search.start(known, options.budget);
            }
            Rule::Paths => {
                self.paths.begin(field, reach, search, region_weights, options.budget);
            }
        }
    }

    fn look(&mut self, reach: &Reach<'_>, mut nodes: u64) -> SearchProgress {
        let Self { tracks, wanted, index, search, region_weights, .. } = self;
        let field = &Field { tracks, wanted, index };
        match self.options.rule {
            Rule::Greedy => self.greedy.step(field, reach, search, &mut nodes),
            Rule::Paths => self.paths.step(field, reach, search, region_weights, &mut nodes),
        }
        SearchProgress { nodes: self.search.cost.nodes, searches: self.searches() }
    }

    /// Directions of the search that are not done; the greedy rule looks for both at once.
    fn searches(&self) -> u64 {
        match self.options.rule {
            Rule::Greedy => u64::from(!self.search.is_over()),
            Rule::Paths => self.paths.searches(),
        }
    }

    /// Gives up on the current direction.
    fn end_direction(&mut self, reach: &Reach<'_>) {
        let Self { tracks, wanted, index, search, region_weights, .. } = self;
        let field = &Field { tracks, wanted, index };
        match self.options.rule {
            Rule::Greedy => {
                // Whether there is a node left to look at.
                self.greedy.step(field, reach, search, &mut 0);
                search.give_up();
            }
            Rule::Paths => self.paths.give_up(field, reach, search, region_weights),
        }
    }

    /// Makes runs of the best that was found.
    fn end(&mut self, reach: &Reach<'_>, runs: &mut Vec<FreeRun>) {
        let Self { tracks, wanted, index, search, items, .. } = self;
        items.clear();
        match self.options.rule {
            Rule::Greedy => self.greedy.take(&Field { tracks, wanted, index }, reach, items),
            Rule::Paths => self.paths.take(items),
        }
        let SearchCost { nodes, pieces, exhausted } = search.cost;
        self.effort.add(nodes, pieces, exhausted);
        self.touched.append(&mut search.vain);
        // In the order they pass.
        items.sort_unstable_by_key(|timed| (timed.at, timed.item.first));
        wanted.fit(items);
        wanted.decided();
        runs.clear();
        merge(items, runs);
    }

    /// Delivers moved blocks to the layers that `serves` selects.
    pub(super) fn moved(
        &mut self,
        start: Lbn,
        blocks: u32,
        serves: impl Fn(usize, &LayerKey) -> bool,
        at: SimTime,
    ) {
        let (from, to) = (start.get(), start.get() + u64::from(blocks));
        let has_region_weights = self.options.has_region_weights();
        let Self { deliveries, region_weights, tracks, .. } = self;
        let is_less = self.wanted.moved(tracks, from, to, serves, &mut |key, delivered| {
            let size = u64::from(key.size);
            let from = u64::from(key.offset) + delivered.first * size;
            if has_region_weights {
                region_weights.delivered(tracks, from, from + delivered.blocks * size);
            }
            deliveries.push(Delivery { delivered, at });
        });
        let mut block = from;
        while is_less && block < to {
            let (at, stretch) = self.tracks.stretch_of(block);
            self.index.fewer(at.cylinder);
            block = stretch.end();
        }
    }
}

/// Makes runs of items that follow on each other; what is in a run before is left out.
fn merge(items: &[Timed], runs: &mut Vec<FreeRun>) {
    for Timed { item, .. } in items {
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
}

impl Planner for Scheduler {
    fn predict_with(&mut self, drive: &Arc<Drive>) {
        self.tracks.predict_with(drive);
    }

    fn prepare(&mut self, _: &Opportunity) {
        if self.needs_rebuild() {
            self.refresh();
        }
    }

    fn plan(&mut self, gap: &Opportunity, runs: &mut Vec<FreeRun>) {
        self.refresh();
        let drive = Arc::clone(self.tracks.drive());
        let reach = Reach::new(&drive, gap, self.index.slots());
        self.begin(&reach);
        self.look(&reach, u64::MAX);
        self.end(&reach, runs);
    }

    fn resumable(&mut self) -> Option<&mut dyn ResumableSearch> {
        Some(self)
    }

    fn done(&mut self, run: &FreeRun, at: SimTime) {
        let op = run.op;
        self.moved(run.start, run.blocks, |_, key| key.op == op, at);
    }
}

impl ResumableSearch for Scheduler {
    fn begin_search(&mut self, gap: &Opportunity) {
        self.refresh();
        self.gap = Some(*gap);
        self.in_gap(Self::begin);
    }

    fn step(&mut self, nodes: u64) -> SearchProgress {
        self.in_gap(|scheduler, reach| scheduler.look(reach, nodes)).unwrap_or(SearchProgress::DONE)
    }

    fn give_up(&mut self) {
        self.in_gap(Self::end_direction);
    }

    fn end_search(&mut self, runs: &mut Vec<FreeRun>) {
        runs.clear();
        self.in_gap(|scheduler, reach| {
            while scheduler.searches() > 0 {
                scheduler.end_direction(reach);
            }
            scheduler.end(reach, runs);
        });
        self.gap = None;
    }
}

impl ForegroundObserver for Scheduler {
    fn foreground(&mut self, event: ForegroundEvent<'_>) {
        // A transfer in either direction leaves the data in memory.
        if let ForegroundEvent::Passed { start, blocks, at, .. } = event {
            self.moved(start, blocks, |_, key| key.op == Op::Read, at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use freewheel_model::drive::{Departure, Position};

    #[test]
    fn index_is_rebuilt_before_next_decision() {
        let spec = toml::from_str(include_str!("../../../drives/atlas10k.toml")).unwrap();
        let drive = Arc::new(Drive::build(&spec).unwrap());
        let mut scheduler = Scheduler::new(&drive, Options::default());
        let key = LayerKey { op: Op::Read, size: 16, offset: 0, weight: 1 };
        let layer = scheduler.layer(key);
        let head = Departure::after_read(SimTime::ZERO, Position::default());
        let gap = Opportunity::none(&head);
        scheduler.want(layer, 0, 1);
        scheduler.refresh();
        assert!(!scheduler.needs_rebuild());
        // A block every fifth of a cylinder: little each time, much in all.
        let blocks = drive.blocks().get() / 16;
        let each = blocks / u64::from(scheduler.tracks.cylinders()) / 5;
        for at in (0..blocks).step_by(each as usize) {
            scheduler.want(layer, at, at + 1);
        }
        assert!(!scheduler.is_stale && scheduler.needs_rebuild());
        scheduler.prepare(&gap);
        assert!(!scheduler.needs_rebuild() && scheduler.touched.is_empty());
    }
}
