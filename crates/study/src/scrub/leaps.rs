//! A scan in bursts and leaps.
//!
//! A scan of a drive of today takes days, and its course changes slowly: what is wanted wears thin,
//! first where the head often comes by. So a few thousand gaps are simulated (a *burst*), and then
//! wanted blocks are taken away as if such gaps had gone on for a while (a *leap*): where the burst
//! took them, as many at a time as it took, and over and over until little is left, which is
//! simulated to the end. This is coarse projective integration (Gear and Kevrekidis, SIAM J. Sci.
//! Comput. 24, 2003). A drive so small that a burst gets far is simulated as a whole.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use freewheel_model::drive::Drive;
use freewheel_model::freeblock::{
    Effort, FreeRun, LayerKey, Opportunity, Options, Planner, Rule, Scheduler, Spent,
};
use freewheel_sim::background::Gaps;
use freewheel_units::{Bytes, Lbn, Op, Prng, SimDuration, SimTime};

use super::curve;
use super::thin::{Run, Scan};

/// How finely a scan is followed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Pace {
    /// Gaps in a burst.
    pub gaps: u64,
    /// Most leaps.
    pub leaps: u64,
    /// Largest part of what the gaps reach that a burst and its leap take; none for no leaps at all.
    pub step_max: f64,
    /// Gaps that the last blocks may take, which are waited for without leaps.
    pub last_gaps: u64,
    /// Most requests of the foreground.
    pub requests: u64,
}

/// What a burst found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Burst {
    /// Blocks wanted when it began, and when it ended.
    pub from: u64,
    pub to: u64,
    pub gaps: u64,
    /// Free runs.
    pub runs: u64,
    /// Blocks read in gaps; others passed anyway.
    pub in_gaps: u64,
    /// What became of the gaps.
    pub time: Gaps,
}

/// How far the scans of all arms are.
#[derive(Debug, Default)]
pub(super) struct Watch {
    /// Scans that are not over.
    pub unfinished: AtomicU64,
    /// Sum over the arms of how far each is, in parts of [`WHOLE`].
    pub done: AtomicU64,
}

/// How far a scan is when only its last blocks are left.
pub(super) const WHOLE: u64 = 1000;

/// How a scan ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// Nothing is left.
    Complete,
    /// The gaps reach nothing more, or next to nothing.
    OutOfReach,
    /// The load was over first.
    LoadOver,
}

/// The scan of one arm.
pub(super) struct Leaping {
    scheduler: Scheduler,
    layer: usize,
    size: u64,
    pace: Pace,
    blocks: u64,
    prng: Prng,
    /// Part of what the gaps reach that a burst and its leap take.
    step: f64,
    leaps: u64,
    /// How far it has said that it is.
    told: u64,
    bursts: Vec<Burst>,
    burst: Burst,
    /// Free runs of the burst.
    runs: Vec<Run>,
    now: SimTime,
    /// When the last gap that was counted ended.
    last_gap: SimTime,
    end: Option<End>,
    watch: Arc<Watch>,
}

impl Leaping {
    /// A scan of everything on an arm of `drive`, watched over by `watch`.
    pub fn new(
        drive: &Arc<Drive>,
        block_size: Bytes,
        pace: Pace,
        prng: Prng,
        watch: &Arc<Watch>,
    ) -> Self {
        let options = Options { rule: Rule::Paths, ..Options::default() };
        let mut scheduler = Scheduler::new(drive, options);
        let size = (block_size.get() / 512) as u32;
        let key = LayerKey { op: Op::Read, size, offset: 0, weight: 1 };
        // What has been verified need not be held.
        let layer = scheduler.add_layer(key, false);
        let blocks = drive.blocks().get() / u64::from(size);
        scheduler.want(layer, 0, blocks);
        // Its index is made now, and behind each leap: what is told of a decision has none of that.
        scheduler.refresh();
        Self {
            scheduler,
            layer,
            size: size.into(),
            pace,
            blocks,
            prng,
            step: STEP_MIN.min(pace.step_max),
            leaps: 0,
            told: 0,
            bursts: Vec::new(),
            burst: Burst { from: blocks, ..Burst::default() },
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

    /// What its decisions cost.
    pub fn effort(&self) -> Effort {
        self.scheduler.effort()
    }

    /// How it ended.
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

    /// Whether nothing is left, which ends the scan.
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
        self.bursts.push(Burst { to: left, ..self.burst });
        self.burst = Burst { from: left, ..Burst::default() };
    }

    /// Takes longer leaps where the rate hardly changes, and shorter ones where it does.
    fn adapt(&mut self) {
        let [.., before, after] = self.bursts.as_slice() else { return };
        let part = |burst: &Burst| 1.0 / burst.runs.max(1) as f64;
        let by_chance = (part(before) + part(after)).sqrt();
        let change = libm::fabs(libm::log(curve::rate(after) / curve::rate(before)));
        if change < STEADY.max(by_chance) {
            self.step = (2.0 * self.step).min(self.pace.step_max);
        } else if change > UNSTEADY.max(2.0 * by_chance) {
            self.step = (0.5 * self.step).max(STEP_MIN.min(self.pace.step_max));
        }
    }

    /// A burst is long enough: takes away what the time up to the next one would.
    fn leap(&mut self) {
        // As few as a burst might take one by one: which of them are left matters now.
        if self.left() <= self.pace.gaps {
            if self.burst.gaps >= self.pace.last_gaps {
                self.end_burst();
                self.end(End::OutOfReach);
            }
            return;
        }
        self.end_burst();
        let mut runs = std::mem::take(&mut self.runs);
        if runs.len() < RUNS_MIN {
            return self.end(End::OutOfReach);
        }
        if self.leaps >= self.pace.leaps {
            return self.end(End::LoadOver);
        }
        self.adapt();
        let Self { scheduler, layer, size, now, .. } = self;
        let mut scan = Scan { scheduler, layer: *layer, size: *size, now: *now };
        scan.go_on(&mut runs, 1.0 - self.step, &mut self.prng);
        scheduler.refresh();
        self.burst.from = self.left();
        self.leaps += 1;
    }

    /// Says how far it is.
    fn tell(&mut self) {
        let done = self.how_far();
        let more = done.saturating_sub(self.told);
        self.watch.done.fetch_add(more, Ordering::Relaxed);
        self.told += more;
    }

    /// How far it is, in parts of [`WHOLE`]: bursts, which take about the same time each, over those and
    /// as many as follow if the rate stays, so that leaps get longer, until one might read what is left.
    fn how_far(&self) -> u64 {
        let Pace { gaps, leaps, step_max, .. } = self.pace;
        let done = self.leaps as f64 + (self.burst.gaps as f64 / gaps as f64).min(1.0);
        let mut all = self.leaps as f64 + 1.0;
        let (mut left, mut step) = (self.burst.from as f64, self.step);
        for _ in self.leaps..leaps.min(self.leaps + LEAPS_AHEAD) {
            left *= 1.0 - step;
            if left <= gaps as f64 {
                break;
            }
            all += 1.0;
            step = (2.0 * step).min(step_max);
        }
        (done / all * WHOLE as f64) as u64
    }
}

/// The part that the first leaps take, and the shortest. Assumed: near what whole regions give
/// in a burst on a small drive.
const STEP_MIN: f64 = 1.0 / 64.0;

/// Changes of the rate from one burst to the next, as a logarithm: below the first the leap between
/// them might have been longer, beyond the second it should have been shorter. Assumed; more where
/// chance alone makes more of the number of runs.
const STEADY: f64 = 0.1;
const UNSTEADY: f64 = 0.22;

/// So many leaps of half of what is left get through anything.
const LEAPS_AHEAD: u64 = 64;

/// Gaps from one time that a scan says how far it is to the next.
const TELL_EVERY: u64 = 50;

/// With fewer free runs in a burst its gaps are said to reach nothing more. Assumed: of a smaller
/// number nothing could be told, its standard error being a quarter.
const RUNS_MIN: usize = 16;

impl Planner for Leaping {
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
        self.burst.runs += 1;
        self.runs.push((start, start + u64::from(run.blocks)));
        self.scheduler.done(run, at);
        self.now = at;
        self.burst.in_gaps += self.deliveries();
    }

    fn filled(&mut self, gap: &Opportunity, spent: &Spent) {
        if self.end.is_some() {
            return;
        }
        self.burst.gaps += 1;
        self.burst.time.add(gap, spent);
        self.last_gap = gap.due;
        if self.burst.gaps.is_multiple_of(TELL_EVERY) {
            self.tell();
        }
        if !self.is_complete() && self.burst.gaps.is_multiple_of(self.pace.gaps) {
            self.leap();
        }
    }

    fn passed(&mut self, op: Op, start: Lbn, blocks: u32, at: SimTime) {
        // What is written does not verify anything.
        if op == Op::Read && self.end.is_none() {
            self.scheduler.passed(op, start, blocks, at);
            self.deliveries();
            self.is_complete();
        }
    }
}
