//! Blocks of a task and blocks of the drive.

use crate::bitmap::Bitmap;

/// Consecutive blocks of one size and alignment by their numbers: `.0..(.1)`.
pub(super) type BlockRun = (u64, u64);

/// Blocks of one size and alignment, numbered from the drive's beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BlockGrid {
    /// Blocks of 512 B in a block.
    pub size: u64,
    /// First block of 512 B of the first block.
    pub offset: u64,
    /// Number of blocks that fit on the drive.
    pub blocks: u64,
}

impl BlockGrid {
    pub fn new(size: u32, offset: u32, capacity: u64) -> Self {
        let (size, offset) = (u64::from(size), u64::from(offset));
        Self { size, offset, blocks: (capacity - offset) / size }
    }

    /// First block of 512 B of a block.
    pub fn start(&self, block: u64) -> u64 {
        self.offset + block * self.size
    }

    /// The run in blocks of 512 B.
    pub fn bounds(&self, run: BlockRun) -> (u64, u64) {
        (self.start(run.0), self.start(run.1))
    }

    /// Blocks of which any part lies in `from..to` of 512 B.
    pub fn touching(&self, (from, to): (u64, u64)) -> BlockRun {
        let end = to.saturating_sub(self.offset).div_ceil(self.size).min(self.blocks);
        ((from.saturating_sub(self.offset) / self.size).min(end), end)
    }

    /// Blocks that lie wholly in `from..to` of 512 B.
    pub fn inside(&self, (from, to): (u64, u64)) -> BlockRun {
        let end = (to.saturating_sub(self.offset) / self.size).min(self.blocks);
        (from.saturating_sub(self.offset).div_ceil(self.size).min(end), end)
    }
}

/// The longest runs of members of `set` in `run`.
pub(super) fn runs_in(set: &Bitmap, run: BlockRun) -> Vec<BlockRun> {
    runs_in_without(set, &[], run)
}

/// Members of a set in a run that are in none of `without`.
pub(super) fn runs_in_without(set: &Bitmap, without: &[&Bitmap], run: BlockRun) -> Vec<BlockRun> {
    let mut runs = Vec::new();
    set.for_each_run_without(without, run.0, run.1, |from, to| runs.push((from, to)));
    runs
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn grid_runs_match_walk(
            members in prop::collection::vec((0u64..9000, 1u64..300), 0..20),
            others in prop::collection::vec((0u64..9000, 1u64..300), 0..9),
            from in 0u64..9000,
            length in 0u64..9000,
        ) {
            let bound = 18_000;
            let (mut set, mut other) = (Bitmap::new(bound), Bitmap::new(bound));
            members.iter().for_each(|&(at, n)| { set.insert(at, at + n); });
            others.iter().for_each(|&(at, n)| { other.insert(at, at + n); });
            let mut expected: Vec<BlockRun> = Vec::new();
            for number in from..from + length {
                if set.contains(number) && !other.contains(number) {
                    match expected.last_mut().filter(|run| run.1 == number) {
                        Some(run) => run.1 += 1,
                        None => expected.push((number, number + 1)),
                    }
                }
            }
            prop_assert_eq!(runs_in_without(&set, &[&other], (from, from + length)), expected);
        }

        #[test]
        fn grid_blocks_match_walk(
            size in 1u32..20, offset in 0u32..20, capacity in 40u64..200,
            from in 0u64..220, length in 1u64..60,
        ) {
            prop_assume!(offset < size);
            let grid = BlockGrid::new(size, offset, capacity);
            let to = from + length;
            let blocks: Vec<(u64, u64, u64)> = (0..)
                .map(|n| (n, u64::from(offset) + n * u64::from(size)))
                .map(|(n, start)| (n, start, start + u64::from(size)))
                .take_while(|&(_, _, end)| end <= capacity)
                .collect();
            let numbers = |keep: &dyn Fn(u64, u64) -> bool| -> BTreeSet<u64> {
                blocks.iter().filter(|(_, start, end)| keep(*start, *end)).map(|b| b.0).collect()
            };
            let (first, end) = grid.touching((from, to));
            let touching = numbers(&|start, end| start < to && end > from);
            prop_assert_eq!((first..end).collect::<BTreeSet<_>>(), touching);
            let (first, end) = grid.inside((from, to));
            let inside = numbers(&|start, end| start >= from && end <= to);
            prop_assert_eq!((first..end).collect::<BTreeSet<_>>(), inside);
        }
    }
}
