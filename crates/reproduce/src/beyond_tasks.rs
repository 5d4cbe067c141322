//! Several tasks at once with the transactions of osdi00 figure 8: what sharing blocks, priority,
//! a deadline and shares are worth, each alone.

use freewheel_freeblock::tasks::{
    CADENCE, Event, Extent, Pace, Priority, TaskError, TaskId, TaskSpec, Tasks, Until,
};
use freewheel_freeblock::{Options, Rule};
use freewheel_sim::config::{ConfigError, Workload};
use freewheel_sim::experiment::Experiment;
use freewheel_units::{Op, SimDuration, SimTime};
use rayon::prelude::*;

use super::osdi00_scan::{MPL, transactions};
use super::sizes::SIZES;
use super::{Context, Outcome, Row};

/// Blocks of 512 B in a block of all tasks: 4 KiB, as the paper's.
const BLOCK: u32 = 8;

/// Progress of the watched task in one run.
#[derive(Debug, Clone, Copy)]
struct WatchedScan {
    /// When it was complete.
    done: SimTime,
    /// Blocks of 512 B that it and all other tasks had been given then.
    own: u64,
    others: u64,
}

/// Runs the transactions behind which `specs` are registered at the beginning, the first of them
/// watched.
fn run(experiment: &Experiment, specs: &[TaskSpec]) -> Result<WatchedScan, ConfigError> {
    let options = Options { rule: Rule::Paths, ..Options::default() };
    let mut tasks = Tasks::new(&experiment.drive, options, CADENCE);
    let registered: Result<Vec<TaskId>, TaskError> =
        specs.iter().map(|spec| tasks.register(SimTime::ZERO, spec.clone())).collect();
    let watched = registered.expect("tasks within the drive")[0];
    experiment.new_run().with_planners(vec![&mut tasks]).simulate()?;
    let mut result = WatchedScan { done: SimTime::ZERO, own: 0, others: 0 };
    for event in tasks.events() {
        match event {
            Event::Delivered { task, extent, .. } if task == watched => {
                result.own += extent.blocks.get();
            }
            Event::Delivered { extent, .. } => result.others += extent.blocks.get(),
            Event::Done { task, at, .. } if task == watched => {
                result.done = at;
                return Ok(result);
            }
            Event::Done { .. } | Event::Superseded { .. } => {}
        }
    }
    panic!("the transactions end before the task is complete")
}

/// A part of the drive, in hundredths from its beginning, of which this many hundredths are enough:
/// the last blocks take long and say little.
fn part(experiment: &Experiment, (from, to): (u64, u64), sample_share: u64) -> TaskSpec {
    let blocks = experiment.drive.blocks().get() / u64::from(BLOCK);
    let at = |hundredths: u64| blocks * hundredths / 100;
    let (start, length) = (at(from) * u64::from(BLOCK), at(to) - at(from));
    TaskSpec {
        until: Until::Enough(length * sample_share / 100),
        ..TaskSpec::new(Op::Read, BLOCK, vec![Extent::new(start, length * u64::from(BLOCK))])
    }
}

/// What became of each run.
struct Results {
    /// The scan alone, and two of them at once.
    one: WatchedScan,
    two: WatchedScan,
    /// A tenth alone, beside the scan, and so at high priority.
    alone: WatchedScan,
    beside: WatchedScan,
    high: WatchedScan,
    /// Halves with even shares, and with shares of 3 to 1.
    even: WatchedScan,
    shares: WatchedScan,
    /// The scan beside the tenth.
    behind: WatchedScan,
    /// The tenth with a deadline halfway between its times alone and beside the scan.
    in_time: WatchedScan,
    deadline: f64,
}

fn seconds(watched: &WatchedScan) -> f64 {
    watched.done.ns() as f64 / 1e9
}

fn run_all(experiment: &Experiment, sample_share: u64) -> Result<Results, ConfigError> {
    // The scan, and a tenth of it in its midst that somebody waits for.
    let scan = || part(experiment, (0, 100), sample_share);
    let urgent = || part(experiment, (45, 55), sample_share);
    let halves = |shares: [u32; 2]| {
        vec![
            TaskSpec { pace: Pace::Share(shares[0]), ..part(experiment, (0, 50), sample_share) },
            TaskSpec { pace: Pace::Share(shares[1]), ..part(experiment, (50, 100), sample_share) },
        ]
    };
    let runs = [
        vec![scan()],
        vec![scan(), scan()],
        vec![urgent()],
        vec![urgent(), scan()],
        vec![TaskSpec { priority: Priority::High, ..urgent() }, scan()],
        halves([1, 1]),
        halves([3, 1]),
        vec![scan(), TaskSpec { priority: Priority::High, ..urgent() }],
    ];
    let results: Vec<WatchedScan> =
        runs.par_iter().map(|specs| run(experiment, specs)).collect::<Result<_, _>>()?;
    let [one, two, alone, beside, high, even, shares, behind] = results[..] else {
        unreachable!("a result for every run")
    };
    let deadline = (seconds(&alone) + seconds(&beside)) / 2.0;
    let pace = Pace::Deadline(SimDuration::from_ns((deadline * 1e9) as u64));
    let in_time = run(experiment, &[TaskSpec { pace, ..urgent() }, scan()])?;
    Ok(Results { one, two, alone, beside, high, even, shares, behind, in_time, deadline })
}

pub(super) fn tasks(context: &Context<'_>) -> Result<Outcome, ConfigError> {
    let mut config = transactions(MPL, SIZES, context.seed);
    let (length, sample_share) = if context.options.quick { (28_000, 20) } else { (90_000, 50) };
    if let Workload::Closed { requests, .. } = &mut config.workload {
        *requests = length;
    }
    let results = run_all(&Experiment::new(config)?, sample_share)?;
    let Results { one, two, alone, beside, high, even, shares, behind, in_time, deadline } =
        &results;
    let rows = vec![
        noted_row(
            context,
            "two scans at once, of the time of one",
            "%",
            [99.0, 101.0],
            percent_of(two, one),
            format!("{:.0} s", seconds(one)),
        ),
        noted_row(
            context,
            "a tenth at high priority beside the scan, of its time at the same",
            "%",
            [percent_of(alone, beside), 100.0],
            percent_of(high, beside),
            format!("{:.0} s alone, {:.0} s beside it", seconds(alone), seconds(beside)),
        ),
        // At worst a tenth is read apart from all else.
        noted_row(
            context,
            "the scan behind that tenth, of its time alone",
            "%",
            [99.0, 110.0],
            percent_of(behind, one),
            format!("the scan took {:.0} s", seconds(behind)),
        ),
        noted_row(
            context,
            "a tenth with a deadline between both, of the time it has",
            "%",
            [0.0, 100.0],
            100.0 * seconds(in_time) / deadline,
            format!("due after {deadline:.0} s"),
        ),
        noted_row(
            context,
            "bytes of two halves with shares of 3 to 1, when the first is done",
            "ratio",
            // A fifth either way: the halves differ in their zones.
            [2.4, 3.6],
            ratio(shares),
            format!("{:.2} with shares of 1 to 1", ratio(even)),
        ),
    ];
    Ok(Outcome { rows, figures: Vec::new() })
}

fn noted_row(
    context: &Context<'_>,
    quantity: &str,
    unit: &'static str,
    band: [f64; 2],
    ours: f64,
    note: String,
) -> Row {
    context.row_in(quantity, unit, band, ours).noted(note)
}

fn percent_of(watched: &WatchedScan, whole: &WatchedScan) -> f64 {
    100.0 * seconds(watched) / seconds(whole)
}

fn ratio(watched: &WatchedScan) -> f64 {
    watched.own as f64 / watched.others as f64
}
