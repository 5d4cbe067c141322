//! A study's numbers with what follows from them.

mod beside;
mod bought;
mod changes;
mod doubts;
mod figures;
mod findings;
mod fitted;
mod how_sure;
mod overload;
mod overview;
mod page;
mod policy;
mod recorded;
mod responses;
mod scrub;
mod scrub_by_command;
mod scrub_page;
mod text;

use freewheel_study::Study;
use freewheel_units::grouped;
use serde::Serialize;

use crate::finding::Finding;
use crate::numbers::percent;
use crate::paint::Paint;

/// The document of a study.
#[derive(Debug, Serialize)]
pub struct StudyReport {
    /// The study's numbers, at the top level of the document.
    #[serde(flatten)]
    pub study: Study,
    /// What follows, most important first.
    pub findings: Vec<Finding>,
}

impl StudyReport {
    /// Works out what follows from a study.
    pub fn new(study: Study) -> Self {
        let findings = findings::findings(&study);
        Self { study, findings }
    }

    /// What the page shows, for a terminal. Details and pictures are in the page and in JSON.
    pub fn text(&self) -> String {
        text::text(&self.study, &self.findings, Paint::Plain)
    }

    /// The same in colours, for a terminal that has some.
    pub fn coloured_text(&self) -> String {
        text::text(&self.study, &self.findings, Paint::Coloured)
    }

    /// The report: one HTML file without references to anything outside it.
    pub fn html(&self) -> String {
        page::html(&self.study, &self.findings)
    }
}

/// A change as (new - old) / old with its sign, always in per cent, so that changes in a list compare.
fn signed(share: f64) -> String {
    match share {
        // Smaller changes are rounding.
        share if share.abs() < 1e-5 => percent(0.0),
        share if share >= 10.0 => format!("+{} %", grouped((100.0 * share).round() as u64)),
        share if share > 0.0 => format!("+{}", percent(share)),
        share if share < 0.0 => format!("-{}", percent(-share)),
        _ => percent(0.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_have_a_sign_and_are_in_per_cent_however_large() {
        let texts = [-0.4, 0.0, 0.123, 9.99, 13.0, 338.784].map(signed);
        assert_eq!(texts, ["-40 %", "0 %", "+12 %", "+999 %", "+1,300 %", "+33,878 %"]);
    }
}
