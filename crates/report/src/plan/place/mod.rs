//! A plan for a JBOD, with its conclusion.

mod commands;
mod page;
mod picture;
mod rows;
mod text;
mod times;
mod words;

use freewheel_study::plan::PlacePlan;
use serde::Serialize;

pub use words::PlaceConclusions;

/// The document of `freewheel plan place`.
#[derive(Debug, Serialize)]
pub struct PlaceReport {
    /// The numbers, at the top level of the document.
    #[serde(flatten)]
    pub plan: PlacePlan,
    /// The conclusions.
    #[serde(flatten)]
    pub conclusions: PlaceConclusions,
}

impl PlaceReport {
    /// Draws the conclusions from the plan.
    pub fn new(plan: PlacePlan) -> Self {
        let conclusions = PlaceConclusions::new(&plan);
        Self { plan, conclusions }
    }

    /// Moves, their gain, and the disks before and after, for a terminal.
    pub fn text(&self) -> String {
        text::text(&self.plan, &self.conclusions)
    }

    /// One HTML file without references to anything outside it.
    pub fn html(&self) -> String {
        page::html(&self.plan, &self.conclusions)
    }

    /// A shell script that copies the files with `rsync`, in the order of the plan. It deletes no original.
    /// None where no disk and no file has a path that a command could name.
    pub fn commands(&self) -> Option<String> {
        commands::commands(&self.plan)
    }
}
