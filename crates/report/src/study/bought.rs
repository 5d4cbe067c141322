//! Frontier of memory and drives: the systems that no other one beats.

use freewheel_study::Study;
use freewheel_study::changes::{Changes, FrontierPoint};
use freewheel_units::Bytes;
use maud::{Markup, html};

use super::verdict::{warnings, warnings_together};
use super::{noticeable, signed};
use crate::numbers::percent;
use crate::page::{NotedRow, noted_table};
use crate::size_chart::{SizeChart, SizeLine, SizePoint, draw, legend};

/// A table of what each step costs and brings, with a picture where memory has several sizes.
pub(super) fn card(study: &Study, changes: &Changes) -> Markup {
    let points = &changes.frontier;
    if points.is_empty() {
        return html! {};
    }
    let head = ["what", "memory", "non-volatile", "more drives", changes.goal.quantity(), "gain"];
    let rows: Vec<NotedRow> = points.iter().map(|point| row(study, changes, point)).collect();
    html! {
        details {
            summary { "What memory and drives buy" }
            (picture(changes))
            (noted_table(&head, &rows))
            p.note { "The systems of which none that was tried needs no more and is better by " (noticeable()) ". Gain: what it takes off today's " (changes.goal.quantity()) " beyond the best row that needs no more, and what that costs." }
        }
    }
}

/// Reason why a system should be looked at twice.
fn warnings_of(study: &Study, changes: &Changes, point: &FrontierPoint) -> Vec<String> {
    let alone = match &point.titles[..] {
        [title] => changes.tried.iter().find(|tried| tried.title == *title),
        _ => None,
    };
    match (alone, &changes.together) {
        (Some(tried), _) => warnings(tried, changes.goal),
        (None, Some(together)) => warnings_together(study, changes, together),
        (None, None) => Vec::new(),
    }
}

fn row(study: &Study, changes: &Changes, point: &FrontierPoint) -> NotedRow {
    let price = match (point.more_memory, point.more_drives) {
        (Bytes::ZERO, 0) => "nothing more".into(),
        (memory, 0) => memory.human(),
        (Bytes::ZERO, 1) => "a drive".into(),
        (Bytes::ZERO, drives) => format!("{drives} drives"),
        (memory, drives) => format!("{} and {drives} drives", memory.human()),
    };
    let cells = vec![
        size(point.memory),
        size(point.non_volatile),
        if point.drives == 0 { "-".into() } else { point.drives.to_string() },
        signed(point.change),
        format!("{} for {price}", percent(point.gain)),
    ];
    NotedRow {
        name: point.titles.join(" + "),
        note: String::new(),
        warning: warnings_of(study, changes, point).join(", "),
        cells,
    }
}

fn size(bytes: Bytes) -> String {
    if bytes == Bytes::ZERO { "-".into() } else { bytes.human() }
}

/// A kind of memory, and which points need it alone.
struct Kind {
    name: &'static str,
    is_of: fn(&FrontierPoint) -> bool,
}

const KINDS: [Kind; 3] = [
    Kind { name: "memory", is_of: |of| of.non_volatile == Bytes::ZERO },
    Kind { name: "non-volatile memory", is_of: |of| of.memory == Bytes::ZERO },
    Kind { name: "both", is_of: |of| of.memory > Bytes::ZERO && of.non_volatile > Bytes::ZERO },
];

/// The goal by memory: a line for each kind that has several sizes.
fn picture(changes: &Changes) -> Markup {
    let lines: Vec<SizeLine> = KINDS
        .iter()
        .enumerate()
        .filter_map(|(colour, Kind { name, is_of })| {
            let all = changes.frontier.iter().filter(|of| of.drives == 0 && is_of(of));
            let all = all.map(|of| (of.memory + of.non_volatile, of.change));
            let points: Vec<SizePoint> = all
                .filter(|&(size, _)| size > Bytes::ZERO)
                .map(|(size, change)| SizePoint {
                    size_bytes: size.get(),
                    value: 100.0 * (1.0 + change),
                })
                .collect();
            (points.len() > 1).then(|| SizeLine {
                name: (*name).into(),
                colour,
                dots: points.clone(),
                points,
            })
        })
        .collect();
    if lines.is_empty() {
        return html! {};
    }
    let title = format!("{}, % of today's", changes.goal.quantity());
    html! {
        (legend(&lines, false))
        (draw(&SizeChart { title: &title, axis: "memory", lines: &lines, without_cache: Some(100.0) }))
    }
}
