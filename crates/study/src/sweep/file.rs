//! The Parquet file of a sweep: a row a configuration, in order.
//!
//! | column | type | content |
//! |---|---|---|
//! | `configuration` | int64 | its number, from 0 |
//! | each swept key | int64, double or string | its value; a string where one of them is no number |
//! | `seed` | int64 | of every random stream; missing where the seed is swept |
//! | [`WHOLE_COLUMNS`] | int64 | sums and times |
//! | [`REAL_COLUMNS`] | double | means, rates and shares |
//! | `result_hash` | string | hash over every completion |
//!
//! Key-value metadata: `freewheel.sweep.schema_version`, `freewheel.version`, `freewheel.sweep.over`, and
//! `freewheel.sweep.first_config`, the first configuration as TOML.

use super::keys::SweptKey;
use super::rows::{REAL_COLUMNS, SweepRow, WHOLE_COLUMNS};
use crate::table::Column;

/// The columns of a sweep with their names, in order.
pub(super) fn columns(
    keys: &[SweptKey],
    values: &[Vec<usize>],
    seeds: &[u64],
    rows: &[&SweepRow],
) -> Vec<(String, Column)> {
    let numbers = rows.iter().map(|row| row.configuration as i64).collect();
    let mut all = vec![("configuration".to_owned(), Column::Whole(numbers))];
    for (at, key) in keys.iter().enumerate() {
        let texts = values.iter().map(|of_keys| key.values[of_keys[at]].as_str());
        all.push((key.key.clone(), of_texts(&texts.collect::<Vec<_>>())));
    }
    if keys.iter().all(|key| key.key != "seed") {
        let seeds = seeds.iter().map(|seed| whole(*seed)).collect();
        all.push(("seed".to_owned(), Column::Whole(seeds)));
    }
    for (at, name) in WHOLE_COLUMNS.iter().enumerate() {
        let values = rows.iter().map(|row| whole(row.whole[at])).collect();
        all.push(((*name).to_owned(), Column::Whole(values)));
    }
    for (at, name) in REAL_COLUMNS.iter().enumerate() {
        let values = rows.iter().map(|row| row.real[at]).collect();
        all.push(((*name).to_owned(), Column::Real(values)));
    }
    let hashes = rows.iter().map(|row| row.result_hash.clone()).collect();
    all.push(("result_hash".to_owned(), Column::Text(hashes)));
    all
}

fn whole(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Texts as numbers where all of them are some.
fn of_texts(texts: &[&str]) -> Column {
    let whole: Result<Vec<i64>, _> = texts.iter().map(|text| plain(text).parse()).collect();
    if let Ok(whole) = whole {
        return Column::Whole(whole);
    }
    let real: Result<Vec<f64>, _> = texts.iter().map(|text| plain(text).parse()).collect();
    match real {
        Ok(real) => Column::Real(real),
        Err(_) => Column::Text(
            texts.iter().map(|text| text.trim_matches(['"', '\'']).to_owned()).collect(),
        ),
    }
}

fn plain(text: &&str) -> String {
    text.replace('_', "")
}
