//! Bands, surfaces and holes, from the tracks of a drive whose surfaces differ in density.
//!
//! ```text
//!   stretches   480 x 60 | 480 x 57 | 471 x 120 | 455 x 120 | ...    blocks a track x tracks
//!   pieces      surface 0: 120 tracks, a hole of 3                   a band on one surface
//!   zones       pieces whose densities come again after every band
//! ```
//!
//! A piece has as many tracks as most stretches have. Where it has fewer, the angles say which are
//! missing; where skews of missing tracks make whole turns, the last ones are taken to be missing.

use std::cmp::Reverse;

use freewheel_model::drive::spec::{Hole, ZoneSpec};

use super::clock::{fold, signed};
use super::layout::turn;
use super::limits::HEADS_MAX;
use super::track_map::TrackStretch;

/// Angles of pieces that agree to this part of a turn are the same.
const SAME_ANGLE: f64 = 1.0 / 256.0;

/// The layout of a drive in bands, each surface with a density.
#[derive(Debug, Clone, PartialEq)]
pub struct SurfaceLayout {
    pub surfaces: usize,
    /// Tracks of a band on one surface.
    pub width: u64,
    /// True if odd bands go from the last surface to the first.
    pub surfaces_turn: bool,
    /// Zones in the order of their blocks.
    pub zones: Vec<SurfaceZone>,
}

/// Bands of the same densities.
#[derive(Debug, Clone, PartialEq)]
pub struct SurfaceZone {
    /// Cylinders of the zone.
    pub cylinders: u64,
    /// Blocks on each track, by surface.
    pub densities: Vec<u64>,
    /// Angle at which the first track begins, in turns.
    pub start: f64,
    /// From the last track of a piece to the first of the next in its band, in turns.
    pub track_skew: f64,
    /// From a track to the next of its piece.
    pub cylinder_skew: f64,
    /// From the last track of a band to the first of the next.
    pub band_skew: f64,
    /// Pieces in the order of their blocks.
    pub pieces: Vec<Piece>,
    /// Number of pieces that begin at another angle than the steps between pieces say.
    misplaced: usize,
}

impl SurfaceZone {
    /// Number of values that describe the zone: densities, and places of pieces that steps do not tell.
    fn values(&self) -> usize {
        self.densities.len() + self.misplaced
    }
}

/// A band on one surface.
#[derive(Debug, Clone, PartialEq)]
pub struct Piece {
    /// Blocks on each track.
    pub per_track: u64,
    /// Angle at which its first track begins, in turns.
    pub start: f64,
    skew: f64,
    /// Blocks in the order of LBNs.
    pub parts: Vec<Part>,
}

/// Consecutive tracks of a piece, or a part of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Index of the stretch.
    pub stretch: usize,
    /// First track, counted from the first of the piece.
    pub track: u64,
    pub tracks: u64,
    /// First sector on each.
    pub sector: u64,
    pub blocks: u64,
}

/// Blocks of a surface without data, as the tracks of a piece are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PieceHole {
    pub first_track: u64,
    pub last_track: u64,
    /// First sector on each.
    pub sector: u64,
    pub blocks: u64,
}

impl Piece {
    fn tracks(&self) -> u64 {
        self.parts.iter().map(|part| part.tracks).sum()
    }

    fn last_track(&self) -> u64 {
        self.parts.last().map_or(0, |part| part.track + part.tracks - 1)
    }
}

impl SurfaceLayout {
    /// The layout that makes these stretches; None if they are in no bands of surfaces that differ.
    pub fn of(stretches: &[TrackStretch]) -> Option<Self> {
        let width = most_common(stretches)?;
        let pieces = pieces(stretches, width)?;
        // Densities come again in two bands at least.
        let counts = 2..=HEADS_MAX.min(pieces.len() as u64 / 2) as usize;
        let candidates = counts.flat_map(|surfaces| [false, true].map(|turn| (surfaces, turn)));
        let layouts = candidates.map(|(surfaces, turn)| {
            let layout = Self::with(&pieces, surfaces, turn, width);
            let values: usize = layout.zones.iter().map(SurfaceZone::values).sum();
            // Of equal ones most surfaces: a narrow band of all is one zone, and several of a part of them are
            // more.
            ((values, Reverse(surfaces), turn), layout)
        });
        let ((values, ..), layout) = layouts.min_by_key(|(key, _)| *key)?;
        // Otherwise no densities come again.
        (values < pieces.len()).then_some(layout)
    }

    fn with(pieces: &[Piece], surfaces: usize, surfaces_turn: bool, width: u64) -> Self {
        let pieces = whole_bands(pieces, surfaces, surfaces_turn, width);
        let starts = zone_starts(&pieces, surfaces, surfaces_turn, width);
        let ends = starts.iter().skip(1).copied().chain([pieces.len()]);
        let zones = starts
            .iter()
            .copied()
            .zip(ends)
            .map(|(first, end)| zone(&pieces[first..end], surfaces, width))
            .collect();
        Self { surfaces, width, surfaces_turn, zones }
    }

    /// Surface that comes `order`-th in a band of a zone.
    pub fn surface_at(&self, band: usize, order: usize) -> usize {
        if self.surfaces_turn && band % 2 == 1 { self.surfaces - 1 - order } else { order }
    }

    /// Number of cylinders that hold data.
    pub fn cylinders(&self) -> u64 {
        self.zones.iter().map(|zone| zone.cylinders).sum()
    }

    /// Tracks of a band on one surface, in a zone of so many cylinders.
    pub fn width_of(&self, zone: &SurfaceZone, band: usize) -> u64 {
        self.width.min(zone.cylinders - band as u64 * self.width)
    }

    /// Sectors of the tracks of each stretch, holes counted in.
    pub(super) fn sectors_of_stretches(&self) -> impl Iterator<Item = u64> {
        let pieces = self.zones.iter().flat_map(|zone| &zone.pieces);
        pieces.flat_map(|piece| piece.parts.iter().map(|_| piece.per_track))
    }

    /// Holes of a zone's piece.
    pub fn holes(&self, zone: &SurfaceZone, piece: usize) -> Vec<PieceHole> {
        let width = self.width_of(zone, piece / self.surfaces);
        holes(&zone.pieces[piece], width)
    }

    /// Zones of a drive file. Blocks pass the head this much of a turn before they are answered;
    /// `cylinders_turn`: every other surface of a band is run through outwards.
    pub fn zone_specs(&self, cylinders_turn: bool, before: f64) -> Vec<ZoneSpec> {
        let mut first_cylinder = 0;
        let mut specs = Vec::with_capacity(self.zones.len());
        for zone in &self.zones {
            specs.push(self.zone_spec(zone, first_cylinder, cylinders_turn, before));
            first_cylinder += zone.cylinders;
        }
        specs
    }

    fn zone_spec(
        &self,
        zone: &SurfaceZone,
        first_cylinder: u64,
        cylinders_turn: bool,
        before: f64,
    ) -> ZoneSpec {
        let cylinder_skew = turn(zone.cylinder_skew);
        // What rounding takes from the tracks of a piece is in the change to the next one.
        let within = (self.width - 1) as f64 * (zone.cylinder_skew - cylinder_skew.angle().turns());
        let is_apart = signed(zone.band_skew - zone.track_skew).abs() > SAME_ANGLE;
        let band_skew = is_apart.then(|| turn(zone.band_skew + within));
        let densities: Vec<u32> = zone.densities.iter().map(|&density| density as u32).collect();
        ZoneSpec {
            first_cylinder: first_cylinder as u32,
            last_cylinder: (first_cylinder + zone.cylinders - 1) as u32,
            blocks_per_track: densities.iter().copied().max().unwrap_or(0),
            surface_blocks_per_track: densities,
            first_block: turn(zone.start - before),
            reserved_blocks: 0,
            track_skew: turn(zone.track_skew + within),
            cylinder_skew,
            band_skews: band_skew.into_iter().collect(),
            spares: 0,
            slips: Vec::new(),
            remaps: Vec::new(),
            holes: self.holes_of(zone, first_cylinder, cylinders_turn),
        }
    }

    fn holes_of(&self, zone: &SurfaceZone, first: u64, cylinders_turn: bool) -> Vec<Hole> {
        let mut all = Vec::new();
        for index in 0..zone.pieces.len() {
            let (band, order) = (index / self.surfaces, index % self.surfaces);
            let (begin, width) = (first + band as u64 * self.width, self.width_of(zone, band));
            let is_back = cylinders_turn && order % 2 == 1;
            let per_track = zone.pieces[index].per_track;
            all.extend(self.holes(zone, index).into_iter().map(|hole| {
                let ends = [
                    cylinder(hole.first_track, begin, is_back, width),
                    cylinder(hole.last_track, begin, is_back, width),
                ];
                let is_to_end = hole.sector + hole.blocks == per_track;
                Hole {
                    surface: self.surface_at(band, order) as u32,
                    first_cylinder: ends[0].min(ends[1]) as u32,
                    last_cylinder: ends[0].max(ends[1]) as u32,
                    first_block: hole.sector as u32,
                    blocks: (!is_to_end).then_some(hole.blocks as u32),
                }
            }));
        }
        all
    }
}

fn cylinder(track: u64, begin: u64, is_back: bool, width: u64) -> u64 {
    begin + if is_back { width - 1 - track } else { track }
}

/// The number of tracks that most stretches of several have, by their tracks.
fn most_common(stretches: &[TrackStretch]) -> Option<u64> {
    let mut counts = std::collections::BTreeMap::<u64, u64>::new();
    for stretch in stretches.iter().filter(|stretch| stretch.tracks > 1) {
        *counts.entry(stretch.tracks).or_default() += stretch.tracks;
    }
    counts.into_iter().max_by_key(|&(_, tracks)| tracks).map(|(width, _)| width)
}

fn pieces(stretches: &[TrackStretch], width: u64) -> Option<Vec<Piece>> {
    let changes = changes(stretches, width);
    let mut pieces: Vec<Piece> = Vec::new();
    let mut next = 0;
    while next < stretches.len() {
        let like = longest_of(stretches, next)?;
        let own = begins(&stretches[next], like);
        let exactly = |start: f64| if signed(start - own).abs() < SAME_ANGLE { own } else { start };
        let after = |last_track: u64| {
            let last = pieces.last().map(|last| last.start + last_track as f64 * last.skew);
            let changes = &changes;
            last.into_iter().flat_map(move |end| changes.iter().map(move |change| end + change))
        };
        let after = |last_track: u64| after(last_track).map(|start| exactly(fold(start)));
        // Behind a whole band; behind a narrow one, where the piece then begins with its first track; behind a
        // whole one, with a hole at its own beginning.
        let narrow = pieces.last().map_or(0, Piece::last_track);
        let expected = after(width - 1)
            .filter(|start| *start == own)
            .chain(after(narrow).filter(|start| *start == own))
            .chain(after(width - 1));
        // Where no expected angle explains as much, the piece begins a zone.
        let candidates = expected.chain([own]);
        let found = candidates.filter_map(|start| piece(stretches, next, like, start, width));
        let piece =
            found.reduce(|best, one| if one.tracks() > best.tracks() { one } else { best })?;
        next += piece.parts.len();
        pieces.push(piece);
    }
    Some(pieces)
}

/// Angle at which a stretch begins, on tracks like these.
fn begins(stretch: &TrackStretch, like: &TrackStretch) -> f64 {
    fold(stretch.start_turns - 1.0 / like.blocks_per_track as f64)
}

/// The longest stretch of the piece that begins here.
fn longest_of(stretches: &[TrackStretch], first: usize) -> Option<&TrackStretch> {
    let whole = stretches[first..].iter().find(|stretch| stretch.tracks > 1)?;
    stretches[first..]
        .iter()
        .take_while(|stretch| {
            stretch.tracks == 1 || stretch.blocks_per_track == whole.blocks_per_track
        })
        .max_by_key(|stretch| stretch.tracks)
}

/// Angles from the last track of a whole stretch to the first of the next whole one, the most frequent
/// first.
fn changes(stretches: &[TrackStretch], width: u64) -> Vec<f64> {
    let mut groups: Vec<(usize, f64)> = Vec::new();
    for pair in stretches.windows(2).filter(|pair| pair.iter().all(|one| one.tracks == width)) {
        let end = begins(&pair[0], &pair[0]) + (width - 1) as f64 * pair[0].skew_turns;
        let change = fold(begins(&pair[1], &pair[1]) - end);
        match groups.iter_mut().find(|group| signed(group.1 - change).abs() < SAME_ANGLE) {
            Some(group) => group.0 += 1,
            None => groups.push((1, change)),
        }
    }
    groups.sort_by_key(|group| std::cmp::Reverse(group.0));
    groups.into_iter().map(|(_, change)| change).collect()
}

/// The piece that begins with a stretch, at this angle; None if that stretch does not fit.
fn piece(
    stretches: &[TrackStretch],
    first: usize,
    like: &TrackStretch,
    start: f64,
    width: u64,
) -> Option<Piece> {
    let (per_track, skew) = (like.blocks_per_track, like.skew_turns);
    let mut parts: Vec<Part> = Vec::new();
    for (stretch, one) in stretches.iter().enumerate().skip(first) {
        if one.blocks_per_track > per_track || (one.tracks > 1 && one.blocks_per_track != per_track)
        {
            break;
        }
        let (track, sector) = parts.last().map_or((0, 0), |part| match part.sector + part.blocks {
            end if end < per_track => (part.track + part.tracks - 1, end),
            _ => (part.track + part.tracks, 0),
        });
        let place = |track: u64| {
            let off = fold(begins(one, like) - start - track as f64 * skew);
            if one.blocks_per_track == per_track {
                return (signed(off).abs() < SAME_ANGLE).then_some(0);
            }
            let sector = (off * per_track as f64).round() as u64 % per_track;
            (sector + one.blocks_per_track <= per_track).then_some(sector)
        };
        let tracks = track..=width.checked_sub(one.tracks)?;
        let mut places = tracks.filter_map(|at| Some((at, place(at)?)));
        let Some((at, begin)) = places.find(|&(at, begin)| at > track || begin >= sector) else {
            break;
        };
        let blocks = one.blocks_per_track;
        parts.push(Part { stretch, track: at, tracks: one.tracks, sector: begin, blocks });
    }
    (!parts.is_empty()).then_some(Piece { per_track, start, skew, parts })
}

/// First pieces of zones: bands with the same densities, and the same tracks at their ends.
fn zone_starts(pieces: &[Piece], surfaces: usize, turns: bool, width: u64) -> Vec<usize> {
    let mut starts = Vec::new();
    let mut before: Option<Vec<u64>> = None;
    let mut band_of_zone = 0;
    for (band, of_band) in pieces.chunks(surfaces).enumerate() {
        let mut densities: Vec<u64> = of_band.iter().map(|piece| piece.per_track).collect();
        if turns && band_of_zone % 2 == 1 {
            densities.reverse();
        }
        let goes_on = before.as_ref() == Some(&densities);
        if !goes_on {
            // A new zone begins with the first surface.
            if turns && band_of_zone % 2 == 1 {
                densities.reverse();
            }
            starts.push(band * surfaces);
            band_of_zone = 0;
        }
        band_of_zone += 1;
        // A narrower band ends its zone.
        before = (width_of(of_band, width) == width).then_some(densities);
    }
    starts
}

/// The pieces, and those without data that the last band lacks: the drive's capacity may end in it.
fn whole_bands(pieces: &[Piece], surfaces: usize, turns: bool, width: u64) -> Vec<Piece> {
    let mut all = pieces.to_vec();
    let of_last = all.len() % surfaces;
    if of_last == 0 || all.len() < 2 * surfaces {
        return all;
    }
    let narrow = width_of(&all[all.len() - of_last..], width);
    for _ in of_last..surfaces {
        let at = all.len();
        let [before, of_band] = [at - surfaces - 1, at - surfaces].map(|piece| &all[piece]);
        let step = of_band.start - before.start - (width - narrow) as f64 * of_band.skew;
        let start = fold(all[at - 1].start + step);
        // The band before runs through the surfaces the other way where bands turn.
        let (order, band_before) = (at % surfaces, at - surfaces - at % surfaces);
        let same = band_before + if turns { surfaces - 1 - order } else { order };
        let per_track = all[same].per_track;
        all.push(Piece { per_track, start, parts: Vec::new(), ..of_band.clone() });
    }
    all
}

/// Tracks of a band's pieces: none of them has more.
fn width_of(band: &[Piece], width: u64) -> u64 {
    let ends = band.iter().filter_map(|piece| piece.parts.last());
    ends.map(|part| part.track + part.tracks).max().unwrap_or(width)
}

fn zone(pieces: &[Piece], surfaces: usize, width: u64) -> SurfaceZone {
    let bands = pieces.len() / surfaces;
    let last = &pieces[(bands - 1) * surfaces..];
    let cylinders = (bands - 1) as u64 * width + width_of(last, width);
    let cylinder_skew = mean_skew(pieces);
    let within = (width - 1) as f64 * cylinder_skew;
    let missing = (width - width_of(last, width)) as f64;
    // As if the last band were as wide as the others.
    let start = |(at, piece): (usize, &Piece)| {
        let narrow_before = if at >= pieces.len() - surfaces { at % surfaces } else { 0 };
        fold(piece.start + narrow_before as f64 * missing * cylinder_skew)
    };
    let starts: Vec<f64> = pieces.iter().enumerate().map(start).collect();
    let steps = Steps::fit(&starts, surfaces);
    let misplaced = starts.iter().enumerate().filter(|(at, start)| {
        signed(**start - steps.due(Steps::counts(*at, surfaces))).abs() > SAME_ANGLE
    });
    let mut densities: Vec<u64> = pieces[..surfaces].iter().map(|piece| piece.per_track).collect();
    densities.truncate(surfaces);
    SurfaceZone {
        cylinders,
        densities,
        start: steps.start,
        track_skew: fold(steps.in_band - within),
        cylinder_skew,
        band_skew: fold(steps.to_next - within),
        pieces: pieces.to_vec(),
        misplaced: misplaced.count(),
    }
}

/// Mean of the skews within pieces, by their tracks.
fn mean_skew(pieces: &[Piece]) -> f64 {
    let first = pieces[0].skew;
    let sum: f64 = pieces.iter().map(|piece| weight(piece) * signed(piece.skew - first)).sum();
    let weights: f64 = pieces.iter().map(weight).sum();
    fold(first + sum / weights.max(1.0))
}

fn weight(piece: &Piece) -> f64 {
    piece.parts.iter().map(|part| part.tracks).max().unwrap_or(1).saturating_sub(1) as f64
}

/// Angles from the start of a piece to that of the next.
struct Steps {
    start: f64,
    in_band: f64,
    to_next: f64,
}

impl Steps {
    /// Steps that place the pieces best. Each is known to a part of a turn from neighbours, and all the
    /// better from pieces further on.
    fn fit(starts: &[f64], surfaces: usize) -> Self {
        let kind =
            |wanted: bool| (0..starts.len() - 1).find(|&at| ends_band(at, surfaces) == wanted);
        let in_band = kind(false).map_or(0.0, |at| step(at, starts));
        let to_next = kind(true).map_or(in_band, |at| step(at, starts));
        let mut found = Self { start: starts[0], in_band, to_next };
        let mut known = 2;
        loop {
            let count = known.min(starts.len());
            found.improve(&starts[..count], surfaces);
            if count == starts.len() {
                // Once more with all of them: some may have been off before.
                found.improve(starts, surfaces);
                return found;
            }
            known = count * 3 / 2 + 1;
        }
    }

    /// Steps within a band and to the next before a piece.
    fn counts(at: usize, surfaces: usize) -> [f64; 2] {
        let bands = at / surfaces;
        [(at - bands) as f64, bands as f64]
    }

    /// Angle at which a piece begins after so many steps.
    fn due(&self, [inside, bands]: [f64; 2]) -> f64 {
        self.start + inside * self.in_band + bands * self.to_next
    }

    /// Least squares of what the steps leave open.
    fn improve(&mut self, starts: &[f64], surfaces: usize) {
        let (mut matrix, mut right) = ([[0.0; 3]; 3], [0.0; 3]);
        for (at, start) in starts.iter().enumerate() {
            let [inside, bands] = Self::counts(at, surfaces);
            let left = signed(start - self.due([inside, bands]));
            let counts = [1.0, inside, bands];
            for row in 0..3 {
                right[row] += counts[row] * left;
                (0..3).for_each(|column| matrix[row][column] += counts[row] * counts[column]);
            }
        }
        // A step that no piece tells of stays as it is.
        (0..3).for_each(|at| matrix[at][at] += UNKNOWN);
        let all = determinant(&matrix);
        let better = std::array::from_fn::<f64, 3, _>(|column| {
            let mut replaced = matrix;
            (0..3).for_each(|row| replaced[row][column] = right[row]);
            determinant(&replaced) / all
        });
        self.start = fold(self.start + better[0]);
        self.in_band = fold(self.in_band + better[1]);
        self.to_next = fold(self.to_next + better[2]);
    }
}

fn step(at: usize, starts: &[f64]) -> f64 {
    fold(starts[at + 1] - starts[at])
}

fn ends_band(at: usize, surfaces: usize) -> bool {
    at % surfaces == surfaces - 1
}

/// Weight of a step that was not seen.
const UNKNOWN: f64 = 1e-9;

fn determinant([a, b, c]: &[[f64; 3]; 3]) -> f64 {
    a[0] * two(1, 2, b, c) - a[1] * two(0, 2, b, c) + a[2] * two(0, 1, b, c)
}

fn two(x: usize, y: usize, b: &[f64; 3], c: &[f64; 3]) -> f64 {
    b[x] * c[y] - b[y] * c[x]
}

/// Stretches without data of a piece of so many tracks; tracks of the same are one.
fn holes(piece: &Piece, width: u64) -> Vec<PieceHole> {
    let mut holes: Vec<PieceHole> = Vec::new();
    let per_track = piece.per_track;
    // First place without a known block.
    let (mut track, mut sector) = (0, 0);
    let all = piece.parts.iter().map(|part| (part.track, part.sector, Some(part)));
    for (to, at, next) in all.chain([(width, 0, None)]) {
        if to == track && at > sector {
            holes.push(part(track, sector, at));
        }
        if to > track {
            if sector > 0 {
                holes.push(part(track, sector, per_track));
                track += 1;
            }
            if to > track {
                holes.push(whole(track, to, per_track));
            }
            if at > 0 {
                holes.push(part(to, 0, at));
            }
        }
        let Some(next) = next else { break };
        let end = next.sector + next.blocks;
        let last = next.track + next.tracks - 1;
        (track, sector) = if end == per_track { (last + 1, 0) } else { (last, end) };
    }
    joined(holes)
}

fn whole(first_track: u64, end: u64, per_track: u64) -> PieceHole {
    PieceHole { first_track, last_track: end - 1, sector: 0, blocks: per_track }
}

fn part(track: u64, sector: u64, end: u64) -> PieceHole {
    PieceHole { first_track: track, last_track: track, sector, blocks: end - sector }
}

/// Parts of a piece of so many tracks between holes: the inverse of [`holes`]. Stretches are numbered.
pub(super) fn parts_between(holes: &[PieceHole], width: u64, per_track: u64) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    let mut track = 0;
    while track < width {
        let mut on_track: Vec<&PieceHole> = holes
            .iter()
            .filter(|hole| (hole.first_track..=hole.last_track).contains(&track))
            .collect();
        let next_hole = holes.iter().map(|hole| hole.first_track).filter(|at| *at > track).min();
        if on_track.is_empty() {
            let tracks = next_hole.unwrap_or(width).min(width) - track;
            let stretch = parts.len();
            parts.push(Part { stretch, track, tracks, sector: 0, blocks: per_track });
            track += tracks;
            continue;
        }
        on_track.sort_unstable_by_key(|hole| hole.sector);
        let mut sector = 0;
        for (begin, end) in on_track
            .iter()
            .map(|hole| (hole.sector, hole.sector + hole.blocks))
            .chain([(per_track, per_track)])
        {
            if begin > sector {
                let (stretch, blocks) = (parts.len(), begin - sector);
                parts.push(Part { stretch, track, tracks: 1, sector, blocks });
            }
            sector = end;
        }
        track += 1;
    }
    parts
}

fn joined(holes: Vec<PieceHole>) -> Vec<PieceHole> {
    let mut joined: Vec<PieceHole> = Vec::with_capacity(holes.len());
    for hole in holes {
        let before = joined.iter_mut().rev().find(|before| {
            before.last_track + 1 == hole.first_track
                && (before.sector, before.blocks) == (hole.sector, hole.blocks)
        });
        match before {
            Some(before) => before.last_track = hole.last_track,
            None => joined.push(hole),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use freewheel_units::Prng;

    use super::*;

    #[test]
    fn holes_and_parts_complement_each_other() {
        let mut prng = Prng::new(7, "holes");
        for _ in 0..500 {
            let (width, per_track) = (3 + prng.below(12), 8 + prng.below(30));
            // A place is data or not: the oracle.
            let mut has_data = vec![true; (width * per_track) as usize];
            for _ in 0..prng.below(4) {
                let first = prng.below(width);
                let last = (first + prng.below(3)).min(width - 1);
                let sector = prng.below(per_track);
                let end = sector + 1 + prng.below(per_track - sector);
                for track in first..=last {
                    (sector..end)
                        .for_each(|at| has_data[(track * per_track + at) as usize] = false);
                }
            }
            let mut parts = Vec::new();
            for track in 0..width {
                let row = &has_data[(track * per_track) as usize..][..per_track as usize];
                let mut sector = 0;
                for run in row.chunk_by(|a, b| a == b) {
                    let blocks = run.len() as u64;
                    if run[0] {
                        let stretch = parts.len();
                        parts.push(Part { stretch, track, tracks: 1, sector, blocks });
                    }
                    sector += blocks;
                }
            }
            let piece = Piece { per_track, start: 0.0, skew: 0.0, parts };
            let found = holes(&piece, width);
            let mut seen = vec![true; has_data.len()];
            for hole in &found {
                for track in hole.first_track..=hole.last_track {
                    let begin = track * per_track + hole.sector;
                    (begin..begin + hole.blocks).for_each(|at| seen[at as usize] = false);
                }
            }
            assert_eq!(seen, has_data);
            let mut back = vec![false; has_data.len()];
            for part in parts_between(&found, width, per_track) {
                for track in part.track..part.track + part.tracks {
                    let begin = track * per_track + part.sector;
                    (begin..begin + part.blocks).for_each(|at| back[at as usize] = true);
                }
            }
            assert_eq!(back, has_data);
        }
    }
}
