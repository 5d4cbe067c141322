//! Traces that cannot say what a study asks of them: too short, in a mistaken unit, beyond what a drive
//! can be asked, or more than it can serve.
//!
//! The limits are far from any trace of a working host. Each is assumed, and says where it comes from.

use freewheel_sim::source::ReplayMode;
use freewheel_trace::{Character, DurationSummary, MISSING_COMPLETIONS_ONE_IN};
use freewheel_units::{Bytes, grouped};

use freewheel_study::{REQUESTS_MIN, Study};

use super::{Finding, overload};
use crate::page::{ms, percent, span};

/// Shorter traces hold a burst and not a load. The last request of a recording of a minute comes somewhat
/// before its end.
const SPAN_MIN_S: f64 = 59.0;
/// Longer ones than any published block trace but one: a year.
const SPAN_MAX_S: f64 = 366.0 * 86_400.0;
/// Fewer requests than one in this time are no load of a drive.
const GAP_MAX_S: f64 = 3600.0;
/// Requests a second from which a trace is that of no single drive: NVMe devices reach it.
const RATE_MAX: f64 = 100_000.0;
/// Hosts cut requests into at most some MiB: Linux, for example, into 1 to 32 MiB.
const REQUEST_MAX: Bytes = Bytes::from_kib(128 * 1024);
/// Linux gives a SCSI command up after 30 s.
const RESPONSE_MAX_NS: u64 = 30_000_000_000;
/// No disk answers sooner on average: a command alone takes tens of microseconds, from a disk's buffer too.
/// Only memory that stands for a disk does.
const RESPONSE_MEAN_MIN_NS: f64 = 10_000.0;
/// A smaller share says less than the count.
const SHARE_MIN: f64 = 0.001;
/// A mean response of this length is that of a queue, not of a drive.
const RESPONSE_MEAN_MAX_NS: f64 = 1e9;

/// What makes the trace, or this drive under it, doubtful; most important first.
pub(super) fn doubts(study: &Study) -> Vec<Finding> {
    let trace = &study.trace;
    let all = [
        missing_completions(study),
        overload::finding(study),
        long(trace),
        fast(trace),
        short(study),
        huge(trace),
        slow(trace),
        quick(trace),
        unaligned(trace),
    ];
    all.into_iter().flatten().collect()
}

fn seconds(trace: &Character) -> f64 {
    trace.info.span_ns as f64 / 1e9
}

/// None where every request has its completion, none has one, or nobody asks for a replay by dependence.
fn missing_completions(study: &Study) -> Option<Finding> {
    let info = &study.trace.info;
    let missing = info.missing_completions();
    let asked = study.options.trace.replay != ReplayMode::Arrivals;
    if missing == 0 || info.completions == 0 || !asked {
        return None;
    }
    let have = if missing == 1 { "has" } else { "have" };
    let (part, all) = (grouped(missing), counted(info.requests));
    let part = format!("{part} of the trace's {all} {have} no completion time");
    let needs = format!(
        "A replay by dependence needs the completions of all requests but less than one in {MISSING_COMPLETIONS_ONE_IN}."
    );
    Some(match study.dependent_replay {
        true => Finding {
            headline: format!("{part}: no other is taken to have waited for them."),
            detail: format!(
                "Every other request comes a think time after the one it had waited for. {needs} `--replay arrivals` uses no completions."
            ),
        },
        false => Finding {
            headline: format!(
                "{part}, so requests were replayed at their traced times: who waited for whom is not known."
            ),
            detail: format!(
                "{needs} Then a slower drive is asked later. Without it a slower drive gets a longer queue, and response times grow with that. Record the trace again with all completions, or remove the records without them; `--replay arrivals` says that the traced times are wanted."
            ),
        },
    })
}

/// None where the times may be true.
fn long(trace: &Character) -> Option<Finding> {
    let (seconds, requests) = (seconds(trace), trace.info.requests);
    let gap = seconds / requests.max(1) as f64;
    (seconds > SPAN_MAX_S || gap > GAP_MAX_S).then(|| Finding {
        headline: format!(
            "The trace's {} span {}: is the unit of its times mistaken?",
            counted(requests),
            span(seconds)
        ),
        detail: format!(
            "That is one request in {}. Times are read as the format says (`freewheel trace formats`). If they are in another unit, convert them, or name the format (`--format`). All rates, shares of the time and times of a scrub below follow from this span.",
            span(gap)
        ),
    })
}

/// None where the rate is one that drives see, and where there are too few requests for a rate: requests
/// of one instant, or of a short burst, come as fast as a host can send them.
fn fast(trace: &Character) -> Option<Finding> {
    let (seconds, requests) = (seconds(trace), trace.info.requests);
    let has_rate = requests >= REQUESTS_MIN && seconds > 0.0;
    (has_rate && requests as f64 / seconds > RATE_MAX).then(|| Finding {
        headline: format!(
            "The trace has {} in {}: is the unit of its times mistaken?",
            counted(requests),
            span_of_short(seconds)
        ),
        detail: "No hard disk is asked so often; a busy one serves some hundred requests a second. Times are read as the format says (`freewheel trace formats`). If they are in another unit, convert them, or name the format (`--format`).".into(),
    })
}

/// None where the trace is long enough to hold a load, and where there are too few requests anyway.
fn short(study: &Study) -> Option<Finding> {
    let seconds = seconds(&study.trace);
    let has_requests = study.baseline().result.response.count >= REQUESTS_MIN;
    (has_requests && seconds < SPAN_MIN_S).then(|| Finding {
        headline: format!("The trace lasts {}: it shows a moment, not a load.", span_of_short(seconds)),
        detail: "Bursts and quiet times of minutes are not in it. Results for hours or days below assume that this moment repeats. Record a minute at least.".into(),
    })
}

/// With its noun.
fn counted(requests: u64) -> String {
    match requests {
        1 => "1 request".into(),
        some => format!("{} requests", grouped(some)),
    }
}

/// A share with its verb; the count where the share is too small to be told in short.
fn part_asks_for(part: u64, requests: u64) -> String {
    let share = part as f64 / requests.max(1) as f64;
    match part {
        1 => "1 request asks for".into(),
        _ if share < SHARE_MIN => format!("{} ask for", counted(part)),
        _ => format!("{} of the requests ask for", percent(share)),
    }
}

/// Down to the microsecond.
fn span_of_short(seconds: f64) -> String {
    match seconds {
        s if s < 1.0 => format!("{} ms", ms(s * 1e9)),
        s => span(s),
    }
}

/// None where every request is one that a host sends.
fn huge(trace: &Character) -> Option<Finding> {
    let largest = trace.sizes.read.max_bytes.max(trace.sizes.write.max_bytes);
    (largest > REQUEST_MAX.get()).then(|| Finding {
        headline: format!(
            "The largest request asks for {}: is a column or a unit mistaken?",
            Bytes::new(largest).human()
        ),
        detail: format!(
            "Linux cuts requests into pieces of 1 to 32 MiB. Above {}, an assumed limit, a mistaken column or unit is more likely than such a host. While the drive serves such a request, all others wait. Check the columns of offset and size (`freewheel trace characterize` shows all sizes).",
            REQUEST_MAX.human()
        ),
    })
}

/// None where no response was recorded, or all are those of a working drive.
fn slow(trace: &Character) -> Option<Finding> {
    let times = &trace.response;
    let recorded: Vec<DurationSummary> =
        [times.read, times.write, times.flush].into_iter().flatten().collect();
    let longest = recorded.iter().map(|summary| summary.max_ns).max()?;
    let mean = recorded.iter().map(|summary| summary.mean_ns).fold(0.0, f64::max);
    (longest > RESPONSE_MAX_NS || mean > RESPONSE_MEAN_MAX_NS).then(|| Finding {
        headline: format!(
            "The trace records responses of up to {}: its times are those of a queue, or in a mistaken unit.",
            span(longest as f64 / 1e9)
        ),
        detail: format!(
            "The recorded means are {}. Linux gives a command up after {}. A replay by dependence takes think times from these responses and so spreads the load; `--replay arrivals` does not use them.",
            means(trace),
            span(RESPONSE_MAX_NS as f64 / 1e9)
        ),
    })
}

/// None where no response was recorded, or they are those of a device.
fn quick(trace: &Character) -> Option<Finding> {
    let times = &trace.response;
    let recorded = [times.read, times.write].into_iter().flatten();
    let (count, sum_ns) = recorded.fold((0, 0.0), |(count, sum_ns), summary| {
        (count + summary.count, sum_ns + summary.mean_ns * summary.count as f64)
    });
    let mean_ns = sum_ns / count as f64;
    (count >= REQUESTS_MIN && mean_ns < RESPONSE_MEAN_MIN_NS).then(|| Finding {
        headline: format!(
            "The trace records responses of {:.2} us on average: is the unit of its times mistaken?",
            mean_ns / 1e3
        ),
        detail: format!(
            "No disk answers within {:.0} us on average, from its buffer neither. If the times are microseconds that were read as nanoseconds, the trace takes {}. Times are read as the format says (`freewheel trace formats`): convert them, or name the format (`--format`).",
            RESPONSE_MEAN_MIN_NS / 1e3,
            span(1000.0 * seconds(trace))
        ),
    })
}

fn means(trace: &Character) -> String {
    let times = &trace.response;
    let all = [("reads", times.read), ("writes", times.write), ("flushes", times.flush)];
    let mean = |(name, summary): (&str, Option<DurationSummary>)| {
        summary.map(|summary| format!("{} ms of {name}", ms(summary.mean_ns)))
    };
    all.into_iter().filter_map(mean).collect::<Vec<_>>().join(", ")
}

/// None where every request is whole blocks.
fn unaligned(trace: &Character) -> Option<Finding> {
    let (widened, requests) = (trace.info.widened, trace.info.requests);
    (widened > 0).then(|| Finding {
        headline: format!(
            "{} parts of blocks, widened to whole ones of 512 B.",
            part_asks_for(widened, requests)
        ),
        detail: format!(
            "That is {} of {}. A drive is asked for whole blocks, so this was recorded above the block layer, or an offset is no offset in bytes. Sizes and addresses here are those of the widened requests.",
            grouped(widened),
            grouped(requests)
        ),
    })
}
