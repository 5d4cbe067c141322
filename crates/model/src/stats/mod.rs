//! What a run is summed up in: distributions of durations and averages over time.

mod distribution;
mod level;

pub use distribution::{Distribution, Summary};
pub use level::Level;
