//! Tasks that request blocks on demand and use them (osdi00 section 2.2).

use freewheel_freeblock::tasks::{Event, TaskError, TaskId, TaskKind, Tasks};
use freewheel_freeblock::uses::{
    Compare, CompareCounts, CompareError, Pair, PrefetchCounts, PrefetchError, Prefetcher,
};
use freewheel_freeblock::{Foreground, TaskOrder};
use freewheel_host::{WriteBack, WriteBackResult};
use freewheel_units::{Op, SimTime};
use serde::Serialize;
use thiserror::Error;

/// Reason for which a background task cannot begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum BeginError {
    #[error(transparent)]
    Task(#[from] TaskError),
    #[error(transparent)]
    Compare(#[from] CompareError),
    #[error(transparent)]
    Prefetch(#[from] PrefetchError),
}

/// A use with its task.
#[derive(Clone)]
pub(super) enum Use {
    Compare(Compare),
    Prefetch(Prefetcher),
    WriteBack(WriteBack),
}

impl Use {
    /// Begins the use of a task; None for a task without one.
    pub fn begin(tasks: &mut Tasks, config: &TaskOrder) -> Result<Option<Self>, BeginError> {
        let (now, size, memory) = (SimTime::ZERO, config.size(), config.memory());
        Ok(Some(match config.kind {
            TaskKind::Compare => {
                let rows = vec![config.versions(tasks.drive().blocks())];
                Self::Compare(Compare::begin(tasks, now, size, rows, memory)?)
            }
            TaskKind::Prefetch => {
                let ahead = config.tracks_ahead.unwrap_or(0);
                Self::Prefetch(Prefetcher::new(tasks, now, size, memory, ahead)?)
            }
            TaskKind::WriteBack => Self::WriteBack(WriteBack::begin(tasks, size, memory)?),
            _ => return Ok(None),
        }))
    }

    /// Number of the task.
    pub fn task(&self) -> TaskId {
        match self {
            Self::Compare(compare) => compare.task(),
            Self::Prefetch(prefetcher) => prefetcher.task(),
            Self::WriteBack(write_back) => write_back.task(),
        }
    }

    /// A foreground request has arrived for the drive.
    pub fn arrived(&mut self, tasks: &mut Tasks, request: &Foreground, at: SimTime) {
        let Foreground { op, start, blocks, .. } = *request;
        let told = match (self, op) {
            (Self::Prefetch(prefetcher), Op::Read) => {
                prefetcher.read(tasks, at, start, blocks).map(drop)
            }
            (Self::Prefetch(prefetcher), Op::Write) => prefetcher.written(tasks, at, start, blocks),
            _ => Ok(()),
        };
        told.expect("a task that stands");
    }

    /// Memory has taken a foreground request.
    pub fn request_in_memory(&mut self, tasks: &mut Tasks, request: &Foreground, at: SimTime) {
        if let (Self::Prefetch(prefetcher), Op::Write) = (self, request.op) {
            let told = prefetcher.written(tasks, at, request.start, request.blocks);
            told.expect("a task that stands");
        }
    }

    /// The write-back, if the use is one.
    pub fn write_back(&mut self) -> Option<&mut WriteBack> {
        match self {
            Self::WriteBack(write_back) => Some(write_back),
            _ => None,
        }
    }

    /// Handles an event of the task's blocks.
    pub fn observe(&mut self, tasks: &mut Tasks, event: &Event) {
        match self {
            Self::Compare(compare) => {
                // Simulated drives hold no data, so the contents of a pair are not compared.
                let mut pairs: Vec<Pair> = Vec::new();
                compare.event(tasks, event, &mut pairs).expect("pairs within the drive");
            }
            Self::Prefetch(prefetcher) => {
                prefetcher.event(tasks, event).expect("a task that stands");
            }
            Self::WriteBack(write_back) => {
                write_back.event(tasks, event).expect("a task that stands");
            }
        }
    }

    /// True if the use is complete.
    pub fn is_done(&self) -> bool {
        matches!(self, Self::Compare(compare) if compare.is_done())
    }

    /// Results of the use.
    pub fn result(&self, config: &TaskOrder) -> UseResult {
        let memory_bytes = config.memory().get();
        match self {
            Self::Compare(compare) => {
                UseResult::Compare(CompareResult { counts: compare.counts(), memory_bytes })
            }
            Self::Prefetch(prefetcher) => {
                UseResult::Prefetch(PrefetchResult { counts: prefetcher.counts(), memory_bytes })
            }
            Self::WriteBack(write_back) => UseResult::WriteBack(write_back.result(memory_bytes)),
        }
    }
}

/// Results of a task that requests blocks on demand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum UseResult {
    /// A comparison.
    Compare(CompareResult),
    /// Prefetching.
    Prefetch(PrefetchResult),
    /// Write-back.
    WriteBack(WriteBackResult),
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

/// Results of prefetching.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct PrefetchResult {
    /// Foreground reads, and blocks.
    #[serde(flatten)]
    pub counts: PrefetchCounts,
    /// Memory for blocks that are held or requested.
    pub memory_bytes: u64,
}

impl UseResult {
    /// Results of two arms together: amounts are summed, maxima are the larger. Panics for different
    /// kinds.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Compare(one), Self::Compare(other)) => {
                Self::Compare(CompareResult { counts: one.counts.and(other.counts), ..one })
            }
            (Self::Prefetch(one), Self::Prefetch(other)) => {
                Self::Prefetch(PrefetchResult { counts: one.counts.and(other.counts), ..one })
            }
            (Self::WriteBack(one), Self::WriteBack(other)) => Self::WriteBack(one.and(other)),
            _ => panic!("results of different tasks"),
        }
    }
}
