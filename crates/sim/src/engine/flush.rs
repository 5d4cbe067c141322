//! Flushes that are done.

use std::collections::VecDeque;

/// A flush is done when every write that arrived before it is.
#[derive(Default)]
pub(crate) struct FlushOrder {
    /// Writes by sequence, with whether they are done; the front one is not done.
    writes: VecDeque<(u64, bool)>,
    flushes: VecDeque<u64>,
}

impl FlushOrder {
    #[inline]
    pub(crate) fn write_arrived(&mut self, sequence: u64) {
        self.writes.push_back((sequence, false));
    }

    /// Marks a write as done. Returns whether a flush may now be ready.
    #[inline]
    pub(crate) fn write_done(&mut self, sequence: u64) -> bool {
        // Sequences rise, so a binary search finds the write.
        let at = self.writes.partition_point(|(other, _)| *other < sequence);
        self.writes[at].1 = true;
        // Only the oldest open write decides about flushes, so done writes leave from the front.
        while self.writes.front().is_some_and(|(_, done)| *done) {
            self.writes.pop_front();
        }
        !self.flushes.is_empty()
    }

    pub(crate) fn flush_arrived(&mut self, sequence: u64) {
        self.flushes.push_back(sequence);
    }

    /// The next flush for which every write before it is done.
    pub(crate) fn next_done(&mut self) -> Option<u64> {
        let oldest_write = self.writes.front().map_or(u64::MAX, |(sequence, _)| *sequence);
        self.flushes.front().filter(|sequence| **sequence < oldest_write)?;
        self.flushes.pop_front()
    }
}
