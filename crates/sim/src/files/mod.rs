//! Files on several disks: what clients of an array see, and how busy each disk is.
//!
//! Goals: any files on any disks, also unlike ones; requests that are split over the disks and done when the
//! last piece is; the same result in every run.
//! Non-goals: drives' own queues and buffers (each disk is bare mechanics with a queue before it), and what
//! [`freewheel_array::files`] decides: places, requests and moves.
//!
//! [`simulate`] runs requests to files, and [`simulate_cooled`] moves extents meanwhile.
//! [`simulate_moved_in_gaps`] moves them at no cost to clients. [`LoggedUse`] reads a web server's log.

mod disks;
mod simulation;
mod sources;
mod web_log;

pub(crate) use disks::files_setup;
pub use simulation::{
    Arrivals, FilesExperiment, FilesResult, simulate, simulate_cooled, simulate_moved,
    simulate_moved_in_gaps,
};
pub use web_log::{LoggedFile, LoggedUse};

pub use crate::result::DiskUse;
