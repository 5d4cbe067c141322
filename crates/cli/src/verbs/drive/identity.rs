//! A drive in a few numbers.

use freewheel::model::drive::Drive;
use freewheel::model::drive::spec::DriveSpec;
use serde::Serialize;

/// What a drive is and how large. Blocks and bytes are those of the whole drive, surfaces and
/// cylinders those of one actuator.
#[derive(Serialize)]
pub struct DriveIdentity {
    pub name: String,
    pub model: String,
    pub year: u16,
    pub blocks: u64,
    pub capacity_bytes: u64,
    pub actuators: u32,
    pub surfaces: u32,
    pub cylinders: u32,
    pub rotation_period_ns: u64,
    pub rotation_rpm: f64,
}

impl DriveIdentity {
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
