//! Background tasks that several runs of an experiment begin with.
//!
//! The index of what tasks want takes a second on a drive of today, and longer than many a run. It depends on
//! the drive and the tasks alone. So experiments on the same drive share it.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use freewheel_host::PromotionAnchor;
use freewheel_model::drive::Drive;

use crate::background::{BeginError, FreeblockConfig, PreparedTasks};
use crate::config::HostConfig;

/// What the tasks of an arm depend on.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PreparedFor {
    pub drive: Arc<Drive>,
    pub freeblock: FreeblockConfig,
    pub anchor: PromotionAnchor,
    pub host: Option<HostConfig>,
}

/// Tasks of the last runs on a drive, ready to begin. The arms of most experiments have the same.
#[derive(Default)]
pub(super) struct PreparedRuns {
    kept: Mutex<Option<(PreparedFor, PreparedTasks)>>,
}

impl fmt::Debug for PreparedRuns {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("PreparedRuns")
    }
}

impl PreparedRuns {
    /// A copy of the tasks; `make` makes them where no earlier run did.
    pub fn tasks(
        &self,
        of: PreparedFor,
        make: impl FnOnce(&FreeblockConfig) -> Result<PreparedTasks, BeginError>,
    ) -> Result<PreparedTasks, BeginError> {
        // When idle time is used is no property of the tasks.
        let of = PreparedFor { freeblock: FreeblockConfig { idle: None, ..of.freeblock }, ..of };
        // Held meanwhile, so that runs on other threads wait instead of making the same.
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, tasks)) = kept.as_ref().filter(|(known, _)| *known == of) {
            return Ok(tasks.clone());
        }
        let tasks = make(&of.freeblock)?;
        // The first run gets a copy, too: copies take the memory that they need, and all runs say the same.
        let copy = tasks.clone();
        *kept = Some((of, tasks));
        Ok(copy)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Experiment;
    use crate::config::SimConfig;

    #[test]
    fn prepared_copy_runs_like_new_experiment() {
        let config = |after: &str, conservatism: &str| {
            let text = format!(
                "drive = \"atlas10k\"\nworkload = {{ kind = \"closed\", outstanding = 2, requests = 400, \
                 think_time = \"30ms\" }}\n[freeblock]\nconservatism = \"{conservatism}\"\n\
                 idle = {{ after = \"{after}\" }}\n[[freeblock.tasks]]\nkind = \"scrub\"\n"
            );
            SimConfig::parse(&text, "test", &[]).unwrap()
        };
        let first = Experiment::new(config("5ms", "100us")).unwrap();
        let hash = |experiment: &Experiment| experiment.run().unwrap().result_hash;
        let hashes = [hash(&first), hash(&first)];
        assert_eq!(hashes[0], hashes[1]);
        for (after, conservatism) in [("5ms", "100us"), ("20ms", "100us"), ("5ms", "0us")] {
            let config = config(after, conservatism);
            let alone = hash(&Experiment::new(config.clone()).unwrap());
            let beside = first.with_config(config).unwrap();
            assert_eq!((hash(&beside), hash(&beside)), (alone.clone(), alone), "{after}");
        }
    }
}
