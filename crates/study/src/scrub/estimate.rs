//! The estimate for a drive under a trace.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use freewheel_freeblock::tasks::BLOCK_SIZE_MAX;
use freewheel_freeblock::uses;
use freewheel_freeblock::{
    ByNodes, Effort, ForegroundEvent, ForegroundObserver, FreeRun, GapUse, Opportunity, Options,
    Planner, Rule, TimedPlanner, Timer,
};
use freewheel_model::drive::Drive;
use freewheel_model::stats::Summary;
use freewheel_sim::RunResult;
use freewheel_sim::background::{GapShares, Gaps};
use freewheel_sim::config::{ConfigError, TraceWorkload};
use freewheel_sim::experiment::Experiment;
use freewheel_sim::source::{Request, Source, SourceError};
use freewheel_units::{Blocks, Bytes, Prng, SimDuration, SimTime};
use serde::Serialize;

use super::burst::Burst;
use super::curve::{self, At};
use super::effort::{self, SCRUB_EFFORT, Work};
use super::projection::{End, Pace, ProjectedScan, Projection, WHOLE, Watch};
use super::sample::Sample;
use crate::head_use::HeadUse;
use crate::trace_runs::measured_whole;

/// Assumed: bursts that measure a rate to a few hundredths, and leaps over a tenth of the remaining
/// blocks where the work allows it. The wait for the last blocks is several times their time under
/// random requests on the largest drive here. The requests take seconds to simulate.
const PACE: Pace = Pace {
    gaps: 750,
    gaps_max: 6000,
    leaps: 1000,
    step_max: 0.1,
    last_gaps: 200_000,
    requests: 4_000_000,
    work_ns: SCRUB_EFFORT.ns(),
};

/// An estimate of how long a scrub takes in the rotational gaps of a load.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ScrubEstimate {
    /// Size of a block of the scrub.
    pub block_bytes: u64,
    /// True if the drive's file lets it keep the blocks that pass before the wanted ones; the run forbids
    /// that, for such reads leave no gap.
    pub free_blocks_before_switched_off: bool,
    /// Mean response time of the reads and writes that the study measures, on the drive as it was told to be.
    pub response_ns_mean: f64,
    /// The 99th percentile of it.
    pub response_ns_p99: u64,
    /// Share of the time in which the drive neither serves requests nor writes back.
    pub idle_share: f64,
    /// Time that the gaps added to foreground accesses in the simulated parts.
    pub foreground_delay_ns: u128,
    /// Use of the heads' time over the whole scan, and without it. Writing back is in it, also its latency,
    /// which is left.
    pub head_use: HeadUse,
    /// Gaps that were decided on.
    pub decisions: u64,
    /// Nodes of the search that a decision looked at, on average.
    pub nodes_mean: f64,
    /// Decisions by the most nodes that they looked at, cumulated over powers of two.
    pub by_nodes: ByNodes,
    /// Effort that was asked for and spent.
    pub effort: ScrubEffort,
    /// The scan of each arm.
    pub arms: Vec<ArmScrub>,
}

/// Cost of an estimate: work, with the processor time that it takes on one core of a server of the 2020s.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ScrubEffort {
    /// Time that its bursts and leaps may take.
    pub asked_seconds: f64,
    /// The time that they took, with a last burst that was under way.
    pub spent_seconds: f64,
    /// Most nodes of its search that a decision looked at.
    pub nodes_max: u64,
    /// Decisions that stopped there, so that something better may have been missed.
    pub cut_short: u64,
}

/// The scan of an arm's part of the drive.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ArmScrub {
    /// Share of the time that is rotational latency of the foreground which a scrub can use, over the
    /// whole trace. That of writing back from the drive's buffer is not given away.
    pub gap_share: f64,
    /// Share in the simulated bursts: the sample represents the whole trace if it is about equal.
    pub simulated_gap_share: f64,
    /// Potential free bandwidth: the mean media rate over the time in latency (osdi00 section 3). It
    /// may be exceeded while much is wanted.
    pub potential_bytes_per_second: f64,
    /// Blocks of the scrub: whole ones. A part of a block at the end of the drive does
    /// not count.
    pub blocks: u64,
    /// End of the scan.
    pub end: ScrubEnd,
    /// Part of the blocks that were read by then.
    pub read_share: f64,
    /// Time of that scan. None when there are no gaps.
    pub seconds: Option<f64>,
    /// Standard error in parts of it, by chance in the bursts and by the length of leaps. None when there
    /// are no gaps, or one burst was all.
    pub error: Option<f64>,
    /// Time of the half of all blocks, if the scan reads them.
    pub seconds_50_percent: Option<f64>,
    /// Time of 95 % of all blocks, if the scan reads them.
    pub seconds_95_percent: Option<f64>,
    /// The part that is read when the gaps give less than a tenth of their first rate, for good. None
    /// when they never do.
    pub faded: Option<ScrubPart>,
    /// Time of all blocks if the scrub also reads in all idle time, at the mean media rate: at best, as
    /// requests that come meanwhile wait for the head. After the end the gaps are taken to keep their last
    /// rate, and each arm of several to be idle as much as the others. None when the drive is never idle
    /// and the gaps do not reach all.
    pub seconds_with_idle_time: Option<f64>,
    /// Scrubs a day, if all is read.
    pub rounds_a_day: Option<f64>,
    /// Part of the time that the last 5 % of the blocks take, if all are read.
    pub last_5_percent: Option<f64>,
    /// Time of the last 1 %.
    pub last_1_percent: Option<f64>,
    /// Part of the time that the last 5 % of what is read take, whether or not that is all. None when
    /// there are no gaps.
    pub last_5_percent_of_read: Option<f64>,
    /// Scans that end with a part of the blocks, for those parts that are read (osdi00
    /// section 6.3, figure 10).
    pub parts: Vec<ScrubPart>,
    /// Shares of the latency until the end. None when there are no gaps.
    pub shares: Option<GapShares>,
    /// Ratio of all that is read, in gaps and in passing, to the potential of that time (osdi00 section
    /// 6.3). None when there are no gaps.
    pub efficiency: Option<f64>,
    /// The course of the scan: the beginning and end of every simulated part.
    pub course: Vec<ScrubPoint>,
    /// Gaps that were simulated.
    pub simulated_gaps: u64,
}

/// A scan that ends when this part of the blocks has been read.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ScrubPart {
    /// Part of the blocks, from 0 to 1.
    pub read_share: f64,
    /// Time of that part, in seconds.
    pub seconds: f64,
    /// Standard error in parts of it, by chance in the bursts and by the length of leaps. None where one
    /// burst was all until then.
    pub error: Option<f64>,
    /// Number of such scans a day.
    pub rounds_a_day: f64,
    /// Ratio of what has been read until then to the potential until then. None where that is 0.
    pub efficiency: Option<f64>,
}

impl ScrubPart {
    fn new(read_share: f64, seconds: f64, error: Option<f64>, efficiency: Option<f64>) -> Self {
        Self { read_share, seconds, error, rounds_a_day: 86_400.0 / seconds, efficiency }
    }
}

/// Parts of a scan that are reported, in thousandths.
const PARTS: [u64; 9] = [50, 100, 250, 500, 800, 900, 950, 990, 1000];

/// Part of the gaps' first rate below which the scan has faded.
const FADED: f64 = 0.1;

/// End of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScrubEnd {
    /// With the last block.
    Complete,
    /// The gaps reach hardly any block that is left.
    OutOfReach,
    /// The simulated load ended first.
    Unfinished,
    /// The work that the estimate may take was done.
    EffortSpent,
    /// The load has no rotational gap.
    NoGaps,
}

/// Progress of a scan when a burst begins or ends. Bandwidth and shares are those of its gaps, the same at
/// both ends. Between bursts there is no measurement; times there follow from the rates of both.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ScrubPoint {
    /// Since its beginning.
    pub seconds: f64,
    /// Part of the blocks that has been read.
    pub read_share: f64,
    /// Rate of the gaps at that point.
    pub bytes_per_second: f64,
    /// Potential of their latency at the mean media rate. It depends on the load alone, so it is the same
    /// at every point of an arm: the time of a point is its latency over the latency in a second of the
    /// trace.
    pub potential_bytes_per_second: f64,
    /// Shares of that latency.
    #[serde(flatten)]
    pub shares: GapShares,
    /// Ratio of what has been read until then to the potential until then. None at the beginning.
    pub efficiency: Option<f64>,
}

impl ScrubEstimate {
    /// The arm that is done last; of those that are never done the one that gets least far.
    pub fn slowest(&self) -> &ArmScrub {
        &self.arms[self.slowest_number()]
    }

    /// Number of the slowest arm, from 0.
    pub fn slowest_number(&self) -> usize {
        self.slowest_of(|_| true).expect("a drive has an arm")
    }

    /// The number of the slowest one of those that have gaps.
    pub fn slowest_with_gaps(&self) -> Option<usize> {
        self.slowest_of(|arm| arm.seconds.is_some())
    }

    fn slowest_of(&self, counts: impl Fn(&ArmScrub) -> bool) -> Option<usize> {
        (0..self.arms.len()).filter(|&number| counts(&self.arms[number])).max_by(|&a, &b| {
            self.key(a).0.total_cmp(&self.key(b).0).then(self.key(a).1.total_cmp(&self.key(b).1))
        })
    }

    fn key(&self, number: usize) -> (f64, f64) {
        let arm = &self.arms[number];
        (-arm.read_share, arm.seconds.unwrap_or(f64::INFINITY))
    }

    /// End of the drive's scan: that of the arm which gets least far. Where another has gaps, an arm
    /// without any reaches no block.
    pub fn end(&self) -> ScrubEnd {
        match self.slowest().end {
            ScrubEnd::NoGaps if self.seconds().is_some() => ScrubEnd::OutOfReach,
            end => end,
        }
    }

    /// Part of the drive's blocks that are read, over all arms.
    pub fn read_share(&self) -> f64 {
        self.sum(|arm| arm.read_share * arm.blocks as f64) / self.sum(|arm| arm.blocks as f64)
    }

    fn sum(&self, value: fn(&ArmScrub) -> f64) -> f64 {
        self.arms.iter().map(value).sum::<f64>()
    }

    /// Seconds until the last arm is at its end. None when there are no gaps.
    pub fn seconds(&self) -> Option<f64> {
        self.arms.iter().filter_map(|arm| arm.seconds).reduce(f64::max)
    }

    /// Seconds of the whole drive with idle time: until the last arm is at its end. None when one never is.
    pub fn seconds_with_idle_time(&self) -> Option<f64> {
        let seconds: Option<Vec<f64>> =
            self.arms.iter().map(|arm| arm.seconds_with_idle_time).collect();
        seconds?.into_iter().reduce(f64::max)
    }

    /// Scrubs of the whole drive a day, if all is read.
    pub fn rounds_a_day(&self) -> Option<f64> {
        let rounds: Option<Vec<f64>> = self.arms.iter().map(|arm| arm.rounds_a_day).collect();
        rounds?.into_iter().reduce(f64::min)
    }
}

/// Called with the progress of the estimate: done and all, in no unit.
pub type ScrubProgress<'a> = &'a (dyn Fn(u64, u64) + Sync);

/// Estimates a scrub of the drive of `experiment`, whose workload is this trace. The policy is the
/// experiment's, and its warm-up does not count in responses; gaps are those of the whole trace. The decisions
/// about its gaps are made inside of calls of `around`, if it is there.
pub fn estimate(
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
fn block_size(drive: &Drive) -> Bytes {
    uses::block_size(drive, Blocks::new(1)..=Blocks::new(BLOCK_SIZE_MAX.into())).bytes()
}

/// Pieces of the trace that is the workload.
fn sample(experiment: &Experiment, trace: &TraceWorkload) -> Result<Sample, ConfigError> {
    let info = experiment.trace.as_ref().expect("the workload is a trace");
    Sample::read(experiment.records(trace)?, trace.device, info.requests)
}

/// Time of the drive for each record beyond the trace's own time.
fn rest(experiment: &Experiment, load: &RunResult) -> SimDuration {
    let info = experiment.trace.as_ref().expect("the workload is a trace");
    let over = load.elapsed_ns.saturating_sub(info.span_ns);
    SimDuration::from_ns(over.div_ceil(info.requests.max(1)))
}

/// Runs the whole trace and measures for each arm the share of the time that is in gaps.
fn load(experiment: &Experiment) -> Result<(RunResult, Vec<f64>), ConfigError> {
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
struct Counted(Gaps);

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

/// The scan of one arm in bursts.
struct Scanned {
    blocks: u64,
    bursts: Vec<Burst>,
    simulated: SimDuration,
    end: End,
    effort: Effort,
    work: Work,
}

impl Scanned {
    /// Bursts without one that the end of the load broke off.
    fn ended_bursts(&self) -> &[Burst] {
        match (self.end, self.bursts.split_last()) {
            (End::LoadOver, Some((_, before))) => before,
            _ => &self.bursts,
        }
    }
}

/// Scans every arm of the volume behind this load.
fn scan<S: Source>(
    experiment: &Experiment,
    source: &mut S,
    setting: ProjectedScan,
    around: Option<Timer<'_>>,
    progress: ScrubProgress<'_>,
) -> Result<(Vec<Scanned>, RunResult), ConfigError> {
    let arms = experiment.striping.arms();
    let watch = Arc::new(Watch::default());
    watch.unfinished.store(arms.into(), Ordering::Relaxed);
    let mut scans: Vec<Projection> = (0..arms)
        .map(|arm| {
            let prng = Prng::new(experiment.config.seed, &format!("leaps {arm}"));
            Projection::new(&experiment.drive, setting, prng, &watch)
        })
        .collect();
    let whole = WHOLE * u64::from(arms);
    let total = whole + 1;
    let mut source = Until { source, watch: &watch, requests: setting.pace.requests };
    let around = around.unwrap_or(&|decide: &mut dyn FnMut()| decide());
    let mut watched: Vec<TimedPlanner> =
        scans.iter_mut().map(|scan| TimedPlanner::new(scan, around)).collect();
    let planners = watched.iter_mut().map(|scan| scan as &mut dyn Planner).collect();
    let mut reported = u64::MAX;
    let mut report = |_: &_| {
        // It is over with the last request that there may be, if not before.
        let requests = watch.requests.load(Ordering::Relaxed) as f64 / setting.pace.requests as f64;
        let done = watch.done.load(Ordering::Relaxed).max((requests * whole as f64) as u64);
        if done != reported {
            reported = done;
            progress(done, total);
        }
    };
    let result = experiment
        .new_run()
        .with_planners(planners)
        .with_observer(&mut report)
        .simulate_source(&mut source)?;
    progress(total, total);
    let scans = scans.iter().map(|scan| Scanned {
        blocks: scan.blocks(),
        bursts: scan.bursts(),
        simulated: scan.simulated(),
        end: scan.end_of_scan(),
        effort: scan.effort(),
        work: scan.work(),
    });
    Ok((scans.collect(), result))
}

/// A scan behind a source of one's own, to hold estimates to whole scans: of the arm of a drive that
/// has one.
pub struct BackgroundScan {
    scan: Scanned,
    /// Rotational latency in a nanosecond of the load.
    gap_share: f64,
}

impl BackgroundScan {
    /// Simulated gap by gap, for at most this many requests, or else in the leaps of the estimate behind a
    /// trace.
    pub fn new<S: Source>(
        experiment: &Experiment,
        source: &mut S,
        whole: Option<u64>,
    ) -> Result<Self, ConfigError> {
        let setting = setting(experiment, Rule::Paths, whole);
        let (scan, result) = Self::scan(experiment, source, setting, &|_, _| {})?;
        let potential_ns = result.free.map_or(0, |free| free.time.potential_ns);
        let gap_share = potential_ns as f64 / result.elapsed_ns.max(1) as f64;
        Ok(Self { scan, gap_share })
    }

    /// Trace that the estimate runs: pieces of the experiment's trace with a rest between them, and the
    /// latency in a second that the whole trace has.
    pub fn trace(
        experiment: &Experiment,
        trace: &TraceWorkload,
        rule: Rule,
        whole: Option<u64>,
        progress: ScrubProgress<'_>,
    ) -> Result<Self, ConfigError> {
        let (load, gap_shares) = load(experiment)?;
        let sample = sample(experiment, trace)?;
        let mut source = experiment.replay(trace, sample.for_ever(rest(experiment, &load)))?;
        let setting = setting(experiment, rule, whole);
        let (scan, _) = Self::scan(experiment, &mut source, setting, progress)?;
        Ok(Self { scan, gap_share: gap_shares[0] })
    }

    fn scan<S: Source>(
        experiment: &Experiment,
        source: &mut S,
        setting: ProjectedScan,
        progress: ScrubProgress<'_>,
    ) -> Result<(Scanned, RunResult), ConfigError> {
        let (mut scans, result) = scan(experiment, source, setting, None, progress)?;
        Ok((scans.remove(0), result))
    }

    /// Part of the blocks that were read.
    pub fn read_share(&self) -> f64 {
        let left = self.scan.bursts.last().map_or(self.scan.blocks, |burst| burst.to);
        1.0 - left as f64 / self.scan.blocks as f64
    }

    /// Seconds until this part of the blocks is read. None when it is not reached.
    pub fn seconds_until(&self, read_share: f64) -> Option<f64> {
        // What is read is a whole number of blocks.
        let left = ((1.0 - read_share) * self.scan.blocks as f64).round() as u64;
        let potential_ns = curve::potential_until(&self.scan.bursts, left)?;
        Some(potential_ns / self.gap_share / 1e9)
    }

    /// Rate of the gaps after this part of the blocks, over their first rate. None when no more is
    /// read.
    pub fn rate_after(&self, read_share: f64) -> Option<f64> {
        let bursts = &self.scan.bursts;
        let (first, last) = (bursts.first()?, bursts.last()?);
        let left = ((1.0 - read_share) * self.scan.blocks as f64).round() as u64;
        let blocks = left.checked_sub(last.to).filter(|&blocks| blocks > 0)?;
        let rate = blocks as f64
            / (curve::potential_until(bursts, last.to)? - curve::potential_until(bursts, left)?);
        Some(rate / curve::rate(first))
    }

    /// Gaps that were simulated.
    pub fn gaps(&self) -> u64 {
        self.scan.bursts.iter().map(|burst| burst.gaps).sum()
    }
}

/// Setting of a whole scan of this many requests at most, or of the estimate.
fn setting(experiment: &Experiment, rule: Rule, whole: Option<u64>) -> ProjectedScan {
    let block_size = block_size(&experiment.drive);
    match whole {
        Some(requests) => {
            let pace = Pace { requests, ..NO_LEAPS };
            ProjectedScan { block_size, decisions: Options { rule, ..Options::default() }, pace }
        }
        None => ProjectedScan { block_size, decisions: usual(rule), pace: PACE },
    }
}

/// Decisions of an estimate, unless another effort is asked for.
fn usual(rule: Rule) -> Options {
    effort::decisions(rule, effort::nodes_max(SCRUB_EFFORT))
}

/// A whole scan, for the requests that are asked for.
const NO_LEAPS: Pace = Pace {
    gaps: 1500,
    gaps_max: 1500,
    leaps: u64::MAX / 2,
    step_max: 0.0,
    last_gaps: u64::MAX,
    requests: 0,
    work_ns: u64::MAX,
};

/// A load until the scans of all arms are over, or for this many requests.
struct Until<'a, S> {
    source: &'a mut S,
    watch: &'a Watch,
    requests: u64,
}

impl<S: Source> Source for Until<'_, S> {
    fn next_arrival(&mut self) -> Result<Option<SimTime>, SourceError> {
        let is_over = self.watch.requests.load(Ordering::Relaxed) >= self.requests;
        if is_over || self.watch.unfinished.load(Ordering::Relaxed) == 0 {
            return Ok(None);
        }
        self.source.next_arrival()
    }

    fn take(&mut self) -> Request {
        self.watch.requests.fetch_add(1, Ordering::Relaxed);
        self.source.take()
    }

    fn completed(&mut self, tag: u64, now: SimTime) {
        self.source.completed(tag, now);
    }

    fn progress(&self) -> (u64, u64) {
        self.source.progress()
    }
}

impl From<End> for ScrubEnd {
    fn from(end: End) -> Self {
        match end {
            End::Complete => Self::Complete,
            End::OutOfReach => Self::OutOfReach,
            End::LoadOver => Self::Unfinished,
            End::EffortSpent => Self::EffortSpent,
        }
    }
}

impl ArmScrub {
    fn without_gaps(blocks: u64) -> Self {
        Self {
            gap_share: 0.0,
            simulated_gap_share: 0.0,
            potential_bytes_per_second: 0.0,
            blocks,
            end: ScrubEnd::NoGaps,
            read_share: 0.0,
            seconds: None,
            error: None,
            seconds_50_percent: None,
            seconds_95_percent: None,
            faded: None,
            seconds_with_idle_time: None,
            rounds_a_day: None,
            last_5_percent: None,
            last_1_percent: None,
            last_5_percent_of_read: None,
            parts: Vec::new(),
            shares: None,
            efficiency: None,
            course: Vec::new(),
            simulated_gaps: 0,
        }
    }

    fn new(scan: &Scanned, block_size: Bytes, gap_share: f64, media_rate: f64) -> Self {
        let course = curve::course(&scan.bursts);
        let (Some(last), true) = (course.last(), gap_share > 0.0) else {
            return Self::without_gaps(scan.blocks);
        };
        let blocks = scan.blocks;
        let share = |left: u64| 1.0 - left as f64 / blocks as f64;
        let until = |left: u64| {
            curve::potential_until(&scan.bursts, left)
                .map(|potential_ns| seconds(potential_ns, gap_share))
        };
        let potential_bytes_per_second = gap_share * media_rate;
        let efficiency = |at: &At| {
            let potential = at.potential_ns / 1e9 * media_rate;
            (potential > 0.0).then(|| bytes(blocks - at.left, block_size) / potential)
        };
        let point = |(at, burst): (&At, &Burst)| ScrubPoint {
            seconds: seconds(at.potential_ns, gap_share),
            read_share: share(at.left),
            bytes_per_second: curve::rate(burst) * bytes(1, block_size) * gap_share * 1e9,
            potential_bytes_per_second,
            shares: burst.time.shares(),
            efficiency: efficiency(at),
        };
        let bursts = scan.bursts.iter().flat_map(|burst| [burst; 2]);
        let potential_ns: u64 = scan.bursts.iter().map(|burst| burst.time.potential_ns).sum();
        let complete = scan.end == End::Complete && last.potential_ns > 0.0;
        let whole_ns = complete.then_some(last.potential_ns);
        let time_share_after =
            |left| Some(1.0 - curve::potential_until(&scan.bursts, left)? / whole_ns?);
        let part_until = |at: At, share: f64| {
            let error = curve::error_until(&scan.bursts, at.left);
            ScrubPart::new(share, seconds(at.potential_ns, gap_share), error, efficiency(&at))
        };
        let faded = curve::faded(scan.ended_bursts(), FADED);
        let faded = faded.map(|at| part_until(at, share(at.left)));
        let tail_from = last.left + (blocks - last.left) / 20;
        let tail =
            curve::potential_until(&scan.bursts, tail_from).filter(|_| last.potential_ns > 0.0);
        Self {
            gap_share,
            simulated_gap_share: potential_ns as f64 / scan.simulated.ns().max(1) as f64,
            potential_bytes_per_second,
            blocks,
            end: scan.end.into(),
            read_share: share(last.left),
            seconds: Some(seconds(last.potential_ns, gap_share)),
            error: curve::error_until(&scan.bursts, last.left),
            seconds_50_percent: until(blocks / 2),
            seconds_95_percent: until(blocks / 20),
            faded,
            seconds_with_idle_time: None,
            rounds_a_day: whole_ns.map(|ns| 86_400.0 / seconds(ns, gap_share)),
            last_5_percent: time_share_after(blocks / 20),
            last_1_percent: time_share_after(blocks / 100),
            last_5_percent_of_read: tail.map(|ns| 1.0 - ns / last.potential_ns),
            parts: PARTS
                .into_iter()
                .filter_map(|thousandths| {
                    let left = blocks * (1000 - thousandths) / 1000;
                    let potential_ns = curve::potential_until(&scan.bursts, left)?;
                    Some(part_until(At { left, potential_ns }, thousandths as f64 / 1000.0))
                })
                .collect(),
            shares: Some(curve::shares(&scan.bursts)),
            efficiency: efficiency(last),
            course: course.iter().zip(bursts).map(point).collect(),
            simulated_gaps: scan.bursts.iter().map(|burst| burst.gaps).sum(),
        }
    }

    /// With this much read in idle time beside.
    fn with_idle_time(self, block_size: Bytes, idle_bytes_per_second: f64) -> Self {
        let bytes = (self.blocks * block_size.get()) as f64;
        let course = self.course.iter().map(|at| (at.seconds, at.read_share));
        let after = self.course.last().map_or(0.0, |last| last.bytes_per_second / bytes);
        let seconds = curve::seconds_with(course, after, idle_bytes_per_second / bytes);
        Self { seconds_with_idle_time: seconds, ..self }
    }
}

fn seconds(potential_ns: f64, gap_share: f64) -> f64 {
    potential_ns / gap_share / 1e9
}

fn bytes(blocks: u64, block_size: Bytes) -> f64 {
    (blocks * block_size.get()) as f64
}

#[cfg(test)]
mod tests {
    use freewheel_model::sched::PolicySpec;
    use freewheel_sim::config::SimConfig;
    use freewheel_sim::source::{Closed, Fit, Pattern, PatternSpec, ThinkTime};

    use super::*;

    fn experiment(workload: &str) -> Experiment {
        experiment_on("atlas10k", workload)
    }

    fn experiment_on(drive: &str, workload: &str) -> Experiment {
        let text = format!(
            "drive = \"{drive}\"\nelectronics = false\nqueue_depth = 1\n[workload]\n{workload}"
        );
        Experiment::new(SimConfig::parse(&text, "test", &[]).unwrap()).unwrap()
    }

    /// Ten clients with random requests, as in osdi00 section 6.
    fn clients(experiment: &Experiment) -> Closed {
        let kib = Bytes::from_kib;
        let spec = PatternSpec { size: kib(8), align: kib(4), ..PatternSpec::default() };
        let pattern = Pattern::new(spec, experiment.striping.blocks(), 1).unwrap();
        Closed::new(pattern, 10, ThinkTime::Constant(SimDuration::from_ms(30)), u64::MAX, 1)
    }

    /// A scan behind them.
    fn behind_clients(experiment: &Experiment, block_size: Bytes, pace: Pace) -> BackgroundScan {
        let setting = ProjectedScan { block_size, decisions: usual(Rule::Paths), pace };
        let source = &mut clients(experiment);
        let (scan, result) = BackgroundScan::scan(experiment, source, setting, &|_, _| {}).unwrap();
        let potential_ns = result.free.unwrap().time.potential_ns;
        BackgroundScan { scan, gap_share: potential_ns as f64 / result.elapsed_ns as f64 }
    }

    #[test]
    fn estimate_progress_follows_gaps() {
        use std::sync::Mutex;
        let experiment = experiment("kind = \"closed\"");
        let said = Mutex::new(Vec::new());
        let tell = |done, total| said.lock().unwrap().push((done, total));
        let size = Bytes::from_kib(8);
        let setting = ProjectedScan { block_size: size, decisions: usual(Rule::Paths), pace: PACE };
        let (scans, _) =
            scan(&experiment, &mut clients(&experiment), setting, None, &tell).unwrap();
        let said = said.into_inner().unwrap();
        assert!(said.is_sorted() && said.last().unwrap().0 == said[0].1, "{said:?}");
        // It reports again after at most that number of gaps, so its reports tell how many there were.
        let gaps: u64 = scans[0].bursts.iter().map(|burst| burst.gaps).sum();
        assert!(said.len() as u64 > gaps / 500, "{} times in {gaps} gaps", said.len());
    }

    /// The first three zones of the Atlas 10K, whose tracks are of one size: one media rate.
    fn drive_of_one_rate() -> tempfile::NamedTempFile {
        use std::io::Write;
        let text = freewheel_sim::library::text("atlas10k").unwrap();
        let zones: Vec<&str> = text.split("[[zones]]").collect();
        let mut file = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
        file.write_all(zones[..4].join("[[zones]]").as_bytes()).unwrap();
        file
    }

    fn arm_of(scan: &BackgroundScan, experiment: &Experiment, block_size: Bytes) -> ArmScrub {
        let media_rate = experiment.drive.mean_media_rate_bytes_per_second();
        ArmScrub::new(&scan.scan, block_size, scan.gap_share, media_rate)
    }

    #[test]
    fn estimate_shares_of_potential_add_up() {
        let file = drive_of_one_rate();
        let experiment = experiment_on(file.path().to_str().unwrap(), "kind = \"closed\"");
        // No block is read in pieces.
        let size = Bytes::new(512);
        let pace = Pace { requests: 60_000, ..PACE };
        let scan = behind_clients(&experiment, size, pace);
        let arm = arm_of(&scan, &experiment, size);
        let shares = |at: fn(&GapShares) -> f64| arm.course.iter().map(move |p| at(&p.shares));
        // From hardly anything left over to hardly anything used.
        assert!(shares(|s| s.transfer_share).any(|share| share > 0.8));
        assert!(shares(|s| s.transfer_share).any(|share| share < 0.3));
        for point in &arm.course {
            let GapShares { transfer_share, extra_seek_share, unused_share } = point.shares;
            let sum = transfer_share + extra_seek_share + unused_share;
            assert!((sum - 1.0).abs() < 1e-12, "{point:?}");
            assert_eq!(point.potential_bytes_per_second, arm.potential_bytes_per_second);
            let used = point.bytes_per_second / point.potential_bytes_per_second;
            assert!((used / transfer_share - 1.0).abs() < 1e-3, "{used} {point:?}");
        }
        // What has been read until then is what came in gaps and what passed anyway.
        let last = arm.course.last().unwrap();
        let bytes = last.read_share * (arm.blocks * size.get()) as f64;
        let efficiency = bytes / (last.seconds * last.potential_bytes_per_second);
        assert!((last.efficiency.unwrap() / efficiency - 1.0).abs() < 1e-9, "{last:?}");
        assert_eq!((arm.efficiency, arm.course[0].efficiency), (last.efficiency, None));
    }

    #[test]
    fn estimate_potential_independent_of_wanted_blocks() {
        let experiment = experiment("kind = \"closed\"");
        let requests = 12_000;
        let scan = |pace: Pace| {
            let pace = Pace { requests, ..pace };
            behind_clients(&experiment, Bytes::from_kib(8), pace)
        };
        // So that it gets far within these requests.
        let pace = Pace { step_max: 0.3, gaps: 1500, gaps_max: 1500, ..PACE };
        let (whole, leaping) = (scan(NO_LEAPS), scan(pace));
        let all = |behind: &BackgroundScan, part: fn(&Burst) -> u64| {
            behind.scan.bursts.iter().map(part).sum::<u64>()
        };
        // The same gaps, however long bursts are, with ever less wanted in those of the leaping scan.
        for part in [|burst: &Burst| burst.gaps, |burst: &Burst| burst.time.potential_ns] {
            assert_eq!(all(&whole, part), all(&leaping, part));
        }
        let transfer = |behind| all(behind, |burst| burst.time.transfer_ns);
        assert!(10 * transfer(&leaping) < 7 * transfer(&whole));
        let mut nothing = Counted::default();
        let watch = Watch::default();
        watch.unfinished.store(1, Ordering::Relaxed);
        let mut source = Until { source: &mut clients(&experiment), watch: &watch, requests };
        experiment
            .new_run()
            .with_planners(vec![&mut nothing])
            .simulate_source(&mut source)
            .unwrap();
        assert_eq!(all(&whole, |burst| burst.time.potential_ns), nothing.0.potential_ns);
    }

    /// Shares around this part of the blocks: between points of the course, in proportion.
    fn shares_at(course: &[ScrubPoint], read_share: f64) -> [f64; 3] {
        let next = course.iter().position(|at| at.read_share >= read_share).unwrap().max(1);
        let [before, after] = [&course[next - 1], &course[next]];
        let part = (read_share - before.read_share) / (after.read_share - before.read_share);
        let of = |share: fn(&GapShares) -> f64| {
            (1.0 - part) * share(&before.shares) + part * share(&after.shares)
        };
        [of(|s| s.transfer_share), of(|s| s.extra_seek_share), of(|s| s.unused_share)]
    }

    #[test]
    fn estimate_latency_matches_scrub_experiment() {
        let pattern = "pattern = { size = \"8KiB\", align = \"4KiB\" }";
        let experiment = experiment(&format!(
            "kind = \"closed\"\noutstanding = 10\nthink_time = \"30ms\"\nrequests = 1\n{pattern}\n\
             [freeblock]\nrule = \"paths\"\n[[freeblock.tasks]]\nkind = \"scrub\"\nblock_size = \"8KiB\"\nrounds = 1"
        ));
        let result = experiment.run().unwrap();
        let round = &result.background[0].tasks[0].rounds[0];
        let size = Bytes::from_kib(8);
        let scan = behind_clients(&experiment, size, PACE);
        let arm = arm_of(&scan, &experiment, size);
        assert!(arm.simulated_gaps * 3 < result.free.unwrap().time.gaps);
        // Until 95 % are read, leaps included; how long the last blocks take is chance. Free transfers
        // are 0.038 off, as leaps are some hundredths too short.
        let bursts = &scan.scan.bursts;
        let bursts = &bursts[..bursts.iter().position(|b| b.to < arm.blocks / 20).unwrap()];
        let read = arm.blocks - bursts.last().unwrap().to;
        let gaps = round.progress.iter().find(|at| at.blocks >= read).unwrap().gaps;
        let of = |s: GapShares| [s.transfer_share, s.extra_seek_share, s.unused_share];
        for (ours, exact) in of(curve::shares(bursts)).into_iter().zip(of(gaps.shares())) {
            assert!((ours - exact).abs() < 0.05, "{ours} {exact} until {read} are read");
        }
        assert_eq!(arm.shares, Some(curve::shares(&scan.scan.bursts)));
        let [.., all] = arm.parts.as_slice() else { panic!("{arm:?}") };
        assert_eq!((all.read_share, Some(all.seconds)), (1.0, arm.seconds));
        assert_eq!((Some(all.rounds_a_day), all.efficiency), (arm.rounds_a_day, arm.efficiency));
        let half = arm.parts.iter().find(|part| part.read_share == 0.5).unwrap();
        assert_eq!(half.seconds, arm.seconds_50_percent.unwrap());
        assert!(arm.parts.windows(2).all(|pair| pair[0].efficiency >= pair[1].efficiency));
        assert_eq!(arm.last_5_percent_of_read, arm.last_5_percent);
        let gaps_at = |part: f64| {
            let blocks = (part * arm.blocks as f64) as u64;
            round.progress.iter().find(|at| at.blocks >= blocks).unwrap().gaps
        };
        // Towards the end they fall faster within a leap than a straight line: 0.11 off at 90 %.
        for percent in (5..=80).step_by(5) {
            let part = f64::from(percent) / 100.0;
            let simulated = gaps_at(part + 0.02).since(&gaps_at(part - 0.02)).shares();
            let GapShares { transfer_share, extra_seek_share, unused_share } = simulated;
            let estimated = shares_at(&arm.course, part);
            let pairs = estimated.into_iter().zip([transfer_share, extra_seek_share, unused_share]);
            for (ours, exact) in pairs {
                assert!((ours - exact).abs() < 0.05, "{percent} %: {estimated:?} {simulated:?}");
            }
        }
    }

    #[test]
    fn estimate_near_whole_scan_random_requests() {
        let experiment = experiment("kind = \"closed\"");
        let scan = |pace: Pace| behind_clients(&experiment, Bytes::from_kib(8), pace);
        let (whole, leaping) = (scan(Pace { requests: 1_000_000, ..NO_LEAPS }), scan(PACE));
        assert!([&whole, &leaping].iter().all(|scan| scan.scan.end == End::Complete));
        assert!(leaping.gaps() * 3 < whole.gaps());
        for (part, band) in [(0.5, 0.08), (0.95, 0.08), (1.0, 0.15)] {
            let ratio = leaping.seconds_until(part).unwrap() / whole.seconds_until(part).unwrap();
            assert!((1.0 - band..1.0 + band).contains(&ratio), "{ratio} at {part}");
        }
    }

    #[test]
    fn estimate_near_whole_scan_partial_load() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/recorded/");
        let file = format!("{folder}fileserver-ext4.csv.zst").into();
        let trace = TraceWorkload { file, fit: Fit::Scale, ..TraceWorkload::default() };
        let workload = "kind = \"closed\"";
        let mut config = experiment(workload).config;
        config.workload = freewheel_sim::config::Workload::Trace(trace.clone());
        config.scheduler = PolicySpec::Fcfs;
        let experiment = Experiment::new(config).unwrap();
        let scan = |whole| {
            BackgroundScan::trace(&experiment, &trace, Rule::Paths, whole, &|_, _| {}).unwrap()
        };
        let (whole, leaping) = (scan(Some(300_000)), scan(None));
        let read = whole.read_share();
        assert!((0.05..0.9).contains(&read), "{read}");
        assert_ne!(leaping.scan.end, End::Complete, "the gaps reach a part of the drive only");
        for part in [0.25, 0.5, 0.75, 1.0] {
            let at = |scan: &BackgroundScan| scan.seconds_until(part * read).unwrap();
            let ratio = at(&leaping) / at(&whole);
            assert!((0.7..1.3).contains(&ratio), "{ratio} at {part} of {read}");
        }
    }
}
