//! What free bandwidth is good for (osdi00 section 2.2) with the transactions of its figure 8:
//! prefetching, prewriting, comparing versions, and a sample.

use freewheel_freeblock::tasks::{CADENCE, Event, Promoted, TaskId, TaskKind, Tasks};
use freewheel_freeblock::uses::{Prewriter, backup, sample};
use freewheel_freeblock::{
    Foreground, ForegroundEvent, ForegroundObserver, FreeRun, GapUse, Opportunity, Options,
    Planner, Promoter, Rule,
};
use freewheel_sim::background::{
    CompareResult, FreeblockConfig, PrefetchResult, TaskOrder, UseResult,
};
use freewheel_sim::config::{ConfigError, SimConfig, Workload};
use freewheel_sim::experiment::Experiment;
use freewheel_sim::{RunResult, library};
use freewheel_units::{Bytes, Lbn, Op, Prng, SimTime};

use super::osdi00_scan::{MPL, transactions};
use super::sizes::SIZES;
use super::{Context, Outcome, Row};

/// Blocks of 512 B in a block of all uses: 4 KiB, as the paper's.
const BLOCK: u32 = 8;

/// Memory of each use that needs some. Assumed: the buffer of a drive of the time.
const MEMORY: Bytes = Bytes::new(4 << 20);

/// The paper's transactions, of which a share reads and a share lies near the one before.
fn experiment(context: &Context<'_>, read_share: f64, local_share: f64) -> SimConfig {
    let mut config = transactions(MPL, SIZES, context.seed);
    if let Workload::Closed { requests, pattern, .. } = &mut config.workload {
        *requests = context.requests();
        pattern.local_share = local_share;
        pattern.local_sd = LOCAL_SD;
        pattern.read_share = read_share;
    }
    config
}

/// What came of a background task behind them.
fn used(config: SimConfig, task: TaskOrder) -> Result<(UseResult, RunResult), ConfigError> {
    let freeblock = FreeblockConfig {
        rule: Rule::Paths,
        tasks: vec![TaskOrder {
            block_size: Some(Bytes::new(u64::from(BLOCK) * 512)),
            memory: Some(MEMORY),
            ..task
        }],
        ..FreeblockConfig::default()
    };
    let result = Experiment::new(SimConfig { freeblock: Some(freeblock), ..config })?.run()?;
    let used = result.background[0].tasks[0].used.expect("a task that asks as blocks come up");
    Ok((used, result))
}

/// Planning of what no background task of an experiment does.
fn options() -> Options {
    Options { rule: Rule::Paths, ..Options::default() }
}

/// How near. Assumed: a track of the drive is about as long.
const LOCAL_SD: Bytes = Bytes::new(128 << 10);

/// Requests near the one before, where something can be predicted: the share from which on osdi00
/// figure 4 shows an effect.
const LOCAL_SHARE: f64 = 0.7;

/// A part of the paper's transactions reads.
const READ_SHARE: f64 = 2.0 / 3.0;

/// The rest of the track is read behind every read.
fn prefetch(context: &Context<'_>) -> Result<Row, ConfigError> {
    let prefetch = TaskOrder { kind: TaskKind::Prefetch, ..TaskOrder::default() };
    let config = experiment(context, READ_SHARE, LOCAL_SHARE);
    let (UseResult::Prefetch(PrefetchResult { counts, .. }), _) = used(config, prefetch)? else {
        unreachable!("a task of prefetching");
    };
    let quantity = "reads that prefetching had in memory, 70 % near the one before";
    let percent = 100.0 * counts.hits as f64 / counts.reads as f64;
    let row = context.measured(quantity, "%", percent);
    Ok(row.noted(format!(
        "only the rest of a read's track is foreseen: {:.0} % of the reads lay there, and {:.0} % of those came when it had been read, as of ten clients the next asks before there was a gap; {} blocks read, {:.0} % of those asked for; {:.0} % of them used",
        100.0 * counts.predicted_reads as f64 / counts.reads as f64,
        100.0 * counts.hits as f64 / counts.predicted_reads as f64,
        counts.prefetched,
        100.0 * counts.prefetched as f64 / counts.predicted_blocks as f64,
        100.0 * counts.used as f64 / counts.prefetched as f64,
    )))
}

/// A cache in which for two reads that arrive one block becomes dirty. The writes of an experiment's
/// `write-back` would keep clients from their reads no longer, and these are the paper's transactions.
struct Cache {
    tasks: Tasks,
    prewriter: Prewriter,
    prng: Prng,
    waiting: Vec<Promoted>,
    dirtied: u64,
}

impl Cache {
    fn take_events(&mut self) {
        let events: Vec<Event> = self.tasks.events().collect();
        for event in &events {
            self.prewriter.event(&self.tasks, event).expect("a task that stands");
        }
    }
}

impl Planner for Cache {
    fn plan(&mut self, gap: &Opportunity, runs: &mut Vec<FreeRun>) {
        self.tasks.plan(gap, runs);
    }

    fn done(&mut self, run: &FreeRun, at: SimTime) {
        self.tasks.done(run, at);
        self.take_events();
    }

    fn filled(&mut self, gap: &Opportunity, gap_use: &GapUse) {
        self.tasks.filled(gap, gap_use);
    }

    fn promoter(&mut self) -> Option<&mut dyn Promoter> {
        Some(self)
    }
}

impl ForegroundObserver for Cache {
    fn foreground(&mut self, event: ForegroundEvent<'_>) {
        match event {
            ForegroundEvent::Passed { op, start, blocks, at } => {
                self.foreground_passed(op, start, blocks, at)
            }
            ForegroundEvent::Arrived { request, at } => self.foreground_arrived(request, at),
            ForegroundEvent::Done { request, at } => self.foreground_done(request, at),
            _ => {}
        }
    }
}

impl Cache {
    fn foreground_passed(&mut self, op: Op, start: Lbn, blocks: u32, at: SimTime) {
        self.tasks.foreground(ForegroundEvent::Passed { op, start, blocks, at });
        self.take_events();
    }

    fn foreground_arrived(&mut self, request: &Foreground, at: SimTime) {
        self.tasks.foreground(ForegroundEvent::Arrived { request, at });
        self.take_events();
        if request.promotion.is_none() && self.prng.chance((1.0 - READ_SHARE) / READ_SHARE) {
            let blocks = self.tasks.drive().blocks().get() / u64::from(BLOCK);
            let start = Lbn::new(self.prng.below(blocks) * u64::from(BLOCK));
            let requests = self.prewriter.dirty(&mut self.tasks, at, start);
            self.waiting.extend(requests.expect("a block of the drive"));
            self.dirtied += 1;
        }
    }

    fn foreground_done(&mut self, request: &Foreground, at: SimTime) {
        self.tasks.foreground(ForegroundEvent::Done { request, at });
        self.take_events();
    }
}

impl Promoter for Cache {
    fn read_before(&mut self, _: &Foreground, _: SimTime) -> Option<Promoted> {
        None
    }

    fn promote(&mut self, _: SimTime) -> Option<Promoted> {
        self.waiting.pop()
    }
}

/// Most dirty blocks that wait for a gap. Assumed: so few that some have to be promoted.
const DIRTY_MAX: u64 = 128;

/// Foreground writes that a cache with prewriting saves: those it wrote in gaps and those it never
/// wrote.
fn prewrite(context: &Context<'_>) -> Result<Row, ConfigError> {
    let experiment = Experiment::new(experiment(context, 1.0, 0.0))?;
    let mut tasks = Tasks::new(&experiment.drive, options(), CADENCE);
    let prewriter = Prewriter::new(&mut tasks, SimTime::ZERO, BLOCK, DIRTY_MAX, BLOCK);
    let mut cache = Cache {
        tasks,
        prewriter: prewriter.expect("a block fits"),
        prng: Prng::new(context.seed, "dirty blocks"),
        waiting: Vec::new(),
        dirtied: 0,
    };
    experiment.new_run().with_planners(vec![&mut cache]).simulate()?;
    let counts = cache.prewriter.counts();
    let quantity = "writes that need no foreground request, with 128 dirty blocks at most";
    let left = cache.prewriter.dirty_blocks();
    let percent = 100.0 * (1.0 - counts.foreground as f64 / (cache.dirtied - left) as f64);
    let row = context.measured(quantity, "%", percent);
    Ok(row.noted(format!(
        "of {} dirty blocks {} written in gaps, {} made dirty again before, {} by foreground requests, {left} left; {} waited at most",
        cache.dirtied, counts.free, counts.absorbed, counts.foreground, counts.waiting_max,
    )))
}

/// One half of the drive against the other.
fn compare(context: &Context<'_>) -> Result<Row, ConfigError> {
    let config = experiment(context, READ_SHARE, 0.0);
    let drive = library::build(&library::spec(&config.drive)?, &config.drive)?;
    let all = drive.blocks().get() / 2 / u64::from(BLOCK);
    let half = Bytes::new(all * u64::from(BLOCK) * 512);
    let compare = TaskOrder {
        kind: TaskKind::Compare,
        length: Some(half),
        other_start: Some(half),
        ..TaskOrder::default()
    };
    let (UseResult::Compare(CompareResult { counts, .. }), result) = used(config, compare)? else {
        unreachable!("a task of comparing");
    };
    let days = result.elapsed_ns as f64 / 86_400e9;
    let quantity = "comparisons of one half of the drive with the other, with 4 MiB";
    let a_day = counts.compared as f64 / all as f64 / days;
    let row = context.measured(quantity, "a day", a_day);
    Ok(row.noted(format!(
        "{:.0} pairs a day; {} waited for their other version at most",
        counts.compared as f64 / days,
        Bytes::new(counts.unmatched_bytes_max),
    )))
}

/// Any twentieth of the blocks.
fn any_blocks(context: &Context<'_>) -> Result<Row, ConfigError> {
    let mut config = experiment(context, READ_SHARE, 0.0);
    if let Workload::Closed { requests, .. } = &mut config.workload {
        // Fewer end before the sample does.
        *requests = (*requests).max(20_000);
    }
    let experiment = Experiment::new(config)?;
    let mut tasks = Tasks::new(&experiment.drive, options(), CADENCE);
    let spec = sample(backup(experiment.drive.blocks(), BLOCK), 50_000);
    let sample: TaskId = tasks.register(SimTime::ZERO, spec).expect("a task within the drive");
    experiment.new_run().with_planners(vec![&mut tasks]).simulate()?;
    let done = tasks.events().find_map(|event| match event {
        Event::Done { task, at, .. } if task == sample => Some(at),
        _ => None,
    });
    let quantity = "a sample of 5 % of the blocks, whichever they are";
    let took = done.map_or(f64::INFINITY, |time| time.ns() as f64 / 1e9);
    Ok(context.measured(quantity, "s", took))
}

pub(super) fn uses(context: &Context<'_>) -> Result<Outcome, ConfigError> {
    let mut rows = vec![prefetch(context)?, prewrite(context)?, compare(context)?];
    rows.push(any_blocks(context)?);
    Ok(Outcome { rows, figures: Vec::new() })
}
