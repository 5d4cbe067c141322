//! Traces that several configurations replay, each looked through once a process.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use freewheel_sim::config::{ConfigError, SimConfig, Workload};
use freewheel_sim::experiment::Experiment;

use crate::file_hash::FileHashes;
use crate::table::TableError;

/// Experiments with traces, and hashes of files, for a process that runs many configurations.
#[derive(Default)]
pub struct SweepLoads {
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// An experiment for each way in which a trace is replayed.
    traced: Vec<Arc<Experiment>>,
    hashes: FileHashes,
}

impl SweepLoads {
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An experiment that replays the same trace in the same way; None without a trace.
    pub(super) fn of(&self, config: &SimConfig) -> Result<Option<Arc<Experiment>>, ConfigError> {
        if !matches!(config.workload, Workload::Trace(_)) {
            return Ok(None);
        }
        // Held while the trace is read, so that no other thread reads it too.
        let mut known = self.lock();
        let found = known.traced.iter().find(|experiment| experiment.has_load_of(config));
        if let Some(found) = found {
            return Ok(Some(Arc::clone(found)));
        }
        let experiment = Arc::new(Experiment::new(config.clone())?);
        known.traced.push(Arc::clone(&experiment));
        Ok(Some(experiment))
    }

    /// Hash of a file's content. After a file has changed all traces are read anew.
    pub(super) fn hash(&self, path: &Path) -> Result<String, TableError> {
        let mut known = self.lock();
        let (hash, has_changed) = known.hashes.hash(path)?;
        if has_changed {
            known.traced.clear();
        }
        Ok(hash)
    }
}
