//! Results of a simulated part of a scan.

use freewheel_sim::background::Gaps;

/// Results of a burst.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Burst {
    /// Blocks wanted when it began, and when it ended.
    pub from: u64,
    pub to: u64,
    pub gaps: u64,
    /// Blocks read in gaps; others passed anyway.
    pub in_gaps: u64,
    /// Use of the gaps.
    pub time: Gaps,
    /// Standard error of its rate, in parts of it.
    pub error: f64,
}
