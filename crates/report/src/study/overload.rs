//! A load that the drive cannot serve: how that is known, and what is said instead of advice that holds
//! for a load that it can.

use freewheel_sim::source::REPLAY_WINDOW;
use freewheel_units::grouped;

use freewheel_study::{Overload, PolicyRun, Study};

use super::Finding;
use crate::page::{ms, span};

/// None where the drive keeps up.
pub(super) fn finding(study: &Study) -> Option<Finding> {
    let (headline, meaning) = match study.overload()? {
        Overload::Queue => queue(study),
        Overload::Pace => pace(study),
    };
    let times = format!(
        "The trace takes {}, and the drive needs {}.",
        span(study.traced_seconds()),
        span(study.baseline().seconds())
    );
    Some(Finding { headline, detail: format!("{times} {meaning}{}", in_microseconds(study)) })
}

fn queue(study: &Study) -> (String, String) {
    let way_out = match study.trace.info.tells_dependence() {
        true => "`--replay dependent` asks a slower drive later, as the traced host would have.",
        false => {
            "Study a faster drive, or one device of the trace (`--device`), or record the trace with completions: then a slower drive is asked later."
        }
    };
    let headline = format!(
        "This drive cannot serve this load: on average {} requests are outstanding.",
        grouped(study.baseline().result.outstanding_mean.round() as u64)
    );
    let meaning = format!(
        "All response times below are those of a queue that grows with the length of the trace: they do not tell how fast the drive is. {way_out}"
    );
    (headline, meaning)
}

fn pace(study: &Study) -> (String, String) {
    let run = study.baseline();
    let headline = format!(
        "This drive cannot serve this load at its recorded pace: it works for {} to serve {} of the trace.",
        span(run.result.utilisation * run.seconds()),
        span(study.traced_seconds())
    );
    let meaning = "Each request was replayed a think time after the one it had waited for, so the load waits for the drive. All results below are those of this slower load. Study a faster drive, or one device of the trace (`--device`); `--replay arrivals` shows the queue at the recorded pace.";
    (headline, meaning.into())
}

/// Spans from which a trace is no longer a moment that may be a longer one in a mistaken unit.
const MOMENT_S: f64 = 60.0;

/// What the trace would be if its times were microseconds read as nanoseconds, where the drive could
/// serve that.
fn in_microseconds(study: &Study) -> String {
    let longer_s = 1000.0 * study.traced_seconds();
    let is_served = study.traced_seconds() < MOMENT_S && study.baseline().seconds() < longer_s;
    match is_served {
        false => String::new(),
        true => format!(
            " If its times are microseconds that were read as nanoseconds, the trace takes {}, and the drive serves it: check their unit.",
            span(longer_s)
        ),
    }
}

/// What the policies do for such a load: by how much of it they serve, as response times tell nothing.
pub(super) fn policy(study: &Study) -> Finding {
    let traced = (study.trace.info.reads + study.trace.info.writes) as f64 / study.traced_seconds();
    let served = |run: &PolicyRun| run.result.requests_per_second;
    let mean = |run: &&PolicyRun| run.result.response.mean_ns;
    // A queue that grew for all of the trace, and was served soon after it, is no load that is served.
    let is_short = |run: &PolicyRun| {
        study.dependent_replay || run.result.outstanding_mean <= REPLAY_WINDOW as f64
    };
    let keeps_up = study.policies().filter(|run| study.overload_of(run).is_none() && is_short(run));
    let headline = match keeps_up.min_by(|a, b| mean(a).total_cmp(&mean(b))) {
        Some(best) => format!(
            "Under {} this drive can serve this load, with a mean response time of {} ms.",
            best.title,
            ms(best.result.response.mean_ns)
        ),
        None => {
            // `max_by` takes the last of equal ones, and the first is the simplest policy.
            let fastest = study.runs.iter().rev().max_by(|a, b| served(a).total_cmp(&served(b)));
            let fastest = fastest.expect("FCFS is always run");
            format!(
                "No policy that was compared lets this drive serve this load: of {traced:.0} reads and writes a second it serves at most {:.0} ({}).",
                served(fastest),
                fastest.under()
            )
        }
    };
    let all = study.runs.iter().map(|run| format!("{:.0} {}", served(run), run.under()));
    Finding {
        headline,
        detail: format!(
            "The trace has {traced:.0} reads and writes a second. The drive serves {}. In an overload this tells policies apart, and response times do not.",
            all.collect::<Vec<_>>().join(", ")
        ),
    }
}
