//! The tables of a plan for striping.

use freewheel_study::plan::{StripePlan, StripeUnit, StripedFile};
use freewheel_units::four_digits;

use super::words::response;
use crate::numbers::{percent, size};
use crate::rows::Rows;

/// The units that were tried.
pub(super) fn units(plan: &StripePlan) -> Rows {
    let row = |tried: &StripeUnit| {
        let marks = [(plan.best, "best"), (plan.chosen, "model's")];
        let marks = marks.into_iter().filter(|(unit, _)| *unit == Some(tried.unit));
        let marks: Vec<&str> = marks.map(|(_, mark)| mark).collect();
        [
            size(tried.unit.get()),
            format!("{:.2}", tried.disks),
            percent(tried.busy),
            four_digits(tried.saturation),
            response(tried.response_s),
            if tried.fits { response(tried.simulated_s) } else { "no room".into() },
            marks.join(", "),
        ]
    };
    let head =
        ["stripe unit", "disks a request", "busy", "requests/s at most", "model", "simulated", ""];
    Rows::new(head, plan.units.iter().map(row))
}

/// A unit and a width for each file.
pub(super) fn files(plan: &StripePlan) -> Rows {
    let row =
        |file: &StripedFile| [file.file.clone(), size(file.unit.get()), file.width.to_string()];
    Rows::new(["file", "own stripe unit", "disks"], plan.files.iter().map(row))
}
