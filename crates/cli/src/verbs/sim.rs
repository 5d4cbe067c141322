//! `freewheel sim`: one experiment, one result.

use std::path::{Path, PathBuf};

use clap::Args;
use freewheel::model::sched::POLICIES;
use freewheel::model::stats::Summary;
use freewheel::sim::config::{ConfigError, Experiment, Observer, SimConfig, Workload, open};
use freewheel::sim::library::{self, DriveError};
use freewheel::sim::log::CompletionLog;
use freewheel::sim::{
    Completion, DriveResult, FreeResult, HeadTime, RefusedWrites, RunResult, Stages,
};
use freewheel::study;
use freewheel::trace::{TraceError, TraceInfo};
use freewheel::units::Bytes;
use serde::Serialize;

use super::drive::DriveIdentity;
use crate::failure::Failure;
use crate::progress::Bars;
use crate::table::Table;
use crate::{file, number, output, reading};

/// Run an experiment: a drive, a policy and a workload from a TOML file
#[derive(Args)]
#[command(after_help = after_help())]
pub struct SimArgs {
    /// The experiment; its keys are those of `freewheel sim --schema`
    #[arg(required_unless_present = "schema")]
    config: Option<PathBuf>,
    /// Override a key of the experiment; may be given several times
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
    /// Seed of every random stream, instead of the experiment's
    #[arg(long, value_parser = super::seed())]
    seed: Option<u64>,
    /// Print one JSON document instead of tables
    #[arg(long)]
    json: bool,
    /// Write a page with the distribution of response times
    #[arg(long, value_name = "F.html")]
    report: Option<PathBuf>,
    /// Write every completion with its stage times
    #[arg(long, value_name = "F.parquet")]
    log: Option<PathBuf>,
    /// Print the JSON Schema of an experiment and do nothing else
    #[arg(long)]
    schema: bool,
}

fn after_help() -> String {
    let mut policies = Table::new("ll");
    for row in POLICIES {
        policies.row([format!("  {}", row.name), row.summary.to_owned()]);
    }
    format!(
        "\
Policies, for `scheduler.policy`:
{policies}
Examples:
  freewheel sim examples/oltp.toml
  freewheel sim examples/oltp.toml --set workload.outstanding=20 --set scheduler.policy=sptf --json"
    )
}

/// The result with all that it depends on.
#[derive(Serialize)]
struct Document<'a> {
    config: &'a SimConfig,
    drive: DriveIdentity,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace: Option<&'a TraceInfo>,
    result: &'a RunResult,
}

impl SimArgs {
    pub fn run(self) -> Result<(), Failure> {
        // Clap lets a missing path pass only with --schema.
        let (Some(path), false) = (&self.config, self.schema) else {
            return output::print(&output::json(&schemars::schema_for!(SimConfig))?);
        };
        if let Some(report) = &self.report {
            file::ensure_writable(report)?;
        }
        let experiment = self.experiment(path).map_err(|error| self.explain(path, error))?;
        let result = self.run_experiment(path, &experiment)?;
        self.write_report(&experiment, &result)?;
        self.print(&experiment, &result)
    }

    fn experiment(&self, path: &Path) -> Result<Experiment, ConfigError> {
        let mut config = SimConfig::load(path, &self.overrides)?;
        config.seed = self.seed.unwrap_or(config.seed);
        if self.log.is_some() {
            config.check_observable()?;
        }
        // A wrong name is known before a long trace is read.
        Experiment::check(&config)?;
        let trace = look_at_trace(&config.workload)?;
        Experiment::with_trace_info(config, trace)
    }

    fn run_experiment(&self, path: &Path, experiment: &Experiment) -> Result<RunResult, Failure> {
        let create = |path: &PathBuf| CompletionLog::create(path, &experiment.config);
        let mut log = self.log.as_ref().map(create).transpose()?;
        let bars = Bars::default();
        let mut observer = log.as_mut().map(|log| |completion: &Completion| log.record(completion));
        let observer = observer.as_mut().map(|observer| observer as Observer<'_>);
        let mut progress = |done, total| bars.set("simulating", done, total);
        let result = experiment
            .run_observed(observer, &mut progress)
            .map_err(|error| self.explain(path, error))?;
        log.map(CompletionLog::finish).transpose()?;
        Ok(result)
    }

    fn write_report(&self, experiment: &Experiment, result: &RunResult) -> Result<(), Failure> {
        let Some(path) = &self.report else { return Ok(()) };
        let page = study::sim_html(&experiment.config, &experiment.spec, result);
        file::write_together(&[(path, &page)])
    }

    fn print(&self, experiment: &Experiment, result: &RunResult) -> Result<(), Failure> {
        if !self.json {
            return output::print(&text(experiment, result)?);
        }
        output::print_document(&Document {
            config: &experiment.config,
            drive: DriveIdentity::new(&experiment.spec, &experiment.drive),
            trace: experiment.trace.as_ref(),
            result,
        })
    }

    /// In an experiment names come from its file, so a wrong one is no wrong use of the command,
    /// unless an override brought it in.
    fn explain(&self, path: &Path, error: ConfigError) -> Failure {
        let names_something = matches!(
            error,
            ConfigError::Parse { .. }
                | ConfigError::Drive(DriveError::Unknown { .. })
                | ConfigError::Policy(_)
                | ConfigError::Format(_)
        );
        let is_override = matches!(error, ConfigError::Override { .. });
        let way_out = way_out(&error);
        let failure = if is_override || names_something && self.overrides_are_to_blame(path) {
            Failure::wrong_use(error)
        } else {
            Failure::failed(error)
        };
        match way_out {
            Some(help) => failure.with_help(help),
            None => failure,
        }
    }

    fn overrides_are_to_blame(&self, path: &Path) -> bool {
        let names_a_drive = |config: SimConfig| library::spec(&config.drive).is_ok();
        !self.overrides.is_empty() && SimConfig::load(path, &[]).is_ok_and(names_a_drive)
    }
}

/// What to do about it in an experiment, where there is something.
fn way_out(error: &ConfigError) -> Option<&'static str> {
    match error {
        ConfigError::Placement(_) => Some(
            "in an experiment: --set drive=NAME, --set workload.fit=wrap, \
             --set workload.fit=scale, or --set workload.device=N",
        ),
        ConfigError::Trace(TraceError::Malformed(_)) => {
            Some("--set workload.lenient=true counts and skips malformed records")
        }
        ConfigError::Trace(TraceError::UnknownFormat { .. }) => {
            Some("in an experiment: --set workload.format=NAME")
        }
        ConfigError::Unordered => Some(
            "one of them alone: --set array.layout=striped --set array.drives=1 and --seed with its \
             seed in the document of --json, for a trace also --set workload.device=N",
        ),
        ConfigError::Parse { .. } => Some("`freewheel sim --schema` prints every key there is"),
        _ => None,
    }
}

fn look_at_trace(workload: &Workload) -> Result<Option<TraceInfo>, ConfigError> {
    let Workload::Trace(trace) = workload else { return Ok(None) };
    Ok(Some(reading::info_without_footprint(&mut open(trace)?)?))
}

fn text(experiment: &Experiment, result: &RunResult) -> Result<String, Failure> {
    let config = toml::to_string(&experiment.config);
    let config = config.map_err(|error| Failure::failed(format!("the experiment: {error}")))?;
    let mut sections = vec![
        config,
        overview(result).to_string(),
        responses(result).to_string(),
        stages(result).to_string(),
    ];
    if let Some(free) = &result.free {
        sections.push(freeblock(free).to_string());
    }
    if !result.drives.is_empty() {
        sections.push(drives(&result.drives));
    }
    let zoned = experiment.spec.zoned.map(|zoned| zoned.kind);
    let cautions = study::shingled_cautions(zoned, result);
    sections.extend(cautions.iter().map(|f| {
        format!(
            "{}
  {}
",
            f.headline, f.detail
        )
    }));
    sections.push(format!("hash {}\n", result.result_hash));
    Ok(sections.join("\n"))
}

fn overview(result: &RunResult) -> Table {
    let (reads, writes) = (result.read_response.count, result.write_response.count);
    let (flushes, trims) = (result.flush_response.count, result.trims);
    let mut counts = format!("{reads} reads, {writes} writes, {flushes} flushes, {trims} trims");
    if result.refused_writes.count > 0 {
        counts += &format!(", {} refused writes", result.refused_writes.count);
    }
    let rate = number::rate(result.bytes_per_second);
    let (mean, max) = (result.outstanding_mean, result.outstanding_max);
    let mut table = Table::new("ll");
    table.row(["requests", &format!("{} ({counts})", result.requests)]);
    if result.refused_writes.count > 0 {
        table.row(["refused", &refusals(&result.refused_writes)]);
    }
    table.row(["elapsed", &number::seconds(result.elapsed_ns)]);
    table.row(["throughput", &format!("{:.1} requests/s, {rate}", result.requests_per_second)]);
    table.row(["utilisation", &number::percent(result.utilisation)]);
    if result.buffer_reads + result.buffer_writes > 0 {
        let (from, to) = (result.buffer_reads, result.buffer_writes);
        let destaging = number::percent(result.destaging);
        table.row(["buffer", &format!("{from} reads from it, {to} writes to it")]);
        table.row(["writing back", &format!("{destaging} of the time")]);
        let left = Bytes::new(result.left_in_buffer_bytes).human();
        table.row(["unwritten", &format!("{left} left in the buffer at the end")]);
    }
    table.row(["outstanding", &format!("mean {mean:.2}, max {max}")]);
    table.row(["longest wait", &number::ms(result.queue_ns_max as f64)]);
    table
}

fn refusals(writes: &RefusedWrites) -> String {
    let RefusedWrites { not_at_write_pointer, over_zone_boundary, zone_full, .. } = writes;
    format!(
        "{not_at_write_pointer} not at the write pointer, {over_zone_boundary} over a zone boundary, {zone_full} to a full zone"
    )
}

fn responses(result: &RunResult) -> Table {
    let mut table = Table::new("lrrrrrrrrr");
    let columns = ["count", "mean", "variation", "p50", "p95", "p99", "p99.9", "p99.99", "max"];
    table.row(std::iter::once("response, ms").chain(columns));
    table.row(response_cells("reads", &result.read_response));
    table.row(response_cells("writes", &result.write_response));
    table.row(response_cells("reads and writes", &result.response));
    if result.flush_response.count > 0 {
        table.row(response_cells("flushes", &result.flush_response));
    }
    table
}

fn response_cells(label: &str, summary: &Summary) -> Vec<String> {
    let &Summary { p50_ns, p95_ns, p99_ns, p999_ns, p9999_ns, max_ns, .. } = summary;
    let tail = [p50_ns, p95_ns, p99_ns, p999_ns, p9999_ns, max_ns];
    // Standard deviation over mean.
    let variation = format!("{:.2}", summary.coefficient_of_variation);
    [label.to_owned(), summary.count.to_string(), number::bare_ms(summary.mean_ns), variation]
        .into_iter()
        .chain(tail.map(|ns| number::bare_ms(ns as f64)))
        .collect()
}

fn stages(result: &RunResult) -> Table {
    let (stages, head): (&Stages, &HeadTime) = (&result.stages, &result.head_time);
    let requests = result.response.count.max(1) as f64;
    let mut table = Table::new("lrr");
    table.row(["stage", "ms a request", "of head time"]);
    let mut row = |label: &str, ns: u128, share: Option<f64>| {
        let mean = number::bare_ms(ns as f64 / requests);
        table.row([label.to_owned(), mean, share.map(number::percent).unwrap_or_default()]);
    };
    row("queue", stages.queue_ns, None);
    row("overhead", stages.overhead_ns, None);
    row("seek", stages.seek_ns, Some(head.seek_share()));
    row("rotate", stages.rotate_ns, Some(head.rotate_share()));
    row("transfer", stages.transfer_ns, Some(head.transfer_share()));
    row("bus", stages.bus_ns, None);
    if result.destaging > 0.0 {
        table.row(["", "", "with what was written back"]);
    }
    table
}

fn freeblock(free: &FreeResult) -> Table {
    let time = &free.time;
    let (achieved, potential) =
        (number::rate(free.bytes_per_second), number::rate(free.potential_bytes_per_second));
    let bytes = |bytes| Bytes::new(bytes).human();
    let share = |name: &str, share| [name.to_owned(), number::percent(share)];
    let mut table = Table::new("ll");
    table.row(["free bandwidth", &format!("{achieved} of {potential}")]);
    let moved = [time.read_bytes, time.write_bytes].map(bytes);
    table.row(["free blocks", &format!("{} read, {} written", moved[0], moved[1])]);
    let (gaps, used, runs) = (time.gaps, time.gaps_used, time.runs);
    table.row(["rotational gaps", &format!("{gaps}, of them {used} used, with {runs} runs")]);
    table.row(share("transferring", free.transfer_share()));
    table.row(share("further seeks", free.extra_seek_share()));
    table.row(share("unused", free.unused_share()));
    let delay = number::ms(time.foreground_delay_ns as f64);
    table.row(["foreground delay", &format!("{delay}, late behind {} gaps", time.gaps_late)]);
    table
}

/// Independent drives in the text.
const DRIVES_SHOWN: usize = 10;

/// Those that worked longest first; of equals the first.
fn drives(all: &[DriveResult]) -> String {
    let busy_ns = |drive: &DriveResult| drive.utilisation * drive.elapsed_ns as f64;
    let mut busiest: Vec<&DriveResult> = all.iter().collect();
    busiest.sort_by(|a, b| busy_ns(b).total_cmp(&busy_ns(a)));
    busiest.truncate(DRIVES_SHOWN);
    let mut table = Table::new("lrrrrr");
    table.row(["drive", "requests", "mean, ms", "p99, ms", "utilisation", "elapsed"]);
    for drive in &busiest {
        let device = drive.device.map(|device| format!(" (device {device})"));
        table.row([
            format!("{}{}", drive.number, device.unwrap_or_default()),
            drive.requests.to_string(),
            number::bare_ms(drive.response_ns_mean),
            number::bare_ms(drive.response_ns_p99 as f64),
            number::percent(drive.utilisation),
            number::seconds(drive.elapsed_ns),
        ]);
    }
    format!("{} of {} independent drives, busiest first\n{table}", busiest.len(), all.len())
}
