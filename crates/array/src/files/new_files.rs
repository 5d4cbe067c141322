//! Files that are created and deleted during a run.
//!
//! ```text
//!   a class's slots      each slot has a share of the requests, and a file
//!   a new file           is placed by the rule of placement, and takes over a slot; a client writes it
//!   the slot's old file  is deleted, and its room is free; a file that is being copied, after its copy
//! ```

use std::collections::BTreeMap;

use crate::allocation::Allocator;
use crate::placement::ExtentId;
use freewheel_units::{Blocks, SimTime};

use super::map::{FileMap, MappedFile};
use super::place::{FileOnDisks, new_extents};

/// A file to be created. Created files have the numbers behind those of the first ones, by their times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NewFile {
    pub at: SimTime,
    /// Number of the first file whose place it, or another one before it, takes.
    pub slot: u32,
}

/// Files that came and went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NewFilesWork {
    /// Files that were created.
    pub created: u64,
    /// Blocks of these.
    pub blocks: Blocks,
    /// Files that were deleted.
    pub deleted: u64,
    /// Files that no disk had room for in one piece; clients overwrote the old ones.
    pub without_room: u64,
}

/// Requests to a new file after which its own heat counts, where it is not known before.
const SEEN: u32 = 5;

/// Creates files at their times, and deletes those that they replace.
pub(super) struct NewFiles<'a> {
    map: &'a FileMap,
    /// All files as they are cut, with the heats that they are placed by.
    files: &'a [FileOnDisks],
    created: &'a [NewFile],
    next: usize,
    /// Present file of each slot.
    file_of: Vec<u32>,
    allocator: Allocator,
    /// Heat that each extent counts with.
    heats: Vec<f64>,
    /// New files whose heat does not count yet, and the requests to each; None if it counts at once.
    unseen: Option<BTreeMap<u32, u32>>,
    /// Files to be deleted, whose copies are under way.
    doomed: Vec<u32>,
    work: NewFilesWork,
}

impl<'a> NewFiles<'a> {
    /// `created` by time. `allocator` goes on from the placement of the first files. The heat of a new file
    /// counts at once, or else only when requests to it were seen.
    pub fn new(
        map: &'a FileMap,
        files: &'a [FileOnDisks],
        created: &'a [NewFile],
        allocator: Allocator,
        counts_at_once: bool,
    ) -> Self {
        let slots = files.len() - created.len();
        let mut new = Self {
            map,
            files,
            created,
            next: 0,
            file_of: (0..slots as u32).collect(),
            allocator,
            heats: Vec::new(),
            unseen: (!counts_at_once).then(BTreeMap::new),
            doomed: Vec::new(),
            work: NewFilesWork::default(),
        };
        (0..slots as u32).for_each(|file| new.count(file));
        new
    }

    pub fn work(&self) -> NewFilesWork {
        self.work
    }

    /// Time of the next creation.
    pub fn next_at(&self) -> Option<SimTime> {
        self.created.get(self.next).map(|new| new.at)
    }

    /// The file of a slot now, for a request to it.
    pub fn file(&mut self, slot: usize) -> usize {
        let file = self.file_of[slot];
        let seen = self.unseen.as_mut().and_then(|unseen| unseen.get_mut(&file));
        if let Some(seen) = seen {
            *seen += 1;
            if *seen == SEEN {
                self.unseen.as_mut().and_then(|unseen| unseen.remove(&file));
                self.count(file);
            }
        }
        file as usize
    }

    /// Creates the next file, and returns the one to be written: where no disk has room, the old one.
    pub fn create(&mut self) -> usize {
        let slots = self.file_of.len();
        let (file, slot) = ((slots + self.next) as u32, self.created[self.next].slot as usize);
        self.next += 1;
        self.delete_doomed();
        let old = self.file_of[slot];
        if !self.place(file) {
            self.work.without_room += 1;
            return old as usize;
        }
        self.work.created += 1;
        self.work.blocks += self.files[file as usize].blocks;
        match &mut self.unseen {
            Some(unseen) => drop(unseen.insert(file, 0)),
            None => self.count(file),
        }
        self.file_of[slot] = file;
        self.doomed.push(old);
        self.delete_doomed();
        file as usize
    }

    fn delete_doomed(&mut self) {
        let Self { doomed, map, work, unseen, .. } = self;
        doomed.retain(|&file| {
            let is_deleted = map.delete(file);
            work.deleted += u64::from(is_deleted);
            if is_deleted && let Some(unseen) = unseen {
                unseen.remove(&file);
            }
            !is_deleted
        });
    }

    /// Lets the heat of a file's extents count.
    fn count(&mut self, file: u32) {
        let cut = self.cut(file);
        let end = (cut.first_extent.0 + cut.width) as usize;
        if self.heats.len() < end {
            self.heats.resize(end, 0.0);
        }
        for (new, _) in new_extents(file, &self.files[file as usize], &cut) {
            self.heats[new.id.0 as usize] = new.heat;
        }
    }

    fn cut(&self, file: u32) -> MappedFile {
        self.map.file(file)
    }

    /// Places all extents of a file, or none. Moves may have changed the disks' heats, so they are summed anew.
    fn place(&mut self, file: u32) -> bool {
        let cut = self.cut(file);
        let mut placement = self.map.placement().borrow_mut();
        let mut heats = vec![0.0; placement.disks() as usize];
        for (id, extent) in placement.extents() {
            let heat = self.heats.get(id.0 as usize).copied().unwrap_or(0.0);
            heats[extent.place.disk as usize] += heat;
        }
        for (new, _) in new_extents(file, &self.files[file as usize], &cut) {
            if self.allocator.place(&mut placement, &mut heats, &new).is_none() {
                (cut.first_extent.0..new.id.0).for_each(|id| _ = placement.remove(ExtentId(id)));
                return false;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use crate::allocation::{DiskOrder, NewHeat, Passes};
    use crate::placement::FileId;
    use freewheel_units::Prng;

    use super::*;
    use crate::files::place::place;

    const DISKS: usize = 4;
    const CAPACITY: usize = 120;
    const SLOTS: usize = 12;

    /// The slow allocator: every block of every disk, and the owner of each.
    struct Slow {
        owner: Vec<Vec<Option<u32>>>,
        heat: BTreeMap<u32, f64>,
    }

    impl Slow {
        /// The start of the shortest run of free blocks that holds this many; the first of equal ones.
        fn hole(&self, disk: usize, blocks: usize) -> Option<usize> {
            let mut runs: Vec<(usize, usize)> = Vec::new();
            for (at, owner) in self.owner[disk].iter().enumerate() {
                match runs.last_mut() {
                    _ if owner.is_some() => {}
                    Some((length, start)) if *start + *length == at => *length += 1,
                    _ => runs.push((1, at)),
                }
            }
            runs.into_iter().filter(|(length, _)| *length >= blocks).min().map(|(_, start)| start)
        }

        /// One extent a disk at most, each on the coolest disk with room.
        fn place(&mut self, file: u32, extents: &[(usize, f64)]) -> bool {
            let before = self.owner.clone();
            let mut own = [0.0; DISKS];
            for &(blocks, heat) in extents {
                let of = |disk: usize| -> f64 {
                    let mut sum = own[disk];
                    for owner in self.owner[disk].iter().flatten().filter(|owner| **owner != file) {
                        sum += self.heat[owner];
                    }
                    sum
                };
                let free = |disk: &usize| {
                    !self.owner[*disk].contains(&Some(file)) && self.hole(*disk, blocks).is_some()
                };
                let disks = (0..DISKS).filter(free);
                let Some(disk) = disks.min_by(|a, b| of(*a).total_cmp(&of(*b))) else {
                    self.owner = before;
                    return false;
                };
                let start = self.hole(disk, blocks).unwrap();
                self.owner[disk][start..start + blocks].fill(Some(file));
                own[disk] += heat;
            }
            true
        }

        fn delete(&mut self, file: u32) {
            let all = self.owner.iter_mut().flatten();
            all.filter(|owner| **owner == Some(file)).for_each(|owner| *owner = None);
        }

        fn of(map: &FileMap) -> Vec<Vec<Option<u32>>> {
            let mut owner = vec![vec![None; CAPACITY]; DISKS];
            for (_, extent) in map.placement().borrow().extents() {
                let start = extent.place.start.get() as usize;
                let blocks = extent.blocks.get() as usize;
                owner[extent.place.disk as usize][start..start + blocks].fill(Some(extent.file.0));
            }
            owner
        }
    }

    /// Heat is whole numbers a block, so that sums are exact in any order.
    fn random_file(prng: &mut Prng) -> FileOnDisks {
        let blocks = 1 + prng.below(40);
        FileOnDisks {
            blocks: Blocks::new(blocks),
            unit: Blocks::new(1 + prng.below(blocks)),
            width: 1 + prng.below(3) as u32,
            boundary: Blocks::new(1),
            heat: (blocks * prng.below(8)) as f64,
        }
    }

    #[test]
    fn files_match_slow_allocator() {
        let (mut without_room, mut kept) = (0, 0);
        for seed in 0..60 {
            let prng = &mut Prng::new(seed, "new files");
            let files: Vec<FileOnDisks> = (0..SLOTS + 60).map(|_| random_file(prng)).collect();
            let created = |number: u64| NewFile {
                at: SimTime::from_ns(number),
                slot: prng.below(SLOTS as u64) as u32,
            };
            let created: Vec<NewFile> = (0..60).map(created).collect();
            let order = DiskOrder::Coolest;
            let first = &mut Allocator::new(order, Passes::ByStatus, NewHeat::AtOnce);
            let capacities = [Blocks::new(CAPACITY as u64); DISKS];
            let Ok(placed) = place(&files, 0..SLOTS, &capacities, first) else { continue };
            let map = placed.map;
            let heat = |(number, file): (usize, &FileOnDisks)| {
                (number as u32, file.heat / file.blocks.get() as f64)
            };
            let heat = files.iter().enumerate().map(heat).collect();
            let mut slow = Slow { owner: Slow::of(&map), heat };
            let mut file_of: Vec<u32> = (0..SLOTS as u32).collect();
            let allocator = Allocator::new(order, Passes::FreeOnly, NewHeat::AtOnce);
            let mut new = NewFiles::new(&map, &files, &created, allocator, true);
            let mut pinned: Option<u32> = None;
            for (number, created) in created.iter().enumerate() {
                // A copy keeps its file until it ends.
                let was_pinned = pinned.take_if(|_| prng.chance(0.5));
                if let Some(file) = was_pinned {
                    map.unpin(FileId(file));
                    if !file_of.contains(&file) {
                        slow.delete(file);
                        kept += 1;
                    }
                } else if pinned.is_none() {
                    let file = file_of[prng.below(SLOTS as u64) as usize];
                    map.pin(FileId(file));
                    pinned = Some(file);
                }
                let file = (SLOTS + number) as u32;
                let cut = map.file(file);
                let extents = |extent: u32| {
                    let blocks = cut.extent_blocks(extent).get();
                    (blocks as usize, slow.heat[&file] * blocks as f64)
                };
                let extents: Vec<(usize, f64)> = (0..cut.width).map(extents).collect();
                let (slot, is_placed) = (created.slot as usize, slow.place(file, &extents));
                assert_eq!(new.create() as u32, if is_placed { file } else { file_of[slot] });
                if is_placed {
                    let old = std::mem::replace(&mut file_of[slot], file);
                    if pinned != Some(old) {
                        slow.delete(old);
                    }
                }
                assert_eq!(Slow::of(&map), slow.owner, "seed {seed}, file {number}");
                assert!(map.placement().borrow().faults().is_empty());
                assert_eq!(
                    (0..SLOTS).map(|slot| new.file(slot) as u32).collect::<Vec<_>>(),
                    file_of
                );
            }
            let work = new.work();
            assert_eq!(work.created + work.without_room, 60);
            without_room += work.without_room;
        }
        assert!(without_room > 10 && kept > 50, "{without_room} {kept}");
    }

    #[test]
    fn new_files_pile_up_until_seen() {
        let file = FileOnDisks {
            blocks: Blocks::new(4),
            unit: Blocks::new(4),
            width: 1,
            boundary: Blocks::new(1),
            heat: 8.0,
        };
        let disks_of = |counts_at_once: bool, requests: u32| {
            let created =
                [1, 2, 3].map(|slot| NewFile { at: SimTime::from_ns(u64::from(slot)), slot });
            let files = [file; 7];
            let first = &mut Allocator::new(DiskOrder::Coolest, Passes::ByStatus, NewHeat::AtOnce);
            let placed = place(&files, 0..4, &[Blocks::new(40); 4], first).unwrap();
            let allocator = Allocator::new(DiskOrder::Coolest, Passes::FreeOnly, NewHeat::AtOnce);
            let mut new = NewFiles::new(&placed.map, &files, &created, allocator, counts_at_once);
            let create = |number: usize| {
                let file = new.create();
                (0..requests).for_each(|_| _ = new.file(number + 1));
                let extent = placed.map.files()[file].first_extent;
                placed.map.placement().borrow().extent(extent).place.disk
            };
            [0, 1, 2].map(create)
        };
        // The first goes to disk 0. Then disk 1 is empty, as its file was replaced; and so on.
        assert_eq!(disks_of(true, 0), [0, 1, 2]);
        assert_eq!(disks_of(false, 5), [0, 1, 2]);
        // Disk 1 has the second, which counts for nothing: so the third goes there, too.
        assert_eq!(disks_of(false, 4), [0, 1, 1]);
    }
}
