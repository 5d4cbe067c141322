//! Conclusions from a plan, in sentences.

use freewheel_study::plan::{Outcome, PlacePlan, PlannedMove, Stopped, WhatIfPlan};
use freewheel_units::{Bytes, grouped};
use serde::Serialize;

use super::super::left_out::left_out;
use super::times::load_times;
use crate::numbers::{self, about, capital, ms, per_second, percent};

/// Conclusions from a plan.
#[derive(Debug, Serialize)]
pub struct PlaceConclusions {
    /// Moves and their gain, in a sentence.
    pub headline: String,
    /// Further conclusions, a sentence each.
    pub details: Vec<String>,
    /// Cautions about the numbers, a sentence each.
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
    let what = match (plan.placed.is_empty(), plan.moves.is_empty()) {
        (true, true) => return no_move(plan),
        (true, false) => effort(),
        (false, true) => format!("Put {} as below", new_files(plan)),
        (false, false) => format!("Put {} as below, and {}", new_files(plan), lower(&effort())),
    };
    let elsewhere =
        if plan.placed.is_empty() { "now" } else { "with new files where most room is" };
    if !plan.hopeless.is_empty() {
        return format!(
            "{what}: then {}; {elsewhere} {}. {}",
            seen(plan, &plan.after),
            seen(plan, &plan.before),
            endless(plan, &plan.after)
        );
    }
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
            capital(&overloaded(plan, &plan.before)),
            if overloaded_count(&plan.before) == 1 { "it" } else { "them" }
        ),
        (_, None) => format!(
            "{what}, and add disks: {} cannot serve what is asked even then.",
            overloaded(plan, &plan.after)
        ),
    }
}

/// Result for clients of a placement with a file that no disk can serve: their number, and their mean
/// response.
fn seen(plan: &PlacePlan, outcome: &Outcome) -> String {
    let served = per_second((plan.rate - outcome.lost_rate).max(0.0));
    match best_known_s(outcome) {
        Some(seconds) => {
            format!(
                "{served} requests a second have a mean response of {}",
                response(Some(seconds))
            )
        }
        None if overloaded_count(outcome) > 0 => {
            format!("{} cannot serve what is asked", overloaded(plan, outcome))
        }
        None => "no request ends".into(),
    }
}

/// Number of requests that wait for a file that no disk can serve, or beside it.
fn endless(plan: &PlacePlan, outcome: &Outcome) -> String {
    let [lost, all] = [outcome.lost_rate, plan.rate].map(per_second);
    format!("{lost} of {all} requests a second wait without end: {}.", too_hot(plan))
}

/// Reason why there is no further move.
fn stopped(plan: &PlacePlan) -> String {
    let options = &plan.options;
    match &plan.stopped {
        Stopped::MovesMax => format!("{} moves are asked for at most", options.moves_max),
        Stopped::TooLittleGain => format!(
            "the next move would make the mean response of its disk's clients shorter by less than {}",
            percent(options.gain_min)
        ),
        Stopped::NoRoom(file) => {
            format!("no disk has room for {file}, whose move would save most")
        }
        Stopped::TargetFull { file, disk } => format!(
            "{disk} has no room for {file}, whose move there would save most, and disks with room for it would save less than {}",
            percent(options.gain_min)
        ),
        Stopped::NoPayback => {
            format!("the next move would not pay back within {}", about(options.horizon_s))
        }
    }
}

/// Advice where no file moves.
fn no_move(plan: &PlacePlan) -> String {
    let now = best_known_s(&plan.before);
    let response = match now {
        Some(seconds) => format!(" Mean response: {}.", response(Some(seconds))),
        None => String::new(),
    };
    if !plan.hopeless.is_empty() {
        let others = response.replace("response", "response on the other disks");
        return format!("{} {}{others}", lost(plan), endless(plan, &plan.before));
    }
    match (&plan.stopped, now) {
        (Stopped::NoRoom(file), _) => {
            format!(
                "Add a disk or make room: no disk has room for {file}, whose move would save most.{response}"
            )
        }
        (Stopped::TargetFull { file, disk }, _) => format!(
            "Make room on {disk} or leave the files where they are: it has no room for {file}, whose move there would save most.{response}"
        ),
        (Stopped::MovesMax, _) => format!("No move was asked for.{response}"),
        (_, Some(_)) => format!("Leave the files where they are: no move is worth it.{response}"),
        (_, None) => format!(
            "Add disks: {} cannot serve what is asked, and no move helps.",
            overloaded(plan, &plan.before)
        ),
    }
}

/// Advice about files that ask more than any disk can serve, as a sentence.
fn lost(plan: &PlacePlan) -> String {
    format!("{}: split or stripe that, or take faster disks.", too_hot(plan))
}

/// The files that ask more than any disk can serve.
fn too_hot(plan: &PlacePlan) -> String {
    let names = match plan.hopeless.as_slice() {
        [] => String::new(),
        [one] => format!("{one} alone asks"),
        [one, other] => format!("{one} and {other} alone each ask"),
        [one, ..] => format!("{one} and {} other files alone each ask", plan.hopeless.len() - 1),
    };
    format!("{names} more than any of these disks can serve")
}

fn new_files(plan: &PlacePlan) -> String {
    let count = plan.placed.len() as u64;
    format!("{} new file{}", grouped(count), if count == 1 { "" } else { "s" })
}

fn lower(text: &str) -> String {
    text[..1].to_lowercase() + &text[1..]
}

/// Changes below this share are none: another run would differ as much.
const SAME: f64 = 0.005;

/// "4.1 times shorter", "12 % shorter", "the same", or "3 % longer".
fn change(before: f64, after: f64) -> String {
    let (ratio, shorter) = (before / after, 1.0 - after / before);
    if ratio >= 2.0 {
        format!("{} times shorter", numbers::ratio(ratio))
    } else if shorter.abs() < SAME {
        "about the same".into()
    } else if shorter > 0.0 {
        format!("{} shorter", percent(shorter))
    } else {
        format!("{} longer", percent(-shorter))
    }
}

fn overloaded_count(outcome: &Outcome) -> usize {
    outcome.disks.iter().filter(|disk| disk.busy >= 1.0 && !disk.is_lost).count()
}

/// Names of the disks that cannot serve their load, the first three.
fn overloaded(plan: &PlacePlan, outcome: &Outcome) -> String {
    let of = plan.disks.iter().zip(&outcome.disks);
    let of = of.filter(|(_, disk)| disk.busy >= 1.0 && !disk.is_lost);
    let names: Vec<String> = of.map(|(disk, _)| disk.name.clone()).collect();
    match names.as_slice() {
        [] => "an added disk".into(),
        [one] => format!("disk {one}"),
        [first, .., last] if names.len() <= 3 => {
            let inner = names[1..names.len() - 1].iter().map(|name| format!(", {name}"));
            format!("disks {first}{} and {last}", inner.collect::<String>())
        }
        [first, second, ..] => format!("{} disks ({first}, {second} and others)", names.len()),
    }
}

fn details(plan: &PlacePlan) -> Vec<String> {
    let mut details = Vec::new();
    if let Some(first) = plan.moves.first() {
        details.push(first_move(plan, first));
        let longest = plan.moves.iter().map(|wanted| wanted.payback_s).fold(0.0, f64::max);
        details.push(format!(
            "All copies take {} one after the other. What clients wait longer meanwhile is made up for within {} after the end of each copy.",
            about(plan.after.copy_s),
            about(longest)
        ));
    }
    if !plan.moves.is_empty() && !plan.hopeless.is_empty() {
        details.push(format!("{} Their disks count in no mean here.", lost(plan)));
    }
    if !plan.moves.is_empty() {
        details.push(format!("The plan ends here: {}.", stopped(plan)));
    }
    if plan.equal_bytes.moves > 0 {
        let at_least = if plan.equal_bytes_is_cut { "more than " } else { "" };
        let reached = match best_known_s(&plan.equal_bytes) {
            Some(seconds) => format!("reach {}", response(Some(seconds))),
            None => format!("overload {}", overloaded(plan, &plan.equal_bytes)),
        };
        details.push(format!(
            "Equal bytes on all disks, which most balancers aim at, would move {at_least}{} ({}) and {reached}.",
            files(plan.equal_bytes.moves),
            size(plan.equal_bytes.bytes),
        ));
    }
    for WhatIfPlan { outcome, list } in &plan.what_if {
        let how = moves_of(list);
        let name = capital(&outcome.name);
        details.push(match best_known_s(outcome) {
            Some(seconds) => {
                format!("{name} the mean response is {} {how}.", response(Some(seconds)))
            }
            None => format!("{name} a disk stays overloaded {how}."),
        });
    }
    details
}

/// Moves that a sentence names.
const NAMED: usize = 3;

/// "after 5 moves (home to bay-13, mail to bay-13, wiki to bay-02 and others)".
fn moves_of(list: &[PlannedMove]) -> String {
    let named = list.iter().take(NAMED).map(|wanted| format!("{} to {}", wanted.file, wanted.to));
    let named: Vec<String> = named.collect();
    let others = if list.len() > NAMED { " and others" } else { "" };
    match list.len() {
        0 => "without a move".into(),
        1 => format!("after one move ({})", named[0]),
        count => format!("after {count} moves ({}{others})", named.join(", ")),
    }
}

fn first_move(plan: &PlacePlan, first: &PlannedMove) -> String {
    let PlannedMove { file, from, to, .. } = first;
    let busy = |outcome: &Outcome, name: &str| {
        let number = plan.disks.iter().position(|disk| disk.name == name);
        number.map_or(0.0, |number| outcome.disks[number].busy)
    };
    if first.makes_room {
        return format!("Begin with {file}: it makes room on {from} for the next move.");
    }
    if first.ends_endless_wait {
        return format!(
            "Begin with {file}, from {from} to {to}: where it is now, its requests wait without end."
        );
    }
    let gain = match plan.before.response_s {
        // With an overloaded disk responses have no end that could become shorter.
        None => String::new(),
        Some(_) => {
            format!(" This move alone makes responses {} ms shorter.", ms(first.gain_s * 1e9))
        }
    };
    if !plan.placed.is_empty() {
        return format!("Begin with {file}, from {from} to {to}.{gain}");
    }
    format!(
        "Begin with {file}: {from} is {} busy and {to} {}.{gain}",
        percent(busy(&plan.before, from)),
        percent(busy(&plan.before, to)),
    )
}

/// Model and simulation further apart than this are worth a word.
const APART: f64 = 0.15;

/// A simulated mean that is less sure than this is worth a word.
const UNCERTAIN: f64 = 0.15;

fn cautions(plan: &PlacePlan) -> Vec<String> {
    let mut cautions = left_out(plan.left_out, plan.part_answers, &plan.sites);
    cautions.extend(load_times(plan));
    let shingled: Vec<&str> =
        plan.disks.iter().filter(|disk| disk.is_shingled).map(|disk| &*disk.name).collect();
    if let Some(first) = shingled.first() {
        let others = if shingled.len() > 1 { " and others" } else { "" };
        cautions.push(format!(
            "Shingled: {first}{others}. The model lets such a disk write anywhere as fast as any disk. Move nothing there that is overwritten."
        ));
    }
    let actuators = plan.disks.iter().find(|disk| disk.actuators > 1);
    if let Some(disk) = actuators {
        cautions.push(format!(
            "{}: its drive has {} actuators, and this disk is one of them. Each is a disk of its own in a snapshot.",
            disk.name, disk.actuators
        ));
    }
    for taken in plan.moves.iter().filter(|wanted| wanted.name_is_taken) {
        cautions.push(format!(
            "{} has another {}: rename one of them before the move.",
            taken.to, taken.file
        ));
    }
    // Without a move, the words about the placement as it is would be said again.
    let is_moved = !plan.moves.is_empty() || !plan.placed.is_empty();
    let after = is_moved.then_some(&plan.after);
    let bytes = (plan.equal_bytes.moves > 0).then_some(&plan.equal_bytes);
    let all = std::iter::once(&plan.before).chain(after).chain(bytes);
    let what_ifs = plan.what_if.iter().map(|what_if| &what_if.outcome);
    for outcome in all.chain(what_ifs) {
        let Some(simulated) = outcome.simulated else { continue };
        let (name, share) = (capital(&outcome.name), simulated.uncertain_s / simulated.response_s);
        if share > UNCERTAIN {
            cautions.push(format!(
                "{name}: the simulated mean is uncertain by {}. More --requests make it surer; near {} busy no run is long enough.",
                percent(share),
                percent(1.0)
            ));
        } else if simulated.model_above.abs() > APART {
            let side = if simulated.model_above > 0.0 { "above" } else { "below" };
            cautions.push(format!(
                "{name}: the model's response is {} {side} the simulated one. Trust the simulated one.",
                percent(simulated.model_above.abs())
            ));
        }
    }
    cautions
}
