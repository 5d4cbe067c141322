//! A plan for striping, with its conclusion.

mod page;
mod rows;
mod words;

use freewheel_study::plan::StripePlan;
use serde::Serialize;

pub use words::StripeConclusions;

/// The document of `freewheel plan stripe`.
#[derive(Debug, Serialize)]
pub struct StripeReport {
    /// The numbers, at the top level of the document.
    #[serde(flatten)]
    pub plan: StripePlan,
    /// The conclusions.
    #[serde(flatten)]
    pub conclusions: StripeConclusions,
}

/// Most files that a terminal gets.
const FILES_MAX: usize = 20;

impl StripeReport {
    /// Draws the conclusions from the plan.
    pub fn new(plan: StripePlan) -> Self {
        let conclusions = StripeConclusions::new(&plan);
        Self { plan, conclusions }
    }

    /// Unit to take, the units that were tried, and a unit for each file, for a terminal.
    pub fn text(&self) -> String {
        let StripeConclusions { headline, details, cautions } = &self.conclusions;
        let mut text = format!("{headline}\n\n{}\n", rows::units(&self.plan).text(1));
        let mut files = rows::files(&self.plan);
        files.rows.truncate(FILES_MAX);
        if !files.rows.is_empty() {
            text += &format!("{}\n", files.text(1));
        }
        for sentence in details.iter().chain(cautions) {
            text += &format!("{sentence}\n");
        }
        text
    }

    /// One HTML file without references to anything outside it.
    pub fn html(&self) -> String {
        page::html(&self.plan, &self.conclusions)
    }
}
