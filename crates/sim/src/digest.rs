//! The hash that tells whether two runs did the same.

/// Mixes a word into a hash; the order counts.
#[inline]
pub(crate) fn mix(hash: u64, word: u64) -> u64 {
    (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
}
