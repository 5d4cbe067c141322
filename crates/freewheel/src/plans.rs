//! Plans for several disks: how finely to stripe, which files to move where, and what clients
//! see then.

use freewheel_study::plan::PlanProgressSink;

use crate::Error;

pub use freewheel_array::plan::LoadTime;
pub use freewheel_report::{PlaceReport, StripeReport};
pub use freewheel_study::plan::{PlaceOptions, PlaceSource, Snapshot, StripeOptions, StripeSource};

/// Works out which files of a JBOD to move so that clients wait less, and simulates their requests before
/// and after. It moves nothing.
///
/// ```
/// use freewheel::plans::{PlaceOptions, PlaceSource, plan_place};
///
/// let snapshot = PlaceSource::Snapshot("../../examples/jbod.toml".into());
/// let options = PlaceOptions { requests: Some(2000), ..PlaceOptions::new(snapshot) };
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

/// Works out how finely to stripe files or a volume over equal disks, and simulates their requests with
/// each stripe unit that is tried.
///
/// ```
/// use freewheel::plans::{StripeOptions, StripeSource, plan_stripe};
///
/// let files = StripeSource::Files("../../examples/jbod.toml".into());
/// let options = StripeOptions {
///     drive: Some("exos-x24-24tb".into()),
///     disks: Some(8),
///     requests: 2000,
///     ..StripeOptions::new(files)
/// };
/// let report = plan_stripe(&options, &|_, _, _| {})?;
/// println!("{}", report.conclusions.headline);
/// # assert!(report.plan.best.is_some());
/// # Ok::<(), freewheel::Error>(())
/// ```
pub fn plan_stripe(
    options: &StripeOptions,
    progress: PlanProgressSink<'_>,
) -> Result<StripeReport, Error> {
    Ok(StripeReport::new(freewheel_study::plan::plan_stripe(options, progress)?))
}
