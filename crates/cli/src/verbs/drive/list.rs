//! `freewheel drive list`.

use clap::Args;
use freewheel::drives::{self, DriveIdentity};
use freewheel::measures::Text;
use serde::Serialize;

use crate::failure::Failure;
use crate::output;

/// List the drives that ship with Freewheel
#[derive(Args)]
#[command(after_help = "\
Example:
  freewheel drive list --json")]
pub struct ListArgs {
    /// Print one JSON document instead of a table
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct List {
    default: &'static str,
    drives: Vec<DriveIdentity>,
}

impl ListArgs {
    pub fn run(self) -> Result<(), Failure> {
        let identity = |name| {
            let (spec, drive) = drives::load(name)?;
            Ok(DriveIdentity::new(&spec, &drive))
        };
        let drives: Result<_, Failure> = drives::names().into_iter().map(identity).collect();
        let list = List { default: drives::DEFAULT_DRIVE, drives: drives? };
        if self.json { output::print_document(&list) } else { output::print(&text(&list)) }
    }
}

fn text(list: &List) -> String {
    let table = list.drives.text();
    format!("{table}\nWhere no drive is named, {} is used.\n", list.default)
}
