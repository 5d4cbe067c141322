//! Caches for a trace, with conclusions from their curves.

mod page;
mod rows;
mod text;
mod words;

use freewheel_study::CacheCurves;
use serde::Serialize;

pub use words::Conclusions;

/// The document of `freewheel cache`.
#[derive(Debug, Serialize)]
pub struct CacheReport {
    /// The numbers, at the top level of the document.
    #[serde(flatten)]
    pub curves: CacheCurves,
    /// The conclusions.
    #[serde(flatten)]
    pub conclusions: Conclusions,
}

impl CacheReport {
    /// Draws the conclusions from the curves.
    pub fn new(curves: CacheCurves) -> Self {
        let conclusions = Conclusions::new(&curves);
        Self { curves, conclusions }
    }

    /// Numbers, a table by size, and the conclusions, for a terminal.
    pub fn text(&self) -> String {
        text::text(&self.curves, &self.conclusions)
    }

    /// One HTML file without references to anything outside it.
    pub fn html(&self) -> String {
        page::html(&self.curves, &self.conclusions)
    }
}
