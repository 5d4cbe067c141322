//! A load that the drive cannot serve: how it shows, and what is reported instead of advice that holds
//! only for a load that the drive serves.

use freewheel_sim::source::REPLAY_WINDOW;
use freewheel_study::{Overload, PolicyRun, Study};
use freewheel_units::grouped;

use crate::finding::{Confidence, Cost, Finding, Topic, Unit};
use crate::numbers::{ms, per_second, span};

/// None where the drive keeps up.
pub(super) fn finding(study: &Study) -> Option<Finding> {
    let finding = match study.overload()? {
        Overload::Queue => queue(study),
        Overload::Pace => pace(study),
    };
    let times = format!(
        "The trace takes {}, and the drive needs {}.",
        span(study.traced_seconds()),
        span(study.baseline().seconds())
    );
    Some(finding.cost(Cost::Hardware).detail(times).detail(in_microseconds(study)))
}

fn queue(study: &Study) -> Finding {
    let outstanding = study.baseline().result.outstanding_mean.round();
    let way_out = if study.trace.info.tells_dependence() {
        "Use `--replay dependent`: it asks a slower drive later, as the traced host would have."
    } else {
        "Study a faster drive, or one device of the trace (`--device`), or record the trace with completions."
    };
    let headline = format!(
        "This drive cannot serve this load: on average {} requests are outstanding.",
        grouped(outstanding as u64)
    );
    Finding::new(Topic::Overload, Confidence::Simulated, headline)
        .number("outstanding requests", outstanding, Unit::Count)
        .action(way_out)
        .detail("All response times below are those of a queue that grows with the length of the trace. They do not tell how fast the drive is.")
}

fn pace(study: &Study) -> Finding {
    let run = study.baseline();
    let works_s = run.works_seconds();
    let headline = format!(
        "This drive cannot serve this load at its recorded pace: it works for {} to serve {} of the trace.",
        span(works_s),
        span(study.measured.seconds())
    );
    Finding::new(Topic::Overload, Confidence::Simulated, headline)
        .number("time at work", works_s, Unit::Seconds)
        .action("Study a faster drive, or one device of the trace (`--device`); `--replay arrivals` shows the queue at the recorded pace.")
        .detail("Each request was replayed a think time after the one it had waited for, so the load waits for the drive. All results below are those of this slower load.")
}

/// Spans from which a trace is no longer a moment that may be a longer one in a mistaken unit.
const MOMENT_S: f64 = 60.0;

/// Trace with times that are microseconds read as nanoseconds, where the drive could serve that.
fn in_microseconds(study: &Study) -> String {
    let longer_s = 1000.0 * study.traced_seconds();
    let is_served = study.traced_seconds() < MOMENT_S && study.baseline().seconds() < longer_s;
    if is_served {
        format!(
            "If its times are microseconds that were read as nanoseconds, the trace takes {}, and the drive serves it: check their unit.",
            span(longer_s)
        )
    } else {
        String::new()
    }
}

/// Policies by the part of the load that each serves: response times of an overload do not compare them.
pub(super) fn policy(study: &Study) -> Finding {
    let traced = per_second(study.measured.requests as f64 / study.measured.seconds());
    let keeps_up =
        study.policies().filter(|run| study.overload_of(run).is_none() && is_short(run, study));
    let finding = match keeps_up.min_by(|a, b| mean(a).total_cmp(&mean(b))) {
        Some(best) => Finding::new(
            Topic::Policy,
            Confidence::Simulated,
            format!(
                "Under {} this drive can serve this load, with a mean response time of {} ms.",
                best.title,
                ms(best.result.response.mean_ns)
            ),
        )
        .number("mean response", best.result.response.mean_ns, Unit::Nanoseconds)
        .cost(Cost::Setting),
        None => {
            // `max_by` takes the last of equal ones, and the first is the simplest policy.
            let fastest = study.runs.iter().rev().max_by(|a, b| served(a).total_cmp(&served(b)));
            let fastest = fastest.expect("FCFS is always run");
            Finding::new(Topic::Policy, Confidence::Simulated, format!(
                "No policy that was compared lets this drive serve this load: of {traced} reads and writes a second it serves at most {} ({}).",
                per_second(served(fastest)),
                fastest.under()
            ))
            .number("served at most", served(fastest), Unit::RequestsPerSecond)
            .cost(Cost::Hardware)
        }
    };
    let all = study.runs.iter().map(|run| format!("{} {}", per_second(served(run)), run.under()));
    finding
        .detail(format!(
            "The trace has {traced} reads and writes a second. The drive serves {}.",
            all.collect::<Vec<_>>().join(", ")
        ))
        .detail("In an overload the rate tells policies apart. Response times do not.")
}

fn served(run: &PolicyRun) -> f64 {
    run.result.requests_per_second
}

fn mean(run: &&PolicyRun) -> f64 {
    run.result.response.mean_ns
}

/// A queue that grew for all of the trace, and was served soon after it, is no load that is served.
fn is_short(run: &PolicyRun, study: &Study) -> bool {
    study.dependent_replay || run.result.outstanding_mean <= REPLAY_WINDOW as f64
}
