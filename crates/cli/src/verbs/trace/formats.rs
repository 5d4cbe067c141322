//! `freewheel trace formats`.

use clap::Args;
use freewheel::measures::Table;
use freewheel::traces::{Format, Timing};
use serde::Serialize;

use crate::failure::Failure;
use crate::output;

/// List the formats of traces that are read
#[derive(Args)]
#[command(after_help = "\
Example:
  freewheel trace formats")]
pub struct FormatsArgs {
    /// Print one JSON document instead of a table
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Formats {
    formats: Vec<FormatRow>,
}

#[derive(Serialize)]
struct FormatRow {
    name: &'static str,
    description: &'static str,
    /// True if the first arrival becomes time zero.
    is_rebased: bool,
    /// Quality of the format's times.
    timing: Timing,
}

impl FormatsArgs {
    pub fn run(self) -> Result<(), Failure> {
        let list = Formats {
            formats: Format::ALL
                .into_iter()
                .map(|format| FormatRow {
                    name: format.name(),
                    description: format.description(),
                    is_rebased: format.is_rebased(),
                    timing: format.timing(),
                })
                .collect(),
        };
        if self.json { output::print_document(&list) } else { output::print(&text(&list)) }
    }
}

fn text(list: &Formats) -> String {
    let mut table = Table::new("ll");
    for format in &list.formats {
        table.row([format.name, format.description]);
    }
    format!(
        "{table}\n.gz and .zst are read as they are, and formats recognised by their contents.\n"
    )
}
