//! An experiment: a plan that is checked once, and the runs of it.
//!
//! [`Experiment`] is the plan: the configuration, checked when it is built, with the drive and all that takes long
//! to find out. [`Run`] is built from it: what fills its gaps, and who watches.

mod arms;
mod background;
mod checks;
mod files;
mod fleet;
mod inferred;
mod other_times;
mod own_policies;
mod prepared;
mod reporting;
mod run;
mod streams;
mod workload;

use std::path::Path;
use std::sync::Arc;

use freewheel_array::files::{FilesSetup, unsynchronised};
use freewheel_freeblock::Planner;
use freewheel_model::drive::Drive;
use freewheel_model::drive::spec::DriveSpec;
use freewheel_model::striping::Striping;
use freewheel_trace::{TraceError, TraceInfo, TraceReader};
use freewheel_units::Bytes;

use self::checks::{
    check_cache, check_freeblock, check_host, check_scheduler, files_setup, least_bytes,
    postmark_spec,
};
use self::fleet::Member;
use self::own_policies::OwnPolicies;
use self::prepared::PreparedRuns;
use self::streams::{Stream, check_merge};
use crate::completion::Completion;
use crate::config::{
    ArrayConfig, ConfigError, SimConfig, TraceWorkload, WithoutEffect, Workload, check_commands,
    check_effect, check_measured, check_sectors, check_workload, open, overrides, striping,
};
use crate::engine::{RunParts, VolumeLayout};
use crate::library;
use crate::postmark::PostmarkSpec;
use crate::result::{RunResult, Tally};
use crate::source::{KeptRecords, ReplayTiming};

pub use self::run::Run;

/// Receives the progress of a run: done and total, in any unit. Runs call it from any thread, one at a
/// time.
pub type Progress<'a> = &'a mut (dyn FnMut(u64, u64) + Send);

/// Receives every completion of a run, in order of time.
pub type Observer<'a> = &'a mut dyn FnMut(&Completion);

/// Planners of free work, one for each arm in order; empty without free work.
pub type Planners<'a> = Vec<&'a mut dyn Planner>;

/// An experiment with its drive built and all of it checked: ready to run, any number of times.
#[derive(Debug, Clone)]
pub struct Experiment {
    /// Configuration from which it was built.
    pub config: SimConfig,
    /// Drive file with overrides.
    pub spec: DriveSpec,
    /// The drive.
    pub drive: Arc<Drive>,
    /// Striping of the volume over drives and arms; of one independent drive over its arms.
    pub striping: Striping,
    /// Result of a first pass over the trace, if there is one.
    pub trace: Option<TraceInfo>,
    /// The trace and those merged with it; empty without a trace.
    streams: Vec<Stream>,
    /// PostMark's parameters, if that is the workload.
    postmark: Option<PostmarkSpec>,
    /// Disks and files, if files are the workload.
    files: Option<Arc<FilesSetup>>,
    /// Policies of the caller's, in place of the configured ones.
    own: OwnPolicies,
    /// Drives of a striped volume after the first, where spindles turn at different rates.
    others: Arc<[Arc<Drive>]>,
    /// Background tasks of earlier runs on the drive.
    prepared: Arc<PreparedRuns>,
}

impl Experiment {
    /// Builds the drive and scans the trace.
    pub fn new(config: SimConfig) -> Result<Self, ConfigError> {
        // The footprint takes memory, and no experiment needs it.
        Self::with_scan(config, |reader| TraceInfo::scan_without_footprint(reader, &mut |_| {}))
    }

    /// Like [`Self::new`], with `scan` for the pass over the trace, if there is one.
    pub fn with_scan(
        config: SimConfig,
        scan: impl FnOnce(&mut TraceReader) -> Result<TraceInfo, TraceError>,
    ) -> Result<Self, ConfigError> {
        // A wrong name is known before a long trace is read.
        let experiment = Self::checked(config)?;
        let trace = match &experiment.config.workload {
            Workload::Trace(trace) => Some(scan(&mut open(trace, experiment.config.seed)?)?),
            _ => None,
        };
        experiment.with_traces(trace, None)
    }

    /// Names the cause when [`Self::check`] fails or the trace cannot be opened: the overrides without
    /// which the fault vanishes, as given, or else the file.
    pub fn to_blame(path: &Path, overrides: &[String]) -> String {
        let fault = |overrides: &[String]| {
            let checked = SimConfig::load(path, overrides).and_then(|config| {
                Self::check(&config)?;
                if let Workload::Trace(trace) = &config.workload {
                    trace
                        .streams()
                        .iter()
                        .try_for_each(|stream| open(stream, config.seed).map(drop))?;
                }
                Ok(())
            });
            checked.err().map(|error| error.to_string())
        };
        overrides::to_blame(overrides, fault).unwrap_or_else(|| path.display().to_string())
    }

    /// Checks drive and policy quickly, before a long trace is read.
    pub fn check(config: &SimConfig) -> Result<(), ConfigError> {
        Self::checked(config.clone()).map(drop)
    }

    /// Checks several configurations. Those that follow on each other share the drive, where they have the
    /// same.
    pub fn check_each(configs: impl Iterator<Item = SimConfig>) -> Result<(), ConfigError> {
        let mut before: Option<Self> = None;
        for config in configs {
            let spec = config.drive_spec()?;
            before = Some(Self::checked_on(config, spec, before.as_ref())?);
        }
        Ok(())
    }

    /// Like [`Self::new`] for a trace that was scanned before. Panics for a trace without its `trace`
    /// info.
    pub fn with_trace_info(
        config: SimConfig,
        trace: Option<TraceInfo>,
    ) -> Result<Self, ConfigError> {
        let is_trace = matches!(config.workload, Workload::Trace(_));
        assert!(!is_trace || trace.is_some(), "a trace has to be looked at first");
        Self::checked(config)?.with_traces(trace, None)
    }

    /// Experiment on another drive, which is used as it is given.
    pub fn on_drive(&self, spec: DriveSpec) -> Result<Self, ConfigError> {
        self.build_beside(self.config.clone(), spec)
    }

    /// Experiment with the same load under another configuration. Both share the drive, where they have the
    /// same, and what is known of the trace: kept records, and completions of a reference drive. Panics for
    /// another load.
    pub fn with_config(&self, config: SimConfig) -> Result<Self, ConfigError> {
        let load = |config: &SimConfig| (config.workload.clone(), config.seed);
        assert!(load(&config) == load(&self.config), "another load");
        let spec = config.drive_spec()?;
        self.build_beside(config, spec)
    }

    /// True if a configuration has this load: the same workload with the same seed.
    pub fn has_load_of(&self, config: &SimConfig) -> bool {
        (config.seed, &config.workload) == (self.config.seed, &self.config.workload)
    }

    /// Experiment of another configuration. Both share the drive, where they have the same, and under the
    /// same load what is known of the trace.
    pub fn beside(&self, config: SimConfig) -> Result<Self, ConfigError> {
        if self.has_load_of(&config) {
            return self.with_config(config);
        }
        if matches!(config.workload, Workload::Trace(_)) {
            return Self::new(config);
        }
        let spec = config.drive_spec()?;
        Self::checked_on(config, spec, Some(self))
    }

    /// Experiment with the same trace under another replay. Both share the drive and kept records;
    /// completions are inferred anew where the replay needs them.
    pub fn replayed(&self, workload: TraceWorkload) -> Result<Self, ConfigError> {
        let config = SimConfig { workload: Workload::Trace(workload), ..self.config.clone() };
        let other = Self::checked_on(config, self.spec.clone(), Some(self))?;
        let mut other = other.with_traces(self.trace.clone(), None)?;
        for (stream, own) in other.streams.iter_mut().zip(&self.streams) {
            stream.kept.clone_from(&own.kept);
        }
        Ok(other)
    }

    /// Replays these records instead of reading the file of its trace for each run: all that the first pass
    /// over it gave, with the options of its workload. Experiments that are made out of this one do too.
    pub fn keep_records(&mut self, records: KeptRecords) {
        if let Some(first) = self.streams.first_mut() {
            first.kept = Some(records);
        }
    }

    /// The records that it replays instead of reading the file, where they are kept, are those of one trace
    /// with all its devices, and need no completions of a reference drive.
    pub fn kept_records(&self) -> Option<&KeptRecords> {
        let [Stream { workload, kept, inferred: None, .. }] = &self.streams[..] else {
            return None;
        };
        kept.as_ref().filter(|_| workload.device.is_none())
    }

    fn build_beside(&self, config: SimConfig, spec: DriveSpec) -> Result<Self, ConfigError> {
        Self::checked_on(config, spec, Some(self))?.with_traces(self.trace.clone(), Some(self))
    }

    /// All of an experiment but its trace.
    fn checked(config: SimConfig) -> Result<Self, ConfigError> {
        let spec = config.drive_spec()?;
        Self::checked_on(config, spec, None)
    }

    /// Like [`Self::checked`] on a drive that is used as it is given: the one of `beside`, where it is the same.
    fn checked_on(
        mut config: SimConfig,
        spec: DriveSpec,
        beside: Option<&Self>,
    ) -> Result<Self, ConfigError> {
        let (drive, prepared) = match beside.filter(|beside| Drive::is_same(&beside.spec, &spec)) {
            Some(beside) => (Arc::clone(&beside.drive), Arc::clone(&beside.prepared)),
            None => (Arc::new(library::build(&spec, &config.drive)?), Arc::default()),
        };
        let striping = striping(&config.array, &drive)?;
        let others = other_drives(&config, &spec, beside)?;
        check_scheduler(&config)?;
        check_effect(&config, &spec)?;
        check_freeblock(&config, &spec, &drive, &striping)?;
        check_host(&config)?;
        check_cache(&config, &spec)?;
        check_measured(&config)?;
        check_sectors(&config, &spec)?;
        check_commands(&config, &spec, striping.blocks(), least_bytes(&config, &spec))?;
        let postmark = postmark_spec(&config, &spec, &drive, &striping)?;
        check_merge(&config)?;
        check_workload(&config.workload, None, striping.blocks())?;
        let files = files_setup(&config, &spec)?;
        config.array.holds_files = files.is_some();
        let (trace, streams, own) = (None, Vec::new(), OwnPolicies::default());
        Ok(Self {
            config,
            spec,
            drive,
            striping,
            trace,
            streams,
            postmark,
            files,
            own,
            others,
            prepared,
        })
    }

    /// The experiment with its trace, of which this is the first pass: what is known of the traces of an
    /// experiment with the same load, or else found out.
    fn with_traces(
        mut self,
        trace: Option<TraceInfo>,
        same_load: Option<&Self>,
    ) -> Result<Self, ConfigError> {
        self.streams = match same_load.filter(|_| trace.is_some()) {
            Some(other) => other.streams.clone(),
            None => streams::streams(&self.config, trace.as_ref())?,
        };
        self.trace = trace;
        streams::check(&self.streams, self.striping.blocks())?;
        self.placements()?;
        for (number, stream) in (0..).zip(&mut self.streams) {
            stream.infer(&self.config, number)?;
        }
        Ok(self)
    }

    /// First passes over all its traces: that of `file`, and those merged with it.
    pub fn traces(&self) -> impl Iterator<Item = &TraceInfo> {
        self.streams.iter().map(|stream| &stream.trace)
    }

    /// Size of the trace's address space, zero without a trace. Independent drives count together, and so
    /// do merged traces.
    pub fn trace_space(&self) -> Bytes {
        let mut placements = self.placements().expect("checked when it was built");
        if self.streams.len() > 1 {
            // Each of them knows the space of all.
            placements.truncate(1);
        }
        Bytes::new(placements.iter().map(|placement| placement.space().get()).sum())
    }

    /// True if the trace is replayed by dependence.
    pub fn is_dependent(&self) -> bool {
        let is_dependent = |Stream { workload, trace, .. }: &Stream| {
            matches!(workload.timing(Some(trace)), ReplayTiming::Dependent(_))
        };
        self.streams.first().is_some_and(is_dependent)
    }

    fn result(&self, tally: Tally) -> RunResult {
        let inferred = self.streams.iter().filter_map(|stream| stream.inferred.as_ref());
        let inferred_completions = inferred.map(|inferred| inferred.completions.clone()).collect();
        RunResult { inferred_completions, ..tally.result() }
    }

    /// The experiment of one independent drive.
    fn alone(&self, member: &Member) -> Self {
        let mut alone = self.clone();
        alone.config.seed = member.seed;
        alone.config.array = ArrayConfig::default();
        alone.others = Arc::default();
        if let Workload::Trace(workload) = &mut alone.config.workload {
            workload.device = member.device;
            alone.streams.iter_mut().for_each(|stream| stream.workload.device = member.device);
        }
        alone
    }

    /// The volume, striped over its arms.
    fn striped(&self) -> VolumeLayout<'_> {
        VolumeLayout::Striped(&self.striping)
    }

    /// Err for an experiment with warm-up or slices, which this excludes.
    fn check_measured_whole(&self, excluded: &str) -> Result<(), ConfigError> {
        if self.config.is_measured_whole() {
            return Ok(());
        }
        let message = format!("`warm_up` and `slices` exclude {excluded}: leave them out");
        Err(ConfigError::Measured { message })
    }

    /// Number of requests of its workload, as far as it is known before.
    fn requests(&self) -> u64 {
        match &self.config.workload {
            Workload::Closed { requests, .. } | Workload::Open { requests, .. } => *requests,
            Workload::Trace(_) => self.streams.iter().map(Stream::requests).sum(),
            Workload::Files(workload) => match &self.files {
                Some(setup) if workload.log.is_some() => setup.traced.len() as u64,
                _ => workload.requests,
            },
            Workload::Postmark(_) => 0,
        }
    }

    /// The warm-up and the slices of a run.
    fn parts(&self) -> RunParts {
        let SimConfig { warm_up, slices, .. } = self.config;
        if self.config.is_measured_whole() {
            return RunParts::whole();
        }
        RunParts::new(self.requests(), warm_up, slices)
    }

    /// Keys that are given without an effect in this run of it.
    pub fn without_effect(&self, result: &RunResult) -> Vec<WithoutEffect> {
        self.config.without_effect(&self.spec, self.arm_count(), result.outstanding_max)
    }

    /// True if the drive's electronics take part.
    pub fn has_electronics(&self) -> bool {
        self.config.has_electronics(&self.spec)
    }
}

/// Drives of a striped volume after the first. They are shared with `beside`, where they are the same.
fn other_drives(
    config: &SimConfig,
    spec: &DriveSpec,
    beside: Option<&Experiment>,
) -> Result<Arc<[Arc<Drive>]>, ConfigError> {
    let drives = match config.workload {
        Workload::Files(_) => 1,
        _ => config.array.free_spindles(),
    };
    if drives == 1 {
        return Ok(Arc::default());
    }
    let known = beside.filter(|beside| Drive::is_same(&beside.spec, spec));
    if let Some(known) = known.filter(|known| known.others.len() as u32 == drives - 1) {
        return Ok(Arc::clone(&known.others));
    }
    let all = unsynchronised(spec, drives).map_err(|error| ConfigError::Array {
        message: format!("`drives` is {drives}: {error}"),
    })?;
    Ok(all.into_iter().skip(1).collect())
}
