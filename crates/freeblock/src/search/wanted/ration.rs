//! Cylinders on which blocks that come in pieces are begun, by the memory that is left.

use super::Wanted;
use super::begins::{HeldMemory, Ration};
use crate::search::track_extent::TrackId;

impl Wanted {
    /// Asks for the memory of what is wanted in pieces on the tracks of a cylinder, of which this is the
    /// first.
    #[inline]
    pub fn prefetch(&self, track: TrackId) {
        for layer in &self.layers {
            layer.pieces.prefetch(2 * u64::from(track));
        }
    }

    /// True if gaps that reach `cylinder` may begin blocks that come in pieces.
    #[inline]
    pub fn begins_on(&self, cylinder: u32) -> bool {
        self.begins.is_open(cylinder)
    }

    /// True if memory is left for blocks on closed cylinders, by the last [`Self::ration`].
    pub fn has_room_elsewhere(&self) -> bool {
        self.begins.has_room_elsewhere()
    }

    /// True if the wanted blocks that come in pieces need far more memory than there is.
    pub fn is_rationed(&self) -> bool {
        self.held_memory().is_rationed()
    }

    fn held_memory(&self) -> HeldMemory {
        let layers = self.layers.iter().filter(|layer| layer.in_pieces > 0);
        let of_all = layers.fold((0, 0), |(needed, largest), layer| {
            let block = layer.block_held();
            (needed + layer.in_pieces * block, block.max(largest))
        });
        let (needed, largest) = of_all;
        HeldMemory { needed, largest, limit: self.held_max, room: self.room() }
    }

    /// Opens or closes cylinders by what is wanted and how much memory is left. Until the next
    /// [`Self::decided`] at most one cylinder is opened, however often this is called.
    pub fn ration(&mut self) -> Ration {
        let memory = self.held_memory();
        self.begins.ration(&memory)
    }

    /// A decision was made: another cylinder may be opened.
    pub fn decided(&mut self) {
        self.begins.decided();
    }

    /// Takes the cylinders on which more may be taken than when their bounds were computed.
    pub fn raised(&mut self) -> std::vec::Drain<'_, u32> {
        self.raised.drain(..)
    }
}
