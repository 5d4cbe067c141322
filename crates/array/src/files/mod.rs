//! Files on several disks: where they lie, how clients use them, and copies among clients' requests.
//!
//! Goals: any files on any disks, also unlike ones; requests of whole files or parts; the same requests in
//! every run.
//! Non-goals: directories, redundancy, time: `sim` takes each request when it arrives, and says when it is
//! done.
//!
//! [`FilesSetup`] makes a workload ready, and [`place`] allocates files. [`Clients`] ask for them,
//! [`CooledRequests`] has the reads and writes of moves among their requests, and [`GapMovedRequests`] has
//! moves in rotational gaps, which [`ArmMover`] fills.

mod clients;
mod cooled;
mod disk_loads;
mod gap_moves;
mod map;
mod moved_map;
mod new_files;
mod place;
mod requests;
mod restriping;
mod result;
mod setup;
mod spindles;
mod traced;

pub use clients::Clients;
pub use cooled::{Choice, CooledRequests, Cooling, CoolingWork};
pub use disk_loads::DiskLoads;
pub use gap_moves::{ArmMover, GapMovedRequests, GapMover, GapWork, IdleGaps, SharedMover};
pub use map::{FileMap, MappedFile, VolumeRequest};
pub use moved_map::MovedMap;
pub use new_files::NewFilesWork;
pub use place::{FileOnDisks, Files, PlaceError, place};
pub use requests::{DriftWork, FileLoad, FileRequests};
pub use restriping::{Layouts, RestripeWork, Restriper};
pub use result::{
    ClassResult, ClassStripes, CoolingResult, DriftResult, FilesRun, NewFilesResult,
    RestripingResult,
};
pub use setup::{Disk, FilesSetup, LoggedFiles, mover, whole_sectors};
pub use spindles::unsynchronised;
pub use traced::{FileRequest, TracedRequests};
