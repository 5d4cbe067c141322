//! Measurements for the estimate: the load, its gaps, and the scan in them.

use freewheel_freeblock::tasks::BLOCK_SIZE_MAX;
use freewheel_freeblock::uses;
use freewheel_freeblock::{
    ByNodes, Effort, ForegroundEvent, ForegroundObserver, FreeRun, GapUse, Opportunity, Planner,
    Rule, Timer,
};
use freewheel_model::drive::Drive;
use freewheel_model::stats::Summary;
use freewheel_sim::RunResult;
use freewheel_sim::background::Gaps;
use freewheel_sim::config::{ConfigError, TraceWorkload};
use freewheel_sim::experiment::Experiment;
use freewheel_units::{Blocks, Bytes, SimDuration, SimTime};

use super::effort;
use super::estimate::{ArmScrub, ScrubEffort, ScrubEstimate};
use super::projection::{PACE, Pace, ProjectedScan};
use super::sample::Sample;
use super::scan::{ScrubProgress, scan};
use crate::head_use::HeadUse;
use crate::trace_runs::measured_whole;

/// Estimates a scrub of the drive of `experiment`, whose workload is this trace. The policy is the
/// experiment's, and its warm-up does not count in responses; gaps are those of the whole trace. The decisions
/// about its gaps are made inside of calls of `around`, if it is there.
pub(crate) fn estimate(
    experiment: &Experiment,
    trace: &TraceWorkload,
    asked: SimDuration,
    around: Option<Timer<'_>>,
    progress: ScrubProgress<'_>,
) -> Result<ScrubEstimate, ConfigError> {
    let warm_up = experiment.config.warm_up;
    let mut experiment = measured_whole(experiment);
    let buffer = experiment.spec.electronics.buffer.as_mut();
    let kept = buffer.is_some_and(|buffer| std::mem::take(&mut buffer.keep_free_blocks_before));
    let switched_off = kept && experiment.has_electronics();
    let (load, gap_shares) = load(&experiment)?;
    let response =
        if warm_up > 0.0 { responses_after(warm_up, &experiment)? } else { load.response };
    let block_size = block_size(&experiment.drive);
    let mut estimate = ScrubEstimate {
        block_bytes: block_size.get(),
        free_blocks_before_switched_off: switched_off,
        response_ns_mean: response.mean_ns,
        response_ns_p99: response.p99_ns,
        idle_share: 1.0 - load.utilisation,
        foreground_delay_ns: 0,
        head_use: alone(&load),
        decisions: 0,
        nodes_mean: 0.0,
        by_nodes: ByNodes::default(),
        effort: ScrubEffort {
            asked_seconds: asked.ns() as f64 / 1e9,
            spent_seconds: 0.0,
            nodes_max: effort::nodes_max(asked),
            cut_short: 0,
        },
        arms: Vec::new(),
    };
    let media_rate = experiment.drive.mean_media_rate_bytes_per_second();
    let idle_bytes_per_second = estimate.idle_share * media_rate;
    if gap_shares.iter().all(|&share| share == 0.0) {
        let blocks = experiment.drive.blocks().get() / (block_size.get() / 512);
        let idle = ArmScrub::without_gaps(blocks).with_idle_time(block_size, idle_bytes_per_second);
        estimate.arms = vec![idle; gap_shares.len()];
        return Ok(estimate);
    }
    let sample = sample(&experiment, trace)?;
    let mut source = experiment.replay(trace, sample.for_ever(rest(&experiment, &load)))?;
    let arms = u64::from(experiment.striping.arms());
    let pace = Pace { work_ns: asked.ns() / arms, ..PACE };
    let decisions = effort::decisions(Rule::Paths, estimate.effort.nodes_max);
    let setting = ProjectedScan { block_size, decisions, pace };
    let (scans, result) = scan(&experiment, &mut source, setting, around, progress)?;
    estimate.foreground_delay_ns = result.free.map_or(0, |free| free.time.foreground_delay_ns);
    for (scan, share) in scans.iter().zip(gap_shares) {
        let arm = ArmScrub::new(scan, block_size, share, media_rate);
        estimate.arms.push(arm.with_idle_time(block_size, idle_bytes_per_second));
    }
    let sum = |of: fn(&Effort) -> u64| scans.iter().map(|scan| of(&scan.effort)).sum::<u64>();
    estimate.decisions = sum(|effort| effort.decisions);
    estimate.nodes_mean = sum(|effort| effort.nodes) as f64 / estimate.decisions.max(1) as f64;
    estimate.effort.cut_short = sum(|effort| effort.exhausted);
    estimate.effort.spent_seconds = scans.iter().map(|scan| scan.work.ns() as f64 / 1e9).sum();
    scans.iter().for_each(|scan| estimate.by_nodes.merge(&scan.effort.by_nodes));
    let count = estimate.arms.len() as f64;
    for arm in &estimate.arms {
        let Some(shares) = arm.shares else { continue };
        estimate.head_use.free_transfer += arm.gap_share * shares.transfer_share / count;
        estimate.head_use.extra_seek += arm.gap_share * shares.extra_seek_share / count;
    }
    Ok(estimate)
}

/// Responses after this share of the requests.
fn responses_after(warm_up: f64, whole: &Experiment) -> Result<Summary, ConfigError> {
    let mut part = whole.clone();
    part.config.warm_up = warm_up;
    Ok(part.run()?.response)
}

/// Use of the heads' time without a scrub.
fn alone(load: &RunResult) -> HeadUse {
    HeadUse {
        seek: share(load.head_time.seek_ns, load),
        rotate: share(load.head_time.rotate_ns, load),
        transfer: share(load.head_time.transfer_ns, load),
        free_transfer: 0.0,
        extra_seek: 0.0,
        idle_work: 0.0,
    }
}

fn share(ns: u128, load: &RunResult) -> f64 {
    ns as f64 / load.arms_ns.max(1) as f64
}

/// Block size of the scan. It may be larger than a server's: fewer bursts then pass before the gaps yield next to
/// nothing, and a scan reads nearly the same in them until then.
pub(super) fn block_size(drive: &Drive) -> Bytes {
    uses::block_size(drive, Blocks::new(1)..=Blocks::new(BLOCK_SIZE_MAX.into())).bytes()
}

/// Pieces of the trace that is the workload.
pub(super) fn sample(
    experiment: &Experiment,
    trace: &TraceWorkload,
) -> Result<Sample, ConfigError> {
    let info = experiment.trace.as_ref().expect("the workload is a trace");
    Sample::read(experiment.records(trace)?, trace.device, info.requests)
}

/// Time of the drive for each record beyond the trace's own time.
pub(super) fn rest(experiment: &Experiment, load: &RunResult) -> SimDuration {
    let info = experiment.trace.as_ref().expect("the workload is a trace");
    let over = load.elapsed_ns.saturating_sub(info.span_ns);
    SimDuration::from_ns(over.div_ceil(info.requests.max(1)))
}

/// Runs the whole trace and measures for each arm the share of the time that is in gaps.
pub(super) fn load(experiment: &Experiment) -> Result<(RunResult, Vec<f64>), ConfigError> {
    let arms = experiment.striping.arms();
    let mut gaps: Vec<Counted> = (0..arms).map(|_| Counted::default()).collect();
    let planners = gaps.iter_mut().map(|gaps| gaps as &mut dyn Planner).collect();
    let result = experiment.new_run().with_planners(planners).simulate()?;
    let elapsed_ns = result.elapsed_ns.max(1) as f64;
    let shares = gaps.iter().map(|gaps| gaps.0.potential_ns as f64 / elapsed_ns).collect();
    Ok((result, shares))
}

/// Counts the rotational latency and leaves it as it is.
#[derive(Default)]
pub(super) struct Counted(pub(super) Gaps);

impl Planner for Counted {
    fn plan(&mut self, _: &Opportunity, runs: &mut Vec<FreeRun>) {
        runs.clear();
    }

    fn done(&mut self, _: &FreeRun, _: SimTime) {}

    fn filled(&mut self, gap: &Opportunity, gap_use: &GapUse) {
        self.0.add(gap, gap_use);
    }
}

impl ForegroundObserver for Counted {
    fn foreground(&mut self, _: ForegroundEvent<'_>) {}
}
