//! `freewheel sim`: one experiment, one result.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use clap::Args;
use freewheel::experiments::{
    CompletionLog, LINUX_SCHEDULERS, POLICIES, SimDocument, Stopwatch, key_and_value, run_watched,
};
use freewheel::measures::{Distribution, Table};
use freewheel::{
    Error, ErrorKind, Experiment, RunResult, SimConfig, SimReport, Surface, TraceInfo,
};

use crate::failure::Failure;
use crate::progress::Bars;
use crate::{file, output, reading};

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
    for row in POLICIES.iter().chain(LINUX_SCHEDULERS) {
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
        let config = self.config(path).map_err(|error| self.explain(path, error))?;
        let traces = config.trace_files();
        if let Some(says) = traces.into_iter().find_map(|file| file::check_rereadable(file).err()) {
            let says = format!("workload: {says}");
            let kind = ErrorKind::ExperimentValue;
            return Err(self.fault(path, kind.key(), says).helped(kind.help(Surface::Experiment)));
        }
        let experiment = Experiment::with_scan(config, |reader| {
            reading::watched(reader, TraceInfo::scan_without_footprint)
        });
        let experiment = experiment.map_err(|error| self.explain(path, error.into()))?;
        let traces = experiment.config.trace_files();
        for output in self.report.iter().chain(&self.log) {
            for &read in traces.iter().chain([&Path::new(&experiment.config.drive)]) {
                file::ensure_not_read(output, read)?;
            }
        }
        let stopwatch = Stopwatch::default();
        let result = self.run_experiment(path, &experiment, &stopwatch)?;
        self.write_report(&experiment, &result)?;
        self.print(&experiment, &result, &stopwatch.times())
    }

    fn config(&self, path: &Path) -> Result<SimConfig, Error> {
        let mut config = SimConfig::load(path, &self.overrides)?;
        config.seed = self.seed.unwrap_or(config.seed);
        if self.log.is_some() {
            config.check_observable()?;
        }
        Ok(config)
    }

    fn run_experiment(
        &self,
        path: &Path,
        experiment: &Experiment,
        stopwatch: &Stopwatch,
    ) -> Result<RunResult, Failure> {
        let mut log = self
            .log
            .as_ref()
            .map(|path| CompletionLog::create(path, &experiment.config))
            .transpose()?;
        let bars = Bars::default();
        // The document is the same on every machine.
        let stopwatch = (!self.json).then_some(stopwatch);
        let mut result = run_watched(experiment, log.as_mut(), stopwatch, &mut |done, total| {
            bars.set("simulating", done, total)
        })
        .map_err(|error| self.explain(path, error))?;
        log.map(CompletionLog::finish).transpose()?;
        let mut progress = |done, total| bars.set("simulating other arrivals", done, total);
        let other = experiment.run_other_times(&mut progress);
        result.other_times = other.map_err(|error| self.explain(path, error.into()))?;
        Ok(result)
    }

    fn write_report(&self, experiment: &Experiment, result: &RunResult) -> Result<(), Failure> {
        let Some(path) = &self.report else { return Ok(()) };
        file::write_together(&[(path, &SimReport::new(experiment, result).html())])
    }

    fn print(
        &self,
        experiment: &Experiment,
        result: &RunResult,
        decisions: &Distribution,
    ) -> Result<(), Failure> {
        if !self.json {
            let text = SimReport::new(experiment, result).text(decisions);
            return output::print(
                &text.map_err(|error| Failure::failed(format!("the experiment: {error}")))?,
            );
        }
        output::print_document(&SimDocument::new(experiment, result))
    }

    /// The error of an experiment, after the file or the overrides that it is in. Exit code 1 in both cases:
    /// the command was understood.
    fn explain(&self, path: &Path, error: Error) -> Failure {
        let help = error.help(Surface::Experiment);
        self.fault(path, error.key(), &error).helped(help)
    }

    /// A message about the experiment at `path`, with the key where the text lacks it.
    fn fault(&self, path: &Path, key: Option<&str>, says: impl Display) -> Failure {
        match key {
            Some(key) => {
                let origin = Experiment::to_blame(path, &self.overrides);
                Failure::failed(format!("{origin}: {key}{says}"))
            }
            None => Failure::failed(says),
        }
    }
}

/// An error of the experiment at `path`, some keys of which are swept.
pub fn explained(path: &Path, error: Error, over: &[String]) -> Failure {
    let keys = over.iter().filter_map(|text| Some(text.split_once('=')?.0.trim()));
    let says = keys.fold(error.to_string(), |says, key| {
        says.replace(&format!("--set {key}="), &format!("--over {key}="))
    });
    let failure = match error.key() {
        Some(key) => Failure::failed(format!("{}: {key}{says}", path.display())),
        None => Failure::failed(says),
    };
    failure.helped(error.help(Surface::Experiment))
}

/// A name for a file in the one form that tables have.
pub fn parquet(text: &str) -> Result<PathBuf, String> {
    match Path::new(text).extension() {
        Some(ending) if ending == "parquet" => Ok(text.into()),
        _ => Err("the table is written as Parquet: give a name that ends in .parquet, which DuckDB, Polars and \
                  pandas read and make CSV of"
            .into()),
    }
}

pub fn override_text(text: &str) -> Result<String, String> {
    key_and_value(text).map(|_| text.to_owned())
}
