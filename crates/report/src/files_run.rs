//! A run with files on several disks: classes of files, the disks, and moves.

use freewheel_array::config::FilesWorkload;
use freewheel_array::files::{
    ClassResult, ClassStripes, CoolingResult, DriftResult, FilesRun, NewFilesResult,
    RestripingResult,
};
use freewheel_model::stats::Summary;
use freewheel_sim::RunResult;
use freewheel_sim::config::{SimConfig, Workload};
use freewheel_sim::files::DiskUse;
use freewheel_units::grouped;

use crate::finding::{Confidence, Cost, Finding, Topic, Unit};
use crate::numbers::{average, ms, per_second, percent, rate, size, span};
use crate::rows::Rows;

/// Disks of a terminal's table at most: the busiest ones.
const DISKS_SHOWN: usize = 24;

/// The tables of a run with files, with their titles; none for other runs.
pub(crate) fn tables(result: &RunResult) -> Vec<(&'static str, Rows)> {
    let Some(files) = &result.files else { return Vec::new() };
    let mut tables = vec![("Files", classes(&files.classes))];
    tables.extend(stripes(&files.classes).map(|rows| ("Stripes", rows)));
    tables.extend(files.drift.as_ref().map(|drift| ("Drift", drift_rows(drift))));
    tables.extend(files.new_files.as_ref().map(|new| ("New files", new_rows(new))));
    tables.extend(files.restriping.as_ref().map(|done| ("New stripes", restriping_rows(done))));
    tables.extend(files.cooling.as_ref().map(|cooling| ("Moves", cooling_rows(cooling))));
    tables.push(("Disks", disks(&result.disks, files)));
    tables
}

/// Rows for a terminal.
pub(crate) fn text(result: &RunResult) -> Vec<String> {
    tables(result)
        .iter()
        .map(|(title, rows)| rows.text(if *title == "Disks" { 2 } else { 1 }))
        .collect()
}

/// That the disks cannot serve what is asked: the queue grows until the run ends.
pub(crate) fn overload(config: &SimConfig, result: &RunResult) -> Option<Finding> {
    let Workload::Files(FilesWorkload { rate: Some(rate), rates, .. }) = &config.workload else {
        return None;
    };
    // Of several rates the lowest: a run that outlasts even that one did not keep up.
    let rate = rates.iter().map(|later| later.rate).fold(*rate, f64::min);
    let expected_s = result.requests as f64 / rate;
    let elapsed_s = result.elapsed_ns as f64 / 1e9;
    let is_late = elapsed_s > OUTLASTS * expected_s && result.outstanding_mean > QUEUE_LONG;
    let busiest = result.disks.iter().map(|disk| disk.utilisation).fold(0.0, f64::max);
    is_late.then(|| {
        let headline = "A disk cannot serve what is asked of it: its queue grows until the run ends.";
        Finding::new(Topic::Overload, Confidence::Simulated, headline)
            .number("busiest disk", busiest, Unit::Share)
            .cost(Cost::Hardware)
            .action("Lower `workload.rate`, add drives, or spread the hot files: `workload.placement = \"heat\"`, or `workload.stripes`.")
            .detail("Mean and percentiles of such a run say how long it was, and not how fast the disks are.")
    })
}

/// A run that takes longer than this many times its arrivals did not keep up with them.
const OUTLASTS: f64 = 1.02;
/// A longer queue is not that of a burst.
const QUEUE_LONG: f64 = 100.0;

fn classes(classes: &[ClassResult]) -> Rows {
    let head = ["class", "files", "bytes", "requests", "mean response, ms", "p50", "p99"];
    Rows::new(head, classes.iter().map(row))
}

fn row(class: &ClassResult) -> [String; 7] {
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
}

/// Stripes of each class; none where every file is whole.
fn stripes(classes: &[ClassResult]) -> Option<Rows> {
    let rows: Vec<[String; 3]> = classes
        .iter()
        .filter_map(|class| {
            let ClassStripes { unit_min, unit_max, width_min, width_max } = class.stripes?;
            Some([
                class.name.clone(),
                range(size(unit_min.get()), size(unit_max.get())),
                range(width_min.to_string(), width_max.to_string()),
            ])
        })
        .collect();
    (!rows.is_empty()).then(|| Rows::new(["class", "stripe unit", "disks a file"], rows))
}

fn range(least: String, most: String) -> String {
    if least == most { least } else { format!("{least} to {most}") }
}

fn drift_rows(drift: &DriftResult) -> Rows {
    let DriftResult { changes, files } = drift;
    let rows = [
        ["changes of the hot set".to_owned(), grouped(*changes)],
        ["files that changed their share".to_owned(), grouped(*files)],
    ];
    Rows::new(["drift", ""], rows)
}

fn new_rows(new: &NewFilesResult) -> Rows {
    let NewFilesResult { created, bytes, deleted, without_room } = new;
    let rows = [
        ["created".to_owned(), grouped(*created)],
        ["bytes created".to_owned(), bytes.human_decimal()],
        ["deleted".to_owned(), grouped(*deleted)],
        ["without room, old file overwritten".to_owned(), grouped(*without_room)],
    ];
    Rows::new(["new files", ""], rows)
}

fn restriping_rows(restriping: &RestripingResult) -> Rows {
    let RestripingResult {
        checks,
        triggered,
        files,
        bytes,
        without_room,
        unfinished,
        held_writes,
        copying_ns,
    } = restriping;
    let rows = [
        ["files with new stripes".to_owned(), grouped(*files)],
        ["bytes copied".to_owned(), bytes.human_decimal()],
        ["copies under way".to_owned(), span(*copying_ns as f64 / 1e9)],
        ["not complete at the end".to_owned(), grouped(*unfinished)],
        ["without room".to_owned(), grouped(*without_room)],
        ["writes held meanwhile".to_owned(), grouped(*held_writes)],
        ["checks of the load".to_owned(), grouped(*checks)],
        ["of them with new stripes".to_owned(), grouped(*triggered)],
    ];
    Rows::new(["restriping", ""], rows)
}

fn cooling_rows(cooling: &CoolingResult) -> Rows {
    let CoolingResult {
        steps,
        moves,
        bytes,
        refusals,
        held_writes,
        at_once,
        unfinished,
        copying_ns,
    } = cooling;
    let mut rows = vec![
        ["moves".to_owned(), grouped(*moves)],
        ["bytes moved".to_owned(), bytes.human_decimal()],
        ["most moves at once".to_owned(), grouped(*at_once)],
        ["not complete at the end".to_owned(), grouped(*unfinished)],
        ["copies under way".to_owned(), span(*copying_ns as f64 / 1e9)],
        ["writes held meanwhile".to_owned(), grouped(*held_writes)],
        ["looks at the disks".to_owned(), grouped(*steps)],
    ];
    let refused = refusals.iter().map(|(why, count)| [format!("no move: {why}"), grouped(*count)]);
    rows.extend(refused);
    Rows::new(["cooling", ""], rows)
}

fn disks(disks: &[DiskUse], files: &FilesRun) -> Rows {
    let mut busiest_first: Vec<usize> = (0..disks.len()).collect();
    busiest_first.sort_by(|&a, &b| disks[b].utilisation.total_cmp(&disks[a].utilisation));
    let left_out = busiest_first.len().saturating_sub(DISKS_SHOWN);
    busiest_first.truncate(DISKS_SHOWN);
    busiest_first.sort_unstable();
    let mut rows: Vec<[String; 9]> = busiest_first
        .into_iter()
        .map(|number| {
            let disk = &disks[number];
            [
                number.to_string(),
                files.drives[number].clone(),
                percent(files.filled[number]),
                percent(disk.utilisation),
                percent(disk.writing_back),
                average(disk.queue_mean),
                grouped(disk.queue_max),
                per_second(disk.pieces_per_second),
                rate(disk.bytes_per_second),
            ]
        })
        .collect();
    if left_out > 0 {
        let words = format!("{} less busy", grouped(left_out as u64));
        let mut last: [String; 9] = Default::default();
        last[0] = words;
        rows.push(last);
    }
    let head = [
        "disk",
        "drive",
        "full",
        "busy",
        "of it writing back",
        "queue",
        "longest",
        "pieces/s",
        "data",
    ];
    Rows::new(head, rows)
}
