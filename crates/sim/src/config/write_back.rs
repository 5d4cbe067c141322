//! What write-back costs the foreground, and what it is worth to it: the same experiment with other
//! memories for what is written.

use freewheel_model::stats::{Distribution, Summary};
use serde::Serialize;

use super::experiment::{Experiment, Progress};
use super::{ConfigError, SimConfig};
use crate::background::FreeblockConfig;
use crate::result::RunResult;

/// The foreground of an experiment with write-back, had it another memory for what it writes. All else
/// is the same, its seed as well; clients that wait for answers before they ask again come at other
/// times.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WriteBackReferences {
    /// Room for everything: all blocks go in gaps or stay in memory, no request is made for any, so
    /// writing costs the foreground nothing. Reads that so much memory answers are among its reads.
    pub endless_memory: ReferenceRun,
    /// None: every write is an ordinary request.
    pub no_memory: ReferenceRun,
}

/// What the foreground had in a run that is there for comparison.
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
    /// Runs it with the other memories; None without write-back.
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
