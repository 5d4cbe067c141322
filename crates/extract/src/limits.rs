//! Limits that the order of heads and that of bands share.

/// Two times that differ by less are the same: four times what bisection leaves open, and seeks vary.
pub(super) const SAME_NS: f64 = 40_000.0;

/// More surfaces than any drive had.
pub(super) const HEADS_MAX: u64 = 40;
