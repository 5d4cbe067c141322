//! An experiment as a TOML file: drive, policy, workload, seed.

mod array;
mod cache;
mod cache_preset;
mod commands;
mod effect;
mod error;
mod host;
mod measured;
pub(crate) mod overrides;
mod postmark;
mod scale;
mod sectors;
mod workload;

use std::path::{Path, PathBuf};

use freewheel_model::cache::StorageCacheSpec;
use freewheel_model::drive::spec::{ByOp, DriveSpec};
use freewheel_model::electronics::spec::{QUEUE_DEPTH_MAX, QueueSpec, WriteCache};
use freewheel_model::sched::PolicySpec;
use freewheel_trace::read_text;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::background::FreeblockConfig;
use crate::library;
use crate::toml_faults::Fault;

pub use array::{ArrayConfig, Layout, Spindles};
pub(crate) use array::{DRIVES_MAX, striping};
pub(crate) use cache::{check_cache_sectors, check_cache_spec};
pub(crate) use commands::check_commands;
pub use commands::{CommandsConfig, MarksConfig, OutsideScrubConfig};
pub use effect::WithoutEffect;
pub(crate) use effect::check_effect;
pub use error::ConfigError;
pub use host::HostConfig;
pub(crate) use measured::check_measured;
pub use overrides::key_and_value;
pub(crate) use postmark::cleaning_options;
pub use postmark::{PostmarkCleaner, PostmarkWorkload};
pub use scale::ScaleConfig;
pub(crate) use sectors::{check_sectors, sector};
pub(crate) use workload::check_workload;
pub use workload::{
    CoarseTimes, ThinkTimeDistribution, TraceWorkload, Workload, check_timing, open, reopen,
};

/// A simulation: everything that determines its result, except the bytes of a trace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SimConfig {
    /// Seed of every random stream.
    #[serde(default = "default_seed")]
    pub seed: u64,
    /// Name of a shipped drive, or path of a drive file, from the folder of the experiment.
    #[serde(default = "default_drive")]
    pub drive: String,
    /// The drive as of another year, or another member of its family.
    #[serde(default, skip_serializing_if = "is_default")]
    pub scale: ScaleConfig,
    /// Overrides whether the drive has zero-latency access.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zero_latency: Option<bool>,
    /// Foreground policy.
    #[serde(default)]
    pub scheduler: PolicySpec,
    /// Simulates the drive's electronics (buffer, command queue, overheads, bus) as far as its file
    /// describes them. Without them, requests meet the bare mechanics.
    #[serde(default = "yes")]
    pub electronics: bool,
    /// Overrides the depth of the drive's command queue. At 1 the policy above decides alone. It needs
    /// electronics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_depth: Option<u32>,
    /// Overrides whether the drive keeps the blocks that pass before those of a read. A head that keeps
    /// them stays on the track, so these reads leave no rotational gap. With `false` free work gets
    /// that latency, and later reads of such blocks go to the media. `true` needs electronics with a
    /// buffer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_free_blocks_before: Option<bool>,
    /// Overrides when the drive reports a write done before it is on the media, as `hdparm -W` does: `off`,
    /// `sequential` or `on`. With `off` a power cut loses no write that was reported done. `on` and
    /// `sequential` need electronics with a buffer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_cache: Option<WriteCache>,
    /// NCQ priority and duration limits of commands, and a scrub from outside the drive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commands: Option<CommandsConfig>,
    /// Several drives, as one volume or side by side.
    #[serde(default, skip_serializing_if = "ArrayConfig::is_single")]
    pub array: ArrayConfig,
    /// The storage system's cache in front of each arm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<StorageCacheSpec>,
    /// Background work in the rotational gaps of the workload: freeblock scheduling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub freeblock: Option<FreeblockConfig>,
    /// A scheduler outside the drive decides about the foreground and the free work, with a host's view
    /// of the drive. Without it the simulator schedules with full knowledge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostConfig>,
    /// Share of the requests that come before anything is measured: caches fill. Results count only
    /// requests that arrive later, and the work of drives and caches from then on.
    #[serde(default, skip_serializing_if = "is_default")]
    pub warm_up: f64,
    /// Number of equal parts, by requests, of what is measured. Each gets separate results.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub slices: u32,
    /// Source of requests.
    pub workload: Workload,
}

const fn one() -> u32 {
    1
}

/// Requests of a workload that does not say how many.
const fn default_requests() -> u64 {
    10_000
}

const fn unchanged() -> f64 {
    1.0
}

fn is_unchanged(factor: &f64) -> bool {
    *factor == unchanged()
}

fn is_one(value: &u32) -> bool {
    *value == 1
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
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

impl Default for SimConfig {
    /// The experiment of a file with `workload.kind = "closed"` and nothing else: one random request at a time.
    fn default() -> Self {
        Self {
            seed: default_seed(),
            drive: default_drive(),
            scale: ScaleConfig::default(),
            zero_latency: None,
            scheduler: PolicySpec::default(),
            electronics: yes(),
            queue_depth: None,
            keep_free_blocks_before: None,
            write_cache: None,
            commands: None,
            array: ArrayConfig::default(),
            cache: None,
            freeblock: None,
            host: None,
            warm_up: 0.0,
            slices: one(),
            workload: Workload::default(),
        }
    }
}

impl SimConfig {
    /// Reads an experiment and applies overrides of the form `workload.outstanding=20`. Relative paths
    /// in the file, of a drive or a trace, start at the file's folder. Paths in an override start at
    /// the current folder, where the user typed them.
    pub fn load(path: &Path, overrides: &[String]) -> Result<Self, ConfigError> {
        let text =
            read_text(path).map_err(|source| ConfigError::Read { path: path.into(), source })?;
        let mut config = Self::parse(&text, &path.display().to_string(), overrides)?;
        config.start_all_at(path.parent().unwrap_or(Path::new(".")), overrides);
        Ok(config)
    }

    /// Makes relative paths count from `folder`, so that the experiment can be written anywhere.
    pub fn start_paths_at(&mut self, folder: &Path) {
        self.start_all_at(folder, &[]);
    }

    fn start_all_at(&mut self, folder: &Path, overrides: &[String]) {
        if !overrides::bring(overrides, &["drive"]) {
            self.drive = library::from_folder(&self.drive, folder);
        }
        match &mut self.workload {
            Workload::Trace(trace) => {
                trace.start_paths_at(folder, |key| is_overridden(key, overrides))
            }
            Workload::Files(files) => {
                let log = files.log.as_mut().filter(|_| !is_overridden("log", overrides));
                if let Some(log) = log {
                    *log = folder.join(&*log);
                }
                for disks in &mut files.more_disks {
                    disks.drive = library::from_folder(&disks.drive, folder);
                }
            }
            _ => {}
        }
    }

    /// All traces that are replayed.
    pub fn trace_files(&self) -> Vec<&Path> {
        let Workload::Trace(trace) = &self.workload else { return Vec::new() };
        let files = std::iter::once(&trace.file).chain(&trace.merge);
        files.map(PathBuf::as_path).collect()
    }

    /// All files that it reads: drives that do not ship with the program, traces, a web log.
    pub fn files(&self) -> Vec<PathBuf> {
        let mut drives = vec![&self.drive];
        let mut files: Vec<PathBuf> = self.trace_files().into_iter().map(Path::to_owned).collect();
        match &self.workload {
            Workload::Trace(trace) => drives.extend(&trace.reference_drive),
            Workload::Files(of_files) => {
                files.extend(of_files.log.clone());
                drives.extend(of_files.more_disks.iter().map(|disks| &disks.drive));
            }
            _ => {}
        }
        files.extend(drives.into_iter().filter_map(|drive| library::file(drive)));
        files
    }

    /// Err for an experiment whose completions have no common order.
    pub fn check_observable(&self) -> Result<(), ConfigError> {
        match self.array.layout {
            Layout::Striped => Ok(()),
            Layout::Independent => Err(ConfigError::Unordered),
        }
    }

    /// True if the electronics of this drive file take part.
    pub(crate) fn has_electronics(&self, spec: &DriveSpec) -> bool {
        self.electronics && !spec.electronics.is_empty()
    }

    /// The drive file, scaled, with the overrides of the experiment.
    pub(crate) fn drive_spec(&self) -> Result<DriveSpec, ConfigError> {
        let mut spec = self.scale.apply(library::spec(&self.drive)?)?;
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
        if let (Some(write_cache), Some(buffer)) = (self.write_cache, &mut spec.electronics.buffer)
        {
            buffer.write_cache = write_cache;
        }
        if let Some(commands) = self.commands.as_ref().filter(|_| !spec.electronics.is_empty()) {
            commands.apply(&mut spec.electronics);
        }
        Ok(spec)
    }

    /// Reads an experiment from a text. `origin` names the text in errors; a fault of an override names
    /// the override.
    pub fn parse(text: &str, origin: &str, overrides: &[String]) -> Result<Self, ConfigError> {
        let fault = match overrides::read(text, overrides)? {
            Ok(config) => return Ok(config),
            Err(fault) => fault,
        };
        let (origin, fault) = match overrides::to_blame(overrides, |overrides| {
            says(overrides, text)
        }) {
            Some(blamed) => {
                (blamed, Fault { says: overrides::with_way_out(fault.says, overrides), ..fault })
            }
            // Faults of the text alone are reported with their line.
            None => match overrides::read(text, &[])? {
                Ok(_) => (origin.into(), fault),
                Err(of_text) => (origin.into(), of_text),
            },
        };
        Err(ConfigError::Parse { origin, message: fault.to_string() })
    }
}

fn is_overridden(key: &str, overrides: &[String]) -> bool {
    overrides::bring(overrides, &["workload", key])
}

fn says(overrides: &[String], text: &str) -> Option<String> {
    match overrides::read(text, overrides) {
        Ok(Err(fault)) => Some(fault.says),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::SimConfig;

    #[test]
    fn config_default_is_closed_workload() {
        let read = SimConfig::parse("workload = { kind = \"closed\" }", "test", &[]).unwrap();
        assert_eq!(read, SimConfig::default());
    }
}
