//! A drive in a few numbers.

use freewheel::model::drive::Drive;
use freewheel::model::drive::spec::DriveSpec;
use serde::Serialize;

/// What a drive is and how large.
#[derive(Serialize)]
pub struct DriveIdentity {
    pub name: String,
    pub model: String,
    pub year: u16,
    pub blocks: u64,
    pub capacity_bytes: u64,
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
            blocks: drive.blocks().get(),
            capacity_bytes: drive.blocks().bytes().get(),
            surfaces: spec.surfaces,
            cylinders: spec.cylinders,
            rotation_period_ns: spec.rotation_period.ns(),
            rotation_rpm: 60.0 / spec.rotation_period.as_secs_f64(),
        }
    }
}
