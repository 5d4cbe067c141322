//! The drive of osdi00 section 5.

use std::sync::Arc;

use freewheel_model::drive::Drive;
use freewheel_sim::library;

/// The Atlas 10K with one surface and without defects.
pub fn one_surface() -> Arc<Drive> {
    let mut spec = library::spec("atlas10k").unwrap();
    spec.surfaces = 1;
    spec.zones.iter_mut().for_each(|zone| zone.slips.clear());
    Arc::new(library::build(&spec, "one surface").unwrap())
}
