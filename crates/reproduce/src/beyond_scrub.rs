//! The estimate of a scrub's time against whole scans, simulated gap by gap.
//!
//! A whole scan of a drive of today takes weeks of simulated time and hours of a processor's. The Atlas
//! 10K is the largest drive here of which one takes seconds; of 24 TB the first 6 % are simulated, in
//! minutes.

use std::path::{Path, PathBuf};

use freewheel_freeblock::Rule;
use freewheel_sim::config::{ConfigError, SimConfig, TraceWorkload, Workload};
use freewheel_sim::experiment::Experiment;
use freewheel_sim::source::{
    Closed, Fit, Pattern, PatternSpec, Request, Source, SourceError, ThinkTime,
};
use freewheel_units::{Bytes, SimDuration, SimTime, VolumeBlock};

use super::osdi00_scan::{MPL, transactions};
use super::sizes::SIZES;
use super::{Context, HOLDS, Outcome, Row};
use freewheel_study::BackgroundScan;

/// What keeps the heads busy.
enum Load {
    /// Ten clients with random requests.
    Clients {
        name: &'static str,
        /// Share of requests near the one before.
        local_share: f64,
        places: &'static [Place],
        /// Largest error that the documents state for estimates under such a load, in percent of the whole scan.
        within: f64,
    },
    /// A recorded load, scaled to the drive, piece by piece over and over.
    Recorded { name: &'static str },
}

/// Requests of this share lie anywhere between two parts of the drive.
struct Place {
    share: f64,
    from: f64,
    to: f64,
}

/// What the README says of estimates: within 15 % under random requests, within 30 % where these lie
/// on a part of the drive and under recorded loads.
const RANDOM: f64 = 15.0;
const ON_A_PART: f64 = 30.0;

const EVERYWHERE: &[Place] = &[Place { share: 1.0, from: 0.0, to: 1.0 }];

const LOADS: [Load; 8] = [
    Load::Clients { name: "random", local_share: 0.0, places: EVERYWHERE, within: RANDOM },
    Load::Clients {
        name: "7 of 10 near the one before",
        local_share: 0.7,
        places: EVERYWHERE,
        within: RANDOM,
    },
    Load::Clients {
        name: "on a tenth of the drive",
        local_share: 0.0,
        places: &[Place { share: 1.0, from: 0.0, to: 0.1 }],
        within: ON_A_PART,
    },
    Load::Clients {
        name: "on a tenth in its middle",
        local_share: 0.0,
        places: &[Place { share: 1.0, from: 0.45, to: 0.55 }],
        within: ON_A_PART,
    },
    Load::Clients {
        name: "4 of 5 on a twentieth",
        local_share: 0.0,
        places: &[
            Place { share: 0.8, from: 0.3, to: 0.35 },
            Place { share: 0.2, from: 0.0, to: 1.0 },
        ],
        within: ON_A_PART,
    },
    Load::Recorded { name: "pgbench-ext4" },
    Load::Recorded { name: "sqlite-ext4" },
    Load::Recorded { name: "fileserver-ext4" },
];

/// Puts requests of a load on the whole drive where they are to lie.
struct Placed<S> {
    inner: S,
    places: &'static [Place],
    blocks: f64,
}

/// Starts are multiples of 4 KiB, and a request is no longer than twice that.
const ALIGN: u64 = 8;

impl<S: Source> Source for Placed<S> {
    fn next_arrival(&mut self) -> Result<Option<SimTime>, SourceError> {
        self.inner.next_arrival()
    }

    fn take(&mut self) -> Request {
        let mut request = self.inner.take();
        let mut part = request.start.get() as f64 / self.blocks;
        for place in self.places {
            if part < place.share {
                let at = place.from + part / place.share * (place.to - place.from);
                let last = self.blocks - (2 * ALIGN) as f64;
                request.start = VolumeBlock::new((at * last) as u64 / ALIGN * ALIGN);
                break;
            }
            part -= place.share;
        }
        request
    }

    fn completed(&mut self, tag: u64, now: SimTime) {
        self.inner.completed(tag, now);
    }

    fn progress(&self) -> (u64, u64) {
        self.inner.progress()
    }
}

impl Load {
    fn name(&self) -> &'static str {
        let (Self::Clients { name, .. } | Self::Recorded { name }) = self;
        name
    }

    /// Where its recording is; None of a load that needs none.
    fn recording(&self, context: &Context<'_>) -> Result<Option<PathBuf>, String> {
        match self {
            Self::Clients { .. } => Ok(None),
            Self::Recorded { name } => context.recording(name).map(Some),
        }
    }

    fn within(&self) -> f64 {
        match self {
            Self::Clients { within, .. } => *within,
            Self::Recorded { .. } => ON_A_PART,
        }
    }

    /// The whole scan behind it, of at most this many requests, or else an estimate.
    fn scan(
        &self,
        config: &SimConfig,
        recording: Option<&Path>,
        whole: Option<u64>,
    ) -> Result<BackgroundScan, ConfigError> {
        let config = config.clone();
        if let Some(recording) = recording {
            return behind_recorded(config, recording, Rule::Paths, whole, &|_, _| {});
        }
        let Self::Clients { local_share, places, .. } = *self else {
            unreachable!("a recorded load has a recording")
        };
        let kib = Bytes::from_kib;
        let spec =
            PatternSpec { size: kib(8), align: kib(4), local_share, ..PatternSpec::default() };
        let (seed, experiment) = (config.seed, Experiment::new(config)?);
        let blocks = experiment.striping.blocks();
        let pattern = Pattern::new(spec, blocks, seed)
            .map_err(|message| ConfigError::Workload { message })?;
        let think_time = ThinkTime::Constant(SimDuration::from_ms(30));
        let inner = Closed::new(pattern, MPL, think_time, u64::MAX, seed);
        let mut source = Placed { inner, places, blocks: blocks.get() as f64 };
        BackgroundScan::new(&experiment, &mut source, whole)
    }
}

/// A scan behind a recorded load, scaled to the drive.
fn behind_recorded(
    mut config: SimConfig,
    recording: &Path,
    rule: Rule,
    whole: Option<u64>,
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<BackgroundScan, ConfigError> {
    let trace =
        TraceWorkload { file: recording.into(), fit: Fit::Scale, ..TraceWorkload::default() };
    config.workload = Workload::Trace(trace.clone());
    BackgroundScan::trace(&Experiment::new(config)?, &trace, rule, whole, progress)
}

/// Of its first rate a scan may have at most this much left where an estimate of it ends. Assumed: twice
/// what the estimate goes by.
const RATE_LEFT: f64 = 0.02;

/// Parts of what both read at which the times are compared.
const PARTS: [f64; 3] = [0.5, 0.95, 1.0];

pub(super) fn scrub(context: &Context<'_>) -> Result<Outcome, ConfigError> {
    let mut config = transactions(MPL, SIZES, context.seed);
    if let Workload::Closed { requests, .. } = &mut config.workload {
        *requests = 1;
    }
    let quick = context.options.quick;
    let loads = if quick { &LOADS[..1] } else { &LOADS };
    let mut missing = Vec::new();
    let mut there: Vec<(&Load, Option<PathBuf>)> = Vec::new();
    for load in loads {
        match load.recording(context) {
            Ok(recording) => there.push((load, recording)),
            Err(why) => missing.push(not_there(context, load.name(), why)),
        }
    }
    let runs: Vec<(&Load, Option<&Path>, Option<u64>)> = there
        .iter()
        .flat_map(|(load, path)| {
            [Some(REQUESTS), None].map(|whole| (*load, path.as_deref(), whole))
        })
        .collect();
    let scans = context
        .run_all(&runs, |(load, recording, whole)| load.scan(&config, *recording, *whole))?;
    let pairs = there.iter().zip(scans.chunks_exact(2));
    let mut rows: Vec<Row> =
        pairs.flat_map(|((load, _), pair)| rows(context, load, &pair[0], &pair[1])).collect();
    if quick {
        let left_out = LOADS.len() - loads.len();
        let first = rows.remove(0);
        rows.insert(0, first.also(&format!("--quick leaves the other {left_out} loads out")));
    }
    rows.extend(missing);
    Ok(Outcome { rows, figures: Vec::new() })
}

/// Instead of the rows of a recorded load that is not there.
fn not_there(context: &Context<'_>, name: &str, why: String) -> Row {
    context.measured(&format!("{name}: its recording is there"), HOLDS, 0.0).not_run(why)
}

/// The recorded load behind which 24 TB are scanned.
const LARGE: &str = "pgbench-ext4";

/// Parts of 24 TB at which the times are compared, and requests that reach them with some to spare.
const LARGE_PARTS: [f64; 2] = [0.03, 0.06];
const LARGE_REQUESTS: u64 = 2_800_000;
const LARGE_PARTS_QUICK: [f64; 1] = [0.005];
const LARGE_REQUESTS_QUICK: u64 = 200_000;

pub(super) fn large(context: &Context<'_>) -> Result<Outcome, ConfigError> {
    let recording = match context.recording(LARGE) {
        Ok(recording) => recording,
        Err(why) => {
            return Ok(Outcome { rows: vec![not_there(context, LARGE, why)], figures: Vec::new() });
        }
    };
    let mut config = transactions(MPL, SIZES, context.seed);
    config.drive = "exos-x24-24tb".into();
    let (parts, requests) = if context.options.quick {
        (&LARGE_PARTS_QUICK[..], LARGE_REQUESTS_QUICK)
    } else {
        (&LARGE_PARTS[..], LARGE_REQUESTS)
    };
    // Plans of one stop, which take a tenth of the time to find.
    let scan = |whole, progress| {
        behind_recorded(config.clone(), &recording, Rule::Greedy, whole, progress)
    };
    // What takes longest tells how far it is.
    let (whole, estimate) =
        rayon::join(|| scan(Some(requests), context.progress), || scan(None, &|_, _| {}));
    let (whole, estimate) = (whole?, estimate?);
    let mut rows: Vec<Row> =
        parts.iter().map(|&part| row(context, LARGE, ON_A_PART, part, &whole, &estimate)).collect();
    if context.options.quick {
        let first = rows.remove(0);
        rows.insert(0, first.also("--quick leaves out 3 and 6 %"));
    }
    Ok(Outcome { rows, figures: Vec::new() })
}

/// Requests of a whole scan at most: under a load on a part of the drive it has no end.
const REQUESTS: u64 = 1_000_000;

fn rows(
    context: &Context<'_>,
    load: &Load,
    whole: &BackgroundScan,
    estimate: &BackgroundScan,
) -> Vec<Row> {
    let mut rows: Vec<Row> = PARTS
        .map(|part| {
            let read_share = part * whole.read_share().min(estimate.read_share());
            row(context, load.name(), load.within(), read_share, whole, estimate)
        })
        .into();
    // Where the estimate ends first, hardly a block may come after that.
    if let Some(rate) = whole.rate_after(estimate.read_share()) {
        let quantity = format!(
            "{}: rate of the whole scan after the estimate's end, over that at first",
            load.name()
        );
        rows.push(context.row_in(&quantity, "%", [0.0, 100.0 * RATE_LEFT], 100.0 * rate));
    }
    rows
}

/// The times until this much of the drive is read.
fn row(
    context: &Context<'_>,
    load: &str,
    within: f64,
    read_share: f64,
    whole: &BackgroundScan,
    estimate: &BackgroundScan,
) -> Row {
    let seconds = [whole, estimate].map(|scan| scan.seconds_until(read_share));
    let digits = usize::from(read_share < 0.01);
    let quantity = format!(
        "{load}: time until {:.digits$} % are read, estimate over whole scan",
        100.0 * read_share
    );
    let band = [100.0 - within, 100.0 + within];
    let [Some(simulated), Some(estimated)] = seconds else {
        return context.row_in(&quantity, "%", band, f64::NAN);
    };
    let row = context.row_in(&quantity, "%", band, 100.0 * estimated / simulated);
    row.noted(format!(
        "{estimated:.0} s from {} gaps against {simulated:.0} s from {}",
        estimate.gaps(),
        whole.gaps()
    ))
}
