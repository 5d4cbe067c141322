//! Options of a study, and reasons why it fails.

use freewheel_model::sched::{POLICIES, PolicySpec};
use freewheel_sim::config::{ConfigError, TraceWorkload};
use freewheel_units::SimDuration;
use serde::Serialize;
use thiserror::Error;

use crate::changes::Goal;
use crate::drive_fit::DriveFit;
use crate::scrub::{SCRUB_EFFORT, SCRUB_EFFORTS};
use crate::trace_runs::{CACHE_DEPTH, REQUESTS_MIN};

/// Options of a study.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StudyOptions {
    /// The trace and how to play it.
    pub trace: TraceWorkload,
    /// Name of a shipped drive, or path of a drive file.
    pub drive: String,
    /// Drives to compare it with, likewise.
    pub beside: Vec<String>,
    /// Policies to compare; FCFS is always among them.
    pub policies: Vec<PolicySpec>,
    /// True if the drive's electronics take part, as far as its file describes them.
    pub electronics: bool,
    /// True to estimate how long a scrub takes in the rotational gaps.
    pub scrub: bool,
    /// Processor time that this may take on a core of a server of the 2020s. It is counted as work, so
    /// the estimate is the same on every machine.
    pub scrub_effort: SimDuration,
    /// False to leave out the estimate of a scrub in the gaps, those told apart by commands, and pauses longer
    /// than the first that no request notices.
    #[serde(skip_serializing_if = "is_true")]
    pub gaps: bool,
    /// True to try what would help: caches, prefetching, write buffers, queue depths, stripes.
    pub changes: bool,
    /// False to leave out the second look: the first changes again on another drive, with other assumed values
    /// and from other starts.
    #[serde(skip_serializing_if = "is_true")]
    pub checks: bool,
    /// Goal by which changes are ranked.
    pub goal: Goal,
    /// Most requests in the storage system at once where a change has a cache before the drive; further ones
    /// wait before the cache, and hits too.
    pub cache_depth: u32,
    /// Fit of [`Self::drive`] to the responses that the trace records, if it was fitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fitted: Option<DriveFit>,
    /// Seed of every random stream.
    pub seed: u64,
}

fn is_true(value: &bool) -> bool {
    *value
}

impl StudyOptions {
    /// A trace on a drive, under every policy there is.
    pub fn new(trace: TraceWorkload, drive: &str) -> Self {
        let policies = POLICIES.iter().map(|row| row.usual).collect();
        Self {
            trace,
            drive: drive.into(),
            beside: Vec::new(),
            policies,
            electronics: true,
            scrub: true,
            scrub_effort: SCRUB_EFFORT,
            gaps: true,
            changes: true,
            checks: true,
            goal: Goal::default(),
            cache_depth: CACHE_DEPTH,
            fitted: None,
            seed: 1,
        }
    }
}

/// Reasons why a study failed.
#[derive(Debug, Error)]
#[allow(missing_docs)]
pub enum StudyError {
    /// Drive, policy, trace, or both together.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The estimate of a scrub was to take too little or too much.
    #[error(
        "a scrub cannot be estimated with {effort} of processor time: {} to {} are allowed",
        SCRUB_EFFORTS.start(),
        SCRUB_EFFORTS.end()
    )]
    ScrubEffort {
        /// Effort in the options.
        effort: SimDuration,
    },
    /// The trace records too few responses to fit a drive to them.
    #[error(
        "{file}: no drive can be fitted to it, as it does not record the responses of {REQUESTS_MIN} reads and writes in each half"
    )]
    TooFewResponses { file: String },
    /// The trace has no read and no write.
    #[error("{file}: the trace has no read and no write")]
    Empty { file: String },
}
