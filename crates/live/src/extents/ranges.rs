//! Ranges of bytes: merged, and widened to whole blocks.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Consecutive bytes of a drive.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
)]
#[serde(deny_unknown_fields)]
pub struct ByteRange {
    /// The first, from the beginning of the drive.
    pub offset_bytes: u64,
    /// Their number.
    pub length_bytes: u64,
}

impl ByteRange {
    /// `length_bytes` from `offset_bytes` on.
    pub const fn new(offset_bytes: u64, length_bytes: u64) -> Self {
        Self { offset_bytes, length_bytes }
    }

    /// The byte after the last, or the largest number there is.
    pub const fn end(self) -> u64 {
        self.offset_bytes.saturating_add(self.length_bytes)
    }
}

/// Ranges in ascending order and apart from each other.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Extents(Vec<ByteRange>);

impl Extents {
    /// Most extents of a task: a request of this length has less than 32 MiB.
    pub const MAX: usize = 500_000;

    /// The bytes of these ranges; those that touch or overlap are merged.
    pub fn new(mut ranges: Vec<ByteRange>) -> Self {
        ranges.retain(|range| range.length_bytes > 0);
        ranges.sort_unstable();
        ranges.dedup_by(|next, last| {
            let touches = next.offset_bytes <= last.end();
            if touches {
                last.length_bytes = last.end().max(next.end()) - last.offset_bytes;
            }
            touches
        });
        Self(ranges)
    }

    /// The ranges, in ascending order and apart from each other.
    pub fn ranges(&self) -> &[ByteRange] {
        &self.0
    }

    /// Number of bytes in the ranges.
    pub fn bytes(&self) -> u64 {
        self.0.iter().map(|range| range.length_bytes).sum()
    }

    /// Ranges moved away from the drive's beginning by `offset_bytes`.
    pub fn moved(&self, offset_bytes: u64) -> Self {
        let moved = self.0.iter().map(|range| {
            ByteRange::new(range.offset_bytes.saturating_add(offset_bytes), range.length_bytes)
        });
        Self::new(moved.collect())
    }

    /// All whole blocks that they touch. Blocks have `block_bytes` and are counted from the beginning of
    /// `within`, at whose end the last one is cut. The ranges are inside of `within`.
    pub fn widened(&self, block_bytes: u64, within: ByteRange) -> Self {
        let (first, size) = (within.offset_bytes, block_bytes);
        let whole = self.0.iter().map(|range| {
            let from = first + (range.offset_bytes - first) / size * size;
            let blocks = (range.end() - first).div_ceil(size);
            let to = blocks.saturating_mul(size).saturating_add(first);
            ByteRange::new(from, to.min(within.end()) - from)
        });
        Self::new(whole.collect())
    }

    /// True if one of them overlaps this range.
    pub fn overlap(&self, range: ByteRange) -> bool {
        let next = self.0.partition_point(|own| own.end() <= range.offset_bytes);
        self.0.get(next).is_some_and(|own| own.offset_bytes < range.end())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn bytes(ranges: &[ByteRange]) -> BTreeSet<u64> {
        ranges.iter().flat_map(|range| range.offset_bytes..range.end()).collect()
    }

    fn at(range: ByteRange) -> std::ops::Range<u64> {
        range.offset_bytes..range.end()
    }

    fn are_apart(ranges: &[ByteRange]) -> bool {
        ranges.windows(2).all(|pair| pair[0].end() < pair[1].offset_bytes)
            && ranges.iter().all(|range| range.length_bytes > 0)
    }

    proptest! {
        #[test]
        fn merged_ranges_are_the_same_bytes(
            ranges in prop::collection::vec((0u64..80, 0u64..12), 0..20),
        ) {
            let ranges: Vec<ByteRange> =
                ranges.into_iter().map(|(offset, length)| ByteRange::new(offset, length)).collect();
            let merged = Extents::new(ranges.clone());
            prop_assert_eq!(bytes(merged.ranges()), bytes(&ranges));
            prop_assert!(are_apart(merged.ranges()), "{:?}", merged);
            prop_assert_eq!(merged.bytes(), bytes(&ranges).len() as u64);
            for part in (0..90).map(|at| ByteRange::new(at, 3)) {
                let overlap = bytes(&ranges).range(at(part)).next().is_some();
                prop_assert_eq!(merged.overlap(part), overlap, "{:?}", part);
            }
        }

        #[test]
        fn ranges_widened_to_whole_blocks(
            ranges in prop::collection::vec((0u64..90, 1u64..12), 0..20),
            block in 1u64..20,
            first in 0u64..10,
        ) {
            let within = ByteRange::new(first, 101);
            let ranges: Vec<ByteRange> =
                ranges.into_iter().map(|(at, length)| ByteRange::new(first + at, length)).collect();
            let wanted: BTreeSet<u64> =
                bytes(&ranges).into_iter().map(|byte| (byte - first) / block).collect();
            let expected: BTreeSet<u64> = (first..within.end())
                .filter(|byte| wanted.contains(&((byte - first) / block)))
                .collect();
            let widened = Extents::new(ranges).widened(block, within);
            prop_assert_eq!(bytes(widened.ranges()), expected);
            prop_assert!(are_apart(widened.ranges()), "{:?}", widened);
        }
    }

    #[test]
    fn ranges_merge_at_maximum_offset() {
        let last = ByteRange::new(u64::MAX - 4, 4);
        let both = Extents::new(vec![last, ByteRange::new(u64::MAX - 2, 9)]);
        assert_eq!(both.ranges()[0].end(), u64::MAX);
        assert_eq!(both.moved(9).ranges()[0].offset_bytes, u64::MAX);
    }
}
