//! An experiment as a TOML file: drive, policy, workload, seed.

mod error;
mod overrides;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use freewheel_model::array::Striping;
use freewheel_model::drive::Drive;
use freewheel_model::drive::spec::{ByOp, DriveSpec};
use freewheel_model::freeblock::Planner;
use freewheel_model::onboard::Unit;
use freewheel_model::onboard::spec::{OnboardSpec, QUEUE_DEPTH_MAX, QueueSpec};
use freewheel_model::sched::{ParsePolicyError, PolicySpec};
use freewheel_model::zoned::spec::ZonedKind;
use freewheel_trace::{
    Format, InfoCollector, OpenOptions, Record, TraceError, TraceInfo, TraceReader,
};
use freewheel_units::{Blocks, Bytes, SimDuration, SimTime};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::background::{Background, FreeblockConfig, PATIENCE, Unfinished, Until};
use crate::completion::Completion;
use crate::device::{Mechanics, WholeDrive};
use crate::engine::{self, Arm};
use crate::fleet::{self, Member};
use crate::library;
use crate::outside::{ExternalConfig, Outside};
use crate::result::{RunResult, Tally};
use crate::servo::{SeekErrors, Servo};
use crate::source::{
    Closed, Fit, Open, Pattern, PatternSpec, Placement, Replay, ReplayMode, Request, Source,
    SourceError, Think,
};
use crate::zoned::VolumeZones;

pub use error::ConfigError;
pub use overrides::key_and_value;

/// A simulation: everything that its result depends on, but for the bytes of a trace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SimConfig {
    /// Seed of every random stream.
    #[serde(default = "default_seed")]
    pub seed: u64,
    /// Name of a shipped drive, or path of a drive file.
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
    pub external: Option<ExternalConfig>,
    /// Where requests come from.
    pub workload: Workload,
}

/// Several drives of the same kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ArrayConfig {
    /// What the drives have to do with each other.
    pub layout: Layout,
    /// How many. When absent one, and with a trace on independent drives one for each of its
    /// devices; no other number is allowed there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drives: Option<u32>,
    /// Consecutive bytes on one drive before the next one's turn, when they are striped.
    pub stripe_unit: Bytes,
}

/// What several drives have to do with each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// One volume, striped over them (RAID-0).
    #[default]
    Striped,
    /// Nothing: a generated workload runs once on each, with a seed of its own for each, and each
    /// device of a trace has a drive of its own. Time begins on every drive with its first request.
    Independent,
}

impl Default for ArrayConfig {
    /// One drive; stripe units of 64 KiB are what md and most controllers begin with.
    fn default() -> Self {
        Self { layout: Layout::Striped, drives: None, stripe_unit: Bytes::new(64 << 10) }
    }
}

impl ArrayConfig {
    fn is_single(&self) -> bool {
        self.layout == Layout::Striped && self.drives.unwrap_or(1) == 1
    }
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

/// Where requests come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Workload {
    /// A fixed number of requests outstanding.
    Closed {
        /// Requests in all.
        #[serde(default = "default_requests")]
        requests: u64,
        /// Requests outstanding at once: the multiprogramming level.
        #[serde(default = "one")]
        outstanding: u32,
        /// Time between a completion and the next request.
        #[serde(default)]
        think: SimDuration,
        /// Whether the think time is a constant or the mean of an exponential.
        #[serde(default)]
        think_distribution: ThinkDistribution,
        /// What the requests look like.
        #[serde(default)]
        pattern: PatternSpec,
    },
    /// Arrivals as a Poisson process.
    Open {
        /// Requests in all.
        #[serde(default = "default_requests")]
        requests: u64,
        /// Mean time between arrivals.
        mean_gap: SimDuration,
        /// What the requests look like.
        #[serde(default)]
        pattern: PatternSpec,
    },
    /// A trace, played back.
    Trace(TraceWorkload),
}

/// A trace and how to play it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TraceWorkload {
    /// The file.
    pub file: PathBuf,
    /// Its format, by name; found out from its contents when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    /// Count and skip malformed records instead of stopping at the first.
    #[serde(default)]
    pub lenient: bool,
    /// Only this device of the trace; all of them laid end to end when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<u32>,
    /// What to do when trace and drive differ in size.
    #[serde(default)]
    pub fit: Fit,
    /// How arrivals are timed.
    #[serde(default)]
    pub replay: ReplayMode,
}

/// How think times vary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ThinkDistribution {
    /// All the same.
    #[default]
    Constant,
    /// Exponential with this mean.
    Exponential,
}

const fn default_requests() -> u64 {
    10_000
}

const fn one() -> u32 {
    1
}

impl SimConfig {
    /// Reads an experiment and applies overrides of the form `workload.outstanding=20`. A relative
    /// path of a trace is taken from the experiment's folder.
    pub fn load(path: &Path, overrides: &[String]) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ConfigError::Read { path: path.into(), source })?;
        let mut config = Self::parse(&text, &path.display().to_string(), overrides)?;
        if let Workload::Trace(trace) = &mut config.workload {
            trace.file = path.parent().unwrap_or(Path::new(".")).join(&trace.file);
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
            if !spec.onboard.is_empty() {
                let queue = spec.onboard.queue.unwrap_or_default();
                spec.onboard.queue = Some(QueueSpec { depth, ..queue });
            }
        }
        if let (Some(keep), Some(buffer)) = (self.keep_free_blocks_before, &mut spec.onboard.buffer)
        {
            buffer.keep_free_blocks_before = keep;
        }
        Ok(spec)
    }

    /// Reads an experiment from a text; `origin` names it in errors, but for those that overrides
    /// have brought in.
    pub fn parse(text: &str, origin: &str, overrides: &[String]) -> Result<Self, ConfigError> {
        let error = match overrides::read(text, overrides)? {
            Ok(config) => return Ok(config),
            Err(error) => error,
        };
        let fault = |overrides: &[String]| match overrides::read(text, overrides) {
            Ok(Err(error)) => Some(error.message().to_owned()),
            _ => None,
        };
        let (origin, error) = match overrides::to_blame(overrides, fault) {
            Some(overrides) => (overrides, error),
            // Its own mistakes are shown with their line.
            None => (origin.into(), toml::from_str::<Self>(text).err().unwrap_or(error)),
        };
        Err(ConfigError::Parse { origin, message: error.to_string().trim_end().into() })
    }
}

/// An experiment with its drive built: ready to run, any number of times.
#[derive(Debug, Clone)]
pub struct Experiment {
    /// What it came from.
    pub config: SimConfig,
    /// The drive's file.
    pub spec: DriveSpec,
    /// The drive.
    pub drive: Arc<Drive>,
    /// How the volume is spread over the drives; of independent drives, how each is over its arms.
    pub striping: Striping,
    /// What a first pass over the trace found, if there is one.
    pub trace: Option<TraceInfo>,
}

/// A run of an experiment in progress, for a progress bar: done and total, in any unit.
/// It may be called from any thread, by one at a time.
pub type Progress<'a> = &'a mut (dyn FnMut(u64, u64) + Send);

/// Is shown every completion of a run, in order of time.
pub type Observer<'a> = &'a mut dyn FnMut(&Completion);

/// Who plans the free work of each arm, in their order; none when there is no free work.
pub type Planners<'a> = Vec<&'a mut dyn Planner>;

impl Experiment {
    /// Builds the drive and takes a first look at the trace.
    pub fn new(config: SimConfig) -> Result<Self, ConfigError> {
        let trace = match &config.workload {
            Workload::Trace(trace) => Some(scan(trace)?),
            _ => None,
        };
        Self::with_trace_info(config, trace)
    }

    /// Who is to blame when [`Self::check`] finds a fault in the experiment of this file with these
    /// overrides: those of them without which it would not, as they were given, or else the file.
    pub fn to_blame(path: &Path, overrides: &[String]) -> String {
        let fault = |overrides: &[String]| {
            let checked = SimConfig::load(path, overrides).and_then(|config| Self::check(&config));
            checked.err().map(|error| error.to_string())
        };
        overrides::to_blame(overrides, fault).unwrap_or_else(|| path.display().to_string())
    }

    /// Whether drive and policy are ones that can be built: quick, and before a long trace is read.
    pub fn check(config: &SimConfig) -> Result<(), ConfigError> {
        let spec = config.drive_spec()?;
        let drive = library::build(&spec, &config.drive)?;
        let striping = striping(&config.array, &drive)?;
        config.scheduler.build()?;
        check_freeblock(config, &spec, &drive, &striping)?;
        check_external(config)?;
        check_workload(&config.workload, None)
    }

    /// Like [`Self::new`] for a trace that has been looked at already. Panics when the workload
    /// is a trace and nothing is known of it.
    pub fn with_trace_info(
        config: SimConfig,
        trace: Option<TraceInfo>,
    ) -> Result<Self, ConfigError> {
        let is_trace = matches!(config.workload, Workload::Trace(_));
        assert!(!is_trace || trace.is_some(), "a trace has to be looked at first");
        let spec = config.drive_spec()?;
        let drive = Arc::new(library::build(&spec, &config.drive)?);
        let striping = striping(&config.array, &drive)?;
        config.scheduler.build()?;
        check_freeblock(&config, &spec, &drive, &striping)?;
        check_external(&config)?;
        check_workload(&config.workload, trace.as_ref())?;
        let experiment = Self { config, spec, drive, striping, trace };
        experiment.placements()?;
        Ok(experiment)
    }

    /// Where a trace lies on the volume, or on each of the independent drives; empty without one.
    fn placements(&self) -> Result<Vec<Placement>, ConfigError> {
        let Workload::Trace(workload) = &self.config.workload else { return Ok(Vec::new()) };
        if self.config.array.layout == Layout::Striped {
            return Ok(vec![self.placement(workload.device, workload.fit)?]);
        }
        let members = fleet::members(&self.config, self.trace.as_ref())?;
        members.iter().map(|member| self.placement(member.device, workload.fit)).collect()
    }

    fn placement(&self, device: Option<u32>, fit: Fit) -> Result<Placement, ConfigError> {
        let devices = self.trace.iter().flat_map(|info| &info.devices);
        let ends: BTreeMap<u32, u64> =
            devices.map(|(&id, device)| (id, device.end_block)).collect();
        Ok(Placement::new(&ends, device, self.striping.blocks(), fit)?)
    }

    /// Size of the trace's address space, zero without a trace; of independent drives, of those of
    /// all together.
    pub fn trace_space(&self) -> Bytes {
        let placements = self.placements().expect("checked when it was built");
        Bytes::new(placements.iter().map(|placement| placement.space().get()).sum())
    }

    /// Whether the trace is replayed by dependence.
    pub fn is_dependent(&self) -> bool {
        let Workload::Trace(workload) = &self.config.workload else { return false };
        match workload.replay {
            ReplayMode::Auto => self.trace.as_ref().is_some_and(|info| info.has_completions),
            mode => mode == ReplayMode::Dependent,
        }
    }

    /// Runs it.
    pub fn run(&self) -> Result<RunResult, ConfigError> {
        self.run_observed(None, &mut |_, _| {})
    }

    /// Runs it, shows every completion, and from time to time the progress. Independent drives run
    /// on all cores, and an observer of theirs is an error.
    pub fn run_observed(
        &self,
        observer: Option<Observer<'_>>,
        progress: Progress<'_>,
    ) -> Result<RunResult, ConfigError> {
        if self.config.array.layout == Layout::Striped {
            let tally = self.tally(Planners::new(), observer.unwrap_or(&mut |_| {}), progress)?;
            return Ok(tally.result());
        }
        observer.map_or(Ok(()), |_| self.config.check_observable())?;
        let members = fleet::members(&self.config, self.trace.as_ref())?;
        fleet::run(&members, progress, |member, progress| {
            self.alone(member).tally(Planners::new(), &mut |_| {}, progress)
        })
    }

    /// Runs it with free work in its rotational gaps, and shows every completion. Independent
    /// drives are an error. Panics when there are planners and not one for each arm.
    pub fn run_freeblock(
        &self,
        planners: Planners<'_>,
        observer: Observer<'_>,
        progress: Progress<'_>,
    ) -> Result<RunResult, ConfigError> {
        self.config.check_observable()?;
        Ok(self.tally(planners, observer, progress)?.result())
    }

    /// The experiment of one of its independent drives.
    fn alone(&self, member: &Member) -> Self {
        let mut alone = self.clone();
        alone.config.seed = member.seed;
        alone.config.array = ArrayConfig::default();
        if let Workload::Trace(workload) = &mut alone.config.workload {
            workload.device = member.device;
        }
        alone
    }

    /// Runs its volume.
    fn tally(
        &self,
        planners: Planners<'_>,
        observer: Observer<'_>,
        progress: Progress<'_>,
    ) -> Result<Tally, ConfigError> {
        let until_done = |requests: u64| match self.config.freeblock.as_ref().and_then(|f| f.rounds)
        {
            Some(_) => u64::MAX,
            None => requests,
        };
        let seed = self.config.seed;
        let pattern = |spec: &PatternSpec| {
            Pattern::new(*spec, self.striping.blocks(), seed)
                .map_err(|message| ConfigError::Workload { message })
        };
        match &self.config.workload {
            Workload::Closed {
                requests,
                outstanding,
                think,
                think_distribution,
                pattern: spec,
            } => {
                let think = match think_distribution {
                    ThinkDistribution::Constant => Think::Constant(*think),
                    ThinkDistribution::Exponential => Think::Exponential(*think),
                };
                let requests = until_done(*requests);
                let source = Closed::new(pattern(spec)?, *outstanding, think, requests, seed);
                self.drive_source(source, planners, observer, progress)
            }
            Workload::Open { requests, mean_gap, pattern: spec } => {
                let source = Open::new(pattern(spec)?, *mean_gap, until_done(*requests), seed);
                self.drive_source(source, planners, observer, progress)
            }
            Workload::Trace(workload) => {
                let source = self.replay(workload, open(workload)?)?;
                self.drive_source(source, planners, observer, progress)
            }
        }
    }

    /// `records` of its trace, or made of them, where and how they are replayed.
    pub fn replay<I: Iterator<Item = Result<Record, TraceError>>>(
        &self,
        workload: &TraceWorkload,
        records: I,
    ) -> Result<Replay<I>, ConfigError> {
        let placement = self.placement(workload.device, workload.fit)?;
        let total = self.trace.as_ref().map_or(0, |info| info.requests);
        Ok(Replay::new(records, placement, self.is_dependent(), total))
    }

    fn drive_source<S: Source>(
        &self,
        source: S,
        planners: Planners<'_>,
        observer: Observer<'_>,
        progress: Progress<'_>,
    ) -> Result<Tally, ConfigError> {
        let unfinished = self.unfinished();
        // A trace ends of itself.
        let patience = match self.config.workload {
            Workload::Trace(_) => u64::MAX,
            _ => PATIENCE * u64::from(self.striping.arms()),
        };
        let source = Until::new(source, unfinished.clone(), patience);
        let mut backgrounds = self.backgrounds(unfinished.as_ref())?;
        let every = if backgrounds.is_empty() { REPORT_EVERY } else { REPORT_EVERY_DECIDED };
        let mut source = Reporting { source, progress, every, until_next: every };
        let mut tally = if backgrounds.is_empty() {
            self.tally_source(&mut source, planners, observer)?
        } else {
            assert!(planners.is_empty(), "an arm has one planner");
            let planners = backgrounds.iter_mut().map(|arm| arm as _).collect();
            self.tally_source(&mut source, planners, observer)?
        };
        tally.background(backgrounds);
        source.report();
        Ok(tally)
    }

    /// What is to be read in the background before the workload ends, if that is asked for.
    fn unfinished(&self) -> Option<Unfinished> {
        let config = self.config.freeblock.as_ref()?;
        let blocks = config.blocks_of_a_round(self.drive.blocks());
        Some(Unfinished::new(config.rounds? * blocks * u64::from(self.striping.arms())))
    }

    /// The background work of every arm; none where there is none.
    fn backgrounds(&self, unfinished: Option<&Unfinished>) -> Result<Vec<Background>, ConfigError> {
        let Some(config) = &self.config.freeblock else { return Ok(Vec::new()) };
        let drive = match &self.config.external {
            Some(external) => Arc::new(external.scheduler.planners_drive(&self.drive)),
            None => Arc::clone(&self.drive),
        };
        let background = |_| {
            Background::new(&drive, config, self.config.scheduler, unfinished.cloned())
                .map_err(|error| ConfigError::Freeblock { message: error.to_string() })
        };
        (0..self.striping.arms()).map(background).collect()
    }

    /// Runs its volume under a source of one's own, with free work in its rotational gaps if there
    /// are planners, and shows every completion. Independent drives would need a source each, and
    /// are an error. Panics when there are planners and not one for each arm.
    pub fn run_source<S: Source>(
        &self,
        source: &mut S,
        planners: Planners<'_>,
        observer: Observer<'_>,
    ) -> Result<RunResult, ConfigError> {
        self.config.check_observable()?;
        Ok(self.tally_source(source, planners, observer)?.result())
    }

    fn tally_source<S: Source>(
        &self,
        source: &mut S,
        planners: Planners<'_>,
        observer: Observer<'_>,
    ) -> Result<Tally, ConfigError> {
        if let Some(external) = &self.config.external {
            return self.tally_outside(external, source, planners, observer);
        }
        let (drive, arms) = (&self.drive, self.striping.arms());
        let some = !planners.is_empty();
        assert!(!some || planners.len() == arms as usize, "a planner for each of {arms} arms");
        let mut planners = planners.into_iter();
        let mut servo = |arm| {
            let servo = Servo::new(SeekErrors::new(drive, self.config.seed, arm));
            match planners.next() {
                Some(planner) => servo.with_planner(planner),
                None => servo,
            }
        };
        let zones = VolumeZones::new(self.spec.zoned.as_ref(), drive, &self.striping);
        if !self.has_electronics() {
            let device = |arm| Ok(Mechanics::new(drive, servo(arm)));
            let mut arms = self.arms(drive, device)?;
            return Ok(engine::tally(&self.striping, zones, &mut arms, source, observer)?);
        }
        let onboard = self.spec.onboard.with_processing(self.spec.overhead);
        let outside = drive.with_overhead(onboard.command_overhead());
        // All units share one drive.
        let inside = Arc::new(drive.with_overhead(ByOp::default()));
        let device = |arm| Ok(WholeDrive::new(Unit::new(&inside, &onboard)?, servo(arm)));
        let mut arms = self.arms(&Arc::new(outside), device)?;
        Ok(engine::tally(&self.striping, zones, &mut arms, source, observer)?)
    }

    /// The same behind a scheduler outside the drive.
    fn tally_outside<S: Source>(
        &self,
        external: &ExternalConfig,
        source: &mut S,
        planners: Planners<'_>,
        observer: Observer<'_>,
    ) -> Result<Tally, ConfigError> {
        let SimConfig { scheduler: policy, seed, drive: name, .. } = &self.config;
        let mut spec = self.spec.clone();
        if !self.has_electronics() {
            spec.onboard = OnboardSpec::default();
        }
        let mut planners = planners.into_iter();
        let mut arms = Vec::new();
        for arm in 0..self.striping.arms() {
            let scheduler = external.scheduler(&spec, &self.drive, *policy)?;
            // Every drive has habits of its own.
            let drive = external.emulated(&spec, name, seed + u64::from(arm))?;
            let device = Outside::new(scheduler, drive, planners.next());
            let policy = PolicySpec::Fcfs.build()?;
            arms.push(Arm { drive: Arc::clone(&self.drive), policy, device });
        }
        let zones = VolumeZones::new(spec.zoned.as_ref(), &self.drive, &self.striping);
        Ok(engine::tally(&self.striping, zones, &mut arms, source, observer)?)
    }

    /// Whether the drive's electronics take part.
    pub fn has_electronics(&self) -> bool {
        has_electronics(&self.config, &self.spec)
    }

    fn arms<D>(
        &self,
        drive: &Arc<Drive>,
        mut device: impl FnMut(u32) -> Result<D, ParsePolicyError>,
    ) -> Result<Vec<Arm<D>>, ParsePolicyError> {
        let arm = |number| {
            let policy = self.config.scheduler.build()?;
            Ok(Arm { drive: Arc::clone(drive), policy, device: device(number)? })
        };
        (0..self.striping.arms()).map(arm).collect()
    }
}

/// Most drives in one experiment.
pub(crate) const DRIVES_MAX: u32 = 100_000;

/// Every actuator is an arm of its own. Of independent drives each is a volume.
fn striping(array: &ArrayConfig, drive: &Drive) -> Result<Striping, ConfigError> {
    let wrong = |message: String| Err(ConfigError::Array { message });
    let ArrayConfig { layout, drives, stripe_unit } = *array;
    let drives = drives.unwrap_or(1);
    if !(1..=DRIVES_MAX).contains(&drives) {
        return wrong(format!("`drives` is {drives}: 1 to {DRIVES_MAX} are allowed"));
    }
    let unit = stripe_unit.get() / 512;
    let fits = (1..=drive.total_blocks().get()).contains(&unit) && stripe_unit.get() % 512 == 0;
    if drives > 1 && !fits {
        return wrong(format!(
            "`stripe_unit` is {stripe_unit}: whole blocks of 512 B are needed, at least one and no more than a drive holds"
        ));
    }
    let drives = if layout == Layout::Striped { drives } else { 1 };
    Ok(Striping::new(drives, drive.actuators(), drive.blocks(), Blocks::new(unit)))
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
    let refuses = spec.zoned.is_some_and(|zoned| zoned.kind == ZonedKind::HostManaged);
    let check = |freeblock: &FreeblockConfig| {
        if refuses && freeblock.has_writes() {
            return Err("`task` is write, and a host-managed drive takes writes at the write \
                        pointers of its zones alone: take another drive or another task"
                .into());
        }
        freeblock.check(drive.blocks(), arms)
    };
    let checked = config.freeblock.as_ref().map_or(Ok(()), check);
    checked.map_err(|message| ConfigError::Freeblock { message })
}

fn check_external(config: &SimConfig) -> Result<(), ConfigError> {
    let Some(external) = &config.external else { return Ok(()) };
    let checked = external.check(config.freeblock.as_ref());
    checked.map_err(|message| ConfigError::External { message })
}

fn has_electronics(config: &SimConfig, spec: &DriveSpec) -> bool {
    config.electronics && !spec.onboard.is_empty()
}

/// Most requests that may be outstanding in a closed workload: as many terminals are kept.
const OUTSTANDING_MAX: u32 = 1_000_000;

/// Longest mean time between requests.
const GAP_MAX: SimDuration = SimDuration::from_secs(3600);

/// Longest that all gaps of a run may take together: a third of the time that events can tell.
const SPAN_MAX: SimDuration = SimDuration::from_ns((1 << 63) / 3);

fn check_workload(workload: &Workload, trace: Option<&TraceInfo>) -> Result<(), ConfigError> {
    let wrong = |message: String| Err(ConfigError::Workload { message });
    match workload {
        Workload::Closed { requests: 0, .. } | Workload::Open { requests: 0, .. } => {
            wrong("`requests` is 0: at least 1 is needed".into())
        }
        Workload::Closed { outstanding, .. } if !(1..=OUTSTANDING_MAX).contains(outstanding) => {
            wrong(format!("`outstanding` is {outstanding}: 1 to {OUTSTANDING_MAX} are allowed"))
        }
        Workload::Closed { think: time, .. } | Workload::Open { mean_gap: time, .. }
            if *time > GAP_MAX =>
        {
            wrong(format!(
                "a mean time of {time} between requests is too long: at most {GAP_MAX} is allowed"
            ))
        }
        Workload::Closed { think: gap, requests, .. }
        | Workload::Open { mean_gap: gap, requests, .. }
            if gap.ns().saturating_mul(*requests) > SPAN_MAX.ns() =>
        {
            wrong(format!(
                "{requests} requests {gap} apart take too long: at most {SPAN_MAX} can be simulated"
            ))
        }
        Workload::Trace(TraceWorkload { replay: ReplayMode::Dependent, file, .. })
            if trace.is_some_and(|info| !info.has_completions) =>
        {
            wrong(format!(
                "`replay` is dependent, but {} does not record when requests completed: auto or arrivals is needed",
                file.display()
            ))
        }
        _ => Ok(()),
    }
}

/// Opens the trace of a workload.
pub fn open(workload: &TraceWorkload) -> Result<TraceReader, ConfigError> {
    let format = workload.format.as_deref().map(str::parse::<Format>).transpose()?;
    Ok(TraceReader::open(&workload.file, &OpenOptions { format, lenient: workload.lenient })?)
}

/// Reads the trace of a workload through for its extents, without counting its footprint.
fn scan(workload: &TraceWorkload) -> Result<TraceInfo, ConfigError> {
    let mut reader = open(workload)?;
    Ok(InfoCollector::without_footprint(reader.format()).collect(&mut reader)?)
}

/// Requests between two reports of progress: too many to be felt, and less than a second.
const REPORT_EVERY: u32 = 1 << 16;

/// The same where each takes a decision: of some microseconds where much has been read, of many
/// milliseconds where all of a drive of today is wanted.
const REPORT_EVERY_DECIDED: u32 = 1 << 6;

/// A source that reports how far it is.
struct Reporting<'a, S> {
    source: S,
    progress: Progress<'a>,
    every: u32,
    until_next: u32,
}

impl<S: Source> Reporting<'_, S> {
    fn report(&mut self) {
        let (done, total) = self.source.progress();
        (self.progress)(done, total);
    }
}

impl<S: Source> Source for Reporting<'_, S> {
    #[inline]
    fn next_arrival(&mut self) -> Result<Option<SimTime>, SourceError> {
        self.source.next_arrival()
    }

    #[inline]
    fn take(&mut self) -> Request {
        self.until_next -= 1;
        if self.until_next == 0 {
            self.until_next = self.every;
            self.report();
        }
        self.source.take()
    }

    #[inline]
    fn completed(&mut self, tag: u64, now: SimTime) {
        self.source.completed(tag, now);
    }

    fn progress(&self) -> (u64, u64) {
        self.source.progress()
    }
}
