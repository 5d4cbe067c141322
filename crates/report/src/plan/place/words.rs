//! Conclusions from a plan, in sentences.

use freewheel_study::plan::{Outcome, PlacePlan, PlannedMove};
use freewheel_units::{Bytes, grouped};
use serde::Serialize;

use crate::numbers::{about, capital, ms, percent};

/// Conclusions from a plan.
#[derive(Debug, Serialize)]
pub struct PlaceConclusions {
    /// What to do and what it brings, in a sentence.
    pub headline: String,
    /// Further conclusions, a sentence each.
    pub details: Vec<String>,
    /// What makes the numbers doubtful, a sentence each.
    pub cautions: Vec<String>,
}

impl PlaceConclusions {
    pub(super) fn new(plan: &PlacePlan) -> Self {
        Self { headline: headline(plan), details: details(plan), cautions: cautions(plan) }
    }
}

/// Milliseconds of a time in seconds.
pub(super) fn response(seconds: Option<f64>) -> String {
    seconds.map_or_else(|| OVERLOADED.into(), |seconds| format!("{} ms", ms(seconds * 1e9)))
}

/// In place of a response that there is not.
pub(super) const OVERLOADED: &str = "overloaded";

pub(super) fn size(bytes: Bytes) -> String {
    bytes.human_decimal()
}

fn files(count: u64) -> String {
    format!("{} file{}", grouped(count), if count == 1 { "" } else { "s" })
}

/// The simulated response where there is one, else that of the model.
fn best_known_s(outcome: &Outcome) -> Option<f64> {
    outcome.simulated.map(|simulated| simulated.response_s).or(outcome.response_s)
}

fn headline(plan: &PlacePlan) -> String {
    let (before, after) = (best_known_s(&plan.before), best_known_s(&plan.after));
    let effort = || {
        let Outcome { moves, bytes, .. } = plan.after;
        format!("Move {} ({})", files(moves), size(bytes))
    };
    let new = || format!("Put {} as below", new_files(plan));
    let what = match (plan.placed.is_empty(), plan.moves.is_empty()) {
        (true, true) => {
            return match before {
                Some(_) => format!(
                    "Leave the files where they are: no move is worth it. Mean response: {}.",
                    response(before)
                ),
                None => format!(
                    "Add disks: {} cannot serve what is asked, and no move helps.",
                    overloaded(plan, &plan.before)
                ),
            };
        }
        (true, false) => effort(),
        (false, true) => new(),
        (false, false) => format!("{}, and {}", new(), lower(&effort())),
    };
    let elsewhere = if plan.placed.is_empty() { "now" } else { "by free space" };
    match (before, after) {
        (Some(before), Some(after)) => format!(
            "{what}: the mean response is {} instead of {} {elsewhere}, {}.",
            response(Some(after)),
            response(Some(before)),
            change(before, after)
        ),
        (None, Some(after)) => format!(
            "{what}: the mean response is {}. {} cannot serve {elsewhere} what is asked of {}.",
            response(Some(after)),
            overloaded(plan, &plan.before),
            if overloaded_count(&plan.before) == 1 { "it" } else { "them" }
        ),
        (_, None) => format!(
            "{what}, and add disks: {} cannot serve what is asked even then.",
            overloaded(plan, &plan.after)
        ),
    }
}

fn new_files(plan: &PlacePlan) -> String {
    let count = plan.placed.len() as u64;
    format!("{} new file{}", grouped(count), if count == 1 { "" } else { "s" })
}

fn lower(text: &str) -> String {
    text[..1].to_lowercase() + &text[1..]
}

/// "4.1 times shorter", or "12 % shorter".
fn change(before: f64, after: f64) -> String {
    let ratio = before / after;
    if ratio >= 2.0 {
        format!("{ratio:.1} times shorter")
    } else {
        format!("{} shorter", percent(1.0 - after / before))
    }
}

fn overloaded_count(outcome: &Outcome) -> usize {
    outcome.disks.iter().filter(|disk| disk.busy >= 1.0).count()
}

/// Names of the disks that cannot serve their load, the first three.
fn overloaded(plan: &PlacePlan, outcome: &Outcome) -> String {
    let of = plan.disks.iter().zip(&outcome.disks).filter(|(_, disk)| disk.busy >= 1.0);
    let names: Vec<String> = of.map(|(disk, _)| disk.name.clone()).collect();
    match names.as_slice() {
        [] => "an added disk".into(),
        [one] => format!("disk {one}"),
        [first, .., last] if names.len() <= 3 => {
            let inner = names[1..names.len() - 1].iter().map(|name| format!(", {name}"));
            format!("disks {first}{} and {last}", inner.collect::<String>())
        }
        [first, second, ..] => format!("{} disks, {first} and {second} among them,", names.len()),
    }
}

fn details(plan: &PlacePlan) -> Vec<String> {
    let mut details = Vec::new();
    if let Some(first) = plan.moves.first() {
        details.push(first_move(plan, first));
        let longest = plan.moves.iter().map(|wanted| wanted.payback_s).fold(0.0, f64::max);
        details.push(format!(
            "All copies take {} one after the other. What clients wait longer meanwhile is made up for within {} of each copy.",
            about(plan.after.copy_s),
            about(longest)
        ));
    }
    details.push(format!("The plan ends here: {}.", plan.stopped));
    if plan.equal_bytes.moves > 0 {
        let reached = match best_known_s(&plan.equal_bytes) {
            Some(seconds) => format!("reach {}", response(Some(seconds))),
            None => format!("overload {}", overloaded(plan, &plan.equal_bytes)),
        };
        details.push(format!(
            "Equal bytes on all disks, which most balancers aim at, would move {} ({}) and {reached}.",
            files(plan.equal_bytes.moves),
            size(plan.equal_bytes.bytes),
        ));
    }
    for outcome in &plan.what_if {
        let how = match outcome.moves {
            0 => "without a move".into(),
            moves => format!("after {moves} move{}", if moves == 1 { "" } else { "s" }),
        };
        let name = capital(&outcome.name);
        details.push(match best_known_s(outcome) {
            Some(seconds) => {
                format!("{name} the mean response is {} {how}.", response(Some(seconds)))
            }
            None => format!("{name} a disk is overloaded even {how}."),
        });
    }
    details
}

fn first_move(plan: &PlacePlan, first: &PlannedMove) -> String {
    let PlannedMove { file, from, to, .. } = first;
    let busy = |outcome: &Outcome, name: &str| {
        let number = plan.disks.iter().position(|disk| disk.name == name);
        number.map_or(0.0, |number| outcome.disks[number].busy)
    };
    format!(
        "Begin with {file}: {from} is {} busy and {to} {}. This move alone makes responses {} ms shorter.",
        percent(busy(&plan.before, from)),
        percent(busy(&plan.before, to)),
        ms(first.gain_s * 1e9)
    )
}

/// Model and simulation further apart than this are worth a word.
const APART: f64 = 0.15;

fn cautions(plan: &PlacePlan) -> Vec<String> {
    let mut cautions = Vec::new();
    let shingled: Vec<&str> =
        plan.disks.iter().filter(|disk| disk.is_shingled).map(|disk| &*disk.name).collect();
    if let Some(first) = shingled.first() {
        let others = if shingled.len() > 1 { " and others" } else { "" };
        cautions.push(format!(
            "Shingled: {first}{others}. The model lets such a disk write anywhere as fast as any disk. Move nothing there that is overwritten."
        ));
    }
    let all = [&plan.before, &plan.after, &plan.equal_bytes];
    for outcome in all.into_iter().chain(&plan.what_if) {
        let Some(simulated) = outcome.simulated else { continue };
        if simulated.model_above.abs() > APART {
            let side = if simulated.model_above > 0.0 { "above" } else { "below" };
            cautions.push(format!(
                "{}: the model's response is {} {side} the simulated one. Trust the simulated one.",
                capital(&outcome.name),
                percent(simulated.model_above.abs())
            ));
        }
    }
    cautions
}
