//! Drives: the library that ships with Freewheel, drive files, DiskSim's parameters, other technology.

use std::borrow::Cow;

use freewheel_model::drive::Drive;
use freewheel_model::drive::spec::DriveSpec;

use crate::Error;

pub use freewheel_disksim::{ImportCause, Imported};
pub use freewheel_model::drive::scale::{FACTOR_MAX, YearlyRates};
pub use freewheel_report::{DriveIdentity, DriveScale};
pub use freewheel_sim::library::{DEFAULT_DRIVE, names};

/// Takes the drive of this name, or of the drive file at this path.
///
/// Gives its file, and the drive built from it.
///
/// ```
/// let (spec, drive) = freewheel::drives::load("atlas10k")?;
/// assert_eq!(spec.surfaces, 6);
/// assert_eq!(drive.total_blocks().bytes().get() / 1_000_000_000, 9);
/// # Ok::<(), freewheel::Error>(())
/// ```
pub fn load(name_or_path: &str) -> Result<(DriveSpec, Drive), Error> {
    Ok(freewheel_sim::library::drive(name_or_path)?)
}

/// The text of the drive file of this name, or at this path, with its comments and sources.
pub fn text(name_or_path: &str) -> Result<Cow<'static, str>, Error> {
    Ok(freewheel_sim::library::text(name_or_path)?)
}

/// Builds a drive from its file; `origin` names the file in errors.
pub fn build(spec: &DriveSpec, origin: &str) -> Result<Drive, Error> {
    Ok(freewheel_sim::library::build(spec, origin)?)
}

/// Reads a drive out of DiskSim's parameter files.
///
/// Each comes as its name and its text. `beside` is asked for files that they name and that are not among them.
pub fn import_disksim(
    files: &[(&str, &str)],
    beside: &dyn Fn(&str) -> Option<String>,
) -> Result<Imported, Error> {
    Ok(freewheel_disksim::import(files, beside)?)
}
