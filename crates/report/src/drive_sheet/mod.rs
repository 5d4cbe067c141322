//! A drive's data sheet as the model has it, as a document and as a page.
//!
//! | file | subject |
//! |---|---|
//! | `words` | electronics and shingled zones in words, for every surface |
//! | `html` | the page |
//! | `text` | tables of a terminal |

mod html;
mod text;
mod words;

pub(crate) use text::held_out;

use std::collections::BTreeMap;

use freewheel_model::drive::spec::{
    Advertised, CurveSpec, DriveSpec, HeldOut, Hole, MeasuringHost,
};
use freewheel_model::drive::{Check, Drive, FileZone, QuantityUnit};
use freewheel_model::electronics::random_checks;
use freewheel_model::electronics::spec::ElectronicsSpec;
use freewheel_model::zoned::spec::ZonedSpec;
use freewheel_units::{Bytes, Op, grouped};
use serde::Serialize;

use crate::finding::Finding;
use crate::numbers::{fine_ms, rate, rpm};
use crate::shingled::unmodelled;

/// Sheet of a drive: its properties and its times. Of a drive with more actuators, `zones` and the seeks
/// are those of one of them, and `self_check` is of all together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DriveSheet {
    /// Values that the maker promises.
    pub advertised: Advertised,
    /// Promised values beside those of the model.
    pub self_check: Vec<CheckRow>,
    /// Mean seek before a read.
    pub mean_seek_read_ns: u64,
    /// Mean seek before a write.
    pub mean_seek_write_ns: u64,
    /// Time to change heads within a cylinder.
    pub head_switch_ns: u64,
    /// Buffer, command overheads and bus.
    pub electronics: ElectronicsSpec,
    /// The host on which the drive was measured, where its bus is not the drive's own.
    pub measured_on: Option<MeasuringHost>,
    /// Cautions about results on this drive.
    pub cautions: Vec<String>,
    /// Zones of shingled recording.
    pub zoned: Option<ZonedSpec>,
    /// Cylinders by which each surface's tracks lie further inwards than their zones say, where they do.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub surface_offsets: Vec<u32>,
    /// Zones of equal track size, from the outermost inwards.
    pub zones: Vec<ZoneSheet>,
    /// Seek times of short distances, a third of the drive, the longest in the drive file's table, and the
    /// full stroke.
    pub seeks: Vec<SeekTime>,
    /// Longest distance in the drive file's tables of seeks; the curve goes straight on beyond it. Absent
    /// where the tables reach the full stroke, or there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seek_table_cylinders_max: Option<u32>,
    /// Seek times of distances up to the full stroke, more of the short ones than of the long.
    pub seek_curve: Vec<SeekTime>,
    /// Errors of the file, if it was extracted from a drive.
    pub held_out: Vec<HeldOut>,
    /// Sources of values.
    pub sources: BTreeMap<String, String>,
    #[serde(skip)]
    heading: Heading,
}

/// Heading above the page.
#[derive(Debug, Clone, PartialEq)]
struct Heading {
    model: String,
    lead: String,
    has_actuators: bool,
}

/// A quantity as modelled and as advertised, in the unit that ends its name.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CheckRow {
    /// Quantity that is compared.
    pub quantity: &'static str,
    /// The quantity in words.
    #[serde(skip)]
    pub title: &'static str,
    /// Unit of both values.
    #[serde(skip)]
    pub unit: QuantityUnit,
    /// Value of the model.
    pub modelled: u64,
    /// The maker's promise; null where none was published.
    pub advertised: Option<u64>,
    /// Deviation of the model, as a share of the advertised value.
    pub deviation_share: Option<f64>,
    /// Largest deviation allowed.
    pub tolerance_share: f64,
    /// True if the deviation is allowed.
    pub ok: Option<bool>,
    /// Reason for a greater deviation, where the drive file gives one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A zone of equal track size.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ZoneSheet {
    /// Counted from the outermost.
    pub first_cylinder: u32,
    /// Counted from the outermost.
    pub last_cylinder: u32,
    /// Blocks of 512 bytes in the zone.
    pub blocks: u64,
    /// Blocks of 512 bytes on each track.
    pub blocks_per_track: u32,
    /// Blocks on each track of the first surface, the second and so on, where they differ.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub surface_blocks_per_track: Vec<u32>,
    /// Defective stretches that LBNs pass over.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub holes: Vec<Hole>,
    /// With every head and cylinder switch.
    pub sustained_bytes_per_second: u64,
    /// As a fraction of a turn.
    pub track_skew: String,
    /// As a fraction of a turn.
    pub cylinder_skew: String,
}

/// The arm's time for a distance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SeekTime {
    /// Cylinders from start to end.
    pub distance_cylinders: u32,
    /// Until a read may begin.
    pub read_ns: u64,
    /// Until a write may begin.
    pub write_ns: u64,
}

/// Points of a seek curve, enough for any picture.
const CURVE_POINTS: u64 = 160;

impl DriveSheet {
    /// Works out everything that is shown of a drive.
    pub fn new(spec: &DriveSpec, drive: &Drive) -> Self {
        let mut checks = drive.self_check(&spec.advertised);
        checks.extend(random_checks(spec, drive).unwrap_or_default());
        let zones = drive.layout().file_zones();
        Self {
            advertised: spec.advertised.clone(),
            self_check: checks.iter().map(|check| CheckRow::new(check, spec)).collect(),
            mean_seek_read_ns: drive.mean_seek(Op::Read).ns(),
            mean_seek_write_ns: drive.mean_seek(Op::Write).ns(),
            head_switch_ns: spec.head_switch.ns(),
            electronics: spec.electronics.clone(),
            measured_on: spec.measured_on,
            cautions: cautions(spec, drive),
            zoned: spec.zoned,
            surface_offsets: spec.surface_offsets.clone(),
            zones: zones.map(|zone| ZoneSheet::new(spec, drive, zone)).collect(),
            seeks: seeks(drive, named_distances(spec, drive)),
            seek_table_cylinders_max: seek_table_cylinders_max(spec, drive),
            seek_curve: seeks(drive, curve_distances(drive)),
            held_out: spec.held_out.clone(),
            sources: spec.sources.clone(),
            heading: Heading::new(spec, drive),
        }
    }
}

impl Heading {
    fn new(spec: &DriveSpec, drive: &Drive) -> Self {
        let arms = if spec.actuators > 1 {
            format!("{} actuators, each with ", spec.actuators)
        } else {
            String::new()
        };
        let year = spec.year.map_or(String::new(), |year| format!(", {year}"));
        let lead = format!(
            "{}{year}: {}, {} rpm, {arms}{} surfaces of {} cylinders.",
            spec.name,
            drive.total_blocks().bytes().human_decimal(),
            rpm(60.0 / spec.rotation_period.as_secs_f64()),
            spec.surfaces,
            grouped(spec.cylinders),
        );
        Self { model: spec.model.clone(), lead, has_actuators: spec.actuators > 1 }
    }
}

impl CheckRow {
    fn new(check: &Check, spec: &DriveSpec) -> Self {
        let reason = spec.advertised.known_misses.get(&check.quantity);
        Self {
            quantity: check.quantity.name(),
            title: check.quantity.title(),
            unit: check.quantity.unit(),
            modelled: check.modelled,
            advertised: check.advertised,
            deviation_share: check.deviation(),
            tolerance_share: check.quantity.tolerance(),
            ok: check.passes(),
            reason: reason.filter(|_| check.passes() == Some(false)).cloned(),
        }
    }
}

fn cautions(spec: &DriveSpec, drive: &Drive) -> Vec<String> {
    let unmodelled = spec.zoned.and_then(|zoned| unmodelled(zoned.kind));
    let unmodelled = unmodelled.map(|finding| {
        let Finding { headline, action, details, .. } = finding;
        let parts = std::iter::once(headline).chain(action).chain(details);
        parts.collect::<Vec<_>>().join(" ")
    });
    slow_bus(spec, drive).into_iter().chain(unmodelled).collect()
}

/// That the bus, and not the media, sets the rate of long reads; None where the bus is faster.
fn slow_bus(spec: &DriveSpec, drive: &Drive) -> Option<String> {
    let limit = drive.limit_of_bus(spec.electronics.bus?)?;
    let bus = rate(limit.bus_bytes_per_second);
    let media = rate(limit.media_bytes_per_second);
    Some(format!(
        "The bus moves {bus}, the media up to {media}: the bus limits every long read and write. If {bus} is the host's bus and not the drive's interface, put it into `measured_on.bus` and the interface into `electronics.bus`."
    ))
}

impl ZoneSheet {
    /// Blocks on each track, with the range where surfaces differ, and the number of holes.
    pub fn track_words(&self) -> String {
        let densities = &self.surface_blocks_per_track;
        let tracks = match (densities.iter().min(), densities.iter().max()) {
            (Some(least), Some(most)) => format!("{least}-{most} by surface"),
            _ => self.blocks_per_track.to_string(),
        };
        match self.holes.len() {
            0 => tracks,
            1 => format!("{tracks}, 1 hole"),
            holes => format!("{tracks}, {holes} holes"),
        }
    }

    /// `index` is that of a zone of the layout that it consists of.
    fn new(spec: &DriveSpec, drive: &Drive, (index, of_file): (usize, FileZone)) -> Self {
        let zone = &spec.zones[of_file.index];
        Self {
            first_cylinder: zone.first_cylinder,
            last_cylinder: zone.last_cylinder,
            blocks: of_file.blocks.get(),
            blocks_per_track: zone.blocks_per_track,
            surface_blocks_per_track: zone.surface_blocks_per_track.clone(),
            holes: zone.holes.clone(),
            sustained_bytes_per_second: drive.sustained_rate_bytes_per_second(index),
            track_skew: zone.track_skew.to_string(),
            cylinder_skew: zone.cylinder_skew.to_string(),
        }
    }
}

/// A quantity of the self-check with its unit.
fn in_unit(value: u64, unit: QuantityUnit) -> String {
    match unit {
        QuantityUnit::Bytes => Bytes::new(value).capacity(),
        QuantityUnit::BytesPerSecond => rate(value as f64),
        QuantityUnit::Nanoseconds => ms(value),
        QuantityUnit::RequestsPerSecond => format!("{} /s", grouped(value)),
    }
}

/// A time of the drive in milliseconds.
fn ms(ns: u64) -> String {
    format!("{} ms", fine_ms(ns as f64))
}

fn named_distances(spec: &DriveSpec, drive: &Drive) -> Vec<u32> {
    let full = drive.seek().distance_max();
    let mut distances = vec![1, 10, 100, 1000, (full + 1) / 3, full];
    distances.extend(seek_table_cylinders_max(spec, drive));
    distances
}

fn seek_table_cylinders_max(spec: &DriveSpec, drive: &Drive) -> Option<u32> {
    let curves = std::iter::once(&spec.seek.read).chain(&spec.seek.write);
    let longest = curves
        .filter_map(|curve| match curve {
            CurveSpec::Table { cylinders_ms } => cylinders_ms.last().map(|point| point.0),
            _ => None,
        })
        .max()?;
    (longest < drive.seek().distance_max()).then_some(longest)
}

/// Evenly spaced in the root of the distance: seek curves rise like that at first.
fn curve_distances(drive: &Drive) -> Vec<u32> {
    let full = u64::from(drive.seek().distance_max());
    let last = CURVE_POINTS - 1;
    (0..=last).map(|k| (1 + full.saturating_sub(1) * k * k / (last * last)) as u32).collect()
}

fn seeks(drive: &Drive, mut distances: Vec<u32>) -> Vec<SeekTime> {
    distances.sort_unstable();
    distances.dedup();
    distances.retain(|distance| (1..=drive.seek().distance_max()).contains(distance));
    distances
        .into_iter()
        .map(|distance_cylinders| SeekTime {
            distance_cylinders,
            read_ns: drive.seek().time_ns(Op::Read, distance_cylinders, false),
            write_ns: drive.seek().time_ns(Op::Write, distance_cylinders, false),
        })
        .collect()
}
