//! Stage "map": from blocks of the volume to blocks of its arms.

use freewheel_model::striping::{Piece, Striping};

use super::zoned::VolumeZones;
use crate::completion::Refusal;
use crate::source::Request;
use freewheel_array::files::FileMap;

/// Layout of the blocks of a volume.
#[derive(Clone, Copy)]
pub(crate) enum VolumeLayout<'a> {
    /// One stripe unit for all of it.
    Striped(&'a Striping),
    /// Files, each with separate extents.
    Files(&'a FileMap),
}

impl VolumeLayout<'_> {
    /// Arms that the volume needs.
    pub(super) fn arms(self) -> u32 {
        match self {
            Self::Striped(striping) => striping.arms(),
            Self::Files(map) => map.disks(),
        }
    }
}

/// Map of a volume's blocks, and the writes that its host-managed drives refuse.
pub(super) struct VolumeMap<'a> {
    pub layout: VolumeLayout<'a>,
    pub zones: Option<VolumeZones>,
}

impl VolumeMap<'_> {
    /// Reason why a drive refuses this write, if one does.
    #[inline]
    pub fn refusal(&mut self, write: &Request) -> Option<Refusal> {
        self.zones.as_mut()?.write(write.start, write.blocks).err()
    }

    /// Resets the zones that lie wholly in this trim.
    #[inline]
    pub fn trim(&mut self, trim: &Request) {
        if let Some(zones) = &mut self.zones {
            zones.trim(trim.start, trim.blocks);
        }
    }

    /// Shows `each` the pieces of a request, one an arm at most, and returns their number.
    #[inline]
    pub fn for_each_piece(&self, request: &Request, each: impl FnMut(Piece)) -> u32 {
        match self.layout {
            VolumeLayout::Striped(striping) => {
                striping.for_each_piece(request.start, request.blocks, each)
            }
            VolumeLayout::Files(map) => map.for_each_piece(request.start, request.blocks, each),
        }
    }
}
