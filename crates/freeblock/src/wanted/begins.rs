//! On which cylinders blocks that come in pieces are begun.
//!
//! What has been read of such a block is held until the rest of it has come. Where far more of them
//! are wanted than there is memory for, it is full before long, and from then on nothing but what
//! completes a block can be taken of them. The bounds of the index must not go on counting what
//! cannot be taken, as decisions then look at many times as many cylinders; nor can what is left out
//! be put in again everywhere with every block that is complete. So cylinders are opened one after
//! the other, each with a decision, while there is memory; when it is full all are closed; and
//! once a part of it is free again it goes on with the next.

use std::ops::Range;

use super::super::tracks::TrackId;
use super::Wanted;

/// So many times the memory may be wanted in pieces without being rationed: when the pieces of
/// blocks come in random order at most half of these are held at once, and that for a while only.
/// Then all is begun everywhere, and what there is no memory for is left out of a plan.
const ENOUGH: u64 = 4;

/// When this part of the memory is free again, more is begun.
const AGAIN: u64 = 8;

/// Which cylinders are open.
#[derive(Debug, Clone)]
pub(super) struct Begins {
    cylinders: u32,
    /// The one that is opened next.
    next: u32,
    /// How many are closed: those from the next one on.
    closed: u32,
    is_opening: bool,
    /// One was opened, or all were closed, since the last decision.
    has_moved: bool,
    /// Far more is wanted than there is memory for.
    is_rationed: bool,
    /// There is no memory for another block.
    is_full: bool,
}

/// What may be begun from now on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ration {
    /// As before.
    Same,
    /// Nothing: these cylinders are closed.
    Closed([Range<u32>; 2]),
    /// On this cylinder as well.
    Opened(u32),
}

impl Begins {
    /// All are open.
    pub fn new(cylinders: u32) -> Self {
        Self {
            cylinders,
            next: 0,
            closed: 0,
            is_opening: false,
            has_moved: false,
            is_rationed: false,
            is_full: false,
        }
    }

    /// Whether blocks are begun on a cylinder.
    #[inline]
    pub fn is_open(&self, cylinder: u32) -> bool {
        let round = if cylinder < self.next { self.cylinders } else { 0 };
        cylinder + round - self.next >= self.closed
    }

    /// Closes all; those that were open.
    fn close(&mut self) -> [Range<u32>; 2] {
        let all = self.cylinders;
        let open = all - self.closed;
        let ranges = match open.checked_sub(self.next) {
            // From the last ones around to the next.
            Some(last) => [0..self.next, all - last..all],
            None => [self.next - open..self.next, 0..0],
        };
        self.closed = all;
        self.is_opening = false;
        self.has_moved = true;
        ranges
    }

    fn open(&mut self) -> u32 {
        let cylinder = self.next;
        self.closed -= 1;
        self.next = (cylinder + 1) % self.cylinders;
        self.is_opening = self.closed > 0;
        self.has_moved = true;
        cylinder
    }
}

impl Wanted {
    /// Asks for the memory of what is wanted in pieces on the tracks of a cylinder, of which this is the
    /// first.
    #[inline]
    pub fn prefetch(&self, track: TrackId) {
        for layer in &self.layers {
            layer.pieces.prefetch(2 * u64::from(track));
        }
    }

    /// Whether blocks that come in pieces are begun in gaps that reach a cylinder.
    #[inline]
    pub fn begins_on(&self, cylinder: u32) -> bool {
        self.begins.is_open(cylinder)
    }

    /// Whether there is memory for blocks that lie where none are begun, by the last ration.
    pub fn has_room_elsewhere(&self) -> bool {
        self.begins.closed > 0 && !self.begins.is_full
    }

    /// Whether far more blocks that come in pieces are wanted than there is memory for.
    pub fn is_rationed(&self) -> bool {
        self.in_pieces().0 > ENOUGH * self.held_max
    }

    /// Memory for all wanted blocks that come in pieces, and for the largest, in blocks of 512 B.
    fn in_pieces(&self) -> (u64, u64) {
        let layers = self.layers.iter().filter(|layer| layer.in_pieces > 0);
        layers.fold((0, 0), |(all, most), layer| {
            let block = layer.block_held();
            (all + layer.in_pieces * block, block.max(most))
        })
    }

    /// Says anew where blocks are begun, by what is wanted and how much memory is left. Until the next
    /// [`Self::decided`] no more than one cylinder is opened, however often it is asked for.
    pub fn ration(&mut self) -> Ration {
        let (all, most) = self.in_pieces();
        let room = self.room();
        let (is_rationed, is_full) = (all > ENOUGH * self.held_max, most > room);
        let begins = &mut self.begins;
        let closes = is_rationed && (is_full || !begins.is_rationed);
        (begins.is_rationed, begins.is_full) = (is_rationed, is_full);
        if closes && begins.closed < begins.cylinders {
            return Ration::Closed(begins.close());
        }
        let goes_on = begins.is_opening || room >= self.held_max / AGAIN;
        if begins.closed > 0 && !begins.has_moved && (!is_rationed || !is_full && goes_on) {
            return Ration::Opened(begins.open());
        }
        Ration::Same
    }

    /// A decision was made: another cylinder may be opened.
    pub fn decided(&mut self) {
        self.begins.has_moved = false;
    }

    /// Takes the cylinders on which more may be taken than when their bounds were worked out.
    pub fn raised(&mut self) -> std::vec::Drain<'_, u32> {
        self.raised.drain(..)
    }
}
