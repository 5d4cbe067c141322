//! Comparisons of two versions (osdi00 section 2.2), which request their blocks pair by pair.

use freewheel_freeblock::TaskOrder;
use freewheel_freeblock::tasks::{TaskError, TaskKind, Tasks};
use freewheel_freeblock::uses::{Compare, CompareCounts, CompareError};
use freewheel_units::SimTime;
use serde::Serialize;
use thiserror::Error;

/// Reason for which a background task cannot begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum BeginError {
    #[error(transparent)]
    Task(#[from] TaskError),
    #[error(transparent)]
    Compare(#[from] CompareError),
}

/// Begins the comparison of a task; None for a task of another kind.
pub(super) fn begin_comparison(
    tasks: &mut Tasks,
    config: &TaskOrder,
) -> Result<Option<Compare>, BeginError> {
    if config.kind != TaskKind::Compare {
        return Ok(None);
    }
    let rows = vec![config.versions(tasks.drive().blocks())];
    Ok(Some(Compare::begin(tasks, SimTime::ZERO, config.size(), rows, config.memory())?))
}

/// Results of a task that requests blocks on demand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum UseResult {
    /// A comparison.
    Compare(CompareResult),
}

/// Results of a comparison. Simulated drives hold no data, so pairs that differ are not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct CompareResult {
    /// Pairs, and blocks that waited.
    #[serde(flatten)]
    pub counts: CompareCounts,
    /// Memory for blocks that wait for their other version.
    pub memory_bytes: u64,
}

impl UseResult {
    /// Results of a comparison so far.
    pub(super) fn of(comparison: &Compare, config: &TaskOrder) -> Self {
        let memory_bytes = config.memory().get();
        Self::Compare(CompareResult { counts: comparison.counts(), memory_bytes })
    }

    /// Results of two arms together: amounts are summed, maxima are the larger.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let (Self::Compare(one), Self::Compare(other)) = (self, other);
        Self::Compare(CompareResult { counts: one.counts.and(other.counts), ..one })
    }
}
