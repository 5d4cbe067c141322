//! Changes to the times of a trace before its replay.

use std::path::Path;

use freewheel_sim::config::CoarseTimes;
use freewheel_sim::{OtherTimes, RunResult};
use freewheel_trace::{Survey, TraceInfo};
use freewheel_units::grouped;

use crate::finding::{Confidence, Finding, Topic, Unit};
use crate::numbers::ms;
use crate::page::name_of;

/// Cautions about the order and the clock of a run's traces, each with its file: the doubts come first, and
/// the one about coarse clocks once.
pub(crate) fn trace_cautions<'a>(
    traces: impl Iterator<Item = (&'a Path, &'a TraceInfo)>,
    result: &RunResult,
    other: Option<&OtherTimes>,
) -> Vec<Finding> {
    let traces: Vec<(&Path, &Survey)> =
        traces.filter_map(|(file, trace)| Some((file, trace.survey.as_ref()?))).collect();
    let is_one = traces.len() == 1;
    let coarse = traces.iter().find_map(|(_, survey)| coarse(survey, result, other));
    let order = traces.iter().filter_map(|(file, survey)| {
        let name = if is_one { "The trace".to_owned() } else { name_of(file) };
        order(&name, survey)
    });
    coarse.into_iter().chain(order).collect()
}

fn counted(topic: Topic, headline: String) -> Finding {
    Finding::new(topic, Confidence::Counted, headline)
}

/// None where the clock is fine, and where no run shows the difference.
fn coarse(survey: &Survey, result: &RunResult, other: Option<&OtherTimes>) -> Option<Finding> {
    let (granule, other) = (survey.granule_in_words()?, other?);
    let [here, there] = [&result.response, &other.response].map(|response| ms(response.mean_ns));
    let (done, otherwise) = match other.coarse_times {
        CoarseTimes::Bunched => ("spread evenly over each step", "bunched, as recorded"),
        CoarseTimes::Spread => ("left at the beginning of each step", "spread evenly"),
    };
    let headline = format!(
        "The trace's clock has steps of {granule}. Requests were {done}: mean response {here} ms; {otherwise}, it is {there} ms."
    );
    let name = match other.coarse_times {
        CoarseTimes::Bunched => "mean response, bunched",
        CoarseTimes::Spread => "mean response, spread",
    };
    Some(
        counted(Topic::CoarseTimes, headline)
            .number(name, other.response.mean_ns, Unit::Nanoseconds)
            .action("Record the trace again with times of microseconds.")
            .detail("The trace does not tell where in a step a request came. The truth lies between a burst at its beginning and an even spread, or beyond, if requests came in other bursts.")
            .detail("`--coarse-times bunched` leaves requests where the trace has them (in an experiment: `coarse_times`). The moments within a step follow from the seed."),
    )
}

/// None where requests lie in order.
fn order(name: &str, survey: &Survey) -> Option<Finding> {
    let sorted = survey.sorted_in_words();
    let headline = match survey.recordings {
        1 => format!("{name} is out of order: {}.", sorted.clone()?),
        recordings => format!(
            "{name} holds {} recordings, whose clock starts again: they were put one after another.",
            grouped(recordings)
        ),
    };
    let finding = counted(Topic::Order, headline);
    Some(match survey.recordings_in_words() {
        None => finding.number("requests sorted", survey.sorted_requests as f64, Unit::Count),
        Some(recordings) => finding
            .number("recordings", survey.recordings as f64, Unit::Count)
            .detail(format!("Recordings: {recordings}."))
            .detail("A recording begins after the end of the one before it, by that one's mean time between requests.")
            .detail(sorted.map_or(String::new(), |sorted| sorted + "."))
            .detail("`--clock absolute` takes all times as those of one clock, and sorts the requests (in an experiment: `clock`)."),
    })
}
