//! Content of a drive file.
//!
//! Goals: every number carries its unit, every value its source; unknown keys are errors; the
//! layouts of drives from 1992 to today fit.
//! Non-goals: DiskSim's file format (an importer translates it), electronics, zones of shingled
//! recording (each has a separate spec).

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use freewheel_units::{Angle, SimDuration};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use thiserror::Error;

pub use super::advertised::Advertised;
pub use super::by_op::ByOp;
use super::electronics::{BusSpec, ElectronicsSpec};
use super::zoned::ZonedSpec;

/// A drive: identity, geometry, layout, seeks, rotation, and where each value comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DriveSpec {
    /// Name on the command line.
    pub name: String,
    /// Maker and name.
    pub model: String,
    /// Year of introduction. Left out, or 0, if it is not known.
    #[serde(default, deserialize_with = "known_year", skip_serializing_if = "Option::is_none")]
    pub year: Option<u16>,
    /// Independent arms on the same spindle, all alike. Everything else in a drive file but
    /// `advertised` and `zoned` describes one of them and its part of the drive; LBNs run over
    /// the part of the first arm, then over that of the next.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub actuators: u32,
    /// Usable surfaces, that is, heads.
    pub surfaces: u32,
    /// Cylinders, counted from the outermost.
    pub cylinders: u32,
    /// Time of one turn. 10025 rpm is 5985037 ns.
    pub rotation_period: SimDuration,
    /// In which order the tracks of the drive are numbered.
    #[serde(default)]
    pub mapping: Mapping,
    /// Arrangement of spare sectors in every zone.
    #[serde(default)]
    pub sparing: Sparing,
    /// Cylinders by which the tracks of each surface lie further inwards than their zones and bands say,
    /// in bands: servo patterns of two surfaces are not aligned. Empty where they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub surface_offsets: Vec<u32>,
    /// Time to change heads within a cylinder.
    pub head_switch: SimDuration,
    /// Seek curves.
    pub seek: SeekSpec,
    /// True if an access may begin with any of its sectors on a track, whichever passes first.
    #[serde(default)]
    pub zero_latency: ByOp<bool>,
    /// Time between receiving a command and the first movement.
    #[serde(default)]
    pub overhead: ByOp<SimDuration>,
    /// Zones from the outermost inwards, without overlap. Cylinders of no zone hold no data.
    pub zones: Vec<ZoneSpec>,
    /// Buffer, command overheads and bus. Used where the whole drive is modelled, and not where
    /// only its mechanics are.
    #[serde(default, skip_serializing_if = "ElectronicsSpec::is_empty")]
    pub electronics: ElectronicsSpec,
    /// The host on which response times of the drive were measured, where it differs from what
    /// `electronics` says. Used by `drive validate` alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured_on: Option<MeasuringHost>,
    /// Zones of shingled recording that the host sees, over the whole drive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zoned: Option<ZonedSpec>,
    /// Values that the maker promises, for comparison; the model does not use them.
    #[serde(default, skip_serializing_if = "Advertised::is_empty")]
    pub advertised: Advertised,
    /// Error of an extracted drive file on requests that none of its values comes from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held_out: Vec<HeldOut>,
    /// Sources of values: key, or the beginning of a key, to text. The text begins with `data sheet`,
    /// `paper`, `measured`, `extracted`, `derived` or `assumed`.
    pub sources: BTreeMap<String, String>,
}

/// The order in which LBNs run over the tracks of a zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Mapping {
    /// Every cylinder from the first head to the last.
    #[default]
    Cylinder,
    /// Odd cylinders, counted from the start of their zone, from the last head to the first.
    SerpentineByZone,
    /// Odd cylinders, counted from the edge of the drive, from the last head to the first.
    Serpentine,
    /// Bands of cylinders, each from head to head: on every surface LBNs run over all cylinders of
    /// the band before they go on to the next surface. Bands are counted from the start of their
    /// zone; a shorter rest at its end is a narrower band. A spare unit of cylinders must be whole
    /// bands.
    Band {
        /// Cylinders of a band.
        cylinders: u32,
        /// Order of the cylinders of a band, on one surface and the next. Serpentine: inwards on the first
        /// surface of a band, outwards on the second, and so on.
        #[serde(default)]
        cylinder_order: Direction,
        /// Order of the surfaces, in one band and the next. Serpentine: odd bands from the last head to the
        /// first.
        #[serde(default)]
        surface_order: Direction,
    },
}

/// Order that may be turned round every other time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Always from the first to the last.
    #[default]
    Forward,
    /// The odd ones, counted from zero, from the last to the first.
    Serpentine,
}

/// Arrangement of spare sectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sparing {
    /// Unit that has separate spares.
    #[serde(default)]
    pub unit: SpareUnit,
    /// Spares stand before the data of their unit instead of behind it.
    #[serde(default)]
    pub at_front: bool,
    /// A slipped sector shifts the rest of the zone, not only the rest of its unit.
    #[serde(default)]
    pub slip_to_zone_end: bool,
    /// A slipped sector turns the tracks of all later units of its zone by a sector, which keeps
    /// the angle from the last data of its unit to the first of the next.
    #[serde(default)]
    pub slips_turn_tracks: bool,
}

/// The piece of a zone that has separate spare sectors; a zone's `spares` counts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SpareUnit {
    /// The whole zone.
    #[default]
    Zone,
    /// Every track.
    Track,
    /// Every cylinder.
    Cylinder,
    /// This number of cylinders; a shorter rest at the zone's end has no spares.
    CylinderRange(u32),
}

/// Cylinders with the same number of blocks a track.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ZoneSpec {
    /// First cylinder of the zone.
    pub first_cylinder: u32,
    /// Last cylinder of the zone.
    pub last_cylinder: u32,
    /// Blocks of 512 bytes on each track.
    pub blocks_per_track: u32,
    /// Blocks on each track of the first surface, the second and so on, in bands, where they differ; used
    /// in place of `blocks_per_track`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub surface_blocks_per_track: Vec<u32>,
    /// Angle of the zone's first block.
    #[serde(default)]
    pub first_block: Turn,
    /// Blocks at the zone's front that hold no data of the host.
    #[serde(default)]
    pub reserved_blocks: u64,
    /// Angle from the start of a track to the start of the next in the same cylinder. In bands:
    /// from a band's last track on a surface to its first on the next surface.
    pub track_skew: Turn,
    /// Angle from the start of a cylinder's last track to the start of the next cylinder's first.
    /// In bands: from a track to the next on the same surface.
    pub cylinder_skew: Turn,
    /// In bands: angles from the start of a band's last track to the start of the next band's
    /// first, after the first band, the second and so on, and from the first again; the track
    /// skew if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub band_skews: Vec<Turn>,
    /// Spare blocks of each sparing unit.
    #[serde(default)]
    pub spares: u64,
    /// Defective blocks that are passed over, counted in blocks from the start of the zone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slips: Vec<u64>,
    /// Defective blocks and the blocks that stand in for them, counted likewise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remaps: Vec<(u64, u64)>,
    /// Defective stretches of tracks that LBNs pass over, in bands.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holes: Vec<Hole>,
}

/// Range of sectors without data, on consecutive tracks of a surface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Hole {
    /// Head.
    pub surface: u32,
    /// First cylinder, as the cylinders of zones are counted: before `surface_offsets`.
    pub first_cylinder: u32,
    /// Last cylinder.
    pub last_cylinder: u32,
    /// First block on each track.
    #[serde(default)]
    pub first_block: u32,
    /// Blocks on each track; the rest of the track if it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<u32>,
}

impl ZoneSpec {
    /// Blocks on each track of a surface.
    pub fn blocks_per_track_on(&self, surface: u32) -> u32 {
        let of_surface = self.surface_blocks_per_track.get(surface as usize);
        of_surface.copied().unwrap_or(self.blocks_per_track)
    }

    /// Blocks of a cylinder: a track on each of the drive's surfaces.
    pub fn blocks_per_cylinder(&self, surfaces: u32) -> u64 {
        (0..surfaces).map(|surface| u64::from(self.blocks_per_track_on(surface))).sum()
    }

    /// Cylinders in the zone.
    pub fn cylinders(&self) -> u32 {
        self.last_cylinder - self.first_cylinder + 1
    }
}

/// Seek curves of a drive.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SeekSpec {
    /// The arm's time before a read.
    pub read: CurveSpec,
    /// The arm's time before a write, where it was published apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write: Option<CurveSpec>,
    /// Added to every movement before a write.
    #[serde(default)]
    pub write_settle: SimDuration,
    /// A real seek differs from the curve by at most this much either way. Predictions use the
    /// curve; a simulator draws the difference.
    #[serde(default)]
    pub tolerance: SimDuration,
}

/// A seek curve in one of the published forms. Times are in milliseconds, distances in cylinders.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "form", rename_all = "kebab-case", deny_unknown_fields)]
pub enum CurveSpec {
    /// Measured distances with straight lines between, continued beyond the last.
    Table {
        /// Distance and time, distances ascending, the first at distance 1.
        cylinders_ms: Vec<(u32, f64)>,
    },
    /// Three advertised values, joined by a·√(d-1) + b·(d-1) + c (Lee and Katz 1993).
    ThreePoint {
        /// One cylinder.
        single_ms: f64,
        /// Mean of random seeks, taken to be that of a third of all cylinders.
        average_ms: f64,
        /// From the first cylinder to the last.
        full_ms: f64,
    },
    /// a + b·√d below the break, c + e·d from there on (Ruemmler and Wilkes 1994), with the
    /// first distances given one by one where they are known.
    Hp {
        /// Times of distances 1, 2, ... that do not follow the formula.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        first_ms: Vec<f64>,
        /// Distance from which the straight part holds.
        break_cylinders: u32,
        /// a, in ms.
        short_ms: f64,
        /// b, in ms.
        short_sqrt_ms: f64,
        /// c, in ms.
        long_ms: f64,
        /// e, in ms a cylinder.
        long_slope_ms: f64,
    },
    /// a·d^p below the break, a straight line to the full stroke from there on (tr03 figure 3).
    PowerLinear {
        /// Time of one cylinder, a.
        single_ms: f64,
        /// Distance from which the straight part holds.
        break_cylinders: u32,
        /// Time at the break, which fixes p.
        break_ms: f64,
        /// From the first cylinder to the last.
        full_ms: f64,
    },
}

/// Properties of the host on which a drive was measured, and not of the drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MeasuringHost {
    /// The bus of that host, in place of `electronics.bus`.
    pub bus: BusSpec,
    /// `electronics.buffer.almost_hits` as measured on that bus, in place of the drive's own. Of no effect
    /// where there is no buffer, as in a run without electronics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub almost_hits: Option<bool>,
}

/// Response times of a drive beside those that its file predicts, of requests from which none of
/// its values comes. A demerit is the root mean square of the horizontal distance between two
/// distributions (Ruemmler and Wilkes 1994).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HeldOut {
    /// Kind of the requests.
    pub requests: String,
    /// Number of requests.
    pub count: u32,
    /// Mean response time of the drive.
    pub measured_mean: SimDuration,
    /// As the file has it.
    pub foretold_mean: SimDuration,
    /// Between the drive and the file.
    pub demerit: SimDuration,
    /// Mean as the file has it without `electronics`: the mechanics alone.
    pub mechanics_mean: SimDuration,
    /// Between the drive and the mechanics alone.
    pub mechanics_demerit: SimDuration,
}

/// An exact fraction of a turn: `"63/334"` or `"0.25"`. Skews are multiplied by track numbers, so
/// they must not be rounded first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    numerator: u64,
    denominator: u64,
}

/// The text is not a fraction of a turn.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{0}` is not a fraction of a turn: write `63/334` or `0.25`, below 1")]
pub struct ParseTurnError(String);

impl Turn {
    /// `numerator / denominator` of a turn. None unless below one turn.
    pub fn from_ratio(numerator: u64, denominator: u64) -> Option<Self> {
        (numerator < denominator && denominator < 1 << 32)
            .then_some(Self { numerator, denominator })
    }

    /// Numerator and denominator, as they were given.
    pub fn ratio(self) -> (u64, u64) {
        (self.numerator, self.denominator)
    }

    /// The fraction in units of 2^-64 turn, rounded down.
    pub(crate) fn steps64(self) -> u64 {
        ((u128::from(self.numerator) << 64) / u128::from(self.denominator)) as u64
    }

    /// The angle, rounded down.
    pub fn angle(self) -> Angle {
        Angle::from_ratio(self.numerator, self.denominator)
    }
}

impl Default for Turn {
    fn default() -> Self {
        Self { numerator: 0, denominator: 1 }
    }
}

impl FromStr for Turn {
    type Err = ParseTurnError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = |part: &str| part.trim().parse::<u64>().map_err(|_| error(text));
        let (numerator, denominator) = if let Some((above, below)) = text.split_once('/') {
            (number(above)?, number(below)?)
        } else {
            let decimals = text.trim().strip_prefix("0.").or((text.trim() == "0").then_some("0"));
            let decimals =
                decimals.filter(|d| (1..=9).contains(&d.len())).ok_or_else(|| error(text))?;
            (number(decimals)?, 10u64.pow(decimals.len() as u32))
        };
        Self::from_ratio(numerator, denominator).ok_or_else(|| error(text))
    }
}

fn error(text: &str) -> ParseTurnError {
    ParseTurnError(text.into())
}

impl fmt::Display for Turn {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.numerator, self.denominator)
    }
}

impl Serialize for Turn {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Turn {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Turn {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Turn".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "pattern": "^([0-9]+/[0-9]+|0(\\.[0-9]{1,9})?)$",
            "description": "fraction of a turn below one, as 63/334 or 0.25"
        })
    }
}

const fn one() -> u32 {
    1
}

fn known_year<'de, D: Deserializer<'de>>(file: D) -> Result<Option<u16>, D::Error> {
    Ok(Option::deserialize(file)?.filter(|year| *year > 0))
}

/// By reference, as serde calls it.
fn is_one(count: &u32) -> bool {
    *count == 1
}

impl DriveSpec {
    /// True if surfaces differ in density, place or holes, so that each has separate zones.
    pub fn has_surface_zones(&self) -> bool {
        !self.surface_offsets.is_empty()
            || self
                .zones
                .iter()
                .any(|zone| !zone.surface_blocks_per_track.is_empty() || !zone.holes.is_empty())
    }

    /// The source given for `key`: the entry with the longest beginning of it, at a dot.
    pub fn source_of(&self, key: &str) -> Option<&str> {
        let best = self.sources.iter().filter(|(entry, _)| covers(entry, key));
        best.max_by_key(|(entry, _)| entry.len()).map(|(_, text)| text.as_str())
    }

    /// The electronics on the host on which response times of the drive were measured.
    pub fn electronics_as_measured(&self) -> ElectronicsSpec {
        let mut electronics = self.electronics.clone();
        let Some(host) = self.measured_on else { return electronics };
        electronics.bus = Some(host.bus);
        if let (Some(buffer), Some(almost_hits)) = (&mut electronics.buffer, host.almost_hits) {
            buffer.almost_hits = almost_hits;
        }
        electronics
    }
}

fn covers(entry: &str, key: &str) -> bool {
    key.strip_prefix(entry).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turn_keeps_exact_ratio() {
        let skew: Turn = "63/334".parse().unwrap();
        assert_eq!(skew, Turn::from_ratio(63, 334).unwrap());
        assert_eq!("0.25".parse::<Turn>().unwrap().angle(), Angle::from_ratio(1, 4));
    }

    #[test]
    fn turn_of_one_or_more_is_refused() {
        for text in ["334/334", "1.5", "63", "x/3", "1/0", "0."] {
            assert!(text.parse::<Turn>().is_err(), "{text}");
        }
    }
}
