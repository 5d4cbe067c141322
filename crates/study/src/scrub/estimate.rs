//! The estimate for a drive under a trace, as results.

use freewheel_freeblock::ByNodes;
use freewheel_sim::background::GapShares;
use freewheel_units::Bytes;
use serde::Serialize;

use super::burst::Burst;
use super::curve::{self, At};
use super::projection::End;
use super::scan::Scanned;
use crate::head_use::HeadUse;

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
    pub(super) fn without_gaps(blocks: u64) -> Self {
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

    pub(super) fn new(scan: &Scanned, block_size: Bytes, gap_share: f64, media_rate: f64) -> Self {
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
    pub(super) fn with_idle_time(self, block_size: Bytes, idle_bytes_per_second: f64) -> Self {
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
