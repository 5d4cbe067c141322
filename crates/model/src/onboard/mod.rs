//! The electronics between host and media: buffer, reading on, write cache, overheads, bus.

mod buffer;
mod read_ahead;
pub mod spec;
mod unit;

pub use unit::{Served, Unit};
