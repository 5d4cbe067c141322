//! The track that offers most in a gap, exactly.
//!
//! The paper's rule (osdi00 section 4): over all tracks, how many wanted blocks could be accessed in
//! this gap? Its search looks at tracks in ascending order of extra seek and leaves out those that
//! cannot beat the best. Ours descends a tree of bounds ([`Index`]) best first, so that it looks at
//! few tracks however fragmented the wanted blocks are, and is as exact.

use std::collections::BinaryHeap;

use freewheel_units::Op;

use super::index::{Index, Node};
use super::reach::Reach;
use super::tracks::{TrackId, Tracks};
use super::wanted::Wanted;
use crate::drive::Position;

/// The best track.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Best {
    pub track: TrackId,
    /// Worth of what can be had there.
    pub value: u32,
}

/// What a search has to look at.
#[derive(Clone, Copy)]
pub(super) struct Field<'a> {
    pub tracks: &'a Tracks,
    pub wanted: &'a Wanted,
    pub index: &'a Index,
}

/// Nodes that still might hold something better, with their bounds.
#[derive(Debug, Clone, Default)]
pub(super) struct Frontier {
    heap: BinaryHeap<(u64, Node)>,
}

impl Frontier {
    /// Shows cylinders that might offer more than `best`, best bound first, until none is left or
    /// `budget` nodes have been looked at. `visit` gets a cylinder and returns the best known; a
    /// bound is its worth times the price of the node. The nodes looked at, and whether all that had
    /// to be were.
    pub fn search(
        &mut self,
        field: &Field<'_>,
        reach: &Reach<'_>,
        price: impl Fn(Node) -> u64,
        mut best: u64,
        budget: u64,
        mut visit: impl FnMut(u32, u64) -> u64,
    ) -> Looked {
        let Field { tracks, wanted, index } = field;
        let weight = u64::from(wanted.weight());
        let bound = |node: Node| {
            let cylinders = index.cylinders(node);
            let (arc, length) = reach.arc(cylinders)?;
            // Of what is wanted, and of what can pass in the time, the lesser.
            let passing = reach.sectors_in(length, tracks.sectors_max(cylinders)) * weight;
            Some(u64::from(index.bound(node, arc)).min(passing) * price(node))
        };
        self.heap.clear();
        let mut nodes = 1;
        if let Some(bound) = bound(index.root()).filter(|&bound| bound > best) {
            self.heap.push((bound, index.root()));
        }
        while let Some((bound_here, node)) = self.heap.pop() {
            if bound_here <= best {
                break;
            }
            if nodes >= budget {
                return Looked { nodes, exhausted: true };
            }
            nodes += 1;
            if node.level == 0 {
                best = best.max(visit(node.number, best));
                continue;
            }
            for child in index.children(node) {
                if let Some(bound) = bound(child).filter(|&bound| bound > best) {
                    self.heap.push((bound, child));
                }
            }
        }
        Looked { nodes, exhausted: false }
    }
}

/// How much a search has looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Looked {
    pub nodes: u64,
    /// Whether it stopped for its budget: there may be something better.
    pub exhausted: bool,
}

/// Worth of what can be had on one track in the gap when no other is visited: reads or writes, the
/// more valuable, since a sector that passes can be either.
#[inline]
pub(super) fn value_on(field: &Field<'_>, reach: &Reach<'_>, at: Position) -> u32 {
    let Field { tracks, wanted, .. } = field;
    let track = tracks.track(at.cylinder, at.surface);
    let Some(place) = tracks.place(track) else { return 0 };
    let mut value = 0;
    for op in [Op::Read, Op::Write] {
        if wanted.has(op) {
            let stay = reach.stay(at, op);
            if stay.length() > 0 {
                let passing = tracks.passing(&place, reach.time(stay.from), stay.length());
                value = wanted.value(tracks, track, &place, passing, op).max(value);
            }
        }
    }
    value
}

/// The best track of all: the source's, the destination's, or a third. None when nothing can be had.
pub(super) fn best_track(
    field: &Field<'_>,
    reach: &Reach<'_>,
    frontier: &mut Frontier,
    budget: u64,
) -> (Option<Best>, Looked) {
    let tracks = field.tracks;
    let mut best: Option<Best> = None;
    let mut consider = |at: Position| {
        let value = value_on(field, reach, at);
        if value > best.map_or(0, |best| best.value) {
            best = Some(Best { track: tracks.track(at.cylinder, at.surface), value });
        }
        u64::from(best.map_or(0, |best| best.value))
    };
    consider(reach.gap.from);
    let known = consider(reach.gap.to);
    let looked = frontier.search(
        field,
        reach,
        |_| 1,
        known,
        budget,
        |cylinder, _| {
            let mut known = 0;
            for surface in 0..tracks.surfaces() {
                known = consider(Position { cylinder, surface });
            }
            known
        },
    );
    (best, looked)
}
