//! What follows from the numbers, in plain words.

use freewheel_model::stats::Summary;
use freewheel_sim::source::{Fit, REPLAY_WINDOW};
use freewheel_sim::{BusyShares, RunResult};
use freewheel_study::{PolicyRun, REQUESTS_MIN, Study};
use freewheel_units::{Bytes, grouped};

use super::{Finding, doubts, overload, scrub};
use crate::page::{ms, percent, rate, span};
use crate::shingled::shingled_cautions;

/// Share of the drive below which a workload's seeks are unusually short.
const SLIVER: f64 = 0.05;
/// Improvement of the mean response below which policies count as equal.
const NOTICEABLE: f64 = 0.02;
/// Uncertainty of the mean response, as a share of it, from which it is said.
const UNCERTAIN: f64 = 0.1;
/// Improvement from which it is clearer to say how many times shorter.
const MANIFOLD: f64 = 0.9;

pub(super) fn findings(study: &Study) -> Vec<Finding> {
    // They say whether the rest is to be believed.
    let mut list = shingled_cautions(study.drive.zoned, &study.baseline().result);
    list.extend(doubts::doubts(study));
    let is_enough_for_a_hint = match few(&study.baseline().result.response) {
        None => true,
        Some(SmallSample { finding, is_enough_for_a_hint }) => {
            list.push(finding);
            is_enough_for_a_hint
        }
    };
    if is_enough_for_a_hint {
        list.extend(scrub::finding(study));
        list.extend([head_time(study), potential(study)]);
        list.extend(policy(study));
        list.extend([load(study), workload(study)]);
        list.extend(buffer(study));
        list.extend(forced_writes(study));
    }
    list.extend(cautions(study));
    list
}

/// There are not enough requests for a mean.
struct SmallSample {
    finding: Finding,
    is_enough_for_a_hint: bool,
}

/// None when there are enough.
fn few(response: &Summary) -> Option<SmallSample> {
    if response.count < REQUESTS_MIN {
        let finding = Finding {
            headline: format!(
                "This trace is too short to judge by: of its reads and writes {} were served.",
                grouped(response.count)
            ),
            detail: format!(
                "Nothing is said here of what the drive, its policies or a scrub would do for such a load: that takes {REQUESTS_MIN} at least, as the 99th percentile of fewer is simply the longest response. What became of these is in the report; record for longer."
            ),
        };
        return Some(SmallSample { finding, is_enough_for_a_hint: false });
    }
    // Two standard errors: were responses independent, 95 % of all such traces would lie within.
    let uncertainty = 2.0 * response.coefficient_of_variation / (response.count as f64).sqrt();
    let finding = (uncertainty > UNCERTAIN).then(|| Finding {
        headline: format!(
            "This trace is short: with {} requests all that follows is a hint at most.",
            grouped(response.count)
        ),
        detail: format!(
            "Another piece of the same load may well have a mean response time that is {} higher or lower, and more where requests come in bursts. Record for longer.",
            percent(uncertainty)
        ),
    });
    finding.map(|finding| SmallSample { finding, is_enough_for_a_hint: true })
}

fn head_time(study: &Study) -> Finding {
    let run = study.baseline();
    let head = &run.result.head_time;
    let (back, usable) = match run.writing_back_rotate_ns() {
        0 => ("", "The waiting".into()),
        ns => (
            ", what is written back included",
            format!(
                "Of the waiting {} ms are before requests, which",
                ms(per_request(study, head.rotate_ns - ns))
            ),
        ),
    };
    Finding {
        headline: format!(
            "While the drive works, the head waits for rotation {} of the time and moves data {} of it.",
            percent(head.rotate_share()),
            percent(head.transfer_share())
        ),
        detail: format!(
            "The head takes {} ms a request {}{back}: {} ms seeking, {} ms waiting for its sector, {} ms transferring. {usable} is what freeblock scheduling can turn into reads for free.",
            ms(per_request(study, head.total_ns())),
            run.under(),
            ms(per_request(study, head.seek_ns)),
            ms(per_request(study, head.rotate_ns)),
            ms(per_request(study, head.transfer_ns)),
        ),
    }
}

fn per_request(study: &Study, sum_ns: u128) -> f64 {
    sum_ns as f64 / study.baseline().result.response.count.max(1) as f64
}

fn potential(study: &Study) -> Finding {
    let run = study.baseline();
    let given_away = given_away_bytes_per_second(study);
    let bytes_per_second = given_away.unwrap_or_else(|| study.potential_bytes_per_second(run));
    let whose = match given_away {
        None if study.drive.keeps_free_blocks_before => format!(
            "{}, while the drive reads what passes before the blocks asked for into its buffer (`keep_free_blocks_before`),",
            run.under()
        ),
        None => run.under(),
        Some(_) => "once the drive keeps nothing of what passes before the blocks asked for (`keep_free_blocks_before`),".into(),
    };
    let rest = match run.writing_back_rotate_ns() {
        0 => String::new(),
        ns => {
            let share = ns as f64 / run.result.elapsed_ns.max(1) as f64;
            format!(
                " Not in that potential are {} that lie in the latency while the drive writes back from its buffer, which is not given away.",
                rate(share * study.drive.media_bytes_per_second)
            )
        }
    };
    let whole = match &study.scrub {
        Some(_) => {
            "How much of the drive a scrub reads in such gaps, when, and what that costs the load is said above."
        }
        None => {
            "How much of the drive a scrub would read in such gaps, how long that would take and what it would cost the load was not estimated (`--no-scrub`)."
        }
    };
    let once = match study.drive.keeps_free_blocks_before {
        true => ", once the drive gives them away",
        false => "",
    };
    let (the, rest) = match study.overload() {
        None => ("The", rest),
        Some(_) => (
            "In this overload the",
            format!("{rest} A load that the drive can serve leaves other gaps."),
        ),
    };
    Finding {
        headline: format!(
            "{the} rotational gaps before requests have a potential of {}{once}.",
            rate(bytes_per_second)
        ),
        detail: format!(
            "Potential is the rotational latency before the requests of this load {whose} times the mean media rate of {}. It measures the load and promises nothing: more may come while much is wanted, and less comes when little is left. {whole}{rest}",
            rate(study.drive.media_bytes_per_second),
        ),
    }
}

/// Of a drive that keeps the blocks that pass before those asked for: what lies before requests when it
/// does not, as in the estimate of a scrub. None where it keeps none, or nothing was estimated.
fn given_away_bytes_per_second(study: &Study) -> Option<f64> {
    let scrub = study.scrub.as_ref().filter(|scrub| scrub.free_blocks_before_switched_off)?;
    Some(scrub.arms.iter().map(|arm| arm.potential_bytes_per_second).sum())
}

/// None when there is nothing to compare.
fn policy(study: &Study) -> Option<Finding> {
    let (baseline, best) = (study.baseline(), study.best_policy());
    if study.policies().count() < 2 && !baseline.own_queue || baseline.result.response.count == 0 {
        return None;
    }
    if study.overload().is_some() {
        return Some(overload::policy(study));
    }
    let (before, after) = (&baseline.result.response, &best.result.response);
    if baseline.own_queue && before.mean_ns < after.mean_ns {
        return Some(own_queue_is_best(study, baseline, best));
    }
    let gain = 1.0 - after.mean_ns / before.mean_ns;
    if gain < NOTICEABLE {
        return Some(nothing_helps(study, baseline));
    }
    let headline = if gain > MANIFOLD {
        format!(
            "{} would make the mean response time {:.0} times shorter",
            best.title,
            before.mean_ns / after.mean_ns
        )
    } else {
        format!("{} would cut the mean response time by {}", best.title, percent(gain))
    };
    let (flush_before, flush_after) =
        (baseline.result.flush_response.mean_ns, best.result.flush_response.mean_ns);
    let flushes = if study.trace.info.flushes > 0 {
        format!("; flushes from {} ms to {} ms on average", ms(flush_before), ms(flush_after))
    } else {
        String::new()
    };
    Some(Finding {
        headline: format!(
            "{headline}, from {} ms {} to {} ms.",
            ms(before.mean_ns),
            baseline.under(),
            ms(after.mean_ns)
        ),
        detail: format!(
            "p99 goes from {} ms to {} ms, the longest wait for the head from {} ms to {} ms{flushes}. {}{}",
            ms(before.p99_ns as f64),
            ms(after.p99_ns as f64),
            ms(baseline.result.queue_ns_max as f64),
            ms(best.result.queue_ns_max as f64),
            choice(study, &[baseline, best]),
            one_at_a_time(baseline)
        ),
    })
}

/// That no policy lowers the mean is no reason to take any of them: some may raise it.
fn nothing_helps(study: &Study, baseline: &PolicyRun) -> Finding {
    let (before, worst) = (&baseline.result.response, study.worst_policy());
    let loss = worst.result.response.mean_ns / before.mean_ns - 1.0;
    let harm = match loss >= NOTICEABLE {
        false => String::new(),
        true => format!(
            "; {} would raise it by {}, from {} ms to {} ms",
            worst.title,
            percent(loss),
            ms(before.mean_ns),
            ms(worst.result.response.mean_ns)
        ),
    };
    Finding {
        headline: format!(
            "No policy that was compared lowers the mean response time of this load noticeably{harm}{}.",
            reads_alone(study, baseline)
        ),
        detail: format!(
            "It is {} ms {}. {}{}",
            ms(before.mean_ns),
            baseline.under(),
            choice(study, &[baseline]),
            one_at_a_time(baseline)
        ),
    }
}

fn own_queue_is_best(study: &Study, own: &PolicyRun, best: &PolicyRun) -> Finding {
    let mean = |run: &PolicyRun| ms(run.result.response.mean_ns);
    Finding {
        headline: format!(
            "No policy outside the drive does better than the {}, which has a mean response time of {} ms, reads and writes together{}.",
            own.title,
            mean(own),
            reads_alone(study, own)
        ),
        detail: format!(
            "Given one command at a time, the drive has {} ms under {}: while it works on one, the next can neither be taken into its buffer nor served from it. p99 is {} ms in the drive's queue and {} ms under {}. {}",
            mean(best),
            best.title,
            ms(own.result.response.p99_ns as f64),
            ms(best.result.response.p99_ns as f64),
            best.title,
            choice(study, &[own, best])
        ),
    }
}

/// Of a load for whose mean nothing does better: which policy does for its reads, if one does.
fn reads_alone(study: &Study, baseline: &PolicyRun) -> String {
    let mean = |run: &PolicyRun| run.result.read_response.mean_ns;
    let best = study.policies().min_by(|a, b| mean(a).total_cmp(&mean(b)));
    match best.filter(|best| 1.0 - mean(best) / mean(baseline) >= NOTICEABLE) {
        None => String::new(),
        Some(best) => format!(
            "; reads alone do better under {}, with {} ms in place of {} ms",
            best.title,
            ms(mean(best)),
            ms(mean(baseline))
        ),
    }
}

/// How policies are compared with the drive's own queue.
fn one_at_a_time(baseline: &PolicyRun) -> &'static str {
    match baseline.own_queue {
        true => " Under a policy the drive is given one command at a time.",
        false => "",
    }
}

/// What there is to choose from, and how the policies do that were not `told` of yet.
fn choice(study: &Study, told: &[&PolicyRun]) -> String {
    let rest = study.policies().filter(|run| told.iter().all(|told| told.title != run.title));
    let rest: Vec<String> = rest
        .map(|run| format!("{} ms under {}", ms(run.result.response.mean_ns), run.title))
        .collect();
    let rest = match rest.is_empty() {
        true => String::new(),
        false => format!("The mean is {}. ", rest.join(", ")),
    };
    let baseline = study.baseline();
    format!(
        "{rest}On average {:.1} requests are outstanding {}: a policy can choose only among those that wait.",
        baseline.result.outstanding_mean,
        baseline.under()
    )
}

fn load(study: &Study) -> Finding {
    let result = &study.baseline().result;
    let burst = &study.trace.burstiness;
    let replay = if study.dependent_replay {
        "Each request was replayed a think time after the one it had waited for, so a slower drive is asked later"
    } else {
        "Requests were replayed at their traced times, however the drive fared"
    };
    let piled_up = !study.dependent_replay && result.outstanding_max > REPLAY_WINDOW as u64;
    let busiest = result.busy_shares.busiest;
    let busy = format!(
        "The drive is busy {} of the time, {} {}",
        percent(result.utilisation),
        busiest.title(),
        percent(result.busy_shares.of(busiest))
    );
    let headline = if piled_up {
        let with_what = match study.overload() {
            None => "the bursts",
            Some(_) => "the load",
        };
        format!(
            "{busy}; at its worst {} requests wait: it cannot keep up with {with_what}.",
            grouped(result.outstanding_max)
        )
    } else {
        format!("{busy}.")
    };
    let overload = if piled_up {
        " A system that waits for its requests would have sent fewer, so the response times here are those of an overload."
    } else {
        ""
    };
    Finding {
        headline,
        detail: format!(
            "{}\n{:.0} reads and writes a second over {} in the replay. In the trace the busiest second holds {:.1} times the average. {replay}.{overload}",
            limit(result),
            result.requests_per_second,
            span(result.elapsed_ns as f64 / 1e9),
            burst.peak_to_mean_1s
        ),
    }
}

/// What is busy for how long, and what limits the drive.
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
    let kind = if trace.sequentiality.sequential_share > 0.5 { "sequential" } else { "random" };
    let median = if trace.mix.read_request_share >= 0.5 {
        trace.sizes.read.median_bytes
    } else {
        trace.sizes.write.median_bytes
    };
    let took = match study.has_growing_queue() {
        true => String::new(),
        false => {
            let mean_ns = study.baseline().result.flush_response.mean_ns;
            format!("; it takes {} ms on average here", ms(mean_ns))
        }
    };
    let flushes = match trace.info.flushes {
        0 => String::new(),
        _ => format!(" A flush follows every {:.1} writes{took}.", trace.flush.writes_per_flush),
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
            Bytes::new(trace.info.footprint_bytes.unwrap_or(0)).human(),
            percent(trace.skew.hottest_10_percent_share)
        ),
    }
}

fn cautions(study: &Study) -> Vec<Finding> {
    [without_electronics(study), fit(study), devices(study), assumed(study), unclean(study)]
        .into_iter()
        .flatten()
        .collect()
}

fn without_electronics(study: &Study) -> Option<Finding> {
    let sequential = percent(study.trace.sequentiality.read_sequential_share);
    (!study.drive.electronics).then(|| Finding {
        headline: "The drive was modelled without its electronics: every request goes to the media."
            .into(),
        detail: format!(
            "A real drive serves sequential reads ({sequential} of the reads here) from its read-ahead, and with its write cache on reports writes before they are on the media. Such requests look slower here, and their rotational latency larger, than they are."
        ),
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
    Some(Finding {
        headline: format!("The drive's own buffer {}.", buffer_shares(result)),
        detail: format!(
            "{sequential} of the reads are sequential. {}, writing back took {} of the time. A flush waits until all that was written before it is on the media. Without the electronics: --no-electronics.",
            capital(&run.under()),
            percent(result.destaging)
        ),
    })
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
    Some(Finding {
        headline: format!(
            "FUA makes {} of the writes wait for the media: they take {} ms on average{others}.",
            percent(forced.count as f64 / writes as f64),
            ms(forced.mean_ns)
        ),
        detail: format!(
            "{} of {} writes have FUA (force unit access). The drive answers such a write only when it is on the media, even with its write cache on. That is {}; p99 is {} ms.",
            grouped(forced.count),
            grouped(writes),
            run.under(),
            ms(forced.p99_ns as f64)
        ),
    })
}

/// What the buffer did for reads and for writes, where there were some.
fn buffer_shares(result: &RunResult) -> String {
    let (reads, writes) = (result.read_response.count, result.write_response.count);
    let accepted = if result.refused_writes.count > 0 { "accepted " } else { "" };
    let share = |part: u64, whole: u64| percent(part as f64 / whole as f64);
    let served =
        (reads > 0).then(|| format!("served {} of the reads", share(result.buffer_reads, reads)));
    let took = (writes > 0).then(|| {
        let writes = share(result.buffer_writes, writes);
        format!("took {writes} of the {accepted}writes")
    });
    served.into_iter().chain(took).collect::<Vec<_>>().join(" and ")
}

fn capital(words: &str) -> String {
    let (first, rest) = words.split_at(1);
    first.to_uppercase() + rest
}

fn fit(study: &Study) -> Option<Finding> {
    let used = study.trace_space_bytes as f64 / study.drive.capacity_bytes as f64;
    let space = Bytes::new(study.trace_space_bytes).human_decimal();
    match study.options.trace.fit {
        Fit::Scale if used > 1.0 => Some(Finding {
            headline: "The trace's addresses were squeezed onto the drive (--scale).".into(),
            detail: format!("It reaches {space}, and the drive has {}. Seeks are those of a full drive, shorter than where the trace was recorded.", Bytes::new(study.drive.capacity_bytes).human_decimal()),
        }),
        Fit::Scale => Some(Finding {
            headline: "The trace's addresses were spread over the whole drive (--scale).".into(),
            detail: format!("It reaches {space}, {} of the drive. Seeks are those of a full drive; without --scale they would be those of a nearly empty one.", percent(used)),
        }),
        Fit::Wrap => Some(Finding {
            headline: "The trace's addresses were folded onto the drive (--wrap).".into(),
            detail: format!("It reaches {space}; addresses beyond the drive's end begin again at its start."),
        }),
        Fit::AsIs if used < SLIVER => Some(Finding {
            headline: format!("The trace covers {} of the drive, so seeks are short.", percent(used)),
            detail: "With --scale its addresses are spread over the whole drive, as if the drive were full; the truth lies between.".into(),
        }),
        Fit::AsIs => None,
    }
}

fn devices(study: &Study) -> Option<Finding> {
    let count = study.trace.info.devices.len();
    (count > 1).then(|| Finding {
        headline: format!("The trace's {count} devices were laid end to end on one drive."),
        detail: "One arm serves them all here. --device N studies one of them.".into(),
    })
}

fn assumed(study: &Study) -> Option<Finding> {
    let count = study.drive.assumed.len();
    (count > 0).then(|| Finding {
        headline: format!(
            "Groups of values of this drive's model that are assumed, at least in part: {count}."
        ),
        detail: "They are listed at the end of the report; judge the absolute times accordingly."
            .into(),
    })
}

fn unclean(study: &Study) -> Option<Finding> {
    let info = &study.trace.info;
    let damage = info.damage.as_ref();
    (info.skipped > 0 || info.arrival_regressions > 0 || damage.is_some()).then(|| Finding {
        headline: match damage {
            Some(_) => format!(
                "The trace's file is damaged: only the {} requests before the damage were replayed.",
                grouped(info.requests)
            ),
            None => "The trace is not clean.".into(),
        },
        detail: format!(
            "{}{} malformed records were skipped; {} records arrive before the record in front of them and were replayed with it.",
            damage.map_or(String::new(), |damage| format!("Of the file, {damage}; {}. ", damage.consequence())),
            grouped(info.skipped),
            grouped(info.arrival_regressions)
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_of_few_requests_is_called_a_hint() {
        let of = |count, coefficient_of_variation| Summary {
            count,
            coefficient_of_variation,
            ..Summary::default()
        };
        let hint = few(&of(101, 0.6)).unwrap();
        assert!(hint.is_enough_for_a_hint && hint.finding.headline.contains("101 requests"));
        assert!(few(&of(101, 0.5)).is_none());
        assert!(few(&of(3000, 5.0)).is_some(), "a mean of bursts needs more of them");
    }

    #[test]
    fn responses_that_are_alike_are_no_more_of_them() {
        let of = |count| few(&Summary { count, ..Summary::default() });
        assert!([0, 2, 99].map(of).into_iter().all(|few| !few.unwrap().is_enough_for_a_hint));
        assert!(of(REQUESTS_MIN).is_none());
    }
}
