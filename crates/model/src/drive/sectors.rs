//! Sectors of the media that hold several blocks, as those of 512e and 4Kn drives do.
//!
//! Goals: the head's work for a command of part sectors, in one place for the drive and for its
//! prediction. Non-goals: sectors that are in the drive's buffer already, which are read again before a
//! part of them is written.

use freewheel_units::{Blocks, Lbn, Op};

use super::access::{Access, Departure};
use super::mechanics::{Drive, Target};
use crate::spec::electronics::SectorFormat;

/// Number of blocks in a sector of the media. They lie in whole sectors from the drive's first block on,
/// and none on two tracks; [`Drive::build`] sees to that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sectors(u32);

impl Default for Sectors {
    fn default() -> Self {
        Self(1)
    }
}

impl SectorFormat {
    /// Sectors of the media.
    pub fn sectors(self) -> Sectors {
        Sectors::of(self.physical_blocks())
    }
}

/// Most accesses of a command: both its ends are read and written apart when tracks lie between them.
const ACCESSES_MAX: usize = 4;

/// The accesses of a command, in order.
#[derive(Debug, Clone, Copy)]
struct Accesses {
    each: [(Op, Lbn, Lbn); ACCESSES_MAX],
    count: usize,
}

impl Accesses {
    fn new(op: Op, start: Lbn, end: Lbn) -> Self {
        Self { each: [(op, start, end); ACCESSES_MAX], count: 1 }
    }

    fn then(mut self, op: Op, start: Lbn, end: Lbn) -> Self {
        self.each[self.count] = (op, start, end);
        self.count += 1;
        self
    }
}

impl Sectors {
    /// Sectors of `blocks` blocks, at least one.
    pub fn of(blocks: u32) -> Self {
        assert!(blocks > 0, "a sector holds something");
        Self(blocks)
    }

    /// Blocks of each.
    pub fn blocks(self) -> u32 {
        self.0
    }

    /// The sectors that the blocks `start..end` lie in, as blocks.
    #[inline]
    pub fn cover(self, start: Lbn, end: Lbn) -> (Lbn, Lbn) {
        let from = start.get() - self.rest(start);
        let rest = self.rest(end);
        let missing = if rest > 0 { u64::from(self.0) - rest } else { 0 };
        (Lbn::new(from), Lbn::new(end.get() + missing))
    }

    /// Blocks of the sector of `block` before it. Drives have powers of two, which need no division.
    #[inline]
    fn rest(self, block: Lbn) -> u64 {
        let blocks = u64::from(self.0);
        if blocks.is_power_of_two() { block.get() & (blocks - 1) } else { block.get() % blocks }
    }

    /// True if `blocks` blocks from `start` on are no whole sectors.
    #[inline]
    pub fn is_part(self, start: Lbn, blocks: u32) -> bool {
        let end = start + Blocks::new(u64::from(blocks));
        self.0 > 1 && self.rest(start) + self.rest(end) > 0
    }

    /// Part of a command that the head does first: all of it, unless it is no whole sectors.
    #[inline]
    pub fn first(self, drive: &Drive, target: &Target) -> Target {
        if !self.is_part(target.start, target.blocks) {
            return *target;
        }
        let (op, start, end) = self.accesses(drive, target).each[0];
        drive.target(start, Blocks::new(end.get() - start.get()), op)
    }

    /// Stage times of a command, each access of which `one` does: reads of whole sectors, and before a
    /// write of part sectors a read of them. When they come round again all of it is written.
    #[inline]
    pub fn access(
        self,
        drive: &Drive,
        departure: &Departure,
        target: &Target,
        mut one: impl FnMut(&Departure, &Target) -> Access,
    ) -> Access {
        if !self.is_part(target.start, target.blocks) {
            return one(departure, target);
        }
        let Accesses { each, count } = self.accesses(drive, target);
        let (mut at, mut all) = (*departure, Access::default());
        for &(op, start, end) in &each[..count] {
            let part = drive.target(start, Blocks::new(end.get() - start.get()), op);
            let access = one(&at, &part);
            at = at.after(&access, op);
            all.seek += access.seek;
            all.rotate += access.rotate;
            all.transfer += access.transfer;
            all.end = access.end;
        }
        all
    }

    #[cold]
    fn accesses(self, drive: &Drive, target: &Target) -> Accesses {
        let (start, blocks, op) = (target.start, Blocks::new(target.blocks.into()), target.op);
        let end = start + blocks;
        let (from, to) = self.cover(start, end);
        if op != Op::Write {
            return Accesses::new(op, from, to);
        }
        let sector = Blocks::new(self.0.into());
        // The first sector and the last one, where they are written in part.
        let first = (from < start).then(|| (from, from + sector));
        let last = (end < to).then(|| (Lbn::new(to.get() - sector.get()), to));
        let (read_from, _) = first.or(last).unwrap_or((from, to));
        let (_, read_to) = last.or(first).unwrap_or((from, to));
        if drive.target(from, Blocks::new(to.get() - from.get()), op).is_one_run() {
            return Accesses::new(Op::Read, read_from, read_to).then(op, from, to);
        }
        match (first, last) {
            (Some((_, behind)), Some((last, _))) if behind <= last => {
                Accesses::new(Op::Read, from, behind)
                    .then(op, from, last)
                    .then(Op::Read, last, to)
                    .then(op, last, to)
            }
            (None, Some((last, _))) if from < last => {
                Accesses::new(op, from, last).then(Op::Read, last, to).then(op, last, to)
            }
            _ => Accesses::new(Op::Read, read_from, read_to).then(op, from, to),
        }
    }
}
