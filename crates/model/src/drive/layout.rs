//! Map from LBN to a place on the media, and back.
//!
//! A zone's sectors are numbered in the order the LBNs run over its tracks (*position*). Spares and
//! slips then say which positions carry data. The map is kept as *segments* within which LBN and
//! position differ by simple arithmetic, so that a look-up costs a table lookup and two
//! multiplications, independent of the number of slips:
//!
//! ```text
//!   lbn --segment--> data index --spare unit--> position --track--> (cylinder, surface, sector)
//!       + first_index             + front, after
//! ```

use freewheel_units::{Angle, Blocks, Lbn};

use super::error::BuildDriveError;
use super::surface_zones;
use super::zone::{FileZone, Physical, Segment, Zone};
use crate::spec::drive::DriveSpec;

/// Consecutive LBNs in consecutive sectors of one track.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// Place of the first block.
    pub at: Physical,
    /// Index of the zone they are in.
    pub zone: usize,
    /// Number of blocks, at least one.
    pub blocks: u32,
}

/// The whole drive's map.
#[derive(Debug, Clone, PartialEq)]
pub struct Layout {
    zones: Vec<Zone>,
    /// Zones of each surface, from the outermost inwards; none where zones are of all surfaces.
    of_surface: Vec<Vec<u32>>,
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
    pub(crate) fn build(spec: &DriveSpec) -> Result<Self, BuildDriveError> {
        if spec.has_surface_zones() {
            // Where surfaces differ, each zone of the file becomes one zone a surface.
            return surface_zones::build(spec).map(|zones| Self::new(zones, spec.surfaces, true));
        }
        let mut zones: Vec<Zone> = Vec::with_capacity(spec.zones.len());
        for index in 0..spec.zones.len() {
            // Each zone begins where the one before ends, so they are built in order.
            zones.push(Zone::build(spec, index, zones.last())?);
        }
        Ok(Self::new(zones, spec.surfaces, false))
    }

    /// `by_surface`: the zones of the outermost zone of the file, one a surface, then of the next.
    fn new(zones: Vec<Zone>, surfaces: u32, by_surface: bool) -> Self {
        let blocks =
            zones.last().map_or(0, |zone| (zone.of_file.first_lbn + zone.of_file.blocks).get());
        let mut segments: Vec<(Segment, u32)> = zones
            .iter()
            .enumerate()
            // Zones without data would have segments with the same first LBN as the next zone.
            .filter(|(_, zone)| zone.blocks > 0)
            .flat_map(|(index, zone)| zone.segments.iter().map(move |&s| (s, index as u32)))
            .collect();
        // Zones of several surfaces take turns in the order of LBNs, so their segments interleave.
        segments.sort_unstable_by_key(|(segment, _)| segment.first_lbn);
        let surfaces_apart = if by_surface { surfaces } else { 0 };
        let of_surface = (0..surfaces_apart)
            .map(|surface| (surface..zones.len() as u32).step_by(surfaces as usize).collect())
            .collect();
        // About 4,096 buckets: small enough for the cache, and few segments begin in each.
        let bucket_shift = (blocks / BUCKETS).max(1).next_power_of_two().ilog2();
        let buckets = (0..=(blocks >> bucket_shift))
            .map(|bucket| {
                let first = bucket << bucket_shift;
                (segments.partition_point(|(s, _)| s.first_lbn <= first).max(1) - 1) as u32
            })
            .collect();
        Self { zones, of_surface, blocks, surfaces, segments, buckets, bucket_shift }
    }

    /// Capacity.
    pub fn blocks(&self) -> Blocks {
        Blocks::new(self.blocks)
    }

    /// Zones from the outermost inwards; where surfaces differ, all of the outermost zone of the file,
    /// one a surface, then all of the next.
    pub fn zones(&self) -> &[Zone] {
        &self.zones
    }

    /// True if each surface has separate zones.
    pub fn has_surface_zones(&self) -> bool {
        !self.of_surface.is_empty()
    }

    /// Zones of the file from the outermost inwards, each with the index of a zone that it consists of.
    pub fn file_zones(&self) -> impl DoubleEndedIterator<Item = (usize, FileZone)> {
        let step = if self.has_surface_zones() { self.surfaces as usize } else { 1 };
        let zones = self.zones.iter().enumerate().step_by(step);
        zones.map(|(index, zone)| (index, zone.of_file))
    }

    /// Heads.
    pub fn surfaces(&self) -> u32 {
        self.surfaces
    }

    /// Place of `lbn` on the media. Panics beyond the capacity.
    pub fn locate(&self, lbn: Lbn) -> Physical {
        self.run(lbn, 1).at
    }

    /// Place of `lbn`, and the number of the `wanted` blocks from there on that lie in consecutive sectors
    /// of the same track. Panics beyond the capacity or when `wanted` is zero.
    #[inline(always)]
    pub fn run(&self, lbn: Lbn, wanted: u32) -> Run {
        assert!(wanted > 0, "a run of no blocks");
        let lbn = lbn.get();
        let (segment, segment_end, zone_index) = self.segment_of(lbn);
        let zone = &self.zones[zone_index];
        // A run ends at whichever comes first: the wanted blocks, a slip or spare, or the segment.
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
        // The bucket leads to the segment of its first LBN; later ones in the bucket follow it.
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
        // Without slips the first block of the track lies `sector` LBNs back; if not, a check below fails.
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
        // Positions must run like the LBNs over the whole track: no slip and no spare lies in it.
        let whole = start + sector == position && contiguous >= end - first;
        whole.then_some((Lbn::new(first), Lbn::new(end)))
    }

    fn find_track_end(&self, lbn: Lbn) -> Lbn {
        let place = self.locate(lbn);
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
        // Slips and remaps may be anywhere on the track, so every sector before it is looked up.
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
            // A remapped block stands alone: the next one lies elsewhere.
            Some(&(from, to)) if from == position => (zone.physical(to), 1),
            Some(&(from, _)) => (place, limit.min(from - position)),
            None => (place, limit),
        }
    }

    /// The block at a place; None for spares, slipped and remapped sectors, reserved blocks and
    /// places that do not exist.
    pub fn lbn_at(&self, at: Physical) -> Option<Lbn> {
        let zone = &self.zones[self.zone_at(at.cylinder, at.surface)?];
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
        // A sector that stands in for another one has that one's block.
        let position = lookup(&zone.remaps_to).unwrap_or(position);
        zone.lbn_unmapped(position).map(Lbn::new)
    }

    /// Index of the zone that holds this track.
    pub fn zone_at(&self, cylinder: u32, surface: u32) -> Option<usize> {
        let index = if self.has_surface_zones() {
            let zones = self.of_surface.get(surface as usize)?;
            let after = zones.partition_point(|&zone| begins(&self.zones[zone as usize], cylinder));
            zones[after.checked_sub(1)?] as usize
        } else {
            self.zones.partition_point(|zone| begins(zone, cylinder)).checked_sub(1)?
        };
        let zone = &self.zones[index];
        // The cylinder may lie in a gap between zones, or past the last one.
        (cylinder - zone.first_cylinder < zone.cylinders).then_some(index)
    }

    /// Angle at which the first sector of a track begins. None where there is no track.
    pub fn track_start(&self, cylinder: u32, surface: u32) -> Option<Angle> {
        let zone = self.zone_at(cylinder, surface).filter(|_| surface < self.surfaces)?;
        Some(self.zones[zone].track_start(cylinder, surface))
    }

    /// Angle at which the track at `at` begins, which is in this zone.
    #[inline]
    pub fn track_start_in(&self, zone: usize, at: Physical) -> Angle {
        self.zones[zone].track_start(at.cylinder, at.surface)
    }
}

fn track(at: Physical) -> (u32, u32) {
    (at.cylinder, at.surface)
}

fn begins(zone: &Zone, cylinder: u32) -> bool {
    zone.first_cylinder <= cylinder
}
