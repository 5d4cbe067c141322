//! What became of the free work of a run: in numbers, in words, and in charts like figures 8 to 10 of
//! osdi00.

mod course;
mod page;
mod words;

use freewheel_sim::background::{BackgroundResult, IdleStarts, Round};
use freewheel_sim::{FreeTime, IdleTime, RunResult};
use serde::Serialize;

pub(crate) use course::Course;
pub(crate) use page::sections;
pub use words::{FreeWorkPart, free_work_parts};

/// The free work of a run in numbers, over all arms.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct FreeWork {
    /// Arms, each with its own scans.
    pub arms: u64,
    /// Scans that were completed: every block once, or as many as were enough.
    pub scans: u64,
    /// Mean time of one; None when none was completed.
    pub scan_ns: Option<u64>,
    /// Scans of an arm a day at that time.
    pub scans_a_day: Option<f64>,
    /// Part of its blocks that a scan under way at the end had, on average over the arms.
    pub unfinished: f64,
    /// Part of a scan's time that its last 5 % of the blocks took, on average.
    pub last_5_percent: Option<f64>,
    /// The same for the last 1 %.
    pub last_1_percent: Option<f64>,
    /// Where blocks came from.
    pub delivered: Delivered,
    /// Bytes a second that were delivered, wherever they came from.
    pub delivered_bytes_per_second: f64,
    /// What came in gaps and in passing over the potential free bandwidth (osdi00 section 6.3);
    /// more than 1 where much passes anyway.
    pub efficiency: f64,
    /// Part of the arms' time that promoted requests took of the heads.
    pub promoted_share: f64,
    /// Gaps that were decided on.
    pub decisions: u64,
    /// Nodes of the search that a decision looked at, on average.
    pub nodes_mean: f64,
    /// Decisions that stopped for their budget: something better may have been missed.
    pub exhausted: u64,
    /// Memory for what is wanted and for finding it.
    pub memory_bytes: u64,
    /// What the heads did.
    pub head_use: HeadUse,
    /// What idle time cost the foreground, where it was used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_cost: Option<IdleCost>,
}

/// Blocks of the task by where they came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Delivered {
    /// Moved in rotational gaps.
    pub in_gaps: u64,
    /// Moved by foreground requests anyway.
    pub in_passing: u64,
    /// Moved in idle time.
    pub in_idle: u64,
    /// Moved by foreground requests that were made for them.
    pub promoted: u64,
    /// Such requests.
    pub promoted_requests: u64,
    /// Time of the heads that they took.
    pub promoted_head_ns: u64,
}

impl Delivered {
    fn add(&mut self, round: &Round) {
        self.in_gaps += round.in_gaps;
        self.in_passing += round.in_passing;
        self.in_idle += round.in_idle;
        self.promoted += round.promoted.blocks;
        self.promoted_requests += round.promoted.requests;
        self.promoted_head_ns += round.promoted.head_ns;
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        self.in_gaps + self.in_passing + self.in_idle + self.promoted
    }
}

/// Shares of the arms' time; the rest they were idle, or their electronics were at work.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct HeadUse {
    /// Seeks of requests.
    pub seek: f64,
    /// Rotational latency of requests as it would be without free work.
    pub rotate: f64,
    /// Transfers of requests.
    pub transfer: f64,
    /// Of the latency: free transfers.
    pub free_transfer: f64,
    /// Of the latency: seeks for free transfers.
    pub extra_seek: f64,
    /// Work in idle time.
    pub idle_work: f64,
}

/// What work in idle time cost the foreground.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct IdleCost {
    /// Part of the foreground's requests that were the first behind such work.
    pub behind: f64,
    /// How much later those that were delayed ended, on average.
    pub delay_ns_mean: f64,
    /// What the mean response of all requests grew by, directly: what waits behind a request that
    /// is late is not counted.
    pub response_ns_added: f64,
    /// Bytes moved a second of the run.
    pub bytes_per_second: f64,
    /// How often such work began and a request ended it.
    pub starts: u64,
    /// Of them, those that cost it more than an adaptive timeout accepts; None where it is fixed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wrong_starts: Option<u64>,
    /// The timeout at the end, on average over the arms.
    pub timeout_ns_mean: f64,
}

impl FreeWork {
    /// None when the run had no background work.
    pub fn new(result: &RunResult) -> Option<Self> {
        let free = result.free.as_ref()?;
        let arms = result.background.as_slice();
        let block_bytes = arms.first()?.block_bytes;
        let mut delivered = Delivered::default();
        arms.iter().flat_map(BackgroundResult::all_rounds).for_each(|round| delivered.add(round));
        let bytes = |blocks: u64| (blocks * block_bytes) as f64;
        let potential = per_second(free.time.potential_ns) * free.media_bytes_per_second as f64;
        let completed = || arms.iter().flat_map(|arm| &arm.rounds);
        let scans = completed().count() as u64;
        let scan_ns =
            completed().map(|round| round.elapsed_ns).sum::<u64>().checked_div(scans.max(1));
        let scan_ns = scan_ns.filter(|_| scans > 0);
        let decisions = arms.iter().map(|arm| arm.decisions).sum();
        Some(Self {
            arms: arms.len() as u64,
            scans,
            scan_ns,
            scans_a_day: scan_ns.map(|ns| 86_400e9 / ns as f64),
            unfinished: mean(arms, |arm| arm.unfinished.blocks() as f64 / arm.blocks as f64),
            last_5_percent: time_share_of_last(arms, 0.05),
            last_1_percent: time_share_of_last(arms, 0.01),
            delivered,
            delivered_bytes_per_second: ratio(
                bytes(delivered.total()),
                result.elapsed_ns as f64 / 1e9,
            ),
            efficiency: ratio(bytes(delivered.in_gaps + delivered.in_passing), potential),
            promoted_share: ratio(delivered.promoted_head_ns as f64, result.arms_ns as f64),
            decisions,
            nodes_mean: ratio(
                arms.iter().map(|arm| arm.nodes).sum::<u64>() as f64,
                decisions as f64,
            ),
            exhausted: arms.iter().map(|arm| arm.exhausted).sum(),
            memory_bytes: arms.iter().map(|arm| arm.memory_bytes).sum(),
            head_use: HeadUse::new(result, &free.time),
            idle_cost: result.idle.as_ref().map(|idle| IdleCost::new(result, idle)),
        })
    }
}

impl HeadUse {
    fn new(result: &RunResult, free: &FreeTime) -> Self {
        let share = |ns: f64| ratio(ns, result.arms_ns as f64);
        Self {
            seek: share(result.head_time.seek_ns as f64),
            rotate: share(result.head_time.rotate_ns as f64),
            transfer: share(result.head_time.transfer_ns as f64),
            free_transfer: share(free.transfer_ns as f64),
            extra_seek: share(free.extra_seek_ns as f64),
            idle_work: share(result.idle.map_or(0.0, |idle| idle.head_ns as f64)),
        }
    }

    /// Rotational latency that free work has left.
    pub fn rotate_left(&self) -> f64 {
        self.rotate - self.free_transfer - self.extra_seek
    }
}

impl IdleCost {
    fn new(result: &RunResult, idle: &IdleTime) -> Self {
        let requests = result.response.count as f64;
        let seconds = result.elapsed_ns as f64 / 1e9;
        let starts: Vec<IdleStarts> =
            result.background.iter().filter_map(|arm| arm.idle_starts).collect();
        Self {
            behind: ratio(idle.requests_behind as f64, requests),
            delay_ns_mean: ratio(idle.delay_ns as f64, idle.requests_delayed as f64),
            response_ns_added: ratio(idle.delay_ns as f64 - idle.gain_ns as f64, requests),
            bytes_per_second: ratio((idle.read_bytes + idle.write_bytes) as f64, seconds),
            starts: starts.iter().map(|arm| arm.starts).sum(),
            wrong_starts: starts.iter().map(|arm| arm.wrong).sum(),
            timeout_ns_mean: mean(&starts, |arm| arm.timeout_ns as f64),
        }
    }
}

/// Mean over the arms that have completed a scan.
fn time_share_of_last(arms: &[BackgroundResult], part: f64) -> Option<f64> {
    let shares: Vec<f64> = arms.iter().filter_map(|arm| arm.time_share_of_last(part)).collect();
    (!shares.is_empty()).then(|| mean(&shares, |share| *share))
}

fn mean<T>(all: &[T], value: impl Fn(&T) -> f64) -> f64 {
    ratio(all.iter().map(value).sum(), all.len() as f64)
}

/// Zero where there is no whole.
fn ratio(part: f64, whole: f64) -> f64 {
    if whole == 0.0 { 0.0 } else { part / whole }
}

fn per_second(ns: u128) -> f64 {
    ns as f64 / 1e9
}
