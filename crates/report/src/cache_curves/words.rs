//! What follows from the curves, in sentences.

use freewheel_model::cache::CachePolicy;
use freewheel_study::{
    Advice, CacheCurves, DOUBLING_GAIN_MIN, Measure, ResponsePoint, Responses, SimulatedResponses,
};
use freewheel_trace::{Format, Timing};
use freewheel_units::{Bytes, grouped};
use serde::Serialize;

use crate::numbers::{ms, percent};

/// What follows from the curves.
#[derive(Debug, Serialize)]
pub struct Conclusions {
    /// How much memory is enough, in a sentence.
    pub headline: String,
    /// Further conclusions, a sentence each.
    pub details: Vec<String>,
    /// What makes the numbers doubtful, a sentence each.
    pub cautions: Vec<String>,
}

impl Conclusions {
    pub(super) fn new(curves: &CacheCurves) -> Self {
        Self { headline: headline(curves), details: details(curves), cautions: cautions(curves) }
    }
}

/// A size in binary units with three digits, without zeros at the end.
pub(super) fn size(bytes: u64) -> String {
    let text = Bytes::new(bytes).human();
    let (number, unit) = text.split_once(' ').expect("a number and its unit");
    let trimmed = match number.contains('.') {
        true => number.trim_end_matches('0').trim_end_matches('.'),
        false => number,
    };
    format!("{trimmed} {unit}")
}

/// What counts.
pub(super) fn counted(curves: &CacheCurves) -> String {
    let counted = &curves.counted;
    format!(
        "{} reads of {} count, after a warm-up of {} requests ({}). Footprint: {}.",
        grouped(counted.reads),
        size(counted.read_bytes),
        grouped(counted.warm_up_requests),
        percent(curves.options.warm_up),
        size(curves.trace.footprint_bytes.unwrap_or(0))
    )
}

/// What the columns of the table are.
pub(super) fn columns(curves: &CacheCurves) -> String {
    let misses = match curves.options.sample {
        None => "Misses in % of the reads".to_owned(),
        Some(share) => format!("Misses in % of the uses of cache blocks, from a sample of {share}"),
    };
    match &curves.responses {
        Responses::Simulated(simulated) => {
            format!("{misses}; response of reads from memory or {} in ms.", simulated.drive)
        }
        Responses::NoTiming { .. } | Responses::NotAsked => misses + ".",
    }
}

/// Milliseconds; a third digit behind the point where memory answers most requests.
pub(super) fn response_ms(ns: f64) -> String {
    if ns < 1e6 { format!("{:.3}", ns / 1e6) } else { ms(ns) }
}

/// What the values of an advice are, within a sentence.
fn measured(curves: &CacheCurves) -> &'static str {
    match (curves.advice.measure, curves.options.sample) {
        (Measure::MeanReadResponseNs, _) => "the mean response of reads",
        (Measure::MissRatio, None) => "the share of reads that miss",
        (Measure::MissRatio, Some(_)) => "the share of block uses that miss",
    }
}

fn value(advice: &Advice, value: f64) -> String {
    match advice.measure {
        Measure::MeanReadResponseNs => format!("{} ms", response_ms(value)),
        Measure::MissRatio => percent(value),
    }
}

/// How much memory is enough, in one sentence.
fn headline(curves: &CacheCurves) -> String {
    let advice = &curves.advice;
    let of = |bytes: u64| format!("{} of {}", size(bytes), advice.policy.row().title);
    let without = value(advice, advice.without_cache);
    let largest = value(advice, advice.value_at_largest);
    let (doubling, measured) = (format!("{:.0} %", 100.0 * DOUBLING_GAIN_MIN), measured(curves));
    if !advice.is_useful {
        return format!(
            "No cache of up to {} lowers {measured} by {doubling}: {without} without, {largest} with {}.",
            size(advice.largest_bytes),
            of(advice.largest_bytes)
        );
    }
    let lowers = |bytes: u64, at: f64| {
        let change = percent(1.0 - at / advice.without_cache);
        let to = value(advice, at);
        format!("{} cut {measured} by {change} ({without} -> {to})", of(bytes))
    };
    if advice.value > advice.without_cache * (1.0 - DOUBLING_GAIN_MIN) {
        let all = lowers(advice.largest_bytes, advice.value_at_largest);
        return format!("{all}, in small steps: no doubling gains {doubling}.");
    }
    let here = lowers(advice.size_bytes, advice.value);
    if advice.is_still_falling {
        return format!("{here}; the last doubling still gained {doubling} or more.");
    }
    if advice.size_bytes == advice.largest_bytes {
        return format!("{here}.");
    }
    let up_to = size(advice.largest_bytes);
    format!("{here}; beyond, no doubling up to {up_to} gains {doubling} ({largest} there).")
}

/// Further conclusions.
fn details(curves: &CacheCurves) -> Vec<String> {
    let (advice, measured) = (&curves.advice, measured(curves));
    let mut details = Vec::new();
    if advice.is_useful {
        details.push(match advice.halved_from_bytes {
            Some(bytes) => format!("{} halve {measured}.", size(bytes)),
            None => format!("No size halves {measured}."),
        });
    }
    let is_other = advice.is_useful && advice.policy != CachePolicy::Lru;
    if let Some(lru) = advice.lru_value.filter(|_| is_other) {
        details.push(format!("LRU reaches {} with that size.", value(advice, lru)));
    }
    match &curves.responses {
        Responses::Simulated(simulated) => details.extend(tails(advice, simulated)),
        Responses::NoTiming { format } => details.push(no_timing(*format)),
        Responses::NotAsked => {}
    }
    details
}

/// 99th percentile of reads, and the mean with writes, at the advised size.
fn tails(advice: &Advice, simulated: &SimulatedResponses) -> Option<String> {
    let policy = simulated.policies.iter().find(|of| of.policy == advice.policy)?;
    let with = policy.points.iter().find(|point| point.size_bytes == advice.size_bytes)?;
    let change = |number: &dyn Fn(&ResponsePoint) -> f64| {
        format!(
            "{} -> {} ms",
            response_ms(number(&simulated.without_cache)),
            response_ms(number(with))
        )
    };
    let p99 = change(&|point| point.reads.p99_ns as f64);
    if with.writes.count == 0 {
        return Some(format!("At that size, the 99th percentile goes {p99}."));
    }
    let all = change(&|point| point.all.mean_ns);
    Some(format!(
        "At that size, the 99th percentile of reads goes {p99}, and the mean of reads and writes {all}."
    ))
}

/// Why there are no responses.
fn no_timing(format: Format) -> String {
    let times = match format.timing() {
        Timing::Seconds => "has times in whole seconds",
        Timing::None | Timing::Recorded => "has no times",
    };
    format!(
        "No response times: the trace's format, {format}, {times}, so that a disk cannot be timed."
    )
}

/// What makes the numbers doubtful.
fn cautions(curves: &CacheCurves) -> Vec<String> {
    let mut cautions = Vec::new();
    let trace = &curves.trace;
    if trace.skipped > 0 {
        cautions.push(format!("{} malformed records were left out.", grouped(trace.skipped)));
    }
    if let Some(damage) = &trace.damage {
        cautions.push(format!("Of the trace, {damage}; {}.", damage.consequence()));
    }
    if let Responses::Simulated(simulated) = &curves.responses
        && simulated.without_cache.queue_grows
    {
        cautions.push(
            "The drive without a cache cannot keep up: its response is that of a queue that grows with \
             the trace."
                .into(),
        );
    }
    if curves.counted.reads < FEW_READS {
        let reads = grouped(curves.counted.reads);
        cautions.push(format!("Only {reads} reads count: a hint, no advice."));
    }
    cautions
}

/// A 99th percentile of fewer reads is the longest response, and one read more might turn advice round.
const FEW_READS: u64 = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_has_no_zeros_at_its_end() {
        let sizes = [1 << 20, 3 << 29, 4096, 512, 100 << 20, 905_969_664].map(size);
        assert_eq!(sizes, ["1 MiB", "1.5 GiB", "4 KiB", "512 B", "100 MiB", "864 MiB"]);
    }
}
