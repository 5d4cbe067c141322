//! `freewheel sim`: one experiment, one result.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use clap::Args;
use freewheel::experiments::{
    CompletionLog, LINUX_SCHEDULERS, POLICIES, SimDocument, Stopwatch, key_and_value, run_watched,
};
use freewheel::files::FileKind;
use freewheel::measures::{Distribution, Table};
use freewheel::{Error, ErrorKind, Experiment, RunResult, SimConfig, SimReport, TraceInfo};

use crate::failure::{
    Failure, ReadingWords, drive_help, is_not_a_file, trace_help, with_near_file,
};
use crate::progress::Bars;
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
            return Err(self.fault(path, &ErrorKind::ExperimentValue, says));
        }
        let scan = |reader: &mut _| reading::watched(reader, TraceInfo::scan_without_footprint);
        let experiment = Experiment::with_scan(config, scan);
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
        let create = |path: &PathBuf| CompletionLog::create(path, &experiment.config);
        let mut log = self.log.as_ref().map(create).transpose()?;
        let bars = Bars::default();
        // The document is the same on every machine.
        let stopwatch = (!self.json).then_some(stopwatch);
        let mut progress = |done, total| bars.set("simulating", done, total);
        let mut result = run_watched(experiment, log.as_mut(), stopwatch, &mut progress)
            .map_err(|error| self.explain(path, error))?;
        log.map(CompletionLog::finish).transpose()?;
        let mut progress = |done, total| bars.set("simulating other memories", done, total);
        let references = experiment.run_references(&mut progress);
        result.write_back_references =
            references.map_err(|error| self.explain(path, error.into()))?;
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
        let wrong = match error.kind() {
            ErrorKind::Unreadable { wanted: FileKind::Experiment, .. }
            | ErrorKind::NotOfKind { wanted: FileKind::Experiment, .. } => {
                wrong_file_kind::for_an_experiment(path)
            }
            ErrorKind::NotOfKind { wanted: FileKind::Drive, path } => {
                wrong_file_kind::for_a_drive(path)
            }
            _ => None,
        };
        wrong.map_or_else(|| self.fault(path, error.kind(), &error), Failure::from)
    }

    /// An error of this kind, which is about the experiment at `path`.
    fn fault(&self, path: &Path, kind: &ErrorKind, says: impl Display) -> Failure {
        let failure = match key(kind) {
            Some(key) => {
                let origin = Experiment::to_blame(path, &self.overrides);
                Failure::failed(format!("{origin}: {key}{says}"))
            }
            None => Failure::failed(says),
        };
        match way_out(kind) {
            Some(help) => failure.with_help(help),
            None => failure,
        }
    }
}

/// An error of the experiment at `path`, some keys of which are swept.
pub fn explained(path: &Path, error: Error, over: &[String]) -> Failure {
    let keys = over.iter().filter_map(|text| Some(text.split_once('=')?.0.trim()));
    let says = keys.fold(error.to_string(), |says, key| {
        says.replace(&format!("--set {key}="), &format!("--over {key}="))
    });
    let failure = match key(error.kind()) {
        Some(key) => Failure::failed(format!("{}: {key}{says}", path.display())),
        None => Failure::failed(says),
    };
    match way_out(error.kind()) {
        Some(help) => failure.with_help(help),
        None => failure,
    }
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

/// Key of an error that is in a value, where the text lacks it; None of one that names its file itself.
pub fn key(kind: &ErrorKind) -> Option<&'static str> {
    match kind {
        ErrorKind::ExperimentValue => Some(""),
        ErrorKind::Unordered => Some("array: "),
        ErrorKind::UnknownDrive | ErrorKind::Unreadable { wanted: FileKind::Drive, .. } => {
            Some("drive: ")
        }
        ErrorKind::Unreadable { wanted: FileKind::Trace, reason, .. } if is_not_a_file(*reason) => {
            Some("workload: `file`: ")
        }
        ErrorKind::NoTiming | ErrorKind::ObjectsOnly => Some("workload: `file`: "),
        ErrorKind::UnknownPolicy => Some("scheduler: "),
        ErrorKind::UnknownFormat => Some("workload: `format`: "),
        ErrorKind::NoDevice | ErrorKind::TraceTooLarge => Some("workload: "),
        _ => None,
    }
}

/// Folder from which a path of an experiment counts.
const FROM: &str = "in an experiment from its folder, by --set from the folder you are in";

/// Keys that make an experiment read its trace otherwise.
const BY_KEYS: ReadingWords = ReadingWords {
    lenient: "--set workload.lenient=true",
    format: "workload.format",
    before_format: "--set workload.format=",
    before_time_unit: "--set workload.time_unit=",
    addresses: "--set workload.numbers=addresses",
    layer: "workload.layer",
};

/// Way out in an experiment, where there is one.
fn way_out(kind: &ErrorKind) -> Option<String> {
    let known = drive_help(kind, FROM).or_else(|| trace_help(kind, &BY_KEYS));
    known.or_else(|| file_help(kind)).or_else(|| key_help(kind).map(str::to_owned))
}

/// The way out where a file is not there.
fn file_help(kind: &ErrorKind) -> Option<String> {
    match kind {
        ErrorKind::Unreadable { wanted: FileKind::Experiment, path, .. } => Some(with_near_file(
            "give the path of an experiment, from the folder you are in: it is one TOML file, as \
             those in `examples/` of Freewheel's source are, and `freewheel sim --schema` prints \
             every key there is",
            path,
        )),
        ErrorKind::Unreadable { wanted: FileKind::Trace, path, reason }
            if is_not_a_file(*reason) =>
        {
            Some(with_near_file(
                &format!(
                    "give the path of a trace, {FROM}: it is one file, and `freewheel trace formats` \
                     says what can be read"
                ),
                path,
            ))
        }
        _ => None,
    }
}

/// The way out in a key of the experiment.
fn key_help(kind: &ErrorKind) -> Option<&'static str> {
    Some(match kind {
        ErrorKind::NoDevice | ErrorKind::TraceTooLarge => {
            "in an experiment: --set drive=NAME, --set workload.fit=wrap, \
             --set workload.fit=scale, or --set workload.device=N"
        }
        ErrorKind::NotOfKind { wanted: FileKind::Trace, .. } => {
            "`freewheel trace formats` lists them, and --set workload.format=NAME names one of them"
        }
        ErrorKind::Unordered => {
            "one of them alone: --set array.layout=striped --set array.drives=1 and --seed with its \
             seed in the document of --json, for a trace also --set workload.device=N"
        }
        ErrorKind::NotOfKind { wanted: FileKind::Experiment, .. }
        | ErrorKind::ExperimentOverride
        | ErrorKind::ExperimentValue => {
            "`freewheel sim --schema` prints every key with its meaning"
        }
        _ => return None,
    })
}
