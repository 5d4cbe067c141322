//! The tables of a plan, the same in a terminal and on a page.

use freewheel_study::plan::{Outcome, PlacePlan, PlannedMove, SimulatedOutcome};
use freewheel_units::grouped;

use super::times;
use super::words::{response, size};
use crate::numbers::{about, percent, short_time, signed_percent, span};
use crate::rows::Rows;

/// The moves in their order.
pub(super) fn moves(plan: &PlacePlan) -> Rows {
    let row = |(number, wanted): (usize, &PlannedMove)| {
        [
            format!("{}. {}", number + 1, wanted.file),
            wanted.from.clone(),
            wanted.to.clone(),
            size(wanted.bytes),
            match wanted.makes_room {
                true => "makes room".into(),
                false if wanted.ends_endless_wait => "an endless wait".into(),
                // Of an overload there is no mean that could become shorter.
                false if overload_before(number, plan) => "less overload".into(),
                false => short_time((wanted.gain_s * 1e9).round() as u64),
            },
            response(wanted.response_s),
            about(wanted.copy_s),
            about(wanted.payback_s),
        ]
    };
    let head = [
        "move",
        "from",
        "to",
        "size",
        "saves",
        "response after",
        "copy takes",
        "then pays back in",
    ];
    Rows::new(head, plan.moves.iter().enumerate().map(row))
}

fn overload_before(number: usize, plan: &PlacePlan) -> bool {
    let before =
        number.checked_sub(1).map_or(plan.before.response_s, |at| plan.moves[at].response_s);
    before.is_none()
}

/// Table of new files and their disks.
pub(super) fn placed(plan: &PlacePlan) -> Rows {
    Rows::new(
        ["new file", "disk"],
        plan.placed.iter().map(|new| [new.file.clone(), new.disk.clone()]),
    )
}

/// The placements and what clients see.
pub(super) fn outcomes(plan: &PlacePlan) -> Rows {
    let head = ["", "moves", "bytes", "model", "simulated", "model above", "simulated p99"];
    let all = [&plan.before, &plan.after, &plan.equal_bytes].into_iter();
    let all = all.chain(plan.what_if.iter().map(|what_if| &what_if.outcome));
    Rows::new(head, all.map(row))
}

fn row(outcome: &Outcome) -> [String; 7] {
    let simulated = outcome.simulated;
    let of = |value: fn(&SimulatedOutcome) -> f64| simulated.as_ref().map(value);
    let apart = of(|simulated| simulated.model_above);
    [
        outcome.name.clone(),
        grouped(outcome.moves),
        size(outcome.bytes),
        response(outcome.response_s),
        match simulated {
            None => response(None),
            Some(simulated) => format!(
                "{} ± {}",
                response(Some(simulated.response_s)),
                percent(simulated.uncertain_s / simulated.response_s)
            ),
        },
        apart.map_or_else(String::new, signed_percent),
        response(of(|simulated| simulated.p99_s)),
    ]
}

/// The disks before and after. Where disks of a trace differ in their time: in what time each has its
/// requests, and how many count.
pub(super) fn disks(plan: &PlacePlan) -> Rows {
    let mut rows = disks_by_load(plan);
    if let Some(times) = &plan.load_times
        && times::differ(times)
    {
        rows.head.extend(["requests within".into(), "counted".into()]);
        for (row, disk) in rows.rows.iter_mut().zip(&times.disks) {
            row.extend([span(disk.span_s), grouped(disk.requests)]);
        }
    }
    rows
}

fn disks_by_load(plan: &PlacePlan) -> Rows {
    let head = ["disk", "drive", "full now", "after", "busy now", "after", "response now", "after"];
    Rows::new(
        head,
        (0..plan.disks.len()).map(|number| {
            let (disk, before, after) =
                (&plan.disks[number], &plan.before.disks[number], &plan.after.disks[number]);
            [
                disk.name.clone(),
                disk.drive.clone(),
                percent(before.used.get() as f64 / disk.size.get().max(1) as f64),
                percent(after.used.get() as f64 / disk.size.get().max(1) as f64),
                percent(before.busy),
                percent(after.busy),
                idle_or_response(before.response_s, before.busy),
                idle_or_response(after.response_s, after.busy),
            ]
        }),
    )
}

fn idle_or_response(seconds: Option<f64>, busy: f64) -> String {
    match seconds {
        None if busy < 1.0 => "idle".into(),
        seconds => response(seconds),
    }
}
