//! `freewheel fleet`: a study of many drives.

use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::thread;

use clap::Args;
use freewheel::Error;
use freewheel::ErrorKind;
use freewheel::drives::DEFAULT_DRIVE;
use freewheel::fleets::{
    Fleet, FleetOptions, FleetReport, HOT_SHARE, Places, REPORTS, fleet, fleet_members,
    write_reports,
};
use serde_json::json;

use super::study::RankBy;
use super::trace_args::{ReplayArgs, default_folder};
use crate::failure::Failure;
use crate::progress::Bars;
use crate::reading::READING;
use crate::{dask, file, output};

/// Study many drives, each with its own trace, into one table and one page
#[derive(Args)]
#[command(after_help = "\
A folder has a trace for each drive. A trace in a folder of the folder belongs to the server of that
name; else its name is cut at the last - or _ into server and bay. Of a file with several devices
each is a drive. fleet.html, fleet.parquet and fleet.json have a row for each drive; the drives worth
a look have reports of their own in drives/. A study that was killed goes on where it was when it is
called again: fleet.parquet.journal has the rows until the table is whole.

Examples:
  freewheel fleet traces/ --drive exos-x18-18tb
  freewheel fleet all-disks.parquet --list disks.csv --out out/cellar")]
pub struct FleetArgs {
    /// A folder of traces, or one trace with several devices
    traces: PathBuf,
    #[command(flatten)]
    replay: ReplayArgs,
    /// Name of a shipped drive (see `freewheel drive list`), or path of a drive file
    #[arg(long, value_name = "NAME", default_value = DEFAULT_DRIVE)]
    drive: String,
    /// A CSV with the columns trace and drive, server or bay, for what names do not say. A trace is called by
    /// its path in the folder without endings, or by the number of its device
    #[arg(long, value_name = "F.csv")]
    list: Option<PathBuf>,
    /// Estimate a scrub in the rotational gaps of each drive too: it takes longer than all the rest
    #[arg(long)]
    gaps: bool,
    /// Do not try what would help: caches, prefetching, write buffers, queue depths and stripes
    #[arg(long)]
    no_changes: bool,
    /// Try the first changes of each drive again on another drive, with other assumed values and from other
    /// starts
    #[arg(long, conflicts_with = "no_changes")]
    checks: bool,
    /// Goal by which changes are ranked
    #[arg(long, value_enum, default_value_t = RankBy::Mean, conflicts_with = "no_changes")]
    goal: RankBy,
    /// Share of the time in which a hot drive works at least, as 50% or 0.5
    #[arg(long, value_name = "SHARE", default_value = "50%", value_parser = share)]
    hot: f64,
    /// Drives worth a look that get reports of their own
    #[arg(long, value_name = "N", default_value_t = REPORTS)]
    reports: usize,
    /// Threads, each of which studies one drive at a time; all cores if not given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// Study on the Dask cluster whose scheduler has this address, by way of the Python package. Workers read
    /// the traces from their paths
    #[arg(long, value_name = "HOST:PORT", conflicts_with = "jobs")]
    dask: Option<String>,
    /// Folder for fleet.html, fleet.json, fleet.parquet and drives/ [default: out/<name of the traces>]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Seed of every random stream
    #[arg(long, default_value_t = 1, value_parser = super::seed)]
    seed: u64,
    /// Print the JSON document instead of the findings
    #[arg(long)]
    json: bool,
}

/// A share of 0 to 1, as 50% or 0.5.
fn share(text: &str) -> Result<f64, String> {
    let (number, unit) = match text.strip_suffix('%') {
        Some(number) => (number, 100.0),
        None => (text, 1.0),
    };
    let share = number.trim().parse::<f64>().ok().map(|value| value / unit);
    let share = share.filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| {
        format!("{HOT_SHARE} or {:.0}% is one: 0 to 1 are allowed", 100.0 * HOT_SHARE)
    })
}

/// The folder of a fleet's results, as far as it is known.
struct Folder {
    page: PathBuf,
    json: PathBuf,
    table: PathBuf,
    /// Devices of a file with several, for the time of the study.
    spool: PathBuf,
}

impl Folder {
    fn new(folder: &Path) -> Self {
        let [page, json, table, spool] =
            ["fleet.html", "fleet.json", "fleet.parquet", "devices"].map(|name| folder.join(name));
        Self { page, json, table, spool }
    }
}

impl FleetArgs {
    pub fn run(self) -> Result<(), Failure> {
        file::ensure_utf_8(&self.traces)?;
        let default = || default_folder(&self.traces, std::slice::from_ref(&self.drive));
        let folder = self.out.clone().unwrap_or_else(default);
        file::ensure_writable_folder(&folder)?;
        let files = Folder::new(&folder);
        let bars = Bars::default();
        let all = self.fleet(&files, &bars)?;
        std::fs::create_dir_all(&folder).map_err(Failure::failed)?;
        let cores = || thread::available_parallelism().map_or(1, NonZero::get);
        let threads = self.jobs.map_or_else(cores, usize::from);
        if let Some(address) = &self.dask {
            dask::fill(address, json!({ "fleet": &all, "table": &files.table }), &bars, "drives")?;
        }
        let show = |done, total| bars.set("drives", done, total);
        let done = fleet(&all, Some(&files.table), threads, &show).map_err(explained)?;
        bars.finish("drives");
        let mut report = FleetReport::new(done, all.options.clone(), self.hot);
        let show = |done, total| bars.set("reports", done, total);
        write_reports(&mut report, &all, &folder, self.reports, &show)?;
        drop(bars);
        if all.file.is_some() {
            std::fs::remove_dir_all(&files.spool).map_err(Failure::failed)?;
        }
        let (json, page) = (output::json(&report.json())?, report.html());
        file::write_together(&[(&files.page, &page), (&files.json, &json)])?;
        match self.json {
            true => output::print(&json),
            false => output::print(&format!("{}report: {}\n", report.text(), files.page.display())),
        }
    }

    /// The drives, and how each is studied.
    fn fleet(&self, files: &Folder, bars: &Bars) -> Result<Fleet, Failure> {
        let (replay, read) = (self.replay.workload(PathBuf::new()), self.replay.read.options());
        let reading = |reader: &freewheel::TraceReader| {
            crate::reading::report(reader, bars, READING);
        };
        let mut members = fleet_members(&self.traces, &read, &self.drive, &files.spool, reading)?;
        bars.finish(READING);
        if let Some(list) = &self.list {
            Places::read(list)
                .and_then(|places| places.apply(&mut members))
                .map_err(Error::from)?;
        }
        let options = FleetOptions {
            replay,
            gaps: self.gaps,
            changes: !self.no_changes,
            checks: self.checks,
            goal: self.goal.into(),
            seed: self.seed,
        };
        Ok(Fleet::new(&self.traces, members, options))
    }
}

fn explained(error: Error) -> Failure {
    match error.kind() {
        ErrorKind::OtherJournal => Failure::failed(error)
            .with_help("remove it to begin anew, or choose another --out for this fleet"),
        _ => error.into(),
    }
}
