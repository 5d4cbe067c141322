//! Effect of a placement of files on clients: by the queueing model, and simulated.

use freewheel_array::files::{FileLoad, FileMap, MappedFile};
use freewheel_array::placement::{Extent, ExtentId, FileId, Place, Placement};
use freewheel_array::plan::{Effort, PartSums, half_interval};
use freewheel_array::rebalance::{Balancer, QueueLoad};
use freewheel_model::sched::PolicySpec;
use freewheel_sim::config::ConfigError;
use freewheel_sim::files::{Arrivals, FilesExperiment, FilesResult, simulate};
use freewheel_units::{Blocks, Bytes};
use serde::Serialize;

use super::jbod::Jbod;
use super::progress::PlanProgressSink;

/// A placement, the cost of getting there, and what clients see then.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct Outcome {
    /// Name of the placement.
    pub name: String,
    pub moves: u64,
    pub bytes: Bytes,
    /// Time of the copies, one after the other, in seconds.
    pub copy_s: f64,
    /// Mean response of all clients by the model, in seconds, but for those of disks with a file that no
    /// disk can serve; none where another disk cannot serve its load.
    pub response_s: Option<f64>,
    /// Requests a second to disks with a file that no disk can serve: they wait without end.
    #[serde(skip_serializing_if = "is_zero")]
    pub lost_rate: f64,
    /// Result of the simulation; none where a disk cannot serve its load.
    pub simulated: Option<SimulatedOutcome>,
    pub disks: Vec<DiskOutcome>,
}

fn is_zero(rate: &f64) -> bool {
    *rate == 0.0
}

/// Result of the simulation of a placement.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SimulatedOutcome {
    /// Mean response of all clients, in seconds.
    pub response_s: f64,
    /// 99th percentile, in seconds.
    pub p99_s: f64,
    /// The mean of another run would lie this far away at most, with 95 % confidence, in seconds: from
    /// the means of ten parts of the run.
    pub uncertain_s: f64,
    /// Excess of the model's mean over the simulated one, as a share of that.
    pub model_above: f64,
}

/// A disk of a placement.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct DiskOutcome {
    /// Bytes of its files.
    pub used: Bytes,
    /// Share of the time in which it is busy, by the model; 1 and more for a load it cannot serve.
    pub busy: f64,
    /// Mean response of its requests by the model, in seconds.
    pub response_s: Option<f64>,
    /// True if it has a file that no disk can serve.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_lost: bool,
    /// Share of the time in which it is busy, simulated.
    pub simulated_busy: Option<f64>,
}

/// Requests to simulate, and the seed of their arrivals.
#[derive(Debug, Clone, Copy)]
pub(super) struct Simulated {
    pub requests: u64,
    pub seed: u64,
}

impl Outcome {
    pub(super) fn of(
        name: &str,
        jbod: &Jbod,
        balancer: &Balancer<'_>,
        effort: Effort,
        simulated: Simulated,
        progress: PlanProgressSink<'_>,
    ) -> Result<Self, ConfigError> {
        let response_s = balancer.response_s();
        let mut disks: Vec<DiskOutcome> =
            balancer.loads().iter().zip(&balancer.used()).map(of_disk).collect();
        for (number, disk) in (0..).zip(&mut disks) {
            disk.is_lost = balancer.is_lost(number);
        }
        let mut outcome = None;
        if let Some(model_s) = response_s {
            let (result, uncertain_s) =
                simulated.run(jbod, balancer, &|done| progress(name, done, simulated.requests))?;
            for (number, (disk, usage)) in (0..).zip(disks.iter_mut().zip(&result.disks)) {
                disk.simulated_busy = (!balancer.is_lost(number)).then_some(usage.utilisation);
            }
            let response_s = result.response.mean_ns / 1e9;
            outcome = Some(SimulatedOutcome {
                response_s,
                p99_s: result.response.p99_ns as f64 / 1e9,
                uncertain_s,
                model_above: model_s / response_s - 1.0,
            });
        }
        Ok(Self {
            name: name.into(),
            moves: effort.moves,
            bytes: effort.blocks.bytes(),
            copy_s: effort.copy_s,
            response_s,
            lost_rate: balancer.lost_rate(),
            simulated: outcome,
            disks,
        })
    }
}

fn of_disk((load, used): (&QueueLoad, &Blocks)) -> DiskOutcome {
    let present = load.requests_present().filter(|_| load.rate > 0.0);
    let response_s = present.map(|present| present / load.rate);
    DiskOutcome {
        used: used.bytes(),
        busy: load.busy,
        response_s,
        is_lost: false,
        simulated_busy: None,
    }
}

impl Simulated {
    fn run(
        &self,
        jbod: &Jbod,
        balancer: &Balancer<'_>,
        progress: &dyn Fn(u64),
    ) -> Result<(FilesResult, f64), ConfigError> {
        // Of a disk with a file that no disk can serve, the queue would grow to the end.
        let loads: Vec<FileLoad> = balancer
            .files()
            .iter()
            .zip(&jbod.reads)
            .map(|(file, &reads)| FileLoad {
                blocks: file.blocks,
                request: file.request,
                rate: if file.disk.is_none_or(|disk| !balancer.is_lost(disk)) {
                    file.rate
                } else {
                    0.0
                },
                reads,
            })
            .collect();
        let experiment = FilesExperiment {
            disks: &jbod.drives,
            map: &map(jbod, balancer),
            arrivals: Arrivals::Poisson { loads: &loads, requests: self.requests },
            policy: PolicySpec::Fcfs,
            cache: None,
            warm_up: WARM_UP,
            seed: self.seed,
        };
        let first = (self.requests as f64 * WARM_UP) as u64;
        let (mut parts, mut count) = (PartSums::new(self.requests - first), 0);
        let result = simulate(&experiment, &mut |done| {
            // Parts in the order of completion.
            parts.add(count, done.response().as_secs_f64());
            count += 1;
            if count.is_multiple_of(1000) {
                progress(first + count);
            }
        })?;
        Ok((result, half_interval(&parts.means())))
    }
}

/// Share of the requests that fill the queues and count in no response.
const WARM_UP: f64 = 0.1;

/// Every file in one piece where the model has it.
fn map(jbod: &Jbod, balancer: &Balancer<'_>) -> FileMap {
    let mut placement = Placement::of(jbod.disks.iter().map(|disk| disk.blocks));
    let mut files = Vec::new();
    for (number, file) in (0..).zip(balancer.files()) {
        let disk = file.disk.expect("every file has a disk by now");
        let place = Place { disk, start: balancer.starts()[number as usize] };
        placement.reserve_at(place, file.blocks);
        let id = ExtentId(number);
        placement.insert(id, Extent { file: FileId(number), blocks: file.blocks, place });
        files.push(MappedFile {
            blocks: file.blocks,
            unit: file.blocks,
            first_extent: id,
            width: 1,
        });
    }
    let largest = jbod.disks.iter().map(|disk| disk.blocks).max().unwrap_or_default();
    FileMap::new(files, placement, largest)
}
