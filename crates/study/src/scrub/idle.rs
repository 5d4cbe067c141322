//! A scrub in idle time, as hosts do it today: after a pause without requests it reads on until one arrives.

use std::collections::BTreeMap;

use freewheel_freeblock::tasks::TaskKind;
use freewheel_model::drive::spec::DriveSpec;
use freewheel_model::stats::{Distribution, Summary};
use freewheel_sim::background::{FreeblockConfig, IdleConfig, TaskOrder};
use freewheel_sim::config::{ConfigError, SimConfig};
use freewheel_sim::experiment::Experiment;
use freewheel_sim::source::{KeptRecords, Request};
use freewheel_sim::{Completion, RunResult};
use freewheel_units::{Bytes, Op, SimDuration, SimTime};
use rayon::prelude::*;
use serde::Serialize;

use super::by_command::{CommandMarks, MARKED_RUNS, MarkedRun, marked_runs};
use crate::changes::{NOTICEABLE, relative};
use crate::progress::WorkCounter;

/// A scrub in idle time, with pauses of different lengths.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct IdleScrub {
    /// Bytes that it reads at once; a request that arrives waits for the end of that.
    pub run_bytes: u64,
    /// One for each pause, the shortest first.
    pub pauses: Vec<PauseBeforeScrub>,
    /// Scrubs whose commands the drive's queue tells from those of clients; empty where it has no choice.
    pub by_command: Vec<CommandScrub>,
}

/// A scrub command by command.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CommandScrub {
    /// Marks by which the drive tells its commands from those of clients.
    pub marks: CommandMarks,
    /// Time and cost to requests, without a pause before the scrub.
    #[serde(flatten)]
    pub scrub: PauseBeforeScrub,
}

/// A scrub that begins after this long without requests.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PauseBeforeScrub {
    /// The pause.
    pub pause_ns: u64,
    /// Requests that were simulated, from the beginning of the trace on.
    pub requests: u64,
    /// The time in which they come.
    pub measured_ns: u64,
    /// Bytes that it reads a second meanwhile.
    pub bytes_per_second: f64,
    /// Time of the whole drive at this rate; None where it reads no block.
    pub seconds: Option<f64>,
    /// Change of the mean response as (new - old) / old.
    pub mean: f64,
    /// Change of the 99th percentile.
    pub p99: f64,
    /// Change of the 99th percentile of reads.
    pub reads_p99: f64,
}

impl PauseBeforeScrub {
    /// True if requests notice the scrub.
    pub fn is_noticed(&self) -> bool {
        self.mean.max(self.p99).max(self.reads_p99) >= NOTICEABLE
    }
}

impl IdleScrub {
    /// The shortest pause whose scrub no request notices and that ends within `seconds_max`; of others the longest
    /// that does. None where none does.
    pub fn fit(&self, seconds_max: f64) -> Option<&PauseBeforeScrub> {
        let mut fits = self
            .pauses
            .iter()
            .filter(|pause| pause.seconds.is_some_and(|time| time <= seconds_max));
        fits.clone().find(|pause| !pause.is_noticed()).or(fits.next_back())
    }

    /// The shortest pause whose scrub no request notices; the longest where requests notice each.
    pub fn best(&self) -> Option<&PauseBeforeScrub> {
        self.pauses.iter().find(|pause| !pause.is_noticed()).or(self.pauses.last())
    }
}

/// Pauses that are tried: shorter ones find the next request of a burst, longer ones leave idle time
/// unused. After none at all the drive still finishes its own work first, as reading ahead, which a command
/// would cut short.
const PAUSES: [SimDuration; 5] = [
    SimDuration::ZERO,
    SimDuration::from_ms(5),
    SimDuration::from_ms(20),
    SimDuration::from_ms(50),
    SimDuration::from_ms(100),
];

/// Longest time of a scrub that says anything about a drive: it is replaced before.
pub const SCRUB_SECONDS_MAX: f64 = 5.0 * 365.25 * 86_400.0;

/// Pauses that are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PauseSearch {
    /// All, and scrubs told apart by their commands.
    All,
    /// Up to the first that no request notices.
    First,
}

/// Runs of [`idle_scrub`].
pub(crate) const IDLE_RUNS: usize = 2 + PAUSES.len() + MARKED_RUNS;

/// Bytes that are read at once: about a millisecond of a drive of today.
const RUN: Bytes = Bytes::from_kib(256);

/// Each of these reads is simulated, so after this many the rest of a trace is left out.
const READS_MAX: u64 = 200_000;

/// Idle time of which no more is simulated at a stretch. By then the drive has written back, the longest
/// pause is over, and the scrub reads at its steady rate; the rest of the stretch counts by the reads at
/// that rate.
fn stretch(spec: &DriveSpec) -> SimDuration {
    let buffer = spec.electronics.buffer.as_ref();
    // A random write takes a seek and half a turn, which two turns are enough for. Extents by the thousand
    // are written back in order of position, and a trace seldom fills them.
    let write_back = buffer.map_or(SimDuration::ZERO, |buffer| {
        let all = spec.rotation_period * (2 * u64::from(buffer.write_segments));
        buffer.destage_after_idle + buffer.dirty.map_or(all, |dirty| dirty.age_limit)
    });
    PAUSES[PAUSES.len() - 1] + write_back + SimDuration::from_ms(200)
}

/// No gap is wider than this margin, but between reads of one track: idle time is used, and hardly anything else.
const NO_GAPS: SimDuration = SimDuration::from_ms(100);

/// Measures a scrub in the idle time of an experiment.
pub(crate) fn idle_scrub(
    experiment: &Experiment,
    search: PauseSearch,
    work: &WorkCounter<'_>,
) -> Result<IdleScrub, ConfigError> {
    let mut cuts = Cuts::of(&alone(experiment, work)?, stretch(&experiment.spec));
    let mut experiment = experiment.clone();
    match experiment.kept_records().map(|records| cuts.shorten(records)) {
        Some(records) => experiment.keep_records(records),
        // A trace that is read from its file is simulated whole.
        None => cuts.by_tag.clear(),
    }
    let alone = alone(&experiment, work)?;
    let run = |&pause: &SimDuration| {
        let run = work.begin(1);
        let with = experiment.with_config(with_scrub(&experiment, pause))?;
        let with =
            with.new_run().with_progress(&mut |done, total| run.at(done, total)).simulate()?;
        let (read, head_ns) = with.idle.map_or((0, 0), |idle| (idle.read_bytes, idle.head_ns));
        // Each arm reads at this rate, all at once.
        let steady = f64::from(experiment.striping.arms()) * read as f64 / head_ns.max(1) as f64;
        Ok(measured(&experiment, &alone, &cuts, &with, ScrubReads { pause, read, steady }))
    };
    if search == PauseSearch::First {
        work.forgo(MARKED_RUNS);
        return Ok(IdleScrub {
            run_bytes: RUN.get(),
            pauses: until_unnoticed(run, work)?,
            by_command: Vec::new(),
        });
    }
    let pauses = || PAUSES.par_iter().map(run).collect::<Result<_, ConfigError>>();
    let marked = || marked_runs(&experiment, (RUN, READS_MAX), work);
    let (pauses, marked) = rayon::join(pauses, marked);
    let by_command = marked?
        .into_iter()
        .map(|MarkedRun { marks, result, read, steady }| {
            let reads = ScrubReads { pause: SimDuration::ZERO, read, steady };
            CommandScrub { marks, scrub: measured(&experiment, &alone, &cuts, &result, reads) }
        })
        .collect();
    Ok(IdleScrub { run_bytes: RUN.get(), pauses: pauses?, by_command })
}

/// The pauses up to the first whose scrub no request notices: longer ones only take longer.
fn until_unnoticed(
    run: impl Fn(&SimDuration) -> Result<PauseBeforeScrub, ConfigError>,
    work: &WorkCounter<'_>,
) -> Result<Vec<PauseBeforeScrub>, ConfigError> {
    let mut pauses = Vec::new();
    for pause in &PAUSES {
        let tried = run(pause)?;
        pauses.push(tried);
        // Behind a longer pause still less is read.
        if !tried.is_noticed() || tried.seconds.is_none() {
            break;
        }
    }
    work.forgo(PAUSES.len() - pauses.len());
    Ok(pauses)
}

/// A request without the scrub.
struct Alone {
    /// Number of the request in the trace.
    tag: u64,
    op: Op,
    arrival: SimTime,
    end: SimTime,
}

/// The requests of a run without the scrub, in order of the trace.
fn alone(experiment: &Experiment, work: &WorkCounter<'_>) -> Result<Vec<Alone>, ConfigError> {
    let run = work.begin(1);
    let mut alone: Vec<Alone> = Vec::new();
    experiment
        .new_run()
        .with_observer(&mut |completion: &Completion| {
            let &Completion { request: Request { op, tag, .. }, arrival, end, .. } = completion;
            alone.push(Alone { tag, op, arrival, end });
        })
        .with_progress(&mut |done, total| run.at(done, total))
        .simulate()?;
    alone.sort_unstable_by_key(|request| request.tag);
    Ok(alone)
}

/// Cuts of long stretches of idle time, by the number of the request that ends each.
struct Cuts {
    /// Remaining length of each.
    stretch: SimDuration,
    by_tag: BTreeMap<u64, SimDuration>,
}

impl Cuts {
    fn of(alone: &[Alone], stretch: SimDuration) -> Self {
        let mut cuts = Self { stretch, by_tag: BTreeMap::new() };
        let mut busy_until = SimTime::ZERO;
        for request in alone {
            let idle = request.arrival.saturating_since(busy_until);
            if idle > stretch {
                cuts.by_tag.insert(request.tag, idle - stretch);
            }
            busy_until = busy_until.max(request.end);
        }
        cuts
    }

    /// The records with these cuts. A drive may be idle for longer than the records are apart: then the cut
    /// is as large as they allow.
    fn shorten(&mut self, records: &KeptRecords) -> KeptRecords {
        let Self { stretch, by_tag } = self;
        let mut before = SimTime::ZERO;
        records.with_cuts(|number, record| {
            let pause = record.arrival.saturating_since(before);
            before = before.max(record.arrival);
            let Some(cut) = by_tag.get_mut(&(number as u64)) else { return SimDuration::ZERO };
            *cut = (*cut).min(pause.saturating_sub(*stretch));
            *cut
        })
    }

    /// All that is left out before a request.
    fn before(&self, tag: u64) -> SimDuration {
        let cuts = self.by_tag.range(..tag).map(|(_, cut)| cut.ns());
        SimDuration::from_ns(cuts.sum())
    }
}

/// The experiment with a scrub that is half through, until it has read as much as is simulated.
fn with_scrub(experiment: &Experiment, pause: SimDuration) -> SimConfig {
    let half = experiment.drive.blocks().bytes().get() / 2 / RUN.get() * RUN.get();
    let task = TaskOrder {
        kind: TaskKind::Scrub,
        block_size: Some(RUN),
        start: Bytes::new(half),
        length: Some(Bytes::new(half.min(READS_MAX * RUN.get()))),
        rounds: Some(1),
        ..TaskOrder::default()
    };
    let idle = Some(IdleConfig { after: pause, adapt: None, run_max: RUN });
    let (tasks, conservatism) = (vec![task], NO_GAPS);
    let freeblock = FreeblockConfig { tasks, conservatism, idle, ..FreeblockConfig::default() };
    SimConfig { freeblock: Some(freeblock), ..experiment.config.clone() }
}

/// Reads of a scrub in a run.
struct ScrubReads {
    pause: SimDuration,
    read: u64,
    /// Bytes a nanosecond while no request is there.
    steady: f64,
}

/// Compares the requests of the run with the scrub with the same ones without it.
fn measured(
    experiment: &Experiment,
    alone: &[Alone],
    cuts: &Cuts,
    with: &RunResult,
    scrub: ScrubReads,
) -> PauseBeforeScrub {
    let ScrubReads { pause, read, steady } = scrub;
    let [mut all, mut reads] = [Distribution::default(), Distribution::default()];
    for request in alone.iter().filter(|request| request.tag < with.requests) {
        let response = request.end - request.arrival;
        if matches!(request.op, Op::Read | Op::Write) {
            all.record(response);
        }
        if request.op == Op::Read {
            reads.record(response);
        }
    }
    let [all, reads] = [all, reads].map(|of| of.summary());
    let left_out = cuts.before(with.requests);
    let measured_ns = with.elapsed_ns + left_out.ns();
    let bytes = read as f64 + steady * left_out.ns() as f64;
    let bytes_per_second = bytes * 1e9 / measured_ns.max(1) as f64;
    let capacity = experiment.drive.total_blocks().bytes().get() as f64;
    PauseBeforeScrub {
        pause_ns: pause.ns(),
        requests: with.requests,
        measured_ns,
        bytes_per_second,
        seconds: (read > 0).then(|| capacity / bytes_per_second),
        mean: relative(all.mean_ns, with.response.mean_ns),
        p99: p99(&all, &with.response),
        reads_p99: p99(&reads, &with.read_response),
    }
}

fn p99(old: &Summary, new: &Summary) -> f64 {
    relative(old.p99_ns as f64, new.p99_ns as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_cuts_only_long_stretches() {
        let ms = |ms: u64| SimTime::from_ns(ms * 1_000_000);
        let of =
            |tag, arrival, end| Alone { tag, op: Op::Read, arrival: ms(arrival), end: ms(end) };
        let all = [of(0, 0, 5_000), of(1, 10, 20), of(2, 5_300, 5_310), of(3, 6_310, 6_320)];
        let cuts = Cuts::of(&all, SimDuration::from_ms(400));
        assert_eq!(cuts.before(3), SimDuration::ZERO);
        assert_eq!(cuts.before(4), SimDuration::from_ms(600));
    }

    #[test]
    fn idle_best_pause_is_shortest_unnoticed() {
        let of = |pause_ns, p99| PauseBeforeScrub {
            pause_ns,
            requests: 1,
            measured_ns: 1,
            bytes_per_second: 1.0,
            seconds: None,
            mean: 0.0,
            p99,
            reads_p99: 0.0,
        };
        let best = |list: &[PauseBeforeScrub]| {
            IdleScrub { run_bytes: 1, pauses: list.into(), by_command: Vec::new() }
                .best()
                .map(|pause| pause.pause_ns)
        };
        assert_eq!(best(&[of(1, 0.05), of(2, 0.01), of(3, 0.0)]), Some(2));
        assert_eq!(best(&[of(1, 0.05), of(2, 0.04)]), Some(2));
        assert_eq!(best(&[]), None);
    }
}
