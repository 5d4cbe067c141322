//! The plan for equal disks that share files or a volume: how finely to stripe.

mod blocks;
mod chen;
mod simulation;

use std::path::{Path, PathBuf};

use freewheel_array::partition::{
    ArrayModel, DiskModel, DiskQueue, DiskUse, FileProfile, ForkJoin, Load, LoadLimit, Normalised,
    Rules, ServiceEstimate, Starts, Stripes, effective_parallelism, stripes, stripes_of_unit,
};
use freewheel_array::plan::{
    AtLoad, BEYOND, Mean, Runs, StripeChoice, StripeTurn, holds, unit_to_take,
};
use freewheel_sim::config::TraceWorkload;
use freewheel_sim::files::LoggedUse;
use freewheel_sim::library;
use freewheel_sim::source::{Fit, RecordKeeper, ReplayMode};
use freewheel_trace::{LeftOut, PartAnswers};
use freewheel_units::{BLOCK_BYTES, Bytes, grouped};
use rayon::prelude::*;
use serde::Serialize;

use self::blocks::{BLOCK, bytes, in_blocks};
use self::simulation::{FilesOnDisks, StripeFile, TraceOnVolume};
use super::error::{PlanError, wrong};
use super::place::enough_requests;
use super::progress::PlanProgressSink;
use super::snapshot::Snapshot;
use super::web::of_web_log;
use crate::trace_runs::overview;

pub use self::chen::ChenUnit;

/// Files or volume to be striped.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum StripeSource {
    /// Files with their rates: a snapshot.
    Files(PathBuf),
    /// A volume, with the requests of a trace.
    Trace(TraceWorkload),
    /// The files of a web server, with the rates of its log.
    WebLog(PathBuf),
}

impl StripeSource {
    /// The file that is read.
    pub fn file(&self) -> &Path {
        match self {
            Self::Files(file) | Self::WebLog(file) => file,
            Self::Trace(trace) => &trace.file,
        }
    }

    /// The source as results repeat it.
    fn shown(&self) -> Self {
        match self {
            Self::Trace(trace) => Self::Trace(trace.shown()),
            Self::Files(_) | Self::WebLog(_) => self.clone(),
        }
    }
}

/// Options of a plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StripeOptions {
    /// Files, or a trace.
    pub source: StripeSource,
    /// Name of a shipped drive, or path of a drive file; that of the snapshot if absent.
    pub drive: Option<String>,
    /// Number of disks; that of the snapshot if absent.
    pub disks: Option<u32>,
    /// Factor of the number of requests in the same time.
    pub load: f64,
    /// Largest factor of the load at which the unit to take must still be the best.
    pub headroom: f64,
    /// Requests of each simulation of files. A trace is replayed as a whole.
    pub requests: u64,
    /// Simulates the drives' electronics in the replay of a trace.
    pub electronics: bool,
    /// Seed of every random stream.
    pub seed: u64,
}

impl StripeOptions {
    /// The usual ones for this source.
    pub fn new(source: StripeSource) -> Self {
        Self {
            source,
            drive: None,
            disks: None,
            load: 1.0,
            headroom: 2.0,
            requests: 50_000,
            electronics: true,
            seed: 1,
        }
    }
}

/// Choice of the stripe unit, and the effect of each choice.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct StripePlan {
    pub options: StripeOptions,
    /// The drive of every disk.
    pub drive: String,
    pub disks: u32,
    /// Requests a second.
    pub rate: f64,
    /// True if requests of a trace wait for each other at this load. At higher ones they come at their
    /// traced times.
    pub dependent_replay: bool,
    /// Lines of a web server's log that count as no request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out: Option<LeftOut>,
    /// Answers 206 of a web server's log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part_answers: Option<PartAnswers>,
    /// The sites that a web server's log tells apart, if it has several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sites: Vec<String>,
    /// Mean size of a request.
    pub request: Bytes,
    /// Disks a request that is best for a request alone.
    pub alone: u32,
    /// The unit with the shortest response by the model; none where the disks cannot serve the load.
    pub chosen: Option<Bytes>,
    /// The unit with the shortest response in the simulation, at this load.
    pub best: Option<Bytes>,
    /// The unit to take; none where no unit serves the load with its headroom.
    pub take: Option<StripeChoice>,
    /// The unit of Chen's formula beside it; none where no unit serves the load.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chen: Option<ChenUnit>,
    /// The units that were tried, ascending.
    pub units: Vec<StripeUnit>,
    /// The higher loads that were tried, ascending; the first is the headroom.
    pub higher_loads: Vec<StripeLoad>,
    /// A unit and a width for each file.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<StripedFile>,
    /// The mean response with these, simulated, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files_response_s: Option<f64>,
}

/// A stripe unit for all that is striped.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct StripeUnit {
    /// The unit.
    pub unit: Bytes,
    /// Disks that a request of the mean size works, on average.
    pub disks: f64,
    /// Share of the time in which each disk is busy, by the model.
    pub busy: f64,
    /// Requests a second at which the disks are always busy.
    pub saturation: f64,
    /// Mean response by the model, in seconds; none where the disks cannot serve the load.
    pub response_s: Option<f64>,
    /// Mean response simulated, in seconds; none where the disks cannot serve the load or have no room.
    pub simulated_s: Option<f64>,
    /// True if every file finds room: large units leave large parts.
    pub fits: bool,
}

/// Results of units under a higher load.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StripeLoad {
    /// The load, in multiples of the plan's.
    pub factor: f64,
    /// Mean response with each unit, simulated, in seconds; none where the disks cannot serve the load or have
    /// no room.
    pub simulated_s: Vec<Option<f64>>,
    /// Share of the time in which the drives are busy with each unit at worst: where their buffers do not help,
    /// or requests do not follow each other; 1 where they cannot serve the load.
    pub busy_at_worst: Vec<f64>,
}

/// Striping of a file.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StripedFile {
    /// Name of the file.
    pub file: String,
    /// Bytes of a run.
    pub unit: Bytes,
    /// Disks that it lies on.
    pub width: u32,
}

/// The largest unit that is tried holds about this many requests, so that few cross its end.
const REQUESTS_IN_UNIT: f64 = 16.0;
/// Least of the largest units that are tried, in blocks: 2 MiB, the largest that a study stripes by.
const UNIT_LARGE: u64 = 512;
/// Loads to try where no unit keeps the headroom, as its powers.
const LESS: [f64; 4] = [0.75, 0.5, 0.25, 0.0];
/// Our correction for fork and join: equation 25 of tr96 is 24 % off on average.
const RULES: Rules = Rules {
    fork_join: ForkJoin::SharedWaits,
    service: ServiceEstimate::JointMaximum,
    normalised: Normalised::Exact,
};

/// Works out how finely to stripe files or a volume over equal disks.
pub fn plan_stripe(
    options: &StripeOptions,
    progress: PlanProgressSink<'_>,
) -> Result<StripePlan, PlanError> {
    match &options.source {
        StripeSource::Files(path) => {
            let snapshot = Snapshot::load(path)?;
            Striped::of_files(options, &snapshot)?.plan(options, progress)
        }
        StripeSource::WebLog(path) => {
            let (drive, disks) = drive_and_disks(options)?;
            let (snapshot, log) = of_web_log(path, drive, disks)?;
            let LoggedUse { left_out, parts, sites, .. } = log;
            let plan = Striped::of_files(options, &snapshot)?.plan(options, progress)?;
            let (left_out, part_answers) = (Some(left_out), Some(parts));
            Ok(StripePlan { left_out, part_answers, sites, ..plan })
        }
        StripeSource::Trace(trace) => {
            Striped::of_trace(options, trace, progress)?.plan(options, progress)
        }
    }
}

/// Drive and number of disks, which a trace or a log does not tell.
fn drive_and_disks(options: &StripeOptions) -> Result<(&str, u32), PlanError> {
    match (&options.drive, options.disks) {
        (Some(drive), Some(disks)) => Ok((drive, disks)),
        _ => wrong(format!(
            "{}: it does not say on which disks it is to lie: give --disks, and --drive if it is not the usual one",
            options.source.file().display()
        )),
    }
}

/// An array, its load, and what is simulated.
struct Striped {
    drive: String,
    disks: u32,
    array: ArrayModel,
    load: Load,
    files: Vec<StripeFile>,
    /// The replay of a trace.
    trace: Option<TraceOnVolume>,
}

impl Striped {
    fn of_files(options: &StripeOptions, snapshot: &Snapshot) -> Result<Self, PlanError> {
        let first = &snapshot.disks[0].drive;
        let drive = match &options.drive {
            Some(drive) => drive.clone(),
            None if snapshot.disks.iter().all(|disk| disk.drive == *first) => first.clone(),
            None => {
                let message = "the disks of the snapshot are unlike, and stripes need equal ones: --drive and --disks say which";
                return wrong(message);
            }
        };
        let disks = options.disks.unwrap_or(snapshot.disks.len() as u32);
        let mut files: Vec<StripeFile> = snapshot
            .files
            .iter()
            .map(|entry| StripeFile {
                name: entry.name.clone(),
                blocks: in_blocks(entry.size),
                request: in_blocks(entry.request.unwrap_or(entry.size).min(entry.size)) as f64,
                rate: options.load * entry.rate,
                reads: entry.reads,
                heat: 0.0,
            })
            .collect();
        let rate: f64 = files.iter().map(|file| file.rate).sum();
        enough_requests(options.source.file(), rate)?;
        let mean = |of: &dyn Fn(&StripeFile) -> f64| {
            files.iter().map(|file| file.rate * of(file)).sum::<f64>() / rate
        };
        let request = mean(&|file| file.request);
        let used: u64 = files.iter().map(|file| file.blocks).sum();
        let capacity = library::drive(&drive)?.1.blocks().bytes().get() * u64::from(disks);
        if bytes(used).get() > capacity {
            let [has, holds] = [bytes(used), Bytes::new(capacity)].map(Bytes::human_decimal);
            return wrong(format!(
                "the files have {has}, and {disks} disks hold {holds}: give more --disks, or a larger --drive"
            ));
        }
        let array = array(&drive, disks, (used, mean(&|file| file.reads)))?;
        for file in &mut files {
            file.heat = file.rate * array.disk.service(file.request).mean;
        }
        let load = Load { rate, request };
        Ok(Self { drive, disks, array, load, files, trace: None })
    }

    fn of_trace(
        options: &StripeOptions,
        trace: &TraceWorkload,
        progress: PlanProgressSink<'_>,
    ) -> Result<Self, PlanError> {
        let (drive, disks) = drive_and_disks(options)?;
        let mut keeper = RecordKeeper::default();
        let info = overview(
            trace,
            options.seed,
            |record| keeper.observe(record),
            |done, total| progress("reading the trace", done, total),
        )?;
        let requests = info.reads + info.writes;
        if requests < 2 || info.span_ns == 0 {
            return wrong(format!(
                "{}: {} reads and writes within {} ns tell no rate",
                trace.file.display(),
                grouped(requests),
                grouped(info.span_ns)
            ));
        }
        let rate = options.load * requests as f64 / (info.span_ns as f64 / 1e9);
        let request = f64::max(info.bytes as f64 / requests as f64 / BLOCK.get() as f64, 1.0);
        let used = match trace.fit {
            Fit::AsIs => info.devices.values().map(|device| device.end_block).sum(),
            // The trace is spread over the whole volume, or folded onto it.
            Fit::Scale | Fit::Wrap => u64::from(disks) * library::drive(drive)?.1.blocks().get(),
        };
        let used = used * BLOCK_BYTES / BLOCK.get();
        let read_share = info.reads as f64 / requests as f64;
        let array = array(drive, disks, (used, read_share))?;
        let load = Load { rate, request };
        let known = (info, keeper.finish());
        let StripeOptions { electronics, seed, .. } = *options;
        let replay = at_load(trace, options.load);
        let trace = TraceOnVolume::new(replay, (drive, disks), electronics, seed, known)?;
        let (drive, trace) = (drive.to_owned(), Some(trace));
        Ok(Self { drive, disks, array, load, files: Vec::new(), trace })
    }

    fn plan(
        self,
        options: &StripeOptions,
        progress: PlanProgressSink<'_>,
    ) -> Result<StripePlan, PlanError> {
        let limit = LoadLimit::of(&self.array, &self.load, &RULES);
        let disk = &self.array.disk;
        let alone = disk.optimal_parallelism(self.load.request, self.disks, RULES.service);
        let tried = self.tried();
        let mut units: Vec<StripeUnit> = tried.iter().map(|&unit| self.unit(unit)).collect();
        let Simulated { now, higher, take } = self.simulate(options, &tried, progress)?;
        for (number, unit) in units.iter_mut().enumerate() {
            unit.simulated_s = now.mean_s(number);
            unit.fits =
                self.trace.is_some() || unit.response_s.is_none() || unit.simulated_s.is_some();
        }
        let least = |of: fn(&StripeUnit) -> Option<f64>| {
            let known = units.iter().filter_map(|unit| Some((unit.unit, of(unit)?)));
            known.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(unit, _)| unit)
        };
        let (chosen, best) = (least(|unit| unit.response_s), least(|unit| unit.simulated_s));
        let advised = take.as_ref().map(|take| take.unit).or(best);
        let chen = match units.iter().find(|tried| Some(tried.unit) == advised) {
            Some(advised) => self.chen(options, advised, progress)?,
            None => None,
        };
        let own: Vec<Stripes> = self.files.iter().map(|file| self.stripes(file, &limit)).collect();
        let files_response_s = match (own.is_empty(), &limit) {
            (false, Some(_)) => self.on_disks(options).mean(&own, 1.0)?.map(|mean| mean.mean_s),
            _ => None,
        };
        Ok(StripePlan {
            options: StripeOptions { source: options.source.shown(), ..options.clone() },
            disks: self.disks,
            rate: self.load.rate,
            dependent_replay: self.trace.as_ref().is_some_and(TraceOnVolume::is_dependent),
            left_out: None,
            part_answers: None,
            sites: Vec::new(),
            request: Bytes::new((self.load.request * BLOCK.get() as f64) as u64),
            alone,
            chosen,
            best,
            take,
            chen,
            units,
            higher_loads: higher.iter().map(|at| of_load(at, tried.len())).collect(),
            files: self
                .files
                .iter()
                .zip(&own)
                .map(|(file, own)| StripedFile {
                    file: file.name.clone(),
                    unit: bytes(own.unit),
                    width: own.width,
                })
                .collect(),
            files_response_s,
            drive: self.drive,
        })
    }

    /// Powers of two of the block.
    fn tried(&self) -> Vec<u64> {
        let largest = ((REQUESTS_IN_UNIT * self.load.request) as u64).max(UNIT_LARGE);
        (0..=largest.next_power_of_two().trailing_zeros()).map(|power| 1 << power).collect()
    }

    /// Simulates the load, the load with its headroom, and higher ones until another unit is better.
    fn simulate(
        &self,
        options: &StripeOptions,
        tried: &[u64],
        progress: PlanProgressSink<'_>,
    ) -> Result<Simulated, PlanError> {
        let load = |factor: f64| self.at_load(options, factor, tried, progress);
        let now = load(1.0)?;
        let with_headroom = match options.headroom == 1.0 {
            true => now.clone(),
            false => load(options.headroom)?,
        };
        let Some((taken, as_good)) = unit_to_take(&now, &with_headroom) else {
            let take = self.with_less_headroom(options.headroom, &now, tried, &load)?;
            return Ok(Simulated { now, higher: vec![with_headroom], take });
        };
        let mut take = StripeChoice {
            unit: bytes(tried[taken]),
            as_good: as_good.iter().map(|&unit| bytes(tried[unit])).collect(),
            holds_up_to: options.headroom,
            turns: None,
        };
        let mut higher = vec![with_headroom];
        for at in BEYOND.map(|times| times * options.headroom) {
            let load = load(at)?;
            if holds(taken, &load) {
                take.holds_up_to = at;
            } else {
                let to = unit_to_take(&now, &load).map(|(unit, _)| bytes(tried[unit]));
                take.turns = Some(StripeTurn { at, to });
            }
            higher.push(load);
            if take.turns.is_some() {
                break;
            }
        }
        Ok(Simulated { now, higher, take: Some(take) })
    }

    /// The unit that keeps the most headroom where none keeps all of it; none where none serves the load
    /// itself.
    fn with_less_headroom(
        &self,
        headroom: f64,
        now: &AtLoad,
        tried: &[u64],
        load: &dyn Fn(f64) -> Result<AtLoad, PlanError>,
    ) -> Result<Option<StripeChoice>, PlanError> {
        let mut fails = headroom;
        for power in LESS {
            let factor = libm::pow(headroom, power);
            let at = if power == 0.0 { now.clone() } else { load(factor)? };
            if let Some((unit, as_good)) = unit_to_take(now, &at) {
                return Ok(Some(StripeChoice {
                    unit: bytes(tried[unit]),
                    as_good: as_good.iter().map(|&unit| bytes(tried[unit])).collect(),
                    holds_up_to: factor,
                    turns: Some(StripeTurn { at: fails, to: None }),
                }));
            }
            fails = factor;
        }
        Ok(None)
    }

    /// Simulates all units under this many times the load, one on each core at a time.
    fn at_load(
        &self,
        options: &StripeOptions,
        factor: f64,
        tried: &[u64],
        progress: PlanProgressSink<'_>,
    ) -> Result<AtLoad, PlanError> {
        let all = tried.len() as u64;
        let task = match factor == 1.0 {
            true => "simulating stripe units".to_owned(),
            false => format!("simulating stripe units at {factor:.2} times the load"),
        };
        let replays = match &self.trace {
            Some(trace) => Some(trace.at_load(options.load, factor)?),
            None => None,
        };
        let one = |&unit: &u64| {
            // By the model, which knows no requests that follow each other.
            let busy = f64::min(factor * self.unit(unit).busy, 1.0);
            match &replays {
                Some(replays) => {
                    let without_buffers = replays.busy_without_buffers(unit)?;
                    Ok((replays.mean(unit)?, busy.max(without_buffers)))
                }
                None => Ok((self.files_mean(options, unit, factor, busy)?, busy)),
            }
        };
        let mut both = Vec::new();
        for some in tried.chunks(rayon::current_num_threads().max(1)) {
            progress(&task, both.len() as u64, all);
            both.extend(some.par_iter().map(one).collect::<Result<Vec<_>, PlanError>>()?);
        }
        let (means, busy) = both.into_iter().unzip();
        Ok(AtLoad { factor, means, busy })
    }

    /// Mean response of files with one unit for all. None where the disks cannot serve them by the model, or
    /// have no room.
    fn files_mean(
        &self,
        options: &StripeOptions,
        unit: u64,
        factor: f64,
        busy: f64,
    ) -> Result<Option<Mean>, PlanError> {
        if busy >= 1.0 {
            return Ok(None);
        }
        let all: Vec<Stripes> =
            self.files.iter().map(|file| stripes_of_unit(file.blocks, unit, self.disks)).collect();
        self.on_disks(options).mean(&all, factor)
    }

    fn on_disks(&self, options: &StripeOptions) -> FilesOnDisks<'_> {
        let StripeOptions { requests, seed, .. } = *options;
        let Self { drive, disks, files, .. } = self;
        FilesOnDisks { drive, disks: *disks, files, requests, seed }
    }

    /// A file's own unit and width.
    fn stripes(&self, file: &StripeFile, limit: &Option<LoadLimit>) -> Stripes {
        let parallelism = effective_parallelism(&self.array, file.request, limit.as_ref(), &RULES);
        let profile =
            FileProfile { blocks: file.blocks, request: file.request, starts: Starts::Anywhere };
        stripes(&profile, parallelism, self.disks)
    }

    /// A unit by the model.
    fn unit(&self, unit: u64) -> StripeUnit {
        let all = self.runs(unit);
        let mean =
            |of: &dyn Fn(&Runs) -> f64| all.iter().map(|(share, runs)| share * of(runs)).sum();
        let runs: f64 = mean(&Runs::mean);
        let service = self.array.disk.service(f64::max(self.load.request / runs, 1.0));
        let saturation = f64::from(self.disks) / (runs * service.mean);
        let queue = DiskQueue::new(self.load.rate * runs / f64::from(self.disks), service);
        let response_s = queue.map(|queue| {
            let by_runs: Vec<f64> = (1..=self.disks)
                .map(|runs| queue.request_response_s(runs, self.disks, RULES.fork_join))
                .collect();
            mean(&|runs| runs.mix(|runs| by_runs[runs as usize - 1]))
        });
        StripeUnit {
            unit: bytes(unit),
            disks: runs,
            busy: self.load.rate / saturation,
            saturation,
            response_s,
            simulated_s: None,
            fits: true,
        }
    }

    /// Number of disks that the requests to each file work with a unit, with the file's share of all
    /// requests; a volume is one file.
    fn runs(&self, unit: u64) -> Vec<(f64, Runs)> {
        if self.files.is_empty() {
            return vec![(1.0, Runs::of(self.load.request, unit, self.disks))];
        }
        let used = self.files.iter().filter(|file| file.rate > 0.0);
        used.map(|file| {
            let width = stripes_of_unit(file.blocks, unit, self.disks).width;
            (file.rate / self.load.rate, Runs::of(file.request, unit, width))
        })
        .collect()
    }
}

/// Simulated results of the units, and the unit to take.
struct Simulated {
    now: AtLoad,
    higher: Vec<AtLoad>,
    take: Option<StripeChoice>,
}

fn of_load(at: &AtLoad, units: usize) -> StripeLoad {
    let simulated_s = (0..units).map(|unit| at.mean_s(unit)).collect();
    StripeLoad { factor: at.factor, simulated_s, busy_at_worst: at.busy.clone() }
}

/// The replay of a trace under another load. A load other than the traced one needs times of arrival.
fn at_load(trace: &TraceWorkload, load: f64) -> TraceWorkload {
    let replay = match trace.replay {
        ReplayMode::Auto if load != 1.0 => ReplayMode::Arrivals,
        replay => replay,
    };
    TraceWorkload { replay, arrival_speedup: load, ..trace.clone() }
}

/// The model of an array of which `used` blocks in all hold data.
fn array(drive: &str, disks: u32, (used, read_share): (u64, f64)) -> Result<ArrayModel, PlanError> {
    let (_, drive) = library::drive(drive)?;
    let all = drive.blocks().bytes().get() / BLOCK.get() * u64::from(disks);
    let filled_share = (used as f64 / all as f64).clamp(0.001, 1.0);
    let usage = DiskUse { filled_share, read_share, block: BLOCK };
    Ok(ArrayModel { disk: DiskModel::of(&drive, &usage), disks })
}
