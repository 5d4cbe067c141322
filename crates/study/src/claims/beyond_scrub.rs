//! The estimate of a scrub's time against whole scans, simulated gap by gap.
//!
//! An estimate of a drive of today cannot be held to a whole scan, which takes weeks of simulated
//! time; the Atlas 10K is the largest drive here of which one takes seconds.

use std::sync::atomic::{AtomicU64, Ordering};

use freewheel_sim::config::{ConfigError, Experiment, Workload};
use freewheel_sim::source::{Closed, Pattern, PatternSpec, Think};
use freewheel_units::{Blocks, Bytes, SimDuration};
use rayon::prelude::*;

use super::osdi00_mining::{MPL, transactions};
use super::{Context, Outcome, Row};
use crate::scrub::ScanBehind;

/// Where the requests of a load lie.
struct Load {
    name: &'static str,
    /// Part of the drive from its beginning on.
    on: f64,
    /// Share of requests near the one before.
    local_share: f64,
    /// What is said of estimates under such a load: within so many percent of the whole scan.
    within: f64,
}

/// What the README says of estimates: within 15 % under random requests, within a factor of two
/// under a load on a part of the drive.
const RANDOM: f64 = 15.0;
const ON_A_PART: f64 = 50.0;

const LOADS: [Load; 3] = [
    Load { name: "random", on: 1.0, local_share: 0.0, within: RANDOM },
    Load { name: "7 of 10 near the one before", on: 1.0, local_share: 0.7, within: RANDOM },
    Load { name: "on a tenth of the drive", on: 0.1, local_share: 0.0, within: ON_A_PART },
];

impl Load {
    fn source(&self, experiment: &Experiment) -> Result<Closed, ConfigError> {
        let kib = Bytes::from_kib;
        let spec = PatternSpec {
            size: kib(8),
            align: kib(4),
            local_share: self.local_share,
            ..PatternSpec::default()
        };
        let blocks = (self.on * experiment.striping.blocks().get() as f64) as u64;
        let seed = experiment.config.seed;
        let pattern = Pattern::new(spec, Blocks::new(blocks), seed)
            .map_err(|message| ConfigError::Workload { message })?;
        let think = Think::Constant(SimDuration::from_ms(30));
        Ok(Closed::new(pattern, MPL, think, u64::MAX, seed))
    }
}

/// Parts of what the whole scan reads at which the times are compared.
const PARTS: [f64; 3] = [0.5, 0.95, 1.0];

pub(super) fn scrub(context: &Context<'_>) -> Result<Outcome, ConfigError> {
    let mut config = transactions(MPL, context.options.seed);
    if let Workload::Closed { requests, .. } = &mut config.workload {
        *requests = 1;
    }
    let experiment = Experiment::new(config)?;
    let loads = if context.options.quick { &LOADS[..1] } else { &LOADS[..] };
    let runs: Vec<(&Load, bool)> =
        loads.iter().flat_map(|load| [(load, true), (load, false)]).collect();
    let done = AtomicU64::new(0);
    let run = |(load, is_whole): &(&Load, bool)| {
        let mut source = load.source(&experiment)?;
        let scan = match is_whole {
            true => ScanBehind::whole(&experiment, &mut source, REQUESTS)?,
            false => ScanBehind::estimated(&experiment, &mut source)?,
        };
        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
        (context.progress)(done, runs.len() as u64);
        Ok(scan)
    };
    let scans: Vec<ScanBehind> = runs.par_iter().map(run).collect::<Result<_, ConfigError>>()?;
    let pairs = loads.iter().zip(scans.chunks_exact(2));
    let rows = pairs.flat_map(|(load, pair)| rows(context, load, &pair[0], &pair[1])).collect();
    Ok(Outcome { rows, figures: Vec::new() })
}

/// Requests of a whole scan at most: under a load on a part of the drive it has no end.
const REQUESTS: u64 = 1_000_000;

fn rows(context: &Context<'_>, load: &Load, whole: &ScanBehind, estimate: &ScanBehind) -> Vec<Row> {
    let row = |part: f64| {
        let read = part * whole.read_share();
        let seconds = [whole, estimate].map(|scan| scan.seconds_until(read));
        let quantity = format!(
            "{}: time until {:.0} % are read, estimate over whole scan",
            load.name,
            100.0 * read
        );
        let band = [100.0 - load.within, 100.0 + load.within];
        let [Some(simulated), Some(estimated)] = seconds else {
            return context.row_in(&quantity, "%", band, f64::NAN);
        };
        let mut row = context.row_in(&quantity, "%", band, 100.0 * estimated / simulated);
        let note = format!(
            "{estimated:.0} s from {} gaps against {simulated:.0} s from {}",
            estimate.gaps(),
            whole.gaps()
        );
        row.note = Some(note).filter(|_| row.inside);
        row
    };
    PARTS.map(row).into()
}
