//! Blocks of a task by where they came from.

use freewheel_sim::background::Deliveries;
use serde::Serialize;

/// Blocks of a task by where they came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Delivered {
    /// Moved in rotational gaps.
    pub in_gaps: u64,
    /// Moved by foreground requests anyway.
    pub in_passing: u64,
    /// Moved in idle time.
    pub in_idle: u64,
    /// Moved by foreground requests that were made for them.
    pub promoted: u64,
    /// Promoted foreground requests.
    pub promoted_requests: u64,
    /// Time of the heads that they took.
    pub promoted_head_ns: u64,
    /// Not to be written any more, since the foreground brought newer data.
    pub superseded: u64,
    /// Moved for a backup by foreground requests before a foreground write, which waited for them.
    pub copied: u64,
    /// Requests that copied before a write.
    pub copied_requests: u64,
    /// Time of the heads that they took.
    pub copied_head_ns: u64,
}

impl Delivered {
    pub(super) fn add(&mut self, round: &Deliveries) {
        self.in_gaps += round.in_gaps;
        self.in_passing += round.in_passing;
        self.in_idle += round.in_idle;
        self.promoted += round.promoted.blocks;
        self.promoted_requests += round.promoted.requests;
        self.promoted_head_ns += round.promoted.head_ns;
        self.superseded += round.superseded;
        self.copied += round.copied.blocks;
        self.copied_requests += round.copied.requests;
        self.copied_head_ns += round.copied.head_ns;
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        self.in_gaps + self.in_passing + self.in_idle + self.promoted + self.copied
    }
}
