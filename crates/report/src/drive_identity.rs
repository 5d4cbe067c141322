//! A drive in a few numbers.

use freewheel_model::drive::Drive;
use freewheel_model::drive::spec::DriveSpec;
use serde::Serialize;

/// Name and size of a drive. Blocks and bytes are those of the whole drive, surfaces and cylinders those of
/// one actuator.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct DriveIdentity {
    /// Name in its file.
    pub name: String,
    /// The maker's name of the model.
    pub model: String,
    /// Year in which it was sold first, where its file says it.
    pub year: Option<u16>,
    /// Blocks of 512 B.
    pub blocks: u64,
    pub capacity_bytes: u64,
    /// Actuators, each with its own arm.
    pub actuators: u32,
    pub surfaces: u32,
    pub cylinders: u32,
    /// Time of a turn.
    pub rotation_period_ns: u64,
    /// Turns a minute.
    pub rotation_rpm: f64,
}

impl DriveIdentity {
    /// The numbers of a drive file and of the drive built from it.
    pub fn new(spec: &DriveSpec, drive: &Drive) -> Self {
        Self {
            name: spec.name.clone(),
            model: spec.model.clone(),
            year: spec.year,
            blocks: drive.total_blocks().get(),
            capacity_bytes: drive.total_blocks().bytes().get(),
            actuators: spec.actuators,
            surfaces: spec.surfaces,
            cylinders: spec.cylinders,
            rotation_period_ns: spec.rotation_period.ns(),
            rotation_rpm: 60.0 / spec.rotation_period.as_secs_f64(),
        }
    }
}
