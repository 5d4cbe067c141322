//! `freewheel plan`: what to do with several disks.

mod place;

use clap::Subcommand;

use crate::failure::Failure;

/// Plan where files lie on several disks: a dry run that moves nothing
#[derive(Subcommand)]
pub enum PlanVerb {
    Place(place::PlaceArgs),
}

impl PlanVerb {
    pub fn run(self) -> Result<(), Failure> {
        match self {
            Self::Place(args) => args.run(),
        }
    }
}
