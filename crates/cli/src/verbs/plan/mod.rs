//! `freewheel plan`: what to do with several disks.

mod place;
mod stripe;

use std::path::Path;

use clap::Subcommand;

use crate::failure::Failure;
use crate::file;

/// Plan where files lie on several disks: a dry run that moves nothing
#[derive(Subcommand)]
pub enum PlanVerb {
    Place(place::PlaceArgs),
    Stripe(stripe::StripeArgs),
}

impl PlanVerb {
    pub fn run(self) -> Result<(), Failure> {
        match self {
            Self::Place(args) => args.run(),
            Self::Stripe(args) => args.run(),
        }
    }
}

/// Writes all these files into a folder that is made if it is not there.
fn written(folder: &Path, files: &[(&Path, &str)]) -> Result<(), Failure> {
    file::in_new_folder(folder, || file::write_together(files))
}

fn factor(text: &str) -> Result<f64, String> {
    let factor = super::decimal(text)?;
    if factor > 0.0 { Ok(factor) } else { Err("write a factor above 0, as 1.5".into()) }
}
