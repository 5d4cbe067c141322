//! Real time: an NBD server and client, a modelled drive that answers when a real one would, and
//! devices as black boxes.
//!
//! Goals: what simulates in virtual time runs unchanged against a clock; whoever waits for a drive
//! is answered at the drive's time, never before, and as little after it as the machine allows; one
//! client that stalls, floods or vanishes changes nothing for the others; no request that was taken
//! goes without an answer.
//! Non-goals: the protocol's bytes (`freewheel-nbd`), what a drive does (`freewheel-sim`), an
//! asynchronous runtime for anything that is timed: its timers are a millisecond late. `control` has
//! one in a thread of its own.

pub mod backup;
pub mod black_box;
pub mod control;
pub mod emulate;
mod free_space;
mod missing_folder;
pub mod nbd;
pub mod serve;
pub mod stopwatch;
pub mod trial;
mod zero_range;

pub use free_space::FreeSpace;
