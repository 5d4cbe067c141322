//! `freewheel trace fidelity`.

use std::path::{Path, PathBuf};

use clap::Args;
use freewheel::experiments::TraceWorkload;
use freewheel::measures::Text;
use freewheel::traces::{ReplayFidelity, replay_fidelity};
use freewheel::{TraceInfo, TraceReader};

use crate::failure::Failure;
use crate::progress::Bars;
use crate::standard_input::{self, GivenTrace};
use crate::verbs::read_args::ReadArgs;
use crate::{file, output, reading};

/// Say how exactly a replay by dependence gives a trace's arrivals back
///
/// Every request takes its recorded response time, instead of a drive's. A request then arrives at its
/// traced time, unless it enters the full window of 64 requests late, or follows from one that does.
#[derive(Args)]
#[command(after_help = "\
Example:
  freewheel trace fidelity pgbench.csv.zst --json")]
pub struct FidelityArgs {
    /// The trace, or - for standard input; .gz and .zst are read as they are
    file: PathBuf,
    #[command(flatten)]
    read: ReadArgs,
    /// Replay this device of the trace only; a request may have waited for one on another device
    #[arg(long, value_name = "N")]
    device: Option<u32>,
    /// Print one JSON document instead of a table
    #[arg(long)]
    json: bool,
}

impl FidelityArgs {
    pub fn run(self) -> Result<(), Failure> {
        file::check_rereadable(&self.file).map_err(Failure::failed)?;
        let trace = GivenTrace::new(&self.file)?;
        let fidelity = self.fidelity(trace.path()).map_err(|failure| trace.naming(failure))?;
        if self.json {
            return output::print_document(&fidelity);
        }
        let name = if standard_input::is_meant(&self.file) {
            standard_input::NAME.to_owned()
        } else {
            self.file.display().to_string()
        };
        output::print(&format!("{name}\n\n{}", fidelity.text()))
    }

    fn fidelity(&self, file: &Path) -> Result<ReplayFidelity, Failure> {
        let mut reader = TraceReader::open(file, &self.read.options())?;
        let info = reading::watched(&mut reader, TraceInfo::scan_without_footprint)?;
        let workload = self.read.apply(TraceWorkload {
            file: file.to_owned(),
            device: self.device,
            ..TraceWorkload::default()
        });
        let bars = Bars::default();
        Ok(replay_fidelity(&workload, &info, &mut |done, total| {
            bars.set("replaying", done, total)
        })?)
    }
}
