//! Fleets: many drives, each studied with its own trace.
//!
//! ```no_run
//! use std::path::Path;
//!
//! use freewheel::fleets::{Fleet, FleetOptions, FleetOutput, fleet, fleet_members};
//! use freewheel::traces::OpenOptions;
//!
//! let (traces, out) = (Path::new("traces"), Path::new("out/cellar"));
//! let members = fleet_members(traces, &OpenOptions::default(), "exos-x24-24tb", out, |_| {})?;
//! let all = Fleet::new(traces, members, FleetOptions::default());
//! let report = fleet(&all, &FleetOutput::new(out), &|_, _, _| {})?;
//! println!("{}", report.text());
//! # Ok::<(), freewheel::Error>(())
//! ```

use std::fs;
use std::io::{self, Write};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::thread;

use freewheel_study::fleet::{FleetMember, WrittenReports, members};
use freewheel_study::table::TableError;
use freewheel_trace::TraceReader;

use crate::files::PendingFile;
use crate::traces::OpenOptions;
use crate::{Error, StudyOptions, study};

pub use freewheel_report::{FleetReport, HOT_SHARE, REPORTS};
pub use freewheel_study::fleet::{Fleet, FleetChunk, FleetOptions, FleetRows, Place, Places};

/// Where the results of a fleet go, and what of it.
#[derive(Debug, Clone, PartialEq)]
pub struct FleetOutput {
    /// Folder of `fleet.html`, `fleet.json`, `fleet.parquet` and `drives`.
    pub folder: PathBuf,
    /// Share of the time in which a hot drive works at least.
    pub hot_share: f64,
    /// Drives worth a look that get reports of their own.
    pub reports: usize,
    /// Threads, each of which studies one drive at a time.
    pub threads: usize,
}

impl FleetOutput {
    /// The usual results into `folder`, on all cores.
    pub fn new(folder: &Path) -> Self {
        let threads = thread::available_parallelism().map_or(1, NonZero::get);
        Self { folder: folder.to_owned(), hot_share: HOT_SHARE, reports: REPORTS, threads }
    }

    /// The table, beside which the journal lies while the study goes on.
    pub fn table(&self) -> PathBuf {
        self.folder.join("fleet.parquet")
    }

    /// The page.
    pub fn page(&self) -> PathBuf {
        self.folder.join("fleet.html")
    }
}

/// Folder in the output of the devices of a file with several, for the time of a study.
fn devices(folder: &Path) -> PathBuf {
    folder.join(".fleet-devices")
}

/// The drives of a folder of traces, or of one trace with several devices, which are written into a hidden folder of
/// `output` as traces of their own. The guide of `freewheel fleet` says how servers and bays follow from names.
pub fn fleet_members(
    path: &Path,
    options: &OpenOptions,
    drive: &str,
    output: &Path,
    report: impl FnMut(&TraceReader),
) -> Result<Vec<FleetMember>, Error> {
    Ok(members(path, options, drive, &devices(output), report)?)
}

/// Studies many drives, each with its own trace, into one table and one page.
///
/// Writes a document, too, and the reports of drives that are worth a look. A study that was killed goes on where it
/// was: its rows are in the journal until everything is written. `progress` receives the name of a part of the work,
/// done and total, from any thread.
pub fn fleet(
    fleet: &Fleet,
    output: &FleetOutput,
    progress: &(dyn Fn(&'static str, u64, u64) + Sync),
) -> Result<FleetReport, Error> {
    let FleetOutput { folder, hot_share, reports, threads } = output;
    let wrong = |error: io::Error| TableError::of(folder, &error);
    fs::create_dir_all(folder).map_err(wrong)?;
    // A journal of another fleet is known before anything is studied.
    let mut written = fleet.open_reports(&output.page())?;
    let rows = fleet
        .run(Some(&output.table()), *threads, &|done, total| progress("drives", done, total))?;
    let mut report = FleetReport::new(fleet.done(&rows)?, fleet.options.clone(), *hot_share);
    write_reports(&mut report, fleet, &mut written, (folder, *reports), &|done, total| {
        progress("reports", done, total)
    })?;
    keep(&folder.join("fleet.json"), &report.json()).map_err(wrong)?;
    keep(&output.page(), &report.html()).map_err(wrong)?;
    written.end()?;
    fleet.finish(rows)?;
    remove_devices(fleet, folder).map_err(wrong)?;
    Ok(report)
}

/// Studies the `most` drives that are worth a look once more, with everything, and writes the report of each into
/// `drives` of `folder`, unless an earlier run has. The fleet's page then refers to them.
fn write_reports(
    report: &mut FleetReport,
    fleet: &Fleet,
    written: &mut WrittenReports,
    (folder, most): (&Path, usize),
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<(), TableError> {
    let found = report.worth_a_look(most);
    for (done, &at) in found.iter().enumerate() {
        progress(done as u64, found.len() as u64);
        let number = report.rows[at].number;
        let path = report_path(number, &fleet.members[number]);
        let file = folder.join(&path);
        if !written.has(number, &file) {
            // Its row stands; the page leads to no report of it.
            let Ok(page) = study(&report_options(fleet, number), None, &|_| {
                progress(done as u64, found.len() as u64)
            }) else {
                continue;
            };
            fs::create_dir_all(folder.join("drives")).map_err(|error| wrong(error, folder))?;
            keep(&file, &page.html()).map_err(|error| wrong(error, folder))?;
            written.keep(number, &file)?;
        }
        report.reports.insert(at, path);
    }
    Ok(())
}

/// Options of the report of a drive: everything.
fn report_options(fleet: &Fleet, number: usize) -> StudyOptions {
    let own = fleet.options.study(&fleet.members[number]);
    let policies = StudyOptions::new(own.trace.clone(), &own.drive).policies;
    StudyOptions { policies, gaps: true, changes: true, checks: true, ..own }
}

/// Path of the report of a drive from the page on.
fn report_path(number: usize, member: &FleetMember) -> String {
    let letters = member.name.chars();
    let name: String =
        letters.map(|letter| if letter.is_alphanumeric() { letter } else { '-' }).collect();
    // Other letters of two names may be all that tells them apart.
    format!("drives/{:04}-{name}.html", number + 1)
}

fn wrong(error: io::Error, folder: &Path) -> TableError {
    TableError::of(folder, &error)
}

/// Writes a file, which appears when it is whole.
fn keep(path: &Path, text: &str) -> io::Result<()> {
    let mut file = PendingFile::create(path)?;
    file.write_all(text.as_bytes())?;
    file.keep()
}

/// Removes the traces of devices that were written for this study.
fn remove_devices(fleet: &Fleet, folder: &Path) -> io::Result<()> {
    if fleet.source.is_none() {
        return Ok(());
    }
    for member in &fleet.members {
        fs::remove_file(&member.trace)?;
    }
    fs::remove_dir(devices(folder))
}
