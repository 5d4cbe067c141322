//! Maps in which parts move under clients' requests: extents between disks, or files between layouts.

use std::cell::RefCell;

use crate::placement::{ExtentId, Place, Placement};
use freewheel_units::{Blocks, VolumeBlock};

use super::map::FileMap;

/// A map whose parts are copied from place to place. Places may be those of disks, or stand for others.
pub trait MovedMap {
    /// The files, as clients' requests find them.
    fn file_map(&self) -> &FileMap;

    /// Places of the parts.
    fn places(&self) -> &RefCell<Placement>;

    /// The blocks of a request that lie on a part: the first one within it, and their number.
    fn part_on(&self, start: VolumeBlock, blocks: Blocks, part: ExtentId) -> Option<(u64, u64)>;

    /// Shows `each` part that the blocks of a request lie on, with the blocks on it.
    fn for_each_part(
        &self,
        start: VolumeBlock,
        blocks: Blocks,
        each: &mut dyn FnMut(ExtentId, u64, u64),
    );

    /// The address by which a copy reads or writes a block of a part.
    fn copy_address(&self, part: ExtentId, place: Place) -> VolumeBlock;

    /// A copy begins: clients' writes may go to both places.
    fn begin(&self, part: ExtentId, to: Place);

    /// The copy is the valid place from now on.
    fn relocated(&self, part: ExtentId);

    /// No request uses the old place any more.
    fn finished(&self, part: ExtentId);
}

/// Extents move between disks.
impl MovedMap for FileMap {
    fn file_map(&self) -> &FileMap {
        self
    }

    fn places(&self) -> &RefCell<Placement> {
        self.placement()
    }

    fn part_on(&self, start: VolumeBlock, blocks: Blocks, part: ExtentId) -> Option<(u64, u64)> {
        self.part_on_extent(start, blocks, part)
    }

    fn for_each_part(
        &self,
        start: VolumeBlock,
        blocks: Blocks,
        each: &mut dyn FnMut(ExtentId, u64, u64),
    ) {
        self.for_each_extent(start, blocks, each);
    }

    fn copy_address(&self, _: ExtentId, place: Place) -> VolumeBlock {
        self.raw_address(place.disk, place.start)
    }

    fn begin(&self, part: ExtentId, to: Place) {
        self.set_second(part, Some(to));
    }

    fn relocated(&self, part: ExtentId) {
        self.set_second(part, None);
    }

    fn finished(&self, _: ExtentId) {}
}
