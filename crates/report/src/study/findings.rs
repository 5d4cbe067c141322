//! Conclusions from the numbers of a study, most important first.

use freewheel_sim::source::{Fit, REPLAY_WINDOW};
use freewheel_sim::{BusyShares, RunResult};
use freewheel_study::Study;
use freewheel_study::changes::NOTICEABLE;
use freewheel_study::figure::Figure;
use freewheel_units::{Bytes, grouped};

use super::few::{Reach, few};
use super::policy::policy;
use super::{changes, doubts, figures, how_sure, scrub};
use crate::finding::{Confidence, Finding, Topic, Unit};
use crate::numbers::{average, ms, per_second, percent, rate, ratio, span};
use crate::shingled::shingled_cautions;

/// Share of the drive below which a workload's seeks are unusually short.
const SLIVER: f64 = 0.05;

pub(super) fn findings(study: &Study) -> Vec<Finding> {
    // Doubts come first: they say whether the rest is to be believed.
    let mut list = shingled_cautions(study.drive.zoned, &study.baseline().result);
    list.extend(doubts::doubts(study));
    let is_idle = changes::is_idle(study);
    let sample = few(study, is_idle);
    let reach = sample.as_ref().map(|sample| sample.reach);
    list.extend(sample.map(|sample| sample.finding));
    match reach {
        Some(Reach::Nothing) => {}
        Some(Reach::Hints) => list.extend(results(study).into_iter().map(|finding| {
            let is_sure = is_idle && finding.topic == Topic::Changes;
            if is_sure { finding } else { finding.into_hint() }
        })),
        Some(Reach::AllButChanges) | None => list.extend(results(study)),
    }
    list.extend(cautions(study));
    list
}

/// Findings about drive, policies and scrub under a load of enough requests.
fn results(study: &Study) -> Vec<Finding> {
    let all = [
        changes::finding(study),
        scrub::finding(study),
        Some(head_time(study)),
        Some(potential(study)),
        policy(study),
        Some(load(study)),
        Some(workload(study)),
        buffer(study),
        forced_writes(study),
    ];
    all.into_iter().flatten().collect()
}

fn simulated(topic: Topic, headline: impl Into<String>) -> Finding {
    Finding::new(topic, Confidence::Simulated, headline)
}

fn head_time(study: &Study) -> Finding {
    let run = study.baseline();
    let head = &run.result.head_time;
    let back_ns = run.writing_back_rotate_ns();
    let with_back = if back_ns > 0 { ", writing back included" } else { "" };
    let headline = format!(
        "While the drive works, its head waits for rotation {} of the time and moves data {} of it.",
        percent(head.rotate_share()),
        percent(head.transfer_share())
    );
    simulated(Topic::HeadTime, headline)
        .number("rotational latency, of head time", head.rotate_share(), Unit::Share)
        .figure(Figure::head_time(vec![figures::head_time_bar(run)]))
        .detail(format!(
            "The head takes {} ms a request {}{with_back}: {} ms seek, {} ms rotational latency, {} ms transfer.",
            ms(per_request(study, head.total_ns())),
            run.under(),
            ms(per_request(study, head.seek_ns)),
            ms(per_request(study, head.rotate_ns)),
            ms(per_request(study, head.transfer_ns))
        ))
        .detail(format!(
            "Freeblock scheduling can use the latency before requests, which is {} ms a request.",
            ms(per_request(study, head.rotate_ns - back_ns))
        ))
}

fn per_request(study: &Study, sum_ns: u128) -> f64 {
    sum_ns as f64 / study.baseline().result.response.count.max(1) as f64
}

/// The potential that the finding and the first tile state.
pub(super) fn potential_bytes_per_second(study: &Study) -> f64 {
    given_away_bytes_per_second(study)
        .unwrap_or_else(|| study.potential_bytes_per_second(study.baseline()))
}

fn potential(study: &Study) -> Finding {
    let bytes_per_second = potential_bytes_per_second(study);
    let once =
        if study.drive.keeps_free_blocks_before { ", once the drive gives them away" } else { "" };
    let the = match study.overload() {
        None => "The",
        Some(_) => "In this overload the",
    };
    let headline = format!(
        "{the} rotational gaps before requests have a potential of {}{once}.",
        rate(bytes_per_second)
    );
    let mut finding = simulated(Topic::Potential, headline)
        .number("potential", bytes_per_second, Unit::BytesPerSecond)
        .detail(potential_is(study))
        .detail("The potential measures the load and promises no rate: a scan may exceed it while much is wanted, and stays below it when little is left.")
        .detail(whole(study))
        .detail(not_given_away(study));
    if let Some(estimate) = &study.scrub {
        finding = finding.figure(figures::head_use(estimate));
    }
    match study.overload() {
        None => finding,
        Some(_) => finding.detail("A load that the drive can serve leaves other gaps."),
    }
}

/// Definition of the potential.
fn potential_is(study: &Study) -> String {
    let run = study.baseline();
    let when = match given_away_bytes_per_second(study) {
        Some(_) => format!(
            "while the drive keeps none of the blocks that pass before the wanted ones{}",
            if study.measured.warm_up_requests > 0 { ", over the whole trace" } else { "" }
        ),
        None if study.drive.keeps_free_blocks_before => format!(
            "{}, while the drive reads the blocks that pass before the wanted ones into its buffer (`keep_free_blocks_before`)",
            run.under()
        ),
        None => run.under(),
    };
    format!(
        "Potential is the rotational latency before the requests of this load times the mean media rate of {}. It was measured {when}.",
        rate(study.drive.media_bytes_per_second)
    )
}

fn whole(study: &Study) -> &'static str {
    match &study.scrub {
        Some(_) => {
            "The finding about a scrub says how much of the drive the gaps reach, and what that costs."
        }
        None => "No scrub was estimated (`--no-scrub`), so its time, reach and cost are not known.",
    }
}

/// Latency that counts in the head's time and not in the potential.
fn not_given_away(study: &Study) -> String {
    let run = study.baseline();
    match run.writing_back_rotate_ns() {
        0 => String::new(),
        ns => {
            let share = ns as f64 / run.result.elapsed_ns.max(1) as f64;
            format!(
                "The potential leaves out {} for the latency while the drive writes back from its buffer: that latency is not given away.",
                rate(share * study.drive.media_bytes_per_second)
            )
        }
    }
}

/// Potential of a drive that keeps the blocks that pass before those asked for, if it did not, as in the
/// estimate of a scrub. None where it keeps none, or no scrub was estimated.
fn given_away_bytes_per_second(study: &Study) -> Option<f64> {
    let scrub = study.scrub.as_ref().filter(|scrub| scrub.free_blocks_before_switched_off)?;
    Some(scrub.arms.iter().map(|arm| arm.potential_bytes_per_second).sum())
}

fn load(study: &Study) -> Finding {
    let result = &study.baseline().result;
    let replay = if study.dependent_replay {
        "Each request was replayed a think time after the one it had waited for, so a slower drive is asked later."
    } else {
        "Requests were replayed at their traced times, however fast the drive answered."
    };
    let piled_up = !study.dependent_replay && result.outstanding_max > REPLAY_WINDOW as u64;
    let busiest = result.busy_shares.busiest;
    let busy = format!(
        "The drive is busy {} of the time, {} {}",
        percent(result.utilisation),
        busiest.title(),
        percent(result.busy_shares.of(busiest))
    );
    let with_what = if study.overload().is_some() { "the load" } else { "the bursts" };
    let headline = if piled_up {
        format!(
            "{busy}. At worst {} requests wait: it cannot keep up with {with_what}.",
            grouped(result.outstanding_max)
        )
    } else {
        format!("{busy}.")
    };
    let finding = simulated(Topic::Load, headline)
        .number("busy", result.utilisation, Unit::Share)
        .figure(figures::request_rate(study))
        .detail(limit(result))
        .detail(format!(
            "The replay has {} reads and writes a second over {}. In the trace the busiest second holds {} times the average.",
            per_second(result.requests_per_second),
            span(study.baseline().measured_seconds()),
            ratio(study.trace.burstiness.peak_to_mean_1s)
        ))
        .detail(replay);
    if piled_up {
        finding.detail("A system that waits for its requests would have sent fewer, so the response times here are those of an overload.")
    } else {
        finding
    }
}

/// Busiest part, and the limit of the drive.
fn limit(result: &RunResult) -> String {
    let BusyShares { head, bus, electronics, busiest } = result.busy_shares;
    let [head, bus, electronics] = [head, bus, electronics].map(percent);
    format!(
        "A drive is busy while a command is in it or it writes back: the head works {head} of the time, the bus {bus}, command processing {electronics}. Under more load {} is the limit.",
        busiest.title()
    )
}

fn workload(study: &Study) -> Finding {
    let trace = &study.trace;
    let sequential = &trace.sequentiality;
    let median = trace.sizes.all.median_bytes;
    let took = if study.has_growing_queue() {
        String::new()
    } else {
        let mean_ns = study.baseline().result.flush_response.mean_ns;
        format!("; it takes {} ms on average here", ms(mean_ns))
    };
    let flushes = match trace.info.flushes {
        0 => String::new(),
        _ => {
            let writes = average(trace.flush.writes_per_flush);
            format!("A flush follows every {writes} writes{took}.")
        }
    };
    let headline = format!(
        "{} of the requests are reads, and the median request is {}; {} of the reads and {} of the writes go on where one before ended.",
        percent(trace.mix.read_request_share),
        Bytes::new(median).human(),
        percent(sequential.read_sequential_share),
        percent(sequential.write_sequential_share)
    );
    Finding::new(Topic::Workload, Confidence::Counted, headline)
        .number("median request", median as f64, Unit::Bytes)
        .figure(figures::request_sizes(study))
        .detail(format!(
            "{} of requests start where the one before ended. {} of data is touched, and the hottest tenth of it gets {} of the requests.",
            percent(trace.sequentiality.sequential_share),
            Bytes::new(trace.info.footprint_bytes.unwrap_or(0)).human(),
            percent(trace.skew.hottest_10_percent_share)
        ))
        .detail(flushes)
}

fn cautions(study: &Study) -> Vec<Finding> {
    [
        without_electronics(study),
        placement(study),
        devices(study),
        how_sure::assumed(study),
        unclean(study),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn given(topic: Topic, headline: impl Into<String>) -> Finding {
    Finding::new(topic, Confidence::Given, headline)
}

fn without_electronics(study: &Study) -> Option<Finding> {
    let sequential = percent(study.trace.sequentiality.read_sequential_share);
    (!study.drive.electronics).then(|| {
        given(Topic::Electronics, "The drive was modelled without its electronics: every request goes to the media.")
            .detail(format!(
                "A real drive serves sequential reads ({sequential} of the reads here) from its read-ahead. With its write cache on it completes writes before they are on the media."
            ))
            .detail("Such requests look slower here than they are, and their rotational latency larger.")
    })
}

/// None without the electronics.
fn buffer(study: &Study) -> Option<Finding> {
    let sequential = percent(study.trace.sequentiality.read_sequential_share);
    if !study.drive.electronics {
        return None;
    }
    let run = study.baseline();
    let result = &run.result;
    let served = (result.buffer_reads + result.buffer_writes) as f64;
    let all = result.read_response.count + result.write_response.count;
    Some(
        simulated(Topic::Buffer, format!("The drive's own buffer {}.", buffer_shares(result)))
            .number("requests served by the buffer", served / all.max(1) as f64, Unit::Share)
            .detail(format!(
                "{sequential} of the reads are sequential. Writing back took {} of the time {}.",
                percent(result.destaging),
                run.under()
            ))
            .detail("A flush waits until every earlier write is on the media. `--no-electronics` leaves buffer, queue, overheads and bus out."),
    )
}

/// None where FUA makes no difference: no write has it, or all writes go to the media anyway. Nor in a
/// queue that grows: how long a write takes there is the queue's.
fn forced_writes(study: &Study) -> Option<Finding> {
    let run = study.baseline();
    let forced = run.result.fua_write_response.as_ref()?;
    let plain_ns = run.result.plain_write_ns_mean();
    if !study.drive.electronics
        || study.has_growing_queue()
        || plain_ns.is_some_and(|ns| forced.mean_ns < ns * (1.0 + NOTICEABLE))
    {
        return None;
    }
    let writes = run.result.write_response.count;
    let others = match plain_ns {
        Some(ns) => format!(", other writes {} ms", ms(ns)),
        None => String::new(),
    };
    let headline = format!(
        "FUA makes {} of the writes wait for the media: they take {} ms on average{others}.",
        percent(forced.count as f64 / writes as f64),
        ms(forced.mean_ns)
    );
    Some(
        simulated(Topic::ForcedWrites, headline)
            .number("mean response of writes with FUA", forced.mean_ns, Unit::Nanoseconds)
            .detail(format!(
                "{} of {} writes have FUA (force unit access). The drive completes such a write when it is on the media, even with its write cache on.",
                grouped(forced.count),
                grouped(writes)
            ))
            .detail(format!("Their p99 is {} ms {}.", ms(forced.p99_ns as f64), run.under())),
    )
}

/// Shares of reads and writes that the buffer served, where there were some.
fn buffer_shares(result: &RunResult) -> String {
    let (reads, writes) = (result.read_response.count, result.write_response.count);
    let accepted = if result.refused_writes.count > 0 { "accepted " } else { "" };
    let served =
        (reads > 0).then(|| format!("served {} of the reads", share(result.buffer_reads, reads)));
    let took = (writes > 0).then(|| {
        let writes = share(result.buffer_writes, writes);
        format!("took {writes} of the {accepted}writes")
    });
    served.into_iter().chain(took).collect::<Vec<_>>().join(" and ")
}

fn share(part: u64, whole: u64) -> String {
    percent(part as f64 / whole as f64)
}

fn placement(study: &Study) -> Option<Finding> {
    let used = study.trace_space_bytes as f64 / study.drive.capacity_bytes as f64;
    let space = Bytes::new(study.trace_space_bytes).human_decimal();
    let finding = |headline: String, detail: String| {
        let finding = given(Topic::Placement, headline).detail(detail);
        Some(finding.number("trace's addresses, of the drive", used, Unit::Share))
    };
    match study.options.trace.fit {
        Fit::Scale if used > 1.0 => finding(
            "The trace's addresses were squeezed onto the drive (--scale).".into(),
            format!(
                "The trace reaches {space}, and the drive has {}. Seeks are those of a full drive, shorter than on the traced system.",
                Bytes::new(study.drive.capacity_bytes).human_decimal()
            ),
        ),
        Fit::Scale => finding(
            "The trace's addresses were spread over the whole drive (--scale).".into(),
            format!(
                "The trace reaches {space}, {} of the drive. Seeks are those of a full drive; without --scale they would be those of a nearly empty one.",
                percent(used)
            ),
        ),
        Fit::Wrap => finding(
            "The trace's addresses were folded onto the drive (--wrap).".into(),
            format!(
                "The trace reaches {space}. Addresses beyond the drive's end begin again at its start."
            ),
        ),
        Fit::AsIs if used < SLIVER => finding(
            format!("The trace covers {} of the drive, so seeks are short.", percent(used)),
            "With --scale its addresses are spread over the whole drive, as if the drive were full. The truth lies between.".into(),
        ),
        Fit::AsIs => None,
    }
}

fn devices(study: &Study) -> Option<Finding> {
    let count = study.trace.info.devices.len();
    (count > 1).then(|| {
        given(
            Topic::Devices,
            format!("The trace's {count} devices were laid end to end on one drive."),
        )
        .number("devices", count as f64, Unit::Count)
        .action("Use --device N to study one of them.")
        .detail("One arm serves all devices here.")
    })
}

fn unclean(study: &Study) -> Option<Finding> {
    let info = &study.trace.info;
    let damage = info.damage.as_ref();
    let headline = match damage {
        Some(damage) => format!(
            "The trace's file is damaged, {damage}: only the {} requests before that were replayed.",
            grouped(info.requests)
        ),
        None => format!("{} malformed records of the trace were skipped.", grouped(info.skipped)),
    };
    let damaged = damage.map_or(String::new(), |damage| {
        format!("Of the file, {damage}; {}.", damage.consequence())
    });
    (info.skipped > 0 || damage.is_some()).then(|| {
        Finding::new(Topic::TraceFile, Confidence::Counted, headline)
            .number("skipped records", info.skipped as f64, Unit::Count)
            .detail(damaged)
            .detail(match damage {
                Some(_) => format!("{} malformed records were skipped.", grouped(info.skipped)),
                None => String::new(),
            })
    })
}
