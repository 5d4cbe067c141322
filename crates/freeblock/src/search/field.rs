//! Inputs of a search.

use super::index::Index;
use super::tracks::Tracks;
use super::wanted::{Ceiling, Wanted};

/// Places of tracks, wanted blocks, and bounds.
pub(crate) struct Field<'a> {
    pub tracks: &'a Tracks,
    pub wanted: &'a Wanted,
    pub index: &'a mut Index,
}

impl Field<'_> {
    /// A bound on the worth of sectors that pass on any track.
    pub fn ceiling(&self) -> Ceiling {
        self.wanted.ceiling(self.tracks.sectors_max(self.tracks.all_cylinders()))
    }
}
