//! Caches that count their misses in a pass over a trace.
//!
//! | counter | policies | unit |
//! |---|---|---|
//! | [`ExactLru`] | LRU at every size | reads, and bytes read |
//! | [`CountedCache`] | any policy at one size | reads, and bytes read |
//! | [`SampledLru`] | LRU at every size, from a sample, with its error | uses of cache blocks by reads |
//! | [`SampledPolicy`] | any policy at given sizes, from a sample | uses of cache blocks by reads |
//! | [`BestPossible`] | Belady's MIN at given sizes, from a sample or not | as of the others |

mod best_possible;
mod counted_cache;
mod counter;
mod exact_lru;
mod sampled;

pub(super) use best_possible::BestPossible;
pub(super) use counted_cache::CountedCache;
pub(super) use counter::{Access, Counter};
pub(super) use exact_lru::ExactLru;
pub(super) use sampled::{SampledLru, SampledPolicy};
