//! Conclusions from the curves, in sentences.

use freewheel_model::cache::CachePolicy;
use freewheel_study::{
    Advice, CacheCurves, Choice, DOUBLING_GAIN_MIN, Measure, MissFit, PolicyGap, PowerLaw,
    ResponsePoint, Responses, SimulatedResponses,
};
use freewheel_trace::{Format, Timing};
use freewheel_units::grouped;
use serde::Serialize;

use crate::numbers::{self, fine_ms, miss_percent, ms, percent, size, whole_percent};

/// Conclusions from the curves.
#[derive(Debug, Serialize)]
pub struct Conclusions {
    /// Amount of memory that is enough, in a sentence.
    pub headline: String,
    /// Further conclusions, a sentence each.
    pub details: Vec<String>,
    /// Cautions about the numbers, a sentence each.
    pub cautions: Vec<String>,
}

impl Conclusions {
    pub(super) fn new(curves: &CacheCurves) -> Self {
        Self { headline: headline(curves), details: details(curves), cautions: cautions(curves) }
    }
}

/// Words for the requests that are counted.
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

/// Words for the columns of the table.
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

/// Milliseconds; three decimals where memory answers most requests.
pub(super) fn response_ms(ns: f64) -> String {
    if ns < 1e6 { fine_ms(ns) } else { ms(ns) }
}

/// Words for the values of an advice, within a sentence.
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
        Measure::MissRatio => format!("{} %", miss_percent(value)),
    }
}

/// Amount of memory that is enough, in one sentence.
fn headline(curves: &CacheCurves) -> String {
    let (advice, measured, doubling) = (&curves.advice, measured(curves), doubling());
    let Advice { enough, largest, without_cache, .. } = *advice;
    let value = |of: f64| value(advice, of);
    if !advice.is_useful {
        let up_to = size(largest.size_bytes);
        let (without, with) = (value(without_cache), value(largest.value));
        return format!(
            "No cache of up to {up_to} lowers {measured} by {doubling}: {without} without, {with} with {}.",
            of(&largest)
        );
    }
    let cut = |choice: Choice| {
        let change = percent(1.0 - choice.value / without_cache);
        let (from, to) = (value(without_cache), value(choice.value));
        format!("{} cut {measured} by {change} ({from} -> {to})", of(&choice))
    };
    if advised(advice) != enough {
        return format!("{}, in small steps: no doubling gains {doubling}.", cut(largest));
    }
    format!("{}{}.", cut(enough), beyond(curves))
}

/// The size that is enough; the largest where all doublings gain little.
fn advised(advice: &Advice) -> Choice {
    let limit = advice.without_cache * (1.0 - DOUBLING_GAIN_MIN);
    if advice.enough.value > limit { advice.largest } else { advice.enough }
}

/// Gain of more memory than advised, as the end of a sentence.
fn beyond(curves: &CacheCurves) -> String {
    let (advice, doubling) = (&curves.advice, doubling());
    let Advice { enough, largest, .. } = advice;
    if curves.trace.footprint_bytes.is_some_and(|footprint| enough.size_bytes >= footprint) {
        return "; that holds the whole footprint".into();
    }
    if advice.is_still_falling {
        return format!("; the last doubling still gained {doubling} or more, so try larger sizes");
    }
    if enough.size_bytes == largest.size_bytes {
        return String::new();
    }
    let (up_to, there) = (size(largest.size_bytes), value(advice, largest.value));
    format!("; beyond, no doubling up to {up_to} gains {doubling} ({there} there)")
}

fn doubling() -> String {
    whole_percent(DOUBLING_GAIN_MIN)
}

fn of(choice: &Choice) -> String {
    format!("{} of {}", size(choice.size_bytes), choice.policy.row().title)
}

fn details(curves: &CacheCurves) -> Vec<String> {
    let (advice, measured) = (&curves.advice, measured(curves));
    let mut details = Vec::new();
    if advice.is_useful {
        details.push(match advice.halved {
            Some(choice) => format!("{} halve {measured}.", of(&choice)),
            None => format!("No size halves {measured}."),
        });
    }
    let enough = advice.enough;
    let is_told = advice.gap.is_some_and(|gap| gap.best == enough) || !advice.is_useful;
    if let Some(lru) = advice.lru_value.filter(|_| enough.policy != CachePolicy::Lru && !is_told) {
        details.push(format!(
            "LRU reaches {} with {}.",
            value(advice, lru),
            size(enough.size_bytes)
        ));
    }
    if let Some(PolicyGap { best, lru_value }) = advice.gap {
        let (size, policy) = (size(best.size_bytes), best.policy.row().title);
        let [best, lru] = [best.value, lru_value].map(|of| value(advice, of));
        details.push(format!(
            "The policy matters most at {size}: {best} under {policy}, {lru} under LRU."
        ));
    }
    details.extend(curves.lru_fit.map(power_law));
    match &curves.responses {
        Responses::Simulated(simulated) => details.extend(tails(advice, simulated)),
        Responses::NoTiming { format } => details.push(no_timing(*format)),
        Responses::NotAsked => {}
    }
    details
}

/// Slope of LRU's misses, or the reason why no number gives it.
fn power_law(fit: MissFit) -> String {
    match fit {
        MissFit::PowerLaw(PowerLaw { exponent, exponent_error, .. }) => format!(
            "LRU's misses follow a power law of the size: exponent {} \u{b1} {}.",
            numbers::exponent(exponent),
            numbers::exponent(exponent_error)
        ),
        MissFit::NoPowerLaw => "LRU's misses follow no power law of the size.".into(),
        MissFit::Flat => format!(
            "LRU's misses have no exponent: they fall by less than {} point over all sizes.",
            MissFit::SPREAD_MIN
        ),
        MissFit::TooFewSizes => format!(
            "LRU's misses have no exponent: that takes {} sizes below the footprint.",
            MissFit::SIZES_MIN
        ),
    }
}

/// 99th percentile of reads, and the mean with writes, at the advised size.
fn tails(advice: &Advice, simulated: &SimulatedResponses) -> Option<String> {
    let advised = advised(advice);
    let policy = simulated.policies.iter().find(|of| of.policy == advised.policy)?;
    let with = policy.points.iter().find(|point| point.size_bytes == advised.size_bytes)?;
    let change = |number: &dyn Fn(&ResponsePoint) -> f64| {
        let [from, to] = [&simulated.without_cache, with].map(number).map(response_ms);
        format!("{from} -> {to} ms")
    };
    let (there, p99) = (of(&advised), change(&|point| point.reads.p99_ns as f64));
    let p99 = format!("With {there}, the 99th percentile of reads goes {p99}");
    Some(match with.writes.count {
        0 => format!("{p99}."),
        _ => format!(
            "{p99}, and the mean of reads and writes {}.",
            change(&|point| point.all.mean_ns)
        ),
    })
}

/// Reason why there are no responses.
fn no_timing(format: Format) -> String {
    let lacks = match format.timing() {
        Timing::Seconds | Timing::Recorded => "names objects, which have no places on a disk",
        Timing::None => "has no times",
    };
    format!("No response times: the trace, in the format {format}, {lacks}.")
}

/// Cautions about the numbers.
fn cautions(curves: &CacheCurves) -> Vec<String> {
    let mut cautions = Vec::new();
    let trace = &curves.trace;
    if trace.skipped > 0 {
        cautions.push(format!("{} malformed records were left out.", grouped(trace.skipped)));
    }
    if let Some(damage) = &trace.damage {
        cautions.push(format!("Of the trace, {damage}; {}.", damage.consequence()));
    }
    let numbers = trace.survey.as_ref().and_then(|survey| survey.numbers);
    cautions.extend(numbers.and_then(|numbers| numbers.doubt_in_words()));
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
    fn size_words_have_no_trailing_zeros() {
        let sizes = [1 << 20, 3 << 29, 4096, 512, 100 << 20, 905_969_664].map(size);
        assert_eq!(sizes, ["1 MiB", "1.5 GiB", "4 KiB", "512 B", "100 MiB", "864 MiB"]);
    }
}
