//! The main job in numbers: what each scheduling policy would do for a trace on a drive, and how long a
//! scrub takes in the trace's rotational gaps. [`cache_curves`] does the same for caches in memory. The
//! crate `report` says what follows from them.

mod assumed_values;
mod cache_curves;
pub mod changes;
mod drive_fit;
pub mod figure;
mod file_hash;
pub mod fit;
pub mod fleet;
mod free_work;
mod head_use;
mod journal;
mod measured_part;
mod options;
mod place_time;
pub mod plan;
mod progress;
mod ratio;
mod replays;
mod scrub;
mod study;
pub mod sweep;
pub mod table;
mod trace_runs;

pub use assumed_values::{AssumedValues, MovedValue};
pub use cache_curves::{
    Advice, CacheCurves, CacheCurvesError, CacheCurvesOptions, CacheProgress, CacheProgressSink,
    CacheSize, Choice, ComparedPolicy, Counted, DOUBLING_GAIN_MIN, Measure, MissFit, MissRatio,
    ObjectCurve, ObjectCurves, ObjectCurvesError, ObjectCurvesOptions, ObjectMisses,
    OwnCachePolicy, ParseCacheSizeError, ParseComparedPolicyError, PolicyCurve, PolicyGap,
    PolicyResponses, PowerLaw, ResponsePoint, ResponseRuns, Responses, Share, SimulatedResponses,
    cache_curves, object_curves,
};
pub use drive_fit::{
    DriveFit, FittedValues, GOOD_SHARE, HalfFit, HalfResponses, LEFT_OUT,
    REQUESTS_MAX as FIT_REQUESTS_MAX, SLICES as FIT_SLICES, USED_WITHIN as FIT_USED_WITHIN,
};
pub use free_work::{
    Course, DeadlineWork, Delivered, FreeWork, IdleCost, TaskWork, latency_lines, line,
    over_the_run,
};
pub use head_use::HeadUse;
pub use measured_part::MeasuredPart;
pub use options::{StudyError, StudyOptions};
pub use place_time::PlaceTime;
pub use progress::{Amount, ProgressSink, RemainingWork, StudyProgress, StudyWork};
pub use replays::OtherReplay;
pub use scrub::{
    ArmScrub, BackgroundScan, CommandMarks, CommandScrub, IdleScrub, PauseBeforeScrub,
    SCRUB_EFFORT, SCRUB_EFFORTS, SCRUB_SECONDS_MAX, ScrubEffort, ScrubEnd, ScrubEstimate,
    ScrubPart, ScrubPoint, ScrubProgress,
};
pub use study::{
    DriveBeside, DriveSummary, Overload, PolicyRun, Study, fit_drive, study, study_watched,
};
pub use trace_runs::{CACHE_DEPTH, REQUESTS_MIN, WARM_UP};
