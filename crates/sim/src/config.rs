//! An experiment as a TOML file: drive, policy, workload, seed.

mod array;
mod error;
mod experiment;
mod overrides;
mod postmark;
mod reporting;
mod sectors;
mod workload;
mod write_back;

use std::path::Path;

use freewheel_model::drive::spec::{ByOp, DriveSpec};
use freewheel_model::electronics::spec::{QUEUE_DEPTH_MAX, QueueSpec};
use freewheel_model::sched::PolicySpec;
use freewheel_trace::read_text;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::background::FreeblockConfig;
use crate::document::{self, Fault};
use crate::host::HostConfig;
use crate::library;

pub(crate) use array::DRIVES_MAX;
pub use array::{ArrayConfig, Layout};
pub use error::ConfigError;
pub use experiment::{Experiment, Observer, Planners, Progress};
pub use overrides::key_and_value;
pub use postmark::{PassResult, PostmarkCleaner, PostmarkResult, PostmarkWorkload};
pub(crate) use sectors::check_whole;
pub use workload::{ThinkTimeDistribution, TraceWorkload, Workload, open};
pub use write_back::{ReferenceRun, WriteBackReferences};

/// A simulation: everything that its result depends on, but for the bytes of a trace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SimConfig {
    /// Seed of every random stream.
    #[serde(default = "default_seed")]
    pub seed: u64,
    /// Name of a shipped drive, or path of a drive file, from the folder of the experiment.
    #[serde(default = "default_drive")]
    pub drive: String,
    /// Overrides the drive's own zero-latency access.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zero_latency: Option<bool>,
    /// Foreground policy.
    #[serde(default)]
    pub scheduler: PolicySpec,
    /// Whether the drive's electronics (buffer, command queue, overheads, bus) take part, as far as
    /// its file describes them; else requests meet its bare mechanics.
    #[serde(default = "yes")]
    pub electronics: bool,
    /// Overrides how many commands the drive's own queue holds. At 1 the policy above decides alone.
    /// Of no effect on a drive without electronics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_depth: Option<u32>,
    /// Overrides whether the drive keeps the blocks that pass before those that a read wants. While
    /// it does it cannot be elsewhere, so its reads leave no rotational gap: false gives their
    /// latency to free work, and what the buffer would have served of such blocks is read anew. Of
    /// no effect on a drive without a buffer or without its electronics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_free_blocks_before: Option<bool>,
    /// Several drives, as one volume or side by side.
    #[serde(default, skip_serializing_if = "ArrayConfig::is_single")]
    pub array: ArrayConfig,
    /// Background work in the rotational gaps of the workload: freeblock scheduling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub freeblock: Option<FreeblockConfig>,
    /// A scheduler outside the drive decides about the foreground and the free work, and sees of the
    /// drive what a host does; else the simulator knows all about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostConfig>,
    /// Where requests come from.
    pub workload: Workload,
}

const fn yes() -> bool {
    true
}

const fn default_seed() -> u64 {
    1
}

fn default_drive() -> String {
    library::DEFAULT_DRIVE.into()
}

impl SimConfig {
    /// Reads an experiment and applies overrides of the form `workload.outstanding=20`. A relative
    /// path in the file, of a drive or a trace, counts from the file's folder; one in an override,
    /// which whoever is in the current folder has typed, from there.
    pub fn load(path: &Path, overrides: &[String]) -> Result<Self, ConfigError> {
        let text =
            read_text(path).map_err(|source| ConfigError::Read { path: path.into(), source })?;
        let mut config = Self::parse(&text, &path.display().to_string(), overrides)?;
        let folder = path.parent().unwrap_or(Path::new("."));
        if !overrides::bring(overrides, &["drive"]) {
            config.drive = library::from_folder(&config.drive, folder);
        }
        match &mut config.workload {
            Workload::Trace(trace) if !overrides::bring(overrides, &["workload", "file"]) => {
                trace.file = folder.join(&trace.file);
            }
            _ => {}
        }
        Ok(config)
    }

    /// Err for an experiment whose completions cannot be shown one after the other.
    pub fn check_observable(&self) -> Result<(), ConfigError> {
        match self.array.layout {
            Layout::Striped => Ok(()),
            Layout::Independent => Err(ConfigError::Unordered),
        }
    }

    /// Whether the electronics of the drive of this file take part.
    fn has_electronics(&self, spec: &DriveSpec) -> bool {
        self.electronics && !spec.electronics.is_empty()
    }

    /// The drive's file with what the experiment overrides.
    fn drive_spec(&self) -> Result<DriveSpec, ConfigError> {
        let mut spec = library::spec(&self.drive)?;
        if let Some(on) = self.zero_latency {
            spec.zero_latency = ByOp { read: on, write: on };
        }
        if let Some(depth) = self.queue_depth {
            if !(1..=QUEUE_DEPTH_MAX).contains(&depth) {
                return Err(ConfigError::QueueDepth { depth });
            }
            if !spec.electronics.is_empty() {
                let queue = spec.electronics.queue.unwrap_or_default();
                spec.electronics.queue = Some(QueueSpec { depth, ..queue });
            }
        }
        if let (Some(keep), Some(buffer)) =
            (self.keep_free_blocks_before, &mut spec.electronics.buffer)
        {
            buffer.keep_free_blocks_before = keep;
        }
        Ok(spec)
    }

    /// Reads an experiment from a text; `origin` names it in errors, but for those that overrides
    /// have brought in.
    pub fn parse(text: &str, origin: &str, overrides: &[String]) -> Result<Self, ConfigError> {
        let fault = match overrides::read(text, overrides)? {
            Ok(config) => return Ok(config),
            Err(fault) => fault,
        };
        let says = |overrides: &[String]| match overrides::read(text, overrides) {
            Ok(Err(fault)) => Some(fault.says),
            _ => None,
        };
        let (origin, fault) = match overrides::to_blame(overrides, says) {
            Some(blamed) => {
                (blamed, Fault { says: overrides::with_way_out(fault.says, overrides), ..fault })
            }
            // Its own mistakes are shown with their line.
            None => (origin.into(), document::read::<Self>(text).err().unwrap_or(fault)),
        };
        Err(ConfigError::Parse { origin, message: fault.to_string() })
    }
}
