//! `dm_layout_g1`: zones with skews, spares, slips and remaps.

use freewheel_model::drive::spec::{Mapping, SpareUnit, Sparing, Turn, ZoneSpec};

use crate::error::{ImportError, wrong};
use crate::fields::{Fields, Report, block, list, text, whole};
use crate::parse::{Block, Param};

/// Sectors of slipped tracks, together.
const TRACK_SLIPS_MAX: u64 = 20_000_000;
const BLOCKS_PER_TRACK_MAX: u32 = 65_536;
const CYLINDERS_MAX: u32 = 4_000_000;

/// A layout in our words.
pub(crate) struct ImportedLayout {
    pub mapping: Mapping,
    pub sparing: Sparing,
    pub zones: Vec<ZoneSpec>,
}

/// `Sparing scheme used`, 0 to 10.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Scheme(u32);

impl Scheme {
    const NONE: Self = Self(0);
    const TRACKS_OF_ZONE: Self = Self(1);
    const TRACK: Self = Self(3);
    const END_OF_ZONE: Self = Self(7);
    const RANGE: Self = Self(8);

    fn sparing(self, range: u32) -> Sparing {
        let unit = match self.0 {
            2 | 4 | 5 | 6 => SpareUnit::Cylinder,
            3 => SpareUnit::Track,
            8 => SpareUnit::CylinderRange(range),
            _ => SpareUnit::Zone,
        };
        Sparing {
            unit,
            at_front: matches!(self.0, 5 | 6),
            slip_to_zone_end: matches!(self.0, 4 | 6 | 7 | 10),
            slips_turn_tracks: matches!(self.0, 2..=6),
        }
    }

    fn has_spares(self) -> bool {
        self != Self::NONE && self != Self::END_OF_ZONE
    }
}

/// In what the skews of a zone are given.
#[derive(Clone, Copy)]
enum SkewUnit {
    Sectors,
    Turns,
}

pub(crate) fn layout(
    source: &Block,
    surfaces: u32,
    report: &mut Report,
) -> Result<ImportedLayout, ImportError> {
    let mut fields = Fields::new(source);
    let mapping = match fields.need_whole("LBN-to-PBN mapping scheme", 2u32)? {
        0 => Mapping::Cylinder,
        1 => Mapping::SerpentineByZone,
        _ => Mapping::Serpentine,
    };
    let scheme = Scheme(fields.need_whole("Sparing scheme used", 10u32)?);
    let range = range_size(&mut fields, scheme, report)?;
    let unit = skew_unit(&mut fields)?.unwrap_or(SkewUnit::Sectors);
    let zones = fields.need("Zones")?;
    fields.finish(&[], report);
    let reader = ZoneReader { mapping, scheme, surfaces, unit };
    let zones: Result<Vec<ZoneSpec>, ImportError> = list(&zones.value, "Zones")?
        .iter()
        .map(|zone| reader.zone(block(zone, "Zones")?, report))
        .collect();
    Ok(ImportedLayout { mapping, sparing: scheme.sparing(range), zones: zones? })
}

fn range_size(
    fields: &mut Fields<'_>,
    scheme: Scheme,
    report: &mut Report,
) -> Result<u32, ImportError> {
    let range = fields.whole("Rangesize for sparing", CYLINDERS_MAX)?.unwrap_or(1);
    if scheme != Scheme::RANGE && range > 1 {
        let param = fields.need("Rangesize for sparing")?;
        report.lost(param, "only sparing scheme 8 uses it, and the scheme is another");
    }
    Ok(range)
}

fn skew_unit(fields: &mut Fields<'_>) -> Result<Option<SkewUnit>, ImportError> {
    let Some(param) = fields.get("Skew units") else { return Ok(None) };
    match text(&param.value, "Skew units")? {
        "sectors" => Ok(Some(SkewUnit::Sectors)),
        "revolutions" => Ok(Some(SkewUnit::Turns)),
        other => {
            let rule = format!("`Skew units` is `{other}`; sectors or revolutions is expected");
            Err(wrong(&param.value.at, rule))
        }
    }
}

struct ZoneReader {
    mapping: Mapping,
    scheme: Scheme,
    surfaces: u32,
    unit: SkewUnit,
}

impl ZoneReader {
    fn zone(&self, source: &Block, report: &mut Report) -> Result<ZoneSpec, ImportError> {
        let mut fields = Fields::new(source);
        let per_track = fields.need_whole("Blocks per track", BLOCKS_PER_TRACK_MAX)?;
        if per_track == 0 {
            return Err(wrong(&source.at, "`Blocks per track` is 0"));
        }
        let unit = skew_unit(&mut fields)?.unwrap_or(self.unit);
        let mut turn = |key| turn(&mut fields, key, unit, per_track, report);
        let first_block = turn("Offset of first block")?;
        let track_skew = turn("Skew for track switch")?;
        let cylinder_skew = turn("Skew for cylinder switch")?;
        let mut zone = ZoneSpec {
            first_cylinder: fields.need_whole("First cylinder number", CYLINDERS_MAX)?,
            last_cylinder: fields.need_whole("Last cylinder number", CYLINDERS_MAX)?,
            blocks_per_track: per_track,
            first_block,
            reserved_blocks: fields
                .whole("Empty space at zone front", u64::from(u32::MAX))?
                .unwrap_or(0),
            track_skew,
            cylinder_skew,
            surface_blocks_per_track: Vec::new(),
            holes: Vec::new(),
            band_skews: Vec::new(),
            spares: 0,
            slips: Vec::new(),
            remaps: Vec::new(),
        };
        if zone.last_cylinder < zone.first_cylinder {
            return Err(wrong(&source.at, "the zone's last cylinder comes before its first"));
        }
        self.spares(&mut zone, &mut fields, report)?;
        self.slips(&mut zone, &mut fields, report)?;
        self.defects(&mut zone, &mut fields, report)?;
        fields.finish(&[], report);
        Ok(zone)
    }

    fn spares(
        &self,
        zone: &mut ZoneSpec,
        fields: &mut Fields<'_>,
        report: &mut Report,
    ) -> Result<(), ImportError> {
        let count = fields.whole("Number of spares", u64::from(u32::MAX))?.unwrap_or(0);
        if self.scheme.has_spares() {
            zone.spares = self.sectors_of(count, zone);
        } else if count > 0 {
            report.lost(fields.need("Number of spares")?, "the sparing scheme has no spares");
        }
        Ok(())
    }

    /// Sectors of this many units of the scheme: tracks for scheme 1.
    fn sectors_of(&self, count: u64, zone: &ZoneSpec) -> u64 {
        if self.scheme == Scheme::TRACKS_OF_ZONE {
            count * u64::from(zone.blocks_per_track)
        } else {
            count
        }
    }

    /// Sectors or tracks in the zone: what a slip or a defect may name.
    fn places(&self, zone: &ZoneSpec) -> u64 {
        let cylinders = u64::from(zone.last_cylinder - zone.first_cylinder + 1);
        let tracks = cylinders * u64::from(self.surfaces);
        if self.scheme == Scheme::TRACKS_OF_ZONE {
            tracks
        } else {
            tracks * u64::from(zone.blocks_per_track)
        }
    }

    /// The numbers of a list of places, checked.
    fn numbers(&self, param: &Param, zone: &ZoneSpec) -> Result<Vec<u64>, ImportError> {
        let last = self.places(zone).saturating_sub(1);
        let items = list(&param.value, &param.key)?;
        let numbers: Result<Vec<u64>, ImportError> =
            items.iter().map(|item| whole(item, &param.key, last)).collect();
        let numbers = numbers?;
        let sectors = self.sectors_of(numbers.len() as u64, zone);
        if sectors > TRACK_SLIPS_MAX {
            let rule = format!("{sectors} defective sectors; {TRACK_SLIPS_MAX} are allowed");
            return Err(wrong(&param.at, rule));
        }
        Ok(numbers)
    }

    fn slips(
        &self,
        zone: &mut ZoneSpec,
        fields: &mut Fields<'_>,
        report: &mut Report,
    ) -> Result<(), ImportError> {
        let Some(param) = fields.get("slips") else { return Ok(()) };
        let mut numbers = self.numbers(param, zone)?;
        numbers.sort_unstable();
        numbers.dedup();
        if self.scheme == Scheme::NONE && !numbers.is_empty() {
            report.lost(param, "sparing scheme 0 has no slips");
            return Ok(());
        }
        let serpentine = self.mapping != Mapping::Cylinder;
        if self.scheme == Scheme::TRACK && serpentine && !numbers.is_empty() {
            report.lost(
                param,
                "a slip turns the tracks behind it by a sector; DiskSim takes them in the order of \
                 heads also in cylinders that run from the last head to the first",
            );
        }
        let each = self.sectors_of(1, zone);
        zone.slips = numbers.into_iter().flat_map(|n| n * each..(n + 1) * each).collect();
        Ok(())
    }

    fn defects(
        &self,
        zone: &mut ZoneSpec,
        fields: &mut Fields<'_>,
        report: &mut Report,
    ) -> Result<(), ImportError> {
        let Some(param) = fields.get("defects") else { return Ok(()) };
        let numbers = self.numbers(param, zone)?;
        if numbers.len() % 2 == 1 {
            let rule = format!("`defects` has {} numbers; pairs are expected", numbers.len());
            return Err(wrong(&param.at, rule));
        }
        if self.scheme == Scheme::NONE && !numbers.is_empty() {
            report.lost(param, "sparing scheme 0 has no remapped sectors");
            return Ok(());
        }
        let each = self.sectors_of(1, zone);
        for pair in numbers.chunks_exact(2) {
            if pair[0] == pair[1] {
                let sector = pair[0];
                report
                    .note(format!("{}: defect {sector} stands in for itself: left out", param.at));
                continue;
            }
            zone.remaps.extend((0..each).map(|i| (pair[0] * each + i, pair[1] * each + i)));
        }
        Ok(())
    }
}

/// A skew as a part of a turn, zero where it is not given.
fn turn(
    fields: &mut Fields<'_>,
    key: &str,
    unit: SkewUnit,
    per_track: u32,
    report: &mut Report,
) -> Result<Turn, ImportError> {
    let Some((value, param)) = fields.number(key)? else { return Ok(Turn::default()) };
    let parts = match unit {
        SkewUnit::Sectors => u64::from(per_track),
        SkewUnit::Turns => 1,
    };
    if matches!(unit, SkewUnit::Sectors) && !value.is_whole() {
        let at = &param.at;
        report.note(format!("{at}: `{key}` is kept with its fraction, which DiskSim 4.0 drops"));
    }
    if value.is_negative() || value.abs().f64() >= parts as f64 {
        let shown = param.value.shown();
        report.note(format!("{}: `{key}` is {shown}: whole turns are left away", param.at));
    }
    Ok(value.turn(parts).unwrap_or_else(|| {
        report.note(format!("{}: `{key}` is rounded to a thousand-millionth of a turn", param.at));
        value.turn_rounded(parts)
    }))
}
