//! Uses of free bandwidth (osdi00 section 2.2): small state machines on the task interface.

mod block_size;
mod compare;
mod scan;

pub use block_size::{block_size, usual_block};
pub use compare::{Compare, CompareCounts, CompareError, Pair, Versions};
pub use scan::{backup, sample, scan, scrub, whole_drive, write};
