//! Foreground requests, as planners see them.

use freewheel_units::{Lbn, Op};

/// Number of a promoted request, never given twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PromotionId(pub(super) u64);

/// A foreground request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Foreground {
    pub op: Op,
    pub start: Lbn,
    /// Number of blocks of 512 B.
    pub blocks: u32,
    /// Unique among foreground requests.
    pub sequence: u64,
    /// Set when a task has promoted it.
    pub promotion: Option<PromotionId>,
}

/// A foreground request to be made for a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Promoted {
    /// Number that the planner must be told with its arrival and its end.
    pub id: PromotionId,
    pub op: Op,
    pub start: Lbn,
    /// Number of blocks of 512 B.
    pub blocks: u32,
    /// True if foreground writes to the same blocks that arrive later must wait for it: every write, and a
    /// read of a task that [precedes writes](crate::tasks::TaskSpec::precedes_writes).
    pub precedes_writes: bool,
}
