//! How much longer than their curve says movements are taken to be, by whoever must not be late.

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
