//! The vocabulary every other crate speaks: time, angle, addresses, counts, a seeded generator, and
//! which name was meant by a slip.
//!
//! Goals: a quantity's unit is part of its type; all arithmetic is on integers, so that the same
//! inputs give the same bits on every machine; text carries units both ways.
//! Non-goals: calendars, time zones, floating-point physics.

#![warn(clippy::print_stdout, clippy::print_stderr)]

mod address;
mod angle;
mod count;
mod did_you_mean;
mod grouped;
mod op;
mod parse;
mod prng;
mod significant;
mod time;

pub use address::{BlockAddress, Lbn, VolumeBlock};
pub use angle::Angle;
pub use count::{BLOCK_BYTES, Blocks, Bytes};
pub use did_you_mean::did_you_mean;
pub use grouped::grouped;
pub use op::Op;
pub use parse::ParseQuantityError;
pub use prng::Prng;
pub use significant::four_digits;
pub use time::{SimDuration, SimTime};
