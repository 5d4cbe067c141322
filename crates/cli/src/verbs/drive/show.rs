//! `freewheel drive show`: a drive's data sheet as the model has it.

use std::collections::BTreeMap;

use clap::Args;
use freewheel::model::drive::Drive;
use freewheel::model::drive::spec::{Advertised, DriveSpec};
use freewheel::sim::library;
use freewheel::units::{Op, SimDuration};
use serde::Serialize;

use super::DriveIdentity;
use crate::failure::Failure;
use crate::table::Table;
use crate::{number, output};

/// Show a drive: capacity, zones, rates, seek times, and where each value comes from
#[derive(Args)]
#[command(after_help = "\
Examples:
  freewheel drive show atlas10k
  freewheel drive show my-drive.toml --json")]
pub struct ShowArgs {
    /// Name of a shipped drive (see `freewheel drive list`), or path of a drive file
    name: String,
    /// Print one JSON document instead of tables
    #[arg(long)]
    json: bool,
}

/// Everything that is shown.
#[derive(Serialize)]
struct Sheet {
    drive: DriveIdentity,
    advertised: Advertised,
    mean_seek_read_ns: u64,
    mean_seek_write_ns: u64,
    zones: Vec<ZoneSheet>,
    seeks: Vec<SeekTime>,
    sources: BTreeMap<String, String>,
}

#[derive(Serialize)]
struct ZoneSheet {
    first_cylinder: u32,
    last_cylinder: u32,
    blocks: u64,
    blocks_per_track: u32,
    /// With every head and cylinder switch.
    sustained_bytes_per_second: u64,
    track_skew: String,
    cylinder_skew: String,
}

#[derive(Serialize)]
struct SeekTime {
    distance_cylinders: u32,
    read_ns: u64,
    write_ns: u64,
}

impl ShowArgs {
    pub fn run(self) -> Result<(), Failure> {
        let (spec, drive) = library::drive(&self.name)?;
        let sheet = Sheet::new(&spec, &drive);
        if self.json { output::print_document(&sheet) } else { output::print(&text(&sheet)) }
    }
}

impl Sheet {
    fn new(spec: &DriveSpec, drive: &Drive) -> Self {
        Self {
            drive: DriveIdentity::new(spec, drive),
            advertised: spec.advertised.clone(),
            mean_seek_read_ns: drive.mean_seek(Op::Read).ns(),
            mean_seek_write_ns: drive.mean_seek(Op::Write).ns(),
            zones: (0..spec.zones.len()).map(|zone| ZoneSheet::new(spec, drive, zone)).collect(),
            seeks: seeks(drive, spec.cylinders),
            sources: spec.sources.clone(),
        }
    }
}

impl ZoneSheet {
    fn new(spec: &DriveSpec, drive: &Drive, index: usize) -> Self {
        let zone = &spec.zones[index];
        let blocks = drive.layout().zones()[index].blocks();
        let rate = drive.sustained_rate_bytes_per_second(index);
        Self {
            first_cylinder: zone.first_cylinder,
            last_cylinder: zone.last_cylinder,
            blocks: blocks.get(),
            blocks_per_track: zone.blocks_per_track,
            sustained_bytes_per_second: rate,
            track_skew: zone.track_skew.to_string(),
            cylinder_skew: zone.cylinder_skew.to_string(),
        }
    }
}

/// Seek times of short distances, a third of the drive, and all of it.
fn seeks(drive: &Drive, cylinders: u32) -> Vec<SeekTime> {
    let full = cylinders - 1;
    let mut distances = vec![1, 10, 100, 1000, cylinders / 3, full];
    distances.sort_unstable();
    distances.dedup();
    distances.retain(|distance| (1..=full).contains(distance));
    let time = |op, distance| drive.seek().time_ns(op, distance, false);
    let seek = |distance_cylinders| SeekTime {
        distance_cylinders,
        read_ns: time(Op::Read, distance_cylinders),
        write_ns: time(Op::Write, distance_cylinders),
    };
    distances.into_iter().map(seek).collect()
}

fn text(sheet: &Sheet) -> String {
    [summary(sheet), zones(&sheet.zones), seek_times(&sheet.seeks), sources(&sheet.sources)]
        .join("\n")
}

fn summary(sheet: &Sheet) -> String {
    let (drive, advertised) = (&sheet.drive, &sheet.advertised);
    let duration = |time: SimDuration| number::ms(time.ns() as f64);
    let or_nothing = |text: Option<String>| text.unwrap_or_else(|| "-".into());
    let rate = |bytes: freewheel::units::Bytes| number::rate(bytes.get() as f64);
    let modelled_rate = |zone: Option<&ZoneSheet>| {
        or_nothing(zone.map(|zone| number::rate(zone.sustained_bytes_per_second as f64)))
    };
    let mut table = Table::new("lrr");
    table.row(["", "modelled", "advertised"]);
    let mut row = |label: &str, modelled, advertised| {
        table.row([label.to_owned(), modelled, or_nothing(advertised)]);
    };
    row(
        "capacity",
        number::capacity(drive.capacity_bytes),
        advertised.capacity.map(|bytes| number::capacity(bytes.get())),
    );
    let (read, write) = (sheet.mean_seek_read_ns, sheet.mean_seek_write_ns);
    row("mean seek, read", number::ms(read as f64), advertised.average_seek_read.map(duration));
    row("mean seek, write", number::ms(write as f64), advertised.average_seek_write.map(duration));
    row(
        "rate, outermost zone",
        modelled_rate(sheet.zones.first()),
        advertised.outer_rate_per_second.map(rate),
    );
    row(
        "rate, innermost zone",
        modelled_rate(sheet.zones.last()),
        advertised.inner_rate_per_second.map(rate),
    );
    format!("{}{table}", identity(drive))
}

fn identity(drive: &DriveIdentity) -> String {
    format!(
        "{}: {} ({})\n{} surfaces, {} cylinders, {} blocks of 512 B, {:.0} rpm ({} a turn)\n\n",
        drive.name,
        drive.model,
        drive.year,
        drive.surfaces,
        drive.cylinders,
        drive.blocks,
        drive.rotation_rpm,
        number::ms(drive.rotation_period_ns as f64),
    )
}

fn zones(zones: &[ZoneSheet]) -> String {
    let mut table = Table::new("rrrrrr");
    table.row(["zone", "cylinders", "blocks/track", "sustained", "track skew", "cylinder skew"]);
    for (number, zone) in zones.iter().enumerate() {
        table.row([
            number.to_string(),
            format!("{}-{}", zone.first_cylinder, zone.last_cylinder),
            zone.blocks_per_track.to_string(),
            number::rate(zone.sustained_bytes_per_second as f64),
            zone.track_skew.clone(),
            zone.cylinder_skew.clone(),
        ]);
    }
    table.to_string()
}

fn seek_times(seeks: &[SeekTime]) -> String {
    let mut table = Table::new("rrr");
    table.row(["seek, cylinders", "read", "write"]);
    for seek in seeks {
        table.row([
            seek.distance_cylinders.to_string(),
            number::ms(seek.read_ns as f64),
            number::ms(seek.write_ns as f64),
        ]);
    }
    table.to_string()
}

fn sources(sources: &BTreeMap<String, String>) -> String {
    let mut table = Table::new("ll");
    table.row(["value", "source"]);
    for (key, text) in sources {
        table.row([key, text]);
    }
    table.to_string()
}
