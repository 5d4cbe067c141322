//! Disks whose spindles are not synchronised.

use std::sync::Arc;

use freewheel_model::drive::spec::DriveSpec;
use freewheel_model::drive::{BuildDriveError, Drive};
use freewheel_units::SimDuration;

/// Part by which a turn of the last disk takes longer than that of the first: 0.3 %. Spindles of an array
/// are not synchronised: each turns at its own rate, so any two drift through all angles.
const DRIFT: (u64, u64) = (3, 1000);

/// Most rates of rotation of an array's disks. Building a drive takes milliseconds, and among these no two
/// disks of a request are likely to share one.
const RATES_MAX: u32 = 64;

/// Disks of one kind whose spindles are not synchronised.
pub fn unsynchronised(spec: &DriveSpec, disks: u32) -> Result<Vec<Arc<Drive>>, BuildDriveError> {
    let rates = disks.min(RATES_MAX);
    let built = (0..rates)
        .map(|number| {
            let turn = spec.rotation_period;
            let whole = DRIFT.1 * u64::from(rates);
            let longer = SimDuration::from_ns(turn.ns() * DRIFT.0 * u64::from(number) / whole);
            let own = DriveSpec { rotation_period: turn + longer, ..spec.clone() };
            Drive::build(&own).map(Arc::new)
        })
        .collect::<Result<Vec<_>, _>>()?;
    Ok(built.iter().cycle().take(disks as usize).map(Arc::clone).collect())
}
