//! Heat of each extent: accesses in a second, in blocks or in head time.
//!
//! Heat adds up over the extents of a disk. Temperature, heat over size, says which extent cools a disk for
//! the fewest blocks moved.

mod amount;
mod constant;
mod disk_heats;
mod table;
mod tracker;

pub use amount::{HeadTimeCost, HeatAmount};
pub use constant::ConstantTracker;
pub use disk_heats::DiskHeats;
pub use table::{Forgotten, Fragment, HeatSpec, HeatTable, History, Recorded};
pub use tracker::HeatTracker;

#[cfg(test)]
mod tests;
