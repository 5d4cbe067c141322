//! A sweep as a table of a terminal.

use freewheel_study::sweep::SweepDone;
use freewheel_study::table::Column;

use crate::numbers::{counted, ms, per_second};
use crate::table::Table;
use crate::text::Text;

/// Configurations in the text.
const SHOWN: usize = 10;

/// The best configurations, by their mean response.
impl Text for SweepDone {
    fn text(&self) -> String {
        let mut table = Table::new("lrrr");
        table.row(["configuration", "mean", "p99", "requests/s"]);
        let mut best: Vec<usize> = (0..self.rows.len()).collect();
        let (mean, p99) = (reals(self, "response_ns_mean"), wholes(self, "response_ns_p99"));
        let rate = reals(self, "requests_per_second");
        best.sort_by(|a, b| mean[*a].total_cmp(&mean[*b]));
        for &row in best.iter().take(SHOWN) {
            let values = self.columns.iter().skip(1).take(self.keys);
            let values = values.map(|(key, column)| format!("{key}={}", column.text(row)));
            let [mean, p99] = [mean[row], p99[row] as f64].map(|ns| format!("{} ms", ms(ns)));
            let values = values.collect::<Vec<_>>().join(" ");
            table.row([values, mean, p99, per_second(rate[row])]);
        }
        let count = counted(self.rows.len() as u64, "configuration");
        let resumed = match self.resumed {
            0 => String::new(),
            resumed => format!(", {resumed} of them run before"),
        };
        format!("{count}{resumed}; the best by their mean response:\n{table}")
    }
}

fn reals<'a>(done: &'a SweepDone, name: &str) -> &'a [f64] {
    match column(done, name) {
        Some(Column::Real(values)) => values,
        _ => &[],
    }
}

fn wholes<'a>(done: &'a SweepDone, name: &str) -> &'a [i64] {
    match column(done, name) {
        Some(Column::Whole(values)) => values,
        _ => &[],
    }
}

fn column<'a>(done: &'a SweepDone, name: &str) -> Option<&'a Column> {
    let mut columns = done.columns.iter().rev();
    columns.find(|(of, _)| of == name).map(|(_, column)| column)
}
