//! Blocks in consecutive sectors of a track.

/// Number of a track: cylinder times surfaces plus surface.
pub(crate) type TrackId = u32;

/// Consecutive blocks in consecutive sectors of one track, as long as there are such.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TrackExtent {
    /// Number among all extents of the drive, below `Tracks::stretches`.
    pub id: u32,
    pub first: u64,
    /// Sector of the first block.
    pub sector: u32,
    pub blocks: u32,
}

impl TrackExtent {
    pub const NONE: Self = Self { id: 0, first: 0, sector: 0, blocks: 0 };

    /// Behind its last block.
    #[inline]
    pub fn end(&self) -> u64 {
        self.first + u64::from(self.blocks)
    }
}
