//! The foreground with other memories for its writes, for comparison.

use freewheel_model::stats::{Distribution, Summary};
use serde::Serialize;

use super::RunResult;

/// The foreground of an experiment with write-back, with other memories for its writes. All else is
/// equal, also the seed. Clients that wait for answers still issue their requests at other times.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WriteBackReferences {
    /// Endless memory: all blocks go in gaps or stay in memory. No request is promoted, so writes cost
    /// the foreground no time. Memory answers more of its reads, too.
    pub endless_memory: ReferenceRun,
    /// No memory: every write is an ordinary request.
    pub no_memory: ReferenceRun,
}

/// Foreground of a run for comparison.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReferenceRun {
    /// From the start to the last completion.
    pub elapsed_ns: u64,
    /// Reads and writes a second.
    pub requests_per_second: f64,
    /// Response times of reads.
    pub read_response: Summary,
    /// Response times of writes.
    pub write_response: Summary,
    /// Distribution of response times of reads.
    #[serde(skip)]
    pub read_distribution: Distribution,
}

impl ReferenceRun {
    pub(crate) fn of(result: RunResult) -> Self {
        let RunResult { elapsed_ns, requests_per_second, .. } = result;
        let RunResult { read_response, write_response, read_distribution, .. } = result;
        Self { elapsed_ns, requests_per_second, read_response, write_response, read_distribution }
    }
}
