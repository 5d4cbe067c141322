//! On which cylinders blocks that come in pieces are begun.
//!
//! **Problem.** Data of such a block are held until its last piece has come. Where far more of these blocks
//! are wanted than memory holds, memory fills up. From then on only pieces of held blocks can be taken. Bounds of the index must not count pieces that cannot be taken: decisions would look at many
//! times more cylinders. Nor can the index add all of them again with every block that is complete.
//!
//! So cylinders are *opened* one by one, one a decision, while memory lasts. When memory is full all are
//! closed; when an eighth of it is free again, the next cylinder opens.
//!
//! ```text
//!  cylinder   0 1 2 3 4 5 6 7     # closed, . open; memory for 60 blocks, 10 a cylinder
//!  next 0     # # # # # # # #     rationing begins
//!  next 6     . . . . . . # #     six decisions later: memory is full, and all close
//!  next 6     # # # # # # # #     until memory for 7 blocks is free again
//!  next 7     # # # # # # . #     then 6 opens, and 7, 0, 1, .. after it
//! ```

use std::ops::Range;

/// Multiple of the memory up to which wanted pieces are not rationed. With pieces in random order at most
/// half of the blocks are held at once, and only for a while. Blocks are then begun everywhere, and a plan
/// leaves out pieces without memory.
const ENOUGH: u64 = 4;

/// Part of the memory that must be free before more is begun: one in this number.
const AGAIN: u64 = 8;

/// Set of open cylinders.
#[derive(Debug, Clone)]
pub(super) struct Begins {
    cylinders: u32,
    /// The cylinder to open next.
    next: u32,
    /// Number of closed cylinders: those from the next one on.
    closed: u32,
    is_opening: bool,
    /// A cylinder was opened, or all were closed, since the last decision.
    has_moved: bool,
    /// Pieces need far more than the memory.
    is_rationed: bool,
    /// Memory might not hold another block.
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
    /// True if far more is needed than there is.
    pub fn is_rationed(&self) -> bool {
        self.needed > ENOUGH * self.limit
    }

    /// True if another block might not fit.
    fn is_full(&self) -> bool {
        self.largest > self.room
    }
}

/// Change of the open cylinders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ration {
    /// No change.
    Same,
    /// These cylinders were open and are closed now.
    Closed([Range<u32>; 2]),
    /// This cylinder is open as well.
    Opened(u32),
}

impl Begins {
    /// All cylinders are open.
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

    /// True if blocks are begun on a cylinder.
    #[inline]
    pub fn is_open(&self, cylinder: u32) -> bool {
        // Closed cylinders are those from `next` on, around the last one.
        let round = if cylinder < self.next { self.cylinders } else { 0 };
        cylinder + round - self.next >= self.closed
    }

    /// Closes all cylinders; returns those that were open.
    fn close(&mut self) -> [Range<u32>; 2] {
        let all = self.cylinders;
        // Open cylinders lie just below `next`, around the first one.
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

    /// True if memory is left for blocks on closed cylinders, by the last [`Self::ration`].
    pub fn has_room_elsewhere(&self) -> bool {
        self.closed > 0 && !self.is_full
    }

    /// Opens or closes cylinders; at most one is opened until the next [`Self::decided`].
    pub fn ration(&mut self, memory: &HeldMemory) -> Ration {
        let (is_rationed, is_full) = (memory.is_rationed(), memory.is_full());
        // Rationing begins with all closed, as bounds must not count pieces without memory.
        let closes = is_rationed && (is_full || !self.is_rationed);
        (self.is_rationed, self.is_full) = (is_rationed, is_full);
        if closes && self.closed < self.cylinders {
            return Ration::Closed(self.close());
        }
        // After memory was full an eighth must be free, or cylinders would open and close with every
        // block.
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
