//! Drives beside each other as tables of a terminal.

use freewheel_model::drive::Drive;
use freewheel_model::drive::spec::DriveSpec;
use freewheel_units::{Bytes, Op, four_digits, grouped};
use serde::Serialize;

use crate::drive_identity::DriveIdentity;
use crate::numbers::{ms, rate, rpm};
use crate::table::Table;
use crate::text::Text;

impl Text for [DriveIdentity] {
    fn text(&self) -> String {
        let mut table = Table::new("llrrrr");
        table.row(["name", "model", "year", "capacity", "rpm", "heads"]);
        for drive in self {
            table.row([
                drive.name.clone(),
                drive.model.clone(),
                drive.year.map_or("-".into(), |year| year.to_string()),
                Bytes::new(drive.capacity_bytes).capacity(),
                rpm(drive.rotation_rpm),
                heads(drive),
            ]);
        }
        table.to_string()
    }
}

/// Heads of each arm.
fn heads(drive: &DriveIdentity) -> String {
    match drive.actuators {
        1 => drive.surfaces.to_string(),
        arms => format!("{arms} x {}", drive.surfaces),
    }
}

/// Numbers of a drive that other technology changes.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs)]
pub struct DriveScale {
    pub drive: DriveIdentity,
    pub mean_seek_read_ns: u64,
    pub mean_seek_write_ns: u64,
    pub outer_sustained_bytes_per_second: u64,
    pub inner_sustained_bytes_per_second: u64,
}

impl DriveScale {
    /// The numbers of a drive file and of the drive built from it.
    pub fn new(spec: &DriveSpec, drive: &Drive) -> Self {
        let innermost = drive.layout().zones().len() - 1;
        Self {
            drive: DriveIdentity::new(spec, drive),
            mean_seek_read_ns: drive.mean_seek(Op::Read).ns(),
            mean_seek_write_ns: drive.mean_seek(Op::Write).ns(),
            outer_sustained_bytes_per_second: drive.sustained_rate_bytes_per_second(0),
            inner_sustained_bytes_per_second: drive.sustained_rate_bytes_per_second(innermost),
        }
    }

    /// A table of this drive and of what became of it, with the factor of each number.
    pub fn beside(&self, scaled: &Self) -> String {
        let mut table = Table::new("lrrr");
        table.row(["", &self.drive.name, &scaled.drive.name, "factor"]);
        for ((name, show, before), (.., after)) in self.rows().into_iter().zip(scaled.rows()) {
            table.row([name.to_owned(), show(before), show(after), four_digits(after / before)]);
        }
        table.to_string()
    }

    /// Name, words and value of each number.
    fn rows(&self) -> [Row; 8] {
        let DriveIdentity { capacity_bytes, surfaces, cylinders, rotation_rpm, .. } = self.drive;
        let [outer, inner] =
            [self.outer_sustained_bytes_per_second, self.inner_sustained_bytes_per_second];
        [
            ("capacity", |bytes| Bytes::new(bytes as u64).capacity(), capacity_bytes as f64),
            ("surfaces", whole, surfaces.into()),
            ("cylinders", whole, cylinders.into()),
            ("speed of rotation, rpm", rpm, rotation_rpm),
            ("mean seek, read", with_ms, self.mean_seek_read_ns as f64),
            ("mean seek, write", with_ms, self.mean_seek_write_ns as f64),
            ("sustained rate, outermost zone", rate, outer as f64),
            ("sustained rate, innermost zone", rate, inner as f64),
        ]
    }
}

type Row = (&'static str, fn(f64) -> String, f64);

fn whole(count: f64) -> String {
    grouped(count as u64)
}

fn with_ms(ns: f64) -> String {
    format!("{} ms", ms(ns))
}
