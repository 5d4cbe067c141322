//! What follows from the numbers, in plain words.

use freewheel_units::Bytes;
use serde::Serialize;

use super::Study;
use crate::page::{ms, percent, rate, span};

/// A sentence to remember, and the numbers behind it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The sentence.
    pub headline: String,
    /// The numbers.
    pub detail: String,
}

/// Utilisation above which a drive that is fed by the clock falls behind for good.
const SATURATED: f64 = 0.95;
/// Share of the drive below which a workload's seeks are unusually short.
const SLIVER: f64 = 0.05;
/// Improvement of the mean response below which policies count as equal.
const NOTICEABLE: f64 = 0.02;

pub(super) fn findings(study: &Study) -> Vec<Finding> {
    [head_time(study), potential(study), policy(study), load(study), workload(study)]
        .into_iter()
        .chain(cautions(study))
        .collect()
}

fn head_time(study: &Study) -> Finding {
    let run = study.fcfs();
    let stages = &run.result.stages;
    Finding {
        headline: format!(
            "While it works, the head waits for rotation {} of the time and moves data {} of it.",
            percent(stages.rotate_share()),
            percent(stages.transfer_share())
        ),
        detail: format!(
            "Under FCFS a request takes {} ms at the drive: {} ms seeking, {} ms waiting for its sector, {} ms transferring. The waiting is what freeblock scheduling turns into reads for free.",
            ms(per_request(study, stages.head_ns() + stages.overhead_ns)),
            ms(per_request(study, stages.seek_ns)),
            ms(per_request(study, stages.rotate_ns)),
            ms(per_request(study, stages.transfer_ns)),
        ),
    }
}

fn per_request(study: &Study, sum_ns: u128) -> f64 {
    sum_ns as f64 / study.fcfs().result.response.count.max(1) as f64
}

fn potential(study: &Study) -> Finding {
    let bytes_per_second = study.potential_bytes_per_second(study.fcfs());
    let seconds = study.drive.capacity_bytes as f64 / bytes_per_second.max(1.0);
    Finding {
        headline: format!(
            "Up to {} could be read in those gaps without delaying anybody.",
            rate(bytes_per_second)
        ),
        detail: format!(
            "That is the rotational latency of this load times the media rate of {}: an upper bound. At that rate reading the whole drive of {} once would take {}.",
            rate(study.drive.media_bytes_per_second),
            Bytes::new(study.drive.capacity_bytes).human_decimal(),
            span(seconds)
        ),
    }
}

fn policy(study: &Study) -> Finding {
    let (fcfs, best) = (study.fcfs(), study.best());
    let (before, after) = (&fcfs.result.response, &best.result.response);
    let gain = 1.0 - after.mean_ns / before.mean_ns;
    let headline = if gain < NOTICEABLE {
        "No scheduling policy would make a noticeable difference under this load.".into()
    } else {
        format!(
            "{} would cut the mean response time by {}, from {} ms to {} ms.",
            best.title,
            percent(gain),
            ms(before.mean_ns),
            ms(after.mean_ns)
        )
    };
    Finding {
        headline,
        detail: format!(
            "p99 goes from {} ms under FCFS to {} ms under {}; the longest wait for the head from {} ms to {} ms. On average {} requests are outstanding: a policy can choose only among those that wait.",
            ms(before.p99_ns as f64),
            ms(after.p99_ns as f64),
            best.title,
            ms(fcfs.result.queue_ns_max as f64),
            ms(best.result.queue_ns_max as f64),
            format_args!("{:.1}", fcfs.result.outstanding_mean)
        ),
    }
}

fn load(study: &Study) -> Finding {
    let result = &study.fcfs().result;
    let saturated = !study.dependent_replay && result.utilisation > SATURATED;
    let headline = if saturated {
        format!(
            "This drive cannot keep up: it is busy {} of the time and its queue grows.",
            percent(result.utilisation)
        )
    } else {
        format!("The drive is busy {} of the time.", percent(result.utilisation))
    };
    let burst = &study.trace.burstiness;
    let replay = if study.dependent_replay {
        "Each request was replayed a think time after the one it had waited for, so a slower drive is asked later"
    } else {
        "Requests were replayed at their traced times, however the drive fared"
    };
    Finding {
        headline,
        detail: format!(
            "{:.0} requests a second over {}; the busiest second holds {:.1} times the average. {replay}.",
            result.requests_per_second,
            span(result.elapsed_ns as f64 / 1e9),
            burst.peak_to_mean_1s
        ),
    }
}

fn workload(study: &Study) -> Finding {
    let trace = &study.trace;
    let kind = if trace.sequentiality.sequential_share > 0.5 { "sequential" } else { "random" };
    let median = if trace.mix.read_request_share >= 0.5 {
        trace.sizes.read.median_bytes
    } else {
        trace.sizes.write.median_bytes
    };
    let flushes = if trace.info.flushes > 0 {
        format!(
            " A flush follows every {:.1} writes; it takes {} ms on average here.",
            trace.flush.writes_per_flush,
            ms(study.fcfs().result.flush_response.mean_ns)
        )
    } else {
        String::new()
    };
    Finding {
        headline: format!(
            "The workload is mostly {kind}: {} of requests are reads, the typical request is {}.",
            percent(trace.mix.read_request_share),
            Bytes::new(median).human()
        ),
        detail: format!(
            "{} of requests start where the one before ended. {} of data is touched, and the hottest tenth of it gets {} of the requests.{flushes}",
            percent(trace.sequentiality.sequential_share),
            Bytes::new(trace.info.footprint_bytes).human(),
            percent(trace.skew.hottest_10_percent_share)
        ),
    }
}

fn cautions(study: &Study) -> Vec<Finding> {
    let mut list = Vec::new();
    let used = study.trace_space_bytes as f64 / study.drive.capacity_bytes as f64;
    let as_is = study.options.trace.fit == freewheel_sim::source::Fit::AsIs;
    if as_is && used < SLIVER {
        list.push(Finding {
            headline: format!("The trace covers only {} of the drive, so seeks are short.", percent(used)),
            detail: "With --scale its address space is spread over the whole drive, as if the drive were full; the truth lies between.".into(),
        });
    }
    if !study.drive.assumed.is_empty() {
        list.push(Finding {
            headline: format!(
                "{} values of this drive's model are assumed, not published.",
                study.drive.assumed.len()
            ),
            detail:
                "They are listed at the end of the report; judge the absolute times accordingly."
                    .into(),
        });
    }
    let info = &study.trace.info;
    if info.skipped > 0 || info.arrival_regressions > 0 {
        list.push(Finding {
            headline: format!(
                "The trace is not clean: {} malformed records were skipped.",
                info.skipped
            ),
            detail: format!(
                "{} records arrive before the record in front of them and were replayed with it.",
                info.arrival_regressions
            ),
        });
    }
    list
}
