//! `freewheel study`: the main job.

use std::io::stdout;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use clap::Args;
use freewheel::drives::DEFAULT_DRIVE;
use freewheel::experiments::{
    DriveFit, Goal, RemainingWork, SCRUB_EFFORT, Stopwatch, StudyProgress, fit_drive,
};
use freewheel::measures::{Distribution, SimDuration};
use freewheel::{PolicySpec, StudyOptions, StudyReport};

use super::trace_args::{CacheDepth, TraceArgs};
use crate::failure::Failure;
use crate::progress::Bars;
use crate::reading::READING;
use crate::standard_input::{self, GivenTrace};
use crate::verbs::choice::{Choice, choice};
use crate::{file, output, terminal};

/// Say what each optimisation would do for a trace on a drive, in one HTML report
#[derive(Args)]
#[command(after_help = "\
Examples:
  freewheel study pgbench.csv.zst
  freewheel study usr_0.csv.gz --drive atlas10k --scale --policy sptf --policy asatf:0.01")]
pub struct StudyArgs {
    #[command(flatten)]
    replayed: TraceArgs,
    /// Name of a shipped drive (see `freewheel drive list`), or path of a drive file. Given again, the
    /// report has the other drives beside the first
    #[arg(long = "drive", value_name = "NAME", default_value = DEFAULT_DRIVE)]
    drives: Vec<String>,
    /// Policies to compare, beside FCFS, as sptf or look,sptf-sw:40%; all there are if none is given
    #[arg(long = "policy", value_name = "POLICY", value_delimiter = ',')]
    policies: Vec<PolicySpec>,
    /// Do not estimate how long a scrub takes in the rotational gaps: it is most of a study's time
    #[arg(long)]
    no_scrub: bool,
    /// Processor time that the estimate of a scrub may take, as 15s or 5min: more makes its error
    /// smaller. It is counted as work, with the time that takes on one core of a server of the 2020s, so
    /// the result is the same on every machine
    #[arg(long, value_name = "TIME", default_value_t = SCRUB_EFFORT, conflicts_with = "no_scrub")]
    scrub_effort: SimDuration,
    /// Do not try what would help: caches, prefetching, write buffers, queue depths and stripes
    #[arg(long)]
    no_changes: bool,
    /// Goal by which changes are ranked
    #[arg(long, value_parser = choice(GOALS), default_value = "mean", conflicts_with = "no_changes")]
    goal: Goal,
    #[command(flatten)]
    depth: CacheDepth,
    /// Fit the drive to the responses that the trace records first: seek times, speed, command overhead and
    /// whether the write cache is off. Half of the first 60,000 requests is fitted, the other half says how good
    /// it is. Where the fit is used, its file is fitted-drive.toml beside the report
    #[arg(long)]
    fit: bool,
    /// Write the experiment of today's system and of each change into this folder, for `freewheel sim`
    #[arg(long, value_name = "DIR", conflicts_with = "no_changes")]
    configs: Option<PathBuf>,
    /// Folder for report.html and report.json [default: out/<name of the trace>, and after a `-` that
    /// of the drive if one is given]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the JSON document instead of the findings
    #[arg(long)]
    json: bool,
}

/// Goals by which changes can be ranked.
pub const GOALS: &[Choice<Goal>] = &[
    ("mean", Goal::Mean, "The mean response of reads and writes"),
    ("p99-reads", Goal::P99Reads, "The 99th percentile of the responses of reads"),
    (
        "throughput",
        Goal::Throughput,
        "The drive time a request: a drive that needs less serves more requests",
    ),
];

impl StudyArgs {
    pub fn run(self) -> Result<(), Failure> {
        self.replayed.check()?;
        if self.configs.is_some() && standard_input::is_meant(&self.replayed.trace) {
            return Err(Failure::wrong_use(
                "--configs does not go with a trace from standard input",
            )
            .with_help("write the trace to a file, which the experiments can name"));
        }
        let drives = &self.drives;
        let folder = self.out.clone().unwrap_or_else(|| self.replayed.default_folder(drives));
        file::ensure_writable_folder(&folder)?;
        self.configs.iter().try_for_each(|folder| file::ensure_writable_folder(folder))?;
        if self.fit {
            let fitted = folder.join(FITTED_DRIVE);
            let read = drives.iter().map(Path::new).chain([self.replayed.trace.as_path()]);
            read.into_iter().try_for_each(|read| file::ensure_not_read(&fitted, read))?;
            // That of an earlier study must not lie beside a report that does not use it.
            file::remove_if_there(&fitted)?;
        }
        let stopwatch = Stopwatch::default();
        let trace = GivenTrace::new(&self.replayed.trace)?;
        let study = self
            .study(trace.path(), &folder, &stopwatch)
            .map_err(|failure| trace.naming(failure))?;
        let page = folder.join("report.html");
        let json = output::json(&study)?;
        let files = [(page.as_path(), &*study.html()), (&folder.join("report.json"), &*json)];
        file::in_new_folder(&folder, || file::write_together(&files))?;
        if let Some(folder) = self.configs.as_ref().filter(|_| study.study.changes.is_none()) {
            let folder = folder.display();
            output::aside(&format!("no experiment was written to {folder}: no change was tried"));
        } else if let Some(folder) = &self.configs {
            let configs = configs(&study, folder)?;
            let files: Vec<(&Path, &str)> =
                configs.iter().map(|(path, text)| (path.as_path(), text.as_str())).collect();
            file::in_new_folder(folder, || file::write_together(&files))?;
        }
        if self.json {
            output::print(&json)
        } else {
            output::print_prose(&text(&study, &stopwatch.times(), &page))
        }
    }

    fn study(
        &self,
        trace: &Path,
        folder: &Path,
        stopwatch: &Stopwatch,
    ) -> Result<StudyReport, Failure> {
        let bars = Bars::default();
        let remaining = Mutex::new(RemainingWork::default());
        let show = |progress: StudyProgress| match progress {
            StudyProgress::Reading(bytes) => bars.set(READING, bytes.done, bytes.total),
            StudyProgress::Fitting(drives) => {
                bars.set("fit of the drive", drives.done, drives.total)
            }
            StudyProgress::Working(work) => {
                bars.finish(READING);
                let mut remaining = remaining.lock().unwrap_or_else(PoisonError::into_inner);
                bars.time("study", |taken| remaining.after(taken, work));
            }
        };
        let mut options = self.options(trace);
        if self.fit {
            let fit = fit_drive(&options, &show)?;
            if fit.is_used() {
                options.drive = drive_file(&fit, folder)?;
            }
            options.fitted = Some(fit);
        }
        let study = freewheel::study(&options, Some(stopwatch), &show);
        if study.is_err() {
            file::remove_if_there(&folder.join(FITTED_DRIVE))?;
        }
        Ok(study?)
    }

    fn options(&self, trace: &Path) -> StudyOptions {
        let trace = self.replayed.workload(trace);
        let mut options = StudyOptions::new(trace, &self.drives[0]);
        options.beside = self.drives[1..].to_vec();
        options.seed = self.replayed.seed;
        options.electronics = !self.replayed.no_electronics;
        options.scrub = !self.no_scrub;
        options.changes = !self.no_changes;
        options.goal = self.goal;
        options.cache_depth = self.depth.cache_depth;
        options.scrub_effort = self.scrub_effort;
        if !self.policies.is_empty() {
            options.policies = self.policies.clone();
        }
        options
    }
}

/// The file of a fitted drive, in the folder of the report.
const FITTED_DRIVE: &str = "fitted-drive.toml";

/// Writes the fitted drive into the folder of the report.
fn drive_file(fit: &DriveFit, folder: &Path) -> Result<String, Failure> {
    let toml = toml::to_string(&fit.spec)
        .map_err(|error| Failure::failed(format!("the fitted drive: {error}")))?;
    let path = folder.join(FITTED_DRIVE);
    file::in_new_folder(folder, || file::write_together(&[(&path, &toml)]))?;
    Ok(path.display().to_string())
}

/// The experiments of a study as files: of the system as it is, of each change in order of gain, and of the best
/// together.
fn configs(report: &StudyReport, folder: &Path) -> Result<Vec<(PathBuf, String)>, Failure> {
    let experiments = report.study.experiments();
    let here = std::env::current_dir().map_err(Failure::failed)?;
    let written = experiments.iter().enumerate().map(|(number, (title, config))| {
        let mut config = config.clone();
        config.start_paths_at(&here);
        let text = toml::to_string(&config)
            .map_err(|error| Failure::failed(format!("the experiment: {error}")))?;
        Ok((name(number, title, folder), format!("# {title}\n{text}")))
    });
    written.collect()
}

fn name(number: usize, title: &str, folder: &Path) -> PathBuf {
    let words: String = title
        .to_lowercase()
        .chars()
        .map(|letter| if letter.is_alphanumeric() { letter } else { '-' })
        .collect();
    let words: Vec<&str> = words.split('-').filter(|word| !word.is_empty()).collect();
    folder.join(format!("{number:02}-{}.toml", words.join("-")))
}

fn text(report: &StudyReport, decisions: &Distribution, page: &Path) -> String {
    let findings =
        if terminal::has_colours(&stdout()) { report.coloured_text() } else { report.text() };
    let decisions = report.decisions_text(decisions).map_or(String::new(), |line| line + "\n");
    format!("{findings}{decisions}report: {}\n", page.display())
}
