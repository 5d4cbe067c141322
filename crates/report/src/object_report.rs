//! Misses of caches of objects, for a terminal.

use freewheel_study::{ObjectCurves, ObjectMisses};
use freewheel_units::grouped;
use serde::Serialize;

use crate::numbers::{miss_percent, size};
use crate::page::trace_name;
use crate::rows::Rows;

/// The document of `freewheel cache --by-object`.
#[derive(Debug, Serialize)]
pub struct ObjectReport {
    /// The numbers, at the top level of the document.
    #[serde(flatten)]
    pub curves: ObjectCurves,
}

impl ObjectReport {
    /// Numbers and two tables by size, for a terminal.
    pub fn text(&self) -> String {
        let curves = &self.curves;
        let misses = self.rows(|at| at.misses as f64 / curves.uses as f64);
        let bytes = self.rows(|at| at.missed_bytes as f64 / curves.used_bytes as f64);
        format!(
            "{}: {} uses of {} objects, which take {}\n\nuses that miss, %\n{}\nbytes that miss, %\n{}",
            trace_name(&curves.options.trace),
            grouped(curves.uses),
            grouped(curves.objects),
            size(curves.footprint_bytes),
            misses.text(1),
            bytes.text(1)
        )
    }

    /// A row for each size and a column for each policy.
    fn rows(&self, share: impl Fn(&ObjectMisses) -> f64) -> Rows {
        let titles = self.curves.curves.iter().map(|curve| curve.title.clone());
        Rows {
            head: std::iter::once("memory".to_owned()).chain(titles).collect(),
            rows: self
                .curves
                .sizes_bytes
                .iter()
                .enumerate()
                .map(|(at, &bytes)| {
                    let cells = self
                        .curves
                        .curves
                        .iter()
                        .map(|curve| miss_percent(share(&curve.points[at])));
                    std::iter::once(size(bytes)).chain(cells).collect()
                })
                .collect(),
        }
    }
}
