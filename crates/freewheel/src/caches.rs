//! Caches in memory for a trace: miss ratios by policy and size, and the responses of a drive behind them.

use freewheel_study::CacheProgressSink;

use crate::Error;

pub use freewheel_model::cache::{KeyPolicy, POLICIES as CACHE_POLICIES};
pub use freewheel_report::{CacheReport, ObjectReport};
pub use freewheel_study::{
    CACHE_DEPTH, CacheCurvesOptions, CacheProgress, CacheSize, ComparedPolicy, ObjectCurvesOptions,
    ResponseRuns, Share,
};

/// Works out what caches of each policy and size would do for a trace, with a drive behind them where the
/// trace's times permit that.
///
/// ```
/// use freewheel::caches::CacheCurvesOptions;
/// use freewheel::experiments::TraceWorkload;
/// use freewheel::cache_curves;
///
/// let file = "../../data/recorded/sqlite-ext4.csv.zst".into();
/// let trace = TraceWorkload { file, ..TraceWorkload::default() };
/// let options = CacheCurvesOptions {
///     policies: vec!["lru".parse()?],
///     sizes: vec!["8MiB".parse()?, "50%".parse()?],
///     ..CacheCurvesOptions::new(trace, "exos-x24-24tb")
/// };
/// let report = cache_curves(&options, &|_| {})?;
/// let lru = &report.curves.curves[0].miss_ratios;
/// assert!(lru[1].bytes <= lru[0].bytes);
/// println!("{}", report.text());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn cache_curves(
    options: &CacheCurvesOptions,
    progress: CacheProgressSink<'_>,
) -> Result<CacheReport, Error> {
    Ok(CacheReport::new(freewheel_study::cache_curves(options, progress)?))
}

/// Counts the misses of caches whose objects have sizes of their own, as a cache simulator does.
///
/// ```
/// use freewheel::caches::{ObjectCurvesOptions, object_curves};
/// use freewheel::experiments::TraceWorkload;
///
/// let file = "../../data/recorded/sqlite-ext4.csv.zst".into();
/// let trace = TraceWorkload { file, ..TraceWorkload::default() };
/// let options = ObjectCurvesOptions {
///     policies: vec!["sieve".parse()?, "belady".parse()?],
///     sizes: vec!["10%".parse()?],
///     ..ObjectCurvesOptions::new(trace)
/// };
/// let curves = object_curves(&options, &|_| {})?.curves.curves;
/// assert!(curves[1].points[0].misses < curves[0].points[0].misses);
/// # Ok::<(), freewheel::Error>(())
/// ```
pub fn object_curves(
    options: &ObjectCurvesOptions,
    progress: CacheProgressSink<'_>,
) -> Result<ObjectReport, Error> {
    Ok(ObjectReport { curves: freewheel_study::object_curves(options, progress)? })
}
