//! PostMark on a small-file layer on a log-structured disk, in virtual time.
//!
//! ```text
//!   Postmark --FileOp--> SmallFiles --Command--> LogDisk --LogIo--> the engine's Source
//!                                                   |  ^
//!                                             Wish  v  |  delivered
//!                                                  FreeReads
//! ```
//! One process computes, and waits for every request. So its computing and the drive's work never
//! overlap. osdi00 section 5.2 likewise put computed times between simulated ones.

mod files;
mod free_reads;
mod generator;
mod process;

pub use files::{MetadataWrites, SmallFiles};
pub use free_reads::{CleaningPlanner, CleaningTask, cleaning_task};
pub use generator::{FileId, FileOp, Postmark, PostmarkSpec};
pub use process::{
    CleaningTime, CpuTimes, FreeReads, NoFreeReads, Pass, PostmarkProcess, file_blocks, files_for,
    used_blocks,
};
