//! Map of files to several disks: volume addresses to extents.
//!
//! The volume holds the files one after the other. A file is cut into runs of one unit, which go round
//! its extents; so a request has at most one piece on each extent, and the piece has no gap. After the
//! files, every disk has a raw range that reaches each of its blocks: migrations read and write there. Behind
//! these are the files once more: a write there reaches both places of the extent that moves. And once more:
//! requests there reach the layout to which a file is copied.

use std::cell::{Cell, Ref, RefCell};
use std::collections::BTreeMap;

use crate::placement::{ExtentId, FileId, Place, Placement};
use freewheel_model::striping::Piece;
use freewheel_units::{Blocks, Lbn, Op, VolumeBlock};

/// A request to blocks of the volume in which files lie one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct VolumeRequest {
    pub op: Op,
    pub start: VolumeBlock,
    pub blocks: Blocks,
    /// Number by which its completion is known: that of a client's request, or one of a copy.
    pub tag: u64,
}

/// A file that is cut into runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MappedFile {
    /// Blocks of the file.
    pub blocks: Blocks,
    /// Blocks of a run.
    pub unit: Blocks,
    /// First extent; the others have the following numbers.
    pub first_extent: ExtentId,
    /// Number of extents, each on another disk.
    pub width: u32,
}

impl MappedFile {
    /// The size of extent `number` of the file.
    pub fn extent_blocks(&self, number: u32) -> Blocks {
        let (unit, width) = (self.unit.get(), u64::from(self.width));
        let runs = self.blocks.get().div_ceil(unit);
        let own = (runs + width - 1 - u64::from(number)) / width;
        let is_last_run_own = runs > 0 && (runs - 1) % width == u64::from(number);
        let missing = runs * unit - self.blocks.get();
        Blocks::new(own * unit - if is_last_run_own { missing } else { 0 })
    }

    /// The part of extent `number` that holds blocks of `from..to` of the file: its first block within
    /// the extent, and its length.
    fn part(&self, number: u32, from: u64, to: u64) -> (u64, u64) {
        let (unit, width) = (self.unit.get(), u64::from(self.width));
        let (first_run, last_run) = (from / unit, (to - 1) / unit);
        let number = u64::from(number);
        // The first run from `first_run` on that is the extent's, and the last one up to `last_run`.
        let first = first_run + (number + width - first_run % width) % width;
        let last = last_run - (last_run % width + width - number) % width;
        let begin = first / width * unit + if first == first_run { from % unit } else { 0 };
        let in_last = if last == last_run { (to - 1) % unit + 1 } else { unit };
        (begin, last / width * unit + in_last - begin)
    }
}

/// The files of a volume and where their extents lie now.
#[derive(Debug, Clone)]
pub struct FileMap {
    files: RefCell<Vec<MappedFile>>,
    /// First volume block of each file, and the end of the last one.
    starts: Vec<u64>,
    disk_blocks: u64,
    placement: RefCell<Placement>,
    /// Second places of extents that move, for writes that reach both.
    second: RefCell<BTreeMap<ExtentId, Place>>,
    /// Files that may not be deleted now, as copies use their extents; with the number of copies.
    pins: RefCell<BTreeMap<FileId, u32>>,
    /// Extents that were deleted and have not been asked for, and the disk of each.
    removed: RefCell<Vec<(ExtentId, u32)>>,
    /// Layouts to which files are being copied, for the copies and for writes that reach both.
    next_layouts: RefCell<BTreeMap<u32, MappedFile>>,
    /// Layouts that files had before a copy, until no request uses them any more.
    old_layouts: RefCell<BTreeMap<u32, MappedFile>>,
    /// Number of the next extent that a new layout gets.
    next_extent: Cell<u32>,
}

impl FileMap {
    /// `placement` holds every extent of `files`. No disk has more than `disk_blocks` blocks.
    pub fn new(files: Vec<MappedFile>, placement: Placement, disk_blocks: Blocks) -> Self {
        let mut end = 0;
        let mut starts = vec![0];
        for file in &files {
            end += file.blocks.get();
            starts.push(end);
        }
        let placement = RefCell::new(placement);
        let next_extent = files.iter().map(|file| file.first_extent.0 + file.width).max();
        Self {
            files: RefCell::new(files),
            starts,
            disk_blocks: disk_blocks.get(),
            placement,
            second: RefCell::default(),
            pins: RefCell::default(),
            removed: RefCell::default(),
            next_layouts: RefCell::default(),
            old_layouts: RefCell::default(),
            next_extent: Cell::new(next_extent.unwrap_or(0)),
        }
    }

    /// The files, by number.
    pub fn files(&self) -> Ref<'_, [MappedFile]> {
        Ref::map(self.files.borrow(), Vec::as_slice)
    }

    /// A file as it is laid out now.
    pub(super) fn file(&self, number: u32) -> MappedFile {
        self.files.borrow()[number as usize]
    }

    /// True if a file has been created and not deleted.
    pub(super) fn is_there(&self, number: u32) -> bool {
        self.placement.borrow().contains(self.file(number).first_extent)
    }

    /// A layout for a file with other runs, whose extents have numbers of their own.
    pub(super) fn new_layout(&self, number: u32, unit: Blocks, width: u32) -> MappedFile {
        let first_extent = ExtentId(self.next_extent.get());
        self.next_extent.set(first_extent.0 + width);
        MappedFile { unit, width, first_extent, ..self.file(number) }
    }

    /// Sets the layout to which a file is copied. Its extents have places.
    pub(super) fn begin_layout(&self, number: u32, layout: MappedFile) {
        self.next_layouts.borrow_mut().insert(number, layout);
    }

    /// Makes the layout to which a file was copied the valid one.
    pub(super) fn switch_layout(&self, number: u32) {
        let new = self.next_layouts.borrow_mut().remove(&number).expect("a layout that was begun");
        let old = std::mem::replace(&mut self.files.borrow_mut()[number as usize], new);
        self.old_layouts.borrow_mut().insert(number, old);
    }

    /// Frees the room of the layout that a file had before.
    pub(super) fn drop_old_layout(&self, number: u32) {
        let old = self.old_layouts.borrow_mut().remove(&number);
        self.remove_extents(&old.expect("a layout that was valid before"));
    }

    fn remove_extents(&self, layout: &MappedFile) {
        let MappedFile { first_extent, width, .. } = *layout;
        for id in (first_extent.0..first_extent.0 + width).map(ExtentId) {
            let extent = self.placement.borrow_mut().remove(id);
            self.removed.borrow_mut().push((id, extent.place.disk));
        }
    }

    /// The address of a block of a file in the layout to which it is copied.
    pub(super) fn next_layout_address(&self, address: VolumeBlock) -> VolumeBlock {
        VolumeBlock::new(self.raw_end() + self.end() + address.get())
    }

    /// The address of a block of a file.
    pub fn address(&self, file: u32, block: u64) -> VolumeBlock {
        VolumeBlock::new(self.starts[file as usize] + block)
    }

    /// The file of a client's request.
    pub fn file_at(&self, address: VolumeBlock) -> u32 {
        let end = self.raw_end();
        let address = address.get();
        let within = if address >= end { address - end } else { address };
        (self.starts.partition_point(|&first| first <= within) - 1) as u32
    }

    /// The address that reaches a block of a disk with any content.
    pub fn raw_address(&self, disk: u32, block: Lbn) -> VolumeBlock {
        VolumeBlock::new(self.end() + u64::from(disk) * self.disk_blocks + block.get())
    }

    /// The address at which a request to `address` of a file reaches the second place, too.
    pub(super) fn both(&self, address: VolumeBlock) -> VolumeBlock {
        VolumeBlock::new(self.raw_end() + address.get())
    }

    /// Sets the second place of an extent that moves; None when it moves no more.
    pub(super) fn set_second(&self, extent: ExtentId, place: Option<Place>) {
        let mut second = self.second.borrow_mut();
        match place {
            Some(place) => second.insert(extent, place),
            None => second.remove(&extent),
        };
    }

    /// Keeps a file from being deleted until it is unpinned as often.
    pub(super) fn pin(&self, file: FileId) {
        *self.pins.borrow_mut().entry(file).or_default() += 1;
    }

    pub(super) fn unpin(&self, file: FileId) {
        let mut pins = self.pins.borrow_mut();
        let count = pins.get_mut(&file).expect("a file that is pinned");
        *count -= 1;
        if *count == 0 {
            pins.remove(&file);
        }
    }

    /// Deletes a file: its room becomes free. False if it is pinned.
    pub(super) fn delete(&self, file: u32) -> bool {
        if self.pins.borrow().contains_key(&FileId(file)) {
            return false;
        }
        self.remove_extents(&self.file(file));
        true
    }

    /// Extents that were deleted since the last call, and the disk of each.
    pub(super) fn take_removed(&self) -> Vec<(ExtentId, u32)> {
        self.removed.take()
    }

    /// The end of the raw ranges.
    fn raw_end(&self) -> u64 {
        self.end() + u64::from(self.disks()) * self.disk_blocks
    }

    /// Present places of extents. A move changes it here.
    pub fn placement(&self) -> &RefCell<Placement> {
        &self.placement
    }

    fn end(&self) -> u64 {
        self.starts[self.starts.len() - 1]
    }

    /// Number of disks.
    pub fn disks(&self) -> u32 {
        self.placement.borrow().disks()
    }

    /// The blocks of a request that lie on `extent`: the first one within the extent, and their number.
    pub(super) fn part_on_extent(
        &self,
        start: VolumeBlock,
        blocks: Blocks,
        extent: ExtentId,
    ) -> Option<(u64, u64)> {
        let number = self.starts.partition_point(|&first| first <= start.get()) - 1;
        let file = self.file(number as u32);
        let own = extent.0.checked_sub(file.first_extent.0).filter(|own| *own < file.width)?;
        let (unit, width) = (file.unit.get(), u64::from(file.width));
        let from = start.get() - self.starts[number];
        let to = from + blocks.get();
        // Runs to the next one of the extent: none of the request's is if it ends before.
        let first_run = from / unit;
        let wait = (u64::from(own) + width - first_run % width) % width;
        (first_run + wait <= (to - 1) / unit).then(|| file.part(own, from, to))
    }

    /// Shows `each` extent that the blocks of a request lie on, with the blocks on it.
    pub fn for_each_extent(
        &self,
        start: VolumeBlock,
        blocks: Blocks,
        each: impl FnMut(ExtentId, u64, u64),
    ) {
        let number = self.starts.partition_point(|&first| first <= start.get()) - 1;
        let file = self.file(number as u32);
        self.for_each_extent_of(&file, start, blocks, each);
    }

    /// [`Self::for_each_extent`] in a layout of the request's file.
    fn for_each_extent_of(
        &self,
        file: &MappedFile,
        start: VolumeBlock,
        blocks: Blocks,
        mut each: impl FnMut(ExtentId, u64, u64),
    ) {
        let number = self.starts.partition_point(|&first| first <= start.get()) - 1;
        let from = start.get() - self.starts[number];
        let to = from + blocks.get();
        assert!(to <= file.blocks.get(), "a request of one file");
        let width = u64::from(file.width);
        let (first_run, last_run) = (from / file.unit.get(), (to - 1) / file.unit.get());
        for run in first_run..=last_run.min(first_run + width - 1) {
            let extent = (run % width) as u32;
            let (begin, length) = file.part(extent, from, to);
            each(ExtentId(file.first_extent.0 + extent), begin, length);
        }
    }

    /// Shows `each` the pieces of a request, one an extent, and returns their number.
    pub fn for_each_piece(
        &self,
        start: VolumeBlock,
        blocks: Blocks,
        mut each: impl FnMut(Piece),
    ) -> u32 {
        if start.get() >= self.raw_end() + self.end() {
            let address = VolumeBlock::new(start.get() - self.raw_end() - self.end());
            return self.for_each_next_piece(address, blocks, each);
        }
        if start.get() >= self.raw_end() {
            let address = VolumeBlock::new(start.get() - self.raw_end());
            let pieces = self.for_each_valid_piece(address, blocks, &mut each);
            let pieces = pieces + self.for_each_second_piece(address, blocks, &mut each);
            return pieces + self.for_each_next_piece(address, blocks, each);
        }
        if start.get() >= self.end() {
            let raw = start.get() - self.end();
            let (arm, start) = ((raw / self.disk_blocks) as u32, Lbn::new(raw % self.disk_blocks));
            each(Piece { arm, start, blocks });
            return 1;
        }
        self.for_each_valid_piece(start, blocks, each)
    }

    fn for_each_valid_piece(
        &self,
        start: VolumeBlock,
        blocks: Blocks,
        mut each: impl FnMut(Piece),
    ) -> u32 {
        let number = self.starts.partition_point(|&first| first <= start.get()) - 1;
        self.for_each_piece_of(&self.file(number as u32), start, blocks, &mut each)
    }

    /// The pieces of a request in the layout to which its file is copied, if it is.
    fn for_each_next_piece(
        &self,
        start: VolumeBlock,
        blocks: Blocks,
        mut each: impl FnMut(Piece),
    ) -> u32 {
        let number = self.starts.partition_point(|&first| first <= start.get()) - 1;
        let layout = self.next_layouts.borrow().get(&(number as u32)).copied();
        layout.map_or(0, |layout| self.for_each_piece_of(&layout, start, blocks, &mut each))
    }

    fn for_each_piece_of(
        &self,
        file: &MappedFile,
        start: VolumeBlock,
        blocks: Blocks,
        each: &mut impl FnMut(Piece),
    ) -> u32 {
        let placement = self.placement.borrow();
        let mut pieces = 0;
        self.for_each_extent_of(file, start, blocks, |extent, begin, length| {
            let place = placement.extent(extent).place;
            let start = place.start + Blocks::new(begin);
            each(Piece { arm: place.disk, start, blocks: Blocks::new(length) });
            pieces += 1;
        });
        pieces
    }

    /// The pieces of a request on second places.
    fn for_each_second_piece(
        &self,
        start: VolumeBlock,
        blocks: Blocks,
        mut each: impl FnMut(Piece),
    ) -> u32 {
        let second = self.second.borrow();
        let mut pieces = 0;
        self.for_each_extent(start, blocks, |extent, begin, length| {
            if let Some(place) = second.get(&extent) {
                let start = place.start + Blocks::new(begin);
                each(Piece { arm: place.disk, start, blocks: Blocks::new(length) });
                pieces += 1;
            }
        });
        pieces
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use crate::placement::Extent;
    use freewheel_units::Prng;

    use super::*;

    /// Files of random sizes on disks that are filled one extent after the other.
    fn random_map(prng: &mut Prng, disks: u32) -> FileMap {
        let mut placement = Placement::new(disks, Blocks::new(1 << 20));
        let (mut files, mut next) = (Vec::new(), 0);
        for number in 0..20 {
            let blocks = Blocks::new(1 + prng.below(100));
            let unit = Blocks::new(1 + prng.below(30));
            let width = blocks.get().div_ceil(unit.get()).min(u64::from(disks)) as u32;
            let file = MappedFile { blocks, unit, first_extent: ExtentId(next), width };
            let first_disk = prng.below(u64::from(disks)) as u32;
            for extent in 0..width {
                let size = file.extent_blocks(extent);
                let place = placement.reserve((first_disk + extent) % disks, size).unwrap();
                let extent = Extent { file: FileId(number), blocks: size, place };
                placement.insert(ExtentId(next), extent);
                next += 1;
            }
            files.push(file);
        }
        FileMap::new(files, placement, Blocks::new(1 << 20))
    }

    /// The place of one block: its run goes round the extents.
    fn place(map: &FileMap, file: &MappedFile, block: u64) -> (u32, u64) {
        let (run, within) = (block / file.unit.get(), block % file.unit.get());
        let extent = ExtentId(file.first_extent.0 + (run % u64::from(file.width)) as u32);
        let place = map.placement().borrow().extent(extent).place;
        let row = run / u64::from(file.width);
        (place.disk, place.start.get() + row * file.unit.get() + within)
    }

    #[test]
    fn pieces_hold_exactly_requested_blocks() {
        let prng = &mut Prng::new(1, "file map");
        for _ in 0..200 {
            let disks = 1 + prng.below(6) as u32;
            let map = random_map(prng, disks);
            for (number, file) in map.files().iter().enumerate() {
                let sizes = (0..file.width).map(|extent| file.extent_blocks(extent).get());
                assert_eq!(sizes.sum::<u64>(), file.blocks.get());
                let from = prng.below(file.blocks.get());
                let blocks = 1 + prng.below(file.blocks.get() - from);
                let mut found = BTreeSet::new();
                let mut of_extents = vec![None; file.width as usize];
                map.for_each_extent(
                    map.address(number as u32, from),
                    Blocks::new(blocks),
                    |extent, begin, length| {
                        of_extents[(extent.0 - file.first_extent.0) as usize] =
                            Some((begin, length));
                    },
                );
                for (at, part) in of_extents.iter().enumerate() {
                    let extent = ExtentId(file.first_extent.0 + at as u32);
                    let start = map.address(number as u32, from);
                    assert_eq!(map.part_on_extent(start, Blocks::new(blocks), extent), *part);
                }
                let (mut arms, mut length) = (BTreeSet::new(), 0);
                let start = map.address(number as u32, from);
                let count = map.for_each_piece(start, Blocks::new(blocks), |piece| {
                    let first = piece.start.get();
                    found.extend((first..first + piece.blocks.get()).map(|at| (piece.arm, at)));
                    length += piece.blocks.get();
                    arms.insert(piece.arm);
                });
                let wanted: BTreeSet<_> =
                    (from..from + blocks).map(|block| place(&map, file, block)).collect();
                assert_eq!((found, length, count), (wanted, blocks, arms.len() as u32));
            }
        }
    }

    #[test]
    fn raw_address_reaches_its_block() {
        let map = random_map(&mut Prng::new(2, "file map"), 3);
        let (address, mut pieces) = (map.raw_address(2, Lbn::new(77)), Vec::new());
        map.for_each_piece(address, Blocks::new(5), |piece| pieces.push(piece));
        let piece = Piece { arm: 2, start: Lbn::new(77), blocks: Blocks::new(5) };
        assert_eq!(pieces, [piece]);
    }
}
