//! Hits that the blocks bring that pass before a read.

use freewheel_units::{Blocks, Lbn};

/// Regions of the drive.
const REGIONS: u64 = 4096;

/// Reads that a region's average remembers, and that of all.
const REGION_MEMORY: f64 = 256.0;
const MEMORY: f64 = 65_536.0;

/// As if from how many reads a region believes what all show.
const OTHERS: f64 = 16.0;

/// Reads, and the hits that the blocks before them brought.
#[derive(Debug, Clone, Copy, Default)]
struct Rate {
    reads: f64,
    hits: f64,
}

impl Rate {
    fn read(&mut self, memory: f64) {
        if self.reads >= memory {
            self.reads /= 2.0;
            self.hits /= 2.0;
        }
        self.reads += 1.0;
    }
}

/// Hits by region, and by whether the read lay near another.
#[derive(Debug, Clone)]
pub(super) struct Yields {
    region_blocks: u64,
    regions: Vec<[Rate; 2]>,
    all: [Rate; 2],
}

impl Yields {
    pub fn new(blocks: Blocks) -> Self {
        let region_blocks = blocks.get().div_ceil(REGIONS).max(1);
        let regions = blocks.get().div_ceil(region_blocks).max(1);
        Self {
            region_blocks,
            regions: vec![Default::default(); regions as usize],
            all: Default::default(),
        }
    }

    /// Hits that the blocks before a read are expected to bring.
    pub fn of(&self, start: Lbn, is_near: bool) -> f64 {
        let Rate { reads, hits } = self.all[usize::from(is_near)];
        // No loss is expected until something is known: the budget bounds what that costs.
        let of_all = hits / reads.max(1.0);
        let Rate { reads, hits } = self.regions[self.region(start)][usize::from(is_near)];
        (hits + of_all * OTHERS) / (reads + OTHERS)
    }

    /// Blocks have passed before a read.
    pub fn passed(&mut self, start: Lbn, is_near: bool) {
        let region = self.region(start);
        self.regions[region][usize::from(is_near)].read(REGION_MEMORY);
        self.all[usize::from(is_near)].read(MEMORY);
    }

    /// One of them was read later, with this chance of a hit.
    pub fn brought(&mut self, start: Lbn, is_near: bool, hits: f64) {
        let region = self.region(start);
        self.regions[region][usize::from(is_near)].hits += hits;
        self.all[usize::from(is_near)].hits += hits;
    }

    fn region(&self, start: Lbn) -> usize {
        ((start.get() / self.region_blocks) as usize).min(self.regions.len() - 1)
    }
}

/// A mean that forgets.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mean {
    number: f64,
    sum: f64,
}

impl Mean {
    /// Values that it remembers.
    const MEMORY: f64 = 4096.0;

    pub fn starting_with(value: f64) -> Self {
        Self { number: 1.0, sum: value }
    }

    pub fn add(&mut self, value: f64) {
        if self.number >= Self::MEMORY {
            self.number /= 2.0;
            self.sum /= 2.0;
        }
        self.number += 1.0;
        self.sum += value;
    }

    /// Adds to what the last value was.
    pub fn add_to_sum(&mut self, value: f64) {
        self.sum += value;
    }

    pub fn get(&self) -> f64 {
        self.sum / self.number
    }
}
