//! The traces that stand in for those of tr03: whose place each takes, its drive, the storage in use.
//!
//! tr03's own traces were never all published. Every mean over its classes is a mean over these here.

use std::path::PathBuf;

use freewheel_sim::config::{ConfigError, TraceWorkload, open};
use freewheel_sim::source::ReplayMode;
use freewheel_trace::TraceInfo;
use freewheel_units::Bytes;

use super::public_traces::{DISKSIM_ASCII, HPLAJW, PublicFile, PublicTrace, VSCSI};
use super::{Context, HOLDS, Outcome, Row};

/// What a trace stands for, which decides the segments of sequential prefetching.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// A personal computer or workstation.
    Personal,
    /// A server.
    Server,
}

/// Where the file of a stand-in is.
#[derive(Debug, Clone, Copy)]
enum Origin {
    /// A recording of this project.
    Recorded,
    /// A public trace.
    Public(&'static PublicTrace),
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

/// In the order of the notes of rows.
static STAND_INS: [StandIn; 6] = [
    StandIn {
        name: "hplajw",
        origin: Origin::Public(&HPLAJW),
        class: Class::Personal,
        storage_used: StorageUsed::Reached,
    },
    StandIn {
        name: "pgbench",
        origin: Origin::Recorded,
        class: Class::Server,
        storage_used: StorageUsed::FromFootprint,
    },
    StandIn {
        name: "fileserver",
        origin: Origin::Recorded,
        class: Class::Server,
        storage_used: StorageUsed::FromFootprint,
    },
    StandIn {
        name: QUICK,
        origin: Origin::Recorded,
        class: Class::Server,
        storage_used: StorageUsed::FromFootprint,
    },
    StandIn {
        name: "vscsi",
        origin: Origin::Public(&VSCSI),
        class: Class::Server,
        storage_used: StorageUsed::FromFootprint,
    },
    StandIn {
        name: "disksim-ascii",
        origin: Origin::Public(&DISKSIM_ASCII),
        class: Class::Server,
        storage_used: StorageUsed::FromFootprint,
    },
];

/// The only trace of a short run.
pub(super) const QUICK: &str = "sqlite";

/// Who stands in for whom.
const STANDING_IN: &str = "hplajw (a workstation of 1992) for the personal computers; pgbench, fileserver, sqlite (recorded), vscsi (a virtual machine's disk) and disksim-ascii (14 volumes) for the servers; no trace for the merged and the sped-up ones. The mean is over the traces";

/// A trace that is there.
#[derive(Debug, Clone)]
pub(super) struct TraceHere {
    name: &'static str,
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
    let public =
        |trace: &TraceHere| Some(format!(". {}: {}", trace.name, trace.public.as_ref()?.words));
    let all: String = traces.iter().filter_map(public).collect();
    format!("{STANDING_IN}{all}")
}

/// Counts and spans do not depend on where in a step of its clock a request lies.
const ANY_SEED: u64 = 1;

impl StandIn {
    /// The trace; the inner Err says why its recording is missing.
    fn find(&self, context: &Context<'_>) -> Result<Result<TraceHere, String>, ConfigError> {
        match self.origin {
            Origin::Public(trace) => {
                let public = trace.open(context)?;
                Ok(Ok(self.scan(public.path().into(), Some(public))?))
            }
            Origin::Recorded => match context.recording(&format!("{}-ext4", self.name)) {
                Ok(path) => Ok(Ok(self.scan(path, None)?)),
                Err(why) => Ok(Err(why)),
            },
        }
    }

    fn scan(&self, file: PathBuf, public: Option<PublicFile>) -> Result<TraceHere, ConfigError> {
        let workload = TraceWorkload { file, ..TraceWorkload::default() };
        let info = TraceInfo::scan(&mut open(&workload, ANY_SEED)?)?;
        let is_dependent = info.tells_dependence();
        let reached: u64 = info.devices.values().map(|device| device.end_block * 512).sum();
        let footprint = info.footprint_bytes.unwrap_or(reached) as f64;
        let storage_used = match self.storage_used {
            StorageUsed::Reached => reached,
            StorageUsed::FromFootprint => (footprint / FOOTPRINT_SHARE) as u64,
        };
        let replay = if is_dependent { ReplayMode::Dependent } else { ReplayMode::Arrivals };
        Ok(TraceHere {
            name: self.name,
            class: self.class,
            workload: TraceWorkload { replay, ..workload },
            info,
            storage_used: Bytes::new(storage_used),
            reached: Bytes::new(reached),
            public,
        })
    }
}

/// The stand-ins of this run, or the outcome of a claim that lacks some.
pub(super) fn traces(
    context: &Context<'_>,
    of_class: &dyn Fn(Class) -> bool,
) -> Result<Result<Vec<TraceHere>, Outcome>, ConfigError> {
    let is_wanted =
        |trace: &&StandIn| of_class(trace.class) && (!context.options.quick || trace.name == QUICK);
    let mut here = Vec::new();
    let mut missing: Vec<Row> = Vec::new();
    for stand_in in STAND_INS.iter().filter(is_wanted) {
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
