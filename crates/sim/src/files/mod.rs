//! Files on several disks: what clients of an array see, and how busy each disk is.
//!
//! Goals: any files on any disks, also unlike ones; requests of whole files or parts, split over the
//! disks and done when the last piece is; the same result in every run.
//! Non-goals: drives' own queues and buffers (each disk is bare mechanics with a queue before it),
//! redundancy, directories.
//!
//! [`place`] allocates files, [`simulate`] runs requests to them, and [`simulate_cooled`] moves extents
//! meanwhile. [`simulate_moved_in_gaps`] moves them at no cost to clients.

mod array;
mod cooling;
mod disk_loads;
mod gap_moves;
mod moved_map;
mod new_files;
mod requests;
mod restriping;
mod setup;
mod simulation;
mod traced;

pub use array::{FileOnDisks, Files, PlaceError, place};
pub(crate) use cooling::{Choice, CooledRequests};
pub use cooling::{Cooling, CoolingRule, CoolingStep, CoolingWork};
pub use gap_moves::GapWork;
pub(crate) use gap_moves::{ArmMover, GapMover, SharedMover};
pub use new_files::NewFilesWork;
pub use requests::{DriftWork, FileLoad, FileRequests};
pub(crate) use restriping::Layouts;
pub use restriping::RestripeWork;
pub(crate) use setup::{FilesSetup, mover};
pub use simulation::{
    Arrivals, FilesExperiment, FilesResult, simulate, simulate_cooled, simulate_moved,
    simulate_moved_in_gaps, unsynchronised,
};
pub use traced::FileRequest;
pub(crate) use traced::TracedRequests;

pub use crate::file_map::{FileMap, MappedFile};
pub use crate::result::{
    ClassResult, ClassStripes, CoolingResult, DiskUse, DriftResult, FilesRun, NewFilesResult,
    RestripingResult,
};
