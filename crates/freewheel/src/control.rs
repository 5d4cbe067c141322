//! Control of a running server: its background tasks, the data that these read, and backups.
//!
//! ```no_run
//! use freewheel::control::{ControlClient, TaskKind, TaskRequest};
//!
//! let client = ControlClient::new("/tmp/disk.control".as_ref())?;
//! let task = client.create(&TaskRequest::new(TaskKind::Scrub))?;
//! println!("task {}: {:.0} % done", task.id, 100.0 * client.task(task.id)?.done());
//! # Ok::<(), freewheel::Error>(())
//! ```

/// Variable of the environment that names the control socket of a server.
pub const CONTROL_VARIABLE: &str = "FREEWHEEL_CONTROL";

pub use freewheel_freeblock::tasks::{Priority, TaskKind};
pub use freewheel_freeblock::{PromoteTail, TaskOrder};
pub use freewheel_host::tasks::TaskState;
pub use freewheel_live::backup::{
    Backup, Chain, ChangesByCause, Damage, Link, Manifest, REGION_BLOCKS, Restore, Restored,
};
pub use freewheel_live::control::{
    BlockRange, BlockStream, ControlClient, Decisions, Record, Records, Refresh, SampleBias,
    SampleCounter, SampleReport, SampleRequest, SampleResult, ServerStatus, ShareEstimate, Task,
    TaskRequest, openapi,
};
pub use freewheel_live::extents::{Allocated, ByteRange, Extents, FileExtents, Parts};

/// A message of a server as words or tables for people.
pub trait InWords {
    /// The text.
    fn in_words(&self) -> String;
}
