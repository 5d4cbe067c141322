//! Real time: an NBD server and client, a modelled drive that answers when a real one would, and
//! devices as black boxes.
//!
//! Goals: code that simulates in virtual time runs unchanged against a clock. An answer of a drive comes at
//! the drive's time, never before, and as soon after it as the machine allows. A client that stalls,
//! floods or vanishes does not change the service of others. Every accepted request gets an answer.
//! Non-goals: the protocol's bytes (`freewheel-nbd`), a drive's behaviour (`freewheel-sim`), scheduling
//! (`freewheel-host`), an asynchronous runtime for timed work: its timers are a millisecond late.
//! `control` has one in its own thread.

pub mod backup;
pub mod black_box;
pub mod control;
pub mod emulate;
pub mod extents;
mod free_space;
mod memory_limits;
mod missing_folder;
pub mod nbd;
mod notices;
pub mod serve;
pub mod stopwatch;
pub mod trial;
mod zero_range;

pub use free_space::FreeSpace;
pub use memory_limits::{TooLittleMemory, check_memory, clients_with_files};
pub use notices::Notices;
