//! Cost and benefit of write-back for the foreground: the same experiment with other memories for
//! writes.

use freewheel_model::stats::{Distribution, Summary};
use serde::Serialize;

use super::experiment::{Experiment, Progress};
use super::{ConfigError, SimConfig};
use crate::background::FreeblockConfig;
use crate::result::RunResult;

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
    fn of(result: RunResult) -> Self {
        let RunResult { elapsed_ns, requests_per_second, .. } = result;
        let RunResult { read_response, write_response, read_distribution, .. } = result;
        Self { elapsed_ns, requests_per_second, read_response, write_response, read_distribution }
    }
}

impl Experiment {
    /// Runs the experiment with the other memories; None without write-back.
    pub fn run_references(
        &self,
        progress: Progress<'_>,
    ) -> Result<Option<WriteBackReferences>, ConfigError> {
        let Some(freeblock) = self.config.freeblock.as_ref().filter(|table| table.has_write_back())
        else {
            return Ok(None);
        };
        let mut run = |freeblock: Option<FreeblockConfig>| -> Result<ReferenceRun, ConfigError> {
            let config = SimConfig { freeblock, ..self.config.clone() };
            let other = Self { config, ..self.clone() };
            Ok(ReferenceRun::of(other.run_observed(None, progress)?))
        };
        let capacity = self.drive.blocks();
        Ok(Some(WriteBackReferences {
            endless_memory: run(Some(freeblock.with_endless_write_back(capacity)))?,
            no_memory: run(freeblock.without_write_back())?,
        }))
    }
}
