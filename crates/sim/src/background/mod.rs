//! Background work of an experiment: tasks whose blocks are read in rotational gaps, with their
//! results.

mod comparison;
mod config;
mod copies;
mod names;
mod result;
mod running;
mod served;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use freewheel_freeblock::tasks::{CADENCE, Event, Extent, Promoted, Tasks};
use freewheel_freeblock::{
    Foreground, ForegroundEvent, ForegroundObserver, FreeRun, GapUse, IdlePlanner, IdleTimer,
    Opportunity, Options, Planner, Promoter,
};
use freewheel_host::{DeliveryPath, PromotionAnchor, TailPromotion};
use freewheel_model::drive::{Departure, Drive};
use freewheel_model::sched::{CommandMark, PolicySpec};
use freewheel_units::{Lbn, Op, SimDuration, SimTime};

pub(crate) use self::comparison::BeginError;
use self::copies::CopyAccount;
use self::names::names;
use self::running::Running;
pub(crate) use self::served::ServedBackground;
use crate::digest::mix;
use crate::source::{Request, Source, SourceError};

pub use comparison::{CompareResult, UseResult};
pub use config::{CONSERVATISM_MAX, FreeblockConfig, IdleConfig, PatienceConfig, PatienceWord};
pub use freewheel_freeblock::{PromoteTail, TaskOrder};
pub use freewheel_host::{Deliveries, PromotedWork};
pub use result::{BackgroundResult, GapShares, Gaps, IdleStarts, Progress, Round, TaskResult};

/// The tasks of one arm.
pub(crate) struct Background {
    tasks: Tasks,
    /// In the experiment's order; at least one.
    running: Vec<Running>,
    unfinished: Option<Unfinished>,
    patience_nodes: Option<u64>,
    idle: Option<IdleUse>,
    is_idle: bool,
    copies: CopyAccount,
    delivered_hash: u64,
}

/// Use of idle time, and when it begins.
pub(crate) struct IdleUse {
    pub config: IdleConfig,
    pub timer: IdleTimer,
}

impl IdleUse {
    pub fn new(config: IdleConfig) -> Self {
        Self { timer: config.timer(), config }
    }
}

/// Blocks that must be delivered before the foreground ends, over all arms.
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

    /// Counts delivered blocks.
    fn done(&self, blocks: u64) {
        self.left.fetch_sub(blocks, Ordering::Relaxed);
    }

    /// True if all are delivered, so that the foreground may end.
    pub fn is_none(&self) -> bool {
        self.left.load(Ordering::Relaxed) == 0
    }

    /// Delivered blocks, and all blocks.
    pub fn progress(&self) -> (u64, u64) {
        (self.total - self.left.load(Ordering::Relaxed), self.total)
    }
}

/// Tasks of one arm before a run, with the index of what they want. That takes a second on a large drive, and
/// runs that differ in something else begin with copies of it.
#[derive(Clone)]
pub(crate) struct PreparedTasks {
    tasks: Tasks,
    running: Vec<Running>,
    patience_nodes: Option<u64>,
}

impl PreparedTasks {
    pub fn new(
        drive: &Arc<Drive>,
        config: &FreeblockConfig,
        anchor: PromotionAnchor,
    ) -> Result<Self, BeginError> {
        let options = Options { bounds: config.bounds(drive), ..config.options() };
        let patience_nodes = options.patience_nodes(drive);
        let mut tasks = Tasks::new(drive, options, CADENCE);
        let named = names(&config.tasks).into_iter().zip(&config.tasks);
        let running =
            named.map(|(name, config)| Running::begin(&mut tasks, name, config.clone(), anchor));
        let running = running.collect::<Result<_, _>>()?;
        // The report of the first decision has no second in it, nor that of the one behind a new round, which
        // [`Planner::prepare`] makes the index anew for.
        tasks.refresh();
        Ok(Self { tasks, running, patience_nodes })
    }
}

/// Requests beside which those of a task are promoted, under this policy.
pub(crate) fn promotion_anchor(policy: PolicySpec) -> PromotionAnchor {
    match policy {
        PolicySpec::Fcfs => PromotionAnchor::OfQueue,
        _ => PromotionAnchor::OfArm,
    }
}

impl Background {
    /// Background work at the beginning of a run.
    pub fn new(
        prepared: PreparedTasks,
        idle: Option<&IdleConfig>,
        unfinished: Option<Unfinished>,
    ) -> Self {
        let PreparedTasks { tasks, running, patience_nodes } = prepared;
        Self {
            tasks,
            running,
            unfinished,
            patience_nodes,
            idle: idle.map(|config| IdleUse::new(*config)),
            is_idle: false,
            copies: CopyAccount::default(),
            delivered_hash: 0,
        }
    }

    /// Results at the end of the run.
    pub fn result(self, end: SimTime) -> BackgroundResult {
        let effort = self.tasks.scheduler().effort();
        let memory = self.tasks.memory().total();
        BackgroundResult {
            tasks: self.running.into_iter().map(|running| running.result(end)).collect(),
            decisions: effort.decisions,
            nodes: effort.nodes,
            patience_nodes: self.patience_nodes,
            by_nodes: effort.by_nodes,
            exhausted: effort.exhausted,
            memory_bytes: memory.get(),
            delivered_hash: self.delivered_hash,
            idle_starts: self
                .idle
                .map(|idle| IdleStarts::new(&idle.timer, idle.config.adapt.is_some())),
        }
    }

    fn take_events(&mut self, in_a_gap: bool) {
        // A comparison that receives an event may request more blocks, which may cause further events.
        loop {
            let events: Vec<Event> = self.tasks.events().collect();
            if events.is_empty() {
                return;
            }
            events.into_iter().for_each(|event| self.take_event(event, in_a_gap));
        }
    }

    fn take_event(&mut self, event: Event, in_a_gap: bool) {
        let (Event::Delivered { task, at, .. }
        | Event::Done { task, at, .. }
        | Event::Superseded { task, at, .. }) = event;
        let number = self.running.iter().position(|running| running.id() == task);
        let number = number.expect("nobody else has tasks here");
        match event {
            Event::Delivered { extent, is_promoted, .. } => {
                let way = match in_a_gap {
                    true if self.is_idle => DeliveryPath::Idle,
                    true => DeliveryPath::Gap,
                    false if is_promoted => DeliveryPath::Promotion,
                    false => DeliveryPath::Passing,
                };
                self.delivered(number, extent, way, at);
            }
            Event::Done { .. } => {
                self.running[number].end_round(&mut self.tasks, at);
            }
            Event::Superseded { extent, .. } => {
                let blocks = self.running[number].superseded(extent.blocks, at);
                self.contribute(number, blocks);
            }
        }
        self.running[number].observe(&mut self.tasks, &event, at);
    }

    /// Delivers blocks to the task with this number.
    fn delivered(&mut self, number: usize, extent: Extent, way: DeliveryPath, at: SimTime) {
        let hash = &mut self.delivered_hash;
        let mut remember = |one: &Extent, way| *hash = with_delivery(*hash, number, one, way, at);
        let task = &mut self.running[number];
        let mut blocks = 0;
        if way == DeliveryPath::Promotion {
            // What was to be promoted at the end and what was copied may follow on each other.
            for one in task.blocks_of(extent) {
                let is_copy = self.copies.has_brought(number, one.start.get());
                let way = if is_copy { DeliveryPath::Copy } else { way };
                remember(&one, way);
                blocks += task.delivered(one.blocks, way, at);
            }
        } else {
            remember(&extent, way);
            blocks = task.delivered(extent.blocks, way, at);
        }
        self.contribute(number, blocks);
    }

    /// Counts blocks of a task towards the rounds that the run waits for.
    fn contribute(&mut self, number: usize, blocks: u64) {
        if let Some(unfinished) = &self.unfinished {
            let blocks = self.running[number].take_unfinished(blocks);
            unfinished.done(blocks);
        }
    }

    fn tails(&mut self) -> impl Iterator<Item = &mut TailPromotion> {
        self.running.iter_mut().filter_map(Running::tail)
    }
}

/// Extends a run's hash by a delivery.
fn with_delivery(hash: u64, number: usize, extent: &Extent, way: DeliveryPath, at: SimTime) -> u64 {
    let to_whom = (number as u64) << 8 | way as u64;
    let words = [at.ns(), extent.start.get(), extent.blocks.get(), to_whom];
    words.into_iter().fold(hash, mix)
}

impl Planner for Background {
    fn predict_with(&mut self, drive: &Arc<Drive>) {
        self.tasks.predict_with(drive);
    }

    fn prepare(&mut self, gap: &Opportunity) {
        self.tasks.prepare(gap);
    }

    fn plan(&mut self, gap: &Opportunity, runs: &mut Vec<FreeRun>) {
        self.is_idle = false;
        self.tasks.plan(gap, runs);
    }

    fn sent(&mut self, run: &FreeRun) {
        self.tasks.sent(run);
    }

    fn done(&mut self, run: &FreeRun, at: SimTime) {
        self.tasks.done(run, at);
        self.take_events(true);
    }

    fn filled(&mut self, gap: &Opportunity, gap_use: &GapUse) {
        self.tasks.filled(gap, gap_use);
        self.running.iter_mut().for_each(|running| running.filled(gap, gap_use));
    }

    fn idle(&mut self) -> Option<&mut dyn IdlePlanner> {
        Some(self)
    }

    fn promoter(&mut self) -> Option<&mut dyn Promoter> {
        Some(self)
    }
}

impl ForegroundObserver for Background {
    fn foreground(&mut self, event: ForegroundEvent<'_>) {
        match event {
            ForegroundEvent::Passed { op, start, blocks, at } => {
                self.foreground_passed(op, start, blocks, at)
            }
            ForegroundEvent::Arrived { request, at } => self.foreground_arrived(request, at),
            ForegroundEvent::TookHead { request, head } => self.foreground_took(request, head),
            ForegroundEvent::Done { request, at } => self.foreground_done(request, at),
        }
    }
}

impl Background {
    fn foreground_passed(&mut self, op: Op, start: Lbn, blocks: u32, at: SimTime) {
        self.tails().for_each(|tail| tail.passed(start, blocks));
        self.tasks.foreground(ForegroundEvent::Passed { op, start, blocks, at });
        self.take_events(false);
    }

    fn foreground_arrived(&mut self, request: &Foreground, at: SimTime) {
        self.tails().for_each(|tail| tail.arrived(request));
        self.tasks.foreground(ForegroundEvent::Arrived { request, at });
        self.take_events(false);
    }

    fn foreground_took(&mut self, request: &Foreground, head: SimDuration) {
        if let Some(task) = self.copies.task_of(request.promotion) {
            return self.running[task].copy_took(head);
        }
        self.running.iter_mut().for_each(|task| task.tail_took(request.promotion, head));
    }

    fn foreground_done(&mut self, request: &Foreground, at: SimTime) {
        self.tasks.foreground(ForegroundEvent::Done { request, at });
        self.take_events(false);
        self.copies.done(request.promotion);
        self.tails().for_each(|tail| tail.done(request.promotion));
    }
}

impl IdlePlanner for Background {
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
}

impl Promoter for Background {
    fn read_before(&mut self, write: &Foreground, now: SimTime) -> Option<Promoted> {
        self.copies.before(write, &self.running, &mut self.tasks, now)
    }

    fn promote(&mut self, now: SimTime) -> Option<Promoted> {
        let Self { running, tasks, .. } = self;
        running.iter_mut().find_map(|task| task.promote_tail(now, tasks))
    }
}

/// A source that issues requests until the background is done.
pub(crate) struct UntilDone<S> {
    source: S,
    unfinished: Option<Unfinished>,
    /// Most consecutive requests without a delivery.
    stalled_requests_max: u64,
    in_vain: u64,
    /// Deliveries when the last request was issued.
    delivered: u64,
}

/// Consecutive requests on each arm without a delivery after which a round counts as out of reach.
/// Assumed: they simulate in seconds. The last blocks of the largest drive here need far fewer random
/// requests.
pub(crate) const STALLED_REQUESTS_MAX: u64 = 4_000_000;

impl<S> UntilDone<S> {
    /// Issues the requests of `source` until no block is `unfinished`; without `unfinished`, all of
    /// them.
    pub fn new(source: S, unfinished: Option<Unfinished>, stalled_requests_max: u64) -> Self {
        Self { source, unfinished, stalled_requests_max, in_vain: 0, delivered: 0 }
    }
}

impl<S: Source> Source for UntilDone<S> {
    #[inline]
    fn next_arrival(&mut self) -> Result<Option<SimTime>, SourceError> {
        if self.unfinished.as_ref().is_some_and(Unfinished::is_none) {
            return Ok(None);
        }
        if self.in_vain > self.stalled_requests_max {
            let (delivered, total) = self.progress();
            let (requests, missing) = (self.stalled_requests_max, total - delivered);
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

    fn aborted(&mut self, tag: u64, now: SimTime) {
        self.source.aborted(tag, now);
    }

    #[inline]
    fn mark(&self, request: &Request) -> CommandMark {
        self.source.mark(request)
    }

    fn progress(&self) -> (u64, u64) {
        self.unfinished.as_ref().map_or_else(|| self.source.progress(), Unfinished::progress)
    }

    #[inline]
    fn is_own_work(&self, tag: u64) -> bool {
        self.source.is_own_work(tag)
    }

    #[inline]
    fn arrival(&self, now: SimTime) -> SimTime {
        self.source.arrival(now)
    }

    #[inline]
    fn timer(&self) -> Option<SimTime> {
        self.source.timer()
    }

    fn timer_due(&mut self, now: SimTime) {
        self.source.timer_due(now);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use freewheel_units::Blocks;

    use super::*;

    /// Background work at the beginning of a run.
    fn begun(drive: &Arc<Drive>, config: &FreeblockConfig, policy: PolicySpec) -> Background {
        let tasks = PreparedTasks::new(drive, config, promotion_anchor(policy)).unwrap();
        Background::new(tasks, config.idle.as_ref(), None)
    }

    use crate::config::SimConfig;
    use crate::experiment::Experiment;
    use crate::source::{Closed, Pattern, PatternSpec, ThinkTime};

    #[test]
    fn delivery_hash_covers_every_part() {
        let hash = |number, start, blocks, way, at| {
            let extent = Extent { start: Lbn::new(start), blocks: Blocks::new(blocks) };
            with_delivery(1, number, &extent, way, SimTime::from_ns(at))
        };
        let hashes = [
            hash(0, 8, 16, DeliveryPath::Gap, 5),
            hash(1, 8, 16, DeliveryPath::Gap, 5),
            hash(0, 16, 8, DeliveryPath::Gap, 5),
            hash(0, 7, 17, DeliveryPath::Gap, 5),
            hash(0, 8, 17, DeliveryPath::Gap, 5),
            hash(0, 8, 16, DeliveryPath::Copy, 5),
            hash(0, 8, 16, DeliveryPath::Promotion, 5),
            hash(0, 8, 16, DeliveryPath::Gap, 6),
        ];
        assert_eq!(BTreeSet::from(hashes).len(), hashes.len());
    }

    #[test]
    fn source_without_new_blocks_ends_in_error() {
        let pattern = Pattern::new(PatternSpec::default(), Blocks::new(10_000), 1).unwrap();
        let closed = Closed::new(pattern, 1, ThinkTime::Constant(SimDuration::ZERO), u64::MAX, 1);
        let unfinished = Unfinished::new(100);
        let mut source = UntilDone::new(closed, Some(unfinished.clone()), 10);
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
        for words in ["`rounds`", "10 requests in a row", "95 of 100 blocks", "`sample_share`"] {
            assert!(error.contains(words), "{error}");
        }
    }
    /// The background of an experiment, with the last writer of each block.
    struct Watched {
        background: Background,
        /// True if the background is told of arriving requests.
        tells: bool,
        /// Blocks of 512 B that a foreground write has replaced.
        newer: BTreeSet<u64>,
        /// Newer blocks that the task has overwritten.
        lost: u64,
        written: u64,
    }

    impl Planner for Watched {
        fn plan(&mut self, gap: &Opportunity, runs: &mut Vec<FreeRun>) {
            self.background.plan(gap, runs);
        }

        fn done(&mut self, run: &FreeRun, at: SimTime) {
            let from = run.start.get();
            if run.op == Op::Write {
                self.written += u64::from(run.blocks);
                self.lost += self.newer.range(from..from + u64::from(run.blocks)).count() as u64;
            }
            self.background.done(run, at);
        }

        fn filled(&mut self, gap: &Opportunity, gap_use: &GapUse) {
            self.background.filled(gap, gap_use);
        }

        fn promoter(&mut self) -> Option<&mut dyn Promoter> {
            Some(self)
        }
    }

    impl ForegroundObserver for Watched {
        fn foreground(&mut self, event: ForegroundEvent<'_>) {
            if let ForegroundEvent::Arrived { request, .. } = event {
                if request.op == Op::Write && request.promotion.is_none() {
                    let from = request.start.get();
                    self.newer.extend(from..from + u64::from(request.blocks));
                }
                if !self.tells {
                    return;
                }
            }
            self.background.foreground(event);
        }
    }

    impl Promoter for Watched {
        fn read_before(&mut self, _: &Foreground, _: SimTime) -> Option<Promoted> {
            None
        }

        fn promote(&mut self, now: SimTime) -> Option<Promoted> {
            self.background.promote(now)
        }
    }

    /// A wipe of 2 GiB beside a scan, under requests of which half write.
    fn wiped(tells: bool, electronics: bool) -> (Watched, SimTime) {
        let text = format!(
            "drive = \"atlas10k\"\nelectronics = {electronics}\nkeep_free_blocks_before = false\n\
             workload = {{ kind = \"closed\", outstanding = 8, requests = 12000, pattern = {{ size = \
             \"4KiB\", local_share = 0.9, local_sd = \"8MiB\" }} }}\n\
             [[freeblock.tasks]]\nkind = \"write\"\nlength = \"2GiB\"\nblock_size = \"8KiB\"\n\
             promote_tail = {{ cost = 0.3 }}\n\
             [[freeblock.tasks]]\nblock_size = \"64KiB\"\n"
        );
        let config = SimConfig::parse(&text, "test", &[]).unwrap();
        let freeblock = config.freeblock.clone().unwrap();
        let experiment = Experiment::new(SimConfig { freeblock: None, ..config }).unwrap();
        let policy = experiment.config.scheduler;
        let background = begun(&experiment.drive, &freeblock, policy);
        let (newer, lost, written) = (BTreeSet::new(), 0, 0);
        let mut watched = Watched { background, tells, newer, lost, written };
        let planners = vec![&mut watched as &mut dyn Planner];
        let result = experiment.new_run().with_planners(planners).simulate().unwrap();
        (watched, SimTime::from_ns(result.elapsed_ns))
    }

    #[test]
    fn write_task_never_overwrites_newer_data() {
        for electronics in [false, true] {
            let (watched, end) = wiped(true, electronics);
            assert!(watched.written > 10_000, "{}", watched.written);
            assert_eq!(watched.lost, 0);
            let result = watched.background.result(end);
            let (write, scan) = (&result.tasks[0], &result.tasks[1]);
            let superseded: u64 = write.all_rounds().map(|round| round.deliveries.superseded).sum();
            assert!(superseded > 50, "{superseded} blocks were written by requests");
            let settled: u64 = write.all_rounds().map(|round| round.deliveries.settled()).sum();
            assert!(settled <= write.blocks && write.rounds.len() <= 1, "{settled}");
            assert!(scan.unfinished.deliveries.blocks() > 100, "the scan beside it goes on");
        }
        // The canary: a task that does not hear of requests overwrites their data.
        assert!(wiped(false, false).0.lost > 100);
    }
}
