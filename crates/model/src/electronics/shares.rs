//! Head time of writing back, for each write that the buffer had taken.

use std::collections::{BTreeMap, VecDeque};

use freewheel_units::SimDuration;

/// Writes in the buffer, and the head time to write them back. A destage brings the data of all writes
/// in its segment, so each has its part of the head's time by its blocks.
#[derive(Debug, Clone, Default)]
pub(super) struct DestageShares {
    /// By number of the destage: sequences and blocks of the writes that it will bring.
    waiting: BTreeMap<u64, Vec<(u64, u32)>>,
    /// Sequences and shares of those that have been on their way since they were last asked for, in
    /// that order.
    known: VecDeque<(u64, SimDuration)>,
}

impl DestageShares {
    /// The data of a write are in the segment of this destage.
    pub fn joined(&mut self, destage: u64, sequence: u64, blocks: u32) {
        self.waiting.entry(destage).or_default().push((sequence, blocks));
    }

    /// Adds the share of this destage to that of another one, with which its blocks come.
    pub fn merged(&mut self, destage: u64, into: u64) {
        let writes = self.waiting.remove(&destage).unwrap_or_default();
        self.waiting.entry(into).or_default().extend(writes);
    }

    /// The destage has this much of the head, none of which is lost in shares.
    pub fn destaged(&mut self, destage: u64, head: SimDuration) {
        let writes = self.waiting.remove(&destage).unwrap_or_default();
        let mut blocks_left: u64 = writes.iter().map(|&(_, blocks)| u64::from(blocks)).sum();
        let mut left = head.ns();
        for (sequence, blocks) in writes {
            let share = u128::from(left) * u128::from(blocks) / u128::from(blocks_left);
            let share = share as u64;
            left -= share;
            blocks_left -= u64::from(blocks);
            self.known.push_back((sequence, SimDuration::from_ns(share)));
        }
    }

    /// The next write that is on its way to the media, and its share.
    pub fn take(&mut self) -> Option<(u64, SimDuration)> {
        self.known.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn destage_time_shared_by_blocks() {
        let mut shares = DestageShares::default();
        for (destage, sequence, blocks) in [(1, 10, 8), (2, 11, 5), (1, 12, 16), (1, 13, 8)] {
            shares.joined(destage, sequence, blocks);
        }
        let mut take = |destage, ns| {
            shares.destaged(destage, SimDuration::from_ns(ns));
            let taken = std::iter::from_fn(|| shares.take());
            taken.map(|(sequence, head)| (sequence, head.ns())).collect::<Vec<_>>()
        };
        assert_eq!(take(1, 1001), [(10, 250), (12, 500), (13, 251)]);
        assert_eq!(take(2, 7), [(11, 7)]);
        assert_eq!(take(2, 7), [], "each once");
    }
}
