//! Amount that an access adds to heat: blocks, or head time.

use freewheel_units::Blocks;

use crate::partition::DiskModel;

/// The amount that one access adds.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum HeatAmount {
    /// Blocks of 512 bytes, as in tr96: heat in blocks a second.
    #[default]
    Blocks,
    /// Seconds of head time: heat is the share of a disk's time. A small hot file costs seeks and not
    /// blocks, and heat in blocks does not see it.
    HeadTime(HeadTimeCost),
}

/// Mean head time of an access.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HeadTimeCost {
    /// Seek and rotation, in seconds.
    pub positioning_s: f64,
    /// Each block of 512 bytes, in seconds.
    pub block_s: f64,
}

impl HeadTimeCost {
    /// Costs of a modelled disk whose blocks have `block_size` blocks of 512 bytes.
    pub fn of(disk: &DiskModel, block_size: Blocks) -> Self {
        let symbols = disk.symbols();
        let track_s = symbols.rotation_s + symbols.crossing_s();
        let per_track = symbols.blocks_per_track * block_size.get() as f64;
        Self { positioning_s: disk.latency_s(), block_s: track_s / per_track }
    }

    /// Head time of an access of `blocks` blocks, in seconds.
    pub fn access_s(&self, blocks: Blocks) -> f64 {
        self.positioning_s + self.block_s * blocks.get() as f64
    }
}

impl HeatAmount {
    /// Amount that an access of `blocks` blocks adds.
    pub fn of_access(&self, blocks: Blocks) -> f64 {
        match self {
            Self::Blocks => blocks.get() as f64,
            Self::HeadTime(cost) => cost.access_s(blocks),
        }
    }
}
