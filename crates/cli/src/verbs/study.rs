//! `freewheel study`: the main job.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use freewheel::drives::DEFAULT_DRIVE;
use freewheel::experiments::{
    Fit, ReplayMode, SCRUB_EFFORT, Stopwatch, StudyProgress, TraceWorkload,
};
use freewheel::measures::{Distribution, SimDuration};
use freewheel::traces::Format;
use freewheel::{PolicySpec, StudyOptions, StudyReport};

use crate::failure::Failure;
use crate::progress::Bars;
use crate::reading::READING;
use crate::standard_input::{self, GivenTrace};
use crate::{file, number, output};

/// Say what each optimisation would do for a trace on a drive, in one HTML report
#[derive(Args)]
#[command(after_help = "\
Examples:
  freewheel study pgbench.csv.zst
  freewheel study usr_0.csv.gz --drive atlas10k --scale --policy sptf --policy asatf:0.01")]
pub struct StudyArgs {
    /// The trace, or - for standard input; .gz and .zst are read as they are
    trace: PathBuf,
    /// Name of a shipped drive (see `freewheel drive list`), or path of a drive file
    #[arg(long, value_name = "NAME", default_value = DEFAULT_DRIVE)]
    drive: String,
    /// Format of the trace (see `freewheel trace formats`); recognised by its contents if not given
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
    /// Count and skip malformed records, and read a damaged .gz or .zst up to the damage, instead of
    /// stopping there
    #[arg(long)]
    lenient: bool,
    /// Only this device of the trace; all of them laid end to end if not given
    #[arg(long, value_name = "N", value_parser = crate::verbs::device)]
    device: Option<u32>,
    /// Fold addresses past the end of the drive back to its start
    #[arg(long, conflicts_with = "scale")]
    wrap: bool,
    /// Spread the trace's addresses over the whole drive, or squeeze them onto it
    #[arg(long)]
    scale: bool,
    /// Leave out the drive's buffer, command queue, overheads and bus
    #[arg(long)]
    no_electronics: bool,
    /// How arrivals are timed
    #[arg(long, value_enum, default_value_t = Replay::Auto)]
    replay: Replay,
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
    /// Seed of every random stream
    #[arg(long, default_value_t = 1, value_parser = super::seed)]
    seed: u64,
    /// Folder for report.html and report.json [default: out/<name of the trace>, and after a `-` that
    /// of the drive if one is given]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the JSON document instead of the findings
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
pub(super) enum Replay {
    /// Dependent where the trace records completions of more than 99 % of its requests, else by arrival
    Auto,
    /// At the traced times
    Arrivals,
    /// A think time after the request each one waited for
    Dependent,
}

impl From<Replay> for ReplayMode {
    fn from(replay: Replay) -> Self {
        match replay {
            Replay::Auto => Self::Auto,
            Replay::Arrivals => Self::Arrivals,
            Replay::Dependent => Self::Dependent,
        }
    }
}

impl StudyArgs {
    pub fn run(self) -> Result<(), Failure> {
        file::ensure_utf_8(&self.trace)?;
        file::check_rereadable(&self.trace).map_err(Failure::failed)?;
        let folder = self.out.clone().unwrap_or_else(|| default_folder(&self.trace, &self.drive));
        file::ensure_writable_folder(&folder)?;
        let stopwatch = Stopwatch::default();
        let trace = GivenTrace::new(&self.trace)?;
        let study =
            self.study(trace.path(), &stopwatch).map_err(|failure| trace.naming(failure))?;
        let page = folder.join("report.html");
        let json = output::json(&study)?;
        let files = [(page.as_path(), &*study.html()), (&folder.join("report.json"), &*json)];
        file::in_new_folder(&folder, || file::write_together(&files))?;
        if self.json {
            output::print(&json)
        } else {
            output::print(&text(&study, &stopwatch.times(), &page))
        }
    }

    fn study(&self, trace: &Path, stopwatch: &Stopwatch) -> Result<StudyReport, Failure> {
        let bars = Bars::default();
        let show = |progress: StudyProgress<'_>| match progress {
            StudyProgress::Reading { done, total } => bars.set(READING, done, total),
            StudyProgress::Running { policy, done, total } => {
                bars.finish(READING);
                bars.set(policy, done, total);
            }
            StudyProgress::Changing { done, total } => bars.set("changes", done, total),
            StudyProgress::Scrubbing { done, total } => bars.set("scrub", done, total),
        };
        let mut report = freewheel::study(&self.options(trace), Some(stopwatch), &show)?;
        // A temporary file has another name each time, and results are the same each time.
        report.study.options.trace.file = standard_input::path_for_results(&self.trace);
        Ok(report)
    }

    fn options(&self, trace: &Path) -> StudyOptions {
        let trace = TraceWorkload {
            file: trace.to_owned(),
            format: self.format.map(|format| format.name().to_owned()),
            lenient: self.lenient,
            device: self.device,
            fit: self.fit(),
            replay: self.replay.into(),
            ..TraceWorkload::default()
        };
        let mut options = StudyOptions::new(trace, &self.drive);
        options.seed = self.seed;
        options.electronics = !self.no_electronics;
        options.scrub = !self.no_scrub;
        options.changes = !self.no_changes;
        options.scrub_effort = self.scrub_effort;
        if !self.policies.is_empty() {
            options.policies = self.policies.clone();
        }
        options
    }

    fn fit(&self) -> Fit {
        match (self.wrap, self.scale) {
            (true, _) => Fit::Wrap,
            (_, true) => Fit::Scale,
            _ => Fit::AsIs,
        }
    }
}

/// `out/pgbench` for `data/pgbench.csv.zst` on the usual drive, `out/pgbench-mine` on `./mine.toml`.
pub(super) fn default_folder(trace: &Path, drive: &str) -> PathBuf {
    let trace = &standard_input::path_for_results(trace);
    let compression = trace.extension().and_then(OsStr::to_str);
    let is_compressed = matches!(compression, Some("gz" | "zst"));
    let plain = if is_compressed { trace.with_extension("") } else { trace.clone() };
    let mut name = plain.file_stem().unwrap_or(OsStr::new("study")).to_owned();
    if drive != DEFAULT_DRIVE {
        name.push("-");
        name.push(Path::new(drive).file_stem().unwrap_or(OsStr::new("drive")));
    }
    Path::new("out").join(name)
}

fn text(report: &StudyReport, decisions: &Distribution, page: &Path) -> String {
    let findings = report.text();
    let scrub = report.study.scrub.as_ref();
    let decisions = scrub.and_then(|_| number::decisions(" about a gap of the scrub", decisions));
    let decisions = decisions.map_or(String::new(), |line| line + "\n");
    format!("{findings}{decisions}report: {}\n", page.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_is_named_after_the_trace_without_its_endings() {
        let folder = |trace: &str| default_folder(Path::new(trace), DEFAULT_DRIVE);
        assert_eq!(folder("data/pgbench-ext4.csv.zst"), Path::new("out/pgbench-ext4"));
        assert_eq!(folder("usr.0.parquet"), Path::new("out/usr.0"));
        assert_eq!(folder("cello"), Path::new("out/cello"));
        assert_eq!(folder("-"), Path::new("out/stdin"));
    }

    #[test]
    fn studies_of_one_trace_on_two_drives_do_not_share_a_folder() {
        let folder = |drive: &str| default_folder(Path::new("usr.csv"), drive);
        assert_eq!(folder("atlas10k"), Path::new("out/usr-atlas10k"));
        assert_eq!(folder("./drives/mine.toml"), Path::new("out/usr-mine"));
    }
}
