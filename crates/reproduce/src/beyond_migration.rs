//! Moves in rotational gaps beside moves by commands, under load. No paper has this: tr96 moves extents by
//! commands alone, and osdi00 reads only.

use std::sync::Arc;

use freewheel_array::allocation::{Allocator, DiskOrder, NewHeat, Passes};
use freewheel_array::cooling::MoverSpec;
use freewheel_array::files::{FileLoad, FileOnDisks, place};
use freewheel_array::placement::ExtentId;
use freewheel_model::drive::Drive;
use freewheel_model::sched::PolicySpec;
use freewheel_sim::Completion;
use freewheel_sim::config::ConfigError;
use freewheel_sim::files::{
    Arrivals, FilesExperiment, simulate, simulate_moved, simulate_moved_in_gaps,
};
use freewheel_sim::library;
use freewheel_units::{Blocks, SimTime};

use crate::{Context, Outcome};

const DRIVE: &str = "atlas10k";
const DISKS: usize = 4;
/// Files of 4 MiB, 100 on each disk.
const FILES: usize = 400;
const FILE_BLOCKS: u64 = 8192;
/// Requests a second to the files of the first disk, and to those of each other disk.
const RATES: [f64; 2] = [90.0, 40.0];
/// Files that move from the first disk, a third of its load.
const MOVED: u32 = 30;
const READ_SHARE: f64 = 0.7;

/// How the files move.
enum MoveBy {
    Nothing,
    Commands,
    Gaps,
}

/// A run: completions as arrival and end by tag, and the ends of the moves.
struct Run {
    done: Vec<(SimTime, SimTime)>,
    ends: Vec<SimTime>,
}

impl Run {
    fn new(context: &Context<'_>, by: &MoveBy) -> Result<Self, ConfigError> {
        let drive = Arc::new(Drive::build(&library::spec(DRIVE)?).expect("a drive of the library"));
        let disks: Vec<Arc<Drive>> = (0..DISKS).map(|_| Arc::clone(&drive)).collect();
        let blocks = Blocks::new(FILE_BLOCKS);
        let file =
            FileOnDisks { blocks, unit: blocks, width: 1, boundary: Blocks::new(1), heat: 1.0 };
        let allocator =
            &mut Allocator::new(DiskOrder::RoundRobin, Passes::ByStatus, NewHeat::AtOnce);
        let files = place(&[file; FILES], 0..FILES, &[drive.blocks(); DISKS], allocator)
            .expect("the disks are larger");
        let a_disk = (FILES / DISKS) as f64;
        let loads: Vec<FileLoad> = (0..FILES)
            .map(|number| {
                let rate = RATES[usize::from(!number.is_multiple_of(DISKS))] / a_disk;
                FileLoad { blocks, request: Blocks::new(16), rate, reads: READ_SHARE }
            })
            .collect();
        let requests = if context.options.quick { 40_000 } else { 80_000 };
        let experiment = FilesExperiment {
            disks: &disks,
            map: &files.map,
            arrivals: Arrivals::Poisson { loads: &loads, requests },
            policy: PolicySpec::Fcfs,
            cache: None,
            warm_up: 0.0,
            seed: context.seed,
        };
        // Every fourth file lies on the first disk. They go to the others in turn.
        let moves: Vec<(ExtentId, u32)> =
            (0..MOVED).map(|number| (ExtentId(4 * number), 1 + number % 3)).collect();
        let mut done = vec![(SimTime::ZERO, SimTime::ZERO); requests as usize];
        let mut see = |completion: &Completion| {
            done[completion.request.tag as usize] = (completion.arrival, completion.end);
        };
        let mover = MoverSpec { piece: Blocks::new(1024), rate: None };
        let ends = match by {
            MoveBy::Nothing => {
                simulate(&experiment, &mut see)?;
                Vec::new()
            }
            MoveBy::Commands => simulate_moved(&experiment, &moves, mover, &mut see)?.1.ends,
            MoveBy::Gaps => simulate_moved_in_gaps(&experiment, &moves, &mut see)?.1.ends,
        };
        Ok(Self { done, ends })
    }

    /// Mean response in ms of requests that arrive in `from..to`.
    fn response_ms(&self, from: SimTime, to: SimTime) -> f64 {
        let within = self.done.iter().filter(|(arrival, _)| (from..to).contains(arrival));
        let responses: Vec<f64> =
            within.map(|(arrival, end)| (*end - *arrival).ns() as f64 / 1e6).collect();
        responses.iter().sum::<f64>() / responses.len().max(1) as f64
    }

    /// When the last move ended; the end of time if some did not.
    fn last_end(&self) -> SimTime {
        let all = self.ends.len() == MOVED as usize;
        self.ends.last().copied().filter(|_| all).unwrap_or(SimTime::MAX)
    }
}

pub(crate) fn migration(context: &Context<'_>) -> Result<Outcome, ConfigError> {
    let none = Run::new(context, &MoveBy::Nothing)?;
    let commands = Run::new(context, &MoveBy::Commands)?;
    let gaps = Run::new(context, &MoveBy::Gaps)?;
    let first = gaps.ends.first().copied().unwrap_or(SimTime::MAX);
    let same = before(&none, first) == before(&gaps, first);
    let (ended, ended_in_gaps) = (commands.last_end(), gaps.last_end());
    let start = SimTime::ZERO;
    let later = ended.max(ended_in_gaps);
    let mib = f64::from(MOVED) * FILE_BLOCKS as f64 / 2048.0;
    let rows = vec![
        context.holds("all moves end, by commands and in gaps", later < SimTime::MAX),
        context
            .holds("in gaps: completions up to the first move's end are those without moves", same)
            .noted(format!("{} completions", before(&none, first).len())),
        context
            .row_in(
                "in gaps: response while moving over without moves",
                "",
                [0.0, 1.0],
                gaps.response_ms(start, ended_in_gaps) / none.response_ms(start, ended_in_gaps),
            )
            .noted(format!("{mib:.0} MiB in {:.0} s", seconds(ended_in_gaps))),
        context
            .measured(
                "by commands: response while moving over without moves",
                "",
                commands.response_ms(start, ended) / none.response_ms(start, ended),
            )
            .noted(format!("{mib:.0} MiB in {:.0} s", seconds(ended))),
        context.measured("in gaps: moved", "MiB/s", mib / seconds(ended_in_gaps)),
        context.measured("by commands: moved", "MiB/s", mib / seconds(ended)),
        context.row_in(
            "response after all moves, in gaps over by commands",
            "",
            [0.999, 1.001],
            gaps.response_ms(later, SimTime::MAX) / commands.response_ms(later, SimTime::MAX),
        ),
        context.measured(
            "response after all moves over without moves",
            "",
            gaps.response_ms(later, SimTime::MAX) / none.response_ms(later, SimTime::MAX),
        ),
    ];
    Ok(Outcome { rows, figures: Vec::new() })
}

fn before(run: &Run, first: SimTime) -> Vec<SimTime> {
    run.done.iter().map(|(_, end)| *end).filter(|end| *end < first).collect()
}

fn seconds(end: SimTime) -> f64 {
    end.ns() as f64 / 1e9
}
