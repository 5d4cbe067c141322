//! Wanted blocks of one size, alignment and direction.

use freewheel_units::Op;

use crate::bitmap::Bitmap;
use crate::search::track_extent::TrackExtent;
use crate::search::tracks::Tracks;
use freewheel_model::drive::{Divisor, Position};

/// Properties that the blocks of a layer share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayerKey {
    /// Read or write.
    pub op: Op,
    /// Blocks of 512 B in one wanted block, at least one.
    pub size: u32,
    /// First block of 512 B of the first wanted block, below `size`.
    pub offset: u32,
    /// Worth of a wanted block in one's size, at least one.
    pub weight: u32,
}

/// Wanted blocks of one key.
#[derive(Debug, Clone)]
pub(crate) struct Layer {
    pub key: LayerKey,
    /// True if data of a block that comes in pieces are held until it is complete.
    pub(super) holds_pieces: bool,
    pub(super) size: Divisor,
    pub(super) wanted: Bitmap,
    /// Number of them that come in pieces.
    pub(super) in_pieces: u64,
    /// Two bits a stretch: whether the piece at its beginning, and the one at its end, is wanted.
    pub(super) pieces: Bitmap,
    /// Among the bits of `pieces`, those of blocks of which some pieces have been read and others are
    /// wanted.
    pub(super) pieces_of_held: Bitmap,
}

/// The piece of the block numbered `block` on a stretch.
#[derive(Debug, Clone, Copy)]
pub(super) struct BlockPiece {
    pub(super) block: u64,
    /// `from..to` in blocks of 512 B.
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) bit: u64,
}

impl Layer {
    pub(super) fn new(key: LayerKey, holds_pieces: bool, capacity: u64, stretches: u32) -> Self {
        assert!(key.size > 0 && key.offset < key.size && key.weight > 0, "{key:?}");
        let blocks = (capacity - u64::from(key.offset)) / u64::from(key.size);
        Self {
            key,
            holds_pieces,
            size: Divisor::new(key.size.into()),
            wanted: Bitmap::new(blocks),
            in_pieces: 0,
            pieces: Bitmap::new(2 * u64::from(stretches)),
            pieces_of_held: Bitmap::new(2 * u64::from(stretches)),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.wanted.is_empty()
    }

    /// Number of the first wanted-block boundary at or behind `at`, in blocks of 512 B.
    #[inline]
    pub(super) fn up(&self, at: u64) -> u64 {
        // One block more, so that no difference falls below zero.
        let (number, past) = self.size.divide(at + self.size.get() - u64::from(self.key.offset));
        number + u64::from(past > 0) - 1
    }

    /// Number of the last wanted-block boundary at or before `at`; zero before the first.
    #[inline]
    pub(super) fn down(&self, at: u64) -> u64 {
        self.size.divide(at.saturating_sub(self.key.offset.into())).0.min(self.wanted.bound())
    }

    /// First block of 512 B of a wanted block.
    #[inline]
    pub fn start(&self, block: u64) -> u64 {
        u64::from(self.key.offset) + block * self.size.get()
    }

    /// Wanted blocks that lie wholly in `from..to` of 512 B blocks: their numbers.
    #[inline]
    pub(super) fn whole(&self, from: u64, to: u64) -> (u64, u64) {
        let to = self.down(to);
        (self.up(from).min(to), to)
    }

    /// The pieces at the beginning and the end of a stretch. A block that covers the whole stretch
    /// is a piece at its beginning.
    #[inline]
    pub(super) fn pieces_of(&self, stretch: &TrackExtent) -> [Option<BlockPiece>; 2] {
        let (first, end) = (stretch.first, stretch.end());
        let bit = 2 * u64::from(stretch.id);
        // A block that begins before the extent, or begins with it and ends after it.
        let head = self.containing(first).filter(|&block| {
            let start = self.start(block);
            start < first || start + self.size.get() > end && start == first
        });
        // A block that ends after the extent, unless it is the same one.
        let tail = self
            .containing(end - 1)
            .filter(|&block| self.start(block) + self.size.get() > end && head != Some(block));
        let piece = |block: Option<u64>, bit| {
            block.map(|block| {
                let start = self.start(block);
                let (from, to) = (start.max(first), (start + self.size.get()).min(end));
                BlockPiece { block, from, to, bit }
            })
        };
        [piece(head, bit), piece(tail, bit + 1)]
    }

    /// Number of the block of the layer that contains a block of 512 B.
    #[inline]
    pub(super) fn containing(&self, at: u64) -> Option<u64> {
        let from_offset = at.checked_sub(self.key.offset.into())?;
        let block = self.size.divide(from_offset).0;
        (block < self.wanted.bound()).then_some(block)
    }

    /// Shows every piece of a block that comes in pieces, with its track; nothing of others.
    pub(super) fn for_each_piece(
        &self,
        tracks: &Tracks,
        block: u64,
        mut show: impl FnMut(Position, &BlockPiece),
    ) {
        let (mut at, end) = (self.start(block), self.start(block) + self.size.get());
        while at < end {
            let (on, stretch) = tracks.stretch_of(at);
            for piece in self.pieces_of(&stretch).into_iter().flatten() {
                if piece.block == block {
                    show(on, &piece);
                }
            }
            at = stretch.end();
        }
    }

    pub(super) fn comes_in_pieces(&self, tracks: &Tracks, block: u64) -> bool {
        let (_, stretch) = tracks.stretch_of(self.start(block));
        stretch.end() < self.start(block) + self.size.get()
    }

    /// True if some pieces of the wanted block that `piece` is of are held.
    #[inline]
    pub(super) fn is_held(&self, piece: &BlockPiece) -> bool {
        self.pieces_of_held.contains(piece.bit)
    }

    /// Pieces that may be taken where blocks are begun or not, if there is room.
    #[inline]
    pub(super) fn takeable(&self, begins: bool) -> &Bitmap {
        if begins || !self.holds_pieces { &self.pieces } else { &self.pieces_of_held }
    }

    /// Memory that a block takes of which pieces are missing, in blocks of 512 B.
    #[inline]
    pub(super) fn block_held(&self) -> u64 {
        if self.holds_pieces { self.size.get() } else { 0 }
    }

    /// Wants all pieces of a block, or none any longer. None is held then; whether one was.
    pub(super) fn set_pieces(&mut self, tracks: &Tracks, block: u64, wanted: bool) -> bool {
        let mut bits = Vec::new();
        self.for_each_piece(tracks, block, |_, piece| bits.push(piece.bit));
        let mut was_held = false;
        for bit in bits {
            if wanted {
                self.pieces.insert(bit, bit + 1);
            } else {
                self.pieces.remove(bit, bit + 1);
            }
            // A new or dropped block holds no data.
            was_held |= self.pieces_of_held.remove(bit, bit + 1) > 0;
        }
        was_held
    }

    /// Applies `visit` to every block of `from..to` that comes in pieces.
    pub(super) fn for_each_in_pieces(
        tracks: &Tracks,
        layer: &mut Self,
        from: u64,
        to: u64,
        mut visit: impl FnMut(&mut Self, u64),
    ) {
        let (mut at, end) = (layer.start(from), layer.start(to));
        while at < end {
            // Only the block across the end of an extent comes in pieces: one look an extent.
            let stretch_end = tracks.stretch_of(at).1.end();
            let block = layer.containing(stretch_end - 1);
            if let Some(block) = block.filter(|&block| block < to)
                && layer.start(block) + layer.size.get() > stretch_end
            {
                visit(layer, block);
                at = layer.start(block + 1);
            } else {
                at = stretch_end;
            }
        }
    }
}
