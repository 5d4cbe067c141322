//! A study's numbers with what follows from them.

mod beside;
mod bought;
mod changes;
mod doubts;
mod few;
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
mod verdict;

use freewheel_model::stats::Distribution;
use freewheel_study::Study;
use freewheel_study::changes::NOTICEABLE;
use serde::Serialize;

use crate::finding::Finding;
use crate::numbers::{self, ratio, signed_percent, whole_percent};
use crate::paint::Paint;

/// The document of a study.
#[derive(Debug, Serialize)]
pub struct StudyReport {
    /// The study's numbers, at the top level of the document.
    #[serde(flatten)]
    pub study: Study,
    /// Findings, most important first.
    pub findings: Vec<Finding>,
}

impl StudyReport {
    /// Works out what follows from a study.
    pub fn new(study: Study) -> Self {
        let findings = findings::findings(&study);
        Self { study, findings }
    }

    /// Report of the page for a terminal. Details and pictures are in the page and in JSON.
    pub fn text(&self) -> String {
        text::text(&self.study, &self.findings, Paint::Plain)
    }

    /// Report in colours, for a terminal that has some.
    pub fn coloured_text(&self) -> String {
        text::text(&self.study, &self.findings, Paint::Coloured)
    }

    /// Time of the decisions about gaps on this machine, where a scrub was estimated.
    pub fn decisions_text(&self, decisions: &Distribution) -> Option<String> {
        let scrub = self.study.scrub.as_ref();
        scrub.and_then(|_| numbers::decisions(" about a gap of the scrub", decisions))
    }

    /// The report: one HTML file without references to anything outside it.
    pub fn html(&self) -> String {
        page::html(&self.study, &self.findings)
    }
}

/// The share below which a change counts as none, in per cent.
pub(crate) fn noticeable() -> String {
    whole_percent(NOTICEABLE)
}

/// A change as (new - old) / old with its sign, in per cent. From ten times as much on it is a factor.
pub(crate) fn signed(share: f64) -> String {
    match share {
        share if share >= 9.0 => format!("{} times", ratio(1.0 + share)),
        share => signed_percent(share),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_signed_percent_or_factor() {
        let texts = [-0.4, 0.0, 0.123, 8.99, 9.0, 13.0, 338.784, 10_216.83].map(signed);
        let factors = ["10.0 times", "14.0 times", "340 times", "10,200 times"];
        assert_eq!(texts[..4], ["-40 %", "0 %", "+12 %", "+899 %"]);
        assert_eq!(texts[4..], factors);
    }
}
