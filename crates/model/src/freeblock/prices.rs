//! What a block is worth by where it lies.
//!
//! Where the head seldom comes by, at the edges of the disk or far from what the foreground uses,
//! blocks are left to the end, and then each costs a long way. So blocks of a region count for more
//! the further the region is behind the disk as a whole: its price is the part of it that is still
//! wanted over the same part of the whole disk. No constant has to be chosen, and a foreground that
//! wanders is followed.

use super::index::{Index, Node};
use super::tracks::Tracks;

/// A price of one.
const ONE: u64 = 1 << 8;

/// The greatest price: times any worth of 32 bits it is no overflow, and nothing outweighs it.
const PRICE_MAX: u64 = 1 << 24;

/// Most regions: more say no more, and the last blocks of small ones are noise.
const REGIONS: usize = 64;

/// Decisions between two changes of prices: they move little from one to the next.
const EVERY: u64 = 64;

/// Prices of regions, in fixed point.
#[derive(Debug, Clone)]
pub(super) struct Prices {
    /// Level of the tree whose nodes are the regions.
    level: u32,
    /// By level from the regions upwards, the greatest below each node.
    prices: Vec<Vec<u64>>,
    regions: Vec<Region>,
    all: Region,
    decisions: u64,
}

/// Blocks of 512 B that were asked for, and those still wanted.
#[derive(Debug, Clone, Copy, Default)]
struct Region {
    asked: u64,
    left: u64,
}

impl Prices {
    pub fn new(index: &Index) -> Self {
        let sizes: Vec<usize> = (0..index.levels()).map(|level| index.nodes(level)).collect();
        let level = sizes.iter().position(|&size| size <= REGIONS).unwrap_or(0);
        Self {
            level: level as u32,
            prices: sizes[level..].iter().map(|&size| vec![ONE; size]).collect(),
            regions: vec![Region::default(); sizes[level]],
            all: Region::default(),
            decisions: 0,
        }
    }

    #[inline]
    fn region(&self, cylinder: u32) -> usize {
        Index::ancestor(cylinder, self.level)
    }

    /// The price on a cylinder.
    #[inline]
    pub fn of_cylinder(&self, cylinder: u32) -> u64 {
        self.prices[0][self.region(cylinder)]
    }

    /// The greatest price under a node.
    #[inline]
    pub fn of_node(&self, node: Node) -> u64 {
        match node.level.checked_sub(self.level) {
            Some(above) => self.prices[above as usize][node.number as usize],
            None => self.prices[0][Index::ancestor(node.number, self.level - node.level)],
        }
    }

    /// Blocks of 512 B that are still wanted.
    pub fn left(&self) -> u64 {
        self.all.left
    }

    /// The blocks `from..to` of 512 B are asked for.
    pub fn wanted(&mut self, tracks: &Tracks, from: u64, to: u64) {
        if self.all.left == 0 {
            self.regions.fill(Region::default());
            self.all = Region::default();
        }
        self.for_each_part(tracks, from, to, |region, blocks| {
            region.asked += blocks;
            region.left += blocks;
        });
    }

    /// The blocks `from..to` of 512 B are wanted no longer.
    pub fn delivered(&mut self, tracks: &Tracks, from: u64, to: u64) {
        self.for_each_part(tracks, from, to, |region, blocks| {
            region.left -= blocks;
        });
    }

    fn for_each_part(
        &mut self,
        tracks: &Tracks,
        from: u64,
        to: u64,
        change: impl Fn(&mut Region, u64),
    ) {
        let mut at = from;
        while at < to {
            let (track, stretch) = tracks.stretch_of(at);
            let region = self.region(tracks.position(track).cylinder);
            let end = stretch.end().min(to);
            change(&mut self.regions[region], end - at);
            change(&mut self.all, end - at);
            at = end;
        }
    }

    /// Works the prices out anew from time to time.
    pub fn refresh(&mut self) {
        self.decisions += 1;
        if self.decisions % EVERY != 1 || self.all.left == 0 {
            return;
        }
        let Region { asked: all_asked, left: all_left } = self.all;
        for (price, region) in self.prices[0].iter_mut().zip(&self.regions) {
            let part = u128::from(region.left) * u128::from(all_asked);
            let whole = u128::from(region.asked.max(1)) * u128::from(all_left);
            let exact = part * u128::from(ONE) / whole;
            *price = exact.clamp(1, PRICE_MAX.into()) as u64;
        }
        for above in 1..self.prices.len() {
            for node in 0..self.prices[above].len() {
                let greatest = Index::child_numbers(node, self.prices[above - 1].len())
                    .map(|child| self.prices[above - 1][child])
                    .max();
                self.prices[above][node] = greatest.unwrap_or(ONE);
            }
        }
    }
}
