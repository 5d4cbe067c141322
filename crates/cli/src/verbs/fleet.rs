//! `freewheel fleet`: a study of many drives.

use std::path::{Path, PathBuf};

use clap::Args;
use freewheel::Error;
use freewheel::ErrorKind;
use freewheel::drives::DEFAULT_DRIVE;
use freewheel::experiments::Goal;
use freewheel::fleets::{
    Fleet, FleetOptions, FleetOutput, HOT_SHARE, Places, REPORTS, fleet, fleet_members,
};
use serde_json::json;

use super::choice::choice;
use super::study::GOALS;
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
    #[arg(long, value_parser = choice(GOALS), default_value = "mean", conflicts_with = "no_changes")]
    goal: Goal,
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
    share.ok_or_else(|| format!("{HOT_SHARE} or {}% is one: 0 to 1 are allowed", 100.0 * HOT_SHARE))
}

impl FleetArgs {
    pub fn run(self) -> Result<(), Failure> {
        file::ensure_utf_8(&self.traces)?;
        let default = || default_folder(&self.traces, std::slice::from_ref(&self.drive));
        let folder = self.out.clone().unwrap_or_else(default);
        file::ensure_writable_folder(&folder)?;
        let usual = FleetOutput::new(&folder);
        let threads = self.jobs.map_or(usual.threads, usize::from);
        let output = FleetOutput { hot_share: self.hot, reports: self.reports, threads, ..usual };
        if folder.is_dir() {
            file::ensure_new(&output.table())?;
        }
        let bars = Bars::default();
        let all = self.fleet(&folder, &bars)?;
        let resumed = self.resumed(&all, &output, &bars)?;
        let mut report = fleet(&all, &output, &|part, done, total| bars.set(part, done, total))
            .map_err(explained)?;
        drop(bars);
        report.resumed = resumed.unwrap_or(report.resumed);
        if self.json {
            output::print(&report.json())?
        } else {
            output::print(&format!("{}report: {}\n", report.text(), output.page().display()))?;
        }
        let is_known = report.rows.iter().any(|row| row.numbers.is_some());
        if is_known { Ok(()) } else { Err(nothing()) }
    }

    /// Studies the drives on a cluster, if one is given, into the journal; how many were known before.
    fn resumed(
        &self,
        all: &Fleet,
        output: &FleetOutput,
        bars: &Bars,
    ) -> Result<Option<usize>, Failure> {
        let Some(address) = &self.dask else { return Ok(None) };
        std::fs::create_dir_all(&output.folder).map_err(Failure::failed)?;
        let known = all.open(Some(&output.table())).map_err(|error| explained(error.into()))?.len();
        let job = json!({ "fleet": all, "table": output.table() });
        dask::fill(address, job, bars, "drives")?;
        Ok(Some(known))
    }

    /// The drives, and how each is studied.
    fn fleet(&self, folder: &Path, bars: &Bars) -> Result<Fleet, Failure> {
        let (replay, read) = (self.replay.workload(PathBuf::new()), self.replay.read.options());
        let mut members = fleet_members(&self.traces, &read, &self.drive, folder, |reader| {
            crate::reading::report(reader, bars, READING);
        })?;
        bars.finish(READING);
        if let Some(list) = &self.list {
            // It may lie beside the traces.
            members.retain(|member| member.trace != *list);
            Places::read(list)
                .and_then(|places| places.apply(&mut members))
                .map_err(Error::from)?;
        }
        let options = FleetOptions {
            replay,
            gaps: self.gaps,
            changes: !self.no_changes,
            checks: self.checks,
            goal: self.goal,
            seed: self.seed,
        };
        Ok(Fleet::new(&self.traces, members, options))
    }
}

fn nothing() -> Failure {
    Failure::failed("no drive could be studied: each row says why")
}

fn explained(error: Error) -> Failure {
    match error.kind() {
        ErrorKind::OtherJournal => Failure::failed(error)
            .with_help("remove it to begin anew, or choose another --out for this fleet"),
        _ => error.into(),
    }
}
