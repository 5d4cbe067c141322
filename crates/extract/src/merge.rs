//! Several samples of the same drive, by the tables of their tracks: their common layout, without the defects
//! of each.
//!
//! Samples of one model differ in defects, and some in zones and numbers of tracks. What all share is of the
//! model. The merged table has the zones of the first sample, and the holes that all of them have.

use serde::Serialize;

use super::TrackMap;
use super::clock::{fold, signed};
use super::surface_layout::{Part, PieceHole, SurfaceLayout, SurfaceZone, parts_between};
use super::track_map::TrackStretch;
use super::track_table::TrackTableError;

/// Angles of two samples that differ by less are alike.
const SAME_ANGLE: f64 = 1.0 / 256.0;
/// Times of a turn that differ by less are alike: spindles keep them to some parts in ten thousand.
const SAME_PERIOD: f64 = 1e-3;

/// Common layout of several samples, and where they agree.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrackMerge {
    /// Tracks of the first sample without the holes that are its own.
    pub map: TrackMap,
    /// Values, sample by sample.
    pub rows: Vec<MergedValue>,
    /// Holes that all samples have.
    pub shared_holes: usize,
    /// Holes of each sample that others lack.
    pub own_holes: Vec<usize>,
}

/// A value of every sample.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MergedValue {
    /// Name of the value.
    pub name: String,
    /// Value of each sample as text.
    pub values: Vec<String>,
    /// True if they are alike.
    pub agrees: bool,
}

/// Place of a hole: index of its zone, index of the piece there, and the hole.
type HolePlace = (usize, usize, PieceHole);

impl TrackMap {
    /// The layout that samples have in common. Err names the first sample that is in no bands of surfaces
    /// that differ.
    pub fn merged(samples: &[Self]) -> Result<TrackMerge, TrackTableError> {
        let layouts: Vec<SurfaceLayout> = (1..)
            .zip(samples)
            .map(|(number, sample)| {
                let layout = SurfaceLayout::of(&sample.stretches);
                layout.ok_or(TrackTableError::NoBands { number })
            })
            .collect::<Result<_, _>>()?;
        let holes: Vec<Vec<HolePlace>> = layouts.iter().map(holes).collect();
        let comparable: Vec<bool> = (0..layouts[0].zones.len())
            .map(|zone| layouts.iter().all(|layout| has_same_zones(layout, &layouts[0], zone)))
            .collect();
        let shared: Vec<HolePlace> = holes[0]
            .iter()
            .copied()
            .filter(|hole| comparable[hole.0] && holes.iter().all(|all| all.contains(hole)))
            .collect();
        let stretches = stretches(&layouts[0], &shared);
        Ok(TrackMerge {
            map: Self {
                blocks: stretches.last().map_or(0, TrackStretch::end),
                rotation_ns: samples[0].rotation_ns,
                stretches,
                commands: samples.iter().map(|sample| sample.commands).sum(),
                drive_ns: samples.iter().map(|sample| sample.drive_ns).sum(),
            },
            rows: rows(samples, &layouts),
            shared_holes: shared.len(),
            own_holes: holes.iter().map(|all| all.len() - shared.len()).collect(),
        })
    }
}

/// A skew of a zone, in turns.
type SkewOf = fn(&SurfaceZone) -> f64;

fn holes(layout: &SurfaceLayout) -> Vec<HolePlace> {
    layout
        .zones
        .iter()
        .enumerate()
        .flat_map(|(index, zone)| -> Vec<HolePlace> {
            let pieces = 0..zone.pieces.len();
            pieces
                .flat_map(|piece| {
                    layout.holes(zone, piece).into_iter().map(move |hole| (index, piece, hole))
                })
                .collect()
        })
        .collect()
}

/// True if two layouts have the same tracks up to the end of a zone.
fn has_same_zones(a: &SurfaceLayout, b: &SurfaceLayout, zone: usize) -> bool {
    (a.surfaces, a.width, a.surfaces_turn) == (b.surfaces, b.width, b.surfaces_turn)
        && a.zones.len() > zone
        && a.zones
            .iter()
            .zip(&b.zones)
            .take(zone + 1)
            .all(|(a, b)| (a.cylinders, &a.densities) == (b.cylinders, &b.densities))
}

/// Stretches of a layout with these holes alone.
fn stretches(layout: &SurfaceLayout, holes: &[HolePlace]) -> Vec<TrackStretch> {
    let mut stretches: Vec<TrackStretch> = Vec::new();
    let mut first_block = 0;
    for (index, zone) in layout.zones.iter().enumerate() {
        let mut start = zone.start;
        for (piece, of_file) in zone.pieces.iter().enumerate() {
            let band = piece / layout.surfaces;
            let width = layout.width_of(zone, band);
            let own = holes.iter().filter(|(at, of, _)| (*at, *of) == (index, piece));
            let own: Vec<PieceHole> = own.map(|(_, _, hole)| *hole).collect();
            let parts = parts_between(&own, width, of_file.per_track);
            for (at, part) in parts.iter().enumerate() {
                let sector = (part.sector + 1) as f64 / of_file.per_track as f64;
                let start = start + part.track as f64 * zone.cylinder_skew + sector;
                stretches.push(TrackStretch {
                    first_block,
                    blocks_per_track: part.blocks,
                    tracks: part.tracks,
                    start_turns: fold(start),
                    skew_turns: zone.cylinder_skew,
                    ends_track: at > 0 && ends_track(&parts[at - 1], part),
                });
                first_block += part.tracks * part.blocks;
            }
            let ends_band = piece % layout.surfaces == layout.surfaces - 1;
            let change = if ends_band { zone.band_skew } else { zone.track_skew };
            start = fold(start + (width - 1) as f64 * zone.cylinder_skew + change);
        }
    }
    stretches
}

fn ends_track(before: &Part, part: &Part) -> bool {
    before.track + before.tracks - 1 == part.track
}

fn rows(samples: &[TrackMap], layouts: &[SurfaceLayout]) -> Vec<MergedValue> {
    let mut rows = vec![
        row("surfaces", layouts, |layout| layout.surfaces.to_string()),
        row("tracks of a band on a surface", layouts, |layout| layout.width.to_string()),
        row("odd bands from the last surface", layouts, |layout| {
            String::from(if layout.surfaces_turn { "yes" } else { "no" })
        }),
        row("zones", layouts, |layout| layout.zones.len().to_string()),
        row("cylinders", layouts, |layout| layout.cylinders().to_string()),
        near(
            "turn, ms",
            samples,
            |sample| Some(sample.rotation_ns / 1e6),
            |a, b| (a - b).abs() < SAME_PERIOD * b,
        ),
    ];
    let zones = layouts.iter().map(|layout| layout.zones.len()).max().unwrap_or(0);
    for zone in 0..zones {
        let of = move |layout: &SurfaceLayout| layout.zones.get(zone).cloned();
        let number = zone + 1;
        rows.push(row(&format!("zone {number}: cylinders"), layouts, |layout| {
            text(of(layout).map(|zone| zone.cylinders.to_string()))
        }));
        rows.push(row(&format!("zone {number}: blocks a track"), layouts, |layout| {
            text(of(layout).map(|zone| {
                let all: Vec<String> = zone.densities.iter().map(u64::to_string).collect();
                all.join(" ")
            }))
        }));
        let skews: [(&str, SkewOf); 3] = [
            ("track skew", |zone| zone.track_skew),
            ("cylinder skew", |zone| zone.cylinder_skew),
            ("band skew", |zone| zone.band_skew),
        ];
        for (name, skew) in skews {
            let name = format!("zone {number}: {name}, degrees");
            rows.push(near(
                &name,
                layouts,
                move |layout: &SurfaceLayout| of(layout).map(|zone| skew(&zone) * 360.0),
                |a, b| signed(a / 360.0 - b / 360.0).abs() < SAME_ANGLE,
            ));
        }
    }
    rows
}

fn text(value: Option<String>) -> String {
    value.unwrap_or_else(|| "-".into())
}

fn row<T>(name: &str, samples: &[T], value: impl Fn(&T) -> String) -> MergedValue {
    let values: Vec<String> = samples.iter().map(value).collect();
    let agrees = values.iter().all(|value| *value == values[0]);
    MergedValue { name: name.into(), values, agrees }
}

/// A measured value, which varies a little. None where a sample lacks it.
fn near<T>(
    name: &str,
    samples: &[T],
    value: impl Fn(&T) -> Option<f64>,
    is_like: impl Fn(f64, f64) -> bool,
) -> MergedValue {
    let values: Vec<Option<f64>> = samples.iter().map(value).collect();
    let agrees = values.iter().all(|value| match (value, values[0]) {
        (Some(value), Some(first)) => is_like(*value, first),
        _ => false,
    });
    MergedValue {
        name: name.into(),
        values: values
            .iter()
            .map(|value| value.map_or("-".into(), |value| format!("{value:.3}")))
            .collect(),
        agrees,
    }
}
