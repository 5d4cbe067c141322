//! Miss-ratio curves: how often caches of every size would miss, in one pass over the keys.
//!
//! | curve | policies | cost of a key | memory follows |
//! |---|---|---|---|
//! | [`LruCurve`] | LRU, every size at once, exact | logarithm of the distinct keys | distinct keys |
//! | [`ReadCurve`] | the same with valid bits, by request and by block | the same | distinct cache blocks |
//! | [`Shards`] | LRU, every size at once, from a sample, with its error | a hash; sampled keys as above | the sample |
//! | [`SimulatedCurve`] | any policy, at given sizes, all keys or a sample | one use a size | capacities |
//!
//! ```
//! use freewheel_model::cache::curve::LruCurve;
//!
//! let mut curve = LruCurve::default();
//! for key in [1, 2, 3, 1, 2, 3, 3] {
//!     curve.process(key);
//! }
//! // Uses hit from the smallest cache on that holds all keys since the last use: 3, 3, 3 and 1.
//! assert_eq!([0, 1, 2, 3].map(|capacity| curve.misses(capacity)), [7, 6, 6, 3]);
//! ```

mod lru_curve;
mod position_counts;
mod read_curve;
mod sample;
mod shards;
mod simulated;
mod stack_distances;

pub use lru_curve::LruCurve;
pub use read_curve::ReadCurve;
pub use sample::SpatialSample;
pub use shards::{Estimate, Shards};
pub use simulated::SimulatedCurve;
pub use stack_distances::StackDistances;
