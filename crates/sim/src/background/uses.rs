//! Tasks that ask for blocks as they come up, and do something with them (osdi00 section 2.2).

use freewheel_freeblock::Foreground;
use freewheel_freeblock::tasks::{Event, TaskError, TaskId, Tasks};
use freewheel_freeblock::uses::{
    Compare, CompareCounts, CompareError, Pair, PrefetchCounts, PrefetchError, Prefetcher,
};
use freewheel_units::{Op, SimTime};
use serde::Serialize;
use thiserror::Error;

use super::task::{BackgroundTask, TaskConfig};
use super::write_back::{WriteBack, WriteBackResult};

/// Why a background task could not begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum BeginError {
    #[error(transparent)]
    Task(#[from] TaskError),
    #[error(transparent)]
    Compare(#[from] CompareError),
    #[error(transparent)]
    Prefetch(#[from] PrefetchError),
}

/// A task that asks for blocks as they come up.
pub(super) enum Use {
    Compare(Compare),
    Prefetch(Prefetcher),
    WriteBack(WriteBack),
}

impl Use {
    /// Begins a task that is one; None for others.
    pub fn begin(tasks: &mut Tasks, config: &TaskConfig) -> Result<Option<Self>, BeginError> {
        let (now, size, memory) = (SimTime::ZERO, config.size(), config.memory());
        Ok(Some(match config.kind {
            BackgroundTask::Compare => {
                let rows = vec![config.versions(tasks.drive().blocks())];
                Self::Compare(Compare::begin(tasks, now, size, rows, memory)?)
            }
            BackgroundTask::Prefetch => {
                let ahead = config.tracks_ahead.unwrap_or(0);
                Self::Prefetch(Prefetcher::new(tasks, now, size, memory, ahead)?)
            }
            BackgroundTask::WriteBack => Self::WriteBack(WriteBack::begin(tasks, size, memory)?),
            _ => return Ok(None),
        }))
    }

    /// Its task.
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
    pub fn taken(&mut self, tasks: &mut Tasks, request: &Foreground, at: SimTime) {
        if let (Self::Prefetch(prefetcher), Op::Write) = (self, request.op) {
            let told = prefetcher.written(tasks, at, request.start, request.blocks);
            told.expect("a task that stands");
        }
    }

    /// Its write-back, if it is one.
    pub fn write_back(&mut self) -> Option<&mut WriteBack> {
        match self {
            Self::WriteBack(write_back) => Some(write_back),
            _ => None,
        }
    }

    /// Something has become of its blocks.
    pub fn heard(&mut self, tasks: &mut Tasks, event: &Event) {
        match self {
            Self::Compare(compare) => {
                // A simulated drive holds no data: what a pair is like, nobody can say.
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

    /// Whether there is nothing more to come of it.
    pub fn is_done(&self) -> bool {
        matches!(self, Self::Compare(compare) if compare.is_done())
    }

    /// What it has come to.
    pub fn result(&self, config: &TaskConfig) -> UseResult {
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

/// What a task that asks for blocks as they come up has come to.
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

/// What a comparison has come to. Pairs that differ are not counted: a simulated drive holds no data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct CompareResult {
    /// Pairs, and what waited.
    #[serde(flatten)]
    pub counts: CompareCounts,
    /// The most that may wait for its other version.
    pub memory_bytes: u64,
}

/// What prefetching has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct PrefetchResult {
    /// Foreground reads, and blocks.
    #[serde(flatten)]
    pub counts: PrefetchCounts,
    /// What may be in memory or asked for.
    pub memory_bytes: u64,
}

impl UseResult {
    /// The same task on two arms together: amounts added up, of what is a most the larger. Panics when
    /// one is of another kind.
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
