//! A run with files on several disks: classes of files, the disks, and moves.

use freewheel_model::stats::Summary;
use freewheel_sim::RunResult;
use freewheel_sim::files::{ClassResult, CoolingResult, DiskUse};
use freewheel_units::grouped;

use crate::numbers::{ms, percent, rate};
use crate::rows::Rows;

/// Disks of a terminal's table at most: the busiest ones.
const DISKS_SHOWN: usize = 24;

/// The tables of a run with files, empty for other runs, each with its number of columns of words.
pub(crate) fn tables(result: &RunResult) -> Vec<(&'static str, Rows)> {
    let Some(files) = &result.files else { return Vec::new() };
    let mut tables = vec![("Files", classes(&files.classes))];
    tables.extend(files.cooling.as_ref().map(|cooling| ("Moves", cooling_rows(cooling))));
    tables.push(("Disks", disks(&result.disks, &files.filled)));
    tables
}

/// The same for a terminal.
pub(crate) fn text(result: &RunResult) -> Vec<String> {
    tables(result).iter().map(|(_, rows)| rows.text(1)).collect()
}

fn classes(classes: &[ClassResult]) -> Rows {
    let row = |class: &ClassResult| {
        let Summary { count, mean_ns, p50_ns, p99_ns, .. } = class.response;
        [
            class.name.clone(),
            grouped(class.files),
            class.bytes.human_decimal(),
            grouped(count),
            ms(mean_ns),
            ms(p50_ns as f64),
            ms(p99_ns as f64),
        ]
    };
    let head = ["class", "files", "bytes", "requests", "mean response, ms", "p50", "p99"];
    Rows::new(head, classes.iter().map(row))
}

fn cooling_rows(cooling: &CoolingResult) -> Rows {
    let CoolingResult { steps, moves, bytes, refusals, held_writes } = cooling;
    let mut rows = vec![
        ["moves".to_owned(), grouped(*moves)],
        ["bytes moved".to_owned(), bytes.human_decimal()],
        ["writes held meanwhile".to_owned(), grouped(*held_writes)],
        ["looks at the disks".to_owned(), grouped(*steps)],
    ];
    let refused = refusals.iter().map(|(why, count)| [format!("no move: {why}"), grouped(*count)]);
    rows.extend(refused);
    Rows::new(["cooling", ""], rows)
}

fn disks(disks: &[DiskUse], filled: &[f64]) -> Rows {
    let mut busiest_first: Vec<usize> = (0..disks.len()).collect();
    busiest_first.sort_by(|&a, &b| disks[b].utilisation.total_cmp(&disks[a].utilisation));
    let left_out = busiest_first.len().saturating_sub(DISKS_SHOWN);
    busiest_first.truncate(DISKS_SHOWN);
    busiest_first.sort_unstable();
    let row = |number: usize| {
        let disk = &disks[number];
        [
            number.to_string(),
            percent(filled[number]),
            percent(disk.utilisation),
            format!("{:.2}", disk.queue_mean),
            grouped(disk.queue_max),
            format!("{:.1}", disk.pieces_per_second),
            rate(disk.bytes_per_second),
        ]
    };
    let mut rows: Vec<[String; 7]> = busiest_first.into_iter().map(row).collect();
    if left_out > 0 {
        let words = format!("{} less busy", grouped(left_out as u64));
        let mut last: [String; 7] = Default::default();
        last[0] = words;
        rows.push(last);
    }
    let head = ["disk", "full", "busy", "queue", "longest", "pieces/s", "heat"];
    Rows::new(head, rows)
}
