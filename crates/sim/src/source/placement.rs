//! Places of a trace's blocks on the drive of an experiment.

use std::collections::BTreeMap;

use freewheel_model::drive::Sectors;
use freewheel_trace::Record;
use freewheel_units::{Blocks, Bytes, VolumeBlock, grouped};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Fit of a trace whose address space is not the drive's size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Fit {
    /// Addresses stay; a trace larger than the drive is an error.
    #[default]
    AsIs,
    /// Addresses modulo the drive's capacity.
    Wrap,
    /// Pieces of 16 MiB are spread or squeezed over the whole drive; sequential requests inside a piece
    /// stay sequential.
    Scale,
}

/// Reason for which a trace cannot be placed on a drive.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[allow(missing_docs)]
pub enum PlacementError {
    /// The trace's address space is larger than the drive.
    #[error(
        "the trace reaches {trace}, but the drive holds {drive}: it needs a larger drive, or its \
         addresses wrapped or scaled"
    )]
    TooLarge {
        /// Size of the trace's address space.
        trace: String,
        drive: String,
    },
    /// One request alone is larger than the drive.
    #[error("a request of {request} is larger than the drive of {drive}: it needs a larger drive")]
    RequestTooLarge { request: String, drive: String },
    /// A request splits sectors of a 4Kn drive.
    #[error(
        "record {record} of the trace asks for {blocks} blocks of 512 B from block {start} on, and a 4Kn \
         drive takes whole sectors of {sector} blocks alone: take a drive of 512e (`electronics.sector` \
         in its file, or `host.behaviour.sector`)"
    )]
    PartSector {
        /// Number of the record, from 1.
        record: u64,
        /// First block on the drive.
        start: u64,
        blocks: u64,
        /// Blocks of a sector.
        sector: u32,
    },
    /// The trace has no such device.
    #[error("the trace has no device {device}: its devices are {devices}")]
    NoDevice { device: u32, devices: String },
}

/// Devices that a message names.
const DEVICES_NAMED: usize = 20;

impl PlacementError {
    /// The trace has only these devices, and not the one asked for.
    pub fn no_device(device: u32, there_are: impl IntoIterator<Item = u32>) -> Self {
        let all: Vec<String> = there_are.into_iter().map(|id| id.to_string()).collect();
        let named = all[..all.len().min(DEVICES_NAMED)].join(", ");
        let devices = match all.len().saturating_sub(DEVICES_NAMED) {
            0 => named,
            others => format!("{named} and {} others", grouped(others as u64)),
        };
        Self::NoDevice { device, devices }
    }
}

const PIECE_BLOCKS: u64 = 16 << 11;

/// Maps a trace's (device, block) to the drive. Several devices lie end to end, like the volumes in
/// tr03 section 3.3, unless one is chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// First block of each device in the common address space.
    bases: BTreeMap<u32, u64>,
    space: u64,
    capacity: u64,
    fit: Fit,
    /// Sectors of the drive.
    sectors: Sectors,
}

impl Placement {
    /// Places the devices of a trace, each given with its end, or the chosen one.
    pub fn new(
        devices: &BTreeMap<u32, u64>,
        device: Option<u32>,
        capacity: Blocks,
        fit: Fit,
    ) -> Result<Self, PlacementError> {
        if let Some(device) = device.filter(|device| !devices.contains_key(device)) {
            return Err(PlacementError::no_device(device, devices.keys().copied()));
        }
        let ends = devices.iter().map(|(&id, &end)| (id, end));
        let (bases, space) = lay(ends.filter(|(id, _)| device.is_none_or(|d| d == *id)), 0);
        Self::of_bases(bases, space, capacity, fit)
    }

    /// Places several traces, each given with the ends of its devices, one after the other.
    pub fn end_to_end(
        traces: &[BTreeMap<u32, u64>],
        capacity: Blocks,
        fit: Fit,
    ) -> Result<Vec<Self>, PlacementError> {
        let (mut all, mut space) = (Vec::new(), 0);
        for devices in traces {
            let (bases, end) = lay(devices.iter().map(|(&id, &end)| (id, end)), space);
            all.push(bases);
            space = end;
        }
        all.into_iter().map(|bases| Self::of_bases(bases, space, capacity, fit)).collect()
    }

    fn of_bases(
        bases: BTreeMap<u32, u64>,
        space: u64,
        capacity: Blocks,
        fit: Fit,
    ) -> Result<Self, PlacementError> {
        if fit == Fit::AsIs && space > capacity.get() {
            let (trace, drive) = (sized(space), sized(capacity.get()));
            return Err(PlacementError::TooLarge { trace, drive });
        }
        let sectors = Sectors::default();
        Ok(Self { bases, space, capacity: capacity.get(), fit, sectors })
    }

    /// Checks requests against whole sectors, for a 4Kn drive.
    #[must_use]
    pub fn in_sectors(self, sectors: Sectors) -> Self {
        Self { sectors, ..self }
    }

    /// Err when the `record`th request of the trace splits a sector.
    pub(super) fn check_sectors(
        &self,
        record: u64,
        start: VolumeBlock,
        blocks: Blocks,
    ) -> Result<(), PlacementError> {
        let (start, blocks, sector) = (start.get(), blocks.get(), self.sectors.blocks());
        if (start | blocks).is_multiple_of(sector.into()) {
            Ok(())
        } else {
            Err(PlacementError::PartSector { record, start, blocks, sector })
        }
    }

    /// Size of the trace's address space.
    pub fn space(&self) -> Bytes {
        Blocks::new(self.space).bytes()
    }

    /// True if the record's device takes part.
    pub fn includes(&self, record: &Record) -> bool {
        self.bases.contains_key(&record.device)
    }

    /// Place of a record on the drive. Panics for a device that does not take part.
    pub fn place(&self, record: &Record) -> Result<VolumeBlock, PlacementError> {
        let last = self.capacity.checked_sub(record.blocks.get()).ok_or_else(|| {
            let (request, drive) = (record.blocks.bytes(), Blocks::new(self.capacity).bytes());
            PlacementError::RequestTooLarge { request: request.human(), drive: drive.human() }
        })?;
        let at = self.bases[&record.device] + record.start.get();
        let at = match self.fit {
            Fit::AsIs => at,
            Fit::Wrap => at % self.capacity,
            Fit::Scale => self.scaled(at),
        };
        Ok(VolumeBlock::new(at.min(last)))
    }

    fn scaled(&self, at: u64) -> u64 {
        let (piece, within) = (at / PIECE_BLOCKS, at % PIECE_BLOCKS);
        let pieces = u128::from(self.space.div_ceil(PIECE_BLOCKS).max(1));
        let room = u128::from((self.capacity / PIECE_BLOCKS).max(1));
        (u128::from(piece) * room / pieces) as u64 * PIECE_BLOCKS + within
    }
}

fn sized(blocks: u64) -> String {
    let bytes = Blocks::new(blocks).bytes();
    format!("{} ({} bytes)", bytes.human(), bytes.get())
}

/// Devices with their ends, laid end to end from a block on: their first blocks, and the end of the last.
fn lay(devices: impl Iterator<Item = (u32, u64)>, from: u64) -> (BTreeMap<u32, u64>, u64) {
    let (mut bases, mut space) = (BTreeMap::new(), from);
    for (id, end) in devices {
        // Each device begins at a multiple of 4 KiB, so that what was aligned stays so.
        space = u64::next_multiple_of(space, 8);
        bases.insert(id, space);
        space += end;
    }
    (bases, space)
}

#[cfg(test)]
mod tests {
    use freewheel_units::{Op, SimTime, VolumeBlock};

    use super::*;

    fn place(ends: &[(u32, u64)], capacity: u64, fit: Fit, device: u32, at: u64) -> u64 {
        let ends = ends.iter().copied().collect();
        let placement = Placement::new(&ends, None, Blocks::new(capacity), fit).unwrap();
        let record = Record {
            widened: false,
            arrival: SimTime::ZERO,
            op: Op::Read,
            device,
            start: VolumeBlock::new(at),
            blocks: Blocks::new(8),
            completion: None,
            fua: false,
        };
        placement.place(&record).unwrap().get()
    }

    #[test]
    fn devices_laid_end_to_end_aligned() {
        let ends = [(3, 101), (7, 50)];
        assert_eq!(place(&ends, 1000, Fit::AsIs, 3, 5), 5);
        assert_eq!(place(&ends, 1000, Fit::AsIs, 7, 5), 104 + 5);
    }

    #[test]
    fn wrapped_addresses_stay_on_drive() {
        assert_eq!(place(&[(0, 5000)], 1000, Fit::Wrap, 0, 3210), 210);
        assert_eq!(place(&[(0, 5000)], 1000, Fit::Wrap, 0, 3998), 992);
    }

    #[test]
    fn scaled_addresses_keep_order_and_place() {
        // Two pieces on a drive of ten: the second moves to the middle.
        let (space, capacity) = (2 * PIECE_BLOCKS, 10 * PIECE_BLOCKS);
        let scaled = |at| place(&[(0, space)], capacity, Fit::Scale, 0, at);
        assert_eq!(scaled(77), 77);
        assert_eq!(scaled(PIECE_BLOCKS + 77), 5 * PIECE_BLOCKS + 77);
        // Ten pieces squeezed onto two.
        let squeezed = |at| place(&[(0, capacity)], space, Fit::Scale, 0, at);
        assert_eq!(squeezed(9 * PIECE_BLOCKS + 77), PIECE_BLOCKS + 77);
    }

    #[test]
    fn traces_laid_end_to_end_must_fit() {
        let traces = [BTreeMap::from([(3, 101), (7, 50)]), BTreeMap::from([(3, 200)])];
        let placements = |capacity| {
            let placed = Placement::end_to_end(&traces, Blocks::new(capacity), Fit::AsIs)?;
            Ok::<_, PlacementError>(placed.into_iter().map(|p| p.bases).collect::<Vec<_>>())
        };
        let expected = [BTreeMap::from([(3, 0), (7, 104)]), BTreeMap::from([(3, 160)])];
        assert_eq!(placements(360).unwrap(), expected);
        assert!(matches!(placements(359), Err(PlacementError::TooLarge { .. })));
    }

    #[test]
    fn missing_device_answered_with_existing() {
        let ends = [(3, 101), (7, 50)].into_iter().collect();
        let error = Placement::new(&ends, Some(4), Blocks::new(1000), Fit::AsIs).unwrap_err();
        assert!(error.to_string().contains("its devices are 3, 7"), "{error}");
    }
}
