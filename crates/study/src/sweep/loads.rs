//! Traces that several configurations replay, each looked through once a process.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use freewheel_sim::config::{ConfigError, Experiment, SimConfig, Workload};
use twox_hash::XxHash3_128;

use crate::table::TableError;

/// Bytes of a file that are read at once.
const READ_BYTES: usize = 1 << 20;

/// Experiments with traces, and hashes of files, for a process that runs many configurations.
#[derive(Default)]
pub struct SweepLoads {
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// An experiment for each way in which a trace is replayed.
    traced: Vec<Arc<Experiment>>,
    hashes: BTreeMap<PathBuf, (Stamp, u128)>,
}

/// Length and time of a file: another stamp means other content.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Stamp {
    bytes: u64,
    modified_s: i64,
    modified_ns: i64,
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

    /// What is known of all traces, as a text.
    pub(super) fn traces(&self) -> Vec<String> {
        let known = self.lock();
        let traces = known.traced.iter().flat_map(|experiment| experiment.traces());
        traces.map(|trace| format!("{trace:?}")).collect()
    }

    /// Hash of a file's content. A file that has changed is read anew, and so are all traces.
    pub(super) fn hash(&self, path: &Path) -> Result<u128, TableError> {
        let wrong = |error: io::Error| TableError::of(path, &error);
        let stamp = stamp(path).map_err(wrong)?;
        let mut known = self.lock();
        if let Some((before, hash)) = known.hashes.get(path) {
            if *before == stamp {
                return Ok(*hash);
            }
            known.traced.clear();
        }
        let hash = hash_of(path).map_err(wrong)?;
        known.hashes.insert(path.to_owned(), (stamp, hash));
        Ok(hash)
    }
}

fn stamp(path: &Path) -> io::Result<Stamp> {
    let metadata = fs::metadata(path)?;
    let (modified_s, modified_ns) = (metadata.mtime(), metadata.mtime_nsec());
    Ok(Stamp { bytes: metadata.len(), modified_s, modified_ns })
}

fn hash_of(path: &Path) -> io::Result<u128> {
    let (mut file, mut hasher) = (File::open(path)?, XxHash3_128::new());
    let mut buffer = vec![0; READ_BYTES];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hasher.finish_128()),
            bytes => hasher.write(&buffer[..bytes]),
        }
    }
}
