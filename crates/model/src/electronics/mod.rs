//! The electronics between host and media: command queue, buffer, reading on, write-back, overheads,
//! bus. Each part is a small model; `unit/` puts them together.

mod buffer;
mod bus;
mod busy;
mod by_start;
mod command_queue;
mod extents;
mod media_cache;
mod random_rate;
mod read_ahead;
mod shares;
mod streams;
mod unit;
mod write_back;

pub use crate::spec::duration_limits::{
    DURATION_LIMITS_MAX, DurationLimit, DurationLimitsSpec, LimitPolicy,
};
pub use crate::spec::electronics as spec;
pub use crate::spec::media_cache::MediaCacheSpec;
pub use media_cache::MediaCacheWork;
pub use random_rate::random_checks;
pub use unit::{Done, DriveUnit, LimitEnd, NextEvent, Served};
