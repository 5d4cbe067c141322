//! Tables, the same in a terminal and on a page.

use maud::Markup;

use crate::page::table;
use crate::table::Table;

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
        let mut table = Table::new(
            (0..self.head.len())
                .map(|column| if column < left { 'l' } else { 'r' })
                .collect::<String>(),
        );
        std::iter::once(&self.head).chain(&self.rows).for_each(|row| table.row(row));
        table.to_string()
    }
}
