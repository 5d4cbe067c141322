//! Traces that cannot answer a study: too short, in a mistaken unit, of unlikely requests, or more than
//! the drive can serve.
//!
//! The limits are far from any trace of a working host. Each is assumed, with its source beside it.

use freewheel_sim::source::ReplayMode;
use freewheel_study::changes::Measured;
use freewheel_study::{MeasuredPart, OtherReplay, REQUESTS_MIN, Study};
use freewheel_trace::{Character, DurationSummary, Layer, MISSING_COMPLETIONS_ONE_IN};
use freewheel_units::{Bytes, grouped};

use super::recorded::{is_unlike_recorded, recorded_sum};
use super::{fitted, overload};
use crate::finding::{Confidence, Finding, Topic, Unit};
use crate::numbers::{ms, percent, span, us};
use crate::trace_order::trace_cautions;

/// Shorter traces hold a burst and not a load. The last request of a recording of a minute comes somewhat
/// before its end.
const SPAN_MIN_S: f64 = 59.0;
/// A year: longer than any published block trace but one.
const SPAN_MAX_S: f64 = 366.0 * 86_400.0;
/// Fewer requests than one in this time are no load of a drive.
const GAP_MAX_S: f64 = 3600.0;
/// Requests a second that only NVMe devices reach.
const RATE_MAX: f64 = 100_000.0;
/// Hosts cut requests into some MiB at most: Linux, for example, into 1 to 32 MiB.
const REQUEST_MAX: Bytes = Bytes::from_kib(128 * 1024);
/// Linux gives a SCSI command up after 30 s.
const RESPONSE_MAX_NS: u64 = 30_000_000_000;
/// A command alone takes tens of microseconds, from a disk's buffer too. Only memory answers sooner.
const RESPONSE_MEAN_MIN_NS: f64 = 10_000.0;
/// A smaller share says less than the count.
const SHARE_MIN: f64 = 0.001;
/// A mean response of this length is that of a queue, not of a drive.
const RESPONSE_MEAN_MAX_NS: f64 = 1e9;

const CHECK_UNIT: &str = "Check the format (`freewheel trace formats`): convert the times, or name the format with `--format`.";

/// Doubts about the trace, or this drive under it; most important first.
pub(super) fn doubts(study: &Study) -> Vec<Finding> {
    let trace = &study.trace;
    let all = [
        merged(trace),
        missing_completions(study),
        overload::finding(study),
        long(trace),
        fast(trace),
        short(study),
        huge(trace),
        slow(trace),
        quick(trace),
        unaligned(trace),
        no_completions(study),
        study.options.fitted.as_ref().map(|fit| fitted::finding(study, fit)),
        late(study),
        recorded(study),
        burst(study),
    ];
    let result = &study.baseline().result;
    let traces = std::iter::once((study.options.trace.file.as_path(), &trace.info));
    let cautions = trace_cautions(traces, result, study.other_times.as_ref());
    cautions.into_iter().chain(all.into_iter().flatten()).collect()
}

/// Change of the mean response by an assumed value from which a caution comes first.
const LARGE_ASSUMPTION: f64 = 0.3;

/// True for a finding that says that the others may not be believed, or qualifies them.
pub(super) fn is_doubt(finding: &Finding) -> bool {
    use Topic::{
        AssumedValues, Burst, CoarseTimes, Devices, FastResponses, FastTrace, FewRequests,
        LargeRequests, LateArrivals, LongTrace, Merged, MissingCompletions, Order, Overload,
        PartialBlocks, RecordedResponses, RefusedWrites, ShingledModel, ShortTrace, SlowResponses,
        TraceFile,
    };
    let number = finding.number.as_ref();
    let moves_the_mean =
        number.is_some_and(|it| it.unit == Unit::Share && it.value >= LARGE_ASSUMPTION);
    finding.topic == AssumedValues && moves_the_mean
        || matches!(
            finding.topic,
            RefusedWrites
                | CoarseTimes
                | Order
                | Merged
                | ShingledModel
                | MissingCompletions
                | Overload
                | LongTrace
                | FastTrace
                | ShortTrace
                | LargeRequests
                | LateArrivals
                | SlowResponses
                | FastResponses
                | PartialBlocks
                | FewRequests
                | Burst
                | RecordedResponses
                | Devices
                | TraceFile
        )
}

fn counted_in_trace(topic: Topic, headline: String) -> Finding {
    Finding::new(topic, Confidence::Counted, headline)
}

fn seconds(trace: &Character) -> f64 {
    trace.info.span_ns as f64 / 1e9
}

/// None where the recorded system merged hardly any requests.
fn merged(trace: &Character) -> Option<Finding> {
    let layers = trace.info.survey?.layers.filter(|layers| layers.are_merged())?;
    let (merged, queued) = (grouped(layers.counts.merged), grouped(layers.counts.queued));
    let headline = match layers.read {
        Layer::Issued => format!(
            "The recorded system merged {merged} of {queued} requests before the drive. They are replayed as merged, so schedulers of the host find little left to merge."
        ),
        Layer::Auto | Layer::Queued => format!(
            "The recorded system merged {merged} of {queued} requests. They are replayed as queued, and today's system merges none of them: what schedulers of the host gain by merging, the recorded system had."
        ),
    };
    let finding = counted_in_trace(Topic::Merged, headline)
        .number("requests merged", layers.counts.merged as f64, Unit::Count)
        .detail(format!("Block layer: {}.", layers.in_words()))
        .detail("In an experiment: `layer`.");
    Some(finding)
}

/// None where every request has its completion, none has one, or `--replay arrivals` is set.
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
        "A replay by dependence needs completion times: less than one request in {MISSING_COMPLETIONS_ONE_IN} may lack its own."
    );
    let finding = |rest: &str| {
        counted_in_trace(Topic::MissingCompletions, part.clone() + rest).number(
            "requests without completion",
            missing as f64,
            Unit::Count,
        )
    };
    Some(if study.dependent_replay {
        finding(", so no other request waits for them.")
            .detail("Every other request comes a think time after the one it had waited for.")
            .detail(needs)
            .detail("`--replay arrivals` uses no completion times.")
    } else {
        finding(", so requests were replayed at their traced times.")
            .action("Record the trace again with all completions, or remove the records without them.")
            .detail(needs)
            .detail("The replay does not know which request waited for which. A slower drive gets a longer queue, and response times grow with it.")
            .detail("`--replay arrivals` asks for the traced times, without this warning.")
    })
}

/// None where a completion is recorded, and where the user said how to replay.
fn no_completions(study: &Study) -> Option<Finding> {
    let replay = study.other_replay.as_ref().filter(|replay| replay.dependent)?;
    let asked = study.options.trace.replay != ReplayMode::Arrivals;
    let is_enough = study.baseline().result.response.count >= REQUESTS_MIN;
    if study.trace.info.completions > 0 || !asked || !is_enough {
        return None;
    }
    let headline = "The trace records no completions, so which request waited for which is not known: both ways to replay it were tried.";
    let inferred = replay.inferred_completions.first().map(|inferred| {
        format!(
            "One way has the traced times. The other has completions of {}, which stand in: with responses half or twice as long, {} of the requests wait for another one.",
            inferred.drive,
            percent(inferred.parents.either)
        )
    }).unwrap_or_default();
    let finding = counted_in_trace(Topic::MissingCompletions, headline.to_owned());
    Some(
        finding
            .action("Record completions, too: then one of the two is right.")
            .detail(inferred)
            .detail("`--replay` says which of them the page shows first."),
    )
}

/// None where the drive answers about as soon as the recorded system did, no response was recorded, or a
/// fit says it.
fn recorded(study: &Study) -> Option<Finding> {
    if study.options.fitted.as_ref().is_some_and(|fit| !fit.is_good()) {
        return None;
    }
    if !is_unlike_recorded(study) {
        return None;
    }
    let response = &study.baseline().result.response;
    let recorded = study.measured.recorded_mean_ns()?;
    let headline = format!(
        "The recorded system answered in {} ms on average, {} in {} ms: what is called today here is not that system.",
        ms(recorded),
        study.drive.model,
        ms(response.mean_ns)
    );
    let finding = counted_in_trace(Topic::RecordedResponses, headline)
        .number("recorded mean response", recorded, Unit::Nanoseconds)
        .action(match study.options.fitted {
            None => "Fit the drive to the recorded responses with `--fit`, or name the drive that was recorded with `--drive`.",
            Some(_) => "Name the drive that was recorded with `--drive`, if it is there: `freewheel drive list`.",
        })
        .detail(format!("The recorded means are {}.", means_measured(&study.measured)));
    Some(finding)
}

/// A replay that delays more than this share of the requests is not the recorded load.
const LATE: f64 = 0.1;

/// None where the replay's window delays few requests, or the replay is at the traced times.
fn late(study: &Study) -> Option<Finding> {
    let fidelity = study.fidelity?;
    let delayed = fidelity.delayed_by_window;
    let share = delayed.requests as f64 / fidelity.requests.max(1) as f64;
    let headline = format!(
        "In this replay {} of the requests come later than recorded, by {} ms on average: at most 64 are outstanding in it.",
        percent(share),
        ms(delayed.mean_ns as f64)
    );
    (share > LATE).then(|| {
        counted_in_trace(Topic::LateArrivals, headline)
            .number("requests that come later", share, Unit::Share)
            .action("Look at `--replay arrivals` too, which keeps the recorded times.")
    })
}

/// A slice with more of the summed response than this makes the mean.
const BURST: f64 = 0.75;

/// None where no slice of the trace holds most of the summed response, under either replay.
fn burst(study: &Study) -> Option<Finding> {
    let changes = study.changes.as_ref()?;
    let replay = study.other_replay.as_ref();
    let other = changes.today_other_replay.as_ref().zip(replay.map(OtherReplay::words));
    let all = std::iter::once((&changes.today, "")).chain(other);
    let (today, words, share) = all
        .map(|(today, words)| (today, words, share_of_a_slice(today)))
        .find(|&(.., share)| share > BURST)?;
    let when = if words.is_empty() { String::new() } else { format!(" {words}") };
    let headline = format!(
        "Of {} slices of the trace one holds {} of the time that requests took{when}: the mean is that of a burst, and the median is {} ms.",
        today.by_slice.len(),
        percent(share),
        ms(today.response.p50_ns as f64)
    );
    let finding = Finding::new(Topic::Burst, Confidence::Simulated, headline)
        .number("share of the summed response", share, Unit::Share)
        .detail("Changes of the mean are changes of this burst. The spread over slices shows the rest of the time. The slices begin after the requests that fill the caches.");
    Some(finding)
}

/// The largest share of the summed response that a slice has.
fn share_of_a_slice(today: &Measured) -> f64 {
    today.by_slice.iter().map(|slice| slice.sum_ns).max().unwrap_or(0) as f64
        / today.by_slice.iter().map(|slice| slice.sum_ns).sum::<u128>().max(1) as f64
}

/// None where the times may be true.
fn long(trace: &Character) -> Option<Finding> {
    let (seconds, requests) = (seconds(trace), trace.info.requests);
    let gap = seconds / requests.max(1) as f64;
    let headline = format!(
        "The trace's {} span {}: is the unit of its times mistaken?",
        counted(requests),
        span(seconds)
    );
    (seconds > SPAN_MAX_S || gap > GAP_MAX_S).then(|| {
        counted_in_trace(Topic::LongTrace, headline)
            .number("time between requests", gap, Unit::Seconds)
            .action(CHECK_UNIT)
            .detail("All rates, shares of time and times of a scrub below follow from this span.")
    })
}

/// None where drives see such rates, and where there are too few requests for a rate: a short burst comes
/// as fast as a host can send it.
fn fast(trace: &Character) -> Option<Finding> {
    let (seconds, requests) = (seconds(trace), trace.info.requests);
    let has_rate = requests >= REQUESTS_MIN && seconds > 0.0;
    let rate = requests as f64 / seconds;
    let headline = format!(
        "The trace has {} in {}: is the unit of its times mistaken?",
        counted(requests),
        span_of_short(seconds)
    );
    (has_rate && rate > RATE_MAX).then(|| {
        counted_in_trace(Topic::FastTrace, headline)
            .number("rate", rate, Unit::RequestsPerSecond)
            .action(CHECK_UNIT)
            .detail("A busy hard disk serves some hundred requests a second.")
    })
}

/// None where the trace is long enough to hold a load, and where there are too few requests anyway.
fn short(study: &Study) -> Option<Finding> {
    let seconds = seconds(&study.trace);
    let has_requests = study.baseline().result.response.count >= REQUESTS_MIN;
    let headline =
        format!("The trace lasts {}: it shows a moment, not a load.", span_of_short(seconds));
    (has_requests && seconds < SPAN_MIN_S).then(|| {
        counted_in_trace(Topic::ShortTrace, headline)
            .number("span", seconds, Unit::Seconds)
            .action("Record a minute at least.")
            .detail("The trace lacks the bursts and quiet times of minutes.")
            .detail("Results for hours or days below assume that this moment repeats.")
    })
}

fn counted(requests: u64) -> String {
    match requests {
        1 => "1 request".into(),
        some => format!("{} requests", grouped(some)),
    }
}

/// A share with its verb; the count where the share would be rounded away.
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
    let headline = format!(
        "The largest request asks for {}: is a column or a unit mistaken?",
        Bytes::new(largest).human()
    );
    (largest > REQUEST_MAX.get()).then(|| {
        counted_in_trace(Topic::LargeRequests, headline)
            .number("largest request", largest as f64, Unit::Bytes)
            .action("Check the columns of offset and size (`freewheel trace characterize` shows all sizes).")
            .detail(format!(
                "Linux cuts requests into pieces of 1 to 32 MiB. Above {}, an assumed limit, a mistake is more likely than such a host.",
                REQUEST_MAX.human()
            ))
            .detail("While the drive serves such a request, all others wait.")
    })
}

/// None where no response was recorded, or all are those of a working drive.
fn slow(trace: &Character) -> Option<Finding> {
    let times = &trace.response;
    let recorded: Vec<DurationSummary> =
        [times.read, times.write, times.flush].into_iter().flatten().collect();
    let longest = recorded.iter().map(|summary| summary.max_ns).max()?;
    let mean = recorded.iter().map(|summary| summary.mean_ns).fold(0.0, f64::max);
    let headline = format!(
        "The trace records responses of up to {}: its times are those of a queue, or in a mistaken unit.",
        span(longest as f64 / 1e9)
    );
    (longest > RESPONSE_MAX_NS || mean > RESPONSE_MEAN_MAX_NS).then(|| {
        counted_in_trace(Topic::SlowResponses, headline)
            .number("longest response", longest as f64 / 1e9, Unit::Seconds)
            .action("Check the unit of the times; `--replay arrivals` does not use the responses.")
            .detail(format!("The recorded means are {}.", means(trace)))
            .detail(format!(
                "Linux gives a command up after {}.",
                span(RESPONSE_MAX_NS as f64 / 1e9)
            ))
            .detail("A replay by dependence takes think times from these responses and so spreads the load.")
    })
}

/// None where no response was recorded, or they are those of a device.
fn quick(trace: &Character) -> Option<Finding> {
    let times = &trace.response;
    let (count, sum_ns) = recorded_sum(&[times.read, times.write]);
    let mean_ns = sum_ns / count as f64;
    let headline = format!(
        "The trace records responses of {} on average: is the unit of its times mistaken?",
        us(mean_ns)
    );
    (count >= REQUESTS_MIN && mean_ns < RESPONSE_MEAN_MIN_NS).then(|| {
        counted_in_trace(Topic::FastResponses, headline)
            .number("mean response", mean_ns / 1e9, Unit::Seconds)
            .action(CHECK_UNIT)
            .detail(format!(
                "No disk answers within {} us on average, even from its buffer.",
                RESPONSE_MEAN_MIN_NS / 1e3
            ))
            .detail(format!(
                "If the times are microseconds that were read as nanoseconds, the trace takes {}.",
                span(1000.0 * seconds(trace))
            ))
    })
}

/// The recorded means of the part that is measured.
fn means_measured(part: &MeasuredPart) -> String {
    let all = [
        ("reads", part.recorded_reads),
        ("writes", part.recorded_writes),
        ("flushes", part.recorded_flushes),
    ];
    all.into_iter()
        .filter_map(|(name, sum)| {
            sum.mean_ns().map(|mean_ns| format!("{} ms of {name}", ms(mean_ns)))
        })
        .collect::<Vec<_>>()
        .join(", ")
}

fn means(trace: &Character) -> String {
    let times = &trace.response;
    let all = [("reads", times.read), ("writes", times.write), ("flushes", times.flush)];
    all.into_iter()
        .filter_map(|(name, summary)| {
            summary.map(|summary| format!("{} ms of {name}", ms(summary.mean_ns)))
        })
        .collect::<Vec<_>>()
        .join(", ")
}

/// None where every request is whole blocks.
fn unaligned(trace: &Character) -> Option<Finding> {
    let (widened, requests) = (trace.info.widened, trace.info.requests);
    let headline = format!(
        "{} parts of blocks, widened to whole ones of 512 B.",
        part_asks_for(widened, requests)
    );
    (widened > 0).then(|| {
        counted_in_trace(Topic::PartialBlocks, headline)
            .number("widened requests", widened as f64, Unit::Count)
            .action("Check that offsets are in bytes; record the trace at the block layer.")
            .detail("A drive serves whole blocks. Sizes and addresses here are those of the widened requests.")
    })
}
