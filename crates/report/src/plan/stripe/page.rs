//! A plan for striping as a page.

use freewheel_study::plan::{StripePlan, StripeSource, StripeUnit};
use freewheel_units::grouped;
use maud::{Markup, html};

use super::rows;
use super::words::{StripeConclusions, headroom_s, times};
use crate::numbers::{per_second, size};
use crate::page::{self, fold, folds, section};
use crate::size_chart::{SizeChart, SizeLine, SizePoint, draw, legend};

pub(super) fn html(plan: &StripePlan, conclusions: &StripeConclusions) -> String {
    let file = plan.options.source.file();
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    page::page(
        &format!("Stripes for {name}"),
        &format!(
            "{} disks, {}: {} requests a second of {} on average.",
            grouped(plan.disks),
            plan.drive,
            per_second(plan.rate),
            size(plan.request.get())
        ),
        &html! {
            (section("Which stripe unit?", &conclusion(plan, conclusions)))
            (section("Units that were tried", &rows::units(plan).html()))
            (folds(&html! {
                @if !plan.files.is_empty() {
                    (fold("A unit for each file", &rows::files(plan).html()))
                }
                (fold("How it was worked out", &method(plan)))
            }))
        },
    )
}

fn conclusion(plan: &StripePlan, conclusions: &StripeConclusions) -> Markup {
    let StripeConclusions { headline, details, cautions } = conclusions;
    let times = times(plan.options.headroom);
    let lines = [
        line("simulated", 3, plan, |unit| unit.simulated_s),
        line(&format!("simulated, {times} the load"), 2, plan, |unit| headroom_s(plan, unit)),
        line("model", 1, plan, |unit| unit.response_s),
    ];
    let chart = SizeChart {
        title: "mean response, ms",
        axis: "stripe unit",
        lines: &lines,
        without_cache: None,
    };
    html! {
        p.headline { (headline) }
        (legend(&lines, false))
        div.panels { (draw(&chart)) }
        @for sentence in details { p { (sentence) } }
        @for sentence in cautions { p.outside { (sentence) } }
    }
}

fn line(
    name: &str,
    colour: usize,
    plan: &StripePlan,
    value: impl Fn(&StripeUnit) -> Option<f64>,
) -> SizeLine {
    let points: Vec<SizePoint> = plan
        .units
        .iter()
        .filter_map(|unit| {
            Some(SizePoint { size_bytes: unit.unit.get(), value: 1000.0 * value(unit)? })
        })
        .collect();
    SizeLine { name: name.into(), colour, dots: points.clone(), points }
}

fn method(plan: &StripePlan) -> Markup {
    html! {
        p { "The model is that of Scheuermann, Weikum and Zabback (1996): each disk is an M/G/1 queue, and a request waits for the slowest of its parts. The last step is ours: parts of one request share some of their wait." }
        @match &plan.options.source {
            StripeSource::Files(_) | StripeSource::WebLog(_) => p {
                "The simulation places the files by heat, coolest disk first. It runs "
                (grouped(plan.options.requests))
                " requests at the files' rates on the same drives, first come first served."
            },
            StripeSource::Trace(_) => p {
                "The simulation replays the trace on the striped volume, with the drives' buffers and queues."
            },
        }
        p { "Every unit is simulated again with " (times(plan.options.headroom)) " the load. The plan takes the unit with the shortest response there, of those that are as good as any at this load, too; of several within 2 % the largest. At worst the drives have to be less than 95 % busy then: in a simulation of the mechanics alone, as if their buffers did not help, and by the model, as if no request followed another." }
        p { "As good: a mean response that is at most 2 % longer, or 10 % where another run may turn the difference round (95 %, from ten parts of the run)." }
    }
}
