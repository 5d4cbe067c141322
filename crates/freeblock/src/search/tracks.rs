//! Blocks on each track, and those that pass in a window of time.

use std::collections::BTreeMap;
use std::sync::Arc;

use freewheel_units::{Angle, Bytes, Lbn, SimTime};
use prefetch_index::prefetch_index;

use super::cylinder_range::CylinderRange;
use super::regular_tracks::RegularTracks;
use super::track_extent::{TrackExtent, TrackId};
use freewheel_model::drive::{Drive, Layout, Physical, Position, Zone};

/// Consecutive sectors that pass wholly in a window of time; they may run on past the end of the
/// track into its beginning, but not further than they began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Passing {
    pub first: u32,
    /// A turn's sectors at most.
    pub count: u32,
}

/// A window of time, no longer than a turn, by what is at the head.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window {
    /// At its beginning.
    phase: u64,
    at: Angle,
    at_end: Angle,
    is_turn: bool,
}

/// A track's place in the turn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TrackPlace<'a> {
    zone: &'a Zone,
    start: Angle,
}

#[derive(Debug, Clone)]
struct ZonesOfTracks {
    /// `u16::MAX` where there is none.
    of_track: Vec<u16>,
    /// Entries a cylinder: one where its tracks lie in the same zone, else one a surface.
    entries: u32,
    cylinders: u32,
}

impl ZonesOfTracks {
    fn new(layout: &Layout, cylinders: u32) -> Self {
        let entries = if layout.has_surface_zones() { layout.surfaces() } else { 1 };
        let zone_of = |cylinder, surface| {
            let zone = layout.zone_at(cylinder, surface);
            zone.map_or(u16::MAX, |zone| zone.try_into().expect("below 2^16 zones"))
        };
        Self {
            of_track: (0..cylinders)
                .flat_map(|cylinder| (0..entries).map(move |surface| zone_of(cylinder, surface)))
                .collect(),
            entries,
            cylinders,
        }
    }

    #[inline]
    fn index(&self, cylinder: u32, surface: u32) -> usize {
        let surface = if self.entries == 1 { 0 } else { surface };
        (cylinder * self.entries + surface) as usize
    }

    #[inline]
    fn of(&self, cylinder: u32, surface: u32) -> usize {
        self.of_track[self.index(cylinder, surface)].into()
    }

    /// The first and the last zone that may have tracks on these cylinders.
    #[inline]
    fn between(&self, cylinders: CylinderRange) -> (usize, usize) {
        if self.entries == 1 {
            return (self.of(cylinders.first, 0), self.of(cylinders.last, 0));
        }
        let of_cylinder = |cylinder: u32| {
            let first = self.index(cylinder, 0);
            self.of_track[first..first + self.entries as usize].iter()
        };
        let first = of_cylinder(cylinders.first).min().copied().unwrap_or(u16::MAX);
        let last = of_cylinder(cylinders.last).max().copied().unwrap_or(u16::MAX);
        let entries = self.entries as usize;
        (self.of_file(first) * entries, self.of_file(last) * entries + entries - 1)
    }

    /// All of a zone of the file: a surface that begins further inwards has none here yet.
    fn of_file(&self, zone: u16) -> usize {
        usize::from(zone) / self.entries as usize
    }
}

/// All tracks of a drive with the blocks on them.
#[derive(Debug, Clone)]
pub(crate) struct Tracks {
    drive: Arc<Drive>,
    /// With the shortest seeks that it may ever have: bounds that are kept hold for them.
    fastest: Arc<Drive>,
    zones: ZonesOfTracks,
    /// Tracks with one extent.
    only: RegularTracks,
    /// Tracks with several stretches: them in order of their sectors.
    several: BTreeMap<TrackId, Vec<TrackExtent>>,
    /// Most extents of a track.
    extents_max: u32,
    stretches: u32,
}

impl Tracks {
    pub fn new(drive: &Arc<Drive>) -> Self {
        let layout = drive.layout();
        let cylinders = drive.seek().distance_max() + 1;
        let tracks = cylinders.checked_mul(layout.surfaces()).expect("below 2^32 tracks");
        let mut built = Self {
            drive: Arc::clone(drive),
            fastest: Arc::clone(drive),
            zones: ZonesOfTracks::new(layout, cylinders),
            only: RegularTracks::NONE,
            several: BTreeMap::new(),
            extents_max: 1,
            stretches: tracks,
        };
        built.find_stretches();
        built
    }

    fn find_stretches(&mut self) {
        let drive = Arc::clone(&self.drive);
        let mut only = vec![TrackExtent::NONE; self.stretches as usize];
        let (mut at, end) = (0, drive.blocks().get());
        let mut last: Option<(TrackId, TrackExtent)> = None;
        while at < end {
            let run = drive.layout().run(Lbn::new(at), u32::MAX);
            // Runs of the layout that follow each other on a track are one extent.
            let track = self.track(run.at.cylinder, run.at.surface);
            match &mut last {
                Some((on, stretch))
                    if *on == track && run.at.sector == stretch.sector + stretch.blocks =>
                {
                    stretch.blocks += run.blocks;
                }
                _ => {
                    let (sector, blocks) = (run.at.sector, run.blocks);
                    let next = (track, TrackExtent { id: track, first: at, sector, blocks });
                    if let Some((on, stretch)) = last.replace(next) {
                        self.add(&mut only, on, stretch);
                    }
                }
            }
            at += u64::from(run.blocks);
        }
        if let Some((on, stretch)) = last {
            self.add(&mut only, on, stretch);
        }
        for stretches in self.several.values_mut() {
            stretches.sort_unstable_by_key(|stretch| stretch.sector);
            self.extents_max = self.extents_max.max(stretches.len() as u32);
        }
        self.only = RegularTracks::new(&only, self.surfaces());
    }

    /// The first stretch of a track has the track's number, others have numbers beyond all tracks.
    fn add(&mut self, only: &mut [TrackExtent], track: TrackId, stretch: TrackExtent) {
        let only = &mut only[track as usize];
        if let Some(several) = self.several.get_mut(&track) {
            several.push(TrackExtent { id: self.stretches, ..stretch });
            self.stretches += 1;
        } else if only.blocks > 0 {
            let before = std::mem::replace(only, TrackExtent::NONE);
            self.several.insert(track, vec![before, TrackExtent { id: self.stretches, ..stretch }]);
            self.stretches += 1;
        } else {
            *only = stretch;
        }
    }

    /// The drive is the same but that its seeks take other times.
    pub fn predict_with(&mut self, drive: &Arc<Drive>) {
        assert_eq!(self.drive.blocks(), drive.blocks(), "the same drive");
        self.drive = Arc::clone(drive);
    }

    pub fn fastest(&self) -> &Drive {
        &self.fastest
    }

    pub fn drive(&self) -> &Arc<Drive> {
        &self.drive
    }

    pub fn surfaces(&self) -> u32 {
        self.drive.layout().surfaces()
    }

    pub fn cylinders(&self) -> u32 {
        self.zones.cylinders
    }

    pub fn all_cylinders(&self) -> CylinderRange {
        CylinderRange { first: 0, last: self.cylinders() - 1 }
    }

    /// Memory they take.
    pub fn memory(&self) -> Bytes {
        let several = self.several.values().map(Vec::capacity).sum::<usize>();
        let zones = self.zones.of_track.capacity() * size_of::<u16>();
        Bytes::new((several * size_of::<TrackExtent>() + zones) as u64) + self.only.memory()
    }

    /// Most extents of any track.
    pub fn extents_max(&self) -> u32 {
        self.extents_max
    }

    /// Above all numbers of stretches.
    pub fn stretches(&self) -> u32 {
        self.stretches
    }

    #[inline]
    pub fn track(&self, cylinder: u32, surface: u32) -> TrackId {
        cylinder * self.surfaces() + surface
    }

    /// Asks for the memory that says where a cylinder's tracks lie.
    #[inline]
    pub fn prefetch(&self, cylinder: u32) {
        prefetch_index(&self.zones.of_track, self.zones.index(cylinder, 0));
        self.only.prefetch(cylinder);
    }

    /// Stretches of a track, in order of their sectors.
    #[inline]
    pub fn for_each_stretch(&self, at: Position, mut show: impl FnMut(&TrackExtent)) {
        let track = self.track(at.cylinder, at.surface);
        if let Some(stretch) = self.only.stretch(track, at) {
            show(&stretch);
        } else if !self.several.is_empty()
            && let Some(several) = self.several.get(&track)
        {
            several.iter().for_each(show);
        }
    }

    /// The track of `block` and its stretch there.
    #[inline]
    pub fn stretch_of(&self, block: u64) -> (Position, TrackExtent) {
        let Physical { cylinder, surface, sector } = self.drive.layout().locate(Lbn::new(block));
        let (at, track) = (Position { cylinder, surface }, self.track(cylinder, surface));
        if let Some(stretch) = self.only.stretch(track, at) {
            return (at, stretch);
        }
        let several = &self.several[&track];
        let found = several.partition_point(|stretch| stretch.sector <= sector);
        (at, several[found - 1])
    }

    /// Angles of a track. None on a cylinder of no zone.
    #[inline]
    pub fn place(&self, at: Position) -> Option<TrackPlace<'_>> {
        let Position { cylinder, surface } = at;
        let zone = self.drive.layout().zones().get(self.zones.of(cylinder, surface))?;
        Some(TrackPlace { zone, start: zone.track_start(cylinder, surface) })
    }

    /// Most sectors of any track on these cylinders.
    #[inline]
    pub fn sectors_max(&self, cylinders: CylinderRange) -> u32 {
        let zones = self.drive.layout().zones();
        let (first, last) = self.zones.between(cylinders);
        if first == last
            && let Some(zone) = zones.get(first)
        {
            return zone.blocks_per_track();
        }
        zones.get(first..=last).map_or_else(|| most(zones), most).unwrap_or(0)
    }

    /// The window of `length_ns`, a turn at most, from `begin` on.
    #[inline]
    pub fn window(&self, begin: SimTime, length_ns: u64) -> Window {
        let rotation = self.drive.rotation();
        let phase = rotation.phase_ns(begin);
        let mut end_phase = phase + length_ns;
        if end_phase >= rotation.period_ns() {
            end_phase -= rotation.period_ns();
        }
        let is_turn = length_ns >= rotation.period_ns();
        let (at, at_end) = (rotation.angle_at(phase), rotation.angle_at(end_phase));
        Window { phase, at, at_end, is_turn }
    }

    /// Sectors of `place` that pass wholly within a window.
    #[inline]
    pub fn passing(&self, place: &TrackPlace<'_>, window: &Window) -> Passing {
        let Window { phase, at, at_end, is_turn } = *window;
        let sectors = place.sectors();
        // Sectors under the head at both ends of the window; edges between them are counted modulo the
        // track.
        let under = place.sector_at(at);
        let under_at_end = place.sector_at(at_end);
        let forward = u64::from((at_end - place.start).steps());
        let from = u64::from((at - place.start).steps());
        // Edges of sectors in (phase, phase + length].
        let mut edges = under_at_end + sectors - under;
        if forward >= from && !is_turn {
            edges -= sectors;
        }
        // A sector whose edge passes in this very nanosecond passes wholly.
        let starts_now = self.edge_ns(place, under) == phase;
        let first = if starts_now { under } else { under + 1 };
        let count = if starts_now { edges } else { edges.saturating_sub(1) };
        Passing { first: if first == sectors { 0 } else { first }, count }
    }

    /// Phase at which a sector begins; `sector` may be the number of sectors.
    #[inline]
    pub fn edge_ns(&self, place: &TrackPlace<'_>, sector: u32) -> u64 {
        self.drive.rotation().edge_ns(place.zone.sector_angle(place.start, sector))
    }
}

/// Cylinders of no zone may stand at either end.
fn most(zones: &[Zone]) -> Option<u32> {
    zones.iter().map(Zone::blocks_per_track).max()
}

impl Window {
    /// Nanoseconds into the turn at its beginning.
    #[inline]
    pub fn phase(&self) -> u64 {
        self.phase
    }
}

impl TrackPlace<'_> {
    /// Angle at which its first sector begins.
    #[inline]
    pub fn start(&self) -> Angle {
        self.start
    }

    /// Sectors on the track.
    #[inline]
    pub fn sectors(&self) -> u32 {
        self.zone.blocks_per_track()
    }

    /// The last sector that has begun when `angle` is at the head.
    #[inline]
    pub fn sector_at(&self, angle: Angle) -> u32 {
        // Largest k with floor(k * 2^32 / sectors) <= turned.
        let turned = u64::from((angle - self.start).steps());
        (((turned + 1) * u64::from(self.sectors()) - 1) >> 32) as u32
    }

    /// Steps of an angle from the track's beginning to that of a sector; `sector` may be the number
    /// of sectors.
    #[inline]
    pub fn turned(&self, sector: u32) -> u64 {
        self.zone.sector_steps(sector)
    }

    /// Most sectors that lie wholly within `steps` of an angle.
    #[inline]
    pub fn sectors_within(&self, steps: u64) -> u64 {
        // Edges are rounded down to steps, so a sector may seem shorter by a step.
        ((steps + 1) * u64::from(self.sectors())) >> 32
    }

    /// The first sector that begins `turned` steps of an angle or more after the track's beginning; at
    /// least the number of sectors from a turn on.
    #[inline]
    pub fn first_sector_from(&self, turned: u64) -> u32 {
        // Smallest k with floor(k * 2^32 / sectors) >= turned.
        (turned * u64::from(self.sectors())).div_ceil(1 << 32) as u32
    }
}

impl Passing {
    /// Sectors from the first to the end of the track, and from its beginning on: `from..to` each.
    #[inline]
    pub fn parts(&self, sectors: u32) -> [(u32, u32); 2] {
        let end = self.first + self.count;
        [(self.first, end.min(sectors)), (0, end.saturating_sub(sectors).min(self.first))]
    }
}

/// Blocks of `stretch` in the sectors `part`: `from..to`, empty when `from >= to`.
#[inline]
pub(crate) fn blocks_in(stretch: &TrackExtent, part: (u32, u32)) -> (u64, u64) {
    let from = part.0.max(stretch.sector);
    let to = part.1.min(stretch.sector + stretch.blocks).max(from);
    (block(from, stretch), block(to, stretch))
}

fn block(sector: u32, stretch: &TrackExtent) -> u64 {
    stretch.first + u64::from(sector) - u64::from(stretch.sector)
}
