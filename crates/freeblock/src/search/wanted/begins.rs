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

/// Memory for blocks that come in pieces, in blocks of 512 B.
#[derive(Debug, Clone, Copy)]
pub(super) struct HeldMemory {
    /// For all wanted blocks that come in pieces.
    pub needed: u64,
    /// For the largest one of them.
    pub largest: u64,
    /// Most that may be used.
    pub limit: u64,
    /// Not used now.
    pub room: u64,
}

impl HeldMemory {
    /// Whether far more is needed than there is.
    pub fn is_rationed(&self) -> bool {
        self.needed > ENOUGH * self.limit
    }

    /// Whether another block might not fit.
    fn is_full(&self) -> bool {
        self.largest > self.room
    }
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

    /// Whether memory is left for blocks on closed cylinders, by the last [`Self::ration`].
    pub fn has_room_elsewhere(&self) -> bool {
        self.closed > 0 && !self.is_full
    }

    /// Opens or closes cylinders; at most one is opened until the next [`Self::decided`].
    pub fn ration(&mut self, memory: &HeldMemory) -> Ration {
        let (is_rationed, is_full) = (memory.is_rationed(), memory.is_full());
        let closes = is_rationed && (is_full || !self.is_rationed);
        (self.is_rationed, self.is_full) = (is_rationed, is_full);
        if closes && self.closed < self.cylinders {
            return Ration::Closed(self.close());
        }
        let goes_on = self.is_opening || memory.room >= memory.limit / AGAIN;
        if self.closed > 0 && !self.has_moved && (!is_rationed || !is_full && goes_on) {
            return Ration::Opened(self.open());
        }
        Ration::Same
    }

    pub fn decided(&mut self) {
        self.has_moved = false;
    }
}
