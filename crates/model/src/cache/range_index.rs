//! Ranges of blocks that are found by overlap.
//!
//! Ranges may overlap each other. One that overlaps `wanted` begins before the end of `wanted`, and no
//! earlier than the longest range before its start:
//!
//! ```text
//!            |<- longest ->|
//!            [-- searched -------------)
//!                          [- wanted --)
//! ```

use std::ops::Range;

/// Ranges, each with a number that tells equal starts apart. Their number is that of disk requests under way:
/// few, so that a sorted list is faster than a tree.
#[derive(Debug, Clone, Default)]
pub(super) struct RangeIndex {
    /// Start, number and end, in ascending order.
    ranges: Vec<(u64, u32, u64)>,
    /// Length of the longest range ever added.
    longest: u64,
}

impl RangeIndex {
    #[inline]
    pub fn insert(&mut self, range: &Range<u64>, number: u32) {
        self.longest = self.longest.max(range.end - range.start);
        let at = self.place_of(range.start, number);
        self.ranges.insert(at, (range.start, number, range.end));
    }

    #[inline]
    pub fn remove(&mut self, start: u64, number: u32) {
        let at = self.place_of(start, number);
        let (its_start, its_number, _) = self.ranges.remove(at);
        assert_eq!((its_start, its_number), (start, number), "a range that was inserted");
    }

    #[inline]
    fn place_of(&self, start: u64, number: u32) -> usize {
        self.ranges.partition_point(|&(its_start, its, _)| (its_start, its) < (start, number))
    }

    /// Calls `found` with each range that overlaps `wanted`, and its number, in ascending order.
    #[inline]
    pub fn overlapping(&self, wanted: &Range<u64>, mut found: impl FnMut(Range<u64>, u32)) {
        let from = wanted.start.saturating_sub(self.longest);
        for &(start, number, end) in &self.ranges[self.place_of(from, 0)..] {
            if start >= wanted.end {
                break;
            }
            if end > wanted.start {
                found(start..end, number);
            }
        }
    }

    /// True if some range overlaps `wanted`.
    pub fn overlaps(&self, wanted: &Range<u64>) -> bool {
        let mut any = false;
        self.overlapping(wanted, |_, _| any = true);
        any
    }
}

#[cfg(test)]
mod tests {
    use freewheel_units::Prng;

    use super::*;

    #[test]
    fn range_index_finds_all_overlapping() {
        let prng = &mut Prng::new(1, "range index");
        let (mut index, mut all) = (RangeIndex::default(), Vec::new());
        for number in 0..2_000 {
            let start = prng.below(500);
            let range = start..start + 1 + prng.below(30);
            if prng.chance(0.45) && !all.is_empty() {
                let at = prng.below(all.len() as u64) as usize;
                let (old, its): (Range<u64>, u32) = all.swap_remove(at);
                index.remove(old.start, its);
            } else {
                index.insert(&range, number);
                all.push((range.clone(), number));
            }
            let mut found = Vec::new();
            index.overlapping(&range, |range, number| found.push((range, number)));
            let overlaps = |other: &Range<u64>| other.start < range.end && range.start < other.end;
            let mut expected = all.clone();
            expected.retain(|(other, _)| overlaps(other));
            expected.sort_by_key(|(other, number)| (other.start, *number));
            assert_eq!(found, expected);
            assert_eq!(index.overlaps(&range), !expected.is_empty());
        }
    }
}
