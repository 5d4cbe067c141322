//! Columns of text for a terminal.

/// Columns, each as wide as its widest cell. The first `left` columns are on the left, the others on the
/// right.
pub(crate) fn text_table(head: &[String], rows: &[Vec<String>], left: usize) -> String {
    let all = || std::iter::once(head).chain(rows.iter().map(Vec::as_slice));
    let width = |column: usize| all().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let line = |row: &[String]| {
        let cells = row.iter().zip(&widths).enumerate().map(|(at, (cell, &width))| {
            if at < left { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    all().map(line).collect()
}
