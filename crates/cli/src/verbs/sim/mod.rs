//! `freewheel sim`: one experiment, one result.

mod text;

use std::path::{Path, PathBuf};

use clap::Args;
use freewheel::freeblock::Timer;
use freewheel::live::stopwatch::Stopwatch;
use freewheel::model::sched::POLICIES;
use freewheel::model::stats::Distribution;
use freewheel::report;
use freewheel::sim::config::{
    ConfigError, Experiment, Observer, SimConfig, Workload, key_and_value, open,
};
use freewheel::sim::library::DriveError;
use freewheel::sim::log::CompletionLog;
use freewheel::sim::{Completion, RunResult};
use freewheel::study::FreeWork;
use freewheel::trace::{TraceError, TraceInfo};
use serde::Serialize;

use crate::failure::{
    EMPTY_HELP, Failure, NO_TIMING_HELP, damaged_help, drive_help, is_not_a_file, malformed_help,
    with_near_file,
};
use crate::progress::Bars;
use crate::table::Table;
use crate::verbs::drive::DriveIdentity;
use crate::{file, output, reading, wrong_file_kind};

/// Run an experiment: a drive, a policy and a workload from a TOML file
#[derive(Args)]
#[command(after_help = after_help())]
pub struct SimArgs {
    /// The experiment; its keys are those of `freewheel sim --schema`
    #[arg(required_unless_present = "schema")]
    config: Option<PathBuf>,
    /// Override a key of the experiment; may be given several times. KEY= removes the key, so that its
    /// default holds. Another scheduler.policy removes the parameters of the one it replaces. A path
    /// in the experiment counts from its folder, one given here from the folder you are in
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = override_text)]
    overrides: Vec<String>,
    /// Seed of every random stream, instead of the experiment's
    #[arg(long, value_parser = crate::verbs::seed)]
    seed: Option<u64>,
    /// Print one JSON document instead of tables
    #[arg(long)]
    json: bool,
    /// Write a page: head time, response times, and what became of free work
    #[arg(long, value_name = "F.html")]
    report: Option<PathBuf>,
    /// Write every completion with its stage times
    #[arg(long, value_name = "F.parquet", value_parser = parquet)]
    log: Option<PathBuf>,
    /// Print the JSON Schema of an experiment only
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
  freewheel sim examples/oltp.toml --set workload.outstanding=20 --set scheduler.policy=sptf --json
  freewheel sim examples/scan.toml --json | jq '.result.free_work.tasks[0].rounds_a_day'"
    )
}

/// The result with all that it depends on.
#[derive(Serialize)]
struct Document<'a> {
    config: &'a SimConfig,
    drive: DriveIdentity,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace: Option<&'a TraceInfo>,
    result: ResultDocument<'a>,
}

/// What came of the run; of free work also what its sums say.
#[derive(Serialize)]
struct ResultDocument<'a> {
    #[serde(flatten)]
    run: &'a RunResult,
    #[serde(skip_serializing_if = "Option::is_none")]
    free_work: Option<FreeWork>,
}

impl SimArgs {
    pub fn run(self) -> Result<(), Failure> {
        // Clap lets a missing path pass only with --schema.
        let (Some(path), false) = (&self.config, self.schema) else {
            return output::print(&output::json(&schemars::schema_for!(SimConfig))?);
        };
        file::ensure_utf_8(path)?;
        for output in self.report.iter().chain(&self.log) {
            file::ensure_not_read(output, path)?;
        }
        if let Some(report) = &self.report {
            file::ensure_writable(report)?;
        }
        let experiment = self.experiment(path).map_err(|error| self.explain(path, error))?;
        let trace = match &experiment.config.workload {
            Workload::Trace(trace) => Some(&*trace.file),
            _ => None,
        };
        for output in self.report.iter().chain(&self.log) {
            for read in trace.into_iter().chain([Path::new(&experiment.config.drive)]) {
                file::ensure_not_read(output, read)?;
            }
        }
        let stopwatch = Stopwatch::default();
        let result = self.run_experiment(path, &experiment, &stopwatch)?;
        self.write_report(&experiment, &result)?;
        self.print(&experiment, &result, &stopwatch.times())
    }

    fn experiment(&self, path: &Path) -> Result<Experiment, ConfigError> {
        let mut config = SimConfig::load(path, &self.overrides)?;
        config.seed = self.seed.unwrap_or(config.seed);
        if self.log.is_some() {
            config.check_observable()?;
        }
        if let Workload::Trace(trace) = &config.workload {
            check_rereadable(&trace.file)?;
        }
        // A wrong name is known before a long trace is read.
        Experiment::check(&config)?;
        let trace = look_at_trace(&config.workload)?;
        Experiment::with_trace_info(config, trace)
    }

    fn run_experiment(
        &self,
        path: &Path,
        experiment: &Experiment,
        stopwatch: &Stopwatch,
    ) -> Result<RunResult, Failure> {
        let create = |path: &PathBuf| CompletionLog::create(path, &experiment.config);
        let mut log = self.log.as_ref().map(create).transpose()?;
        let bars = Bars::default();
        let mut observer = log.as_mut().map(|log| |completion: &Completion| log.record(completion));
        let observer = observer.as_mut().map(|observer| observer as Observer<'_>);
        // The document is the same on every machine.
        let around = |decide: &mut dyn FnMut()| stopwatch.time(decide);
        let around = (!self.json).then_some(&around as Timer<'_>);
        let mut progress = |done, total| bars.set("simulating", done, total);
        let mut result = experiment
            .run_watched(observer, around, &mut progress)
            .map_err(|error| self.explain(path, error))?;
        log.map(CompletionLog::finish).transpose()?;
        let mut progress = |done, total| bars.set("simulating other memories", done, total);
        let references = experiment.run_references(&mut progress);
        result.write_back_references = references.map_err(|error| self.explain(path, error))?;
        Ok(result)
    }

    fn write_report(&self, experiment: &Experiment, result: &RunResult) -> Result<(), Failure> {
        let Some(path) = &self.report else { return Ok(()) };
        let page = report::sim_html(&experiment.config, &experiment.spec, result);
        file::write_together(&[(path, &page)])
    }

    fn print(
        &self,
        experiment: &Experiment,
        result: &RunResult,
        decisions: &Distribution,
    ) -> Result<(), Failure> {
        if !self.json {
            return output::print(&text::text(experiment, result, decisions)?);
        }
        output::print_document(&Document {
            config: &experiment.config,
            drive: DriveIdentity::new(&experiment.spec, &experiment.drive),
            trace: experiment.trace.as_ref(),
            result: ResultDocument { run: result, free_work: FreeWork::new(result) },
        })
    }

    /// The error of an experiment, after the file or the overrides that it is in. Exit code 1 in both cases:
    /// the command was understood.
    fn explain(&self, path: &Path, error: ConfigError) -> Failure {
        if let ConfigError::Read { .. } | ConfigError::Parse { .. } = error
            && let Some(failure) = wrong_file_kind::for_an_experiment(path)
        {
            return failure;
        }
        if let ConfigError::Drive(DriveError::Parse { origin, .. }) = &error
            && let Some(failure) = wrong_file_kind::for_a_drive(Path::new(origin))
        {
            return failure;
        }
        let help = way_out(&error);
        let failure = match key(&error) {
            Some(key) => {
                let origin = Experiment::to_blame(path, &self.overrides);
                Failure::failed(format!("{origin}: {key}{error}"))
            }
            None => Failure::failed(error),
        };
        match help {
            Some(help) => failure.with_help(help),
            None => failure,
        }
    }
}

/// A name for a file in the one form that a log has.
fn parquet(text: &str) -> Result<PathBuf, String> {
    match Path::new(text).extension() {
        Some(ending) if ending == "parquet" => Ok(text.into()),
        _ => Err("a log is written as Parquet: give a name that ends in .parquet, which DuckDB, Polars and \
                  pandas read and make CSV of"
            .into()),
    }
}

fn override_text(text: &str) -> Result<String, String> {
    key_and_value(text).map(|_| text.to_owned())
}

/// What its text lacks of the key it is about, of an error that is in a value; None of one that
/// names its file itself.
fn key(error: &ConfigError) -> Option<&'static str> {
    match error {
        ConfigError::Array { .. }
        | ConfigError::Freeblock { .. }
        | ConfigError::PredictiveScheduler { .. }
        | ConfigError::QueueDepth { .. }
        | ConfigError::Workload { .. } => Some(""),
        ConfigError::Unordered => Some("array: "),
        ConfigError::Drive(DriveError::Unknown { .. } | DriveError::Read { .. }) => Some("drive: "),
        ConfigError::Trace(TraceError::Io { source, .. }) if is_not_a_file(source) => {
            Some("workload: `file`: ")
        }
        ConfigError::NoTiming { .. } => Some("workload: `file`: "),
        ConfigError::Policy(_) => Some("scheduler: "),
        ConfigError::Format(_) => Some("workload: `format`: "),
        ConfigError::Placement(_) => Some("workload: "),
        ConfigError::Read { .. }
        | ConfigError::Parse { .. }
        | ConfigError::Override { .. }
        | ConfigError::Drive(_)
        | ConfigError::Trace(_) => None,
    }
}

/// Where a path counts from that belongs to an experiment.
const FROM: &str = "in an experiment from its folder, by --set from the folder you are in";

/// What to do about it in an experiment, where there is something.
fn way_out(error: &ConfigError) -> Option<String> {
    let help = match error {
        ConfigError::Drive(error) => return drive_help(error, FROM),
        ConfigError::Read { path, source } => {
            return Some(with_near_file(
                "give the path of an experiment, from the folder you are in: it is one TOML file, as \
                 those in `examples/` of Freewheel's source are, and `freewheel sim --schema` prints \
                 every key there is",
                path,
                source,
            ));
        }
        ConfigError::Trace(TraceError::Io { file, source }) if is_not_a_file(source) => {
            return Some(with_near_file(
                &format!(
                    "give the path of a trace, {FROM}: it is one file, and `freewheel trace formats` \
                     says what can be read"
                ),
                Path::new(file),
                source,
            ));
        }
        ConfigError::Placement(_) => Some(
            "in an experiment: --set drive=NAME, --set workload.fit=wrap, \
             --set workload.fit=scale, or --set workload.device=N",
        ),
        ConfigError::Trace(TraceError::Malformed(malformed)) => {
            return Some(malformed_help(
                malformed,
                "--set workload.lenient=true",
                "workload.format",
            ));
        }
        ConfigError::Trace(TraceError::Damaged(damaged)) => {
            return Some(damaged_help(damaged, "--set workload.lenient=true"));
        }
        ConfigError::Trace(TraceError::Empty { .. }) => Some(EMPTY_HELP),
        ConfigError::Trace(TraceError::UncertainFormat { choices: [first, second], .. }) => {
            return Some(format!(
                "name it: --set workload.format={first}, or --set workload.format={second}"
            ));
        }
        ConfigError::NoTiming { .. } => Some(NO_TIMING_HELP),
        ConfigError::Trace(TraceError::UnknownFormat { .. }) => {
            Some("if it is one of these, name it: --set workload.format=NAME")
        }
        ConfigError::Unordered => Some(
            "one of them alone: --set array.layout=striped --set array.drives=1 and --seed with its \
             seed in the document of --json, for a trace also --set workload.device=N",
        ),
        ConfigError::Parse { .. }
        | ConfigError::Override { .. }
        | ConfigError::Array { .. }
        | ConfigError::Freeblock { .. }
        | ConfigError::PredictiveScheduler { .. }
        | ConfigError::QueueDepth { .. }
        | ConfigError::Workload { .. } => {
            Some("`freewheel sim --schema` prints every key with its meaning")
        }
        _ => None,
    };
    help.map(str::to_owned)
}

/// Err for a pipe in place of a trace: it is read more than once.
fn check_rereadable(path: &Path) -> Result<(), ConfigError> {
    file::check_rereadable(path).map_err(|message| ConfigError::Workload { message })
}

fn look_at_trace(workload: &Workload) -> Result<Option<TraceInfo>, ConfigError> {
    let Workload::Trace(trace) = workload else { return Ok(None) };
    Ok(Some(reading::info_without_footprint(&mut open(trace)?)?))
}
