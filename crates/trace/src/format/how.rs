//! How a source is to read its format: what the caller asked for, and what a first pass found out.

use freewheel_units::SimDuration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::scan::TimeUnit;
use crate::source::EventOrder;

/// What the times of a trace count from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Clock {
    /// From the start of a recording: a second recording in the same file begins again.
    FromStart,
    /// From one moment for all records, of a calendar or a machine: they are sorted.
    Absolute,
}

/// What the numbers of a cache simulator's trace name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Numbers {
    /// Objects, each of which has a place of its own.
    Objects,
    /// Blocks of 512 bytes of a disk.
    Addresses,
}

/// How a source reads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct How {
    /// Unit of the times, in formats that leave a choice.
    pub unit: TimeUnit,
    pub clock: Clock,
    /// The least time between two recordings.
    pub run_gap: SimDuration,
    /// Whether events lie farther out of order than a window reaches.
    pub needs_merge: bool,
    /// Whether requests count that a cache in front of the disk served.
    pub cache_hits: bool,
    /// Places of objects; `None` where numbers are addresses.
    pub objects: Option<ObjectPlaces>,
}

impl How {
    /// For events, which their source puts in order.
    pub fn event_order(&self) -> EventOrder {
        let run_gap = (self.clock == Clock::FromStart).then_some(self.run_gap);
        EventOrder { run_gap, needs_merge: self.needs_merge }
    }
}

/// Blocks of 512 bytes in a page of 4 KiB.
const PAGE_BLOCKS: u64 = 8;
/// Blocks of 512 bytes over which places are spread: numbers above fold below that.
pub(crate) const PLACES_BLOCKS: u64 = 1 << 54;

/// Places of objects: each begins a whole number of the largest object's size from the start, on a page of
/// 4 KiB. So objects do not share blocks, and neighbours in number stay neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ObjectPlaces {
    blocks: u64,
}

impl ObjectPlaces {
    /// Places for objects of at most this many blocks.
    pub fn for_objects_of(blocks_max: u64) -> Self {
        Self { blocks: blocks_max.next_multiple_of(PAGE_BLOCKS).max(PAGE_BLOCKS) }
    }

    /// The first block of an object.
    pub fn first_block(self, number: u64) -> u64 {
        number % (PLACES_BLOCKS / self.blocks) * self.blocks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_do_not_share_blocks_and_stay_neighbours() {
        let places = ObjectPlaces::for_objects_of(9);
        assert_eq!([0, 1, 2].map(|number| places.first_block(number)), [0, 16, 32]);
        let largest = ObjectPlaces::for_objects_of(u64::from(u32::MAX));
        assert!(largest.first_block(u64::MAX) + u64::from(u32::MAX) <= PLACES_BLOCKS);
    }
}
