//! How much longer than their curve says movements are taken to be, by whoever must not be late.

use std::ops::RangeInclusive;

use freewheel_units::{Op, SimDuration};

/// Classes of movements by distance: a change of heads on a cylinder, one cylinder, 2 and 3, 4 to 7,
/// and so on.
pub const SEEK_CLASSES: usize = u32::BITS as usize + 1;

/// Longest margin: far more than a turn of any drive, and a seek with it is below 4 s.
const MOST: SimDuration = SimDuration::from_secs(1);

/// The class of a movement over so many cylinders, below [`SEEK_CLASSES`].
#[inline]
pub fn seek_class(distance: u32) -> usize {
    (u32::BITS - distance.leading_zeros()) as usize
}

/// The cylinders that movements of a class are over.
pub fn seek_class_cylinders(class: usize) -> RangeInclusive<u32> {
    match class.checked_sub(1) {
        None => 0..=0,
        Some(bits) => 1 << bits..=u32::MAX >> (u32::BITS as usize - class),
    }
}

/// A margin for each class of distance and for what is done at the end, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeekMargins {
    read_ns: [u32; SEEK_CLASSES],
    write_ns: [u32; SEEK_CLASSES],
}

impl SeekMargins {
    /// The same for every movement, at most a second.
    pub fn constant(margin: SimDuration) -> Self {
        let of_all = [margin.min(MOST).ns() as u32; SEEK_CLASSES];
        Self { read_ns: of_all, write_ns: of_all }
    }

    /// That of a movement over `distance` cylinders, zero for a change of heads, until `op` may begin.
    #[inline]
    pub fn of(&self, op: Op, distance: u32) -> SimDuration {
        let margins = if op == Op::Write { &self.write_ns } else { &self.read_ns };
        SimDuration::from_ns(margins[seek_class(distance)].into())
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
    fn every_distance_is_among_the_cylinders_of_its_class_and_no_other() {
        let mut next = 0_u64;
        for class in 0..SEEK_CLASSES {
            let cylinders = seek_class_cylinders(class);
            assert_eq!(u64::from(*cylinders.start()), next);
            assert_eq!([cylinders.start(), cylinders.end()].map(|&of| seek_class(of)), [class; 2]);
            next = u64::from(*cylinders.end()) + 1;
        }
        assert_eq!(next, 1 << 32);
    }
}
