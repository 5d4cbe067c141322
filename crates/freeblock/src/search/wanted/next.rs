//! Next wanted blocks, in the order of the blocks.

use super::{Layer, PieceAllowance, Wanted};
use crate::search::track_extent::TrackExtent;
use crate::search::tracks::Tracks;

impl Wanted {
    /// The first wanted items of a layer at or behind `from` that follow on each other on one track:
    /// their blocks of 512 B, about `most` of them.
    pub fn next_on_track(
        &self,
        tracks: &Tracks,
        layer: usize,
        from: u64,
        most: u64,
    ) -> Option<(u64, u64)> {
        let layer = &self.layers[layer];
        let mut at = from;
        loop {
            let (block, _) = layer.wanted.next_run(layer.down(at), 1)?;
            at = at.max(layer.start(block));
            let (_, stretch) = tracks.stretch_of(at);
            let run = self.first_in(layer, &stretch, at, stretch.end(), most);
            if run.is_some() {
                return run;
            }
            at = stretch.end();
        }
    }

    /// The first wanted items in the part `from..to` of a stretch that follow on each other.
    fn first_in(
        &self,
        layer: &Layer,
        stretch: &TrackExtent,
        from: u64,
        to: u64,
        most: u64,
    ) -> Option<(u64, u64)> {
        let (first, end) = layer.whole(from, to);
        let blocks = most.div_ceil(layer.size.get());
        let whole = layer.wanted.next_run(first, blocks).filter(|run| run.0 < end);
        let mut run = whole.map(|run| (layer.start(run.0), layer.start(run.1.min(end))));
        // Closed cylinders are for gaps, of which there are more than memory is enough for.
        let allowance = &mut PieceAllowance { begins: true, room: self.room() };
        Self::pieces_in(layer, stretch, from, to, allowance, &mut |piece| {
            run = Some(match run {
                Some((start, end)) if piece.to == start => (piece.from, end),
                Some((start, end)) if end == piece.from => (start, piece.to),
                Some(run) if run.0 < piece.from => run,
                _ => (piece.from, piece.to),
            });
        });
        run
    }
}
