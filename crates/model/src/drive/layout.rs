//! Where a block is on the media, and which block is at a place.
//!
//! A zone's sectors are numbered in the order the LBNs run over its tracks (*position*). Spares and
//! slips then say which positions carry data. The map is kept as *segments* within which LBN and
//! position differ by simple arithmetic, so that a look-up costs a table lookup and two
//! multiplications, independent of the number of slips:
//!
//! ```text
//!   lbn --segment--> data index --spare unit--> position --track--> (cylinder, surface, sector)
//!        + before                 + front, after
//! ```

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

/// Consecutive LBNs in consecutive sectors of one track.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// Where the first is.
    pub at: Physical,
    /// Index of the zone they are in.
    pub zone: usize,
    /// How many there are, at least one.
    pub blocks: u32,
}

/// Cylinders with the same number of blocks a track, and their part of the map.
#[derive(Debug, Clone, PartialEq)]
pub struct Zone {
    first_cylinder: u32,
    cylinders: u32,
    blocks_per_track: Divisor,
    /// 2^64 / blocks_per_track, rounded up: a sector's edge without a division.
    sector_steps64: u64,
    start_steps64: u64,
    order: TrackOrder,
    units: SpareUnits,
    first_lbn: u64,
    blocks: u64,
    segments: Vec<Segment>,
    /// Defective position to the one that stands in, sorted by either.
    remaps_from: Vec<(u64, u64)>,
    remaps_to: Vec<(u64, u64)>,
}

/// How positions are shared out between data and spares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SpareUnits {
    positions: Divisor,
    data: Divisor,
    front: u64,
    /// Whole units; what remains of the zone behind them has no spares.
    count: u64,
}

/// LBNs `first_lbn..` of a zone: data index = lbn - first_lbn_of_zone + `before`,
/// position = spread(index) + `after`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Segment {
    first_lbn: u64,
    first_position: u64,
    before: u64,
    after: u64,
}

impl SpareUnits {
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
    pub(crate) fn build(
        drive: &DriveSpec,
        zone: &ZoneSpec,
        key: &str,
        previous: Option<&Zone>,
    ) -> Result<Self, BuildDriveError> {
        check_zone(drive, zone, key, previous)?;
        let cylinders = zone.last_cylinder - zone.first_cylinder + 1;
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
            let before = reserved + step.before;
            let first_position = units.spread(offset + before).0 + step.after;
            let first_lbn = self.first_lbn + offset;
            self.segments.push(Segment { first_lbn, first_position, before, after: step.after });
        }
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
        let twice = |list: &[(u64, u64)]| list.windows(2).any(|pair| pair[0].0 == pair[1].0);
        if twice(&self.remaps_from) || twice(&self.remaps_to) {
            let rule = "no sector may be remapped twice or stand in twice";
            return Err(invalid(format!("{key}.remaps"), "ambiguous", rule));
        }
        Ok(())
    }

    /// Whether a position lies before the zone's first data and is not a spare.
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
    fn physical(&self, position: u64) -> Physical {
        let (track, sector) = self.blocks_per_track.divide(position);
        let (cylinder, surface) = self.order.track(track);
        Physical { cylinder: self.first_cylinder + cylinder, surface, sector: sector as u32 }
    }

    fn position(&self, at: Physical) -> u64 {
        let track = self.order.number(at.cylinder - self.first_cylinder, at.surface);
        track * self.blocks_per_track.get() + u64::from(at.sector)
    }

    /// Position of `lbn`, remaps left aside, and up to how many consecutive LBNs follow in
    /// consecutive positions (track ends left aside).
    #[inline]
    fn position_of(&self, segment: &Segment, lbn: u64) -> (u64, u64) {
        let index = lbn - self.first_lbn + segment.before;
        let (position, contiguous) = self.units.spread(index);
        (position + segment.after, contiguous)
    }

    /// Whether a position in `start..end` is remapped, or stands in for another.
    #[inline]
    fn has_remap_in(&self, start: u64, end: u64) -> bool {
        let within = |list: &[(u64, u64)]| {
            let next = list.partition_point(|(position, _)| *position < start);
            list.get(next).is_some_and(|(position, _)| *position < end)
        };
        !self.remaps_from.is_empty() && (within(&self.remaps_from) || within(&self.remaps_to))
    }

    /// The LBN whose data position this is, remaps left aside.
    fn lbn_unmapped(&self, position: u64) -> Option<u64> {
        let at = self.segments.partition_point(|s| s.first_position <= position).checked_sub(1)?;
        let segment = &self.segments[at];
        let index = self.units.gather(position.checked_sub(segment.after)?)?;
        let lbn = index.checked_sub(segment.before)? + self.first_lbn;
        let end = self.segments.get(at + 1).map_or(self.first_lbn + self.blocks, |s| s.first_lbn);
        (lbn >= segment.first_lbn && lbn < end && self.position_of(segment, lbn).0 == position)
            .then_some(lbn)
    }
}

fn check_zone(
    drive: &DriveSpec,
    zone: &ZoneSpec,
    key: &str,
    previous: Option<&Zone>,
) -> Result<(), BuildDriveError> {
    let next = previous.map_or(0, |zone| zone.first_cylinder + zone.cylinders);
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

/// The whole drive's map.
#[derive(Debug, Clone, PartialEq)]
pub struct Layout {
    zones: Vec<Zone>,
    blocks: u64,
    surfaces: u32,
    /// All zones' segments in LBN order, with the index of their zone.
    segments: Vec<(Segment, u32)>,
    /// Segment of the first LBN of each bucket of `1 << bucket_shift` LBNs.
    buckets: Vec<u32>,
    bucket_shift: u32,
}

const BUCKETS: u64 = 4096;

impl Layout {
    pub(crate) fn new(zones: Vec<Zone>, surfaces: u32) -> Self {
        let blocks = zones.last().map_or(0, |zone| zone.first_lbn + zone.blocks);
        let segments: Vec<(Segment, u32)> = zones
            .iter()
            .enumerate()
            .filter(|(_, zone)| zone.blocks > 0)
            .flat_map(|(index, zone)| zone.segments.iter().map(move |&s| (s, index as u32)))
            .collect();
        let bucket_shift = (blocks / BUCKETS).max(1).next_power_of_two().ilog2();
        let buckets = (0..=(blocks >> bucket_shift))
            .map(|bucket| {
                let first = bucket << bucket_shift;
                (segments.partition_point(|(s, _)| s.first_lbn <= first).max(1) - 1) as u32
            })
            .collect();
        Self { zones, blocks, surfaces, segments, buckets, bucket_shift }
    }

    /// Capacity.
    pub fn blocks(&self) -> Blocks {
        Blocks::new(self.blocks)
    }

    /// Zones from the outermost inwards.
    pub fn zones(&self) -> &[Zone] {
        &self.zones
    }

    /// Heads.
    pub fn surfaces(&self) -> u32 {
        self.surfaces
    }

    /// Where `lbn` is. Panics beyond the capacity.
    pub fn locate(&self, lbn: Lbn) -> Physical {
        self.run(lbn, 1).at
    }

    /// Where `lbn` is, and how many of the `wanted` blocks from there on lie in consecutive
    /// sectors of the same track. Panics beyond the capacity or when `wanted` is zero.
    #[inline(always)]
    pub fn run(&self, lbn: Lbn, wanted: u32) -> Run {
        assert!(wanted > 0, "a run of no blocks");
        let lbn = lbn.get();
        let (segment, segment_end, zone_index) = self.segment_of(lbn);
        let zone = &self.zones[zone_index];
        let (position, contiguous) = zone.position_of(&segment, lbn);
        let mut limit = u64::from(wanted).min(contiguous).min(segment_end - lbn);
        let mut place = zone.physical(position);
        if !zone.remaps_from.is_empty() {
            (place, limit) = self.follow_remap(zone, position, place, limit);
        }
        let on_track = u64::from(zone.blocks_per_track() - place.sector);
        Run { at: place, zone: zone_index, blocks: limit.min(on_track) as u32 }
    }

    /// The segment of `lbn`, the LBN behind its last, and its zone.
    #[inline]
    fn segment_of(&self, lbn: u64) -> (Segment, u64, usize) {
        assert!(lbn < self.blocks, "lbn {lbn} of {}", self.blocks);
        let mut at = self.buckets[(lbn >> self.bucket_shift) as usize] as usize;
        while self.segments.get(at + 1).is_some_and(|(next, _)| next.first_lbn <= lbn) {
            at += 1;
        }
        let (segment, zone_index) = self.segments[at];
        let end = self.segments.get(at + 1).map_or(self.blocks, |(next, _)| next.first_lbn);
        (segment, end, zone_index as usize)
    }

    /// The first and the end of the blocks that lie with `lbn` on its track, without slips; remaps are
    /// left aside for the end. Panics beyond the capacity.
    #[inline]
    pub fn track_bounds(&self, lbn: Lbn) -> (Lbn, Lbn) {
        self.plain_track_bounds(lbn)
            .unwrap_or_else(|| (self.find_track_first(lbn), self.find_track_end(lbn)))
    }

    /// The bounds where the whole track is one run: those of every block in them.
    #[inline]
    pub(crate) fn plain_track_bounds(&self, lbn: Lbn) -> Option<(Lbn, Lbn)> {
        let (segment, segment_end, zone_index) = self.segment_of(lbn.get());
        let zone = &self.zones[zone_index];
        let (position, _) = zone.position_of(&segment, lbn.get());
        let sector = zone.blocks_per_track.remainder(position);
        let first = lbn.get().checked_sub(sector)?;
        let end = first + u64::from(zone.blocks_per_track());
        if first < segment.first_lbn || end > segment_end {
            return None;
        }
        let (start, contiguous) = zone.position_of(&segment, first);
        if zone.has_remap_in(start, start + (end - first)) {
            return None;
        }
        let whole = start + sector == position && contiguous >= end - first;
        whole.then_some((Lbn::new(first), Lbn::new(end)))
    }

    fn find_track_end(&self, lbn: Lbn) -> Lbn {
        let place = self.locate(lbn);
        let track = |at: Physical| (at.cylinder, at.surface);
        let mut end = lbn;
        while end.get() < self.blocks {
            let run = self.run(end, u32::MAX);
            if track(run.at) != track(place) {
                break;
            }
            end = end + Blocks::new(u64::from(run.blocks));
        }
        end
    }

    fn find_track_first(&self, lbn: Lbn) -> Lbn {
        let place = self.locate(lbn);
        let sectors = 0..=place.sector;
        let on_track = sectors.filter_map(|sector| self.lbn_at(Physical { sector, ..place }));
        on_track.min().unwrap_or(lbn)
    }

    /// The end of the blocks that follow `lbn` without leaving its cylinder. Panics beyond the
    /// capacity.
    pub fn cylinder_end(&self, lbn: Lbn) -> Lbn {
        let cylinder = self.locate(lbn).cylinder;
        let mut end = self.track_bounds(lbn).1;
        while end.get() < self.blocks && self.locate(end).cylinder == cylinder {
            end = self.track_bounds(end).1;
        }
        end
    }

    /// A remapped block stands alone elsewhere; a run ends before the next remapped block.
    fn follow_remap(
        &self,
        zone: &Zone,
        position: u64,
        place: Physical,
        limit: u64,
    ) -> (Physical, u64) {
        let next = zone.remaps_from.partition_point(|(from, _)| *from < position);
        match zone.remaps_from.get(next) {
            Some(&(from, to)) if from == position => (zone.physical(to), 1),
            Some(&(from, _)) => (place, limit.min(from - position)),
            None => (place, limit),
        }
    }

    /// The block at a place; None for spares, slipped and remapped sectors, reserved blocks and
    /// places that do not exist.
    pub fn lbn_at(&self, at: Physical) -> Option<Lbn> {
        let zone = &self.zones[self.zone_at(at.cylinder)?];
        if at.surface >= self.surfaces || at.sector >= zone.blocks_per_track() {
            return None;
        }
        let position = zone.position(at);
        let lookup = |list: &[(u64, u64)]| {
            list.binary_search_by_key(&position, |(key, _)| *key).ok().map(|found| list[found].1)
        };
        if lookup(&zone.remaps_from).is_some() {
            return None;
        }
        let position = lookup(&zone.remaps_to).unwrap_or(position);
        zone.lbn_unmapped(position).map(Lbn::new)
    }

    /// Index of the zone that holds this cylinder.
    pub fn zone_at(&self, cylinder: u32) -> Option<usize> {
        let after = self.zones.partition_point(|zone| zone.first_cylinder <= cylinder);
        let index = after.checked_sub(1)?;
        let zone = &self.zones[index];
        (cylinder - zone.first_cylinder < zone.cylinders).then_some(index)
    }

    /// Angle at which the first sector of a track begins. None where there is no track.
    pub fn track_start(&self, cylinder: u32, surface: u32) -> Option<Angle> {
        let zone = self.zone_at(cylinder).filter(|_| surface < self.surfaces)?;
        Some(self.zones[zone].track_start(cylinder, surface))
    }

    /// Angle at which the track at `at` begins, which is in this zone.
    #[inline]
    pub fn track_start_in(&self, zone: usize, at: Physical) -> Angle {
        self.zones[zone].track_start(at.cylinder, at.surface)
    }
}
