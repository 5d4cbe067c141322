//! Blocks of a served drive in words.

use std::ops::Range;

use freewheel_units::{BLOCK_BYTES, Bytes};

use crate::numbers::counted;

/// The bytes of blocks.
pub(super) fn amount(blocks: u64) -> String {
    Bytes::new(blocks * BLOCK_BYTES).human()
}

/// The bytes of all blocks of these ranges.
pub(super) fn sum(ranges: &[Range<u64>]) -> String {
    amount(ranges.iter().map(|range| range.end - range.start).sum())
}

/// Number and place of consecutive blocks.
pub fn block_range(range: &Range<u64>) -> String {
    format!("{} of 512 B from {} on", counted(range.end - range.start, "block"), range.start)
}
