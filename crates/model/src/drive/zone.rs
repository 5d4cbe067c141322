//! Tracks with the same number of sectors: where their LBNs lie.

use freewheel_units::{Angle, Blocks, Lbn};

use super::divide::Divisor;
use super::error::{BuildDriveError, invalid};
use super::track_order::{TrackOrder, sector_steps64};
use crate::spec::drive::{DriveSpec, Mapping, SpareUnit, ZoneSpec};

/// A place on the media.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Physical {
    /// Counted from the outermost.
    pub cylinder: u32,
    /// Head.
    pub surface: u32,
    /// Counted from the start of the track.
    pub sector: u32,
}

/// Cylinders with the same number of blocks a track, on all surfaces or on one, and their part of the map.
///
/// Where surfaces differ, each has separate zones ([`super::surface_zones`]), and LBNs run over those of a
/// zone of the file together.
#[derive(Debug, Clone, PartialEq)]
pub struct Zone {
    pub(super) first_cylinder: u32,
    pub(super) cylinders: u32,
    pub(super) blocks_per_track: Divisor,
    /// 2^64 / blocks_per_track, rounded up: a sector's edge without a division.
    pub(super) sector_steps64: u64,
    pub(super) start_steps64: u64,
    pub(super) order: TrackOrder,
    pub(super) units: SpareUnits,
    pub(super) first_lbn: u64,
    pub(super) blocks: u64,
    pub(super) segments: Vec<Segment>,
    /// Past the last LBN of each segment.
    pub(super) segment_ends: Vec<u64>,
    pub(super) of_file: FileZone,
    /// Defective position to the one that stands in, sorted by either.
    pub(super) remaps_from: Vec<(u64, u64)>,
    pub(super) remaps_to: Vec<(u64, u64)>,
}

/// The zone of the file that a zone is a part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileZone {
    /// Number of the zone in the file.
    pub index: usize,
    /// First LBN of the zone.
    pub first_lbn: Lbn,
    /// Blocks of data, on all surfaces.
    pub blocks: Blocks,
    /// Blocks on the tracks after which the same steps from track to track come again, on all surfaces.
    pub period_blocks: u64,
}

/// Division of positions between data and spares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SpareUnits {
    positions: Divisor,
    data: Divisor,
    front: u64,
    /// Whole units; what remains of the zone behind them has no spares.
    count: u64,
}

/// LBNs `first_lbn..` of a zone: data index = lbn - `first_lbn` + `first_index`,
/// position = spread(index) + `after`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Segment {
    pub first_lbn: u64,
    pub first_index: u64,
    pub first_position: u64,
    pub after: u64,
}

impl SpareUnits {
    pub(super) const WITHOUT_SPARES: Self =
        Self { positions: Divisor::new(1), data: Divisor::new(1), front: 0, count: 0 };

    /// Position of a data index before slips are counted in, and how many indices from this one
    /// on have positions side by side.
    #[inline]
    fn spread(&self, index: u64) -> (u64, u64) {
        if self.count == 0 {
            return (index, u64::MAX);
        }
        let (unit, within) = self.data.divide(index);
        if unit < self.count {
            let position = unit * self.positions.get() + self.front + within;
            return (position, self.data.get() - within);
        }
        (index + self.count * (self.positions.get() - self.data.get()), u64::MAX)
    }

    /// Data index of a position, None where a spare stands.
    fn gather(&self, position: u64) -> Option<u64> {
        let unit = self.positions.divide(position).0.min(self.count);
        let within = position - unit * self.positions.get();
        if unit == self.count {
            return Some(unit * self.data.get() + within);
        }
        let within = within.checked_sub(self.front)?;
        (within < self.data.get()).then_some(unit * self.data.get() + within)
    }
}

impl Zone {
    pub(super) fn build(
        drive: &DriveSpec,
        index: usize,
        previous: Option<&Zone>,
    ) -> Result<Self, BuildDriveError> {
        let (zone, key) = (&drive.zones[index], &format!("zones[{index}]")[..]);
        check_zone(drive, index)?;
        let cylinders = zone.cylinders();
        let per_track = u64::from(zone.blocks_per_track);
        let total = u64::from(cylinders) * u64::from(drive.surfaces) * per_track;
        let order = TrackOrder::build(drive, zone, key)?;
        let units = spare_units(drive, zone, key, total)?;
        let mut built = Self {
            first_cylinder: zone.first_cylinder,
            cylinders,
            blocks_per_track: Divisor::new(per_track),
            sector_steps64: sector_steps64(per_track),
            start_steps64: zone.first_block.steps64(),
            order,
            units,
            first_lbn: previous.map_or(0, |zone| zone.first_lbn + zone.blocks),
            blocks: 0,
            segments: Vec::new(),
            segment_ends: Vec::new(),
            of_file: FileZone::EMPTY,
            remaps_from: zone.remaps.clone(),
            remaps_to: zone.remaps.iter().map(|&(from, to)| (to, from)).collect(),
        };
        built.remaps_from.sort_unstable();
        built.remaps_to.sort_unstable();
        let slips = sorted_slips(zone, key, total)?;
        if drive.sparing.slips_turn_tracks {
            built.order = built.order.turned_by_slips(&slips, per_track, units.positions.get());
        }
        built.lay_out(&slips, drive.sparing.slip_to_zone_end, zone, total, key)?;
        built.of_file = FileZone {
            index,
            first_lbn: built.first_lbn(),
            blocks: built.blocks(),
            period_blocks: built.order.period() * per_track,
        };
        built.check_remaps(zone, total, key)?;
        Ok(built)
    }

    /// Fills in the segments and the number of data blocks.
    fn lay_out(
        &mut self,
        slips: &[u64],
        slip_to_zone_end: bool,
        spec: &ZoneSpec,
        total: u64,
        key: &str,
    ) -> Result<(), BuildDriveError> {
        let units = self.units;
        let unspared = total - units.count * units.positions.get();
        let indices = units.count * units.data.get() + unspared;
        let breaks = if slip_to_zone_end {
            breaks_to_zone_end(&units, slips)
        } else {
            breaks_within_units(&units, slips, key)?
        };
        let slipped = breaks.last().map_or(0, |last| last.before);
        let reserved = spec.reserved_blocks;
        self.blocks = (indices - slipped).checked_sub(reserved).ok_or_else(|| {
            let rule = format!("the zone has only {} data blocks", indices - slipped);
            invalid(format!("{key}.reserved_blocks"), reserved, rule)
        })?;
        // Breaks are in data order; LBNs begin after the reserved blocks.
        let first_index = breaks.iter().rposition(|b| b.order <= reserved).unwrap_or(0);
        for (rank, step) in breaks[first_index..].iter().enumerate() {
            let offset = if rank == 0 { 0 } else { step.order - reserved };
            if offset >= self.blocks && rank > 0 {
                break;
            }
            let first_index = offset + reserved + step.before;
            let first_position = units.spread(first_index).0 + step.after;
            let first_lbn = self.first_lbn + offset;
            let segment = Segment { first_lbn, first_index, first_position, after: step.after };
            self.segments.push(segment);
        }
        let followers = self.segments.iter().skip(1).map(|segment| segment.first_lbn);
        self.segment_ends = followers.chain([self.first_lbn + self.blocks]).collect();
        Ok(())
    }

    fn check_remaps(&self, spec: &ZoneSpec, total: u64, key: &str) -> Result<(), BuildDriveError> {
        for &(from, to) in &spec.remaps {
            let key = format!("{key}.remaps");
            let value = format!("[{from}, {to}]");
            if from >= total || to >= total {
                return Err(invalid(key, value, format!("the zone has {total} sectors")));
            }
            if self.lbn_unmapped(from).is_none() {
                return Err(invalid(key, value, "the first of a pair must carry data"));
            }
            if self.lbn_unmapped(to).is_some() || spec.slips.contains(&to) || self.is_reserved(to) {
                return Err(invalid(key, value, "the second of a pair must be an unused spare"));
            }
        }
        if twice(&self.remaps_from) || twice(&self.remaps_to) {
            let rule = "no sector may be remapped twice or stand in twice";
            return Err(invalid(format!("{key}.remaps"), "ambiguous", rule));
        }
        Ok(())
    }

    /// True if a position lies before the zone's first data and is not a spare.
    fn is_reserved(&self, position: u64) -> bool {
        let first = self.segments.first().map_or(0, |segment| segment.first_position);
        position < first && self.units.gather(position).is_some()
    }

    /// Blocks of data in the zone.
    pub fn blocks(&self) -> Blocks {
        Blocks::new(self.blocks)
    }

    /// First LBN of the zone.
    pub fn first_lbn(&self) -> Lbn {
        Lbn::new(self.first_lbn)
    }

    /// First cylinder of the zone.
    pub fn first_cylinder(&self) -> u32 {
        self.first_cylinder
    }

    /// Cylinders in the zone.
    pub fn cylinders(&self) -> u32 {
        self.cylinders
    }

    /// The zone of the file that it is a part of, or the whole of.
    pub fn of_file(&self) -> FileZone {
        self.of_file
    }

    /// Sectors of 512 bytes on each track.
    #[inline]
    pub fn blocks_per_track(&self) -> u32 {
        self.blocks_per_track.get() as u32
    }

    /// Angle at which the sector begins. `sector` may equal the number of sectors: the end of the
    /// last is the start of the first. `place.sector` counts.
    #[inline]
    pub fn sector_angle(&self, track_start: Angle, sector: u32) -> Angle {
        track_start + Angle::from_steps(self.sector_steps(sector) as u32)
    }

    /// Steps of an [`Angle`] from the beginning of a track to that of a sector; `sector` may be the
    /// number of sectors.
    #[inline]
    pub fn sector_steps(&self, sector: u32) -> u64 {
        // floor(sector * 2^32 / sectors): the rounded-up reciprocal errs by less than
        // sector / 2^64, too little to reach the next whole step for any track below 2^32 sectors.
        ((u128::from(sector) * u128::from(self.sector_steps64)) >> 32) as u64
    }

    /// Angle at which the track's first sector begins.
    #[inline]
    pub fn track_start(&self, cylinder: u32, surface: u32) -> Angle {
        let turned64 = self.order.turned64(cylinder - self.first_cylinder, surface);
        Angle::from_steps((self.start_steps64.wrapping_add(turned64) >> 32) as u32)
    }

    /// Tracks after which the same steps from track to track come again, directions left aside: a
    /// cylinder, or a band.
    pub fn track_period(&self) -> u64 {
        self.order.period()
    }

    #[inline]
    pub(super) fn physical(&self, position: u64) -> Physical {
        let (track, sector) = self.blocks_per_track.divide(position);
        let (cylinder, surface) = self.order.track(track);
        Physical { cylinder: self.first_cylinder + cylinder, surface, sector: sector as u32 }
    }

    pub(super) fn position(&self, at: Physical) -> u64 {
        let track = self.order.number(at.cylinder - self.first_cylinder, at.surface);
        track * self.blocks_per_track.get() + u64::from(at.sector)
    }

    /// Position of `lbn`, remaps left aside, and up to how many consecutive LBNs follow in
    /// consecutive positions (track ends left aside).
    #[inline]
    pub(super) fn position_of(&self, segment: &Segment, lbn: u64) -> (u64, u64) {
        let index = lbn - segment.first_lbn + segment.first_index;
        let (position, contiguous) = self.units.spread(index);
        (position + segment.after, contiguous)
    }

    /// True if a position in `start..end` is remapped, or stands in for another.
    #[inline]
    pub(super) fn has_remap_in(&self, start: u64, end: u64) -> bool {
        !self.remaps_from.is_empty()
            && (within(&self.remaps_from, start, end) || within(&self.remaps_to, start, end))
    }

    /// The LBN whose data position this is, remaps left aside.
    pub(super) fn lbn_unmapped(&self, position: u64) -> Option<u64> {
        let at = self.segments.partition_point(|s| s.first_position <= position).checked_sub(1)?;
        let segment = &self.segments[at];
        let index = self.units.gather(position.checked_sub(segment.after)?)?;
        let lbn = index.checked_sub(segment.first_index)? + segment.first_lbn;
        let is_data = lbn < self.segment_ends[at] && self.position_of(segment, lbn).0 == position;
        is_data.then_some(lbn)
    }
}

fn twice(list: &[(u64, u64)]) -> bool {
    list.windows(2).any(|pair| pair[0].0 == pair[1].0)
}

fn within(list: &[(u64, u64)], start: u64, end: u64) -> bool {
    let next = list.partition_point(|(position, _)| *position < start);
    list.get(next).is_some_and(|(position, _)| *position < end)
}

impl FileZone {
    pub(super) const EMPTY: Self =
        Self { index: 0, first_lbn: Lbn::new(0), blocks: Blocks::ZERO, period_blocks: 0 };
}

/// Checks the edges and the density of a zone of the file.
pub(super) fn check_zone(drive: &DriveSpec, index: usize) -> Result<(), BuildDriveError> {
    let (zone, key) = (&drive.zones[index], format!("zones[{index}]"));
    let previous = index.checked_sub(1).map(|before| &drive.zones[before]);
    let next = previous.map_or(0, |zone| zone.last_cylinder + 1);
    if zone.first_cylinder < next {
        let rule = format!("the zone before ends at cylinder {}", i64::from(next) - 1);
        return Err(invalid(format!("{key}.first_cylinder"), zone.first_cylinder, rule));
    }
    if !(zone.first_cylinder..drive.cylinders).contains(&zone.last_cylinder) {
        let rule = format!("{} to {} fits", zone.first_cylinder, drive.cylinders - 1);
        return Err(invalid(format!("{key}.last_cylinder"), zone.last_cylinder, rule));
    }
    if !(2..=65_536).contains(&zone.blocks_per_track) {
        let key = format!("{key}.blocks_per_track");
        return Err(invalid(key, zone.blocks_per_track, "2 to 65536 are allowed"));
    }
    Ok(())
}

fn spare_units(
    drive: &DriveSpec,
    zone: &ZoneSpec,
    key: &str,
    total: u64,
) -> Result<SpareUnits, BuildDriveError> {
    let per_track = u64::from(zone.blocks_per_track);
    let per_cylinder = per_track * u64::from(drive.surfaces);
    let positions = match drive.sparing.unit {
        SpareUnit::Zone => total,
        SpareUnit::Track => per_track,
        SpareUnit::Cylinder => per_cylinder,
        SpareUnit::CylinderRange(0) => {
            return Err(invalid("sparing.unit", "a range of 0 cylinders", "at least 1 is needed"));
        }
        SpareUnit::CylinderRange(cylinders) => per_cylinder * u64::from(cylinders),
    };
    check_unit_in_bands(drive)?;
    let count = if zone.spares == 0 { 0 } else { total / positions };
    if zone.spares >= positions {
        let rule = format!("a sparing unit of this zone has {positions} blocks in all");
        return Err(invalid(format!("{key}.spares"), zone.spares, rule));
    }
    let front = if drive.sparing.at_front { zone.spares } else { 0 };
    let data = Divisor::new(positions - zone.spares);
    Ok(SpareUnits { positions: Divisor::new(positions), data, front, count })
}

/// LBNs must run through the data of a unit before they go on to the next.
fn check_unit_in_bands(drive: &DriveSpec) -> Result<(), BuildDriveError> {
    let Mapping::Band { cylinders: band, .. } = drive.mapping else { return Ok(()) };
    let (unit, cylinders) = match drive.sparing.unit {
        SpareUnit::Zone | SpareUnit::Track => return Ok(()),
        SpareUnit::Cylinder => ("cylinder".into(), 1),
        SpareUnit::CylinderRange(cylinders) => (format!("{cylinders} cylinders"), cylinders),
    };
    if cylinders % band == 0 {
        return Ok(());
    }
    let rule = format!("in bands of {band} cylinders a unit is a track, a zone or whole bands");
    Err(invalid("sparing.unit", unit, rule))
}

fn sorted_slips(zone: &ZoneSpec, key: &str, total: u64) -> Result<Vec<u64>, BuildDriveError> {
    let mut slips = zone.slips.clone();
    slips.sort_unstable();
    slips.dedup();
    match slips.last() {
        Some(&last) if last >= total => {
            Err(invalid(format!("{key}.slips"), last, format!("the zone has {total} sectors")))
        }
        _ => Ok(slips),
    }
}

/// From data block number `order` (reserved blocks counted) on, these shifts hold.
struct Break {
    order: u64,
    before: u64,
    after: u64,
}

/// A slip takes its unit's later data one position further, into the unit's spares.
fn breaks_within_units(
    units: &SpareUnits,
    slips: &[u64],
    key: &str,
) -> Result<Vec<Break>, BuildDriveError> {
    let mut breaks = vec![Break { order: 0, before: 0, after: 0 }];
    let mut rest = slips;
    while let Some(&first) = rest.first() {
        let unit = units.positions.divide(first).0;
        if unit >= units.count {
            let rule = "it lies where the zone has no spares to slip into";
            return Err(invalid(format!("{key}.slips"), first, rule));
        }
        let inside =
            rest.iter().take_while(|&&slip| units.positions.divide(slip).0 == unit).count();
        breaks_of_unit(units, unit, &rest[..inside], key, &mut breaks)?;
        rest = &rest[inside..];
    }
    Ok(breaks)
}

fn breaks_of_unit(
    units: &SpareUnits,
    unit: u64,
    slips: &[u64],
    key: &str,
    breaks: &mut Vec<Break>,
) -> Result<(), BuildDriveError> {
    let start = unit * units.data.get();
    let mut passed = 0;
    for &slip in slips {
        let within = slip - unit * units.positions.get();
        // Data stands at front + order + passed; spares in front and unused ones behind may slip
        // without consequence.
        if within < units.front || within >= units.front + units.data.get() + passed {
            continue;
        }
        passed += 1;
        if units.front + units.data.get() + passed > units.positions.get() {
            let rule = "there are more slips in its unit than spares behind the data";
            return Err(invalid(format!("{key}.slips"), slip, rule));
        }
        let order = start + within - units.front - (passed - 1);
        // Of slips side by side only the last shift takes effect.
        if breaks.last().is_some_and(|last| last.order == order) {
            breaks.pop();
        }
        breaks.push(Break { order, before: 0, after: passed });
    }
    if passed > 0 {
        breaks.push(Break { order: start + units.data.get(), before: 0, after: 0 });
    }
    Ok(())
}

/// A slip takes all later data of the zone one data index further.
fn breaks_to_zone_end(units: &SpareUnits, slips: &[u64]) -> Vec<Break> {
    let mut breaks = vec![Break { order: 0, before: 0, after: 0 }];
    for index in slips.iter().filter_map(|&slip| units.gather(slip)) {
        let passed = breaks.last().map_or(0, |last| last.before);
        let order = index - passed;
        if breaks.last().is_some_and(|last| last.order == order) {
            breaks.pop();
        }
        breaks.push(Break { order, before: passed + 1, after: 0 });
    }
    breaks
}
