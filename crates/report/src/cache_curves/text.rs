//! The curves for a terminal.

use freewheel_study::CacheCurves;

use super::rows::{Rows, summary};
use super::words::{Conclusions, columns, counted};
use crate::page::trace_name;

pub(super) fn text(curves: &CacheCurves, conclusions: &Conclusions) -> String {
    let (name, table) = (trace_name(&curves.options.trace), table(&summary(curves)));
    let mut text = format!("{name}: {}\n{}\n\n{table}\n", counted(curves), columns(curves));
    let Conclusions { headline, details, cautions } = conclusions;
    for sentence in std::iter::once(headline).chain(details).chain(cautions) {
        text += sentence;
        text.push('\n');
    }
    text
}

/// Columns of numbers; the first is on the left.
fn table(Rows { head, rows }: &Rows) -> String {
    let all = || std::iter::once(head).chain(rows);
    let width = |column: usize| all().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).enumerate().map(|(at, (cell, &width))| match at {
            0 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        });
        cells.collect::<Vec<_>>().join("  ") + "\n"
    };
    all().map(line).collect()
}
