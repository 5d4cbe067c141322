//! Measures: times, sizes, their distributions, and numbers for people.

pub use freewheel_model::stats::{Bucket, Distribution, Summary};
pub use freewheel_report::{Table, Text, Unit, bar, counted, short_time, spread};
pub use freewheel_units::{
    BLOCK_BYTES, Blocks, Bytes, Op, SimDuration, SimTime, four_digits, grouped,
};
