//! A fleet of drives: which are hot, where a scrub fits, which change pays on how many.

mod page;
mod summary;
mod text;

use std::collections::BTreeMap;

use freewheel_study::fleet::{FleetDone, FleetOptions, FleetRow, columns};
use freewheel_study::table::Column;
use serde::Serialize;
use serde_json::{Map, Value, json};

use self::summary::Summary;

/// Share of the time in which a hot drive works at least, unless said otherwise.
pub const HOT_SHARE: f64 = 0.5;

/// Drives in the list of those that are worth a look, unless said otherwise.
pub const REPORTS: usize = 10;

/// The studies of a fleet with what follows from them.
pub struct FleetReport {
    /// A row for each drive, in order.
    pub rows: Vec<FleetRow>,
    /// Drives that an earlier run had studied.
    pub resumed: usize,
    /// Options of each study.
    pub options: FleetOptions,
    /// Share of the time in which a hot drive works at least.
    pub hot_share: f64,
    /// Paths of the reports of single drives from the page, by the numbers of their rows.
    pub reports: BTreeMap<usize, String>,
}

/// The document of a fleet.
#[derive(Serialize)]
struct Document<'a> {
    schema_version: u32,
    version: &'static str,
    options: &'a FleetOptions,
    hot_share: f64,
    summary: Summary,
    /// A row for each drive, as in the table.
    drives: Vec<Map<String, Value>>,
}

impl FleetReport {
    /// Works out what follows from the studies of a fleet.
    pub fn new(done: FleetDone, options: FleetOptions, hot_share: f64) -> Self {
        let FleetDone { rows, resumed } = done;
        Self { rows, resumed, options, hot_share, reports: BTreeMap::new() }
    }

    fn summary(&self) -> Summary {
        Summary::new(&self.rows, self.hot_share)
    }

    /// Numbers of the rows that are worth a look, the first of them most: overloaded drives, hot ones, and those
    /// whose 99th percentile is far above that of the other drives of their model.
    pub fn worth_a_look(&self, most: usize) -> Vec<usize> {
        summary::worth_a_look(&self.rows, self.hot_share, most)
    }

    /// Report for a terminal.
    pub fn text(&self) -> String {
        text::text(self)
    }

    /// The page: one HTML file. It refers to nothing but the reports of single drives.
    pub fn html(&self) -> String {
        page::html(self)
    }

    /// The document: options, counts, and all rows, as JSON.
    pub fn json(&self) -> String {
        let document = json!(Document {
            schema_version: 1,
            version: env!("CARGO_PKG_VERSION"),
            options: &self.options,
            hot_share: self.hot_share,
            summary: self.summary(),
            drives: self.documents(),
        });
        format!("{document:#}\n")
    }

    /// The table: names of the columns with their values.
    pub fn columns(&self) -> Vec<(String, Column)> {
        columns(self.rows.iter(), self.options.checks)
    }

    /// Rows as documents, with the names of the table's columns.
    fn documents(&self) -> Vec<Map<String, Value>> {
        let mut rows = vec![Map::new(); self.rows.len()];
        for (name, column) in self.columns() {
            for (row, value) in rows.iter_mut().zip(values(&column)) {
                row.insert(name.clone(), value);
            }
        }
        rows
    }
}

fn values(column: &Column) -> Vec<Value> {
    match column {
        Column::Whole(values) => values.iter().map(|value| json!(value)).collect(),
        Column::Real(values) => values.iter().map(|value| json!(value)).collect(),
        Column::Text(values) => values.iter().map(|value| json!(value)).collect(),
        Column::OptionalWhole(values) => values.iter().map(|value| json!(value)).collect(),
        Column::OptionalReal(values) => values.iter().map(|value| json!(value)).collect(),
        Column::OptionalText(values) => values.iter().map(|value| json!(value)).collect(),
        Column::OptionalFlag(values) => values.iter().map(|value| json!(value)).collect(),
    }
}
