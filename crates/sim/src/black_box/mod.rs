//! A drive as its host sees it: commands go in, replies come out, and stage times stay hidden.
//!
//! [`EmulatedDrive`] runs in virtual time, or in real time with a thread that waits for its events. A
//! user of [`BlackBox`] cannot tell which.

mod emulated;
mod firmware;
mod host;
mod spindle;

pub use emulated::{Behaviour, BehaviourError, Command, EmulatedDrive, EmulatedDriveError, Reply};
pub use firmware::{Activity, BadBlocks, JitterShape};
pub use host::{Answer, BlackBox, DriveGone, VirtualDrive};
pub use spindle::SpindleDrift;
