//! Plans for several disks: which files to move where, and what clients see then.

use freewheel_study::plan::PlanProgressSink;

use crate::Error;

pub use freewheel_report::PlaceReport;
pub use freewheel_study::plan::{PlaceOptions, Snapshot};

/// Works out which files of a JBOD to move so that clients wait less, and simulates their requests before
/// and after. It moves nothing.
///
/// ```
/// use freewheel::plans::{PlaceOptions, plan_place};
///
/// let options = PlaceOptions { requests: 2000, ..PlaceOptions::new("../../examples/jbod.toml") };
/// let report = plan_place(&options, &|_, _, _| {})?;
/// let best = &report.plan.moves[0];
/// println!("{}\n{} to {}", report.conclusions.headline, best.file, best.to);
/// # assert!(best.gain_s > 0.0);
/// # Ok::<(), freewheel::Error>(())
/// ```
pub fn plan_place(
    options: &PlaceOptions,
    progress: PlanProgressSink<'_>,
) -> Result<PlaceReport, Error> {
    Ok(PlaceReport::new(freewheel_study::plan::plan_place(options, progress)?))
}
