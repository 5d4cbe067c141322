//! Map from extents to places: allocation fills it, cooling changes it.

use std::collections::BTreeMap;
use std::fmt;

use freewheel_units::{Blocks, Lbn};

use super::space::{FreeSpace, SpaceStatus};

/// A file, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub u32);

/// An extent, by number: all runs of a file on one disk, or a fragment of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExtentId(pub u32);

impl fmt::Display for ExtentId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "extent {}", self.0)
    }
}

/// Disk and first block of an extent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The disk.
    pub disk: u32,
    /// First block on that disk.
    pub start: Lbn,
}

/// Share of a disk's heat that [`Placement::lay_out`] takes for its hot part.
pub const HOT_SHARE: f64 = 0.8;

/// An extent and its only valid place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// The file that it belongs to.
    pub file: FileId,
    /// Blocks of the extent.
    pub blocks: Blocks,
    /// Disk and first block.
    pub place: Place,
}

/// Extents on disks of a fixed capacity. No two of them overlap. Numbers of extents should be dense: there is
/// room for each up to the largest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    extents: Vec<Option<Extent>>,
    disks: Vec<Disk>,
    /// Extents of a file on each disk that has one.
    of_file: BTreeMap<(FileId, u32), u32>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Disk {
    space: FreeSpace,
    extents: BTreeMap<u64, ExtentId>,
}

impl Placement {
    /// `disks` empty disks of `capacity` blocks each.
    pub fn new(disks: u32, capacity: Blocks) -> Self {
        Self::of((0..disks).map(|_| capacity))
    }

    /// Empty disks of these capacities.
    pub fn of(capacities: impl IntoIterator<Item = Blocks>) -> Self {
        Self {
            extents: Vec::new(),
            disks: capacities
                .into_iter()
                .map(|capacity| Disk { space: FreeSpace::new(capacity), extents: BTreeMap::new() })
                .collect(),
            of_file: BTreeMap::new(),
        }
    }

    /// Number of disks.
    pub fn disks(&self) -> u32 {
        self.disks.len() as u32
    }

    /// All extents by number.
    pub fn extents(&self) -> impl Iterator<Item = (ExtentId, &Extent)> {
        let numbered = (0..).map(ExtentId).zip(&self.extents);
        numbered.filter_map(|(id, extent)| Some((id, extent.as_ref()?)))
    }

    /// An extent. Panics for one that there is not.
    pub fn extent(&self, id: ExtentId) -> &Extent {
        let known = self.extents.get(id.0 as usize).and_then(Option::as_ref);
        known.unwrap_or_else(|| panic!("no {id}"))
    }

    /// True if there is an extent of this number.
    pub fn contains(&self, id: ExtentId) -> bool {
        self.extents.get(id.0 as usize).is_some_and(Option::is_some)
    }

    /// Extents of a disk by their first block.
    pub fn on_disk(&self, disk: u32) -> impl Iterator<Item = ExtentId> {
        self.disks[disk as usize].extents.values().copied()
    }

    /// Free space of a disk. Space that is reserved is not free.
    pub fn space(&self, disk: u32) -> &FreeSpace {
        &self.disks[disk as usize].space
    }

    /// Room of a disk for `blocks` blocks.
    pub fn status(&self, disk: u32, blocks: Blocks) -> SpaceStatus {
        self.space(disk).status(blocks)
    }

    /// True if a disk holds an extent of `file`.
    pub fn holds_file(&self, disk: u32, file: FileId) -> bool {
        self.of_file.contains_key(&(file, disk))
    }

    /// Takes room on a disk for an extent to come. None unless the disk is FREE.
    pub fn reserve(&mut self, disk: u32, blocks: Blocks) -> Option<Place> {
        let start = self.disks[disk as usize].space.take(blocks)?;
        Some(Place { disk, start })
    }

    /// Reserves room as near as possible to a block of the disk.
    pub fn reserve_near(&mut self, disk: u32, blocks: Blocks, near: Lbn) -> Option<Place> {
        let start = self.space(disk).nearest(blocks, near)?;
        let place = Place { disk, start };
        self.reserve_at(place, blocks);
        Some(place)
    }

    /// Reserves room near a block of the disk, or without one in the shortest free range.
    pub fn reserve_room(&mut self, disk: u32, blocks: Blocks, near: Option<Lbn>) -> Option<Place> {
        match near {
            Some(near) => self.reserve_near(disk, blocks, near),
            None => self.reserve(disk, blocks),
        }
    }

    /// Takes the room of `blocks` blocks at `place`. Panics when one of them is not free.
    pub fn reserve_at(&mut self, place: Place, blocks: Blocks) {
        self.disks[place.disk as usize].space.take_at(place.start, blocks);
    }

    /// Gives back room that no extent uses.
    pub fn release(&mut self, place: Place, blocks: Blocks) {
        self.disks[place.disk as usize].space.give(place.start, blocks);
    }

    /// Adds an extent in room that is reserved. Panics when the number is in use.
    pub fn insert(&mut self, id: ExtentId, extent: Extent) {
        let at = id.0 as usize;
        if at >= self.extents.len() {
            self.extents.resize(at + 1, None);
        }
        let known = self.extents[at].replace(extent);
        assert!(known.is_none(), "{id} twice");
        self.link(id, &extent);
    }

    /// Takes an extent out and gives its room back.
    pub fn remove(&mut self, id: ExtentId) -> Extent {
        let extent = *self.extent(id);
        self.extents[id.0 as usize] = None;
        self.unlink(&extent);
        self.release(extent.place, extent.blocks);
        extent
    }

    /// Makes reserved room the place of an extent, all at once. The old place stays reserved until it is
    /// released.
    pub fn relocate(&mut self, id: ExtentId, to: Place) -> Place {
        let old = *self.extent(id);
        let new = Extent { place: to, ..old };
        self.unlink(&old);
        self.extents[id.0 as usize] = Some(new);
        self.link(id, &new);
        old.place
    }

    /// Lays the extents of a disk one after the other from its first block on, the hottest for its size
    /// first; of equal ones the lowest number. Behind those with [`HOT_SHARE`] of the heat as much room
    /// stays free as they take, if there is as much: for extents that get hot later. Panics where room is
    /// reserved for something else.
    pub fn lay_out(&mut self, disk: u32, heat: impl Fn(&Extent) -> f64) {
        let ids: Vec<ExtentId> = self.on_disk(disk).collect();
        let known = |id: ExtentId| {
            let extent = self.extent(id);
            let heat = heat(extent);
            (heat / extent.blocks.get() as f64, heat, id)
        };
        let mut ranked: Vec<(f64, f64, ExtentId)> = ids.into_iter().map(known).collect();
        ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.2.cmp(&b.2)));
        let hot = HOT_SHARE * ranked.iter().map(|(_, heat, _)| heat).sum::<f64>();
        let extents: Vec<(ExtentId, Extent)> =
            ranked.iter().map(|&(_, _, id)| (id, self.remove(id))).collect();
        let used: u64 = extents.iter().map(|(_, extent)| extent.blocks.get()).sum();
        let spare = self.space(disk).free().get() - used;
        let (mut start, mut before) = (Lbn::new(0), 0.0);
        for ((id, extent), (_, heat, _)) in extents.into_iter().zip(ranked) {
            let place = Place { disk, start };
            self.reserve_at(place, extent.blocks);
            self.insert(id, Extent { place, ..extent });
            start = start + extent.blocks;
            if before < hot && before + heat >= hot {
                start = start + Blocks::new(start.get().min(spare));
            }
            before += heat;
        }
    }

    /// Divides an extent into fragments of `blocks` blocks, the last of which may be shorter, in place. The
    /// first fragment keeps the number; the others get those from `next` on. Returns all numbers.
    pub fn split(&mut self, id: ExtentId, blocks: Blocks, next: ExtentId) -> Vec<ExtentId> {
        assert!(blocks > Blocks::ZERO, "fragments without blocks");
        let whole = *self.extent(id);
        self.unlink(&whole);
        self.extents[id.0 as usize] = None;
        let count = whole.blocks.get().div_ceil(blocks.get());
        let ids: Vec<ExtentId> =
            std::iter::once(id).chain((next.0..).map(ExtentId)).take(count as usize).collect();
        for (number, &fragment) in ids.iter().enumerate() {
            let before = Blocks::new(number as u64 * blocks.get());
            let start = whole.place.start + before;
            let size = blocks.min(whole.blocks - before);
            let place = Place { start, ..whole.place };
            self.insert(fragment, Extent { blocks: size, place, ..whole });
        }
        ids
    }

    fn link(&mut self, id: ExtentId, extent: &Extent) {
        let Place { disk, start } = extent.place;
        let other = self.disks[disk as usize].extents.insert(start.get(), id);
        assert!(other.is_none(), "two extents at {start} of disk {disk}");
        *self.of_file.entry((extent.file, disk)).or_default() += 1;
    }

    fn unlink(&mut self, extent: &Extent) {
        let Place { disk, start } = extent.place;
        self.disks[disk as usize].extents.remove(&start.get());
        let key = (extent.file, disk);
        let count = self.of_file.get_mut(&key).expect("a file that is here");
        *count -= 1;
        if *count == 0 {
            self.of_file.remove(&key);
        }
    }

    /// Faults of the map: extents that overlap each other or free space. For tests and for maps that come
    /// from elsewhere.
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        for (number, disk) in self.disks.iter().enumerate() {
            let used =
                disk.extents.iter().map(|(&start, id)| (start, self.extent(*id).blocks.get()));
            let free = disk.space.holes().map(|(start, blocks)| (start.get(), blocks.get()));
            let mut ranges: Vec<(u64, u64)> = used.chain(free).collect();
            ranges.sort_unstable();
            for pair in ranges.windows(2).filter(|pair| pair[0].0 + pair[0].1 > pair[1].0) {
                faults.push(format!("disk {number}: blocks {} are twice in use", pair[1].0));
            }
        }
        faults
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placement_puts_hottest_for_size_first() {
        // File, first block, blocks and heat: per block 1, 8, 2, 0.
        let extents = [(0, 3, 10, 10.0), (1, 20, 5, 40.0), (2, 30, 20, 40.0), (3, 60, 10, 0.0)];
        let laid_out = |capacity| {
            let mut placement = Placement::new(1, Blocks::new(capacity));
            for (file, start, blocks, _) in extents {
                let (place, blocks) =
                    (Place { disk: 0, start: Lbn::new(start) }, Blocks::new(blocks));
                placement.reserve_at(place, blocks);
                placement.insert(ExtentId(file), Extent { file: FileId(file), blocks, place });
            }
            placement.lay_out(0, |extent| extents[extent.file.0 as usize].3);
            assert!(placement.faults().is_empty());
            [0, 1, 2, 3].map(|id| placement.extent(ExtentId(id)).place.start.get())
        };
        // Extents 1 and 2 have 80 of 90, which is more than 72. They take 25 blocks.
        assert_eq!(laid_out(200), [50, 0, 5, 60]);
        // 45 of 70 blocks are in use, so 25 are spare.
        assert_eq!(laid_out(70), [50, 0, 5, 60]);
    }
}
