//! Heat of each disk: the sum over its extents, kept up to date access by access.

use freewheel_units::{Blocks, Lbn, SimTime};

use super::table::{Forgotten, HeatTable};
use crate::placement::{ExtentId, Placement};

/// Heats of extents and of the disks that hold them.
#[derive(Debug, Clone, PartialEq)]
pub struct DiskHeats {
    table: HeatTable,
    heats: Vec<f64>,
}

impl DiskHeats {
    /// Disks without heat.
    pub fn new(table: HeatTable, disks: u32) -> Self {
        Self { table, heats: vec![0.0; disks as usize] }
    }

    /// Heats of the extents.
    pub fn table(&self) -> &HeatTable {
        &self.table
    }

    /// Accumulated heat of each disk.
    pub fn of_disks(&self) -> &[f64] {
        &self.heats
    }

    /// The block of a disk in the middle of its heat: half of it lies below. None where no heat is known.
    pub fn centre(&self, placement: &Placement, disk: u32) -> Option<Lbn> {
        let extents: Vec<(Lbn, f64)> = placement
            .on_disk(disk)
            .filter_map(|extent| {
                let heat = self.table.heat(extent).filter(|heat| *heat > 0.0)?;
                let known = placement.extent(extent);
                Some((known.place.start + Blocks::new(known.blocks.get() / 2), heat))
            })
            .collect();
        let half = 0.5 * extents.iter().map(|(_, heat)| heat).sum::<f64>();
        let mut below = 0.0;
        let mut is_reached = |heat: f64| {
            below += heat;
            below >= half
        };
        extents.into_iter().find(|(_, heat)| is_reached(*heat)).map(|(middle, _)| middle)
    }

    /// Counts an access to an extent where it lies.
    pub fn record(&mut self, placement: &Placement, extent: ExtentId, at: SimTime, amount: f64) {
        let recorded = self.table.record(extent, at, amount);
        self.add(placement, extent, recorded.change);
        if let Some(Forgotten { extent, heat }) = recorded.forgotten {
            self.add(placement, extent, -heat);
        }
    }

    /// Pseudo-requests to all extents, and a new count, which also ends the rounding errors of the sums.
    pub fn age(&mut self, placement: &Placement, now: SimTime) {
        self.table.age(now);
        self.recount(placement);
    }

    /// Moves the heat of an extent with it.
    pub fn moved(&mut self, extent: ExtentId, from: u32, to: u32) {
        let heat = self.table.heat(extent).unwrap_or(0.0);
        self.heats[from as usize] -= heat;
        self.heats[to as usize] += heat;
    }

    /// Forgets an extent before it leaves the placement.
    pub fn forget(&mut self, placement: &Placement, extent: ExtentId) {
        if let Some(Forgotten { extent, heat }) = self.table.forget(extent) {
            self.add(placement, extent, -heat);
        }
    }

    /// Forgets an extent that has left the placement, where it lay on this disk.
    pub fn removed(&mut self, extent: ExtentId, disk: u32) {
        if let Some(Forgotten { heat, .. }) = self.table.forget(extent) {
            self.heats[disk as usize] -= heat;
        }
    }

    /// Changes extents' heats by other means, and counts the disks again.
    pub fn change(&mut self, placement: &Placement, change: impl FnOnce(&mut HeatTable)) {
        change(&mut self.table);
        self.recount(placement);
    }

    fn recount(&mut self, placement: &Placement) {
        self.heats.fill(0.0);
        for (extent, heat) in self.table.heats() {
            self.heats[placement.extent(extent).place.disk as usize] += heat;
        }
    }

    fn add(&mut self, placement: &Placement, extent: ExtentId, heat: f64) {
        let disk = placement.extent(extent).place.disk;
        self.heats[disk as usize] += heat;
    }
}
