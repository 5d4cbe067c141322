//! The tables of a plan for striping.

use freewheel_study::plan::{StripePlan, StripeSource, StripeUnit, StripedFile};

use super::words::{busy_then, headroom_s, response, times};
use crate::numbers::{average, per_second, percent, size};
use crate::rows::Rows;

/// The units that were tried.
pub(super) fn units(plan: &StripePlan) -> Rows {
    let taken = plan.take.as_ref().map(|choice| choice.unit);
    let row = |tried: &StripeUnit| {
        let marks = [(taken, "take"), (plan.best, "shortest now"), (plan.chosen, "model's")];
        let marks = marks.into_iter().filter(|(unit, _)| *unit == Some(tried.unit));
        let marks: Vec<&str> = marks.map(|(_, mark)| mark).collect();
        [
            size(tried.unit.get()),
            average(tried.disks),
            percent(tried.busy),
            per_second(tried.saturation),
            response(tried.response_s),
            simulated(tried, tried.simulated_s),
            simulated(tried, headroom_s(plan, tried)),
            busy_then(plan, tried).map_or_else(String::new, percent),
            marks.join(", "),
        ]
    };
    let with_headroom = format!("at {} the load", times(plan.options.headroom));
    let busy = match plan.options.source {
        StripeSource::Trace(_) => "busy then at worst",
        StripeSource::Files(_) | StripeSource::WebLog(_) => "busy then",
    };
    let head = [
        "stripe unit",
        "disks a request",
        "busy",
        "requests/s at most",
        "model",
        "simulated",
        &with_headroom,
        busy,
        "",
    ];
    Rows::new(head, plan.units.iter().map(row))
}

fn simulated(tried: &StripeUnit, seconds: Option<f64>) -> String {
    if tried.fits { response(seconds) } else { "no room".into() }
}

/// A unit and a width for each file.
pub(super) fn files(plan: &StripePlan) -> Rows {
    Rows::new(["file", "own stripe unit", "disks"], plan.files.iter().map(row))
}

fn row(file: &StripedFile) -> [String; 3] {
    [file.file.clone(), size(file.unit.get()), file.width.to_string()]
}
