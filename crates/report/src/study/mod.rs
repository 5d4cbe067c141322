//! A study's numbers with what follows from them.

mod changes;
mod doubts;
mod figures;
mod findings;
mod overload;
mod overview;
mod page;
mod policy;
mod scrub;
mod scrub_page;

use freewheel_study::Study;
use serde::Serialize;

use crate::finding::Finding;

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

    /// The findings for a terminal. Details and pictures are in the page and in JSON.
    pub fn text(&self) -> String {
        self.findings.iter().map(|finding| finding.text() + "\n").collect()
    }

    /// The report: one HTML file without references to anything outside it.
    pub fn html(&self) -> String {
        page::html(&self.study, &self.findings)
    }
}
