//! States of a server's task.

use serde::{Deserialize, Serialize};

/// State of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskState {
    /// For its reader.
    Waiting,
    /// The task reads blocks.
    Running,
    /// All its blocks have been read, or named unreadable.
    Done,
    /// Ended by a call, because its reader went away, or because no reader came within a minute.
    Aborted,
    /// The task's reader was too slow to continue without delaying clients; or a flush of a refresh failed.
    Failed,
    /// The device is gone.
    Lost,
}

impl TaskState {
    /// All states.
    pub const ALL: [Self; 6] =
        [Self::Waiting, Self::Running, Self::Done, Self::Aborted, Self::Failed, Self::Lost];

    /// Name in the control interface and on the command line.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Done => "done",
            Self::Aborted => "aborted",
            Self::Failed => "failed",
            Self::Lost => "lost",
        }
    }

    /// True if this state is final.
    pub const fn is_over(self) -> bool {
        !matches!(self, Self::Waiting | Self::Running)
    }
}
