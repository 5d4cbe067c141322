//! Writes that are on their way to the media, and which freeblock write must wait for them.

use std::collections::BTreeMap;

use freewheel_units::Lbn;

use super::grid::BlockRun;
use super::spec::TaskId;
use crate::foreground::PromotionId;

/// Source of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Writer {
    Foreground(u64),
    Promoted(PromotionId),
    /// A run of the last plan.
    Gap,
}

/// Writes on their way. Their data are final.
#[derive(Debug, Clone, Default)]
pub(super) struct PendingWrites {
    /// By first block and writer: the end of its blocks.
    ends: BTreeMap<(u64, Writer), u64>,
    /// The longest there has been, in blocks of 512 B.
    longest: u64,
}

impl PendingWrites {
    pub fn begin(&mut self, writer: Writer, (from, to): (u64, u64)) {
        self.longest = self.longest.max(to - from);
        self.ends.insert((from, writer), to);
    }

    pub fn end(&mut self, writer: Writer, from: u64) {
        self.ends.remove(&(from, writer));
    }

    /// Writes that touch `from..to`.
    pub fn overlapping(&self, (from, to): (u64, u64)) -> impl Iterator<Item = (u64, u64)> {
        let earliest = from.saturating_sub(self.longest);
        let near = self.ends.range((earliest, Writer::Foreground(0))..(to, Writer::Foreground(0)));
        near.map(|(&(start, _), &end)| (start, end)).filter(move |&(_, end)| end > from)
    }

    pub fn overlap(&self, range: (u64, u64)) -> bool {
        self.overlapping(range).next().is_some()
    }
}

/// A promoted write that is not done.
#[derive(Debug, Clone, Copy)]
pub(super) struct PromotedWrite {
    pub task: TaskId,
    pub part: usize,
    pub run: BlockRun,
    pub start: u64,
}

/// `from..to` of `blocks` from `start` on.
pub(super) fn bounds(start: Lbn, blocks: u32) -> (u64, u64) {
    (start.get(), start.get() + u64::from(blocks))
}
