//! Freeblock Scheduling Outside of Disk Firmware (FAST 2002), section 5: a scheduler that sees the
//! drive as a black box, in virtual time. What its experiments have in common.

use freewheel_freeblock::Rule;
use freewheel_freeblock::tasks::TaskKind;
use freewheel_host::{Conservatism, PredictionSpec, SameTrack};
use freewheel_model::drive::spec::DriveSpec;
use freewheel_model::electronics::spec::{BusSpec, WriteCache};
use freewheel_model::sched::PolicySpec;
use freewheel_sim::background::{FreeblockConfig, TaskOrder};
use freewheel_sim::black_box::{Behaviour, JitterShape};
use freewheel_sim::config::{ConfigError, SimConfig, ThinkTimeDistribution, Workload};
use freewheel_sim::experiment::Experiment;
use freewheel_sim::source::SizeDistribution;
use freewheel_sim::{HostConfig, RunResult};
use freewheel_units::{Bytes, SimDuration};

use super::sizes::SIZES;
use super::{Context, Row, osdi00_scan};
use freewheel_study::figure::Line;

/// What stands in for the paper's drive, wherever its seeks vary.
pub(super) const BLACK_BOX: &str = "an emulated Atlas 10K; errors of its seeks are normal, with a standard deviation of 105 us; bus of 80 MB/s (Ultra2)";

/// The paper does not say how far seeks of its drive were off. With this the same share of head times is
/// mispredicted as on it, 2.5 %: whole turns, and ends within a request of a drive with zero-latency
/// access. That errors are normal is assumed: they are sums of many small ones.
pub(super) const ATLAS_JITTER: SimDuration = SimDuration::from_us(105);

/// The paper's scheduler chooses the next request as soon as one is done.
const AT_ONCE: SimDuration = SimDuration::MAX;

/// Bytes of 512 on a bus of 80 MB/s.
pub(super) const BUS_BLOCK: SimDuration = SimDuration::from_ns(6400);

/// The paper's foreground policies.
pub(super) const POLICIES: [(&str, PolicySpec); 3] = [
    ("SSTF", PolicySpec::Sstf),
    ("SPTF-SW60%", PolicySpec::SptfSw { window: 0.6 }),
    ("SPTF", PolicySpec::Sptf),
];

/// One run of the paper's transactions with the scheduler outside.
#[derive(Debug, Clone, Copy)]
pub(super) struct OutsideSetting {
    pub policy: PolicySpec,
    /// The rule of the free work, where there is some.
    pub free: Option<Rule>,
    pub scheduler: PredictionSpec,
    pub jitter: SimDuration,
    pub shape: JitterShape,
    /// Of a seek over all cylinders, where jitter grows with the distance.
    pub jitter_far: Option<SimDuration>,
    /// Whether the drive has its buffer, which reads ahead, its bus and its overheads.
    pub electronics: bool,
    pub outstanding: u32,
    pub think_time: SimDuration,
    /// Of a run without a whole scan.
    pub requests: u64,
    /// Whole scans; none for the beginning of one.
    pub rounds: Option<u64>,
    pub sizes: SizeDistribution,
}

impl OutsideSetting {
    /// Ten clients that think for 30 ms; a scan by the greedy rule, of which a quick run does the
    /// beginning.
    pub fn paper(context: &Context<'_>, policy: PolicySpec, conservatism: SimDuration) -> Self {
        Self::of(context.options.quick, policy, conservatism)
    }

    /// The same for a quick run or a full one.
    pub fn of(quick: bool, policy: PolicySpec, conservatism: SimDuration) -> Self {
        Self {
            policy,
            free: Some(Rule::Greedy),
            scheduler: PredictionSpec {
                conservatism: Conservatism::Constant(conservatism),
                lead_time: AT_ONCE,
                // The paper's scheduler measures itself with no slots without free work.
                off_share: 0.0,
                ..PredictionSpec::default()
            },
            jitter: ATLAS_JITTER,
            shape: JitterShape::Normal,
            jitter_far: None,
            electronics: true,
            outstanding: osdi00_scan::MPL,
            think_time: SimDuration::from_ms(30),
            requests: if quick { 8_000 } else { 100_000 },
            rounds: (!quick).then_some(1),
            sizes: SIZES,
        }
    }

    pub fn config(&self, seed: u64) -> SimConfig {
        let behaviour = Behaviour {
            seek_jitter: Some(self.jitter),
            seek_jitter_shape: self.shape,
            seek_jitter_far: self.jitter_far,
            ..Behaviour::default()
        };
        let transactions = osdi00_scan::transactions(self.outstanding, self.sizes, seed);
        let Workload::Closed { pattern, .. } = transactions.workload else {
            unreachable!("transactions are a closed workload")
        };
        SimConfig {
            scheduler: self.policy,
            electronics: self.electronics,
            freeblock: self.free.map(|rule| FreeblockConfig {
                rule,
                tasks: vec![TaskOrder {
                    kind: TaskKind::Scan,
                    block_size: Some(Bytes::from_kib(4)),
                    rounds: self.rounds,
                    ..TaskOrder::default()
                }],
                ..FreeblockConfig::default()
            }),
            host: Some(HostConfig { scheduler: self.scheduler, behaviour, server: false }),
            workload: Workload::Closed {
                requests: self.requests,
                outstanding: self.outstanding,
                think_time: self.think_time,
                think_time_distribution: ThinkTimeDistribution::Constant,
                pattern,
            },
            ..transactions
        }
    }

    pub fn experiment(&self, seed: u64) -> Result<Experiment, ConfigError> {
        let mut experiment = Experiment::new(self.config(seed))?;
        on_ultra2(&mut experiment.spec);
        Ok(experiment)
    }

    pub fn run(&self, seed: u64) -> Result<RunResult, ConfigError> {
        self.experiment(seed)?.run()
    }

    /// The same planner inside the drive, which no seek surprises.
    pub fn run_in_firmware(&self, seed: u64) -> Result<RunResult, ConfigError> {
        self.run_limited_in_firmware(SimDuration::ZERO, SameTrack::Distinct, seed)
    }

    /// The same with limits of a scheduler outside.
    pub fn run_limited_in_firmware(
        &self,
        conservatism: SimDuration,
        same_track: SameTrack,
        seed: u64,
    ) -> Result<RunResult, ConfigError> {
        let config = self.config(seed);
        let config = SimConfig {
            cache: None,
            host: None,
            queue_depth: Some(1),
            freeblock: config.freeblock.map(|freeblock| FreeblockConfig {
                conservatism,
                same_track,
                ..freeblock
            }),
            ..config
        };
        let mut experiment = Experiment::new(config)?;
        on_ultra2(&mut experiment.spec);
        if let Some(buffer) = &mut experiment.spec.electronics.buffer {
            buffer.write_cache = WriteCache::Off;
            // Its latency is free work's.
            buffer.keep_free_blocks_before = false;
        }
        experiment.run()
    }
}

/// The bus of the paper's host.
pub(super) fn on_ultra2(spec: &mut DriveSpec) {
    spec.electronics.bus =
        Some(BusSpec { block_time: BUS_BLOCK, ..spec.electronics.bus.unwrap_or_default() });
}

impl Context<'_> {
    /// A limit of a whole scan. A short run has the beginning of a scan alone, while much is wanted: another
    /// number, which has none.
    pub fn of_scan(&self, quantity: &str, unit: &'static str, band: [f64; 2], ours: f64) -> Row {
        if self.options.quick {
            self.measured(&format!("{quantity}, beginning of a scan"), unit, ours)
        } else {
            self.row_in(quantity, unit, band, ours)
        }
    }

    /// A number, or a range, of the paper for a whole scan, with a band.
    pub fn number_of_scan(
        &self,
        quantity: &str,
        unit: &'static str,
        paper: [f64; 2],
        band: [f64; 2],
        ours: f64,
    ) -> Row {
        self.of_scan(quantity, unit, band, ours).of_paper(paper)
    }
}

pub(super) fn mean_ms(result: &RunResult) -> f64 {
    result.response.mean_ns / 1e6
}

pub(super) fn free_mb_per_second(result: &RunResult) -> f64 {
    result.free.map_or(0.0, |free| free.bytes_per_second / 1e6)
}

pub(super) fn percent(part: u64, of: u64) -> f64 {
    100.0 * part as f64 / of.max(1) as f64
}

pub(super) fn line(name: &str, points: Vec<(f64, f64)>) -> Line {
    Line { name: name.into(), points, dots: false }
}
