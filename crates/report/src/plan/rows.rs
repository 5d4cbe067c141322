//! The tables of a plan, the same in a terminal and on a page.

use freewheel_study::plan::{Outcome, PlacePlan, PlannedMove};
use freewheel_units::{four_digits, grouped};

use super::words::{response, size};
use crate::numbers::{about, percent};

/// A table: a heading for each column, and rows with a cell for each heading.
pub(super) struct Rows {
    pub head: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

fn rows<const N: usize>(head: [&str; N], rows: impl Iterator<Item = [String; N]>) -> Rows {
    Rows { head: head.map(String::from).to_vec(), rows: rows.map(|row| row.to_vec()).collect() }
}

/// The moves in their order.
pub(super) fn moves(plan: &PlacePlan) -> Rows {
    let row = |(number, wanted): (usize, &PlannedMove)| {
        [
            (number + 1).to_string(),
            wanted.file.clone(),
            wanted.from.clone(),
            wanted.to.clone(),
            size(wanted.bytes),
            format!("{} ms", four_digits(wanted.gain_s * 1000.0)),
            response(wanted.response_s),
            about(wanted.copy_s),
            about(wanted.payback_s),
        ]
    };
    let head = [
        "",
        "file",
        "from",
        "to",
        "size",
        "saves",
        "response then",
        "copy takes",
        "paid back after",
    ];
    rows(head, plan.moves.iter().enumerate().map(row))
}

/// Where new files go.
pub(super) fn placed(plan: &PlacePlan) -> Rows {
    rows(["new file", "disk"], plan.placed.iter().map(|new| [new.file.clone(), new.disk.clone()]))
}

/// The placements and what clients see.
pub(super) fn outcomes(plan: &PlacePlan) -> Rows {
    let row = |outcome: &Outcome| {
        let simulated = outcome.simulated;
        let of = |value: fn(&freewheel_study::plan::SimulatedOutcome) -> f64| {
            simulated.as_ref().map(value)
        };
        let apart = of(|simulated| simulated.model_above);
        [
            outcome.name.clone(),
            grouped(outcome.moves),
            size(outcome.bytes),
            response(outcome.response_s),
            response(of(|simulated| simulated.response_s)),
            apart.map_or_else(String::new, |share| format!("{:+.1} %", 100.0 * share)),
            response(of(|simulated| simulated.p99_s)),
        ]
    };
    let head = ["", "moves", "bytes", "model", "simulated", "model above", "simulated p99"];
    let all = [&plan.before, &plan.after, &plan.equal_bytes].into_iter().chain(&plan.what_if);
    rows(head, all.map(row))
}

/// The disks before and after.
pub(super) fn disks(plan: &PlacePlan) -> Rows {
    let row = |number: usize| {
        let (disk, before, after) =
            (&plan.disks[number], &plan.before.disks[number], &plan.after.disks[number]);
        let filled = |used: freewheel_units::Bytes| {
            percent(used.get() as f64 / disk.size.get().max(1) as f64)
        };
        let idle = |seconds: Option<f64>, busy: f64| match seconds {
            None if busy < 1.0 => "idle".into(),
            seconds => response(seconds),
        };
        [
            disk.name.clone(),
            disk.drive.clone(),
            filled(before.used),
            filled(after.used),
            percent(before.busy),
            percent(after.busy),
            idle(before.response_s, before.busy),
            idle(after.response_s, after.busy),
        ]
    };
    let head = ["disk", "drive", "full", "then", "busy", "then", "response", "then"];
    rows(head, (0..plan.disks.len()).map(row))
}
