//! What free bandwidth is good for (osdi00 section 2.2) behind the transactions of its figure 8:
//! prefetching, prewriting, comparing versions, and a sample.

use freewheel_model::freeblock::tasks::{CADENCE, Event, Extent, Promoted, TaskId, Tasks};
use freewheel_model::freeblock::uses::{
    Compare, Pair, Prefetcher, Prewriter, Versions, backup, sample,
};
use freewheel_model::freeblock::{Foreground, FreeRun, Opportunity, Options, Planner, Rule, Spent};
use freewheel_sim::RunResult;
use freewheel_sim::config::{ConfigError, Experiment, Workload};
use freewheel_units::{Bytes, Lbn, Op, Prng, SimTime};

use super::osdi00_mining::{MPL, transactions};
use super::{Context, Outcome, Row};

/// Blocks of 512 B in a block of all uses: 4 KiB, as the paper's.
const BLOCK: u32 = 8;

/// Memory of each use that needs some. Assumed: the buffer of a drive of the time.
const MEMORY: Bytes = Bytes::new(4 << 20);

/// Something that uses free bandwidth.
trait User: Send {
    /// A foreground request has arrived.
    fn arrived(&mut self, tasks: &mut Tasks, request: &Foreground, at: SimTime);
    /// Something has become of its blocks.
    fn heard(&mut self, tasks: &mut Tasks, event: &Event);
    /// A foreground request to be made for it.
    fn promoted(&mut self) -> Option<Promoted> {
        None
    }
}

/// The planner of an arm, and who uses it.
struct Used<U> {
    tasks: Tasks,
    user: U,
}

impl<U: User> Used<U> {
    fn tell(&mut self) {
        loop {
            let events: Vec<Event> = self.tasks.events().collect();
            if events.is_empty() {
                return;
            }
            events.iter().for_each(|event| self.user.heard(&mut self.tasks, event));
        }
    }
}

impl<U: User> Planner for Used<U> {
    fn plan(&mut self, gap: &Opportunity, runs: &mut Vec<FreeRun>) {
        self.tasks.plan(gap, runs);
    }

    fn done(&mut self, run: &FreeRun, at: SimTime) {
        self.tasks.done(run, at);
        self.tell();
    }

    fn filled(&mut self, gap: &Opportunity, spent: &Spent) {
        self.tasks.filled(gap, spent);
    }

    fn passed(&mut self, op: Op, start: Lbn, blocks: u32, at: SimTime) {
        self.tasks.passed(op, start, blocks, at);
        self.tell();
    }

    fn foreground_arrived(&mut self, request: &Foreground, at: SimTime) {
        self.tasks.foreground_arrived(request, at);
        self.tell();
        if request.promotion.is_none() {
            self.user.arrived(&mut self.tasks, request, at);
        }
    }

    fn foreground_done(&mut self, request: &Foreground, at: SimTime) {
        self.tasks.foreground_done(request, at);
        self.tell();
    }

    fn promote(&mut self, _: SimTime) -> Option<Promoted> {
        self.user.promoted()
    }
}

/// Runs `requests` transactions, of which a share reads and a share lies near the one before, behind
/// which `begin` uses the gaps.
fn run<U: User>(
    context: &Context<'_>,
    (read_share, local_share): (f64, f64),
    begin: impl FnOnce(&mut Tasks) -> U,
) -> Result<(U, RunResult), ConfigError> {
    let mut config = transactions(MPL, context.options.seed);
    if let Workload::Closed { requests, pattern, .. } = &mut config.workload {
        *requests = context.requests();
        pattern.local_share = local_share;
        pattern.local_sd = LOCAL_SD;
        pattern.read_share = read_share;
    }
    let experiment = Experiment::new(config)?;
    let options = Options { rule: Rule::Paths, ..Options::default() };
    let mut tasks = Tasks::new(&experiment.drive, options, CADENCE);
    let user = begin(&mut tasks);
    let mut used = Used { tasks, user };
    let result = experiment.run_freeblock(vec![&mut used], &mut |_| {}, &mut |_, _| {})?;
    Ok((used.user, result))
}

/// How near. Assumed: a track of the drive is about as long.
const LOCAL_SD: Bytes = Bytes::new(128 << 10);

/// Requests near the one before, where something can be foreseen: the share from which on osdi00
/// figure 4 shows an effect.
const LOCAL_SHARE: f64 = 0.7;

/// A part of the paper's transactions reads.
const READ_SHARE: f64 = 2.0 / 3.0;

impl User for Prefetcher {
    fn arrived(&mut self, tasks: &mut Tasks, request: &Foreground, at: SimTime) {
        let Foreground { op, start, blocks, .. } = *request;
        let told = match op {
            Op::Read => self.read(tasks, at, start, blocks).map(drop),
            Op::Write => self.written(tasks, at, start, blocks),
            Op::Flush | Op::Trim => Ok(()),
        };
        told.expect("a task that stands");
    }

    fn heard(&mut self, tasks: &mut Tasks, event: &Event) {
        self.event(tasks, event).expect("a task that stands");
    }
}

/// The rest of the track is read behind every read.
fn prefetch(context: &Context<'_>) -> Result<Row, ConfigError> {
    let (prefetcher, _) = run(context, (READ_SHARE, LOCAL_SHARE), |tasks| {
        Prefetcher::new(tasks, SimTime::ZERO, BLOCK, MEMORY, 0).expect("a block fits")
    })?;
    let counts = prefetcher.counts();
    let quantity = "reads that prefetching had in memory, 70 % near the one before";
    let percent = 100.0 * counts.hits as f64 / counts.reads as f64;
    let mut row = context.row_in(quantity, "%", [2.6, 5.2], percent);
    row.note = Some(format!(
        "only the rest of a read's track is foreseen: {:.0} % of the reads lay there, and {:.0} % of those came when it had been read, as of ten clients the next asks before there was a gap; {} blocks read, {:.0} % of those asked for; {:.0} % of them used",
        100.0 * counts.foreseen as f64 / counts.reads as f64,
        100.0 * counts.hits as f64 / counts.foreseen as f64,
        counts.prefetched,
        100.0 * counts.prefetched as f64 / counts.predicted as f64,
        100.0 * counts.used as f64 / counts.prefetched as f64,
    ));
    Ok(row)
}

/// A cache that takes the transactions' writes: for two reads that arrive one block becomes dirty.
struct Cache {
    prewriter: Prewriter,
    prng: Prng,
    waiting: Vec<Promoted>,
    dirtied: u64,
}

impl User for Cache {
    fn arrived(&mut self, tasks: &mut Tasks, _: &Foreground, at: SimTime) {
        if self.prng.chance((1.0 - READ_SHARE) / READ_SHARE) {
            let blocks = tasks.drive().blocks().get() / u64::from(BLOCK);
            let start = Lbn::new(self.prng.below(blocks) * u64::from(BLOCK));
            let requests = self.prewriter.dirty(tasks, at, start).expect("a block of the drive");
            self.waiting.extend(requests);
            self.dirtied += 1;
        }
    }

    fn heard(&mut self, tasks: &mut Tasks, event: &Event) {
        self.prewriter.event(tasks, event).expect("a task that stands");
    }

    fn promoted(&mut self) -> Option<Promoted> {
        self.waiting.pop()
    }
}

/// Most dirty blocks that wait for a gap. Assumed: so few that some have to be promoted.
const DIRTY_MAX: u64 = 128;

/// Foreground writes that a cache with prewriting saves: those it wrote in gaps and those it never
/// wrote.
fn prewrite(context: &Context<'_>) -> Result<Row, ConfigError> {
    let (cache, _) = run(context, (1.0, 0.0), |tasks| Cache {
        prewriter: Prewriter::new(tasks, SimTime::ZERO, BLOCK, DIRTY_MAX, BLOCK)
            .expect("a block fits"),
        prng: Prng::new(context.options.seed, "dirty blocks"),
        waiting: Vec::new(),
        dirtied: 0,
    })?;
    let counts = cache.prewriter.counts();
    let quantity = "writes that need no foreground request, with 128 dirty blocks at most";
    let left = cache.prewriter.dirty_blocks();
    let percent = 100.0 * (1.0 - counts.foreground as f64 / (cache.dirtied - left) as f64);
    let mut row = context.row_in(quantity, "%", [86.0, 98.0], percent);
    row.note = Some(format!(
        "of {} dirty blocks {} written in gaps, {} made dirty again before, {} by foreground requests, {left} left; {} waited at most",
        cache.dirtied, counts.free, counts.absorbed, counts.foreground, counts.waiting_max,
    ));
    Ok(row)
}

/// A comparison with its pairs.
struct Comparison {
    compare: Compare,
    pairs: Vec<Pair>,
}

impl User for Comparison {
    fn arrived(&mut self, _: &mut Tasks, _: &Foreground, _: SimTime) {}

    fn heard(&mut self, tasks: &mut Tasks, event: &Event) {
        self.pairs.clear();
        self.compare.event(tasks, event, &mut self.pairs).expect("pairs within the drive");
    }
}

/// One half of the drive against the other.
fn compare(context: &Context<'_>) -> Result<Row, ConfigError> {
    let mut all = 0;
    let (comparison, result) = run(context, (READ_SHARE, 0.0), |tasks| {
        all = tasks.drive().blocks().get() / 2 / u64::from(BLOCK);
        let half = all * u64::from(BLOCK);
        let rows = vec![Versions { current: Extent::new(0, half), safe: Lbn::new(half) }];
        let compare = Compare::begin(tasks, SimTime::ZERO, BLOCK, rows, MEMORY);
        Comparison { compare: compare.expect("halves within the drive"), pairs: Vec::new() }
    })?;
    let counts = comparison.compare.counts();
    let days = result.elapsed_ns as f64 / 86_400e9;
    let quantity = "comparisons of one half of the drive with the other, with 4 MiB";
    let a_day = counts.compared as f64 / all as f64 / days;
    let mut row = context.row_in(quantity, "a day", [4.2, 9.0], a_day);
    row.note = Some(format!(
        "{:.0} pairs a day; {} waited for their other version at most",
        counts.compared as f64 / days,
        counts.unmatched_max,
    ));
    Ok(row)
}

/// A task that is to be complete.
struct Whole {
    task: TaskId,
    done: Option<SimTime>,
}

impl User for Whole {
    fn arrived(&mut self, _: &mut Tasks, _: &Foreground, _: SimTime) {}

    fn heard(&mut self, _: &mut Tasks, event: &Event) {
        if let Event::Done { task, at, .. } = *event
            && task == self.task
        {
            self.done = Some(at);
        }
    }
}

/// Any twentieth of the blocks.
fn any_blocks(context: &Context<'_>) -> Result<Row, ConfigError> {
    let (whole, _) = run(context, (READ_SHARE, 0.0), |tasks| {
        let spec = sample(backup(tasks.drive().blocks(), BLOCK), 50_000);
        let task = tasks.register(SimTime::ZERO, spec).expect("a task within the drive");
        Whole { task, done: None }
    })?;
    let seconds = |time: SimTime| time.ns() as f64 / 1e9;
    let quantity = "a sample of 5 % of the blocks, whichever they are";
    let took = whole.done.map_or(f64::INFINITY, seconds);
    Ok(context.row_in(quantity, "s", [38.0, 58.0], took))
}

pub(super) fn uses(context: &Context<'_>) -> Result<Outcome, ConfigError> {
    let mut rows = vec![prefetch(context)?, prewrite(context)?, compare(context)?];
    rows.push(any_blocks(context)?);
    Ok(Outcome { rows, figures: Vec::new() })
}
