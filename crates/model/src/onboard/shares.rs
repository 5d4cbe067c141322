//! What writing back took of the head for each write that the buffer had taken.

use std::collections::BTreeMap;

use freewheel_units::SimDuration;

/// Writes in the buffer, and what it took to write them back. A destage brings the data of all writes
/// in its segment, so each has its part of the head's time by its blocks.
#[derive(Debug, Clone, Default)]
pub(super) struct DestageShares {
    /// By number of the destage: sequences and blocks of the writes that it will bring.
    waiting: BTreeMap<u64, Vec<(u64, u32)>>,
    /// By sequence.
    known: BTreeMap<u64, SimDuration>,
}

impl DestageShares {
    /// The data of a write are in the segment of this destage.
    pub fn joined(&mut self, destage: u64, sequence: u64, blocks: u32) {
        self.waiting.entry(destage).or_default().push((sequence, blocks));
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
            self.known.insert(sequence, SimDuration::from_ns(share));
        }
    }

    /// The share of a write that is on its way to the media, once.
    pub fn take(&mut self, sequence: u64) -> Option<SimDuration> {
        self.known.remove(&sequence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_share_what_their_destage_took_by_their_blocks_and_nothing_is_lost() {
        let mut shares = DestageShares::default();
        for (destage, sequence, blocks) in [(1, 10, 8), (2, 11, 5), (1, 12, 16), (1, 13, 8)] {
            shares.joined(destage, sequence, blocks);
        }
        shares.destaged(1, SimDuration::from_ns(1001));
        let mut take = |sequence| shares.take(sequence).map(SimDuration::ns);
        assert_eq!([10, 12, 13].map(&mut take), [Some(250), Some(500), Some(251)]);
        assert_eq!([10, 11].map(&mut take), [None, None], "once, and not before it is destaged");
        shares.destaged(2, SimDuration::from_ns(7));
        assert_eq!(shares.take(11), Some(SimDuration::from_ns(7)));
    }
}
