//! Partial reorganisation: making room for an extent where a disk has none in one piece.
//!
//! Both forms look at a window of neighbouring extents and holes. On a FRAG disk the extents of the window
//! slide together, so its holes become one. On a FULL disk the extents of the window leave for other disks.

use freewheel_units::{Blocks, Lbn};

use crate::placement::{ExtentId, Place, Placement};
use crate::space::SpaceStatus;

/// An extent on its way to make room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Relocation {
    /// The extent.
    pub extent: ExtentId,
    /// Blocks of the extent.
    pub blocks: Blocks,
    /// Place before the move.
    pub from: Place,
    /// Place after the move.
    pub to: Place,
}

/// Heat and room that one disk offers, in ascending order.
struct Piece {
    start: u64,
    blocks: u64,
    extent: Option<ExtentId>,
}

/// A window of pieces, and what its extents hold.
#[derive(Clone, Copy)]
struct Window {
    first: usize,
    /// The piece after the last one.
    end: usize,
    moved: u64,
}

/// Makes room for `blocks` blocks on `disk` if it must, and reserves it. Returns the place and the moves
/// that made room, in their order. None when no moves can.
///
/// Moves within the disk are free to go anywhere on it; moves to another disk go to the first of
/// `others` that is FREE and has no other extent of the file.
pub(super) fn make_room(
    placement: &mut Placement,
    disk: u32,
    blocks: Blocks,
    others: &[u32],
) -> Option<Room> {
    match placement.status(disk, blocks) {
        SpaceStatus::Free => {
            Some(Room { place: placement.reserve(disk, blocks)?, moves: Vec::new() })
        }
        SpaceStatus::Fragmented => slide(placement, disk, blocks),
        SpaceStatus::Full => evict(placement, disk, blocks, others),
    }
}

/// A reserved place, and what had to move for it.
pub(super) struct Room {
    pub place: Place,
    pub moves: Vec<Relocation>,
}

fn pieces(placement: &Placement, disk: u32) -> Vec<Piece> {
    let extents = placement.on_disk(disk).map(|id| {
        let extent = placement.extent(id);
        Piece { start: extent.place.start.get(), blocks: extent.blocks.get(), extent: Some(id) }
    });
    let holes = placement.space(disk).holes().map(|(start, blocks)| Piece {
        start: start.get(),
        blocks: blocks.get(),
        extent: None,
    });
    let mut pieces: Vec<Piece> = extents.chain(holes).collect();
    pieces.sort_by_key(|piece| piece.start);
    pieces
}

/// The window with the least blocks to move whose `counted` pieces hold `wanted` blocks. Windows end where
/// room is reserved for something else: neighbours must touch.
fn cheapest(pieces: &[Piece], wanted: u64, counts: impl Fn(&Piece) -> bool) -> Option<Window> {
    let mut best: Option<Window> = None;
    for first in 0..pieces.len() {
        let (mut gained, mut moved, mut next_start) = (0, 0, pieces[first].start);
        for (at, piece) in pieces.iter().enumerate().skip(first) {
            let costs = best.is_some_and(|best| moved >= best.moved);
            if piece.start != next_start || costs {
                break;
            }
            next_start += piece.blocks;
            gained += if counts(piece) { piece.blocks } else { 0 };
            moved += if piece.extent.is_some() { piece.blocks } else { 0 };
            let is_better = best.is_none_or(|best| moved < best.moved);
            if gained >= wanted && is_better {
                best = Some(Window { first, end: at + 1, moved });
            }
        }
    }
    best
}

/// Slides the extents of a window to its start.
fn slide(placement: &mut Placement, disk: u32, blocks: Blocks) -> Option<Room> {
    let pieces = pieces(placement, disk);
    let window = cheapest(&pieces, blocks.get(), |piece| piece.extent.is_none())?;
    let mut moves = Vec::new();
    let mut at = pieces[window.first].start;
    for piece in &pieces[window.first..window.end] {
        let Some(extent) = piece.extent else { continue };
        let (from, to) = (on(disk, piece.start), on(disk, at));
        if from != to {
            // The old place may overlap the new one, so its room is free before the new room is taken.
            let size = Blocks::new(piece.blocks);
            placement.release(from, size);
            placement.reserve_at(to, size);
            placement.relocate(extent, to);
            moves.push(Relocation { extent, blocks: size, from, to });
        }
        at += piece.blocks;
    }
    let place = on(disk, at);
    placement.reserve_at(place, blocks);
    Some(Room { place, moves })
}

/// Moves the extents of a window to other disks; all of them find room, or none moves.
fn evict(placement: &mut Placement, disk: u32, blocks: Blocks, others: &[u32]) -> Option<Room> {
    let pieces = pieces(placement, disk);
    let window = cheapest(&pieces, blocks.get(), |_| true)?;
    let mut moves: Vec<Relocation> = Vec::new();
    for extent in pieces[window.first..window.end].iter().filter_map(|piece| piece.extent) {
        let Some(made) = send_away(placement, extent, disk, others) else {
            moves.iter().rev().for_each(|made| take_back(placement, made));
            return None;
        };
        moves.push(made);
    }
    let place = on(disk, pieces[window.first].start);
    placement.reserve_at(place, blocks);
    Some(Room { place, moves })
}

fn send_away(
    placement: &mut Placement,
    extent: ExtentId,
    disk: u32,
    others: &[u32],
) -> Option<Relocation> {
    let known = *placement.extent(extent);
    let to = *others.iter().find(|other| {
        **other != disk
            && placement.status(**other, known.blocks) == SpaceStatus::Free
            && !placement.holds_file(**other, known.file)
    })?;
    let to = placement.reserve(to, known.blocks)?;
    let from = placement.relocate(extent, to);
    placement.release(from, known.blocks);
    Some(Relocation { extent, blocks: known.blocks, from, to })
}

fn take_back(placement: &mut Placement, made: &Relocation) {
    placement.reserve_at(made.from, made.blocks);
    let to = placement.relocate(made.extent, made.from);
    placement.release(to, made.blocks);
}

fn on(disk: u32, start: u64) -> Place {
    Place { disk, start: Lbn::new(start) }
}
