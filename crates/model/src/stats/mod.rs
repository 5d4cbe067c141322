//! Summaries of a run: distributions of durations and sums over time.

mod demerit;
mod distribution;
mod level;

pub use demerit::demerit;
pub use distribution::{Bucket, Distribution, Summary};
pub use level::Level;
