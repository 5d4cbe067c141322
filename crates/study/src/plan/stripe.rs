//! The plan for equal disks that share files or a volume: how finely to stripe.

use std::path::{Path, PathBuf};

use freewheel_model::array::allocation::{Allocator, DiskOrder, NewHeat, Passes};
use freewheel_model::array::partition::{
    ArrayModel, DiskModel, DiskQueue, DiskUse, FileProfile, ForkJoin, Load, LoadLimit, Normalised,
    Rules, ServiceEstimate, Starts, Stripes, effective_parallelism, stripes, stripes_of_unit,
};
use freewheel_model::sched::PolicySpec;
use freewheel_sim::config::{
    ArrayConfig, ConfigError, Experiment, Layout, SimConfig, TraceWorkload, Workload,
};
use freewheel_sim::files::{
    Arrivals, FileLoad, FileOnDisks, FilesExperiment, place, simulate, unsynchronised,
};
use freewheel_sim::library;
use freewheel_sim::source::Fit;
use freewheel_trace::{LeftOut, PartAnswers};
use freewheel_units::{BLOCK_BYTES, Blocks, Bytes, grouped};
use rayon::prelude::*;
use serde::Serialize;

use super::error::{PlanError, wrong};
use super::place::enough_requests;
use super::progress::PlanProgressSink;
use super::snapshot::Snapshot;
use super::web::{Logged, of_web_log};
use crate::trace_runs::{has_growing_queue, overview, trace_on_drive};

/// What is to be striped.
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
}

/// What is asked of a plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StripeOptions {
    /// Files, or a trace.
    pub source: StripeSource,
    /// Name of a shipped drive, or path of a drive file; that of the snapshot if nothing is given.
    pub drive: Option<String>,
    /// Number of disks; that of the snapshot if nothing is given.
    pub disks: Option<u32>,
    /// What if this many times as many requests came in the same time.
    pub load: f64,
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
            requests: 50_000,
            electronics: true,
            seed: 1,
        }
    }
}

/// How finely to stripe, and what each choice means.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StripePlan {
    /// What was asked.
    pub options: StripeOptions,
    /// The drive of every disk.
    pub drive: String,
    /// Number of disks.
    pub disks: u32,
    /// Requests a second.
    pub rate: f64,
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
    /// The unit with the shortest response in the simulation.
    pub best: Option<Bytes>,
    /// The units that were tried, ascending.
    pub units: Vec<StripeUnit>,
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
    /// Whether every file finds room: large units leave large parts.
    pub fits: bool,
}

/// How a file is striped.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StripedFile {
    /// Its name.
    pub file: String,
    /// Bytes of a run.
    pub unit: Bytes,
    /// Disks that it lies on.
    pub width: u32,
}

/// The block in which units and requests are counted.
const BLOCK: Bytes = Bytes::from_kib(4);
/// The largest unit that is tried holds about this many requests, so that few cross its end.
const REQUESTS_IN_UNIT: f64 = 16.0;
/// Least of the largest units that are tried, in blocks: 1 MiB.
const UNIT_LARGE: u64 = 256;
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
            let Logged { snapshot, left_out, parts, sites } = of_web_log(path, drive, disks)?;
            let plan = Striped::of_files(options, &snapshot)?.plan(options, progress)?;
            let (left_out, part_answers) = (Some(left_out), Some(parts));
            Ok(StripePlan { left_out, part_answers, sites, ..plan })
        }
        StripeSource::Trace(trace) => {
            Striped::of_trace(options, trace, progress)?.plan(options, progress)
        }
    }
}

/// What a trace or a log does not say.
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
    /// Time from the first request of a trace to its last.
    span_ns: u64,
}

/// A file in blocks of the model.
struct StripeFile {
    name: String,
    blocks: u64,
    request: f64,
    rate: f64,
    reads: f64,
}

fn in_blocks(bytes: Bytes) -> u64 {
    bytes.get().div_ceil(BLOCK.get())
}

fn sectors(blocks: u64) -> Blocks {
    Blocks::new(blocks * (BLOCK.get() / BLOCK_BYTES))
}

fn bytes(blocks: u64) -> Bytes {
    Bytes::new(blocks * BLOCK.get())
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
        let file = |entry: &super::FileEntry| StripeFile {
            name: entry.name.clone(),
            blocks: in_blocks(entry.size),
            request: in_blocks(entry.request.unwrap_or(entry.size).min(entry.size)) as f64,
            rate: options.load * entry.rate,
            reads: entry.reads,
        };
        let files: Vec<StripeFile> = snapshot.files.iter().map(file).collect();
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
        let load = Load { rate, request };
        Ok(Self { drive, disks, array, load, files, span_ns: 0 })
    }

    fn of_trace(
        options: &StripeOptions,
        trace: &TraceWorkload,
        progress: PlanProgressSink<'_>,
    ) -> Result<Self, PlanError> {
        let (drive, disks) = drive_and_disks(options)?;
        let info = overview(trace, options.seed, |done, total| {
            progress("reading the trace", done, total)
        })?;
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
        let span_ns = (info.span_ns as f64 / options.load) as u64;
        Ok(Self { drive: drive.to_owned(), disks, array, load, files: Vec::new(), span_ns })
    }

    fn plan(
        self,
        options: &StripeOptions,
        progress: PlanProgressSink<'_>,
    ) -> Result<StripePlan, PlanError> {
        let limit = LoadLimit::of(&self.array, &self.load, &RULES);
        let disk = &self.array.disk;
        let alone = disk.optimal_parallelism(self.load.request, self.disks, RULES.service);
        let units = self.units(options, progress)?;
        let least = |of: fn(&StripeUnit) -> Option<f64>| {
            let known = units.iter().filter_map(|unit| Some((unit.unit, of(unit)?)));
            known.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(unit, _)| unit)
        };
        let (chosen, best) = (least(|unit| unit.response_s), least(|unit| unit.simulated_s));
        let own: Vec<Stripes> = self.files.iter().map(|file| self.stripes(file, &limit)).collect();
        let files_response_s = match (own.is_empty(), &limit) {
            (false, Some(_)) => self.simulate_files(options, &own)?,
            _ => None,
        };
        let file = |(file, own): (&StripeFile, &Stripes)| StripedFile {
            file: file.name.clone(),
            unit: bytes(own.unit),
            width: own.width,
        };
        Ok(StripePlan {
            options: options.clone(),
            disks: self.disks,
            rate: self.load.rate,
            left_out: None,
            part_answers: None,
            sites: Vec::new(),
            request: Bytes::new((self.load.request * BLOCK.get() as f64) as u64),
            alone,
            chosen,
            best,
            units,
            files: self.files.iter().zip(&own).map(file).collect(),
            files_response_s,
            drive: self.drive,
        })
    }

    /// Tries powers of two of the block, as many at a time as there are cores.
    fn units(
        &self,
        options: &StripeOptions,
        progress: PlanProgressSink<'_>,
    ) -> Result<Vec<StripeUnit>, PlanError> {
        let largest = ((REQUESTS_IN_UNIT * self.load.request) as u64).max(UNIT_LARGE);
        let tried: Vec<u64> =
            (0..=largest.next_power_of_two().trailing_zeros()).map(|power| 1 << power).collect();
        let all = tried.len() as u64;
        let mut units = Vec::new();
        for some in tried.chunks(rayon::current_num_threads().max(1)) {
            progress("simulating stripe units", units.len() as u64, all);
            let unit = |&unit: &u64| self.unit(options, unit);
            units.extend(some.par_iter().map(unit).collect::<Result<Vec<_>, _>>()?);
        }
        Ok(units)
    }

    /// A file's own unit and width.
    fn stripes(&self, file: &StripeFile, limit: &Option<LoadLimit>) -> Stripes {
        let parallelism = effective_parallelism(&self.array, file.request, limit.as_ref(), &RULES);
        let profile =
            FileProfile { blocks: file.blocks, request: file.request, starts: Starts::Anywhere };
        stripes(&profile, parallelism, self.disks)
    }

    fn unit(&self, options: &StripeOptions, unit: u64) -> Result<StripeUnit, PlanError> {
        let all = self.runs(unit);
        let mean =
            |of: &dyn Fn(&Runs) -> f64| all.iter().map(|(share, runs)| share * of(runs)).sum();
        let runs: f64 = mean(&Runs::mean);
        let service = self.array.disk.service(f64::max(self.load.request / runs, 1.0));
        let saturation = f64::from(self.disks) / (runs * service.mean);
        let queue = DiskQueue::new(self.load.rate * runs / f64::from(self.disks), service);
        let response_s = queue.map(|queue| {
            let of = |runs| queue.request_response_s(runs, self.disks, RULES.fork_join);
            let by_runs: Vec<f64> = (1..=self.disks).map(of).collect();
            mean(&|runs| runs.mix(|runs| by_runs[runs as usize - 1]))
        });
        let mut fits = true;
        let simulated_s = match (&options.source, response_s) {
            (StripeSource::Trace(trace), _) => self.replay(options, trace, unit)?,
            (_, Some(_)) => {
                let of = |file: &StripeFile| stripes_of_unit(file.blocks, unit, self.disks);
                let all: Vec<Stripes> = self.files.iter().map(of).collect();
                let simulated_s = self.simulate_files(options, &all)?;
                fits = simulated_s.is_some();
                simulated_s
            }
            (_, None) => None,
        };
        Ok(StripeUnit {
            unit: bytes(unit),
            disks: runs,
            busy: self.load.rate / saturation,
            saturation,
            response_s,
            simulated_s,
            fits,
        })
    }

    /// How many disks the requests to each file work with a unit, with the file's share of all requests; a
    /// volume is one file.
    fn runs(&self, unit: u64) -> Vec<(f64, Runs)> {
        if self.files.is_empty() {
            return vec![(1.0, Runs::of(self.load.request, unit, self.disks))];
        }
        let used = self.files.iter().filter(|file| file.rate > 0.0);
        let of = |file: &StripeFile| {
            let width = stripes_of_unit(file.blocks, unit, self.disks).width;
            (file.rate / self.load.rate, Runs::of(file.request, unit, width))
        };
        used.map(of).collect()
    }

    /// Mean response of Poisson arrivals at the files' rates. None where a part of a file has no room.
    fn simulate_files(
        &self,
        options: &StripeOptions,
        all: &[Stripes],
    ) -> Result<Option<f64>, PlanError> {
        let spec = library::spec(&self.drive)?;
        let on_disks = |(file, own): (&StripeFile, &Stripes)| FileOnDisks {
            blocks: sectors(file.blocks),
            unit: sectors(own.unit),
            width: own.width,
            boundary: sectors(1),
            heat: file.rate * self.array.disk.service(file.request).mean,
        };
        let files: Vec<FileOnDisks> = self.files.iter().zip(all).map(on_disks).collect();
        let mut order: Vec<usize> = (0..files.len()).collect();
        order.sort_by(|&a, &b| files[b].heat.total_cmp(&files[a].heat));
        let disks = unsynchronised(&spec, self.disks)
            .map_err(|source| library::DriveError::Build { origin: self.drive.clone(), source })?;
        let capacities: Vec<Blocks> = disks.iter().map(|disk| disk.blocks()).collect();
        let mut allocator = Allocator::new(DiskOrder::Coolest, Passes::ByStatus, NewHeat::AtOnce);
        let Ok(placed) = place(&files, order, &capacities, &mut allocator) else {
            return Ok(None);
        };
        let load = |file: &StripeFile| FileLoad {
            blocks: sectors(file.blocks),
            request: sectors(file.request as u64),
            rate: file.rate,
            reads: file.reads,
        };
        let loads: Vec<FileLoad> = self.files.iter().map(load).collect();
        let experiment = FilesExperiment {
            disks: &disks,
            map: &placed.map,
            arrivals: Arrivals::Poisson { loads: &loads, requests: options.requests },
            policy: PolicySpec::Fcfs,
            cache: None,
            warm_up: 0.1,
            seed: options.seed,
        };
        Ok(Some(simulate(&experiment, &mut |_| {})?.response.mean_ns / 1e9))
    }

    /// Mean response of the trace on a striped volume. None where its queue grows to the end: then the mean
    /// says how long the trace is.
    fn replay(
        &self,
        options: &StripeOptions,
        trace: &TraceWorkload,
        unit: u64,
    ) -> Result<Option<f64>, ConfigError> {
        let array = ArrayConfig {
            layout: Layout::Striped,
            drives: Some(self.disks),
            stripe_unit: bytes(unit),
            ..ArrayConfig::default()
        };
        let trace = TraceWorkload { arrival_speedup: options.load, ..trace.clone() };
        let config = SimConfig {
            array,
            workload: Workload::Trace(trace.clone()),
            ..trace_on_drive(&trace, &self.drive, options.electronics, options.seed)
        };
        let experiment = Experiment::new(config)?;
        let result = experiment.run()?;
        let queue_grows = has_growing_queue(experiment.is_dependent(), self.span_ns, &result);
        Ok((!queue_grows).then_some(result.response.mean_ns / 1e9))
    }
}

/// The model of an array of which `used` blocks in all hold data.
fn array(drive: &str, disks: u32, (used, read_share): (u64, f64)) -> Result<ArrayModel, PlanError> {
    let (_, drive) = library::drive(drive)?;
    let all = drive.blocks().bytes().get() / BLOCK.get() * u64::from(disks);
    let filled_share = (used as f64 / all as f64).clamp(0.001, 1.0);
    let usage = DiskUse { filled_share, read_share, block: BLOCK };
    Ok(ArrayModel { disk: DiskModel::of(&drive, &usage), disks })
}

/// How many runs a request touches that begins at any block: one of two neighbouring numbers.
struct Runs {
    fewer: u32,
    /// Chance of one more.
    more: f64,
}

impl Runs {
    /// `request` blocks begin k blocks before the end of a run, each k with the same chance. So they
    /// touch floor((R-1)/U) runs beside the first, and with the chance of the remainder one more.
    fn of(request: f64, unit: u64, disks: u32) -> Self {
        let exact = (request - 1.0).max(0.0) / unit as f64;
        let whole = libm::floor(exact);
        match 1.0 + whole < f64::from(disks) {
            true => Self { fewer: 1 + whole as u32, more: exact - whole },
            // Then it works every disk, with several runs on each.
            false => Self { fewer: disks, more: 0.0 },
        }
    }

    fn mean(&self) -> f64 {
        f64::from(self.fewer) + self.more
    }

    /// The mean of a quantity over the number of runs.
    fn mix(&self, of: impl Fn(u32) -> f64) -> f64 {
        let more = if self.more > 0.0 { self.more * of(self.fewer + 1) } else { 0.0 };
        (1.0 - self.more) * of(self.fewer) + more
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_touches_the_runs_that_counting_finds() {
        for (request, unit, disks) in [(5, 4, 9), (5, 5, 9), (1, 3, 9), (17, 4, 9), (40, 4, 6)] {
            let touched = |start: u64| u32::min(((start + request - 1) / unit + 1) as u32, disks);
            let counted: u32 = (0..unit).map(touched).sum();
            let runs = Runs::of(request as f64, unit, disks);
            let mean = f64::from(counted) / unit as f64;
            assert!((runs.mean() - mean).abs() < 1e-12, "{request} {unit}: {} {mean}", runs.mean());
            assert!((runs.mix(f64::from) - mean).abs() < 1e-12);
        }
    }
}
