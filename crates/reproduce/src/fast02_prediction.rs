//! Freeblock Scheduling Outside of Disk Firmware (FAST 2002): how well head times are predicted from
//! outside, figures 4 and 7.

use std::sync::Arc;

use freewheel_host::{Account, Finished, PredictionSpec, PredictiveScheduler};
use freewheel_model::drive::Drive;
use freewheel_model::electronics::spec::WriteCache;
use freewheel_model::sched::PolicySpec;
use freewheel_model::striping::Striping;
use freewheel_sim::black_box::{BadBlocks, Behaviour, EmulatedDrive, JitterShape};
use freewheel_sim::config::ConfigError;
use freewheel_sim::library::DriveError;
use freewheel_sim::source::{Closed, Pattern, PatternSpec, SizeDistribution, Source, ThinkTime};
use freewheel_sim::{Arm, Completion, PredictedDevice, RunResult, library, run};
use freewheel_units::{Blocks, Bytes, Lbn, SimDuration};

use super::fast02::{ATLAS_JITTER, BLACK_BOX, BUS_BLOCK, line, on_ultra2, percent};
use super::{Context, Outcome, Row};
use freewheel_study::figure::{Axes, Figure};

/// 0.7 % on the Cheetah 18LP.
const CHEETAH_JITTER: SimDuration = SimDuration::from_us(48);

/// How far the bus lags the media varies by this much for each block: "one request may overlap by
/// 100 us more than expected" (section 5.2) among those of 40 KB, and as much less.
const OVERLAP: SimDuration = SimDuration::from_ns(2500);

/// Requests of figure 7 in a run, of either length: turns are mispredicted a few times in a thousand.
const REQUESTS: u64 = 20_000;

/// A drive whose commands are watched one by one.
pub(super) struct MeasuredRun<'a> {
    pub drive: &'a str,
    pub behaviour: Behaviour,
    pub queue_depth: u32,
}

/// What was seen of them.
pub(super) struct ObservedDelays {
    pub account: Account,
    /// Errors of predicted head times in microseconds.
    errors_us: Vec<f64>,
    /// Rotational latency of every request in nanoseconds, in order of completion.
    rotate_ns: Vec<u64>,
    pub result: RunResult,
}

impl ObservedDelays {
    /// How often errors lie in each of the bins of `width` from `-end` to `end`, in %.
    pub fn density(&self, width: f64, end: f64) -> Vec<(f64, f64)> {
        let bins = (2.0 * end / width) as usize;
        let mut counts = vec![0u64; bins];
        for error in &self.errors_us {
            let bin = ((error + end) / width).floor();
            if (0.0..bins as f64).contains(&bin) {
                counts[bin as usize] += 1;
            }
        }
        counts
            .iter()
            .enumerate()
            .map(|(bin, &count)| (middle(bin, end, width), self.share(count)))
            .collect()
    }

    fn share(&self, count: u64) -> f64 {
        percent(count, self.errors_us.len() as u64)
    }

    /// Commands whose prediction was off by this many microseconds, either way.
    pub fn errors_between(&self, from_us: f64, to_us: f64) -> u64 {
        self.errors_us.iter().filter(|error| (from_us..to_us).contains(&error.abs())).count() as u64
    }

    /// Standard deviation of the errors within half a turn, in microseconds.
    fn deviation_us(&self) -> f64 {
        let near: Vec<f64> =
            self.errors_us.iter().copied().filter(|error| error.abs() < 2500.0).collect();
        let mean = near.iter().sum::<f64>() / near.len().max(1) as f64;
        let square = near.iter().map(|error| (error - mean).powi(2)).sum::<f64>();
        (square / near.len().max(1) as f64).sqrt()
    }
}

fn middle(bin: usize, end: f64, width: f64) -> f64 {
    -end + width * (bin as f64 + 0.5)
}

impl MeasuredRun<'_> {
    /// Without free work under a workload, which it makes for the drive.
    pub fn run<S: Source>(
        &self,
        seed: u64,
        source: impl FnOnce(&Drive) -> Result<S, ConfigError>,
    ) -> Result<ObservedDelays, ConfigError> {
        let mut spec = library::spec(self.drive)?;
        on_ultra2(&mut spec);
        let drive = Arc::new(library::build(&spec, self.drive)?);
        let electronics = spec.electronics.with_processing(spec.overhead);
        let host = drive.with_overhead(electronics.command_overhead());
        let scheduler =
            PredictionSpec { queue_depth: self.queue_depth, ..PredictionSpec::default() };
        let switch = electronics.read_write_switch;
        let scheduler = PredictiveScheduler::new(&host, switch, PolicySpec::Fcfs, scheduler)?;
        let behaviour = Behaviour {
            queue_depth: Some(self.queue_depth),
            write_cache: Some(WriteCache::Off),
            ..self.behaviour
        };
        let bad = BadBlocks::default();
        let real = EmulatedDrive::new(&spec, self.drive, &behaviour, bad, seed)
            .map_err(DriveError::from)?;
        let mut errors_us = Vec::new();
        let mut watch = |finished: &Finished| {
            errors_us.extend(finished.error_ns.map(|error| error as f64 / 1e3));
        };
        let device = PredictedDevice::new(scheduler, real, None).watched_by(&mut watch);
        let policy = PolicySpec::Fcfs.build()?;
        let mut arms = [Arm { drive: Arc::clone(&drive), policy, device }];
        let mut source = source(&drive)?;
        let striping = Striping::single(drive.blocks());
        let mut rotate_ns = Vec::new();
        let result = run(&striping, None, &mut arms, &mut source, &mut |done: &Completion| {
            rotate_ns.push(done.rotate.ns())
        })?;
        let account = *arms[0].device.account();
        drop(arms);
        Ok(ObservedDelays { account, errors_us, rotate_ns, result })
    }
}

/// Random requests, four at once.
#[derive(Clone, Copy)]
struct Random {
    size: Bytes,
    size_distribution: SizeDistribution,
    requests: u64,
    /// Of the first zone, where all requests lie; the whole drive when absent.
    cylinders: Option<u64>,
}

impl Random {
    /// Of a mean size.
    fn around(context: &Context<'_>, size: Bytes) -> Self {
        let size_distribution = SizeDistribution::Exponential;
        Self { size, size_distribution, requests: context.requests() / 2, cylinders: None }
    }

    fn on(self, watched: &MeasuredRun<'_>, seed: u64) -> Result<ObservedDelays, ConfigError> {
        let pattern = PatternSpec {
            size: self.size,
            size_distribution: self.size_distribution,
            align: Bytes::from_kib(4),
            ..PatternSpec::default()
        };
        watched.run(seed, |drive| {
            let blocks = self.cylinders.map_or(drive.blocks(), |count| first(drive, count));
            let pattern = Pattern::new(pattern, blocks, seed)
                .map_err(|message| ConfigError::Workload { message })?;
            let think_time = ThinkTime::Constant(SimDuration::ZERO);
            Ok(Closed::new(pattern, 4, think_time, self.requests, seed))
        })
    }
}

/// Blocks of the first cylinders.
fn first(drive: &Drive, cylinders: u64) -> Blocks {
    let (first, end) = drive.layout().track_bounds(Lbn::ZERO);
    Blocks::new(cylinders * u64::from(drive.layout().surfaces()) * (end.get() - first.get()))
}

/// The paper's drive: its seeks vary, and its bus lags the media by any part of its transfer.
pub(super) const ATLAS: MeasuredRun<'static> = MeasuredRun {
    drive: "atlas10k",
    behaviour: Behaviour {
        seek_jitter: Some(ATLAS_JITTER),
        seek_jitter_shape: JitterShape::Normal,
        seek_jitter_far: None,
        seek_jitter_inward: None,
        reply_jitter: SimDuration::ZERO,
        reply_jitter_a_block: OVERLAP,
        spindle_drift: None,
        activity: None,
        queue_depth: None,
        queue_policy: None,
        write_cache: None,
        sector: None,
    },
    queue_depth: 2,
};

/// Of how errors of predictions are distributed.
pub(super) const AXES: Axes =
    Axes { x: "error of the predicted head time, us", y: "of commands, %", log_x: false };

/// By how much the rotational latency of the same request differs between two runs, in the mean and as
/// a share of the mean latency in %. The mean latency itself is half a turn in both.
fn changed_latency(varying: &ObservedDelays, even: &ObservedDelays) -> f64 {
    let pairs = varying.rotate_ns.iter().zip(&even.rotate_ns);
    let apart: u64 = pairs.map(|(varying, even)| varying.abs_diff(*even)).sum();
    percent(apart, even.rotate_ns.iter().sum())
}

/// A measure depends on the overlap of bus and media where that changes it by this many times as much as
/// where it does not. The paper says which does, without numbers.
const DEPENDS: f64 = 10.0;

pub(super) fn fig4(context: &Context<'_>) -> Result<Outcome, ConfigError> {
    let seed = context.seed;
    let seen = |queue_depth, overlap| -> Result<ObservedDelays, ConfigError> {
        let overlap = if overlap { BUS_BLOCK * 5 } else { SimDuration::ZERO };
        let behaviour = Behaviour {
            seek_jitter: Some(SimDuration::ZERO),
            reply_jitter_a_block: overlap,
            ..ATLAS.behaviour
        };
        let requests = Random::around(context, Bytes::from_kib(16));
        requests.on(&MeasuredRun { behaviour, queue_depth, ..ATLAS }, seed)
    };
    let [one, two] = [seen(1, true)?, seen(2, true)?];
    let [one_even, two_even] = [seen(1, false)?, seen(2, false)?];
    let what = "an emulated Atlas 10K whose bus is behind its media by up to 32 us for each block of a \
                request, from request to request; requests of 16 KB";
    // Shares of the time: with two, both are close to 0, and their quotient says little.
    let [idle_one, idle_two] =
        [(idle(&one) - idle(&one_even)).abs(), (idle(&two) - idle(&two_even)).abs()];
    let [latency_one, latency_two] =
        [changed_latency(&one, &one_even), changed_latency(&two, &two_even)];
    let only_one = |what: &str, with_one: f64, with_two: f64| {
        let quantity = format!("{what} depends on the overlap with one at the drive, not with two");
        context.holds(&quantity, with_one > DEPENDS * with_two)
    };
    let rows = vec![
        only_one("head idle time", idle_one, idle_two),
        only_one("rotational latency", latency_one, latency_two),
        context.holds("one at the drive: more idle time than with two", idle(&one) > idle(&two)),
        context.measured("one at the drive: change of head idle time", "points", idle_one),
        context.measured(
            "one at the drive: mean change of a request's rotational latency",
            "%",
            latency_one,
        ),
        context.measured("two at the drive: change of head idle time", "points", idle_two),
        context.measured(
            "two at the drive: mean change of a request's rotational latency",
            "%",
            latency_two,
        ),
    ];
    let rows = rows.into_iter().map(|row| row.standing_in(what)).collect();
    let densities = vec![
        line("one at the drive", one.density(50.0, 2000.0)),
        line("two", two.density(50.0, 2000.0)),
    ];
    Ok(Outcome { rows, figures: vec![Figure::lines(densities, AXES)] })
}

fn idle(seen: &ObservedDelays) -> f64 {
    100.0 * (1.0 - seen.result.busy_shares.head)
}

const BY_JITTER: &str =
    "how far seeks are off, so that as many head times are mispredicted as in the paper";

/// Why turns longer are no more often than turns shorter.
const SYMMETRIC: &str = "the emulated drive's errors are symmetric, so that about as many commands take a turn longer as shorter. The paper says that its seeks were underpredicted. Where those of the emulated drive take 15 us longer than predicted, 0.82 % are a turn longer and 0.45 % shorter";

/// Cylinders of the paper's localized requests.
const NEAR: u64 = 50;

pub(super) fn fig7(context: &Context<'_>) -> Result<Outcome, ConfigError> {
    let seed = context.seed;
    let requests = Random::around(context, Bytes::from_kib(4));
    let requests =
        Random { size_distribution: SizeDistribution::Fixed, requests: REQUESTS, ..requests };
    let calmer = Behaviour { seek_jitter: Some(CHEETAH_JITTER), ..ATLAS.behaviour };
    let cheetah = MeasuredRun { drive: "cheetah18lp", behaviour: calmer, ..ATLAS };
    let (atlas, cheetah) = (requests.on(&ATLAS, seed)?, requests.on(&cheetah, seed)?);
    let near = Random { cylinders: Some(NEAR), ..requests }.on(&ATLAS, seed)?;
    let turns =
        |count: fn(&Account) -> u64| percent(count(&atlas.account), atlas.account.predicted);
    let (well, late, early) = (within(&atlas), turns(|seen| seen.late), turns(|seen| seen.early));
    let cheetah_box = "an emulated Cheetah 18LP; errors of its seeks are normal";
    let rows = vec![
        of_atlas(well_row(context, "4 KB: within 50 us", 97.5, well)).calibrated_by(BY_JITTER),
        of_atlas(context.row_of("4 KB: turns longer", "%", [1.8; 2], [1.8 / 2.0, 2.0 * 1.8], late))
            .deviates(0.695, 0.04, SYMMETRIC),
        of_atlas(context.row_of(
            "4 KB: turns shorter",
            "%",
            [0.7; 2],
            [0.7 / 2.0, 2.0 * 0.7],
            early,
        ))
        .calibrated_by(BY_JITTER),
        of_atlas(context.measured("4 KB: off otherwise", "%", 100.0 - well - late - early))
            .noted(OTHERWISE),
        of_atlas(well_row(context, "4 KB within 50 cylinders: within 50 us", 97.5, within(&near)))
            .calibrated_by(BY_JITTER),
        well_row(context, "Cheetah, 4 KB: within 50 us", 99.3, within(&cheetah))
            .standing_in(cheetah_box)
            .calibrated_by(BY_JITTER),
    ];
    let densities = vec![
        line("Atlas 10K", atlas.density(20.0, 400.0)),
        line("Cheetah", cheetah.density(20.0, 400.0)),
    ];
    Ok(Outcome { rows, figures: vec![Figure::lines(densities, AXES)] })
}

/// A share of commands predicted well. Its band is from half to twice the share that the paper mispredicts.
fn well_row(context: &Context<'_>, quantity: &str, paper: f64, ours: f64) -> Row {
    let missed = 100.0 - paper;
    let band = [100.0 - 2.0 * missed, 100.0 - missed / 2.0];
    context.row_of(quantity, "%", [paper; 2], band, ours)
}

fn within(seen: &ObservedDelays) -> f64 {
    percent(seen.account.within_50us, seen.account.predicted)
}

fn of_atlas(row: Row) -> Row {
    row.standing_in(BLACK_BOX)
}

/// What is neither well predicted nor a turn off.
const OTHERWISE: &str = "the paper's shares leave none. The head arrives within these requests, and a drive with zero-latency access begins there: without that access there are none here either";

pub(super) fn fig7b(context: &Context<'_>) -> Result<Outcome, ConfigError> {
    let requests = Random::around(context, Bytes::from_kib(40));
    let seen = requests.on(&ATLAS, context.seed)?;
    let within = percent(seen.account.within_150us, seen.account.predicted);
    let row = context.row_in("40 KB: within 150 us", "%", [75.0, 100.0], within);
    // Measures the overlap that was chosen.
    let row = row.of_paper([75.0; 2]).own();
    let rows = vec![row.standing_in(BLACK_BOX)];
    let density = format!("40 KB, standard deviation {:.0} us", seen.deviation_us());
    let figures = vec![Figure::lines(vec![line(&density, seen.density(20.0, 600.0))], AXES)];
    Ok(Outcome { rows, figures })
}
