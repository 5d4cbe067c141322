//! An experiment with its drive built, and its runs.

mod files;
mod fleet;
mod inferred;
mod other_times;
mod own_policies;
mod prepared;
mod reporting;
mod streams;
mod write_back;

use std::path::Path;
use std::sync::Arc;

use freewheel_array::files::FilesSetup;
use freewheel_freeblock::{Planner, TimedPlanner, Timer};
use freewheel_host::SameTrack;
use freewheel_model::drive::spec::{ByOp, DriveSpec};
use freewheel_model::drive::{Drive, Sectors, SeekMargins};
use freewheel_model::electronics::Unit;
use freewheel_model::electronics::spec::ElectronicsSpec;
use freewheel_model::log_disk::LogDiskSpec;
use freewheel_model::sched::linux::BlockLayer;
use freewheel_model::sched::{MarkedFirst, ParsePolicyError, Policy, PolicySpec};
use freewheel_model::striping::Striping;
use freewheel_model::zoned::spec::ZonedKind;
use freewheel_trace::{Record, TraceError, TraceInfo, TraceReader};
use freewheel_units::{Blocks, Bytes, SimDuration};

use self::files::check_files;
use self::fleet::Member;
use self::own_policies::OwnPolicies;
use self::prepared::{PreparedFor, PreparedRuns};
use self::reporting::{REPORT_EVERY, REPORT_EVERY_DECIDED, Reporting};
use self::streams::{Stream, check_merge};
use crate::arm_executor::{ArmExecutor, SeekErrors};
use crate::background::{
    Background, FreeblockConfig, PreparedTasks, STALLED_REQUESTS_MAX, Unfinished, UntilDone,
    promotion_anchor,
};
use crate::cached::CachedDevice;
use crate::cached_arm::behind_cache;
use crate::completion::Completion;
use crate::config::{
    ArrayConfig, CacheConfig, ConfigError, DRIVES_MAX, HostConfig, Layout, PostmarkCleaner,
    PostmarkWorkload, SimConfig, ThinkTimeDistribution, TraceWorkload, WithoutEffect, Workload,
    check_commands, check_effect, check_measured, check_sectors, check_workload, cleaning_options,
    open, overrides, reopen, sector, striping,
};
use crate::device::{Device, Mechanics, WholeDrive};
use crate::engine::{self, Arm, RunParts, VolumeLayout, VolumeZones};
use crate::gap_destages::GapDestages;
use crate::host::HostDevice;
use crate::library;
use crate::linux_device::LinuxDevice;
use crate::postmark::{FreeReads, NoFreeReads, PostmarkSpec, cleaning_task};
use crate::result::{PostmarkResult, RunResult, Tally};
use crate::source::{
    Closed, Fit, KeptRecords, MarkedCommands, Merged, Open, Pattern, PatternSpec, Placement,
    Records, Replay, ReplayTiming, Source, ThinkTime, WithCompletions,
};

/// An experiment with its drive built: ready to run, any number of times.
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
    /// Background tasks of earlier runs on the drive.
    prepared: Arc<PreparedRuns>,
}

/// Receives the progress of a run: done and total, in any unit. Runs call it from any thread, one at a
/// time.
pub type Progress<'a> = &'a mut (dyn FnMut(u64, u64) + Send);

/// Receives every completion of a run, in order of time.
pub type Observer<'a> = &'a mut dyn FnMut(&Completion);

/// Planners of free work, one for each arm in order; empty without free work.
pub type Planners<'a> = Vec<&'a mut dyn Planner>;

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
        let Workload::Trace(trace) = &config.workload else {
            return Self::with_trace_info(config, None);
        };
        // A wrong name is known before a long trace is read.
        Self::check(&config)?;
        let info = scan(&mut open(trace, config.seed)?)?;
        Self::with_trace_info(config, Some(info))
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
        Self::check_each(std::iter::once(config.clone()))
    }

    /// Checks several configurations. Those that follow on each other share the drive, where they have the
    /// same.
    pub fn check_each(configs: impl Iterator<Item = SimConfig>) -> Result<(), ConfigError> {
        let mut built: Option<(DriveSpec, Drive)> = None;
        for config in configs {
            let spec = config.drive_spec()?;
            let drive = match built.take().filter(|(before, _)| Drive::is_same(before, &spec)) {
                Some((_, drive)) => drive,
                None => library::build(&spec, &config.drive)?,
            };
            Self::check_on(&config, &spec, &drive)?;
            built = Some((spec, drive));
        }
        Ok(())
    }

    fn check_on(config: &SimConfig, spec: &DriveSpec, drive: &Drive) -> Result<(), ConfigError> {
        let striping = striping(&config.array, drive)?;
        check_scheduler(config)?;
        check_effect(config, spec)?;
        check_freeblock(config, spec, drive, &striping)?;
        check_host(config)?;
        check_cache(config, spec)?;
        check_measured(config)?;
        check_sectors(config, spec)?;
        check_commands(config, spec, striping.blocks(), least_bytes(config, spec))?;
        postmark_spec(config, spec, drive, &striping)?;
        check_merge(config)?;
        check_workload(&config.workload, None, striping.blocks())?;
        files_setup(config, spec).map(drop)
    }

    /// Like [`Self::new`] for a trace that was scanned before. Panics for a trace without its `trace`
    /// info.
    pub fn with_trace_info(
        config: SimConfig,
        trace: Option<TraceInfo>,
    ) -> Result<Self, ConfigError> {
        let is_trace = matches!(config.workload, Workload::Trace(_));
        assert!(!is_trace || trace.is_some(), "a trace has to be looked at first");
        let spec = config.drive_spec()?;
        Self::build(config, spec, trace, None)
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
        Self::build(config, spec, None, Some(self))
    }

    /// Experiment with the same trace under another replay. Both share the drive and kept records;
    /// completions are inferred anew where the replay needs them.
    pub fn replayed(&self, workload: TraceWorkload) -> Result<Self, ConfigError> {
        let config = SimConfig { workload: Workload::Trace(workload), ..self.config.clone() };
        let mut other = Self::build(config, self.spec.clone(), self.trace.clone(), None)?;
        other.drive = Arc::clone(&self.drive);
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
        Self::build(config, spec, self.trace.clone(), Some(self))
    }

    /// Builds it; of an experiment with the same load and this `trace`, it takes over what fits.
    fn build(
        mut config: SimConfig,
        spec: DriveSpec,
        trace: Option<TraceInfo>,
        beside: Option<&Self>,
    ) -> Result<Self, ConfigError> {
        let (drive, prepared) = match beside.filter(|beside| Drive::is_same(&beside.spec, &spec)) {
            Some(beside) => (Arc::clone(&beside.drive), Arc::clone(&beside.prepared)),
            None => (Arc::new(library::build(&spec, &config.drive)?), Arc::default()),
        };
        let striping = striping(&config.array, &drive)?;
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
        let streams = match beside.filter(|_| trace.is_some()) {
            Some(beside) => beside.streams.clone(),
            None => streams::streams(&config, trace.as_ref())?,
        };
        streams::check(&config.workload, &streams, striping.blocks())?;
        let files = files_setup(&config, &spec)?;
        config.array.holds_files = files.is_some();
        let own = OwnPolicies::default();
        let mut experiment =
            Self { config, spec, drive, striping, trace, streams, postmark, files, own, prepared };
        experiment.placements()?;
        for (number, stream) in (0..).zip(&mut experiment.streams) {
            stream.infer(&experiment.config, number)?;
        }
        Ok(experiment)
    }

    /// The records of its trace, with completions inferred where the replay needs them.
    pub fn records(
        &self,
        workload: &TraceWorkload,
    ) -> Result<WithCompletions<Records>, ConfigError> {
        self.records_of(workload, self.streams.first())
    }

    fn records_of(
        &self,
        workload: &TraceWorkload,
        stream: Option<&Stream>,
    ) -> Result<WithCompletions<Records>, ConfigError> {
        let inferred = stream.and_then(|stream| stream.inferred.as_ref());
        let responses = inferred.map(|inferred| inferred.responses.clone());
        let records = match stream {
            Some(Stream { kept: Some(kept), .. }) => kept.clone().into(),
            Some(stream) => reopen(workload, stream.seed, &stream.trace)?.into(),
            None => open(workload, self.config.seed)?.into(),
        };
        Ok(WithCompletions::new(records, responses, workload.device))
    }

    /// First passes over all its traces: that of `file`, and those merged with it.
    pub fn traces(&self) -> impl Iterator<Item = &TraceInfo> {
        self.streams.iter().map(|stream| &stream.trace)
    }

    /// Places of the trace on the volume, or on each independent drive; empty without a trace.
    fn placements(&self) -> Result<Vec<Placement>, ConfigError> {
        let Workload::Trace(workload) = &self.config.workload else { return Ok(Vec::new()) };
        if self.config.array.layout == Layout::Striped {
            return self.places(workload.device, workload.fit);
        }
        let members = fleet::members(&self.config, self.trace.as_ref())?;
        members.iter().map(|member| self.placement(member.device, workload.fit)).collect()
    }

    fn placement(&self, device: Option<u32>, fit: Fit) -> Result<Placement, ConfigError> {
        Ok(self.places(device, fit)?.remove(0))
    }

    /// Places of its traces on the volume, one after the other.
    fn places(&self, device: Option<u32>, fit: Fit) -> Result<Vec<Placement>, ConfigError> {
        let least = sector(&self.config, &self.spec).logical_blocks();
        let places = streams::placements(&self.streams, device, self.striping.blocks(), fit)?;
        Ok(places.into_iter().map(|place| place.in_sectors(Sectors::of(least))).collect())
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

    /// Runs the experiment.
    pub fn run(&self) -> Result<RunResult, ConfigError> {
        self.run_observed(None, &mut |_, _| {})
    }

    /// Runs the experiment; reports every completion, and the progress at times. Independent drives run
    /// on all cores, and an observer of theirs is an error.
    pub fn run_observed(
        &self,
        observer: Option<Observer<'_>>,
        progress: Progress<'_>,
    ) -> Result<RunResult, ConfigError> {
        self.run_watched(observer, None, progress)
    }

    /// Like [`Self::run_observed`], with each decision of free work inside a call of `around`.
    /// Independent drives call it on several threads.
    pub fn run_watched(
        &self,
        observer: Option<Observer<'_>>,
        around: Option<Timer<'_>>,
        progress: Progress<'_>,
    ) -> Result<RunResult, ConfigError> {
        let own = || (Planners::new(), around);
        if self.config.array.layout == Layout::Striped {
            let tally = self.tally(own(), observer.unwrap_or(&mut |_| {}), progress)?;
            return Ok(self.result(tally));
        }
        observer.map_or(Ok(()), |_| self.config.check_observable())?;
        let members = fleet::members(&self.config, self.trace.as_ref())?;
        fleet::run(&members, progress, |member, progress| {
            self.alone(member).tally(own(), &mut |_| {}, progress)
        })
    }

    /// Runs the experiment with these planners for its rotational gaps; reports every completion.
    /// Independent drives are an error. Panics when planners are present but not one for each arm.
    pub fn run_freeblock(
        &self,
        planners: Planners<'_>,
        observer: Observer<'_>,
        progress: Progress<'_>,
    ) -> Result<RunResult, ConfigError> {
        self.config.check_observable()?;
        self.check_measured_whole("free work")?;
        Ok(self.result(self.tally((planners, None), observer, progress)?))
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
        if let Workload::Trace(workload) = &mut alone.config.workload {
            workload.device = member.device;
            alone.streams.iter_mut().for_each(|stream| stream.workload.device = member.device);
        }
        alone
    }

    /// Runs the volume with these planners, or with its configured background.
    fn tally(
        &self,
        planners: (Planners<'_>, Option<Timer<'_>>),
        observer: Observer<'_>,
        progress: Progress<'_>,
    ) -> Result<Tally, ConfigError> {
        let freeblock = self.config.freeblock.as_ref();
        let has_rounds = freeblock
            .is_some_and(|freeblock| freeblock.tasks.iter().any(|task| task.rounds.is_some()));
        let until_done = |requests: u64| if has_rounds { u64::MAX } else { requests };
        match &self.config.workload {
            Workload::Closed { requests, .. } => {
                let mut source = self.clients(until_done(*requests))?.expect("it is closed");
                match self.config.commands {
                    None => self.drive_source(source, self.striped(), planners, observer, progress),
                    Some(_) => self.drive_marked(&mut source, planners, observer, progress),
                }
            }
            Workload::Open { requests, mean_gap, pattern: spec } => {
                let (pattern, requests) = (self.pattern(spec)?, until_done(*requests));
                let mut source = Open::new(pattern, *mean_gap, requests, self.config.seed);
                self.drive_marked(&mut source, planners, observer, progress)
            }
            Workload::Trace(workload) if workload.merge.is_empty() => {
                let mut source = self.replay(workload, self.records(workload)?)?;
                self.drive_marked(&mut source, planners, observer, progress)
            }
            Workload::Trace(workload) => {
                let mut source = self.merged(workload.fit)?;
                self.drive_marked(&mut source, planners, observer, progress)
            }
            Workload::Postmark(workload) => {
                self.tally_postmark(workload, planners, observer, progress)
            }
            Workload::Files(workload) => {
                let setup = self.files.as_ref().expect("made ready when it was built");
                self.tally_files(workload, setup, planners, observer, progress)
            }
        }
    }

    /// Runs PostMark, whose cleaner may use the gaps.
    fn tally_postmark(
        &self,
        workload: &PostmarkWorkload,
        (planners, around): (Planners<'_>, Option<Timer<'_>>),
        observer: Observer<'_>,
        progress: Progress<'_>,
    ) -> Result<Tally, ConfigError> {
        assert!(planners.is_empty(), "the gaps of PostMark are its cleaner's");
        if workload.cleaner != PostmarkCleaner::Freeblock {
            let reads = NoFreeReads;
            return self.tally_process(workload, reads, Planners::new(), observer, progress);
        }
        let block = LogDiskSpec::OSDI00.block;
        let (task, mut planner) = cleaning_task(&self.drive, block, cleaning_options());
        match around {
            None => self.tally_process(workload, task, vec![&mut planner], observer, progress),
            Some(around) => {
                let mut watched = TimedPlanner::new(&mut planner, around);
                self.tally_process(workload, task, vec![&mut watched], observer, progress)
            }
        }
    }

    fn tally_process<F: FreeReads>(
        &self,
        workload: &PostmarkWorkload,
        free_reads: F,
        planners: Planners<'_>,
        observer: Observer<'_>,
        progress: Progress<'_>,
    ) -> Result<Tally, ConfigError> {
        let (seed, every) = (self.config.seed, REPORT_EVERY_DECIDED);
        let spec = self.postmark.expect("worked out when it was built");
        let source = workload.process(spec, free_reads, seed);
        let mut source = Reporting { source, progress, every, until_next: every };
        let mut any: &mut dyn Source = &mut source;
        let mut tally = self.tally_source(&mut any, self.striped(), planners, observer)?;
        source.report();
        tally.postmark(PostmarkResult::of(&source.source, workload.cleaner));
        Ok(tally)
    }

    fn pattern(&self, spec: &PatternSpec) -> Result<Pattern, ConfigError> {
        Pattern::new(*spec, self.striping.blocks(), self.config.seed)
            .map_err(|message| ConfigError::Workload { message })
    }

    /// The clients of its closed workload, with `requests` in all; None for another workload.
    pub fn clients(&self, requests: u64) -> Result<Option<Closed>, ConfigError> {
        let Workload::Closed { outstanding, think_time, think_time_distribution, pattern, .. } =
            &self.config.workload
        else {
            return Ok(None);
        };
        let think_time = match think_time_distribution {
            ThinkTimeDistribution::Constant => ThinkTime::Constant(*think_time),
            ThinkTimeDistribution::Exponential => ThinkTime::Exponential(*think_time),
        };
        let (pattern, seed) = (self.pattern(pattern)?, self.config.seed);
        Ok(Some(Closed::new(pattern, *outstanding, think_time, requests, seed)))
    }

    /// `records` of its trace, or made of them, where and how they are replayed.
    pub fn replay<I: Iterator<Item = Result<Record, TraceError>>>(
        &self,
        workload: &TraceWorkload,
        records: I,
    ) -> Result<Replay<I>, ConfigError> {
        let placement = self.placement(workload.device, workload.fit)?;
        let total = self.trace.as_ref().map_or(0, |info| info.requests);
        Ok(Replay::new(records, placement, workload.timing(self.trace.as_ref()), total))
    }

    /// Traces of the experiment as independent streams.
    fn merged(&self, fit: Fit) -> Result<Merged<Replay<WithCompletions<Records>>>, ConfigError> {
        let replay = |(stream, place): (&Stream, Placement)| {
            let Stream { workload, trace, .. } = stream;
            let records = self.records_of(workload, Some(stream))?;
            Ok(Replay::new(records, place, workload.timing(Some(trace)), trace.requests))
        };
        let replays = self.streams.iter().zip(self.places(None, fit)?).map(replay);
        Ok(Merged::new(replays.collect::<Result<_, ConfigError>>()?))
    }

    /// The volume, striped over its arms.
    fn striped(&self) -> VolumeLayout<'_> {
        VolumeLayout::Striped(&self.striping)
    }

    /// Arms of the volume, or disks that files lie on.
    fn arm_count(&self) -> u32 {
        self.files.as_ref().map_or(self.striping.arms(), |files| files.disks())
    }

    /// The drive of an arm.
    fn drive_of(&self, arm: u32) -> &Arc<Drive> {
        self.files.as_ref().map_or(&self.drive, |files| files.drive(arm))
    }

    /// The drive file of an arm.
    fn spec_of(&self, arm: u32) -> &DriveSpec {
        self.files.as_ref().map_or(&self.spec, |files| files.spec(arm))
    }

    /// [`Self::drive_source`] for every source but closed clients. The engine is compiled for those, and once
    /// for all others: one for each source would cost every build many seconds.
    fn drive_any(
        &self,
        source: &mut dyn Source,
        layout: VolumeLayout<'_>,
        planning: (Planners<'_>, Option<Timer<'_>>),
        observer: Observer<'_>,
        progress: Progress<'_>,
    ) -> Result<Tally, ConfigError> {
        self.drive_source(source, layout, planning, observer, progress)
    }

    /// [`Self::drive_any`] over the volume, with the marks of `[commands]` and its scrub, if there are any.
    fn drive_marked(
        &self,
        source: &mut dyn Source,
        planning: (Planners<'_>, Option<Timer<'_>>),
        observer: Observer<'_>,
        progress: Progress<'_>,
    ) -> Result<Tally, ConfigError> {
        let Some(commands) = &self.config.commands else {
            return self.drive_any(source, self.striped(), planning, observer, progress);
        };
        let mut marked = MarkedCommands::new(source, commands.marks(), self.striping.blocks());
        let mut tally =
            self.drive_any(&mut marked, self.striped(), planning, observer, progress)?;
        tally.outside_scrub(marked.scrub());
        Ok(tally)
    }

    fn drive_source<S: Source>(
        &self,
        source: S,
        layout: VolumeLayout<'_>,
        (planners, around): (Planners<'_>, Option<Timer<'_>>),
        observer: Observer<'_>,
        progress: Progress<'_>,
    ) -> Result<Tally, ConfigError> {
        let unfinished = self.unfinished();
        // A trace ends without a bound on stalled requests.
        let stalled_requests_max = match self.config.workload {
            Workload::Trace(_) => u64::MAX,
            _ => STALLED_REQUESTS_MAX * u64::from(self.arm_count()),
        };
        let source = UntilDone::new(source, unfinished.clone(), stalled_requests_max);
        let mut backgrounds = self.backgrounds(unfinished.as_ref())?;
        let every = if backgrounds.is_empty() { REPORT_EVERY } else { REPORT_EVERY_DECIDED };
        let mut source = Reporting { source, progress, every, until_next: every };
        let mut tally = if backgrounds.is_empty() {
            self.tally_source(&mut source, layout, planners, observer)?
        } else {
            assert!(planners.is_empty(), "an arm has one planner");
            let mut watched = Vec::new();
            let planners = match around {
                None => backgrounds.iter_mut().map(|arm| arm as _).collect(),
                Some(around) => {
                    watched
                        .extend(backgrounds.iter_mut().map(|arm| TimedPlanner::new(arm, around)));
                    watched.iter_mut().map(|arm| arm as _).collect()
                }
            };
            self.tally_source(&mut source, layout, planners, observer)?
        };
        tally.background(backgrounds);
        source.report();
        Ok(tally)
    }

    /// Blocks that the background must read before the workload may end.
    fn unfinished(&self) -> Option<Unfinished> {
        let config = self.config.freeblock.as_ref()?;
        let blocks = config.blocks_of_rounds(self.drive.blocks())?;
        Some(Unfinished::new(blocks * u64::from(self.arm_count())))
    }

    /// Background work of every arm; empty without any.
    fn backgrounds(&self, unfinished: Option<&Unfinished>) -> Result<Vec<Background>, ConfigError> {
        let Some(config) = &self.config.freeblock else { return Ok(Vec::new()) };
        let planned_on = |arm| {
            let drive = self.drive_of(arm);
            match &self.config.host {
                Some(host) => Arc::new(host.scheduler.planners_drive(drive)),
                None if config.conservatism != SimDuration::ZERO => {
                    let margins = SeekMargins::constant(config.conservatism);
                    Arc::new(drive.with_seek_margins(margins))
                }
                None => Arc::clone(drive),
            }
        };
        let anchor = promotion_anchor(self.config.scheduler);
        let background = |arm| {
            let (drive, freeblock) = (Arc::clone(self.drive_of(arm)), config.clone());
            let of = PreparedFor { drive, freeblock, anchor, host: self.config.host };
            let make = |config: &_| PreparedTasks::new(&planned_on(arm), config, anchor);
            let tasks = self
                .prepared
                .tasks(of, make)
                .map_err(|error| ConfigError::Freeblock { message: error.to_string() })?;
            let background = Background::new(tasks, config.idle.as_ref(), unfinished.cloned());
            Ok(if self.config.host.is_some() { background.outside() } else { background })
        };
        (0..self.arm_count()).map(background).collect()
    }

    /// Runs the volume with another `source`; reports every completion. `planners` fill its rotational
    /// gaps. Independent drives would need a source each, and are an error. Panics when planners are
    /// present but not one for each arm.
    pub fn run_source(
        &self,
        mut source: &mut dyn Source,
        planners: Planners<'_>,
        observer: Observer<'_>,
    ) -> Result<RunResult, ConfigError> {
        self.config.check_observable()?;
        self.check_measured_whole("a source of unknown length")?;
        Ok(self.tally_source(&mut source, self.striped(), planners, observer)?.result())
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

    fn tally_source<S: Source>(
        &self,
        source: &mut S,
        layout: VolumeLayout<'_>,
        planners: Planners<'_>,
        observer: Observer<'_>,
    ) -> Result<Tally, ConfigError> {
        if let Some(host) = &self.config.host {
            return self.tally_behind_host(host, source, planners, observer);
        }
        let arms = self.arm_count();
        let some = !planners.is_empty();
        assert!(!some || planners.len() == arms as usize, "a planner for each of {arms} arms");
        let mut gaps = self.gap_destages()?;
        assert!(!some || gaps.is_empty(), "an arm has one planner");
        let own = gaps.iter_mut().map(|gaps| gaps as &mut dyn Planner);
        let mut planners = planners.into_iter().chain(own);
        let same_track =
            self.config.freeblock.as_ref().map_or(SameTrack::Distinct, |f| f.same_track);
        let mut executor = |arm| {
            let errors = SeekErrors::new(self.drive_of(arm), self.config.seed, arm);
            let executor = ArmExecutor::new(errors);
            match planners.next() {
                Some(planner) => executor.with_planner(planner).with_same_track(same_track),
                None => executor,
            }
        };
        if !self.has_electronics() {
            let arm = |number| {
                let drive = Arc::clone(self.drive_of(number));
                let device = Mechanics::new(&drive, executor(number));
                Ok(Arm { device, policy: self.policy(&drive)?, drive })
            };
            let arms = (0..arms).map(arm).collect::<Result<_, ConfigError>>()?;
            return self.tally_arms(arms, layout, source, observer);
        }
        let mut sides = Vec::new();
        let arm = |number| {
            let (inside, outside) = self.sides(&mut sides, number);
            let spec = self.spec_of(number);
            let electronics = spec.electronics.with_processing(spec.overhead);
            let device = WholeDrive::new(Unit::new(&inside, &electronics)?, executor(number));
            Ok(Arm { device, policy: self.policy(&outside)?, drive: outside })
        };
        let arms = (0..arms).map(arm).collect::<Result<_, ConfigError>>()?;
        self.tally_arms(arms, layout, source, observer)
    }

    /// The mechanics of an arm's drive, and the drive as it looks from outside. Arms with one drive share
    /// both: those of `built`.
    fn sides(&self, built: &mut Vec<Sides>, arm: u32) -> (Arc<Drive>, Arc<Drive>) {
        let drive = self.drive_of(arm);
        let known = built.iter().find(|sides| Arc::ptr_eq(&sides.drive, drive));
        if let Some(Sides { inside, outside, .. }) = known {
            return (Arc::clone(inside), Arc::clone(outside));
        }
        let spec = self.spec_of(arm);
        let electronics = spec.electronics.with_processing(spec.overhead);
        let outside = Arc::new(drive.with_overhead(electronics.command_overhead()));
        let inside = Arc::new(drive.with_overhead(ByOp::default()));
        let drive = Arc::clone(drive);
        built.push(Sides { drive, inside: Arc::clone(&inside), outside: Arc::clone(&outside) });
        (inside, outside)
    }

    /// Destages in gaps of every arm; empty without any.
    fn gap_destages(&self) -> Result<Vec<GapDestages>, ConfigError> {
        let block = self.config.cache.as_ref().and_then(CacheConfig::gaps_block);
        let Some(block) = block else { return Ok(Vec::new()) };
        let gaps = |arm| {
            GapDestages::new(self.drive_of(arm), block)
                .map_err(|error| ConfigError::Cache { message: error.to_string() })
        };
        (0..self.arm_count()).map(gaps).collect()
    }

    /// Runs arms, behind Linux's block layer if the scheduler is one of Linux.
    fn tally_arms<D: Device, S: Source>(
        &self,
        arms: Vec<Arm<D>>,
        layout: VolumeLayout<'_>,
        source: &mut S,
        observer: Observer<'_>,
    ) -> Result<Tally, ConfigError> {
        if !self.config.scheduler.is_linux() {
            return self.tally_behind_cache(arms, layout, source, observer);
        }
        let depth = |arm| match self.has_electronics() {
            true => self.spec_of(arm).electronics.queue.unwrap_or_default().depth,
            false => 1,
        };
        let mut behind = Vec::new();
        for (number, Arm { drive, policy, device }) in (0..).zip(arms) {
            let depth = depth(number);
            let layer = BlockLayer::new(&self.config.scheduler, depth)?.expect("it is of Linux");
            let device = LinuxDevice::new(device, &drive, layer);
            behind.push(Arm { drive, policy, device });
        }
        self.tally_behind_cache(behind, layout, source, observer)
    }

    /// Runs arms, below the storage system's cache if there is one.
    fn tally_behind_cache<D: Device, S: Source>(
        &self,
        mut arms: Vec<Arm<D>>,
        layout: VolumeLayout<'_>,
        source: &mut S,
        observer: Observer<'_>,
    ) -> Result<Tally, ConfigError> {
        let zones = VolumeZones::new(self.spec.zoned.as_ref(), &self.drive, &self.striping);
        let Some(cache) = &self.config.cache else {
            return Ok(engine::tally(layout, zones, &mut arms, source, self.parts(), observer)?);
        };
        let cached = arms.into_iter().map(|arm| self.cached(arm, cache));
        let mut arms = cached.collect::<Result<Vec<_>, _>>()?;
        Ok(engine::tally(layout, zones, &mut arms, source, self.parts(), observer)?)
    }

    fn cached<D: Device>(
        &self,
        arm: Arm<D>,
        config: &CacheConfig,
    ) -> Result<Arm<CachedDevice<D>>, ConfigError> {
        let sectors = sector(&self.config, &self.spec).sectors();
        let spec = config.spec(self.is_reordered_behind_cache());
        let destages = self.policy(&arm.drive)?;
        let own = self.own.cache.as_ref().map(|(_, make)| make(spec.read.capacity));
        behind_cache(arm, spec, config.queue_depth, destages, sectors, own)
    }

    /// True if requests below the cache are reordered: by a drive with a queue, or a scheduler before it.
    fn is_reordered_behind_cache(&self) -> bool {
        let queue = self.spec.electronics.queue.filter(|_| self.has_electronics());
        self.config.host.is_some()
            || self.config.scheduler.is_linux()
            || queue.is_some_and(|queue| queue.depth > 1)
    }

    /// Like a volume of whole drives, behind a scheduler outside each.
    fn tally_behind_host<S: Source>(
        &self,
        host: &HostConfig,
        source: &mut S,
        planners: Planners<'_>,
        observer: Observer<'_>,
    ) -> Result<Tally, ConfigError> {
        let SimConfig { scheduler: policy, seed, drive: name, .. } = &self.config;
        let mut spec = self.spec.clone();
        if !self.has_electronics() {
            spec.electronics = ElectronicsSpec::default();
        }
        let mut planners = planners.into_iter();
        let mut arms = Vec::new();
        for arm in 0..self.arm_count() {
            let scheduler = host.scheduler(&spec, &self.drive, *policy)?;
            let scheduler = scheduler.with_seed(seed + u64::from(arm));
            // Each drive has a separate seed for its behaviour.
            let drive = host.emulated(&spec, name, seed + u64::from(arm))?;
            let device = HostDevice::new(scheduler, drive, planners.next());
            let policy = PolicySpec::Fcfs.build()?;
            arms.push(Arm { drive: Arc::clone(&self.drive), policy, device });
        }
        let zones = VolumeZones::new(spec.zoned.as_ref(), &self.drive, &self.striping);
        Ok(engine::tally(self.striped(), zones, &mut arms, source, RunParts::whole(), observer)?)
    }

    /// Keys that are given without an effect in this run of it.
    pub fn without_effect(&self, result: &RunResult) -> Vec<WithoutEffect> {
        self.config.without_effect(&self.spec, self.arm_count(), result.outstanding_max)
    }

    /// True if the drive's electronics take part.
    pub fn has_electronics(&self) -> bool {
        self.config.has_electronics(&self.spec)
    }

    /// The policy of the queue of an arm with this drive: the caller's, if there is one. A scheduler of Linux has a
    /// queue behind it, and this one passes requests on.
    fn policy(&self, drive: &Arc<Drive>) -> Result<Box<dyn Policy>, ParsePolicyError> {
        let scheduler = self.config.scheduler;
        let policy = match &self.own.scheduler {
            Some((_, make)) => make(drive),
            None if scheduler.is_linux() => PolicySpec::Fcfs.build()?,
            None => scheduler.build()?,
        };
        let cooling = match &self.config.workload {
            Workload::Files(workload) => workload.cooling,
            _ => None,
        };
        Ok(match cooling.is_some_and(|cooling| cooling.copies_first) {
            true => Box::new(MarkedFirst::new(policy)),
            false => policy,
        })
    }
}

/// Least that the drive can be asked for.
fn least_bytes(config: &SimConfig, spec: &DriveSpec) -> Bytes {
    Blocks::new(sector(config, spec).logical_blocks().into()).bytes()
}

/// A drive, its mechanics alone, and as it looks from outside.
struct Sides {
    drive: Arc<Drive>,
    inside: Arc<Drive>,
    outside: Arc<Drive>,
}

/// Disks and files, if files are the workload.
fn files_setup(
    config: &SimConfig,
    spec: &DriveSpec,
) -> Result<Option<Arc<FilesSetup>>, ConfigError> {
    let Workload::Files(workload) = &config.workload else { return Ok(None) };
    check_files(config, spec)?;
    check_workload(&config.workload, None, Blocks::ZERO)?;
    let sector_of = |spec: &DriveSpec| Blocks::new(sector(config, spec).logical_blocks().into());
    let drives = config.array.drives.unwrap_or(1);
    let setup = crate::files::files_setup(workload, spec, drives, sector_of, config.seed)?;
    Ok(Some(Arc::new(setup)))
}

/// Err for a parameter out of range, and for a scheduler of Linux that would have to predict.
fn check_scheduler(config: &SimConfig) -> Result<(), ConfigError> {
    if config.host.is_some() || !config.scheduler.is_linux() {
        config.scheduler.build()?;
    } else {
        BlockLayer::new(&config.scheduler, 1)?;
    }
    Ok(())
}

fn check_cache(config: &SimConfig, spec: &DriveSpec) -> Result<(), ConfigError> {
    let Some(cache) = &config.cache else { return Ok(()) };
    let beside = [("freeblock", config.freeblock.is_some()), ("host", config.host.is_some())];
    if let Some((table, _)) = beside.iter().find(|(_, is_there)| *is_there) {
        let message = format!("`cache` and `{table}` exclude each other; leave one of them out");
        return Err(ConfigError::Cache { message });
    }
    if matches!(config.workload, Workload::Postmark(_)) {
        let message = "PostMark has a log and a cache of its own; leave `cache` out".into();
        return Err(ConfigError::Cache { message });
    }
    let refuses = spec.zoned.is_some_and(|zoned| zoned.kind == ZonedKind::HostManaged);
    if refuses && cache.write_buffer.is_some() {
        let message = "`write_buffer` does not go with a host-managed drive, which takes writes in the order of its write pointers: leave `write_buffer` out, or take another drive".into();
        return Err(ConfigError::Cache { message });
    }
    if cache.gaps_block().is_some() && config.has_electronics(spec) {
        let message = "`write_buffer.destage_in_gaps` needs `electronics = false`: a drive's own buffer and queue leave no gaps to use".into();
        return Err(ConfigError::Cache { message });
    }
    cache.check().map_err(|message| ConfigError::Cache { message })
}

fn check_freeblock(
    config: &SimConfig,
    spec: &DriveSpec,
    drive: &Drive,
    striping: &Striping,
) -> Result<(), ConfigError> {
    let drives = match config.array.layout {
        Layout::Striped => 1,
        Layout::Independent => config.array.drives.unwrap_or(DRIVES_MAX),
    };
    let arms = u64::from(striping.arms()) * u64::from(drives);
    let moves = config.has_electronics(spec) && spec.electronics.media_cache.is_some();
    if config.freeblock.is_some() && config.host.is_none() && moves {
        let message = "inside a drive with a media cache no free work is planned, as the planner does not know where blocks are: leave `freeblock` out, give `host`, or take another drive".into();
        return Err(ConfigError::Freeblock { message });
    }
    let refuses = spec.zoned.is_some_and(|zoned| zoned.kind == ZonedKind::HostManaged);
    let check = |freeblock: &FreeblockConfig| {
        if let Some(task) = freeblock.writes().filter(|_| refuses) {
            return Err(format!(
                "`kind` is {}, and a host-managed drive takes writes at the write pointers of its zones alone: take another drive or another task",
                task.word()
            ));
        }
        freeblock.check(drive.blocks(), arms)
    };
    let checked = config.freeblock.as_ref().map_or(Ok(()), check);
    checked.map_err(|message| ConfigError::Freeblock { message })
}

/// Specification of PostMark, if that is the workload.
fn postmark_spec(
    config: &SimConfig,
    spec: &DriveSpec,
    drive: &Drive,
    striping: &Striping,
) -> Result<Option<PostmarkSpec>, ConfigError> {
    let Workload::Postmark(workload) = &config.workload else { return Ok(None) };
    let is_volume = striping.arms() > 1 || config.array.layout == Layout::Independent;
    let refuses = spec.zoned.is_some_and(|zoned| zoned.kind == ZonedKind::HostManaged);
    let not_with_it = [
        (
            config.freeblock.is_some(),
            "`freeblock` does not go with it, as the gaps are its cleaner's: leave that out, and say `workload.cleaner = \"freeblock\"`",
        ),
        (config.host.is_some(), "`host` does not go with it: leave that out"),
        (
            is_volume,
            "its log is on one drive with one actuator: leave `array` out, or take another drive",
        ),
        (refuses, "a host-managed drive does not take the writes of its log: take another drive"),
    ];
    let checked = match not_with_it.iter().find(|(is_there, _)| *is_there) {
        Some((_, why)) => Err(format!("`kind` is postmark: {why}")),
        None => workload.spec(drive.blocks(), config.seed).map(Some),
    };
    checked.map_err(|message| ConfigError::Workload { message })
}

fn check_host(config: &SimConfig) -> Result<(), ConfigError> {
    let Some(host) = &config.host else { return Ok(()) };
    let checked = host.check(config.freeblock.as_ref());
    checked.map_err(|message| ConfigError::PredictiveScheduler { message })
}
