//! `freewheel drive schema`.

use clap::Args;
use freewheel::DriveSpec;

use crate::failure::Failure;
use crate::output;

/// Print the JSON Schema of a drive file
#[derive(Args)]
#[command(after_help = "\
Example:
  freewheel drive schema > drive.schema.json")]
pub struct SchemaArgs {}

impl SchemaArgs {
    pub fn run(self) -> Result<(), Failure> {
        output::print(&output::json(&schemars::schema_for!(DriveSpec))?)
    }
}
