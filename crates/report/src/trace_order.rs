//! What was done to the times of a trace before it was replayed.

use freewheel_sim::config::CoarseTimes;
use freewheel_sim::{OtherTimes, RunResult};
use freewheel_trace::{Survey, TraceInfo};
use freewheel_units::grouped;

use crate::finding::{Confidence, Finding, Topic, Unit};
use crate::numbers::ms;

/// What must be known of the order and the clock of a trace: the doubts come first.
pub(crate) fn trace_cautions(
    trace: &TraceInfo,
    result: &RunResult,
    other: Option<&OtherTimes>,
) -> Vec<Finding> {
    let Some(survey) = &trace.survey else { return Vec::new() };
    coarse(survey, result, other).into_iter().chain(order(survey)).collect()
}

fn counted(topic: Topic, headline: String) -> Finding {
    Finding::new(topic, Confidence::Counted, headline)
}

/// None where the clock is fine, and where no run shows the difference.
fn coarse(survey: &Survey, result: &RunResult, other: Option<&OtherTimes>) -> Option<Finding> {
    let (granule, granule_ns, other) = (survey.granule_in_words()?, survey.granule_ns?, other?);
    let [here, there] = [&result.response, &other.response].map(|response| ms(response.mean_ns));
    let headline = match other.coarse_times {
        CoarseTimes::Bunched => format!(
            "The trace's clock has steps of {granule}. Requests were spread evenly over each step: mean response {here} ms; bunched, as recorded, it is {there} ms."
        ),
        CoarseTimes::Spread => format!(
            "The trace's clock has steps of {granule}. Requests were left at the beginning of each step: mean response {here} ms; spread evenly, it is {there} ms."
        ),
    };
    let name = match other.coarse_times {
        CoarseTimes::Bunched => "mean response, bunched",
        CoarseTimes::Spread => "mean response, spread",
    };
    Some(
        counted(Topic::CoarseTimes, headline)
            .number("step of the clock", granule_ns as f64 / 1e9, Unit::Seconds)
            .number("requests that share a time", survey.shared_times as f64, Unit::Count)
            .number(name, other.response.mean_ns / 1e9, Unit::Seconds)
            .action("Record the trace again with times of microseconds.")
            .detail("The trace does not tell where in a step a request came. The truth lies between a burst at its beginning and an even spread, or beyond, if requests came in other bursts.")
            .detail("`--coarse-times bunched` leaves requests where the trace has them (in an experiment: `coarse_times`). The moments within a step follow from the seed."),
    )
}

/// None where requests lie in order.
fn order(survey: &Survey) -> Option<Finding> {
    let moved = survey.moved_in_words();
    let headline = match survey.recordings {
        1 => format!("{}: they were sorted.", moved.clone()?),
        recordings => format!(
            "The trace holds {} recordings, whose clock starts again: they were put one after another.",
            grouped(recordings)
        ),
    };
    let finding = counted(Topic::Order, headline)
        .number("recordings", survey.recordings as f64, Unit::Count)
        .number("requests out of order", survey.moved_requests as f64, Unit::Count);
    Some(match survey.second_recording_at {
        None => finding,
        Some(at) => finding
            .detail(format!(
                "The second one begins at line or record {}. A recording begins after the end of the one before it, by that one's mean time between requests.",
                grouped(at)
            ))
            .detail(moved.map_or(String::new(), |moved| moved + "."))
            .detail("`--clock absolute` takes all times as those of one clock, and sorts the requests (in an experiment: `clock`)."),
    })
}
