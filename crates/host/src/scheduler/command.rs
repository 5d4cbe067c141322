//! Commands of foreground requests and free work, as a scheduler gives them to a drive.

use freewheel_freeblock::{Foreground, FreeRun};
use freewheel_units::{Lbn, Op, SimDuration};

/// Command for the drive.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Command {
    /// Comes back with its end; unique.
    pub id: u64,
    pub op: Op,
    pub start: Lbn,
    pub blocks: u32,
    /// The last part of a command that belongs to a foreground request, if any does.
    pub foreground: Option<ForegroundPart>,
    /// Free work in the command. Blocks between these runs, and before the foreground's, are read in vain.
    pub runs: Vec<FreeRun>,
}

/// A part of a foreground request, or all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct ForegroundPart {
    pub sequence: u64,
    pub start: Lbn,
    pub blocks: u32,
}

/// A command that has come back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// As it was sent.
    pub command: Command,
    /// The foreground request that is done with it, if one is.
    pub done: Option<Foreground>,
    /// Observed head time: from the end of the command before it to its own.
    pub head: SimDuration,
    /// Observed less predicted head time. None while the angle of the spindle is not known, and
    /// behind a surprise.
    pub error_ns: Option<i64>,
}

impl Command {
    pub(crate) fn extent(&self) -> (Op, Lbn, u32) {
        (self.op, self.start, self.blocks)
    }
}
