//! `freewheel trace`: what traces hold, and from one format to another.

mod characterize;
mod convert;
mod fidelity;
mod formats;
mod info;

use std::io;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use freewheel::TraceReader;

use super::read_args::ReadArgs;
use crate::failure::Failure;
use crate::standard_input;

/// Look into traces of block I/O, and convert them
#[derive(Subcommand)]
#[command(after_help = "\
Example:
  freewheel trace info pgbench.csv.zst")]
pub enum TraceVerb {
    Formats(formats::FormatsArgs),
    Info(info::InfoArgs),
    Convert(convert::ConvertArgs),
    Characterize(characterize::CharacterizeArgs),
    Fidelity(fidelity::FidelityArgs),
}

impl TraceVerb {
    pub fn run(self) -> Result<(), Failure> {
        match self {
            Self::Formats(args) => args.run(),
            Self::Info(args) => args.run(),
            Self::Convert(args) => args.run(),
            Self::Characterize(args) => args.run(),
            Self::Fidelity(args) => args.run(),
        }
    }
}

/// A trace to look into.
#[derive(Args)]
struct LookArgs {
    /// The trace, or - for standard input; .gz and .zst are read as they are
    file: PathBuf,
    #[command(flatten)]
    read: ReadArgs,
    /// Print one JSON document instead of a table
    #[arg(long)]
    json: bool,
}

impl LookArgs {
    fn open(&self) -> Result<TraceReader, Failure> {
        let options = self.read.options();
        if standard_input::is_meant(&self.file) {
            return Ok(TraceReader::from_reader(standard_input::NAME, io::stdin(), &options)?);
        }
        Ok(TraceReader::open(&self.file, &options)?)
    }

    fn name(&self) -> String {
        if standard_input::is_meant(&self.file) {
            standard_input::NAME.to_owned()
        } else {
            self.file.display().to_string()
        }
    }
}
