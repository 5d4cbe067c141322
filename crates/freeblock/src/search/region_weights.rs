//! Weights of regions: a block counts for more in a region that lags.
//!
//! **Problem.** The head seldom visits some regions, such as the edges of the disk. Their blocks remain
//! until the end of a round, and then each costs a long seek.
//!
//! So blocks of a region count for more the further the region lags: its weight is the share of its blocks
//! that are still wanted, over the same share of the whole disk.
//!
//! ```text
//!  region        0          1          2          3         whole disk
//!  wanted     1000       1000       1000       1000            4000
//!  left        400        100        100        600            1200
//!  share       0.4        0.1        0.1        0.6             0.3
//!  weight     1.33       0.33       0.33       2.00
//! ```
//!
//! A track of region 3 with 8 blocks, worth 8 x 2.00 = 16, beats one of region 1 with 40, worth 13.3. No
//! constant has to be chosen, and weights follow a foreground that moves. A node of the tree has the
//! greatest weight of its regions, so that bound times weight is a bound.

use super::index::{Index, Node};
use super::tracks::Tracks;

/// Weight of a region that is as far as the whole disk.
const ONE: u64 = 1 << 8;

/// The greatest weight. Times a worth of 32 bits it fits 64 bits, and it outweighs any other block.
const WEIGHT_MAX: u64 = 1 << 24;

/// Most regions. The shares of smaller ones would be noise when few blocks are left.
const REGIONS: u32 = 64;

/// Decisions between two updates of weights, which change little from one to the next.
const EVERY: u64 = 64;

/// Weights of regions, in units of 1 / 256.
#[derive(Debug, Clone)]
pub(crate) struct RegionWeights {
    /// Cylinders of a region, as a power of two.
    shift: u32,
    region_weights: Vec<u64>,
    /// For each level of the tree whose nodes hold several regions, upwards: the greatest weight under each
    /// node.
    above: Vec<Vec<u64>>,
    regions: Vec<RegionBlocks>,
    all: RegionBlocks,
    /// Decisions until the next update.
    due: u64,
}

/// Blocks of 512 B that became wanted, and those still wanted.
#[derive(Debug, Clone, Copy, Default)]
struct RegionBlocks {
    asked: u64,
    left: u64,
}

impl RegionWeights {
    pub fn new(index: &Index) -> Self {
        let cylinders = index.nodes(0) as u32;
        let shift = cylinders.div_ceil(REGIONS).next_power_of_two().trailing_zeros();
        // Each node's regions are neighbours.
        let regions = cylinders.div_ceil(1 << shift) as usize;
        let above = (0..index.levels()).filter(|&level| Index::cylinders_log2(level) > shift);
        Self {
            shift,
            region_weights: vec![ONE; regions],
            above: above.map(|level| vec![ONE; index.nodes(level)]).collect(),
            regions: vec![RegionBlocks::default(); regions],
            all: RegionBlocks::default(),
            due: 0,
        }
    }

    #[inline]
    fn region(&self, cylinder: u32) -> usize {
        (cylinder >> self.shift) as usize
    }

    #[inline]
    pub fn of_cylinder(&self, cylinder: u32) -> u64 {
        self.region_weights[self.region(cylinder)]
    }

    /// The greatest weight under a node.
    #[inline]
    pub fn of_node(&self, node: Node) -> u64 {
        let log2 = Index::cylinders_log2(node.level);
        if log2 <= self.shift {
            return self.region_weights[(node.number >> (self.shift - log2)) as usize];
        }
        let first_above = Index::level_beyond(self.shift);
        self.above[(node.level - first_above) as usize][node.number as usize]
    }

    /// Blocks of 512 B still wanted on the disk.
    pub fn left(&self) -> u64 {
        self.all.left
    }

    /// Adds the wanted blocks `from..to` of 512 B. A region without wanted blocks begins at a weight of one.
    /// More blocks than were left on the disk, as when a round begins, cause an update at once.
    pub fn wanted(&mut self, tracks: &Tracks, from: u64, to: u64) {
        if to - from >= self.all.left {
            self.due = 0;
        }
        if self.all.left == 0 {
            self.regions.fill(RegionBlocks::default());
            self.all = RegionBlocks::default();
        }
        self.for_each_part(tracks, from, to, |region_weights, region, blocks| {
            // Until the next update an empty region's weight is the least, which would hide the new
            // blocks.
            if region_weights.regions[region].left == 0 {
                region_weights.set_to_one(region);
            }
            region_weights.change(region, |region| {
                region.asked += blocks;
                region.left += blocks;
            });
        });
    }

    /// Removes the delivered blocks `from..to` of 512 B.
    pub fn delivered(&mut self, tracks: &Tracks, from: u64, to: u64) {
        self.for_each_part(tracks, from, to, |region_weights, region, blocks| {
            region_weights.change(region, |region| region.left -= blocks);
        });
    }

    /// Removes the blocks `from..to` of 512 B without delivery, as if they had never been wanted.
    pub fn unwanted(&mut self, tracks: &Tracks, from: u64, to: u64) {
        self.for_each_part(tracks, from, to, |region_weights, region, blocks| {
            region_weights.change(region, |region| {
                region.asked -= blocks;
                region.left -= blocks;
            });
        });
    }

    fn change(&mut self, region: usize, change: impl Fn(&mut RegionBlocks)) {
        change(&mut self.regions[region]);
        change(&mut self.all);
    }

    fn set_to_one(&mut self, region: usize) {
        self.region_weights[region] = ONE;
        self.raise();
    }

    fn for_each_part(
        &mut self,
        tracks: &Tracks,
        from: u64,
        to: u64,
        mut visit: impl FnMut(&mut Self, usize, u64),
    ) {
        let mut at = from;
        while at < to {
            let (on, stretch) = tracks.stretch_of(at);
            let region = self.region(on.cylinder);
            let end = stretch.end().min(to);
            visit(self, region, end - at);
            at = end;
        }
    }

    /// Counts a decision, and updates the weights if it is time.
    pub fn refresh(&mut self) {
        if self.all.left == 0 {
            return;
        }
        if self.due > 0 {
            self.due -= 1;
            return;
        }
        self.due = EVERY - 1;
        let RegionBlocks { asked: all_asked, left: all_left } = self.all;
        for (weight, region) in self.region_weights.iter_mut().zip(&self.regions) {
            // The ratio of both shares with one division.
            let part = u128::from(region.left) * u128::from(all_asked);
            let whole = u128::from(region.asked.max(1)) * u128::from(all_left);
            let exact = part * u128::from(ONE) / whole;
            // For an empty region any weight is right, and the least makes bounds close.
            *weight = exact.clamp(1, WEIGHT_MAX.into()) as u64;
        }
        self.raise();
    }

    /// Updates the greatest weights of nodes with several regions.
    fn raise(&mut self) {
        let first_above = Index::level_beyond(self.shift);
        for (level, nodes) in (first_above..).zip(&mut self.above) {
            let regions =
                self.region_weights.chunks(1 << (Index::cylinders_log2(level) - self.shift));
            for (weight, regions) in nodes.iter_mut().zip(regions) {
                *weight = regions.iter().copied().max().unwrap_or(ONE);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use freewheel_units::Prng;
    use proptest::prelude::*;

    use super::super::cylinder_range::CylinderRange;
    use super::super::index::{Fineness, Objective};
    use super::super::wanted::Wanted;
    use super::*;
    use freewheel_model::drive::Drive;

    fn region_weights() -> (Tracks, Index, RegionWeights) {
        weights_on(include_str!("../../../../drives/atlas10k.toml"))
    }

    fn weights_on(drive: &str) -> (Tracks, Index, RegionWeights) {
        let spec = toml::from_str(drive).unwrap();
        let tracks = Tracks::new(&Arc::new(Drive::build(&spec).unwrap()));
        let index =
            Index::new(&tracks, &Wanted::new(&tracks, 0), Objective::Cylinder, Fineness::BySize);
        let region_weights = RegionWeights::new(&index);
        (tracks, index, region_weights)
    }

    /// Cylinder of a block of 512 B.
    fn cylinder(tracks: &Tracks, block: u64) -> u32 {
        tracks.stretch_of(block).0.cylinder
    }

    /// Half of the disk has been had, and all of a region in it.
    fn half_read() -> (Tracks, RegionWeights, u64) {
        let (tracks, _, mut region_weights) = region_weights();
        let capacity = tracks.drive().blocks().get();
        region_weights.wanted(&tracks, 0, capacity);
        region_weights.delivered(&tracks, 0, capacity / 2);
        (0..=EVERY).for_each(|_| region_weights.refresh());
        (tracks, region_weights, capacity)
    }

    #[test]
    fn region_weights_count_new_demand_at_once() {
        let (tracks, mut region_weights, capacity) = half_read();
        let weight = |region_weights: &RegionWeights, block| {
            region_weights.of_cylinder(cylinder(&tracks, block))
        };
        assert_eq!(weight(&region_weights, 0), 1);
        // All of it is left, and half of the disk.
        assert!(weight(&region_weights, capacity - 1).abs_diff(2 * ONE) <= 1);
        region_weights.wanted(&tracks, 0, 8);
        assert_eq!(weight(&region_weights, 0), ONE);
        assert_eq!(weight(&region_weights, capacity / 4), 1, "there nothing is asked for");
    }

    #[test]
    fn region_weights_begin_round_equal() {
        let (tracks, mut region_weights, capacity) = half_read();
        region_weights.delivered(&tracks, capacity / 2, capacity);
        region_weights.wanted(&tracks, 0, capacity);
        region_weights.refresh();
        assert!(
            region_weights
                .region_weights
                .iter()
                .chain(region_weights.above.iter().flatten())
                .all(|&weight| weight == ONE)
        );
        // The same beside another task that has hardly begun.
        let (tracks, mut region_weights, capacity) = half_read();
        region_weights.wanted(&tracks, 0, capacity);
        region_weights.refresh();
        let (first, last) = (cylinder(&tracks, 0), cylinder(&tracks, capacity - 1));
        // Three quarters of all are left: a half here, all there.
        assert!(region_weights.of_cylinder(first).abs_diff(ONE * 2 / 3) <= 1);
        assert!(region_weights.of_cylinder(last).abs_diff(ONE * 4 / 3) <= 1);
    }

    /// State of a part of the disk.
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Chunk {
        Never,
        Wanted,
        Had,
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 24, ..Default::default() })]

        #[test]
        fn region_weights_follow_remaining_parts(
            seed: u64, steps in 1u64..60,
            // Whose regions are nodes of the tree, and lie between two levels of it.
            drive in prop::sample::select(vec![
                include_str!("../../../../drives/atlas10k.toml"),
                include_str!("../../../../drives/tr96.toml"),
            ]),
        ) {
            const CHUNKS: u64 = 97;
            let (tracks, index, mut region_weights) = weights_on(drive);
            let prng = &mut Prng::new(seed, "region_weights");
            let capacity = tracks.drive().blocks().get();
            let bounds = |chunk: u64| (capacity * chunk / CHUNKS, capacity * (chunk + 1) / CHUNKS);
            let mut chunks = vec![Chunk::Never; CHUNKS as usize];
            for _ in 0..steps {
                let chunk = prng.below(CHUNKS);
                let (from, to) = bounds(chunk);
                let state = &mut chunks[chunk as usize];
                *state = match (*state, prng.chance(0.5)) {
                    (Chunk::Never, _) => {
                        region_weights.wanted(&tracks, from, to);
                        Chunk::Wanted
                    }
                    (Chunk::Wanted, true) => {
                        region_weights.delivered(&tracks, from, to);
                        Chunk::Had
                    }
                    // As if it had never been asked for.
                    (Chunk::Wanted, false) => {
                        region_weights.unwanted(&tracks, from, to);
                        Chunk::Never
                    }
                    (had, _) => had,
                };
                // Then the past is over.
                if !chunks.contains(&Chunk::Wanted) {
                    chunks.fill(Chunk::Never);
                }
                if prng.chance(0.2) {
                    region_weights.refresh();
                }
                for level in 0..index.levels() {
                    for number in 0..index.nodes(level) as u32 {
                        let node = Node { level, number };
                        let CylinderRange { first, last } = index.cylinders(node);
                        let plain = (first..=last).map(|cylinder| region_weights.of_cylinder(cylinder));
                        prop_assert_eq!(Some(region_weights.of_node(node)), plain.max());
                    }
                }
            }
            prop_assume!(chunks.contains(&Chunk::Wanted));
            (0..=EVERY).for_each(|_| region_weights.refresh());
            let mut plain = vec![RegionBlocks::default(); region_weights.regions.len()];
            for (chunk, state) in (0..).zip(&chunks).filter(|(_, state)| **state != Chunk::Never) {
                let (from, to) = bounds(chunk);
                for block in from..to {
                    let region = &mut plain[region_weights.region(cylinder(&tracks, block))];
                    region.asked += 1;
                    region.left += u64::from(*state == Chunk::Wanted);
                }
            }
            let asked: u64 = plain.iter().map(|region| region.asked).sum();
            let left: u64 = plain.iter().map(|region| region.left).sum();
            for (region, weight) in plain.iter().zip(&region_weights.region_weights) {
                let part = region.left as f64 / region.asked.max(1) as f64;
                let exact = (part / (left as f64 / asked as f64) * ONE as f64).max(1.0);
                prop_assert!((*weight as f64 - exact).abs() <= 1.0, "{} for {}", weight, exact);
            }
        }
    }
}
