//! `freewheel drive show`: a drive's data sheet as the model has it.

use std::path::{Path, PathBuf};

use clap::Args;
use freewheel::DriveSheet;
use freewheel::drives::{self, DriveIdentity};
use serde::Serialize;

use crate::failure::Failure;
use crate::{file, output};

/// Show a drive: its advertised and its modelled values, zones, seek curve, electronics, and the source of
/// each value
#[derive(Args)]
#[command(after_help = "\
Examples:
  freewheel drive show atlas10k
  freewheel drive show exos-x24-24tb --html exos.html
  freewheel drive show my-drive.toml --json
  freewheel drive show exos-x24-24tb --toml > mine.toml")]
pub struct ShowArgs {
    /// Name of a shipped drive (see `freewheel drive list`), or path of a drive file
    name: String,
    /// Print one JSON document instead of tables
    #[arg(long)]
    json: bool,
    /// Write a page with charts of seeks and rates
    #[arg(long, value_name = "F.html")]
    html: Option<PathBuf>,
    /// Print the drive file itself: the start of one of your own
    #[arg(long, conflicts_with_all = ["json", "html"])]
    toml: bool,
}

/// Everything that is shown.
#[derive(Serialize)]
struct Document {
    drive: DriveIdentity,
    #[serde(flatten)]
    sheet: DriveSheet,
}

impl ShowArgs {
    pub fn run(self) -> Result<(), Failure> {
        if self.toml {
            return output::print(&drives::text(&self.name)?);
        }
        let (spec, drive) = drives::load(&self.name)?;
        if let Some(page) = &self.html {
            file::ensure_not_read(page, Path::new(&self.name))?;
        }
        let sheet = DriveSheet::new(&spec, &drive);
        if let Some(path) = &self.html {
            file::write_together(&[(path, &sheet.html())])?;
        }
        let document = Document { drive: DriveIdentity::new(&spec, &drive), sheet };
        if self.json {
            return output::print_document(&document);
        }
        output::print(&document.sheet.text(&document.drive))
    }
}
