//! Cost and benefit of write-back for the foreground: the same experiment with other memories for
//! writes.

use super::{Experiment, Progress};
use crate::background::FreeblockConfig;
use crate::config::{ConfigError, SimConfig};
use crate::result::{ReferenceRun, WriteBackReferences};

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
            Ok(ReferenceRun::of(other.new_run().with_progress(progress).simulate()?))
        };
        let capacity = self.drive.blocks();
        Ok(Some(WriteBackReferences {
            endless_memory: run(Some(freeblock.with_endless_write_back(capacity)))?,
            no_memory: run(freeblock.without_write_back())?,
        }))
    }
}
