//! What free bandwidth is good for (osdi00 section 2.2) with the transactions of its figure 8:
//! prefetching and prewriting by a cache in front of the drive, comparing versions, and a sample.

use freewheel_freeblock::tasks::{CADENCE, Event, TaskId, TaskKind, Tasks};
use freewheel_freeblock::uses::{backup, sample};
use freewheel_freeblock::{Options, Rule};
use freewheel_model::cache::{OpportunisticSpec, StorageCacheSpec, WriteBufferSpec};
use freewheel_sim::background::{CompareResult, FreeblockConfig, TaskOrder, UseResult};
use freewheel_sim::config::{ConfigError, SimConfig, Workload};
use freewheel_sim::experiment::Experiment;
use freewheel_sim::{CacheWork, PrefetchWorth, library};
use freewheel_units::{Bytes, SimTime};

use super::osdi00_scan::{MPL, transactions};
use super::sizes::SIZES;
use super::{Context, Outcome, Row};

/// Blocks of 512 B in a block of all uses: 4 KiB, as the paper's.
const BLOCK: u32 = 8;

/// Bytes of a block.
const BLOCK_SIZE: Bytes = Bytes::new(BLOCK as u64 * 512);

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

/// Work of a cache in front of the drive. All transactions are in it at once, so its hits wait for nothing.
fn cached(config: &SimConfig, cache: StorageCacheSpec) -> Result<CacheWork, ConfigError> {
    let cache = StorageCacheSpec { block_size: BLOCK_SIZE, queue_depth: MPL, ..cache };
    let config = SimConfig { cache: Some(cache), ..config.clone() };
    let result = Experiment::new(config)?.run()?;
    Ok(result.cache.expect("an experiment with a cache"))
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

/// Part of the reads, in percent, that needed no fetch.
fn hit_percent(work: &CacheWork) -> f64 {
    100.0 * (1.0 - work.read_misses as f64 / work.reads as f64)
}

/// What passes the head before the blocks of a read enters the cache. The same cache without that is the
/// control.
fn prefetch(context: &Context<'_>) -> Result<Row, ConfigError> {
    let config = experiment(context, READ_SHARE, LOCAL_SHARE);
    let cache = StorageCacheSpec { size: MEMORY, ..StorageCacheSpec::default() };
    let in_gaps = OpportunisticSpec { free_blocks: true, ..OpportunisticSpec::default() };
    let with = cached(&config, StorageCacheSpec { opportunistic: in_gaps, ..cache })?;
    let without = cached(&config, cache)?;
    let quantity = "reads that prefetching had in memory, 70 % near the one before";
    let row = context.measured(quantity, "%", hit_percent(&with) - hit_percent(&without));
    let PrefetchWorth { brought_bytes, used_bytes, .. } = with.prefetch.free_blocks;
    Ok(row.noted(format!(
        "{:.1} % of the reads needed no fetch, and {:.1} % without prefetching of what passes before a read's blocks; gaps brought {}, {:.1} % of it used",
        hit_percent(&with),
        hit_percent(&without),
        Bytes::new(brought_bytes).human(),
        100.0 * used_bytes as f64 / brought_bytes as f64,
    )))
}

/// Most dirty blocks. Assumed: so few that some have to be destaged.
const DIRTY_MAX: u64 = 128;

/// Writes that a write buffer saves the drive: gaps wrote their blocks, other data replaced them, one destage
/// brought several, or they are in the buffer at the end.
fn prewrite(context: &Context<'_>) -> Result<Row, ConfigError> {
    let buffer = WriteBufferSpec {
        size: Bytes::new(DIRTY_MAX * BLOCK_SIZE.get()),
        // Nothing is destaged as long as there is room.
        high_mark: 1.0,
        low_mark: 1.0,
        max_age: None,
        destage_in_gaps: true,
        ..WriteBufferSpec::default()
    };
    let cache = StorageCacheSpec {
        size: Bytes::ZERO,
        write_buffer: Some(buffer),
        ..StorageCacheSpec::default()
    };
    let work = cached(&experiment(context, READ_SHARE, 0.0), cache)?;
    let quantity = "writes that need no foreground request, with 128 dirty blocks at most";
    let percent = 100.0 * (1.0 - work.destages as f64 / work.writes as f64);
    let row = context.measured(quantity, "%", percent);
    Ok(row.noted(format!(
        "{} destages for {} writes; gaps wrote {}; {} writes waited for room",
        work.destages,
        work.writes,
        Bytes::new(work.in_gaps_bytes).human(),
        work.stalled_writes,
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
        block_size: Some(BLOCK_SIZE),
        memory: Some(MEMORY),
        length: Some(half),
        other_start: Some(half),
        ..TaskOrder::default()
    };
    let freeblock =
        FreeblockConfig { rule: Rule::Paths, tasks: vec![compare], ..FreeblockConfig::default() };
    let result = Experiment::new(SimConfig { freeblock: Some(freeblock), ..config })?.run()?;
    let used = result.background[0].tasks[0].used.expect("a comparison");
    let UseResult::Compare(CompareResult { counts, .. }) = used;
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
