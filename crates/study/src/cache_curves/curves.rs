//! From a trace to curves, step by step.

use freewheel_model::cache::{CachePolicy, KeyCache};
use freewheel_trace::TraceInfo;

use super::advice::Advice;
use super::compared::ComparedPolicy;
use super::counters::{BestPossible, CountedCache, Counter, ExactLru, SampledLru, SampledPolicy};
use super::counting::count;
use super::document::CacheCurves;
use super::error::CacheCurvesError;
use super::miss_fit::MissFit;
use super::options::CacheCurvesOptions;
use super::progress::{CacheProgress, CacheProgressSink};
use super::responses::{MissStore, responses};
use super::result::{Counted, MissRatio, PolicyCurve};
use super::sizes::{CACHE_BLOCK_BYTES, capacities, ladder};
use crate::trace_runs::overview;

/// Works out what caches would do for a trace. The result does not depend on the number of threads.
pub fn cache_curves(
    options: &CacheCurvesOptions,
    progress: CacheProgressSink<'_>,
) -> Result<CacheCurves, CacheCurvesError> {
    check(options)?;
    let trace = overview(
        &options.trace,
        options.seed,
        |_| {},
        |done, total| progress(CacheProgress::Reading { done, total }),
    )?;
    if trace.reads == 0 {
        return Err(CacheCurvesError::NoReads { file: file(options) });
    }
    let setting = MissStore::new(options, &trace)?;
    let capacities = if options.sizes.is_empty() {
        ladder(footprint(&trace))
    } else {
        capacities(&options.sizes, footprint(&trace))
            .map_err(|size| CacheCurvesError::Size { size })?
    };
    let (counted, mut curves) = count_misses(options, &trace, &capacities, progress)?;
    let lru = split_lru(&mut curves, &capacities);
    let sizes_bytes: Vec<u64> = capacities.iter().map(|&capacity| bytes(capacity)).collect();
    let responses = responses(options, setting, &curves, &counted, progress)?;
    Ok(CacheCurves {
        schema_version: 1,
        version: env!("CARGO_PKG_VERSION"),
        advice: Advice::new(&sizes_bytes, &curves, &responses),
        lru_fit: MissFit::of(&curves, footprint(&trace)),
        options: CacheCurvesOptions { trace: options.trace.shown(), ..options.clone() },
        trace,
        counted,
        cache_block_bytes: CACHE_BLOCK_BYTES,
        sizes_bytes,
        curves,
        lru,
        responses,
    })
}

/// Wrong options are known before a long trace is read.
fn check(options: &CacheCurvesOptions) -> Result<(), CacheCurvesError> {
    let warm_up = options.warm_up;
    if options.policies.iter().all(|policy| policy.shipped().is_none()) {
        return Err(CacheCurvesError::NoPolicy);
    }
    if !(0.0..1.0).contains(&warm_up) {
        return Err(CacheCurvesError::WarmUp { warm_up });
    }
    MissStore::check(options)
}

fn file(options: &CacheCurvesOptions) -> String {
    options.trace.file.display().to_string()
}

pub(super) fn footprint(trace: &TraceInfo) -> u64 {
    trace.footprint_bytes.unwrap_or(0)
}

fn bytes(capacity: u32) -> u64 {
    u64::from(capacity) * CACHE_BLOCK_BYTES
}

/// The requests that count, and the curve of each policy. LRU's has the sizes of its chart, too.
pub(super) fn count_misses(
    options: &CacheCurvesOptions,
    trace: &TraceInfo,
    capacities: &[u32],
    progress: CacheProgressSink<'_>,
) -> Result<(Counted, Vec<PolicyCurve>), CacheCurvesError> {
    let policies = options.distinct_policies();
    let warm_up = (trace.requests as f64 * options.warm_up) as u64;
    let by_policy = policies.iter().map(|policy| counters(options, policy, capacities));
    let by_policy: Vec<Vec<Box<dyn Counter>>> = by_policy.collect();
    let lengths: Vec<usize> = by_policy.iter().map(Vec::len).collect();
    let mut all: Vec<Box<dyn Counter>> = by_policy.into_iter().flatten().collect();
    let counted = count(options, trace, warm_up, &mut all, progress)?;
    if counted.reads == 0 {
        return Err(CacheCurvesError::NoCountedReads { file: file(options), warm_up });
    }
    let mut rest = all.into_iter();
    Ok((
        counted,
        policies
            .iter()
            .zip(&lengths)
            .map(|(policy, &length)| {
                let ratios =
                    rest.by_ref().take(length).flat_map(|mut counter| counter.miss_ratios());
                let (policy, title) = (policy.clone(), policy.title().to_owned());
                PolicyCurve { policy, title, miss_ratios: ratios.collect() }
            })
            .collect(),
    ))
}

/// Caches of one policy at all sizes, in ascending order.
fn counters(
    options: &CacheCurvesOptions,
    policy: &ComparedPolicy,
    capacities: &[u32],
) -> Vec<Box<dyn Counter>> {
    let each = |cache: &dyn Fn(u32) -> CountedCache| -> Vec<Box<dyn Counter>> {
        capacities.iter().map(|&capacity| Box::new(cache(capacity)) as _).collect()
    };
    match (policy, options.sample) {
        (ComparedPolicy::Shipped(CachePolicy::Lru), None) => {
            vec![Box::new(ExactLru::new(with_between(capacities)))]
        }
        (ComparedPolicy::Shipped(CachePolicy::Lru), Some(share)) => {
            vec![Box::new(SampledLru::new(with_between(capacities), share))]
        }
        (ComparedPolicy::Shipped(policy), None) => {
            each(&|capacity| CountedCache::new(*policy, capacity))
        }
        (ComparedPolicy::Shipped(policy), Some(share)) => {
            vec![Box::new(SampledPolicy::new(capacities, share, |capacity| {
                KeyCache::new(*policy, capacity)
            }))]
        }
        (ComparedPolicy::Own(own), None) => {
            each(&|capacity| CountedCache::with_policy(own.make(capacity), capacity))
        }
        (ComparedPolicy::Own(own), Some(share)) => {
            vec![Box::new(SampledPolicy::new(capacities, share, |capacity| {
                KeyCache::with_policy(capacity, own.make(capacity))
            }))]
        }
        (ComparedPolicy::Belady, sample) => vec![Box::new(BestPossible::new(capacities, sample))],
    }
}

/// Sizes of LRU's chart between two neighbours.
const BETWEEN: u32 = 7;

/// The capacities and some between each two of them, ascending.
fn with_between(capacities: &[u32]) -> Vec<u32> {
    let mut all: Vec<u32> = capacities
        .windows(2)
        .flat_map(|pair| {
            let (low, factor) = (f64::from(pair[0]), f64::from(pair[1]) / f64::from(pair[0]));
            (1..=BETWEEN)
                .map(|step| low * libm::pow(factor, f64::from(step) / f64::from(BETWEEN + 1)))
                .map(|capacity| capacity as u32)
                .collect::<Vec<_>>()
        })
        .collect();
    all.extend(capacities);
    all.sort_unstable();
    all.dedup();
    all
}

/// Takes the sizes of its chart out of LRU's curve.
pub(super) fn split_lru(curves: &mut [PolicyCurve], capacities: &[u32]) -> Vec<MissRatio> {
    let lru = curves.iter_mut().find(|curve| curve.policy == CachePolicy::Lru);
    let Some(lru) = lru else { return Vec::new() };
    let asked = lru
        .miss_ratios
        .iter()
        .copied()
        .filter(|miss_ratio| {
            capacities.iter().any(|&capacity| bytes(capacity) == miss_ratio.size_bytes)
        })
        .collect();
    std::mem::replace(&mut lru.miss_ratios, asked)
}
