//! Tables, the same in a terminal and on a page.

use maud::Markup;

use crate::page::table;

/// A table: a heading for each column, and rows with a cell for each heading.
pub(crate) struct Rows {
    pub head: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

impl Rows {
    pub(crate) fn new<const N: usize>(
        head: [&str; N],
        rows: impl IntoIterator<Item = [String; N]>,
    ) -> Self {
        let rows = rows.into_iter().map(|row| row.to_vec()).collect();
        Self { head: head.map(String::from).to_vec(), rows }
    }

    /// The table on a page.
    pub(crate) fn html(&self) -> Markup {
        let head: Vec<&str> = self.head.iter().map(String::as_str).collect();
        table(&head, &self.rows)
    }

    /// Columns for a terminal, each as wide as its widest cell. The first `left` columns are on the left,
    /// the others on the right.
    pub(crate) fn text(&self, left: usize) -> String {
        let all = || std::iter::once(&self.head).chain(&self.rows);
        let width = |column: usize| all().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.head.len()).map(width).collect();
        all()
            .map(|row| {
                let cells = row.iter().zip(&widths).enumerate().map(|(at, (cell, &width))| {
                    if at < left { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
                });
                cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
            })
            .collect()
    }
}
