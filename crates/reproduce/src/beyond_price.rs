//! What a scan outside the drive costs clients under recorded loads, with the price of a gap and without.

use freewheel_sim::RunResult;
use freewheel_sim::config::{ConfigError, Experiment, SimConfig};
use rayon::prelude::*;

use super::{Context, Outcome, Row, median};

/// Loads, scaled to the drive.
const LOADS: [(&str, &str); 2] = [("pgbench", "pgbench-ext4"), ("sqlite", "sqlite-ext4")];

/// The drive has the smallest buffer of today's, and reads ahead into it.
const DRIVE: &str = "ultrastar-hc310-6tb";

/// Seeds of the seeks' jitter: rows are medians, and notes have all.
const SEEDS: u64 = 3;

/// A budget of 0.5 % of the head's time, and as much for chance: runs of ten minutes differ by that.
const COST: [f64; 2] = [-0.5, 1.0];

/// Three runs with the same jitter.
struct Runs {
    alone: RunResult,
    /// Margins and prices are learned for the budget.
    priced: RunResult,
    /// Constant margins know no budget, so every gap is taken.
    unpriced: RunResult,
}

impl Runs {
    fn new(file: &str, seed: u64) -> Result<Self, ConfigError> {
        let text = format!(
            "drive = \"{DRIVE}\"\nscheduler = {{ policy = \"sptf-sw\" }}\nseed = {seed}\n\
             host = {{ behaviour = {{ seek_jitter = \"50us\" }}, scheduler = {{ off_share = 0 }} }}\n\
             freeblock = {{ rule = \"greedy\", tasks = [{{ block_size = \"64KiB\" }}] }}\n\
             workload = {{ kind = \"trace\", file = {file:?}, fit = \"scale\" }}\n"
        );
        let run = |overrides: &[&str]| {
            let overrides: Vec<String> = overrides.iter().map(|it| (*it).into()).collect();
            Experiment::new(SimConfig::parse(&text, "beyond.price", &overrides)?)?.run()
        };
        Ok(Self {
            alone: run(&["freeblock="])?,
            priced: run(&[])?,
            unpriced: run(&["host.scheduler.conservatism=\"60us\""])?,
        })
    }

    /// Change of the mean response in %, of all requests or of reads.
    fn costs(&self, with: &RunResult) -> [f64; 2] {
        let cost = |new: f64, old: f64| 100.0 * (new / old - 1.0);
        [
            cost(with.response.mean_ns, self.alone.response.mean_ns),
            cost(with.read_response.mean_ns, self.alone.read_response.mean_ns),
        ]
    }
}

fn free_mb_per_second(result: &RunResult) -> f64 {
    result.free.map_or(0.0, |free| free.bytes_per_second / 1e6)
}

pub(super) fn price(context: &Context<'_>) -> Result<Outcome, ConfigError> {
    let seeds = if context.options.quick { 1 } else { SEEDS };
    let loads = if context.options.quick { &LOADS[..1] } else { &LOADS };
    let mut rows = Vec::new();
    for (done, (name, recording)) in loads.iter().enumerate() {
        match context.recording(recording) {
            Ok(path) => rows.extend(rows_of(context, name, &path.display().to_string(), seeds)?),
            Err(why) => rows.push(context.measured(name, "%", 0.0).not_run(why)),
        }
        (context.progress)(done as u64 + 1, loads.len() as u64);
    }
    Ok(Outcome { rows, figures: Vec::new() })
}

fn rows_of(
    context: &Context<'_>,
    name: &str,
    file: &str,
    seeds: u64,
) -> Result<Vec<Row>, ConfigError> {
    let seeds: Vec<u64> = (0..seeds).map(|at| context.seed + at).collect();
    let runs: Vec<Runs> =
        seeds.par_iter().map(|&seed| Runs::new(file, seed)).collect::<Result<_, ConfigError>>()?;
    let of = |value: &dyn Fn(&Runs) -> f64| runs.iter().map(value).collect::<Vec<f64>>();
    let noted = |values: &[f64]| {
        let all: Vec<String> = values.iter().map(|value| format!("{value:.2}")).collect();
        format!("by seed: {}", all.join(", "))
    };
    let row = |quantity: &str, unit: &'static str, band: Option<[f64; 2]>, values: Vec<f64>| {
        let (quantity, note) = (format!("{name}: {quantity}"), noted(&values));
        let row = context.measured(&quantity, unit, median(values));
        band.map_or(row.clone(), |band| row.within(band)).noted(note)
    };
    let lost = |runs: &Runs, with: &RunResult| {
        runs.alone.buffer_reads.saturating_sub(with.buffer_reads) as f64
    };
    Ok(vec![
        row(
            "mean response above, gaps priced",
            "%",
            Some(COST),
            of(&|runs| runs.costs(&runs.priced)[0]),
        ),
        row("mean of reads above, gaps priced", "%", None, of(&|runs| runs.costs(&runs.priced)[1])),
        row("buffer hits lost, gaps priced", "reads", None, of(&|runs| lost(runs, &runs.priced))),
        row(
            "free bandwidth, gaps priced",
            "MB/s",
            None,
            of(&|runs| free_mb_per_second(&runs.priced)),
        ),
        row(
            "mean response above, every gap taken",
            "%",
            None,
            of(&|runs| runs.costs(&runs.unpriced)[0]),
        ),
        row(
            "mean of reads above, every gap taken",
            "%",
            None,
            of(&|runs| runs.costs(&runs.unpriced)[1]),
        ),
        row(
            "buffer hits lost, every gap taken",
            "reads",
            None,
            of(&|runs| lost(runs, &runs.unpriced)),
        ),
        row(
            "free bandwidth, every gap taken",
            "MB/s",
            None,
            of(&|runs| free_mb_per_second(&runs.unpriced)),
        ),
    ])
}
