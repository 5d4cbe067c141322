//! What a run is summed up in: distributions of durations and sums over time.

mod distribution;
mod level;

pub use distribution::{Bucket, Distribution, Summary};
pub use level::Level;
