//! Way of reading a format: the caller's options, and the results of a first pass.

use freewheel_units::SimDuration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::scan::TimeUnit;
use crate::source::{Deliver, EventOrder, RunOptions};

/// Origin of a trace's times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Clock {
    /// From the start of a recording: a second recording in the same file begins again.
    FromStart,
    /// From one moment for all records, of a calendar or a machine: they are sorted.
    Absolute,
}

/// Meaning of the numbers in a cache simulator's trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Numbers {
    /// Objects, each of which has a separate place.
    Objects,
    /// Blocks of 512 bytes of a disk.
    Addresses,
}

/// Requests that are read of a trace of a block layer, which joins adjoining requests while they wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Layer {
    /// Issued requests where at least one queued request in a hundred was merged, else queued ones.
    #[default]
    Auto,
    /// Queued requests: those of the file system.
    Queued,
    /// Issued requests: those of the drive, each with all that was merged into it.
    Issued,
}

/// Way in which a source reads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct How {
    /// Unit of the times, in formats that leave a choice.
    pub unit: TimeUnit,
    pub clock: Clock,
    /// True if the person said so: then any step back from which times go on begins a recording.
    pub clock_is_asked: bool,
    /// The step of a coarse clock; 0 for a fine one, and before it is known.
    pub granule: SimDuration,
    /// Step of the clock that the format says, in nanoseconds.
    pub known_step_ns: Option<u64>,
    /// True if events lie farther out of order than a window reaches.
    pub needs_merge: bool,
    /// True if requests count that a cache in front of the disk served.
    pub cache_hits: bool,
    /// Layer whose requests the person asked for.
    pub layer: Layer,
    /// Requests that are delivered.
    pub deliver: Deliver,
    /// Places of objects; `None` where numbers are addresses.
    pub objects: Option<ObjectPlaces>,
    /// True if records of formats that may hold objects have the numbers that stand there, and sizes in bytes in place of
    /// completions: for a pass over objects alone.
    pub exact_objects: bool,
}

impl How {
    /// Rule that tells recordings apart.
    pub fn clock_runs(&self) -> RunOptions {
        RunOptions { granule: self.granule, any_step_back: self.clock_is_asked }
    }

    /// For events, which their source puts in order.
    pub fn event_order(&self) -> EventOrder {
        let recordings = (self.clock == Clock::FromStart).then(|| self.clock_runs());
        EventOrder { recordings, needs_merge: self.needs_merge, deliver: self.deliver }
    }
}

/// Blocks of 512 bytes in a page of 4 KiB.
pub(crate) const PAGE_BLOCKS: u64 = 8;
/// Blocks of 512 bytes over which places are spread: numbers above fold below that.
pub(crate) const PLACES_BLOCKS: u64 = 1 << 54;

/// Places of objects: each begins a whole number of the largest object's size from the start, on a page of
/// 4 KiB. So objects do not share blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ObjectPlaces {
    /// From one place to the next.
    pub blocks: u64,
    /// True if the number itself counts the places, so that neighbours in number stay neighbours. Otherwise
    /// objects get places in the order in which they appear.
    pub by_number: bool,
}

impl ObjectPlaces {
    /// Places for objects of at most `blocks_max` blocks whose numbers are at most `largest`.
    pub fn new(blocks_max: u64, largest: u64) -> Self {
        let blocks = blocks_max.next_multiple_of(PAGE_BLOCKS).max(PAGE_BLOCKS);
        Self { blocks, by_number: largest < PLACES_BLOCKS / blocks }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn object_places_by_number_when_fitting() {
        assert_eq!(ObjectPlaces::new(9, 1000), ObjectPlaces { blocks: 16, by_number: true });
        assert!(!ObjectPlaces::new(9, PLACES_BLOCKS / 16).by_number);
        assert!(ObjectPlaces::new(0, PLACES_BLOCKS / 16).by_number);
    }
}
