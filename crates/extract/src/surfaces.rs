//! Directions and places of surfaces that differ, by the times of movements between them.
//!
//! Tracks say in which order LBNs run, and not which tracks of two surfaces lie beside each other. From a track
//! on the first surface movements to the next one take the longer the further they go. So the two tracks that
//! are just in time for the same lag lie as far away on either side, and the middle of them beside it.

use freewheel_model::drive::spec::{Direction, DriveSpec, Mapping};

use super::clock::fold;
use super::limits::SAME_NS;
use super::map::ZoneMap;
use super::prober::Prober;
use super::seeks::{RESOLUTION_NS, Timer, Track};
use super::surface_layout::SurfaceLayout;
use super::track_map::TrackStretch;
use super::{ExtractError, no_time};

/// Tracks on the first surface from which each other surface is looked for; their median counts.
const ATTEMPTS: u64 = 3;
/// Tracks beside one in a hole that are tried instead.
const BESIDE_MAX: u64 = 64;

/// Surfaces with their densities, directions and places.
#[derive(Debug, Clone)]
pub(super) struct Surfaces {
    pub layout: SurfaceLayout,
    /// Every other surface of a band is run through outwards; None where it shows in no time.
    pub cylinders_turn: Option<bool>,
    /// Cylinders by which each lies further inwards than the outermost of them.
    pub offsets: Vec<u64>,
    first_cylinders: Vec<u64>,
}

/// Maps of the stretches, as movements are timed between tracks of zones. Each track counts as a cylinder.
pub(super) fn zones_of_stretches(
    stretches: &[TrackStretch],
    layout: &SurfaceLayout,
) -> Vec<ZoneMap> {
    let mut first_cylinder = 0;
    let mut zones = Vec::with_capacity(stretches.len());
    for (stretch, per_track) in stretches.iter().zip(layout.sectors_of_stretches()) {
        zones.push(ZoneMap {
            first: stretch.first_block,
            blocks: stretch.end() - stretch.first_block,
            per_track: stretch.blocks_per_track,
            heads: 1,
            first_cylinder,
            start: fold(stretch.start_turns - 1.0 / per_track as f64),
            track_skew: 0.0,
            cylinder_step: stretch.skew_turns,
            slips: Vec::new(),
            runs: None,
            in_bands: None,
        });
        first_cylinder += stretch.tracks;
    }
    zones
}

impl Surfaces {
    /// Surfaces of a layout, found by movements.
    pub fn find(timer: &mut Timer<'_, '_>, layout: SurfaceLayout) -> Result<Self, ExtractError> {
        let count = layout.surfaces;
        let first_cylinders = layout.zones.iter().scan(0, |next, zone| {
            let first = *next;
            *next += zone.cylinders;
            Some(first)
        });
        let first_cylinders = first_cylinders.collect();
        let mut found =
            Self { layout, cylinders_turn: None, offsets: vec![0; count], first_cylinders };
        timer.prober.begin("places of surfaces", count as u64);
        found.cylinders_turn = found.direction(timer)?;
        let mut places = vec![0_i64];
        for surface in 1..count {
            timer.prober.reached(surface as u64);
            places.push(found.place(timer, surface)?);
        }
        let least = places.iter().copied().min().unwrap_or(0);
        found.offsets = places.iter().map(|place| place.abs_diff(least)).collect();
        Ok(found)
    }

    /// Number of cylinders under the heads, offsets counted in.
    pub fn cylinders(&self) -> u64 {
        self.layout.cylinders() + self.offsets.iter().max().copied().unwrap_or(0)
    }

    /// Track of a band's piece; None in a hole.
    fn track_of_piece(&self, zone: usize, piece: usize, track: u64) -> Option<Track> {
        let piece = &self.layout.zones[zone].pieces[piece];
        let part = piece.parts.iter().find(|part| {
            part.blocks == piece.per_track
                && (part.track..part.track + part.tracks).contains(&track)
        })?;
        Some(Track { zone: part.stretch, track: track - part.track })
    }

    /// Track of a surface in a cylinder, as the surface counts them; None in a hole and behind the last one.
    fn track(&self, surface: usize, cylinder: u64) -> Option<Track> {
        if cylinder >= self.layout.cylinders() {
            return None;
        }
        let zone = self.first_cylinders.partition_point(|first| *first <= cylinder) - 1;
        let layout = &self.layout;
        let of_zone = &layout.zones[zone];
        let within = cylinder - self.first_cylinders[zone];
        let band = (within / layout.width) as usize;
        let step = within % layout.width;
        // The order of surfaces is its own inverse.
        let order = layout.surface_at(band, surface);
        let width = layout.width_of(of_zone, band);
        let is_back = self.cylinders_turn == Some(true) && order % 2 == 1;
        let step = if is_back { width - 1 - step } else { step };
        self.track_of_piece(zone, band * layout.surfaces + order, step)
    }

    /// Track of a surface under the heads in a cylinder.
    fn track_under(&self, surface: usize, cylinder: u64) -> Option<Track> {
        self.track(surface, cylinder.checked_sub(self.offsets[surface])?)
    }

    /// True if the second surface of a band is run through outwards: its last tracks are nearer then.
    fn direction(&self, timer: &mut Timer<'_, '_>) -> Result<Option<bool>, ExtractError> {
        let (zone, piece, width) = self.second_surface()?;
        let from = self.near(|at| self.track_of_piece(0, 0, at), 0)?;
        let mut lag = |track: u64| {
            let to = self.near(|at| self.track_of_piece(zone, piece, at), track)?;
            let lag = timer.least_lag_between(|_| [from, to])?;
            lag.ok_or_else(|| no_time("a movement to another surface"))
        };
        let (first, last) = (lag(0)?, lag(width - 1)?);
        Ok(((first - last).abs() > SAME_NS).then_some(last < first))
    }

    /// A band's piece of the second surface with data at both ends: its zone, its number there and its tracks.
    /// So far from the first band that the arm takes longer than a switch of heads, and not so far that a
    /// band's width shows in no time. In a band where a density changes an end may lie in another zone's.
    fn second_surface(&self) -> Result<(usize, usize, u64), ExtractError> {
        let layout = &self.layout;
        let cylinders = layout.cylinders();
        let first = (cylinders / 64).max(4 * layout.width).min(cylinders / 2);
        let bands = (0..).map(|more| first + more * layout.width);
        let piece_at = |cylinder: u64| {
            let zone = self.first_cylinders.partition_point(|first| *first <= cylinder) - 1;
            let band = ((cylinder - self.first_cylinders[zone]) / layout.width) as usize;
            let width = layout.width_of(&layout.zones[zone], band);
            (zone, band * layout.surfaces + 1, width)
        };
        let has_ends = |(zone, piece, width): (usize, usize, u64)| {
            let end = |place| self.near(|at| self.track_of_piece(zone, piece, at), place).is_ok();
            end(0) && end(width - 1)
        };
        let mut pieces = bands.take_while(|band| *band < cylinders).map(piece_at);
        pieces.find(|piece| has_ends(*piece)).ok_or_else(|| no_time("a movement over holes"))
    }

    /// The track nearest to a place, before or behind it.
    fn near(
        &self,
        track: impl Fn(u64) -> Option<Track>,
        place: u64,
    ) -> Result<Track, ExtractError> {
        let places = (0..BESIDE_MAX).flat_map(|by| [place.checked_add(by), place.checked_sub(by)]);
        let found = places.flatten().find_map(track);
        found.ok_or_else(|| no_time("a movement over holes"))
    }

    /// Cylinders by which a surface lies further inwards than the first.
    fn place(&self, timer: &mut Timer<'_, '_>, surface: usize) -> Result<i64, ExtractError> {
        let cylinders = self.layout.cylinders();
        let (middle, far) = (cylinders * 3 / 5, (2 * self.layout.width).min(cylinders / 5));
        let mut places = Vec::new();
        for attempt in 0..ATTEMPTS.min(far + 1) {
            let from_cylinder = middle + attempt;
            let from = self.near(|at| self.track(0, at), from_cylinder)?;
            let opposite = self.near(|at| self.track(surface, at), from_cylinder + far)?;
            let lag = timer.least_lag_between(|_| [from, opposite])?;
            let lag = lag.ok_or_else(|| no_time("a movement to another surface"))?;
            let movement = (surface, from, lag + 2.0 * RESOLUTION_NS);
            let ends = self.ends(surface);
            let [inner, outer] =
                ends.map(|end| self.last_in_time(timer, movement, [from_cylinder + far, end]));
            places.push(from_cylinder as i64 * 2 - (inner? + outer?) as i64);
        }
        places.sort_unstable();
        // Twice the distance, which is even but for the noise of times.
        Ok(places[places.len() / 2].div_euclid(2))
    }

    /// The innermost and the outermost cylinder that a surface has data near. Its last band may end before
    /// those of others.
    fn ends(&self, surface: usize) -> [u64; 2] {
        let last = self.layout.cylinders() - 1;
        let has_data = |cylinder: &u64| self.near(|at| self.track(surface, at), *cylinder).is_ok();
        let inner = (0..=last).step_by(BESIDE_MAX as usize).map(|by| last - by).find(has_data);
        [inner.unwrap_or(last), (0..=last).step_by(BESIDE_MAX as usize).find(has_data).unwrap_or(0)]
    }

    /// The last cylinder of a surface from the first to the second of two that is reached with this lag.
    fn last_in_time(
        &self,
        timer: &mut Timer<'_, '_>,
        (surface, from, lag): (usize, Track, f64),
        [mut good, mut bad]: [u64; 2],
    ) -> Result<u64, ExtractError> {
        let mut is_in_time = |cylinder: u64| {
            let to = self.near(|at| self.track(surface, at), cylinder)?;
            let found = timer.is_reached_with(lag, [from, to])?;
            found.ok_or_else(|| no_time("a movement to another surface"))
        };
        if !is_in_time(good)? || is_in_time(bad)? {
            return Err(no_time("the place of a surface"));
        }
        while good.abs_diff(bad) > 1 {
            let middle = u64::midpoint(good, bad);
            if is_in_time(middle)? {
                good = middle;
            } else {
                bad = middle;
            }
        }
        Ok(good)
    }

    /// Two tracks of a surface this far apart, in either order.
    pub fn seek_pair(&self, prober: &mut Prober<'_>, distance: u64) -> [Track; 2] {
        self.drawn(prober, |prober| {
            let surface = prober.below(self.layout.surfaces as u64) as usize;
            let near = prober.below(self.layout.cylinders() - distance);
            let pair = [near, near + distance].map(|cylinder| self.track(surface, cylinder));
            if prober.below(2) == 0 { pair } else { [pair[1], pair[0]] }
        })
    }

    /// Two tracks of a cylinder.
    pub fn switch_pair(&self, prober: &mut Prober<'_>) -> [Track; 2] {
        self.drawn(prober, |prober| {
            let count = self.layout.surfaces as u64;
            let from = prober.below(count);
            let to = (from + 1 + prober.below(count - 1)) % count;
            let cylinder = prober.below(self.cylinders());
            [from, to].map(|surface| self.track_under(surface as usize, cylinder))
        })
    }

    /// A pair of which both have data.
    fn drawn(
        &self,
        prober: &mut Prober<'_>,
        mut pair: impl FnMut(&mut Prober<'_>) -> [Option<Track>; 2],
    ) -> [Track; 2] {
        loop {
            if let [Some(from), Some(to)] = pair(prober) {
                return [from, to];
            }
        }
    }

    /// Order of the tracks of a drive file.
    pub fn mapping(&self) -> Mapping {
        Mapping::Band {
            cylinders: self.layout.width as u32,
            cylinder_order: direction_that(self.cylinders_turn == Some(true)),
            surface_order: direction_that(self.layout.surfaces_turn),
        }
    }

    /// Puts zones and surfaces into a drive file. Blocks pass the head this much of a turn before they are
    /// answered.
    pub fn put_into(&self, spec: &mut DriveSpec, answered_after: f64) {
        spec.surfaces = self.layout.surfaces as u32;
        spec.cylinders = self.cylinders() as u32;
        spec.mapping = self.mapping();
        spec.zones = self.layout.zone_specs(self.cylinders_turn == Some(true), answered_after);
        let are_even = self.offsets.iter().all(|offset| *offset == 0);
        spec.surface_offsets =
            self.offsets.iter().filter(|_| !are_even).map(|&offset| offset as u32).collect();
    }
}

fn direction_that(turns: bool) -> Direction {
    if turns { Direction::Serpentine } else { Direction::Forward }
}
