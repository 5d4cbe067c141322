//! Tables of a terminal: columns that line up.

use std::fmt;

/// Rows of text; columns of words line up on the left, columns of numbers on the right.
pub struct Table {
    /// One character a column: `l` or `r`.
    alignment: String,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table; `alignment` has an `l` or an `r` for each column.
    pub fn new(alignment: impl Into<String>) -> Self {
        Self { alignment: alignment.into(), rows: Vec::new() }
    }

    /// Appends a row.
    pub fn row<T: Into<String>>(&mut self, cells: impl IntoIterator<Item = T>) {
        let cells: Vec<String> = cells.into_iter().map(Into::into).collect();
        assert_eq!(cells.len(), self.alignment.len(), "a cell for each column");
        self.rows.push(cells);
    }

    fn width(&self, column: usize) -> usize {
        self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0)
    }
}

impl fmt::Display for Table {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths: Vec<usize> = (0..self.alignment.len()).map(|at| self.width(at)).collect();
        for row in &self.rows {
            let cells = row.iter().zip(&widths).zip(self.alignment.chars());
            let padded: Vec<String> = cells
                .map(|((cell, &width), side)| match side {
                    'l' => format!("{cell:<width$}"),
                    _ => format!("{cell:>width$}"),
                })
                .collect();
            writeln!(out, "{}", padded.join("  ").trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_aligns_words_left_numbers_right() {
        let mut table = Table::new("lr");
        table.row(["reads", "7"]);
        table.row(["all", "12"]);
        assert_eq!(table.to_string(), "reads   7\nall    12\n");
    }
}
