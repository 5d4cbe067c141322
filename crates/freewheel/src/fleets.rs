//! Fleets: many drives, each studied with its own trace.
//!
//! ```no_run
//! use std::path::Path;
//!
//! use freewheel::fleets::{Fleet, FleetOptions, FleetReport, HOT_SHARE, fleet, fleet_members};
//! use freewheel::traces::OpenOptions;
//!
//! let (traces, spool) = (Path::new("traces"), Path::new("out/devices"));
//! let members = fleet_members(traces, &OpenOptions::default(), "exos-x24-24tb", spool, |_| {})?;
//! let all = Fleet::new(traces, members, FleetOptions::default());
//! let done = fleet(&all, Some(Path::new("out/fleet.parquet")), 2, &|_, _| {})?;
//! println!("{}", FleetReport::new(done, all.options, HOT_SHARE).text());
//! # Ok::<(), freewheel::Error>(())
//! ```

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use freewheel_study::fleet::{FleetProgressSink, members};
use freewheel_study::table::TableError;
use freewheel_trace::TraceReader;

use crate::files::PendingFile;
use crate::traces::OpenOptions;
use crate::{Error, StudyOptions, study};

pub use freewheel_report::{FleetReport, HOT_SHARE, REPORTS};
pub use freewheel_study::fleet::{
    Fleet, FleetChunk, FleetDone, FleetMember, FleetOptions, FleetRow, FleetRows, Place, Places,
};

/// The drives of a folder of traces, or of one trace with several devices, which are written into `spool`. The
/// guide of `freewheel fleet` says how servers and bays follow from names.
pub fn fleet_members(
    path: &Path,
    options: &OpenOptions,
    drive: &str,
    spool: &Path,
    report: impl FnMut(&TraceReader),
) -> Result<Vec<FleetMember>, Error> {
    Ok(members(path, options, drive, spool, report)?)
}

/// Studies every drive on one of `threads` threads, and writes a row for each to `output`, a Parquet file. A study
/// that was killed goes on where it was. `progress` is told done and total.
pub fn fleet(
    fleet: &Fleet,
    output: Option<&Path>,
    threads: usize,
    progress: FleetProgressSink<'_>,
) -> Result<FleetDone, Error> {
    Ok(fleet.run(output, threads, progress)?)
}

/// Studies the `most` drives that are worth a look once more, with everything, and writes the report of each into
/// `drives` of `folder`. The fleet's page then refers to them. `progress` is told done and total.
pub fn write_reports(
    report: &mut FleetReport,
    fleet: &Fleet,
    folder: &Path,
    most: usize,
    progress: FleetProgressSink<'_>,
) -> Result<(), Error> {
    let found = report.worth_a_look(most);
    let wrong = |error: io::Error| TableError::of(folder, &error);
    for (done, &at) in found.iter().enumerate() {
        let goes_on = || progress(done as u64, found.len() as u64);
        goes_on();
        let member = &fleet.members[report.rows[at].number];
        let own = fleet.options.study(member);
        let policies = StudyOptions::new(own.trace.clone(), &own.drive).policies;
        let options = StudyOptions { policies, gaps: true, changes: true, checks: true, ..own };
        let page = study(&options, None, &|_| goes_on())?.html();
        let plain = |letter: char| if letter.is_alphanumeric() { letter } else { '-' };
        let name: String = member.name.chars().map(plain).collect();
        let path = format!("drives/{name}.html");
        fs::create_dir_all(folder.join("drives")).map_err(wrong)?;
        let mut file = PendingFile::create(&folder.join(&path)).map_err(wrong)?;
        file.write_all(page.as_bytes()).and_then(|()| file.keep()).map_err(wrong)?;
        report.reports.insert(at, path);
    }
    Ok(())
}
