//! What a scan outside the drive costs clients under recorded loads, with the price of a gap and without.

use freewheel_sim::RunResult;
use freewheel_sim::config::{ConfigError, SimConfig};
use freewheel_sim::experiment::Experiment;

use super::{Context, Outcome, Row};

/// Loads, scaled to the drive.
const LOADS: [(&str, &str); 2] = [("pgbench", "pgbench-ext4"), ("sqlite", "sqlite-ext4")];

/// The drive has the smallest buffer of today's, and reads ahead into it.
const DRIVE: &str = "ultrastar-hc310-6tb";

/// A budget of 0.5 % of the head's time, and as much for chance: runs of ten minutes differ by that.
const COST: [f64; 2] = [-0.5, 1.0];

/// Three runs with the same jitter.
struct PriceRuns {
    alone: RunResult,
    /// Margins and prices are learned for the budget.
    priced: RunResult,
    /// Constant margins know no budget, so every gap is taken.
    unpriced: RunResult,
}

impl PriceRuns {
    fn new(file: &str, seed: u64) -> Result<Self, ConfigError> {
        let text = format!(
            "drive = \"{DRIVE}\"\nscheduler = {{ policy = \"sptf-sw\" }}\nseed = {seed}\n\
             host = {{ behaviour = {{ seek_jitter = \"50us\" }}, scheduler = {{ off_share = 0 }} }}\n\
             freeblock = {{ rule = \"greedy\", tasks = [{{ block_size = \"64KiB\" }}] }}\n\
             workload = {{ kind = \"trace\", file = {file:?}, fit = \"scale\" }}\n"
        );
        Ok(Self {
            alone: run(&["freeblock="], &text)?,
            priced: run(&[], &text)?,
            unpriced: run(&["host.scheduler.conservatism=\"60us\""], &text)?,
        })
    }

    /// Change of the mean response in %, of all requests or of reads.
    fn costs(&self, with: &RunResult) -> [f64; 2] {
        [
            cost(with.response.mean_ns, self.alone.response.mean_ns),
            cost(with.read_response.mean_ns, self.alone.read_response.mean_ns),
        ]
    }
}

fn run(overrides: &[&str], text: &str) -> Result<RunResult, ConfigError> {
    let overrides: Vec<String> = overrides.iter().map(|it| (*it).into()).collect();
    Experiment::new(SimConfig::parse(text, "beyond.price", &overrides)?)?.run()
}

fn cost(new: f64, old: f64) -> f64 {
    100.0 * (new / old - 1.0)
}

fn free_mb_per_second(result: &RunResult) -> f64 {
    result.free.map_or(0.0, |free| free.bytes_per_second / 1e6)
}

pub(super) fn price(context: &Context<'_>) -> Result<Outcome, ConfigError> {
    let loads = if context.options.quick { &LOADS[..1] } else { &LOADS };
    let mut rows = Vec::new();
    for (name, recording) in loads {
        match context.recording(recording) {
            Ok(path) => rows.extend(rows_of(context, name, &path.display().to_string())?),
            Err(why) => rows.push(context.measured(name, "%", 0.0).not_run(why)),
        }
        (context.progress)(1, loads.len() as u64);
    }
    Ok(Outcome { rows, figures: Vec::new() })
}

fn rows_of(context: &Context<'_>, name: &str, file: &str) -> Result<Vec<Row>, ConfigError> {
    let runs = PriceRuns::new(file, context.seed)?;
    let mut rows = Vec::new();
    for (with, what) in [(&runs.priced, "gaps priced"), (&runs.unpriced, "every gap taken")] {
        let [all, reads] = runs.costs(with);
        let lost = runs.alone.buffer_reads.saturating_sub(with.buffer_reads) as f64;
        let mean = measured(context, (name, what), "mean response above", "%", all);
        rows.push(if what == "gaps priced" { mean.within(COST) } else { mean });
        rows.push(measured(context, (name, what), "mean of reads above", "%", reads));
        rows.push(measured(context, (name, what), "buffer hits lost", "reads", lost));
        rows.push(measured(
            context,
            (name, what),
            "free bandwidth",
            "MB/s",
            free_mb_per_second(with),
        ));
    }
    Ok(rows)
}

fn measured(
    context: &Context<'_>,
    (name, what): (&str, &str),
    quantity: &str,
    unit: &'static str,
    ours: f64,
) -> Row {
    context.measured(&format!("{name}: {quantity}, {what}"), unit, ours)
}
