//! Choice of the segment to clean: Sprite LFS's cost-benefit rule.

use std::cmp::Ordering;

use freewheel_units::SimDuration;

/// A segment that could be cleaned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    /// Number of the segment.
    pub segment: u32,
    /// Live blocks in it.
    pub live: u32,
    /// Time since the youngest block that was put into it was modified, be it live or dead by now.
    pub age: SimDuration,
}

impl Candidate {
    /// Compares `(1 - u) * age / (1 + u)`, with u = live / `slots`: the space that cleaning frees
    /// and how long it is likely to stay free, over the cost of reading a segment and writing u of
    /// one (Rosenblum and Ousterhout 1992, section 3.5). In whole numbers, so that it is exact.
    fn compare(&self, other: &Self, slots: u32) -> Ordering {
        let benefit = |c: &Self| u128::from(slots - c.live) * u128::from(c.age.ns());
        (benefit(self) * u128::from(slots + other.live))
            .cmp(&(benefit(other) * u128::from(slots + self.live)))
    }
}

/// The best segment to clean, the first of equals; of segments with `slots` data blocks. A full segment
/// frees no space and is never chosen.
pub fn best(candidates: impl Iterator<Item = Candidate>, slots: u32) -> Option<Candidate> {
    let mut best: Option<Candidate> = None;
    for candidate in candidates.filter(|candidate| candidate.live < slots) {
        if best.is_none_or(|best| candidate.compare(&best, slots) == Ordering::Greater) {
            best = Some(candidate);
        }
    }
    best
}
