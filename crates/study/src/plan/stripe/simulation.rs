//! Simulations of files and of a volume with a stripe unit, under a load that grows.

use freewheel_array::allocation::{Allocator, DiskOrder, NewHeat, Passes};
use freewheel_array::files::{FileLoad, FileOnDisks, place, unsynchronised};
use freewheel_array::partition::Stripes;
use freewheel_array::plan::{Mean, PARTS, PartSums};
use freewheel_model::sched::PolicySpec;
use freewheel_sim::RunResult;
use freewheel_sim::config::{ArrayConfig, ConfigError, Layout, SimConfig, TraceWorkload, Workload};
use freewheel_sim::experiment::Experiment;
use freewheel_sim::files::{Arrivals, FilesExperiment, simulate};
use freewheel_sim::library;
use freewheel_sim::source::{KeptRecords, ReplayMode};
use freewheel_trace::TraceInfo;
use freewheel_units::Blocks;

use super::super::error::PlanError;
use super::blocks::{bytes, sectors};
use crate::trace_runs::{has_growing_queue, trace_on_drive};

/// A file in blocks of the model.
pub(super) struct StripeFile {
    pub name: String,
    pub blocks: u64,
    /// Mean size of a request.
    pub request: f64,
    pub rate: f64,
    pub reads: f64,
    /// Requests to the file a second, times the service time of one.
    pub heat: f64,
}

/// Files on equal disks.
pub(super) struct FilesOnDisks<'a> {
    pub drive: &'a str,
    pub disks: u32,
    pub files: &'a [StripeFile],
    pub requests: u64,
    pub seed: u64,
}

/// Share of the requests to files that fill the queues and count in no response.
const WARM_UP: f64 = 0.1;

impl FilesOnDisks<'_> {
    /// Mean response of Poisson arrivals at the files' rates, or at this many times as high ones. None where a
    /// part of a file has no room.
    pub fn mean(&self, all: &[Stripes], factor: f64) -> Result<Option<Mean>, PlanError> {
        let spec = library::spec(self.drive)?;
        let files: Vec<FileOnDisks> = self
            .files
            .iter()
            .zip(all)
            .map(|(file, own)| FileOnDisks {
                blocks: sectors(file.blocks),
                unit: sectors(own.unit),
                width: own.width,
                boundary: sectors(1),
                heat: file.heat,
            })
            .collect();
        let mut order: Vec<usize> = (0..files.len()).collect();
        order.sort_by(|&a, &b| files[b].heat.total_cmp(&files[a].heat));
        let disks = unsynchronised(&spec, self.disks).map_err(|source| {
            library::DriveError::Build { origin: self.drive.to_owned(), source }
        })?;
        let capacities: Vec<Blocks> = disks.iter().map(|disk| disk.blocks()).collect();
        let mut allocator = Allocator::new(DiskOrder::Coolest, Passes::ByStatus, NewHeat::AtOnce);
        let Ok(placed) = place(&files, order, &capacities, &mut allocator) else {
            return Ok(None);
        };
        let loads: Vec<FileLoad> = self
            .files
            .iter()
            .map(|file| FileLoad {
                blocks: sectors(file.blocks),
                request: sectors(file.request as u64),
                rate: factor * file.rate,
                reads: file.reads,
            })
            .collect();
        let experiment = FilesExperiment {
            disks: &disks,
            map: &placed.map,
            arrivals: Arrivals::Poisson { loads: &loads, requests: self.requests },
            policy: PolicySpec::Fcfs,
            cache: None,
            warm_up: WARM_UP,
            seed: self.seed,
        };
        let first = (self.requests as f64 * WARM_UP) as u64;
        // Parts by the order of arrival: so those of two runs have the same requests.
        let mut parts = PartSums::new(self.requests - first);
        let result = simulate(&experiment, &mut |done| {
            parts.add(done.request.tag.saturating_sub(first), done.response().as_secs_f64());
        })?;
        Ok(Some(Mean { mean_s: result.response.mean_ns / 1e9, parts_s: Some(parts.means()) }))
    }
}

/// A trace on a volume that is striped over equal drives.
pub(super) struct TraceOnVolume {
    /// With any stripe unit. Others are made out of it, so that they share drive and records.
    experiment: Experiment,
    /// Time from the first request of the trace to its last, at the traced load.
    span_ns: u64,
}

impl TraceOnVolume {
    /// The trace as it is, with what a first pass told of it.
    pub fn new(
        trace: TraceWorkload,
        (drive, disks): (&str, u32),
        electronics: bool,
        seed: u64,
        (info, records): (TraceInfo, Option<KeptRecords>),
    ) -> Result<Self, ConfigError> {
        let array =
            ArrayConfig { layout: Layout::Striped, drives: Some(disks), ..ArrayConfig::default() };
        let span_ns = info.span_ns;
        let on_drive = trace_on_drive(&trace, drive, electronics, seed);
        let config =
            SimConfig { array, slices: PARTS as u32, workload: Workload::Trace(trace), ..on_drive };
        Experiment::check(&config)?;
        let mut experiment = Experiment::with_trace_info(config, Some(info))?;
        if let Some(records) = records {
            experiment.keep_records(records);
        }
        Ok(Self { experiment, span_ns })
    }

    /// Replays at `factor` times the load, which is `load` times the traced one.
    pub fn at_load(&self, load: f64, factor: f64) -> Result<Replays, ConfigError> {
        let Workload::Trace(trace) = &self.experiment.config.workload else {
            unreachable!("a trace is replayed")
        };
        let trace = TraceWorkload {
            replay: ReplayMode::Arrivals,
            arrival_speedup: load * factor,
            reference_drive: None,
            ..trace.clone()
        };
        let by_arrival = self.experiment.replayed(trace)?;
        let bare = SimConfig { electronics: false, ..by_arrival.config.clone() };
        let without_buffers = by_arrival.with_config(bare)?;
        // A replay by dependence would wait for the drives, however high the load is.
        let whole = if factor == 1.0 { self.experiment.clone() } else { by_arrival };
        let span_ns = (self.span_ns as f64 / (load * factor)) as u64;
        Ok(Replays { whole, without_buffers, span_ns })
    }

    /// True if requests are replayed by dependence.
    pub fn is_dependent(&self) -> bool {
        self.experiment.is_dependent()
    }
}

/// Replays of a trace under a load, with any stripe unit.
pub(super) struct Replays {
    whole: Experiment,
    /// By arrival on the mechanics alone.
    without_buffers: Experiment,
    span_ns: u64,
}

impl Replays {
    /// Mean response with this unit. None where the queue grows to the end: then the mean says how long the
    /// trace is.
    pub fn mean(&self, unit: u64) -> Result<Option<Mean>, ConfigError> {
        let (result, queue_grows) = self.run(&self.whole, unit)?;
        Ok((!queue_grows)
            .then(|| Mean { mean_s: result.response.mean_ns / 1e9, parts_s: parts_of(&result) }))
    }

    /// Share of the time in which the drives are busy with this unit, where their buffers do not help; 1 where
    /// the queue grows.
    pub fn busy_without_buffers(&self, unit: u64) -> Result<f64, ConfigError> {
        let (result, queue_grows) = self.run(&self.without_buffers, unit)?;
        Ok(if queue_grows { 1.0 } else { result.utilisation })
    }

    /// A run with this unit, and whether its queue grows to the end.
    fn run(&self, experiment: &Experiment, unit: u64) -> Result<(RunResult, bool), ConfigError> {
        let mut config = experiment.config.clone();
        config.array.stripe_unit = bytes(unit);
        let experiment = experiment.with_config(config)?;
        let result = experiment.run()?;
        let queue_grows = has_growing_queue(experiment.is_dependent(), self.span_ns, &result);
        Ok((result, queue_grows))
    }
}

/// Means of the slices of a run, each over a tenth of all its requests.
fn parts_of(result: &RunResult) -> Option<[f64; PARTS]> {
    let each = result.response.count as f64 / PARTS as f64;
    let mean = |slice: &freewheel_sim::SliceResult| {
        (slice.reads.response_ns_sum + slice.writes.response_ns_sum) as f64 / 1e9 / each
    };
    let means: Vec<f64> = result.slices.iter().map(mean).collect();
    means.try_into().ok()
}
