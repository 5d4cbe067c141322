//! What a search looks at.

use super::index::Index;
use super::tracks::Tracks;
use super::wanted::{Ceiling, Wanted};

/// What a search has to look at.
pub(crate) struct Field<'a> {
    pub tracks: &'a Tracks,
    pub wanted: &'a Wanted,
    pub index: &'a mut Index,
}

impl Field<'_> {
    /// What sectors that pass can be worth at most.
    pub fn ceiling(&self) -> Ceiling {
        self.wanted.ceiling(self.tracks.sectors_max(self.tracks.all_cylinders()))
    }
}
