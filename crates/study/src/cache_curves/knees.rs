//! Sizes of a read cache beyond which more memory brings little.

use freewheel_model::cache::CachePolicy;
use freewheel_sim::config::{ConfigError, TraceWorkload};
use freewheel_trace::TraceInfo;
use freewheel_units::Bytes;

use super::advice::choices_by_miss_ratio;
use super::curves::{count_misses, footprint, split_lru};
use super::error::CacheCurvesError;
use super::options::CacheCurvesOptions;
use super::progress::CacheProgress;
use super::sizes::{Share, ladder};

/// Most knees of a curve.
pub(crate) const KNEES_MAX: usize = 3;

/// A knee ends a step of at least this part of all reads.
const STEP_MIN: f64 = 0.02;

/// Longer traces are sampled, so that counting takes as long as for this many requests.
const COUNTED_MAX: u64 = 1_000_000;

/// A size at which the misses of the best policy fall, and hardly fall with twice the memory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Knee {
    pub size: Bytes,
    /// The policy that misses least there, or LRU where it hardly misses more.
    pub policy: CachePolicy,
}

/// The knees of a trace's miss curve, the smallest first. None where no cache serves reads again. `report`
/// gets bytes of the file, done and total.
pub(crate) fn knees(
    trace: &TraceWorkload,
    info: &TraceInfo,
    seed: u64,
    report: &(dyn Fn(u64, u64) + Sync),
) -> Result<Vec<Knee>, ConfigError> {
    if info.reads == 0 {
        return Ok(Vec::new());
    }
    let share = COUNTED_MAX as f64 / info.requests.max(1) as f64;
    let sample = Share::new(share).filter(|share| share.get() < 1.0);
    // Which drive does not matter: misses are counted without one.
    let options = CacheCurvesOptions::new(trace.clone(), "");
    let options = CacheCurvesOptions { trace: trace.clone(), sample, seed, ..options };
    let capacities = ladder(footprint(info));
    match count_misses(&options, info, &capacities, &|progress| {
        if let CacheProgress::Counting { done, total } = progress {
            report(done, total);
        }
    }) {
        Ok((_, mut curves)) => {
            split_lru(&mut curves, &capacities);
            let choices = choices_by_miss_ratio(&curves);
            let points = choices.iter().map(|choice| choice.value).collect::<Vec<_>>();
            Ok(knees_of(&points)
                .into_iter()
                .map(|at| {
                    let choice = choices[at];
                    Knee { size: Bytes::new(choice.size_bytes), policy: choice.policy }
                })
                .collect())
        }
        // All reads are in the warm-up.
        Err(CacheCurvesError::NoCountedReads { .. }) => Ok(Vec::new()),
        Err(CacheCurvesError::Config(error)) => Err(error),
        Err(error) => unreachable!("the options of the count are right: {error}"),
    }
}

/// Places of the knees of a curve over rising sizes, ascending: the ends of its largest steps. A step is
/// steep until the next one is less than half as high.
fn knees_of(values: &[f64]) -> Vec<usize> {
    let step = |at: usize| match at {
        0 => 1.0 - values[0],
        at if at < values.len() => values[at - 1] - values[at],
        _ => 0.0,
    };
    let mut knees: Vec<usize> = (0..values.len())
        .filter(|&at| step(at) >= STEP_MIN && step(at + 1) < step(at) / 2.0)
        .collect();
    knees.sort_by(|&a, &b| step(b).total_cmp(&step(a)));
    knees.truncate(KNEES_MAX);
    knees.sort_unstable();
    knees
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knee_is_where_misses_stop_falling() {
        assert_eq!(knees_of(&[1.0, 1.0, 0.99, 0.9, 0.8, 0.75, 0.75]), [5]);
        assert_eq!(knees_of(&[0.97, 0.97, 0.65, 0.55, 0.34, 0.13, 0.13]), [0, 2, 5]);
        assert_eq!(knees_of(&[1.0, 0.999, 0.998]), [] as [usize; 0]);
        assert_eq!(knees_of(&[0.2]), [0]);
    }

    #[test]
    fn knees_keep_largest_steps() {
        let values = [0.9, 0.9, 0.7, 0.7, 0.67, 0.67, 0.4, 0.4];
        assert_eq!(knees_of(&values), [0, 2, 6]);
    }
}
