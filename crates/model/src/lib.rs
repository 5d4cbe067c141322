//! Pure models: what a drive does, and what to do with one.
//!
//! Everything here is a state machine. `now` and an event go in, a decision comes out; this crate knows
//! no clock, thread, file or source of chance. `sim` drives these objects with virtual time, and a live
//! engine can drive the very same ones with real time.

#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod cache;
pub mod drive;
pub mod electronics;
pub mod log_disk;
mod lru;
pub mod sched;
mod spec;
pub mod stats;
pub mod striping;
pub mod zoned;
