//! Cylinders side by side.

/// The cylinders `first..=last`, at least one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CylinderRange {
    pub first: u32,
    pub last: u32,
}

impl CylinderRange {
    #[inline]
    pub fn one(cylinder: u32) -> Self {
        Self { first: cylinder, last: cylinder }
    }

    /// Distance of a cylinder to the nearest of the range; zero inside.
    #[inline]
    pub fn distance(self, cylinder: u32) -> u32 {
        if cylinder < self.first {
            self.first - cylinder
        } else {
            cylinder.saturating_sub(self.last)
        }
    }
}
