//! The traces that stand in for those of tr03: whose place each takes, its drive, the storage in use.
//!
//! tr03's own traces were never all published. Its means are over classes of workloads, and so are ours: a
//! class is the mean over its traces. Of the paper's five classes, merged personal computers have no stand-in.

use std::path::PathBuf;

use freewheel_sim::config::{ConfigError, TraceWorkload, open};
use freewheel_sim::source::{ReplayMode, TracedThinkTime};
use freewheel_trace::TraceInfo;
use freewheel_units::Bytes;

use super::public_traces::{DISKSIM_ASCII, HPLAJW, PublicFile, PublicTrace, VSCSI};
use super::tr03_measure::mean;
use super::{Context, HOLDS, Outcome, Row};

/// A class of the paper's workloads (its section 3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// P-Avg.: personal computers or workstations.
    Personal,
    /// S-Avg.: servers.
    Server,
    /// Ps-Avg.: personal computers with an infinitely fast processor.
    SpedUp,
    /// Sm: servers, merged.
    MergedServers,
}

impl Class {
    pub const ALL: [Self; 4] = [Self::Personal, Self::Server, Self::SpedUp, Self::MergedServers];

    pub fn name(self) -> &'static str {
        match self {
            Self::Personal => "P",
            Self::Server => "S",
            Self::SpedUp => "Ps",
            Self::MergedServers => "Sm",
        }
    }

    /// Whether it is one of the paper's "PC workloads", which decides the segments of sequential prefetching.
    pub fn is_personal(self) -> bool {
        matches!(self, Self::Personal | Self::SpedUp)
    }
}

/// The classes that have traces, each with the mean over its traces' values that are numbers.
pub(super) fn class_means(classes: &[Class], values: &[f64]) -> Vec<(Class, f64)> {
    Class::ALL
        .into_iter()
        .filter_map(|class| {
            let pairs = classes.iter().zip(values).filter(|(of, _)| **of == class);
            let values: Vec<f64> = pairs.map(|(_, &value)| value).collect();
            (!values.is_empty()).then(|| (class, mean(&values)))
        })
        .collect()
}

/// The mean over classes, as in the paper's table 10.
pub(super) fn mean_over_classes(means: &[(Class, f64)]) -> f64 {
    mean(&means.iter().map(|(_, mean)| *mean).collect::<Vec<f64>>())
}

/// Where the file of a stand-in is.
#[derive(Debug, Clone, Copy)]
enum Origin {
    /// A recording of this project.
    Recorded,
    Public(&'static PublicTrace),
    /// All recordings of this project as independent streams.
    Merged,
}

/// How much storage is in use.
#[derive(Debug, Clone, Copy)]
enum StorageUsed {
    /// The addresses that the trace reaches, volume after volume.
    Reached,
    /// The footprint over the share that tr03's table 1 gives for its traces.
    FromFootprint,
}

/// A trace, and how it is replayed.
#[derive(Debug)]
struct StandIn {
    name: &'static str,
    origin: Origin,
    class: Class,
    storage_used: StorageUsed,
}

/// Footprint over storage used: 0.31 on tr03's personal computers, 0.23 on its servers. The public traces
/// say nothing of what was allocated.
const FOOTPRINT_SHARE: f64 = 0.3;

const fn server(name: &'static str, origin: Origin) -> StandIn {
    StandIn { name, origin, class: Class::Server, storage_used: StorageUsed::FromFootprint }
}

/// The recordings of this project.
const RECORDINGS: [&str; 3] = ["pgbench", "fileserver", QUICK];

/// In the order of the notes of rows.
static STAND_INS: [StandIn; 8] = [
    StandIn {
        name: "hplajw",
        origin: Origin::Public(&HPLAJW),
        class: Class::Personal,
        storage_used: StorageUsed::Reached,
    },
    server("pgbench", Origin::Recorded),
    server("fileserver", Origin::Recorded),
    server(QUICK, Origin::Recorded),
    server("vscsi", Origin::Public(&VSCSI)),
    server("disksim-ascii", Origin::Public(&DISKSIM_ASCII)),
    StandIn {
        name: "hplajw sped up",
        origin: Origin::Public(&HPLAJW),
        class: Class::SpedUp,
        storage_used: StorageUsed::Reached,
    },
    StandIn {
        name: "recordings merged",
        origin: Origin::Merged,
        class: Class::MergedServers,
        storage_used: StorageUsed::FromFootprint,
    },
];

/// The only trace of a short run.
pub(super) const QUICK: &str = "sqlite";

/// The trace that records no completions and would saturate its disk without feedback.
const WITHOUT_COMPLETIONS: &str = "vscsi";

/// The drive on which it is simulated at its recorded arrivals first, for completions: the library's largest,
/// which keeps up with it.
const REFERENCE_DRIVE: &str = "exos-x24-24tb";

/// Who stands in for whom.
const STANDING_IN: &str = "P: hplajw (a workstation of 1992); S: pgbench, fileserver, sqlite (recorded), vscsi (a virtual machine's disk, its completions inferred on exos-x24-24tb) and disksim-ascii (14 volumes, by arrival); Ps: hplajw with n infinite; Sm: the three recordings merged; no trace for Pm. The mean is over the classes";

#[derive(Debug, Clone)]
pub(super) struct TraceHere {
    pub name: &'static str,
    /// Whose place it takes.
    pub class: Class,
    /// How it is replayed.
    pub workload: TraceWorkload,
    /// Result of the pass over it.
    pub info: TraceInfo,
    /// What tr03's caches and buffers are a share of.
    pub storage_used: Bytes,
    /// Addresses that it reaches, one volume after the other.
    pub reached: Bytes,
    /// The file, unless it is one of the repository.
    public: Option<PublicFile>,
}

impl TraceHere {
    /// Whether it is generated in place of one that is missing.
    pub fn is_generated(&self) -> bool {
        self.public.as_ref().is_some_and(PublicFile::is_generated)
    }

    /// Its name in notes.
    pub fn label(&self) -> String {
        let generated = if self.is_generated() { " (generated)" } else { "" };
        format!("{}{generated}", self.name)
    }
}

/// Who stands in for whom, for every row on these traces, and where the public ones are to be had.
pub(super) fn standing_in(traces: &[TraceHere]) -> String {
    let all: String = traces
        .iter()
        .filter(|trace| trace.class != Class::SpedUp)
        .filter_map(|trace| Some(format!(". {}: {}", trace.name, trace.public.as_ref()?.words)))
        .collect();
    format!("{STANDING_IN}{all}")
}

/// Counts and spans do not depend on where in a step of its clock a request lies.
const ANY_SEED: u64 = 1;

/// What is known of the files of a trace.
struct Scanned {
    /// Of the first file.
    info: TraceInfo,
    reached: u64,
    footprint: u64,
}

impl Scanned {
    /// Passes over these files.
    fn of(files: &[PathBuf]) -> Result<Self, ConfigError> {
        let mut infos = Vec::new();
        for file in files {
            let workload = TraceWorkload { file: file.clone(), ..TraceWorkload::default() };
            infos.push(TraceInfo::scan(&mut open(&workload, ANY_SEED)?)?);
        }
        Ok(Self {
            reached: infos.iter().map(reached).sum(),
            footprint: infos
                .iter()
                .map(|info| info.footprint_bytes.unwrap_or_else(|| reached(info)))
                .sum(),
            info: infos.swap_remove(0),
        })
    }
}

/// Addresses that a trace reaches.
fn reached(info: &TraceInfo) -> u64 {
    info.devices.values().map(|device| device.end_block * 512).sum()
}

impl StandIn {
    /// The trace; the inner Err says why its recording is missing.
    fn find(&self, context: &Context<'_>) -> Result<Result<TraceHere, String>, ConfigError> {
        let recording = |name: &str| context.recording(&format!("{name}-ext4"));
        let files = match self.origin {
            Origin::Public(trace) => {
                let public = trace.open(context)?;
                return Ok(Ok(self.scan(vec![public.path().into()], Some(public))?));
            }
            Origin::Recorded => recording(self.name).map(|file| vec![file]),
            Origin::Merged => RECORDINGS.into_iter().map(recording).collect(),
        };
        Ok(match files {
            Ok(files) => Ok(self.scan(files, None)?),
            Err(why) => Err(why),
        })
    }

    fn scan(
        &self,
        mut files: Vec<PathBuf>,
        public: Option<PublicFile>,
    ) -> Result<TraceHere, ConfigError> {
        let Scanned { info, reached, footprint } = Scanned::of(&files)?;
        let storage_used = match self.storage_used {
            StorageUsed::Reached => reached,
            StorageUsed::FromFootprint => (footprint as f64 / FOOTPRINT_SHARE) as u64,
        };
        let merge = files.split_off(1);
        Ok(TraceHere {
            name: self.name,
            class: self.class,
            workload: self.workload(files.remove(0), merge, &info),
            info,
            storage_used: Bytes::new(storage_used),
            reached: Bytes::new(reached),
            public,
        })
    }

    /// The replay: with the paper's feedback, but for disksim-ascii, whose 14 volumes are no single stream.
    fn workload(&self, file: PathBuf, merge: Vec<PathBuf>, info: &TraceInfo) -> TraceWorkload {
        let lacks_completions = self.name == WITHOUT_COMPLETIONS;
        let replay = if info.tells_dependence() || lacks_completions {
            ReplayMode::Dependent
        } else {
            ReplayMode::Arrivals
        };
        let think_time = match self.class {
            Class::SpedUp => TracedThinkTime::Speedup(f64::INFINITY),
            _ => TracedThinkTime::Kept,
        };
        let reference_drive = lacks_completions.then(|| REFERENCE_DRIVE.into());
        TraceWorkload {
            file,
            merge,
            replay,
            think_time,
            reference_drive,
            ..TraceWorkload::default()
        }
    }
}

/// The stand-ins of this run, or the outcome of a claim that lacks some.
pub(super) fn traces(
    context: &Context<'_>,
    of_class: &dyn Fn(Class) -> bool,
) -> Result<Result<Vec<TraceHere>, Outcome>, ConfigError> {
    let mut here = Vec::new();
    let mut missing: Vec<Row> = Vec::new();
    for stand_in in STAND_INS
        .iter()
        .filter(|trace| of_class(trace.class) && (!context.options.quick || trace.name == QUICK))
    {
        match stand_in.find(context)? {
            Ok(trace) => here.push(trace),
            Err(why) => {
                let quantity = format!("{}: its trace is there", stand_in.name);
                missing.push(context.measured(&quantity, HOLDS, 0.0).not_run(why));
            }
        }
    }
    if missing.is_empty() {
        return Ok(Ok(here));
    }
    Ok(Err(Outcome { rows: missing, figures: Vec::new() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_over_classes_then_traces() {
        use Class::{MergedServers, Personal, Server, SpedUp};
        let classes = [Personal, Server, Server, Server, SpedUp, MergedServers];
        let values = [10.0, 1.0, 2.0, 6.0, 20.0, f64::NAN];
        let means = class_means(&classes, &values);
        assert_eq!(means[..3], [(Personal, 10.0), (Server, 3.0), (SpedUp, 20.0)]);
        assert!(means[3].1.is_nan());
        // What cannot improve does not count.
        assert_eq!(mean_over_classes(&means), 11.0);
        assert_eq!(mean_over_classes(&class_means(&classes[1..4], &values[1..4])), 3.0);
    }
}
