//! Choice of a disk for each extent of a file: greedy by heat, with no two extents of a file on one disk
//! (tr96 section 3.1), and round robin and random orders to compare with.

mod allocator;
mod optimum;
mod reorganise;

pub use allocator::{Allocated, Allocator, DiskOrder, NewExtent, NewHeat, Passes};
pub use optimum::{least_hottest, online_bound, static_bound};
pub use reorganise::Relocation;

#[cfg(test)]
mod tests;
