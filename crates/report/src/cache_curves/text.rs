//! The curves for a terminal.

use freewheel_study::{CacheCurves, Responses};

use super::rows::{Rows, summary};
use super::words::{Conclusions, counted};

pub(super) fn text(curves: &CacheCurves, conclusions: &Conclusions) -> String {
    let mut text =
        format!("{}\n{}\n\n{}\n", counted(curves), columns(curves), table(&summary(curves)));
    let Conclusions { headline, details, cautions } = conclusions;
    for sentence in std::iter::once(headline).chain(details).chain(cautions) {
        text += sentence;
        text.push('\n');
    }
    text
}

/// What the columns of the table are.
fn columns(curves: &CacheCurves) -> String {
    let misses = match curves.options.sample {
        None => "Misses in % of the reads".to_owned(),
        Some(share) => format!("Misses in % of the uses of cache blocks, from a sample of {share}"),
    };
    match &curves.responses {
        Responses::Simulated(simulated) => {
            format!("{misses}; response of reads from memory or {} in ms.", simulated.drive)
        }
        Responses::NoTiming { .. } | Responses::NotAsked => misses + ".",
    }
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
