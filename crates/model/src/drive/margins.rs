//! Margins on the times of movements, for callers that must not be late.

use std::fmt;
use std::ops::RangeInclusive;

use freewheel_units::{Op, SimDuration};
use serde::Serialize;

/// Classes of distances: a change of heads on a cylinder, one cylinder, 2 and 3, 4 to 7, and so on.
pub const SEEK_DISTANCES: usize = u32::BITS as usize + 1;

/// Classes of movements: a change of heads, those inward by distance, those outward by distance.
pub const SEEK_CLASSES: usize = 2 * SEEK_DISTANCES - 1;

/// Longest margin: far more than a turn of any drive, and a seek with it is below 4 s.
const MOST: SimDuration = SimDuration::from_secs(1);

/// Direction of the arm's movement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SeekDirection {
    /// Towards the spindle: to higher cylinders.
    Inward,
    /// Away from it.
    Outward,
}

impl fmt::Display for SeekDirection {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(match self {
            Self::Inward => "inward",
            Self::Outward => "outward",
        })
    }
}

/// The class of a movement from one cylinder to another, below [`SEEK_CLASSES`].
#[inline]
pub fn seek_class(from: u32, to: u32) -> usize {
    let distance = (u32::BITS - from.abs_diff(to).leading_zeros()) as usize;
    if to < from { SEEK_DISTANCES - 1 + distance } else { distance }
}

/// The class of the distance of a class of movements, below [`SEEK_DISTANCES`].
pub fn seek_class_distance(class: usize) -> usize {
    if class < SEEK_DISTANCES { class } else { class + 1 - SEEK_DISTANCES }
}

/// The cylinders that movements of a class are over.
pub fn seek_class_cylinders(class: usize) -> RangeInclusive<u32> {
    let distance = seek_class_distance(class);
    match distance.checked_sub(1) {
        None => 0..=0,
        Some(bits) => 1 << bits..=u32::MAX >> (u32::BITS as usize - distance),
    }
}

/// The direction of movements of a class; a change of heads has none.
pub fn seek_class_direction(class: usize) -> Option<SeekDirection> {
    let inward =
        if class < SEEK_DISTANCES { SeekDirection::Inward } else { SeekDirection::Outward };
    (class > 0).then_some(inward)
}

/// A margin for each class of movements and for what is done at the end, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeekMargins {
    read_ns: [u32; SEEK_CLASSES],
    write_ns: [u32; SEEK_CLASSES],
}

impl SeekMargins {
    /// One margin for every movement, at most a second.
    pub fn constant(margin: SimDuration) -> Self {
        let of_all = [margin.min(MOST).ns() as u32; SEEK_CLASSES];
        Self { read_ns: of_all, write_ns: of_all }
    }

    /// That of a movement of a class until `op` may begin.
    #[inline]
    pub fn of(&self, op: Op, class: usize) -> SimDuration {
        let margins = if op == Op::Write { &self.write_ns } else { &self.read_ns };
        SimDuration::from_ns(margins[class].into())
    }

    /// Sets that of a class, at most a second.
    pub fn set(&mut self, op: Op, class: usize, margin: SimDuration) {
        let margins = if op == Op::Write { &mut self.write_ns } else { &mut self.read_ns };
        margins[class] = margin.min(MOST).ns() as u32;
    }

    /// The shortest of all.
    pub(super) fn least_ns(&self) -> u32 {
        self.read_ns.iter().chain(&self.write_ns).copied().min().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seek_classes_partition_distances_and_directions() {
        let mut next = [0_u64; 2];
        for class in 0..SEEK_CLASSES {
            let cylinders = seek_class_cylinders(class);
            let direction = seek_class_direction(class);
            for &distance in [cylinders.start(), cylinders.end()] {
                let way = if direction == Some(SeekDirection::Outward) {
                    (distance, 0)
                } else {
                    (0, distance)
                };
                assert_eq!(seek_class(way.0, way.1), class);
            }
            let directions = direction.map_or(0..2, |one| one as usize..one as usize + 1);
            for next in &mut next[directions] {
                assert_eq!(u64::from(*cylinders.start()), *next);
                *next = u64::from(*cylinders.end()) + 1;
            }
        }
        assert_eq!(next, [1 << 32; 2]);
    }
}
