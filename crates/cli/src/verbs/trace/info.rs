//! `freewheel trace info`.

use clap::Args;
use freewheel::TraceInfo;
use freewheel::measures::Text;

use super::LookArgs;
use crate::failure::Failure;
use crate::{output, reading};

/// Say what a trace holds: requests, span, bytes, footprint, devices
#[derive(Args)]
#[command(after_help = "\
Example:
  freewheel trace info pgbench.csv.zst --json")]
pub struct InfoArgs {
    #[command(flatten)]
    look: LookArgs,
}

impl InfoArgs {
    pub fn run(self) -> Result<(), Failure> {
        let info = reading::watched(&mut self.look.open()?, TraceInfo::scan_watched)?;
        if self.look.json {
            return output::print_document(&info);
        }
        output::print(&format!("{} ({})\n\n{}", self.look.name(), info.format, info.text()))
    }
}
