//! Time of a scrub of a whole drive in the rotational gaps of a load: an estimate, since no trace is as
//! long and no simulation of days is cheap.
//!
//! What the gaps give is measured in blocks for each nanosecond of rotational latency, on a sample
//! of the trace that repeats without end ([`sample`]), while the scan wears thin in leaps ([`projection`]).
//! How much latency there is in an hour is measured on the whole trace. Scrubs verify what is on the
//! media, so only what is read counts, and pieces of blocks need not be held.

mod background_scan;
mod burst;
mod by_command;
mod curve;
mod depletion;
mod effort;
mod estimate;
mod idle;
mod measure;
mod projection;
mod sample;
mod scan;
mod spread;

pub use background_scan::BackgroundScan;
pub use by_command::CommandMarks;
pub use effort::{SCRUB_EFFORT, SCRUB_EFFORTS};
pub use estimate::{ArmScrub, ScrubEffort, ScrubEnd, ScrubEstimate, ScrubPart, ScrubPoint};
pub use idle::{CommandScrub, IdleScrub, PauseBeforeScrub, SCRUB_SECONDS_MAX};
pub(crate) use idle::{IDLE_RUNS, PauseSearch, idle_scrub};
pub(crate) use measure::estimate;
pub use scan::ScrubProgress;
