//! Certainty of a study: assumed values of the drive, and the fidelity of the replay.

use freewheel_sim::fidelity::ReplayFidelity;
use freewheel_study::AssumedValues;
use freewheel_study::changes::{Changes, Variant};
use freewheel_study::{DriveSummary, Study};
use freewheel_units::grouped;
use maud::{Markup, html};

use super::{noticeable, signed};
use crate::finding::{Confidence, Finding, Topic, Unit};
use crate::numbers::{ms, percent};
use crate::page::{NotedRow, noted_table, prose};

/// The finding about assumed values; None where no value is assumed.
pub(super) fn assumed(study: &Study) -> Option<Finding> {
    let drive = &study.drive;
    if drive.assumed.is_empty() {
        return None;
    }
    let quantity = study.options.goal.quantity();
    let headline = assumed_headline(drive, quantity, study.assumed_values.as_ref());
    let finding = Finding::new(Topic::AssumedValues, Confidence::Given, headline);
    Some(match &study.assumed_values {
        Some(values) => finding
            .number(format!("largest change of the {quantity}"), values.most(), Unit::Share)
            .detail(not_moved(values)),
        None => finding
            .number("assumed values", drive.assumed.len() as f64, Unit::Count)
            .action("Judge absolute times accordingly; the report lists the values."),
    })
}

fn assumed_headline(
    drive: &DriveSummary,
    quantity: &str,
    values: Option<&AssumedValues>,
) -> String {
    let count = match drive.assumed.len() {
        1 => "1 value of this drive's model is assumed".into(),
        count => format!("{count} values of this drive's model are assumed"),
    };
    match values.map(|values| (values.moved.first(), values.most())) {
        Some((Some(first), most)) => format!(
            "{count}: the {quantity} changes by at most {} when each is moved alone (`{}`, {}).",
            percent(most),
            first.key,
            first.by
        ),
        _ => format!("{count}."),
    }
}

fn not_moved(values: &AssumedValues) -> String {
    match &values.not_moved[..] {
        [] => String::new(),
        keys => format!("Not moved, as no run of the model can tell: `{}`.", keys.join("`, `")),
    }
}

/// Check of the replay, in a sentence.
fn fidelity(fidelity: &ReplayFidelity) -> String {
    let exact = format!(
        "With its recorded response times the replay gives {} of the trace's {} arrivals back to the nanosecond",
        share(fidelity.exact, fidelity),
        grouped(fidelity.requests)
    );
    let by_window = fidelity.delayed_by_window;
    let window = match by_window.requests {
        0 => String::new(),
        late => format!(
            "; {} come {} ms later on average, as at most 64 are outstanding",
            share(late, fidelity),
            ms(by_window.mean_ns as f64)
        ),
    };
    let displaced = match fidelity.displaced.requests {
        0 => String::new(),
        some => format!(
            "; {} come at another time, by {} ms on average",
            share(some, fidelity),
            ms(fidelity.displaced.mean_ns as f64)
        ),
    };
    format!("{exact}{window}{displaced}.")
}

fn share(requests: u64, fidelity: &ReplayFidelity) -> String {
    percent(requests as f64 / fidelity.requests.max(1) as f64)
}

/// The card of the page.
pub(super) fn card(study: &Study) -> Markup {
    let drive = &study.drive;
    html! {
        @if drive.assumed.is_empty() {
            p { "No value of this drive's model is assumed." }
        } @else {
            p { (prose(&assumed_headline(drive, study.options.goal.quantity(), study.assumed_values.as_ref()))) }
        }
        @if let Some(other) = study.other_replay.as_ref().filter(|other| other.has_growing_queue) {
            p {
                "Changes and policies were not tried " (other.words())
                ": the drive cannot serve that load, and its queue grows with the length of the trace."
            }
        }
        @if let Some(words) = study.changes.as_ref().and_then(elsewhere) { p { (prose(&words)) } }
        details {
            summary { "Replay, slices and assumed values" }
            (grounds(study))
        }
    }
}

/// Basis of the results.
fn grounds(study: &Study) -> Markup {
    html! {
        p { (replay(study)) }
        @if let Some(changes) = &study.changes {
            p {
                "Spreads of changes are over " (changes.today.by_slice.len())
                " slices of the trace. Another day's trace may differ by more."
            }
        }
        @if let Some(values) = &study.assumed_values {
            h3 { "Each assumed value moved" }
            (noted_table(&["value", study.options.goal.quantity()], &moved_rows(values)))
            p.note { (prose(&not_moved(values))) }
        }
        @if !study.drive.assumed.is_empty() {
            h3 { "Sources of the assumed values" }
            ul { @for line in &study.drive.assumed { li { (prose(line)) } } }
        }
    }
}

/// Effect of the first changes in other circumstances; None where they were not tried.
fn elsewhere(changes: &Changes) -> Option<String> {
    let words: Vec<String> = changes.variants.iter().map(Variant::words).collect();
    if words.is_empty() {
        return None;
    }
    let some = |title: &str, does: &str, of: &mut dyn Iterator<Item = &Variant>| {
        let places: Vec<String> = of.map(Variant::words).collect();
        (!places.is_empty()).then(|| format!("{title} {does} {}", places.join(", ")))
    };
    let (goal, below) = (changes.goal, format!("is below {}", noticeable()));
    let mut results: Vec<String> = Vec::new();
    for of in &changes.tried {
        results.extend(some(&of.title, "turns", &mut of.turning_variants(goal)));
        results.extend(some(&of.title, &below, &mut of.fading_variants(goal)));
    }
    if let Some(of) = &changes.together {
        results.extend(some("the best together", "turns", &mut of.turning_variants(goal)));
    }
    let result = if results.is_empty() {
        format!("each keeps its sign and stays above {}", noticeable())
    } else {
        results.join("; ")
    };
    let has_drive = changes.variants.iter().any(|of| matches!(of, Variant::OtherDrive { .. }));
    let no_drive = if has_drive { "" } else { " No other shipped drive is like this one." };
    let no_start = match changes.variants.iter().any(|of| matches!(of, Variant::Start { .. })) {
        true => "",
        false => {
            " A replay in which requests wait for each other shifts with its start as a whole, so no other start was tried."
        }
    };
    Some(format!(
        "The best changes of each kind, five in all, and the best together ran again {}: {result}.{no_drive}{no_start}",
        words.join(", ")
    ))
}

fn replay(study: &Study) -> String {
    match (&study.fidelity, study.dependent_replay) {
        (Some(replay), _) => fidelity(replay),
        (None, true) => inferred(study),
        (None, false) => {
            "Requests come at their traced times, however fast this drive answers.".into()
        }
    }
}

/// Source of completions that the trace does not record.
fn inferred(study: &Study) -> String {
    let all = study.baseline().result.inferred_completions.iter().map(|completions| {
        let parents = &completions.parents;
        format!(
            "The trace records no completions: those of {} stand in. With response times half or twice as long, {} of the requests wait for another one.",
            completions.drive,
            percent(parents.either)
        )
    });
    all.collect::<Vec<_>>().join(" ")
}

fn moved_rows(values: &AssumedValues) -> Vec<NotedRow> {
    values
        .moved
        .iter()
        .map(|value| NotedRow {
            name: value.key.to_owned(),
            note: value.by.to_owned(),
            warning: String::new(),
            cells: vec![value.changes.iter().copied().map(signed).collect::<Vec<_>>().join(", ")],
        })
        .collect()
}
