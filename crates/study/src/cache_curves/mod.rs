//! Effect of caches in memory on a trace: misses of each policy at each size, and the responses of a drive
//! behind them.
//!
//! One pass over the trace feeds caches of all policies and sizes side by side ([`counters`]). Responses
//! come from runs of the same requests against a drive with the cache in front ([`responses`]). Neither
//! counts the warm-up. [`advice`] compares the numbers; the crate `report` has the words.

mod advice;
mod compared;
mod counters;
mod counting;
mod curves;
mod document;
mod error;
mod knees;
mod miss_fit;
mod object_curves;
mod options;
mod progress;
mod responses;
mod result;
mod sizes;

pub use advice::{Advice, Choice, DOUBLING_GAIN_MIN, Measure, PolicyGap};
pub use compared::{ComparedPolicy, OwnCachePolicy, ParseComparedPolicyError};
pub use curves::cache_curves;
pub use document::CacheCurves;
pub use error::CacheCurvesError;
pub(crate) use knees::{KNEES_MAX, Knee, knees};
pub use miss_fit::{MissFit, PowerLaw};
pub use object_curves::{
    ObjectCurve, ObjectCurves, ObjectCurvesError, ObjectCurvesOptions, ObjectMisses, object_curves,
};
pub use options::{CacheCurvesOptions, ResponseRuns};
pub use progress::{CacheProgress, CacheProgressSink};
pub use result::{
    Counted, MissRatio, PolicyCurve, PolicyResponses, ResponsePoint, Responses, SimulatedResponses,
};
pub use sizes::{CacheSize, ParseCacheSizeError, Share};
