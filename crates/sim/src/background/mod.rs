//! Background work of an experiment: a task whose blocks are read in rotational gaps, and what
//! became of it.

mod config;
mod promote;
mod result;
mod task;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use freewheel_model::drive::{Departure, Drive};
use freewheel_model::freeblock::tasks::{
    CADENCE, Event, Promoted, TaskError, TaskId, TaskSpec, Tasks,
};
use freewheel_model::freeblock::{
    Foreground, FreeRun, IdleTimer, Opportunity, Options, Planner, STEPS_MAX, Spent,
};
use freewheel_model::sched::PolicySpec;
use freewheel_units::{Lbn, Op, SimDuration, SimTime};

use self::promote::{Ahead, RoundState, Tail};
use self::task::Beside;
use crate::source::{Request, Source, SourceError};

pub use config::{FreeblockConfig, IdleConfig};
pub use promote::{PromoteTail, PromotedWork};
pub use result::{BackgroundResult, Gaps, IdleStarts, Progress, Round};
pub use task::{BackgroundTask, BesideResult, TaskConfig};

/// Parts of a round after which its progress is noted: evenly, and more often towards the end, where
/// the last blocks take most of the time.
const STEPS: u64 = 200;

/// Halvings of the last step that are noted as well.
const LAST_STEPS: u32 = 10;

/// The task of one arm.
pub(crate) struct Background {
    tasks: Tasks,
    task: TaskId,
    spec: TaskSpec,
    blocks: u64,
    rounds: Vec<Round>,
    round: Round,
    began: SimTime,
    /// Deliveries of this round at which its progress is noted next, and the number of that step.
    note_at: u64,
    steps: Vec<u64>,
    unfinished: Option<Unfinished>,
    /// Of the unfinished blocks those that are this arm's.
    own_left: u64,
    tail: Option<Tail>,
    idle: Option<IdleUse>,
    is_idle: bool,
    beside: Vec<Beside>,
}

/// Use of idle time, and when it begins.
struct IdleUse {
    config: IdleConfig,
    timer: IdleTimer,
}

/// Blocks that are to be delivered before the foreground ends, over all arms.
#[derive(Debug, Clone)]
pub(crate) struct Unfinished {
    left: Arc<AtomicU64>,
    total: u64,
}

impl Unfinished {
    /// `total` of them; none when there is no end to them.
    pub fn new(total: u64) -> Self {
        Self { left: Arc::new(AtomicU64::new(total)), total }
    }

    /// Whether the foreground may end: all are delivered.
    pub fn is_none(&self) -> bool {
        self.left.load(Ordering::Relaxed) == 0
    }

    /// Delivered, and all.
    pub fn progress(&self) -> (u64, u64) {
        (self.total - self.left.load(Ordering::Relaxed), self.total)
    }
}

impl Background {
    pub fn new(
        drive: &Arc<Drive>,
        config: &FreeblockConfig,
        policy: PolicySpec,
        unfinished: Option<Unfinished>,
    ) -> Result<Self, TaskError> {
        let options = Options {
            rule: config.rule,
            prices: config.prices,
            budget: config.nodes_max.unwrap_or(u64::MAX),
            steps_max: config.steps_max.unwrap_or(STEPS_MAX),
            ..Options::default()
        };
        let mut tasks = Tasks::new(drive, options, CADENCE);
        let spec = config.first().spec(drive.blocks());
        let task = tasks.register(SimTime::ZERO, spec.clone())?;
        let beside = config.beside.iter().map(|config| Beside::begin(&mut tasks, config));
        let beside: Vec<Beside> = beside.collect::<Result<_, _>>()?;
        let blocks = config.blocks_of_a_round(drive.blocks());
        let ahead = if policy == PolicySpec::Fcfs { Ahead::OfQueue } else { Ahead::OfArm };
        let tail = config.promote_tail.map(|tail| Tail::new(tail, spec.block_size, ahead));
        let mut background = Self {
            tasks,
            task,
            spec,
            blocks,
            rounds: Vec::new(),
            round: Round::default(),
            began: SimTime::ZERO,
            note_at: 0,
            steps: steps(blocks),
            unfinished,
            own_left: config.rounds.unwrap_or(0) * blocks,
            tail,
            idle: config.idle.map(|config| IdleUse { timer: config.timer(), config }),
            is_idle: false,
            beside,
        };
        background.note_at = background.first_step();
        Ok(background)
    }

    /// What became of it by `end`.
    pub fn result(self, end: SimTime) -> BackgroundResult {
        let mut unfinished = self.round;
        unfinished.elapsed_ns = end.saturating_since(self.began).ns();
        let scheduler = self.tasks.scheduler();
        let result = BackgroundResult::new(
            self.blocks,
            self.spec.block_size,
            self.rounds,
            unfinished,
            scheduler.effort(),
            self.tasks.memory().total(),
            self.idle.map(|idle| IdleStarts::new(&idle.timer, idle.config.adapt.is_some())),
        );
        let beside = self.beside.into_iter().map(|beside| beside.result).collect();
        BackgroundResult { beside, ..result }
    }

    fn take_events(&mut self, in_a_gap: bool) {
        let events: Vec<Event> = self.tasks.events().collect();
        for event in events {
            if self.is_beside(&event) {
                continue;
            }
            match event {
                Event::Delivered { extent, is_promoted, at, .. } => {
                    let blocks = extent.blocks.get() / u64::from(self.spec.block_size);
                    let count = match in_a_gap {
                        true if self.is_idle => &mut self.round.in_idle,
                        true => &mut self.round.in_gaps,
                        false if is_promoted => &mut self.round.promoted.blocks,
                        false => &mut self.round.in_passing,
                    };
                    *count += blocks;
                    self.contribute(blocks);
                    self.note(at);
                }
                Event::Done { at, .. } => self.end_round(at),
                Event::Superseded { .. } => {}
            }
        }
    }

    /// Whether the event is of another task than the first, which then has it.
    fn is_beside(&mut self, event: &Event) -> bool {
        let (Event::Delivered { task, .. }
        | Event::Done { task, .. }
        | Event::Superseded { task, .. }) = *event;
        let Some(beside) = self.beside.iter_mut().find(|beside| beside.is(task)) else {
            return false;
        };
        match *event {
            Event::Delivered { extent, .. } => beside.delivered(extent.blocks),
            Event::Done { at, .. } => beside.end_round(&mut self.tasks, at),
            Event::Superseded { .. } => {}
        }
        true
    }

    fn first_step(&self) -> u64 {
        self.steps.first().copied().unwrap_or(u64::MAX)
    }

    fn contribute(&mut self, blocks: u64) {
        if let Some(unfinished) = &self.unfinished {
            let blocks = blocks.min(self.own_left);
            self.own_left -= blocks;
            unfinished.left.fetch_sub(blocks, Ordering::Relaxed);
        }
    }

    fn note(&mut self, at: SimTime) {
        let done = self.round.blocks();
        while done >= self.note_at {
            let elapsed_ns = at.saturating_since(self.began).ns();
            self.round.progress.push(Progress { elapsed_ns, blocks: done, gaps: self.round.gaps });
            let next = self.steps.get(self.round.progress.len());
            self.note_at = next.copied().unwrap_or(u64::MAX);
        }
    }

    fn end_round(&mut self, at: SimTime) {
        let mut round = std::mem::take(&mut self.round);
        round.elapsed_ns = at.saturating_since(self.began).ns();
        let blocks = round.blocks();
        round.progress.push(Progress { elapsed_ns: round.elapsed_ns, blocks, gaps: round.gaps });
        self.rounds.push(round);
        self.began = at;
        self.note_at = self.first_step();
        if let Some(tail) = &mut self.tail {
            tail.end_round();
        }
        // A task that repeats itself goes on; a sample begins anew with every block.
        if self.tasks.progress(self.task, at).is_err() {
            let begun = self.tasks.register(at, self.spec.clone());
            self.task = begun.expect("what could be registered before");
        }
    }
}

impl Planner for Background {
    fn foresee_with(&mut self, drive: &Arc<Drive>) {
        self.tasks.foresee_with(drive);
    }

    fn plan(&mut self, gap: &Opportunity, runs: &mut Vec<FreeRun>) {
        self.is_idle = false;
        self.tasks.plan(gap, runs);
    }

    fn idle_from(&mut self, now: SimTime) -> Option<SimTime> {
        self.idle.as_ref().map(|idle| idle.timer.start(now))
    }

    fn plan_idle(&mut self, head: &Departure) -> Option<FreeRun> {
        self.is_idle = true;
        self.tasks.plan_idle(head, self.idle.as_ref()?.config.run_blocks())
    }

    fn idle_used(&mut self, idle: SimDuration, delay: SimDuration) {
        if let Some(IdleUse { timer, .. }) = &mut self.idle {
            timer.used(idle, delay);
        }
    }

    fn done(&mut self, run: &FreeRun, at: SimTime) {
        self.tasks.done(run, at);
        self.take_events(true);
    }

    fn filled(&mut self, gap: &Opportunity, spent: &Spent) {
        self.tasks.filled(gap, spent);
        self.round.gaps.add(gap, spent);
    }

    fn passed(&mut self, op: Op, start: Lbn, blocks: u32, at: SimTime) {
        if let Some(tail) = &mut self.tail {
            tail.passed(start, blocks);
        }
        self.tasks.passed(op, start, blocks, at);
        self.take_events(false);
    }

    fn foreground_arrived(&mut self, request: &Foreground, at: SimTime) {
        if let Some(tail) = &mut self.tail {
            tail.arrived(request);
        }
        self.tasks.foreground_arrived(request, at);
        self.take_events(false);
    }

    fn foreground_took(&mut self, request: &Foreground, head: SimDuration) {
        let Some(tail) = &mut self.tail else { return };
        if let Some(number) = tail.took(request.promotion, head) {
            let round = self.rounds.get_mut(number).unwrap_or(&mut self.round);
            round.promoted.requests += 1;
            round.promoted.head_ns += head.ns();
        }
    }

    fn foreground_done(&mut self, request: &Foreground, at: SimTime) {
        self.tasks.foreground_done(request, at);
        self.take_events(false);
        if let Some(tail) = &mut self.tail {
            tail.done(request.promotion);
        }
    }

    fn promote(&mut self, now: SimTime) -> Option<Promoted> {
        let tail = self.tail.as_mut()?;
        let left = self.blocks - self.round.blocks();
        let round = RoundState { began: self.began, left, promoted: self.round.promoted };
        tail.promote(now, &mut self.tasks, self.task, self.rounds.len(), &round)
    }
}

/// Deliveries of a round of so many blocks at which its progress is noted, each once, before the last.
fn steps(blocks: u64) -> Vec<u64> {
    let evenly = (1..STEPS).map(|step| blocks * step / STEPS);
    let late = (1..=LAST_STEPS).map(|half| blocks - ((blocks / STEPS) >> half));
    let mut steps: Vec<u64> =
        evenly.chain(late).filter(|step| (1..blocks).contains(step)).collect();
    steps.dedup();
    steps
}

/// A source that issues requests until the background is done.
pub(crate) struct Until<S> {
    source: S,
    unfinished: Option<Unfinished>,
    /// Most requests in a row that bring no block.
    patience: u64,
    in_vain: u64,
    /// Blocks that were delivered when the last request was issued.
    delivered: u64,
}

/// Requests of a workload without end, for each arm, in which no block may come before a round is
/// said to be out of reach. Assumed: as many as take seconds to simulate, and many times what the
/// last blocks take of random requests on the largest drive here.
pub(crate) const PATIENCE: u64 = 4_000_000;

impl<S> Until<S> {
    /// `source` until nothing is `unfinished`; for ever when there is nothing to finish.
    pub fn new(source: S, unfinished: Option<Unfinished>, patience: u64) -> Self {
        Self { source, unfinished, patience, in_vain: 0, delivered: 0 }
    }
}

impl<S: Source> Source for Until<S> {
    #[inline]
    fn next_arrival(&mut self) -> Result<Option<SimTime>, SourceError> {
        if self.unfinished.as_ref().is_some_and(Unfinished::is_none) {
            return Ok(None);
        }
        if self.in_vain > self.patience {
            let (delivered, total) = self.progress();
            let (requests, missing) = (self.patience, total - delivered);
            return Err(SourceError::OutOfReach { requests, missing, total });
        }
        self.source.next_arrival()
    }

    #[inline]
    fn take(&mut self) -> Request {
        if let Some(unfinished) = &self.unfinished {
            let (delivered, _) = unfinished.progress();
            self.in_vain = if delivered > self.delivered { 0 } else { self.in_vain + 1 };
            self.delivered = delivered;
        }
        self.source.take()
    }

    #[inline]
    fn completed(&mut self, tag: u64, now: SimTime) {
        self.source.completed(tag, now);
    }

    fn progress(&self) -> (u64, u64) {
        self.unfinished.as_ref().map_or_else(|| self.source.progress(), Unfinished::progress)
    }
}

#[cfg(test)]
mod tests {
    use freewheel_units::Blocks;

    use super::*;
    use crate::source::{Closed, Pattern, PatternSpec, Think};

    #[test]
    fn the_steps_of_a_round_are_few_where_its_blocks_are_and_no_two_the_same() {
        for blocks in [1, 2, 5, 199, 200, 201, 5_000, 1_000_000] {
            let steps = steps(blocks);
            assert!(steps.len() < blocks as usize, "{blocks}: {steps:?}");
            assert!(steps.windows(2).all(|pair| pair[0] < pair[1]), "{blocks}: {steps:?}");
            assert!(steps.iter().all(|step| (1..blocks).contains(step)), "{blocks}: {steps:?}");
        }
        assert_eq!(steps(1_000_000).len() as u64, STEPS - 1 + u64::from(LAST_STEPS));
    }

    #[test]
    fn a_source_ends_with_an_error_when_too_many_requests_in_a_row_bring_no_block() {
        let pattern = Pattern::new(PatternSpec::default(), Blocks::new(10_000), 1).unwrap();
        let closed = Closed::new(pattern, 1, Think::Constant(SimDuration::ZERO), u64::MAX, 1);
        let unfinished = Unfinished::new(100);
        let mut source = Until::new(closed, Some(unfinished.clone()), 10);
        let mut one = || -> Result<(), SourceError> {
            let at = source.next_arrival()?.expect("it goes on");
            let tag = source.take().tag;
            source.completed(tag, at);
            Ok(())
        };
        for _ in 0..5 {
            for _ in 0..10 {
                one().unwrap();
            }
            unfinished.left.fetch_sub(1, Ordering::Relaxed);
        }
        let error = (0..13).find_map(|_| one().err()).unwrap().to_string();
        for words in ["`rounds`", "10 requests in a row", "95 of 100 blocks", "`enough`"] {
            assert!(error.contains(words), "{error}");
        }
    }
}
