//! A scan in bursts and leaps.
//!
//! A scan of a drive of today takes days, and its course changes slowly: what is wanted wears thin,
//! first where the head often comes by. So a few thousand gaps are simulated (a *burst*), and then
//! wanted blocks are taken away as if such gaps had gone on for a while (a *leap*): where the burst
//! took them, in the same pieces, over and over until little is left, which is
//! simulated to the end. A leap continues for this many times its burst, which is more as long as the
//! rate stays. This is coarse projective integration (Gear and Kevrekidis, SIAM J. Sci.
//! Comput. 24, 2003). A drive so small that a burst gets far is simulated as a whole.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use freewheel_freeblock::{
    Effort, ForegroundEvent, ForegroundObserver, FreeRun, GapUse, LayerKey, Opportunity, Options,
    Planner, Scheduler,
};
use freewheel_model::drive::Drive;
use freewheel_units::{Bytes, Lbn, Op, Prng, SimDuration, SimTime};

use super::burst::Burst;
use super::curve;
use super::depletion::{Run, Scan};
use super::effort::{SCRUB_EFFORT, Work};
use super::spread::Spread;

/// Resolution with which a scan is followed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Pace {
    /// Fewest gaps in a burst.
    pub gaps: u64,
    /// Most gaps in a burst: it is over before if its rate is known well enough.
    pub gaps_max: u64,
    /// Largest number of leaps.
    pub leaps: u64,
    /// Largest part of the rest that a leap takes; none for no leaps at all.
    pub step_max: f64,
    /// Gaps that the last blocks may take, which are waited for without leaps.
    pub last_gaps: u64,
    /// Most requests of the foreground.
    pub requests: u64,
    /// Most work, in nanoseconds of [`Work`].
    pub work_ns: u64,
}

/// Assumed: bursts that measure a rate to a few hundredths, and leaps over a tenth of the remaining
/// blocks where the work allows it. The wait for the last blocks is several times their time under
/// random requests on the largest drive here. The requests take seconds to simulate.
pub(super) const PACE: Pace = Pace {
    gaps: 750,
    gaps_max: 6000,
    leaps: 1000,
    step_max: 0.1,
    last_gaps: 200_000,
    requests: 4_000_000,
    work_ns: SCRUB_EFFORT.ns(),
};

/// Drive, load and rule of a scan.
#[derive(Debug, Clone, Copy)]
pub(super) struct ProjectedScan {
    /// Size of a wanted block.
    pub block_size: Bytes,
    /// Options of decisions about gaps.
    pub decisions: Options,
    pub pace: Pace,
}

/// Progress of the scans of all arms.
#[derive(Debug, Default)]
pub(super) struct Watch {
    /// Scans that are not over.
    pub unfinished: AtomicU64,
    /// Sum over the arms of how far each is, in parts of [`WHOLE`].
    pub done: AtomicU64,
    /// Requests of the foreground so far.
    pub requests: AtomicU64,
}

/// Progress of a scan when only its last blocks are left.
pub(super) const WHOLE: u64 = 1000;

/// End of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// Every block is read.
    Complete,
    /// The gaps reach hardly any block that is left.
    OutOfReach,
    /// The load was over first.
    LoadOver,
    /// The effort was spent first.
    EffortSpent,
}

/// Quantities that an estimate has a limited amount of.
#[derive(Debug, Clone, Copy, Default)]
struct Spending {
    work_ns: u64,
    /// Requests of the foreground.
    requests: u64,
}

/// The scan of one arm.
pub(super) struct Projection {
    scheduler: Scheduler,
    layer: usize,
    size: u64,
    pace: Pace,
    blocks: u64,
    prng: Prng,
    /// Number of times that the runs of a burst come again in a leap.
    times: f64,
    leaps: u64,
    /// Gaps of all bursts, and blocks that leaps took away in runs.
    gaps: u64,
    leapt: u64,
    /// Amount spent when the last burst ended.
    before: Spending,
    /// Progress that was reported last, and the expected work at its end.
    told: u64,
    expected_ns: u64,
    bursts: Vec<Burst>,
    burst: Burst,
    /// Pieces of the burst, and sums when the last piece ended.
    spread: Spread,
    piece: (u64, u64),
    /// Free runs of the burst.
    runs: Vec<Run>,
    now: SimTime,
    /// Time at which the last gap that was counted ended.
    last_gap: SimTime,
    end: Option<End>,
    watch: Arc<Watch>,
}

impl Projection {
    /// A scan of everything on an arm of `drive`, watched over by `watch`.
    pub fn new(drive: &Arc<Drive>, setting: ProjectedScan, prng: Prng, watch: &Arc<Watch>) -> Self {
        let ProjectedScan { block_size, decisions, pace } = setting;
        let mut scheduler = Scheduler::new(drive, decisions);
        let size = (block_size.get() / 512) as u32;
        let key = LayerKey { op: Op::Read, size, offset: 0, weight: 1 };
        // What has been verified need not be held.
        let layer = scheduler.add_layer(key, false);
        let blocks = drive.blocks().get() / u64::from(size);
        scheduler.want(layer, 0, blocks);
        // Its index is made now, and behind each leap: the time of a decision leaves that out.
        scheduler.refresh();
        Self {
            scheduler,
            layer,
            size: size.into(),
            pace,
            blocks,
            prng,
            times: 1.0,
            leaps: 0,
            gaps: 0,
            leapt: 0,
            before: Spending::default(),
            told: 0,
            expected_ns: pace.work_ns,
            bursts: Vec::new(),
            burst: Burst { from: blocks, ..Burst::default() },
            spread: Spread::default(),
            piece: (0, 0),
            runs: Vec::new(),
            now: SimTime::ZERO,
            last_gap: SimTime::ZERO,
            end: None,
            watch: Arc::clone(watch),
        }
    }

    /// Blocks of the whole scan.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// All bursts, in order, the one under way at the end of the load among them.
    pub fn bursts(&self) -> Vec<Burst> {
        let mut bursts = self.bursts.clone();
        if self.end.is_none() && self.burst.gaps > 0 {
            bursts.push(Burst { to: self.left(), ..self.burst });
        }
        bursts
    }

    /// Time that was simulated until it ended.
    pub fn simulated(&self) -> SimDuration {
        self.last_gap.saturating_since(SimTime::ZERO)
    }

    /// Cost of its decisions.
    pub fn effort(&self) -> Effort {
        self.scheduler.effort()
    }

    /// End of the scan.
    pub fn end_of_scan(&self) -> End {
        self.end.unwrap_or(End::LoadOver)
    }

    fn left(&self) -> u64 {
        self.scheduler.wanted(self.layer)
    }

    /// Blocks that are complete by what was read last.
    fn deliveries(&mut self) -> u64 {
        self.scheduler.deliveries().map(|delivery| delivery.delivered.blocks).sum()
    }

    /// True if every block is read, which ends the scan.
    fn is_complete(&mut self) -> bool {
        let complete = self.left() == 0;
        if complete {
            self.end_burst();
            self.end(End::Complete);
        }
        complete
    }

    fn end(&mut self, end: End) {
        self.end = Some(end);
        self.watch.unfinished.fetch_sub(1, Ordering::Relaxed);
    }

    fn end_burst(&mut self) {
        let left = self.left();
        self.bursts.push(Burst { to: left, error: self.spread.error(), ..self.burst });
        self.burst = Burst { from: left, ..Burst::default() };
        (self.spread, self.piece) = (Spread::default(), (0, 0));
    }

    /// True if the burst is long enough, at the end of a piece of it.
    fn is_enough(&mut self) -> bool {
        if !self.burst.gaps.is_multiple_of(PIECE) {
            return false;
        }
        let given = (self.burst.in_gaps, self.burst.time.potential_ns);
        self.spread.add(given.0 - self.piece.0, given.1 - self.piece.1);
        self.piece = given;
        let Pace { gaps, gaps_max, .. } = self.pace;
        self.burst.gaps >= gaps_max || self.burst.gaps >= gaps && self.is_known()
    }

    fn is_known(&self) -> bool {
        self.spread.error() <= RATE_ERROR
    }

    /// Work that it has done.
    pub fn work(&self) -> Work {
        Work { gaps: self.gaps, nodes: self.effort().nodes, leapt: self.leapt }
    }

    /// Factor by which leaps must be coarser than usual for the rest of the work and of the load to do, if
    /// each burst takes as much as the last one, `took`: one if they do anyway.
    fn coarseness(&self, took: Spending) -> f64 {
        let Some((bursts, burst_ns)) = self.to_come(took) else { return 1.0 };
        let Pace { work_ns, requests, .. } = self.pace;
        let gap_use = self.gap_use();
        let of_work = part(burst_ns, work_ns, gap_use.work_ns);
        let of_load = part(took.requests, requests, gap_use.requests);
        (bursts * of_work.max(of_load)).clamp(1.0, COARSEST)
    }

    /// Bursts to come with leaps as fine as usual, and the work of one. None before the second burst.
    fn to_come(&self, took: Spending) -> Option<(f64, u64)> {
        let [first, .., last] = self.bursts.as_slice() else { return None };
        let Pace { gaps, step_max, .. } = self.pace;
        // Searches take longer as less is left.
        let nodes = gaps.saturating_mul(self.scheduler.options().budget);
        let dearest = Work { gaps, nodes, leapt: 0 }.ns();
        let burst_ns = took.work_ns.midpoint(dearest.max(took.work_ns));
        // Until the rate is that at which a scan ends, or hardly anything is left.
        let fall = libm::log(curve::rate(last) / (RATE_MIN * curve::rate(first))) / STEADY;
        let read = libm::log(self.left() as f64 / gaps as f64) / -libm::log(1.0 - step_max);
        Some((BURSTS_FOR_EACH * fall.min(read).max(1.0), burst_ns))
    }

    fn gap_use(&self) -> Spending {
        let requests = self.watch.requests.load(Ordering::Relaxed);
        Spending { work_ns: self.work().ns(), requests }
    }

    /// Takes longer leaps where the rate hardly changes, and shorter ones where it does.
    fn adapt(&mut self, coarseness: f64) {
        let [.., before, after] = self.bursts.as_slice() else { return };
        let by_chance = libm::hypot(before.error, after.error);
        let change = libm::fabs(libm::log(curve::rate(before) / curve::rate(after)));
        let aim = (STEADY * coarseness).max(by_chance);
        // A scan that must be followed coarsely is so from its beginning.
        let longer = 2.0 * (coarseness * coarseness).min(LONGER);
        self.times = (self.times * (aim / change).clamp(0.5, longer)).max(1.0);
    }

    /// A burst is long enough: takes away what the time up to the next one would.
    fn leap(&mut self) {
        if self.work().ns() >= self.pace.work_ns {
            self.end_burst();
            return self.end(End::EffortSpent);
        }
        // As few as a burst might take one by one: which of them are left matters now.
        if self.left() <= self.pace.gaps {
            if self.burst.gaps >= self.pace.last_gaps {
                self.end_burst();
                self.end(End::OutOfReach);
            }
            return;
        }
        let is_rare = (self.runs.len() as f64) < RUNS_MIN * self.burst.gaps as f64;
        let has_ebbed = self.has_ebbed();
        let is_known = self.burst.in_gaps > 0;
        let is_awaited = self.burst.gaps < self.pace.last_gaps;
        // Pieces of blocks tell no rate: the burst continues, for the wait for the last blocks at most.
        if !is_known && !is_rare && !has_ebbed && is_awaited {
            return;
        }
        self.end_burst();
        let mut runs = std::mem::take(&mut self.runs);
        if is_rare || has_ebbed || !is_known {
            return self.end(End::OutOfReach);
        }
        if self.leaps >= self.pace.leaps {
            return self.end(End::LoadOver);
        }
        self.leaps += 1;
        if self.pace.step_max == 0.0 {
            return;
        }
        let gap_use = self.gap_use();
        let Spending { work_ns, requests } = std::mem::replace(&mut self.before, gap_use);
        let took =
            Spending { work_ns: gap_use.work_ns - work_ns, requests: gap_use.requests - requests };
        let coarseness = self.coarseness(took);
        self.expect(took, coarseness);
        self.adapt(coarseness);
        let read = runs.iter().map(|run| (run.1 - run.0) as f64).sum::<f64>() / self.size as f64;
        let part = -libm::log(1.0 - self.pace.step_max) * coarseness;
        let most = part * self.left() as f64 / read;
        self.times = self.times.min(most);
        let Self { scheduler, layer, size, now, .. } = self;
        // Fine leaps end where their burst did; coarse ones go on where the next bursts would.
        let reach = (coarseness * coarseness).round() as u64;
        let mut scan = Scan { scheduler, layer: *layer, size: *size, now: *now, reach };
        self.leapt += scan.go_on(&mut runs, self.times, &mut self.prng);
        scheduler.refresh();
        self.burst.from = self.left();
    }

    /// Works out anew the work at the end: less than all that may be done where
    /// leaps are as fine as usual.
    fn expect(&mut self, took: Spending, coarseness: f64) {
        let Some((bursts, burst_ns)) = self.to_come(took) else { return };
        let done = self.work().ns();
        let rest = (bursts * burst_ns as f64 / coarseness) as u64;
        self.expected_ns = done.saturating_add(rest).min(self.pace.work_ns);
    }

    /// True if the gaps of the burst give hardly any of the rate of the first one, and not because hardly
    /// anything is left. A whole scan is not judged.
    fn has_ebbed(&self) -> bool {
        let Some(first) = self.bursts.first().filter(|_| self.pace.step_max > 0.0) else {
            return false;
        };
        // Of a burst without a block it is what one would make of it.
        let burst = Burst { in_gaps: self.burst.in_gaps.max(1), ..self.burst };
        let is_little = curve::rate(&burst) < RATE_MIN * curve::rate(first);
        is_little && self.left() as f64 > LAST_PART * self.blocks as f64
    }

    /// Says how far it is.
    fn tell(&mut self) {
        let done = self.how_far();
        let more = done.saturating_sub(self.told);
        self.watch.done.fetch_add(more, Ordering::Relaxed);
        self.told += more;
    }

    /// Progress in parts of [`WHOLE`]: its work over that at its end.
    fn how_far(&self) -> u64 {
        let done = self.work().ns().min(self.expected_ns);
        (u128::from(done) * u128::from(WHOLE) / u128::from(self.expected_ns.max(1))) as u64
    }
}

fn part(burst: u64, all: u64, gap_use: u64) -> f64 {
    burst as f64 / all.saturating_sub(gap_use).max(1) as f64
}

/// Gaps of a piece of a burst. Assumed: about the requests of a piece of the sample, so that
/// pieces differ as parts of the load do.
const PIECE: u64 = 250;

/// Standard error of a rate that is known well enough, in parts of it. Assumed: half of the change
/// from one burst to the next that is aimed at.
const RATE_ERROR: f64 = 0.08;

/// Change of the rate from one burst to the next that leaps aim at, as a logarithm; more where chance
/// alone makes more. Assumed: rates fall to a hundredth within thirty leaps then.
const STEADY: f64 = 0.15;

/// Bursts for each that would do if a rate fell evenly and were known exactly. Measured: 250 instead of 31
/// with leaps that no effort limits, 90 instead of 20 where it did (pgbench on 24 TB).
const BURSTS_FOR_EACH: f64 = 5.0;

/// Leaps are never coarser than this many times the usual: the rate may then fall to half in one, or four
/// tenths of the rest be taken. Assumed.
const COARSEST: f64 = 5.0;

/// A leap is at most twice as long as the one before it, and this many times more where leaps are coarse.
/// Assumed: from one burst to the length that a drive of today needs in four leaps.
const LONGER: f64 = 8.0;

/// Gaps from one time that a scan says how far it is to the next.
const TELL_EVERY: u64 = 50;

/// With fewer free runs for each gap of a burst the gaps reach hardly any block more. Assumed:
/// fewer than fifteen runs in the shortest burst measure no rate, their standard error being a
/// quarter.
const RUNS_MIN: f64 = 0.01;

/// With a smaller part of its first rate a scan is at its end, if more than [`LAST_PART`] of it
/// is left. Assumed: no operator waits for blocks that take a hundred times as long as the first.
const RATE_MIN: f64 = 0.01;

/// The part of a scan that is slow because hardly anything is left, wherever the gaps reach. Assumed.
const LAST_PART: f64 = 0.01;

impl Planner for Projection {
    fn plan(&mut self, gap: &Opportunity, runs: &mut Vec<FreeRun>) {
        runs.clear();
        if self.end.is_none() {
            self.scheduler.plan(gap, runs);
        }
    }

    fn done(&mut self, run: &FreeRun, at: SimTime) {
        if self.end.is_some() {
            return;
        }
        let start = run.start.get();
        self.runs.push((start, start + u64::from(run.blocks)));
        self.scheduler.done(run, at);
        self.now = at;
        self.burst.in_gaps += self.deliveries();
    }

    fn filled(&mut self, gap: &Opportunity, gap_use: &GapUse) {
        if self.end.is_some() {
            return;
        }
        self.gaps += 1;
        self.burst.gaps += 1;
        self.burst.time.add(gap, gap_use);
        self.last_gap = gap.due;
        if self.burst.gaps.is_multiple_of(TELL_EVERY) {
            self.tell();
        }
        if !self.is_complete() && self.is_enough() {
            self.leap();
        }
    }
}

impl ForegroundObserver for Projection {
    fn foreground(&mut self, event: ForegroundEvent<'_>) {
        if let ForegroundEvent::Passed { op, start, blocks, at } = event {
            self.foreground_passed(op, start, blocks, at);
        }
    }
}

impl Projection {
    fn foreground_passed(&mut self, op: Op, start: Lbn, blocks: u32, at: SimTime) {
        // What is written does not verify anything.
        if op == Op::Read && self.end.is_none() {
            self.scheduler.foreground(ForegroundEvent::Passed { op, start, blocks, at });
            self.deliveries();
            self.is_complete();
        }
    }
}

#[cfg(test)]
mod tests {
    use freewheel_freeblock::Rule;
    use freewheel_model::drive::{Departure, Position};

    use freewheel_sim::background::Gaps;

    use super::*;

    const PACE: Pace = Pace {
        gaps: 500,
        gaps_max: 1000,
        leaps: 10,
        step_max: 0.1,
        last_gaps: 5000,
        requests: u64::MAX,
        work_ns: u64::MAX,
    };

    fn scan() -> Projection {
        let spec = freewheel_sim::library::spec("atlas10k").unwrap();
        let drive = Arc::new(Drive::build(&spec).unwrap());
        let watch = Arc::new(Watch { unfinished: 1.into(), ..Watch::default() });
        let setting = ProjectedScan {
            block_size: Bytes::from_kib(8),
            decisions: Options { rule: Rule::Greedy, budget: 64, ..Options::default() },
            pace: PACE,
        };
        Projection::new(&drive, setting, Prng::new(1, "test"), &watch)
    }

    /// This many gaps, in each of which this many blocks of 512 B are read, one such place after another.
    fn gaps(scan: &mut Projection, count: u64, blocks: u32) {
        let due = SimTime::from_ns(3_000_000);
        let head = Departure::after_read(SimTime::ZERO, Position::default());
        let gap = Opportunity { due, ..Opportunity::none(&head) };
        for _ in 0..count {
            // Far from where bursts before it and their leaps read.
            let start = Lbn::new(1_000_000 * scan.bursts.len() as u64 + 16 * scan.burst.gaps);
            scan.done(&FreeRun { start, blocks, op: Op::Read }, SimTime::ZERO);
            scan.filled(&gap, &GapUse::default());
        }
    }

    #[test]
    fn projection_burst_lasts_until_completion() {
        let mut pieces = scan();
        gaps(&mut pieces, 4000, 8);
        assert!(pieces.bursts.is_empty() && pieces.end.is_none());
        // Blocks that are complete tell a rate.
        gaps(&mut pieces, PIECE, 16);
        assert_eq!((pieces.bursts.len(), pieces.leaps, pieces.end), (1, 1, None));
        assert!(pieces.times.is_finite() && curve::rate(&pieces.bursts[0]) > 0.0);
        let mut never = scan();
        gaps(&mut never, PACE.last_gaps, 8);
        assert_eq!((never.bursts.len(), never.leaps), (1, 0));
        assert_eq!(never.end, Some(End::OutOfReach));
    }

    #[test]
    fn projection_ends_at_hundredth_of_rate() {
        let mut ebbing = scan();
        let one_of = |scan: &mut Projection, gaps_each: u64, times: u64| {
            for _ in 0..times {
                gaps(scan, gaps_each - 1, 8);
                gaps(scan, 1, 16);
            }
        };
        gaps(&mut ebbing, PACE.gaps, 16);
        one_of(&mut ebbing, 50, 10);
        assert_eq!((ebbing.bursts.len(), ebbing.end), (2, None));
        one_of(&mut ebbing, 250, 2);
        assert_eq!((ebbing.bursts.len(), ebbing.end), (3, Some(End::OutOfReach)));
        let mut last = scan();
        gaps(&mut last, PACE.gaps, 16);
        let blocks = last.blocks * 16;
        last.foreground_passed(
            Op::Read,
            Lbn::new(4_000_000),
            (blocks - 4_000_000) as u32,
            SimTime::ZERO,
        );
        last.foreground_passed(Op::Read, Lbn::new(0), 3_990_000, SimTime::ZERO);
        last.burst.time.potential_ns = u64::MAX;
        assert!(!last.has_ebbed() && last.left() > PACE.gaps && last.end.is_none());
    }

    #[test]
    fn projection_leaps_coarsen_with_less_work() {
        let mut scan = scan();
        gaps(&mut scan, PACE.gaps, 16);
        gaps(&mut scan, PACE.gaps, 16);
        assert_eq!((scan.bursts.len(), scan.end), (2, None));
        let mut with_rest = |rest: u64| {
            scan.pace.work_ns = scan.work().ns() + rest;
            scan.coarseness(Spending { work_ns: 1_000_000, requests: 0 })
        };
        let coarser: Vec<f64> =
            [1 << 40, 5_000_000_000, 2_500_000_000, 1 << 20].map(&mut with_rest).into();
        assert!(coarser.is_sorted() && 1.0 < coarser[1] && coarser[1] < coarser[2], "{coarser:?}");
        assert_eq!((coarser[0], coarser[3]), (1.0, COARSEST));
        scan.pace.work_ns = scan.work().ns() + 1;
        gaps(&mut scan, PIECE, 16);
        assert_eq!(scan.end, None, "a piece is too short to end a burst");
        gaps(&mut scan, PACE.gaps - PIECE, 16);
        assert_eq!((scan.bursts.len(), scan.end), (3, Some(End::EffortSpent)));
    }

    #[test]
    fn projection_leaps_lengthen_at_steady_rate() {
        let mut scan = scan();
        let mut after = |rates: [u64; 2], error: f64| {
            let time = Gaps { potential_ns: 1_000_000, ..Gaps::default() };
            let burst = |in_gaps| Burst { in_gaps, time, error, ..Burst::default() };
            scan.bursts = rates.map(burst).into();
            scan.times = 8.0;
            scan.adapt(1.0);
            scan.times
        };
        let is = |times: f64, part: f64| (times / (8.0 * part) - 1.0).abs() < 1e-9;
        assert_eq!((after([1000, 1000], 0.0), after([1500, 1], 0.0)), (16.0, 4.0));
        // A sixth of the rate is lost or won.
        let change = libm::log(1.2);
        assert!(is(after([1200, 1000], 0.0), STEADY / change));
        assert!(is(after([1000, 1200], 0.0), STEADY / change));
        // As much as chance makes of it.
        assert!(is(after([1200, 1000], 0.2), 0.2 * std::f64::consts::SQRT_2 / change));
    }
}
