//! Measures: times, sizes, their distributions, and numbers for people.

pub use freewheel_model::stats::{Distribution, Summary};
pub use freewheel_report::{Table, Text, Unit, counted};
pub use freewheel_units::{BLOCK_BYTES, Blocks, Bytes, Op, SimDuration, SimTime, grouped};
