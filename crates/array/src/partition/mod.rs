//! Number of disks and stripe unit of a file: the analytic model of tr96 section 2.
//!
//! A request that is split over P disks waits for the slowest of P seeks and rotations, and transfers P
//! times less on each. Phase A weighs both for a request that is alone. Phase B adds the queues: P
//! subrequests load the array P times with positioning.
//!
//! | file | equations |
//! |---|---|
//! | `disk` | the symbols C, T, B, ROT, t_hs, t_cs, e, f, from any drive |
//! | `distances`, `density`, `moments` | (4), (5), (9), (10): seek and rotation as distributions |
//! | `phase_a` | (2) to (17) |
//! | `queueing` | (20) to (25), and Chen's closed model (1) |
//! | `array_model` | (18), (19), P-bar |
//! | `stripes` | figure 2 |
//! | `workload` | dynamic partitioning of new files |
//! | `repartition` | incremental repartitioning when the load has changed |
//!
//! Requests and files are counted in any block that the caller chooses, times in seconds.
//!
//! Where the printed equations are damaged, the code follows the paper's text: (13) and (14) have their
//! right-hand sides, (4) has P(0) = 1/C, (22) squares the mean, (25) has the natural logarithm.

mod array_model;
mod density;
pub(crate) mod disk;
mod distances;
mod moments;
mod phase_a;
mod queueing;
mod repartition;
mod stripes;
mod workload;

pub use array_model::{ArrayModel, Choice, Load};
pub use density::{Cumulative, Density};
pub use disk::{DiskModel, DiskSymbols, DiskUse};
pub use moments::{Moments, Weighted};
pub use phase_a::ServiceEstimate;
pub use queueing::{DiskQueue, ForkJoin, closed_model_unit, normal_maximum};
pub use repartition::{
    NotTriggered, RepartitionSpec, RepartitionTrigger, Repartitioner, Restriped, StripedFile,
};
pub use stripes::{
    FileProfile, LoadLimit, Normalised, Rules, Starts, Stripes, effective_parallelism, global_unit,
    stripes, stripes_of_unit,
};
pub use workload::{FileActivity, FileType, NewFile, NotPartitioned, Partitioned, Workload};

#[cfg(test)]
mod tests;
