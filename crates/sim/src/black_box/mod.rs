//! A drive as its host sees it: commands in, replies out, and nothing said about why they took so
//! long.
//!
//! [`EmulatedDrive`] is one in virtual time, and with a thread that waits for its events, one in real
//! time. Whatever works on a [`BlackBox`] cannot know which it has.

mod emulated;
mod firmware;
mod host;
mod spindle;

pub use emulated::{Behaviour, BehaviourError, Command, EmulatedDrive, Reply};
pub use firmware::{Activity, BadBlocks, JitterShape};
pub use host::{Answer, BlackBox, DriveGone, VirtualDrive};
pub use spindle::SpindleDrift;
