//! Choosing the disk of each extent of a file.

use freewheel_units::Blocks;

use super::reorganise::{Relocation, make_room};
use crate::placement::{Extent, ExtentId, FileId, Place, Placement};
use crate::space::SpaceStatus;

/// In which order disks are tried. No disk gets two extents of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DiskOrder {
    /// The least hot first, the lowest number among equals.
    #[default]
    Coolest,
    /// From the disk after the last extent's on, also from file to file.
    RoundRobin,
    /// By a fixed hash of extent and disk: as good as random, and the same in every run.
    Shuffled {
        /// Another seed gives another order.
        seed: u64,
    },
}

/// Time at which the heat of a new extent counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NewHeat {
    /// At once: the canonical rule, within 2 - 1/D of the optimum for files of one extent (Graham 1969).
    #[default]
    AtOnce,
    /// Once enough accesses were seen: the dynamic rule of tr96. Files that arrive together pile up on
    /// one disk until then.
    AfterAccesses,
}

/// State of free space that counts as a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Passes {
    /// All disks in their order. The first one that can make room is taken.
    Single,
    /// FREE disks in their order, then FRAG ones, then FULL ones.
    #[default]
    ByStatus,
    /// FREE disks in their order; nothing moves to make room.
    FreeOnly,
}

/// An extent without a place.
#[derive(Debug, Clone, Copy, PartialEq)]
#[allow(missing_docs)]
pub struct NewExtent {
    pub id: ExtentId,
    /// The file that it belongs to.
    pub file: FileId,
    pub blocks: Blocks,
    /// Expected heat, in the unit of the disks' heats.
    pub heat: f64,
}

/// Outcome of an allocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allocated {
    /// Disk and first block of the extent.
    pub place: Place,
    /// Extents that moved for it, in order.
    pub moves: Vec<Relocation>,
}

#[cfg(test)]
impl Allocated {
    /// Blocks read and blocks written to make room: each moved block counts twice.
    pub fn reorganisation_blocks(&self) -> Blocks {
        Blocks::new(2 * self.moves.iter().map(|made| made.blocks.get()).sum::<u64>())
    }
}

/// Places extents on disks.
#[derive(Debug, Clone, PartialEq)]
pub struct Allocator {
    order: DiskOrder,
    passes: Passes,
    new_heat: NewHeat,
    next_disk: u32,
}

impl Allocator {
    /// An allocator that begins its round with disk 0.
    pub fn new(order: DiskOrder, passes: Passes, new_heat: NewHeat) -> Self {
        Self { order, passes, new_heat, next_disk: 0 }
    }

    /// Places an extent. `heats` holds the accumulated heat of each disk, and grows by the extent's if
    /// that counts at once. None when no disk without an extent of the file can make room; then
    /// everything is as before.
    pub fn place(
        &mut self,
        placement: &mut Placement,
        heats: &mut [f64],
        new: &NewExtent,
    ) -> Option<Allocated> {
        assert_eq!(heats.len(), placement.disks() as usize, "one heat a disk");
        let order = self.ordered(heats, new);
        let mut candidates = order.clone();
        candidates.retain(|&disk| !placement.holds_file(disk, new.file));
        match self.passes {
            Passes::Single => {}
            Passes::ByStatus => {
                candidates.sort_by_key(|&disk| placement.status(disk, new.blocks));
            }
            Passes::FreeOnly => {
                candidates.retain(|&disk| placement.status(disk, new.blocks) == SpaceStatus::Free);
            }
        }
        let mut rooms = candidates.iter();
        let room = rooms.find_map(|&disk| make_room(placement, disk, new.blocks, &order))?;
        let (file, blocks, place) = (new.file, new.blocks, room.place);
        placement.insert(new.id, Extent { file, blocks, place });
        if self.new_heat == NewHeat::AtOnce {
            heats[place.disk as usize] += new.heat;
        }
        self.next_disk = (place.disk + 1) % placement.disks();
        Some(Allocated { place, moves: room.moves })
    }

    /// The static case: all extents are known, and the hottest is placed first. Equals keep their order.
    /// One result for each extent, in the order of `extents`.
    pub fn place_all(
        &mut self,
        placement: &mut Placement,
        heats: &mut [f64],
        extents: &[NewExtent],
    ) -> Vec<Option<Allocated>> {
        let mut hottest_first: Vec<usize> = (0..extents.len()).collect();
        hottest_first.sort_by(|&a, &b| extents[b].heat.total_cmp(&extents[a].heat));
        let mut results = vec![None; extents.len()];
        for number in hottest_first {
            results[number] = self.place(placement, heats, &extents[number]);
        }
        results
    }

    fn ordered(&self, heats: &[f64], new: &NewExtent) -> Vec<u32> {
        let count = heats.len() as u32;
        let mut disks: Vec<u32> = (0..count).collect();
        match self.order {
            DiskOrder::Coolest => {
                disks.sort_by(|&a, &b| heats[a as usize].total_cmp(&heats[b as usize]));
            }
            DiskOrder::RoundRobin => disks.rotate_left((self.next_disk % count.max(1)) as usize),
            DiskOrder::Shuffled { seed } => {
                let key = seed ^ (u64::from(new.id.0) << 32);
                disks.sort_by_key(|&disk| mixed(key ^ u64::from(disk)));
            }
        }
        disks
    }
}

/// A fixed hash (the last step of SplitMix64).
fn mixed(key: u64) -> u64 {
    let z = key.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
