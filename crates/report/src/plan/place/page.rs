//! A plan as a page.

use freewheel_array::plan::{COMMON_OF_LONGEST, COMMON_SHARE, REQUESTS_TELL};
use freewheel_study::plan::PlacePlan;
use freewheel_units::grouped;
use maud::{Markup, html};

use super::commands::commands;
use super::picture;
use super::rows;
use super::words::PlaceConclusions;
use crate::numbers::{per_second, percent, span};
use crate::page::{self, fold, folds, section};

pub(super) fn html(plan: &PlacePlan, conclusions: &PlaceConclusions) -> String {
    let name = plan.options.source.file().file_name().unwrap_or_default().to_string_lossy();
    page::page(
        &format!("Plan for {name}"),
        &format!(
            "{} disks, {} files, {} requests a second.",
            plan.disks.len(),
            grouped(plan.files),
            per_second(plan.rate)
        ),
        &html! {
            (section("What to move?", &conclusion(plan, conclusions)))
            @if !plan.moves.is_empty() { (section("Moves", &rows::moves(plan).html())) }
            @if !plan.placed.is_empty() { (section("New files", &rows::placed(plan).html())) }
            (section("What clients see", &outcomes(plan)))
            (folds(&html! {
                (fold("Disks", &rows::disks(plan).html()))
                @if let Some(commands) = commands(plan) { (fold("Commands", &html! { pre { (commands) } })) }
                (fold("How it was worked out", &method(plan)))
            }))
        },
    )
}

fn conclusion(plan: &PlacePlan, conclusions: &PlaceConclusions) -> Markup {
    let PlaceConclusions { headline, details, cautions } = conclusions;
    html! {
        p.headline { (headline) }
        (picture::draw(plan))
        p.note {
            "Upper bars: now. Lower bars: after the plan. Arrows: moves."
            @match picture::left_out(plan) {
                0 => {}
                count => { " " (count) " disks without moves are left out." }
            }
        }
        @for sentence in details { p { (sentence) } }
        @for sentence in cautions { p.outside { (sentence) } }
    }
}

fn outcomes(plan: &PlacePlan) -> Markup {
    html! {
        (rows::outcomes(plan).html())
        p.note {
            "Mean responses of all clients. The model is an M/G/1 queue for each disk. The simulation runs "
            (grouped(plan.requests)) " requests on the same drives, first come first served; another run's mean lies within the share beside it with 95 % confidence."
        }
    }
}

fn method(plan: &PlacePlan) -> Markup {
    let options = &plan.options;
    html! {
        p { "A move is taken if it shortens the mean response of its disk's clients by at least " (percent(options.gain_min))
            ", the target's losses deducted, leaves " (percent(options.free_share)) " of its target free, and pays back within "
            (span(options.horizon_s)) ". The next move is the one that saves most waiting within that time." }
        p { "A copy reads and writes pieces of 1 MiB, one after the other. Its cost is what clients wait longer meanwhile, summed over all of them. The move is paid back when it has saved as much." }
        @if plan.load_times.is_some() {
            p { "Loads of devices are means over one time that they have in common. It has to be " (percent(COMMON_SHARE)) " of the shortest device's own time and " (percent(COMMON_OF_LONGEST)) " of the longest's at least. Fewer than " (REQUESTS_TELL) " requests do not tell when a device was recorded. `--load-time` takes other times." }
        }
        p { "Requests arrive independently of each other, at the rates of the snapshot. Each file lies in one piece. Drives have no buffer and no queue of their own here, so real responses are shorter." }
    }
}
