//! Curves drawn with letters, for people at a terminal.

use std::fmt;

use crate::axis::round_step;
use crate::drawing::{short, whole};

/// Columns of the picture without its axis.
const COLUMNS: usize = 64;
/// The first, the last and every third one between have a number beside them.
const ROWS: usize = 13;
const LABELLED: usize = 3;
/// A letter of braille is two dots wide and four high.
const DOTS_WIDE: usize = COLUMNS * 2;
const DOTS_HIGH: usize = ROWS * 4;
/// Columns of the numbers at the vertical axis.
const LABEL: usize = 8;

/// Curves over common axes that begin at zero.
pub(crate) struct Plot {
    x_max: f64,
    y_max: f64,
    unit: &'static str,
    dots: Vec<[bool; DOTS_WIDE]>,
}

impl Plot {
    /// Empty axes up to `x_max`, and to `y_max` or a rounder number above it; `unit` follows the numbers of
    /// the vertical axis.
    pub(crate) fn new(x_max: f64, y_max: f64, unit: &'static str) -> Self {
        let steps = ((ROWS - 1) / LABELLED) as f64;
        let y_max = steps * round_step(y_max / steps, &STEPS);
        Self { x_max, y_max, unit, dots: vec![[false; DOTS_WIDE]; DOTS_HIGH] }
    }

    /// Draws straight lines between points whose x ascends; `dashed` leaves gaps.
    pub(crate) fn curve(&mut self, points: &[(f64, f64)], dashed: bool) {
        let mut before: Option<usize> = None;
        for column in 0..DOTS_WIDE {
            let x = (column as f64 + 0.5) / DOTS_WIDE as f64 * self.x_max;
            let Some(y) = value_at(points, x) else { continue };
            let row = self.row_of(y);
            // A steep piece is filled up, so that the curve has no holes.
            let (low, high) = (row.min(before.unwrap_or(row)), row.max(before.unwrap_or(row)));
            before = Some(row);
            if dashed && column % 4 >= 2 {
                continue;
            }
            for dots in &mut self.dots[low..=high] {
                dots[column] = true;
            }
        }
    }

    /// Row of dots, counted from the top.
    fn row_of(&self, y: f64) -> usize {
        let share = (y / self.y_max).clamp(0.0, 1.0);
        ((1.0 - share) * (DOTS_HIGH - 1) as f64).round() as usize
    }

    fn line(&self, row: usize) -> String {
        (0..COLUMNS)
            .map(|column| {
                let bits =
                    BRAILLE.iter().filter(|(x, y, _)| self.dots[4 * row + y][2 * column + x]);
                match bits.fold(0, |sum, (_, _, bit)| sum | bit) {
                    0 => ' ',
                    sum => char::from_u32(0x2800 + sum).unwrap_or(' '),
                }
            })
            .collect()
    }

    fn label(&self, row: usize) -> String {
        let lowest = ROWS - 1;
        if !row.is_multiple_of(LABELLED) {
            return String::new();
        }
        let value = self.y_max * (lowest - row) as f64 / lowest as f64;
        format!("{} {}", short(value), self.unit)
    }
}

/// Column and row of a dot within its letter, and its bit (Unicode 2800).
const BRAILLE: [(usize, usize, u32); 8] = [
    (0, 0, 0x01),
    (0, 1, 0x02),
    (0, 2, 0x04),
    (1, 0, 0x08),
    (1, 1, 0x10),
    (1, 2, 0x20),
    (0, 3, 0x40),
    (1, 3, 0x80),
];

/// Digits of a step of the vertical axis, which has a fixed number of steps.
const STEPS: [f64; 10] = [1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0];

/// On the line between the points around `x`; none outside of them.
fn value_at(points: &[(f64, f64)], x: f64) -> Option<f64> {
    let above = points.partition_point(|point| point.0 < x);
    let (&(x1, y1), &(x2, y2)) = (points.get(above.checked_sub(1)?)?, points.get(above)?);
    Some(y1 + (y2 - y1) * (x - x1) / (x2 - x1))
}

/// A bar of `share` of the columns, in steps of an eighth; the shortest bar for a smaller share above
/// zero.
pub(crate) fn bar(share: f64, columns: usize) -> String {
    let eighths = (share * (8 * columns) as f64).round() as usize;
    let eighths = if share > 0.0 { eighths.max(1) } else { 0 };
    let rest = match eighths % 8 {
        0 => None,
        // Unicode 2588 is the whole block, and those behind it are an eighth narrower each.
        rest => char::from_u32(0x2590 - rest as u32),
    };
    "█".repeat(eighths / 8).chars().chain(rest).collect()
}

impl fmt::Display for Plot {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for row in 0..ROWS {
            let line = format!("{:>LABEL$} ┤{}", self.label(row), self.line(row));
            writeln!(out, "{}", line.trim_end())?;
        }
        writeln!(out, "{:>LABEL$} └{}", "", "┬───────────────".repeat(COLUMNS / 16) + "┬")?;
        let quarters: String = (1..=4)
            .map(|quarter| format!("{:>16}", whole(self.x_max * f64::from(quarter) / 4.0)))
            .collect();
        writeln!(out, "{:>LABEL$}  0{}", "", quarters)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(points: &[(f64, f64)]) -> Vec<String> {
        let mut plot = Plot::new(100.0, 10.0, "ms");
        plot.curve(points, false);
        plot.to_string().lines().map(String::from).collect()
    }

    #[test]
    fn plot_rising_line_ends_above() {
        let lines = lines(&[(0.0, 0.0), (100.0, 10.0)]);
        let drawn = |row: usize| lines[row].chars().position(|letter| letter > '\u{2800}');
        assert!(drawn(0).unwrap() > 60 && drawn(ROWS - 1).unwrap() < 15, "{}", lines.join("\n"));
    }

    #[test]
    fn plot_steep_curve_has_no_holes() {
        let lines = lines(&[(0.0, 0.0), (10.0, 0.0), (11.0, 9.0), (100.0, 10.0)]);
        let drawn = |letter: char| letter > '\u{2800}';
        assert!(lines[..ROWS].iter().all(|line| line.chars().any(drawn)), "{}", lines.join("\n"));
    }

    #[test]
    fn plot_bar_length_exact_to_eighth() {
        assert_eq!(
            [0.0, 0.001, 0.5, 0.6, 1.0].map(|share| bar(share, 2)),
            ["", "▏", "█", "█▎", "██"]
        );
    }

    #[test]
    fn plot_axis_numbers_are_round() {
        assert_eq!(
            [4.25, 5.0, 0.21, 9.0].map(|least| round_step(least, &STEPS)),
            [5.0, 5.0, 0.25, 10.0]
        );
    }

    #[test]
    fn plot_fits_into_80_columns() {
        let widest = lines(&[(0.0, 0.0), (100.0, 10.0)]);
        assert!(widest.iter().all(|line| line.chars().count() <= 80), "{}", widest.join("\n"));
    }
}
