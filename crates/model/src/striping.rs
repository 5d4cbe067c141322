//! One stripe unit for a whole volume: its blocks spread over drives, and over the arms of one drive.

use freewheel_units::{Blocks, Lbn, VolumeBlock};

use crate::drive::Divisor;

/// Map of a volume's blocks to drives by striping (RAID-0, Patterson et al. 1988), and within a drive on
/// its first arm up to that arm's end, then on the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Striping {
    drives: u32,
    arms: u32,
    arm_blocks: u64,
    stripe: Divisor,
    across: Divisor,
    blocks: u64,
}

/// The part of a request that lies on one arm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// The arm, counted through all drives.
    pub arm: u32,
    /// First block on that arm.
    pub start: Lbn,
    /// Number of blocks.
    pub blocks: Blocks,
}

/// The part of a request that lies on one drive, whichever of its arms serve it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct DriveRange {
    pub drive: u32,
    /// First block on that drive.
    pub start: Lbn,
    pub blocks: Blocks,
}

impl Striping {
    /// One drive with one arm.
    pub fn single(blocks: Blocks) -> Self {
        Self::new(1, 1, blocks, blocks)
    }

    /// `drives` drives with `arms` arms of `arm_blocks` blocks each, and stripe units of `stripe`
    /// blocks; of each drive only whole stripe units are used, all of it when there is one drive.
    /// Panics when a number is zero, or when not even one stripe unit fits on a drive.
    pub fn new(drives: u32, arms: u32, arm_blocks: Blocks, stripe: Blocks) -> Self {
        assert!(drives > 0 && arms > 0, "an array of no drives or drives of no arms");
        let on_drive = arm_blocks.get() * u64::from(arms);
        let stripe = if drives == 1 { on_drive } else { stripe.get() };
        assert!((1..=on_drive).contains(&stripe), "a stripe unit of {stripe} blocks");
        Self {
            drives,
            arms,
            arm_blocks: arm_blocks.get(),
            stripe: Divisor::new(stripe),
            across: Divisor::new(u64::from(drives)),
            blocks: on_drive / stripe * stripe * u64::from(drives),
        }
    }

    /// Capacity of the volume.
    pub fn blocks(&self) -> Blocks {
        Blocks::new(self.blocks)
    }

    /// Number of drives.
    pub fn drives(&self) -> u32 {
        self.drives
    }

    /// Arms of all drives together.
    pub fn arms(&self) -> u32 {
        self.drives * self.arms
    }

    /// Shows `each` the pieces of the blocks from `start` on, one an arm at most, and says how many
    /// there are. Panics when they are none or reach beyond the capacity.
    #[inline]
    pub fn for_each_piece(
        &self,
        start: VolumeBlock,
        blocks: Blocks,
        mut each: impl FnMut(Piece),
    ) -> u32 {
        if self.drives == 1 && self.arms == 1 {
            self.assert_within(start, blocks);
            each(Piece { arm: 0, start: Lbn::new(start.get()), blocks });
            return 1;
        }
        let mut pieces = 0;
        self.for_each_drive(start, blocks, |range| {
            let DriveRange { drive, start, blocks } = range;
            pieces += self.split_by_arm(drive, start.get(), blocks.get(), &mut each);
        });
        pieces
    }

    /// Shows `each` the ranges of the blocks from `start` on, one a drive at most. Panics when they
    /// are none or reach beyond the capacity.
    #[inline]
    pub fn for_each_drive(
        &self,
        start: VolumeBlock,
        blocks: Blocks,
        mut each: impl FnMut(DriveRange),
    ) {
        let end = self.assert_within(start, blocks);
        let (first_unit, offset) = self.stripe.divide(start.get());
        if offset + blocks.get() <= self.stripe.get() {
            let (row, drive) = self.across.divide(first_unit);
            let start = Lbn::new(row * self.stripe.get() + offset);
            return each(DriveRange { drive: drive as u32, start, blocks });
        }
        self.split_by_drive(start.get(), end, first_unit, &mut each);
    }

    /// The end of a request that lies on the volume.
    #[inline]
    fn assert_within(&self, start: VolumeBlock, blocks: Blocks) -> u64 {
        let end = start.get() + blocks.get();
        assert!(blocks.get() > 0 && end <= self.blocks, "{start} + {blocks} of {}", self.blocks);
        end
    }

    /// The units of a request on one drive follow each other there, so each drive has one range.
    fn split_by_drive(
        &self,
        start: u64,
        end: u64,
        first_unit: u64,
        each: &mut impl FnMut(DriveRange),
    ) {
        let stripe = self.stripe.get();
        let last_unit = self.stripe.divide(end - 1).0;
        let units = last_unit - first_unit + 1;
        for unit in first_unit..first_unit + units.min(u64::from(self.drives)) {
            let (row, drive) = self.across.divide(unit);
            let rows = (last_unit - unit) / u64::from(self.drives);
            let from = if unit == first_unit { start - unit * stripe } else { 0 };
            let final_unit = unit + rows * u64::from(self.drives);
            let to = if final_unit == last_unit { end - last_unit * stripe } else { stripe };
            let start = Lbn::new(row * stripe + from);
            let blocks = Blocks::new(rows * stripe + to - from);
            each(DriveRange { drive: drive as u32, start, blocks });
        }
    }

    #[inline]
    fn split_by_arm(
        &self,
        drive: u32,
        mut start: u64,
        mut blocks: u64,
        each: &mut impl FnMut(Piece),
    ) -> u32 {
        let mut arm = 0;
        while start >= self.arm_blocks {
            start -= self.arm_blocks;
            arm += 1;
        }
        let mut pieces = 0;
        while blocks > 0 {
            let length = blocks.min(self.arm_blocks - start);
            let number = drive * self.arms + arm + pieces;
            each(Piece { arm: number, start: Lbn::new(start), blocks: Blocks::new(length) });
            blocks -= length;
            start = 0;
            pieces += 1;
        }
        pieces
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The slow way: drive, arm and block of one block of the volume.
    fn place(striping: &Striping, stripe: u64, block: u64) -> (u32, u64) {
        let (unit, offset) = (block / stripe, block % stripe);
        let drives = u64::from(striping.drives);
        let (drive, on_drive) = (unit % drives, unit / drives * stripe + offset);
        let (arm, on_arm) = (on_drive / striping.arm_blocks, on_drive % striping.arm_blocks);
        ((drive * u64::from(striping.arms) + arm) as u32, on_arm)
    }

    proptest! {
        #[test]
        fn striped_request_is_one_range_per_drive(
            drives in 1u32..6, arms in 1u32..4, stripe in 1u64..20, start in 0u64..100,
            length in 1u64..100
        ) {
            let striping = Striping::new(drives, arms, Blocks::new(300), Blocks::new(stripe));
            let mut ranges = Vec::new();
            striping.for_each_drive(VolumeBlock::new(start), Blocks::new(length), |r| ranges.push(r));
            let unit = striping.stripe.get();
            for drive in 0..drives {
                let on_drive = |block| {
                    let (arm, on_arm) = place(&striping, unit, block);
                    let first = u64::from(arm % arms) * striping.arm_blocks;
                    (arm / arms == drive).then_some(first + on_arm)
                };
                let mut expected: Vec<u64> =
                    (start..start + length).filter_map(on_drive).collect();
                expected.sort_unstable();
                let of_drive = ranges.iter().filter(|range| range.drive == drive);
                let found: Vec<u64> =
                    of_drive.flat_map(|r| r.start.get()..(r.start + r.blocks).get()).collect();
                prop_assert_eq!(found, expected);
            }
            prop_assert!(ranges.len() <= drives as usize);
        }

        #[test]
        fn striped_pieces_match_block_by_block(
            drives in 1u32..6, arms in 1u32..4, arm_blocks in 1u64..50, stripe in 1u64..20,
            from: prop::sample::Index, length in 1u64..120
        ) {
            prop_assume!(stripe <= arm_blocks * u64::from(arms));
            let striping = Striping::new(drives, arms, Blocks::new(arm_blocks), Blocks::new(stripe));
            let stripe = striping.stripe.get();
            let capacity = striping.blocks().get();
            let start = from.index(capacity as usize) as u64;
            let length = length.min(capacity - start);
            let mut expected: Vec<(u32, u64)> =
                (start..start + length).map(|block| place(&striping, stripe, block)).collect();
            expected.sort_unstable();
            let (mut found, mut arms_seen) = (Vec::new(), Vec::new());
            let pieces = striping.for_each_piece(VolumeBlock::new(start), Blocks::new(length), |piece| {
                arms_seen.push(piece.arm);
                let first = piece.start.get();
                found.extend((first..first + piece.blocks.get()).map(|block| (piece.arm, block)));
            });
            found.sort_unstable();
            prop_assert_eq!(found, expected);
            prop_assert_eq!(pieces as usize, arms_seen.len());
            arms_seen.sort_unstable();
            arms_seen.dedup();
            prop_assert_eq!(pieces as usize, arms_seen.len(), "one piece an arm");
        }
    }
}
