//! `freewheel trace convert`.

use std::io;
use std::path::PathBuf;

use clap::Args;
use freewheel::convert_trace;
use freewheel::measures::grouped;
use freewheel::traces::{ConvertOptions, Converted, convert_stream};
use serde::Serialize;

use super::ReadArgs;
use crate::failure::Failure;
use crate::progress::Bars;
use crate::{file, output, reading, standard_input};

/// Convert a trace to Parquet or CSV, by the name of the output
#[derive(Args)]
#[command(after_help = "\
Examples:
  freewheel trace convert usr_0.csv.gz usr_0.parquet
  freewheel trace convert financial.spc disk3.csv.zst --device 3")]
pub struct ConvertArgs {
    /// The trace to read, or - for standard input
    input: PathBuf,
    /// The trace to write: .parquet, .csv, .csv.zst or .csv.gz
    output: PathBuf,
    /// Keep only this device of the trace
    #[arg(long, value_name = "N", value_parser = crate::verbs::device)]
    device: Option<u32>,
    #[command(flatten)]
    read: ReadArgs,
    /// Print one JSON document instead of a line
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Conversion {
    output: PathBuf,
    #[serde(flatten)]
    converted: Converted,
}

impl ConvertArgs {
    pub fn run(self) -> Result<(), Failure> {
        if self.json {
            file::ensure_utf_8(&self.output)?;
        }
        let options = ConvertOptions { open: self.read.options(), device: self.device };
        let converted = {
            let bars = Bars::default();
            let report = |reader: &_| reading::report(reader, &bars, "converting");
            if standard_input::is_meant(&self.input) {
                convert_stream(standard_input::NAME, io::stdin(), &self.output, &options, report)?
            } else {
                convert_trace(&self.input, &self.output, &options, report)?
            }
        };
        if let Some(damaged) = &converted.damaged {
            output::note(&damaged.in_words());
        }
        let done = Conversion { output: self.output, converted };
        if self.json { output::print_document(&done) } else { output::print(&text(&done)) }
    }
}

fn text(done: &Conversion) -> String {
    let Converted { format, records, other_devices, skipped, left_out, survey, .. } =
        &done.converted;
    let mut text =
        format!("{} records of {format} to {}", grouped(*records), done.output.display());
    if *other_devices > 0 {
        text += &format!("; {} of other devices left out", grouped(*other_devices));
    }
    if *skipped > 0 {
        text += &format!("; {} malformed ones skipped", grouped(*skipped));
    }
    if let Some(rows) = left_out.in_words() {
        text += &format!("; rows left out: {rows}");
    }
    let survey = survey.as_ref();
    if let Some(recordings) = survey.and_then(|survey| survey.recordings_in_words()) {
        text += &format!("; recordings: {recordings}");
    }
    if let Some(layers) = survey.and_then(|survey| survey.layers) {
        text += &format!("; block layer: {}", layers.in_words());
    }
    if let Some(sorted) = survey.and_then(|survey| survey.sorted_in_words()) {
        text += &format!("; {sorted}");
    }
    text + "\n"
}
