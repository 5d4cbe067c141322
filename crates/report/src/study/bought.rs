//! What memory and drives buy: the systems that no other one beats.

use freewheel_study::changes::{Changes, FrontierPoint};
use freewheel_units::Bytes;
use maud::{Markup, html};

use super::signed;
use crate::numbers::percent;
use crate::page::table;
use crate::size_chart::{SizeChart, SizeLine, SizePoint, draw};

/// A table of what each step costs and brings, with a picture where memory has several sizes.
pub(super) fn card(changes: &Changes) -> Markup {
    let points = &changes.frontier;
    if points.is_empty() {
        return html! {};
    }
    let head = ["what", "memory", "non-volatile", "more drives", changes.goal.quantity(), "gain"];
    let rows: Vec<Vec<String>> = points.iter().map(row).collect();
    html! {
        details {
            summary { "What memory and drives buy" }
            (picture(changes))
            (table(&head, &rows))
            p.note { "The systems of which none that was tried needs no more and is better by 2 %. Gain: what a GiB or a drive takes off, as a share of today's " (changes.goal.quantity()) "." }
        }
    }
}

fn row(point: &FrontierPoint) -> Vec<String> {
    let size = |bytes: Bytes| if bytes == Bytes::ZERO { "-".into() } else { bytes.human() };
    let gain = point.gain_per_gib().map(|gain| format!("{} a GiB", share(gain)));
    let gain = gain.or(point.gain_per_drive().map(|gain| format!("{} a drive", share(gain))));
    vec![
        point.titles.join(" + "),
        size(point.memory),
        size(point.non_volatile),
        if point.drives == 0 { "-".into() } else { point.drives.to_string() },
        signed(point.change),
        gain.unwrap_or_else(|| "-".into()),
    ]
}

/// A gain a GiB may be many times the whole, as memory comes in smaller pieces.
fn share(gain: f64) -> String {
    if gain > 10.0 { format!("{gain:.0} times") } else { percent(gain) }
}

/// The goal by memory of both kinds; none of a single size.
fn picture(changes: &Changes) -> Markup {
    let with_memory = |point: &&FrontierPoint| {
        point.drives == 0 && point.memory + point.non_volatile > Bytes::ZERO
    };
    let point = |point: &FrontierPoint| SizePoint {
        size_bytes: (point.memory + point.non_volatile).get(),
        value: 100.0 * (1.0 + point.change),
    };
    let points: Vec<SizePoint> = changes.frontier.iter().filter(with_memory).map(point).collect();
    if points.len() < 2 {
        return html! {};
    }
    let name = changes.goal.quantity().to_owned();
    let line = SizeLine { name, colour: 0, points: points.clone(), dots: points };
    let title = format!("{}, % of today's", changes.goal.quantity());
    let axis = "memory, volatile and non-volatile";
    draw(&SizeChart { title: &title, axis, lines: &[line], without_cache: Some(100.0) })
}
