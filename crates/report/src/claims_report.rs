//! The claims that were run, counted by verdict.

use freewheel_reproduce::{BEYOND, Counts, ReproduceOptions, Reproduction, Row};
use serde::Serialize;

use crate::claims_page::claims_html;
use crate::claims_text;

/// The claims that were run.
///
/// They are a document (it serialises), a line, and pages.
#[derive(Serialize)]
pub struct ClaimsReport<'a> {
    options: &'a ReproduceOptions,
    /// Rows of the papers by verdict, and of what goes beyond them.
    papers: Counts,
    beyond: Counts,
    /// Rows of all claims, in order.
    pub rows: Vec<&'a Row>,
    #[serde(skip)]
    done: &'a [Reproduction],
}

impl<'a> ClaimsReport<'a> {
    /// Counts the verdicts.
    pub fn new(done: &'a [Reproduction], options: &'a ReproduceOptions) -> Self {
        let rows: Vec<&Row> = done.iter().flat_map(|reproduction| &reproduction.rows).collect();
        let papers = Counts::of(rows.iter().copied().filter(|row| !is_beyond(&row)));
        let beyond = Counts::of(rows.iter().copied().filter(|row| is_beyond(&row)));
        Self { options, papers, beyond, rows, done }
    }

    /// In a line, how many numbers count as what.
    pub fn words(&self) -> String {
        let parts = [("papers", self.papers), ("beyond the papers", self.beyond)];
        let some = parts.iter().filter(|(_, counts)| *counts != Counts::default());
        let words = some.map(|(what, counts)| format!("{what}: {}", counts.words()));
        words.collect::<Vec<String>>().join("; ")
    }

    /// The claims as tables for a terminal.
    pub fn text(&self) -> String {
        let texts: Vec<String> = self.done.iter().map(claims_text::text).collect();
        texts.join("\n")
    }

    /// Text about a row that fails.
    pub fn fault(row: &Row) -> String {
        claims_text::fault(row)
    }

    /// The page of the papers' claims, and that of what goes beyond them; none without such claims.
    pub fn html(&self) -> [Option<String>; 2] {
        claims_html(self.done, self.options)
    }
}

fn is_beyond(row: &&&Row) -> bool {
    row.id.starts_with(BEYOND)
}
