//! `freewheel drive`: the drives there are.

mod import;
mod list;
mod scale;
mod schema;
mod show;
mod validate;

use clap::Subcommand;

use crate::failure::Failure;

/// Show the drives that ship with Freewheel, and drive files
#[derive(Subcommand)]
#[command(after_help = "\
Example:
  freewheel drive show atlas10k")]
pub enum DriveVerb {
    List(list::ListArgs),
    Show(show::ShowArgs),
    Import(import::ImportArgs),
    Scale(scale::ScaleArgs),
    Validate(validate::ValidateArgs),
    Schema(schema::SchemaArgs),
}

impl DriveVerb {
    pub fn run(self) -> Result<(), Failure> {
        match self {
            Self::List(args) => args.run(),
            Self::Show(args) => args.run(),
            Self::Import(args) => args.run(),
            Self::Scale(args) => args.run(),
            Self::Validate(args) => args.run(),
            Self::Schema(args) => args.run(),
        }
    }
}
