//! Conclusions from a plan for striping, in sentences.

use freewheel_array::plan::{StripeChoice, StripeTurn};
use freewheel_study::plan::{ChenUnit, StripePlan, StripeSource, StripeUnit};
use freewheel_units::{Bytes, grouped};
use serde::Serialize;

use super::super::left_out::left_out;
use crate::numbers::{average, capital, ms, per_second, percent, size};

/// Conclusions from a plan for striping.
#[derive(Debug, Serialize)]
pub struct StripeConclusions {
    /// Unit to take and its gain, in a sentence.
    pub headline: String,
    /// Further conclusions, a sentence each.
    pub details: Vec<String>,
    /// Cautions about the numbers, a sentence each.
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
    let Some(choice) = &plan.take else { return only_at_best(plan, best) };
    let take = of_unit(plan, Some(choice.unit)).expect("a unit that was tried");
    let with = headroom_s(plan, take);
    let (has_headroom, times) =
        (choice.holds_up_to >= plan.options.headroom, times(plan.options.headroom));
    let then = match (has_headroom, plan.options.headroom == 1.0) {
        (_, true) => ".".to_owned(),
        (true, false) => format!(", and {} with {times} the load.", response(with)),
        (false, false) => format!(". No unit serves {times} the load: add disks for that."),
    };
    format!(
        "Take stripe units of {}: the mean response is {}{then}{}",
        size(take.unit.get()),
        response(take.simulated_s),
        beside(plan, take, best).unwrap_or_default()
    )
}

/// A response that is shorter by this share is worth a word.
const SHORTER: f64 = 0.02;

/// The unit with the shortest response now and why it is not taken, or what the longest response would be.
fn beside(plan: &StripePlan, take: &StripeUnit, best: &StripeUnit) -> Option<String> {
    let take_s = take.simulated_s?;
    if best.simulated_s? >= take_s * (1.0 - SHORTER) {
        let others = plan.units.iter().filter(|tried| tried.unit != take.unit);
        let known = others.filter_map(|tried| Some((tried.unit, tried.simulated_s?)));
        let (unit, seconds) = known.max_by(|a, b| a.1.total_cmp(&b.1))?;
        return Some(format!(
            " With {} it would be {}.",
            size(unit.get()),
            response(Some(seconds))
        ));
    }
    let (unit, now) = (size(best.unit.get()), response(best.simulated_s));
    let (best_then, take_then) = (headroom_s(plan, best), headroom_s(plan, take));
    // Where the simulation tells why, it has the word.
    let is_longer_then = best_then.is_none_or(|best| take_then.is_some_and(|take| best > take));
    Some(match busy_then(plan, best) {
        Some(busy) if busy >= 1.0 && !is_longer_then => format!(
            " With {unit} it would be {now}, as long as buffers help and requests follow each other: else {unit} does not serve {} the load.",
            times(plan.options.headroom)
        ),
        _ => format!(" With {unit} it would be {now} now, and {} then.", response(best_then)),
    })
}

/// Words for a plan in which no unit serves the load at worst.
fn only_at_best(plan: &StripePlan, best: &StripeUnit) -> String {
    format!(
        "Add disks: with any stripe unit {} serve this load only as long as buffers help and requests follow each other. Units of {} then have the shortest mean response, {}.",
        disks(plan.disks),
        size(best.unit.get()),
        response(best.simulated_s)
    )
}

/// "2 times".
pub(super) fn times(factor: f64) -> String {
    format!("{} times", (factor * 100.0).round() / 100.0)
}

/// The simulated response of a unit at the load with its headroom.
pub(super) fn headroom_s(plan: &StripePlan, unit: &StripeUnit) -> Option<f64> {
    let number = plan.units.iter().position(|tried| tried.unit == unit.unit)?;
    plan.higher_loads.first()?.simulated_s[number]
}

/// Load of drives with the headroom, at worst.
pub(super) fn busy_then(plan: &StripePlan, unit: &StripeUnit) -> Option<f64> {
    let number = plan.units.iter().position(|tried| tried.unit == unit.unit)?;
    plan.higher_loads.first().map(|load| load.busy_at_worst[number])
}

/// Units that are as good as the one to take.
fn as_good(choice: &StripeChoice) -> Option<String> {
    let units: Vec<String> = choice.as_good.iter().map(|unit| size(unit.get())).collect();
    (!units.is_empty()).then(|| {
        format!(
            "As good, so that another seed or another day may turn them round: {}.",
            units.join(", ")
        )
    })
}

/// Up to which load the unit to take holds, and what comes then.
fn holds(choice: &StripeChoice) -> String {
    let up_to = format!("{} holds up to", size(choice.unit.get()));
    let load = if choice.holds_up_to == 1.0 {
        "this load".to_owned()
    } else {
        format!("{} this load", times(choice.holds_up_to))
    };
    match choice.turns {
        None => format!("{up_to} {load} at least: no higher one was tried."),
        Some(StripeTurn { at, to: Some(unit) }) => {
            format!("{up_to} {load}; from {} on take {}.", times(at), size(unit.get()))
        }
        Some(StripeTurn { at, to: None }) => {
            format!("{up_to} {load}; no unit serves {}.", times(at))
        }
    }
}

/// Reason why there is no unit to take.
fn no_unit(plan: &StripePlan) -> String {
    let (all, rate) = (capital(&disks(plan.disks)), per_second(plan.rate));
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
                per_second(most)
            )
        }
    }
}

/// Choices of model and simulation further apart than this are worth a word.
const APART: f64 = 0.05;

fn details(plan: &StripePlan) -> Vec<String> {
    let mut details = Vec::new();
    let choice = plan.take.as_ref();
    let taken = choice.map(|choice| choice.unit);
    details.extend(choice.map(holds));
    details.extend(choice.and_then(as_good));
    if let Some(best) = of_unit(plan, taken.or(plan.best)) {
        details.push(format!(
            "A request works {} of {} on average. By the model each disk is {} busy, and the disks end at {} requests a second.",
            average(best.disks),
            disks(plan.disks),
            percent(best.busy),
            per_second(best.saturation)
        ));
        if plan.units.last().is_some_and(|largest| largest.unit == best.unit) {
            details.push(format!(
                "Larger units were not tried: with {} nearly every request lies in one unit.",
                size(best.unit.get())
            ));
        }
        details
            .push(format!("A request that is alone is served soonest by {}.", disks(plan.alone)));
        details.extend(plan.chen.map(|chen| of_chen(plan, best, &chen)));
    }
    if plan.dependent_replay {
        details.push(
            "At this load requests wait for each other as in the trace; at higher ones they come at their traced times, sped up."
                .into(),
        );
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
        let advice = match of(taken.or(plan.best)) {
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

/// The unit of Chen's formula, and its response beside that of the unit to take.
fn of_chen(plan: &StripePlan, taken: &StripeUnit, chen: &ChenUnit) -> String {
    let beside = |chen_s: Option<f64>, taken_s: Option<f64>| {
        let against = match (chen_s, taken_s) {
            (Some(chen_s), Some(taken_s)) if chen_s >= taken_s => {
                format!(" ({} longer)", percent(chen_s / taken_s - 1.0))
            }
            (Some(chen_s), Some(taken_s)) => {
                format!(" ({} shorter)", percent(1.0 - chen_s / taken_s))
            }
            _ => String::new(),
        };
        format!("{}{against}", response(chen_s))
    };
    let now = beside(chen.simulated_s, taken.simulated_s);
    let then = if plan.options.headroom == 1.0 {
        String::new()
    } else {
        format!(
            ", and {} with {} the load",
            beside(chen.with_headroom_s, headroom_s(plan, taken)),
            times(plan.options.headroom)
        )
    };
    format!(
        "Chen's formula takes units of {} for the {} requests that are present on average: the mean response is {now}{then}.",
        size(chen.unit.get()),
        average(chen.present)
    )
}

fn disks(count: u32) -> String {
    if count == 1 { "one disk".into() } else { format!("{} disks", grouped(count)) }
}

/// Model and simulation further apart than this do not describe the same load.
const DOUBTFUL: f64 = 0.25;

fn cautions(plan: &StripePlan) -> Vec<String> {
    let best = of_unit(plan, plan.take.as_ref().map(|choice| choice.unit).or(plan.best));
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
