//! Conclusions from a plan for striping, in sentences.

use freewheel_study::plan::{StripePlan, StripeSource, StripeUnit};
use freewheel_units::{Bytes, four_digits, grouped};
use serde::Serialize;

use super::super::left_out::left_out;
use crate::numbers::{capital, ms, percent, size};

/// Conclusions from a plan for striping.
#[derive(Debug, Serialize)]
pub struct StripeConclusions {
    /// Which unit to take and what it brings, in a sentence.
    pub headline: String,
    /// Further conclusions, a sentence each.
    pub details: Vec<String>,
    /// What makes the numbers doubtful, a sentence each.
    pub cautions: Vec<String>,
}

impl StripeConclusions {
    pub(super) fn new(plan: &StripePlan) -> Self {
        Self { headline: headline(plan), details: details(plan), cautions: cautions(plan) }
    }
}

pub(super) fn response(seconds: Option<f64>) -> String {
    seconds.map_or_else(|| "overloaded".into(), |seconds| format!("{} ms", ms(seconds * 1e9)))
}

fn of_unit(plan: &StripePlan, unit: Option<Bytes>) -> Option<&StripeUnit> {
    plan.units.iter().find(|tried| Some(tried.unit) == unit)
}

fn headline(plan: &StripePlan) -> String {
    let Some(best) = of_unit(plan, plan.best) else { return no_unit(plan) };
    let all = plan.units.iter().filter(|tried| tried.unit != best.unit);
    let worst = all.filter_map(|tried| Some((tried.unit, tried.simulated_s?)));
    let worst = worst.max_by(|a, b| a.1.total_cmp(&b.1));
    let beside = worst.map_or_else(String::new, |(unit, seconds)| {
        format!(" With {} it would be {}.", size(unit.get()), response(Some(seconds)))
    });
    format!(
        "Take stripe units of {}: the mean response is {}.{beside}",
        size(best.unit.get()),
        response(best.simulated_s)
    )
}

/// Why there is no unit to take.
fn no_unit(plan: &StripePlan) -> String {
    let (all, rate) = (capital(&disks(plan.disks)), four_digits(plan.rate));
    if plan.units.iter().any(|tried| !tried.fits) {
        return format!(
            "{all} have no room for the files with any stripe unit that they can serve. Add disks."
        );
    }
    match plan.options.source {
        StripeSource::Trace(_) => format!(
            "{all} cannot serve {rate} requests a second: with every stripe unit the queue grows until the trace ends. Add disks."
        ),
        StripeSource::Files(_) | StripeSource::WebLog(_) => {
            let most = plan.units.iter().map(|tried| tried.saturation).fold(0.0, f64::max);
            format!(
                "{all} cannot serve {rate} requests a second: with any stripe unit they end at {}. Add disks.",
                four_digits(most)
            )
        }
    }
}

/// Choices of model and simulation further apart than this are worth a word.
const APART: f64 = 0.05;

fn details(plan: &StripePlan) -> Vec<String> {
    let mut details = Vec::new();
    if let Some(best) = of_unit(plan, plan.best) {
        details.push(format!(
            "A request works {:.1} of {} on average. By the model each disk is {} busy, and the disks end at {} requests a second.",
            best.disks,
            disks(plan.disks),
            percent(best.busy),
            four_digits(best.saturation)
        ));
        if plan.units.last().is_some_and(|largest| largest.unit == best.unit) {
            details.push(format!(
                "Larger units were not tried: with {} nearly every request lies in one unit.",
                size(best.unit.get())
            ));
        }
        details
            .push(format!("A request that is alone is served soonest by {}.", disks(plan.alone)));
    }
    let of = |unit| of_unit(plan, unit).and_then(|tried| tried.simulated_s);
    if let (Some(chosen_s), Some(best_s)) = (of(plan.chosen), of(plan.best)) {
        let above = chosen_s / best_s - 1.0;
        if above > APART {
            details.push(format!(
                "The model's choice is {} slower in the simulation than the best that was tried.",
                percent(above)
            ));
        }
    }
    if let Some(own) = plan.files_response_s {
        let advice = match of(plan.best) {
            Some(best_s) if own > best_s * (1.0 + APART) => "One unit for all is better.",
            Some(best_s) if own < best_s * (1.0 - APART) => "That is better than one unit for all.",
            _ => "One unit for all is as good.",
        };
        details.push(format!(
            "With a unit of its own for each file the mean response is {}. {advice}",
            response(Some(own))
        ));
    } else if plan.chosen.is_some() && !plan.files.is_empty() {
        details.push(
            "Units of their own for each file were not simulated: some parts of files would be larger than the room on any disk."
                .into(),
        );
    }
    details
}

fn disks(count: u32) -> String {
    if count == 1 { "one disk".into() } else { format!("{} disks", grouped(count)) }
}

/// Model and simulation further apart than this do not describe the same load.
const DOUBTFUL: f64 = 0.25;

fn cautions(plan: &StripePlan) -> Vec<String> {
    let best = of_unit(plan, plan.best);
    let both = best.and_then(|best| Some((best.response_s, best.simulated_s?)));
    let why = match plan.options.source {
        StripeSource::Trace(_) => {
            "requests of the trace come in bursts or follow each other, and drives have buffers; the model has neither"
        }
        StripeSource::Files(_) | StripeSource::WebLog(_) => {
            "files differ in place, and the model knows the mean size of their parts"
        }
    };
    let apart = match both {
        Some((Some(model), simulated)) if (model / simulated - 1.0).abs() > DOUBTFUL => {
            Some(format!(
                "The model has {} where the simulation has {}: {why}. Trust the simulation.",
                response(Some(model)),
                response(Some(simulated))
            ))
        }
        _ => None,
    };
    left_out(plan.left_out, plan.part_answers, &plan.sites).into_iter().chain(apart).collect()
}
