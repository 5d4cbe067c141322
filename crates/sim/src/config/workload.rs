//! Sources of an experiment's requests.

use freewheel_array::config::FilesWorkload;
use std::path::{Path, PathBuf};

use freewheel_trace::{
    Clock, Format, Layer, Numbers, NumbersFound, OpenOptions, Survey, TimeUnit, Timing, TraceInfo,
    TraceReader,
};
use freewheel_units::{Blocks, SimDuration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ConfigError, PostmarkWorkload, default_requests, is_default, is_unchanged, unchanged};
use crate::library;
use crate::source::{Fit, PatternSpec, ReplayMode, ReplayTiming, SPEEDUP_MIN, TracedThinkTime};

/// Source of an experiment's requests.
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
        think_time: SimDuration,
        /// Distribution of the think time: a constant, or the mean of an exponential.
        #[serde(default)]
        think_time_distribution: ThinkTimeDistribution,
        /// Pattern of the requests.
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
        /// Pattern of the requests.
        #[serde(default)]
        pattern: PatternSpec,
    },
    /// A trace, played back.
    Trace(TraceWorkload),
    /// PostMark on a log-structured disk, whose cleaner may use the gaps (osdi00 section 5).
    Postmark(PostmarkWorkload),
    /// Files on the disks of the array, each where the placement puts it (tr96).
    Files(FilesWorkload),
}

impl Default for Workload {
    /// One random request at a time.
    fn default() -> Self {
        Self::Closed {
            requests: default_requests(),
            outstanding: one(),
            think_time: SimDuration::ZERO,
            think_time_distribution: ThinkTimeDistribution::default(),
            pattern: PatternSpec::default(),
        }
    }
}

/// A trace and how to play it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TraceWorkload {
    /// The file; a relative path starts at the folder of the experiment.
    pub file: PathBuf,
    /// Further traces, replayed at the same time as independent streams: each has its window and parents,
    /// and its addresses lie behind those of the trace before. All begin together. Relative paths start
    /// at the folder of the experiment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub merge: Vec<PathBuf>,
    /// Name of its format; detected from the contents when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    /// Counts and skips malformed records, and reads a damaged .gz or .zst up to the damage. Otherwise
    /// the run stops there.
    #[serde(default)]
    pub lenient: bool,
    /// Unit of its times, `s`, `ms`, `us` or `ns`, in formats that come with several; found out when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_unit: Option<TimeUnit>,
    /// Origin of its times; what the format says when absent. From the start, a clock that steps back to
    /// the beginning begins another recording, which follows; absolute times are sorted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<Clock>,
    /// Meaning of numbers in the formats of cache simulators; found out when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numbers: Option<Numbers>,
    /// True if requests count that a cache in front of the traced disk served, where the trace tells.
    #[serde(default, skip_serializing_if = "is_default")]
    pub cache_hits: bool,
    /// Layer of a block layer's trace whose requests are replayed (blkparse, blktrace, ftrace): those that
    /// were queued, or those that were issued to the drive, each with all that was merged into it. `auto`
    /// takes the issued ones where at least one queued request in a hundred was merged.
    #[serde(default, skip_serializing_if = "is_default")]
    pub layer: Layer,
    /// Treatment of requests whose clock has steps of 1 ms or more.
    #[serde(default, skip_serializing_if = "is_default")]
    pub coarse_times: CoarseTimes,
    /// Replays this device of the trace only; all devices end to end when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<u32>,
    /// Fit of a trace whose size is not the drive's.
    #[serde(default)]
    pub fit: Fit,
    /// Timing of arrivals.
    #[serde(default)]
    pub replay: ReplayMode,
    /// Think times of a dependent replay: `kept`, `removed`, or `{ speedup = 4 }` for a processor that
    /// is four times as fast.
    #[serde(default, skip_serializing_if = "is_default")]
    pub think_time: TracedThinkTime,
    /// Name of a shipped drive, or path of a drive file, from the folder of the experiment. A dependent
    /// replay of a trace that records no completions takes them from this drive, simulated at the traced
    /// arrivals first. The smallest shipped drive that holds the trace when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference_drive: Option<String>,
    /// Factor by which traced times become shorter in a replay by arrival.
    #[serde(default = "unchanged", skip_serializing_if = "is_unchanged")]
    pub arrival_speedup: f64,
    /// Path that results show in place of a temporary file, which has another name each time.
    #[serde(skip)]
    pub shown_as: Option<PathBuf>,
}

impl Default for TraceWorkload {
    /// A trace without a name, played back as it is.
    fn default() -> Self {
        Self {
            file: PathBuf::new(),
            merge: Vec::new(),
            format: None,
            lenient: false,
            time_unit: None,
            clock: None,
            numbers: None,
            cache_hits: false,
            layer: Layer::default(),
            coarse_times: CoarseTimes::default(),
            device: None,
            fit: Fit::default(),
            replay: ReplayMode::default(),
            think_time: TracedThinkTime::default(),
            reference_drive: None,
            arrival_speedup: unchanged(),
            shown_as: None,
        }
    }
}

impl TraceWorkload {
    /// The workload as results repeat it: with the path that they show.
    pub fn shown(&self) -> Self {
        let file = self.shown_as.as_ref().unwrap_or(&self.file).clone();
        Self { file, shown_as: None, ..self.clone() }
    }

    /// Relative paths count from `folder`, but for those of keys that are overridden.
    pub(super) fn start_paths_at(&mut self, folder: &Path, is_overridden: impl Fn(&str) -> bool) {
        if !is_overridden("file") {
            self.file = folder.join(&self.file);
        }
        if !is_overridden("merge") {
            self.merge.iter_mut().for_each(|file| *file = folder.join(&*file));
        }
        if let Some(drive) =
            self.reference_drive.as_mut().filter(|_| !is_overridden("reference_drive"))
        {
            *drive = library::from_folder(drive, folder);
        }
    }

    pub(crate) fn streams(&self) -> Vec<Self> {
        let files = std::iter::once(&self.file).chain(&self.merge);
        files.map(|file| Self { file: file.clone(), merge: Vec::new(), ..self.clone() }).collect()
    }

    /// Time at which the requests of a trace with this first pass arrive.
    pub(crate) fn timing(&self, trace: Option<&TraceInfo>) -> ReplayTiming {
        let is_dependent = match self.replay {
            ReplayMode::Auto => trace.is_some_and(TraceInfo::tells_dependence),
            mode => mode == ReplayMode::Dependent,
        };
        if is_dependent {
            ReplayTiming::Dependent(self.think_time)
        } else {
            ReplayTiming::Arrivals { speedup: self.arrival_speedup }
        }
    }

    /// True if the completions of a trace with this first pass are inferred.
    pub(crate) fn infers(&self, trace: &TraceInfo) -> bool {
        self.replay == ReplayMode::Dependent && !trace.tells_dependence()
    }
}

/// Treatment of requests whose clock is coarser than a disk's service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CoarseTimes {
    /// Spreads requests evenly over the step of the clock, in order, at random moments of their parts.
    #[default]
    Spread,
    /// All of a step come at its beginning, as the trace has them.
    Bunched,
}

impl CoarseTimes {
    /// The other one.
    pub fn other(self) -> Self {
        match self {
            Self::Spread => Self::Bunched,
            Self::Bunched => Self::Spread,
        }
    }
}

/// Distribution of think times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ThinkTimeDistribution {
    /// All the same.
    #[default]
    Constant,
    /// Exponential with this mean.
    Exponential,
}

const fn one() -> u32 {
    1
}

/// Most outstanding requests of a closed workload. Memory grows with them, as each has a terminal.
const OUTSTANDING_MAX: u32 = 1_000_000;

/// Longest mean time between requests.
const GAP_MAX: SimDuration = SimDuration::from_secs(3600);

/// Longest total of a run's gaps: a third of the range of event times.
pub(super) const SPAN_MAX: SimDuration = SimDuration::from_ns((1 << 63) / 3);

pub(crate) fn check_workload(
    workload: &Workload,
    trace: Option<&TraceInfo>,
    capacity: Blocks,
) -> Result<(), ConfigError> {
    if let Workload::Closed { pattern, .. } | Workload::Open { pattern, .. } = workload {
        pattern.check(capacity).map_err(|message| ConfigError::Workload { message })?;
    }
    if let (Workload::Trace(TraceWorkload { file, .. }), Some(0)) =
        (workload, trace.map(|info| info.requests))
    {
        return wrong(format!("`file`: {} holds no requests: give another trace", file.display()));
    }
    if let (Workload::Trace(TraceWorkload { file, .. }), Some(info)) = (workload, trace) {
        check_timing(info.format, info.survey.as_ref(), file)?;
    }
    if let Workload::Trace(replayed) = workload {
        check_pace(replayed, trace).map_err(|message| ConfigError::Workload { message })?;
    }
    if let Workload::Files(files) = workload {
        return files.check().map_err(|message| ConfigError::Workload { message });
    }
    match workload {
        Workload::Closed { requests: 0, .. } | Workload::Open { requests: 0, .. } => {
            wrong("`requests` is 0: at least 1 is needed".into())
        }
        Workload::Closed { outstanding, .. } if !(1..=OUTSTANDING_MAX).contains(outstanding) => {
            wrong(format!("`outstanding` is {outstanding}: 1 to {OUTSTANDING_MAX} are allowed"))
        }
        Workload::Closed { think_time: time, .. } | Workload::Open { mean_gap: time, .. }
            if *time > GAP_MAX =>
        {
            wrong(format!(
                "a mean time of {time} between requests is too long: at most {GAP_MAX} is allowed"
            ))
        }
        Workload::Closed { think_time: gap, requests, .. }
        | Workload::Open { mean_gap: gap, requests, .. }
            if gap.ns().saturating_mul(*requests) > SPAN_MAX.ns() =>
        {
            wrong(format!(
                "{requests} requests {gap} apart take too long: at most {SPAN_MAX} can be simulated"
            ))
        }
        _ => Ok(()),
    }
}

fn wrong<T>(message: String) -> Result<T, ConfigError> {
    Err(ConfigError::Workload { message })
}

/// Largest factor by which arrivals become shorter.
const ARRIVAL_SPEEDUP_MAX: f64 = 1e6;

/// Err for think times and speedups that the replay of this trace does not take; its timing may be unknown
/// before the first pass over it.
fn check_pace(workload: &TraceWorkload, trace: Option<&TraceInfo>) -> Result<(), String> {
    let &TraceWorkload { think_time, arrival_speedup, replay, .. } = workload;
    if !(SPEEDUP_MIN..=ARRIVAL_SPEEDUP_MAX).contains(&arrival_speedup) {
        return Err(format!(
            "`arrival_speedup` is {arrival_speedup}: {SPEEDUP_MIN} to {ARRIVAL_SPEEDUP_MAX} are allowed"
        ));
    }
    if replay == ReplayMode::Auto && trace.is_none() {
        return Ok(());
    }
    if let (Some(drive), Some(info)) = (&workload.reference_drive, trace)
        && !workload.infers(info)
    {
        return Err(format!(
            "`reference_drive` is {drive}, which only a dependent replay without recorded completions takes: leave it out, or give `replay = \"dependent\"` where completions are missing"
        ));
    }
    let stretch = match workload.timing(trace) {
        ReplayTiming::Dependent(_) if arrival_speedup != unchanged() => {
            return Err("`arrival_speedup` changes times of arrival, and this replay is dependent: give `think_time`, or `replay = \"arrivals\"`".into());
        }
        ReplayTiming::Arrivals { .. } if think_time != TracedThinkTime::Kept => {
            return Err("`think_time` needs a dependent replay, and this one is by arrival: give `arrival_speedup`, or `replay = \"dependent\"`".into());
        }
        ReplayTiming::Dependent(think_time) => think_time.stretch(),
        ReplayTiming::Arrivals { speedup } => 1.0 / speedup,
    };
    match trace {
        Some(info) if info.span_ns as f64 * stretch > SPAN_MAX.ns() as f64 => Err(format!(
            "at this pace the trace takes too long: at most {SPAN_MAX} can be simulated"
        )),
        _ => Ok(()),
    }
}

/// Err for a trace of this format that a disk cannot serve: it tells only the order of requests, or its
/// numbers name objects.
pub fn check_timing(
    format: Format,
    survey: Option<&Survey>,
    file: &Path,
) -> Result<(), ConfigError> {
    let numbers = survey.and_then(|survey| survey.numbers);
    let lacks = match (format.timing(), numbers) {
        (Timing::None, _) => "has no times",
        (_, Some(NumbersFound { name: Numbers::Objects, .. })) => {
            "names objects, which have no places on a disk"
        }
        (Timing::Recorded | Timing::Seconds, _) => return Ok(()),
    };
    Err(ConfigError::NoTiming { file: file.to_owned(), format, lacks })
}

/// Options that read the trace of a workload, in an experiment with this seed.
fn options(workload: &TraceWorkload, seed: u64) -> Result<OpenOptions, ConfigError> {
    Ok(OpenOptions {
        format: workload.format.as_deref().map(str::parse::<Format>).transpose()?,
        lenient: workload.lenient,
        time_unit: workload.time_unit,
        clock: workload.clock,
        numbers: workload.numbers,
        cache_hits: workload.cache_hits,
        layer: workload.layer,
        spread: (workload.coarse_times == CoarseTimes::Spread).then_some(seed),
    })
}

/// Opens the trace of a workload, for the first time.
pub fn open(workload: &TraceWorkload, seed: u64) -> Result<TraceReader, ConfigError> {
    Ok(TraceReader::open(&workload.file, &options(workload, seed)?)?)
}

/// Opens the trace of a workload again, after this first pass over it.
pub fn reopen(
    workload: &TraceWorkload,
    seed: u64,
    first: &TraceInfo,
) -> Result<TraceReader, ConfigError> {
    match first.survey {
        Some(survey) => {
            Ok(TraceReader::open_surveyed(&workload.file, &options(workload, seed)?, survey)?)
        }
        None => open(workload, seed),
    }
}
