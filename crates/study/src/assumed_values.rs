//! Sensitivity of a result to values of the drive that no data sheet gives.
//!
//! Drive files say of every value where it comes from. Those that are assumed are moved here, one after the
//! other, by what the values of drives of a class differ among each other. The trace runs once with each.
//!
//! Non-goals: two values moved together, and values that only a measurement could bound.

use freewheel_model::drive::scale::Scaling;
use freewheel_model::drive::spec::{ByOp, Direction, DriveSpec, Mapping, Turn, ZoneSpec};
use freewheel_model::electronics::spec::{AfterOp, OverheadSpec};
use freewheel_model::sched::PolicySpec;
use freewheel_sim::config::ConfigError;
use freewheel_sim::experiment::Experiment;
use freewheel_units::{Bytes, SimDuration};
use rayon::prelude::*;
use serde::Serialize;

use crate::changes::{Goal, Move, relative};
use crate::progress::WorkCounter;

/// A study's goal when assumed values are others.
#[derive(Debug, Clone, Serialize)]
pub struct AssumedValues {
    /// Values that were moved, the one that matters most first.
    pub moved: Vec<MovedValue>,
    /// Keys of assumed values that were not: no run of the model can tell.
    pub not_moved: Vec<String>,
}

/// An assumed value that was moved.
#[derive(Debug, Clone, Serialize)]
pub struct MovedValue {
    /// Key, or beginning of the keys, in the drive file.
    pub key: &'static str,
    /// Size of the change, in words.
    pub by: &'static str,
    /// Changes of the study's goal as (new - old) / old, one for each move on which the trace fits.
    pub changes: Vec<f64>,
    /// The move with the largest change.
    #[serde(skip)]
    pub(crate) largest: Option<Move>,
}

impl MovedValue {
    /// The largest change, without its sign.
    pub fn most(&self) -> f64 {
        self.changes.iter().copied().map(f64::abs).fold(0.0, f64::max)
    }
}

impl AssumedValues {
    /// The largest change, without its sign.
    pub fn most(&self) -> f64 {
        self.moved.first().map_or(0.0, MovedValue::most)
    }

    /// The values that matter most, moved as far as that is largest.
    pub(crate) fn first(&self, count: usize) -> impl Iterator<Item = (&'static str, Move)> {
        self.moved.iter().take(count).filter_map(|value| Some((value.key, value.largest?)))
    }
}

/// A value and how well it is known.
struct Row {
    /// The beginning of its keys.
    key: &'static str,
    by: &'static str,
    moves: [Move; 2],
}

/// Moves of all values. Each is about as far as the published values of drives of a class lie apart:
/// assumed. The longest key that fits counts.
const ROWS: &[Row] = &[
    Row {
        key: "seek",
        by: "10 % shorter and longer",
        moves: [
            |spec| scaled(spec, Scaling { seek: 0.9, ..Scaling::default() }),
            |spec| scaled(spec, Scaling { seek: 1.1, ..Scaling::default() }),
        ],
    },
    Row {
        key: "seek.write_settle",
        by: "half, and 0.5 ms longer",
        moves: [
            |spec| with(spec, |spec| spec.seek.write_settle = times(spec.seek.write_settle, 1, 2)),
            |spec| with(spec, |spec| spec.seek.write_settle += SimDuration::from_us(500)),
        ],
    },
    Row {
        key: "head_switch",
        by: "a quarter shorter and longer",
        moves: [
            |spec| with(spec, |spec| spec.head_switch = times(spec.head_switch, 3, 4)),
            |spec| with(spec, |spec| spec.head_switch = times(spec.head_switch, 5, 4)),
        ],
    },
    Row {
        key: "mapping",
        by: "serpentine, and by cylinder or in bands four times as wide",
        moves: [|spec| without_bands(spec, Mapping::Serpentine), with_wide_bands],
    },
    Row {
        key: "zero_latency",
        by: "off, and on",
        moves: [
            |spec| with(spec, |spec| spec.zero_latency = ByOp { read: false, write: false }),
            |spec| with(spec, |spec| spec.zero_latency = ByOp { read: true, write: true }),
        ],
    },
    Row {
        key: "zones",
        by: "5 % fewer and more blocks a track",
        moves: [
            |spec| scaled(spec, Scaling { linear_density: 0.95, ..Scaling::default() }),
            |spec| scaled(spec, Scaling { linear_density: 1.05, ..Scaling::default() }),
        ],
    },
    Row {
        key: "zones.track_skew",
        by: "a fifth smaller and larger",
        moves: [
            |spec| with_skews(spec, |zone| &mut zone.track_skew, 4),
            |spec| with_skews(spec, |zone| &mut zone.track_skew, 6),
        ],
    },
    Row {
        key: "zones.cylinder_skew",
        by: "a fifth smaller and larger",
        moves: [
            |spec| with_skews(spec, |zone| &mut zone.cylinder_skew, 4),
            |spec| with_skews(spec, |zone| &mut zone.cylinder_skew, 6),
        ],
    },
    Row {
        key: "cylinders",
        by: "5 % fewer and more",
        moves: [
            |spec| scaled(spec, Scaling { track_density: 0.95, ..Scaling::default() }),
            |spec| scaled(spec, Scaling { track_density: 1.05, ..Scaling::default() }),
        ],
    },
    Row {
        key: "electronics.buffer",
        by: "half and twice the segments",
        moves: [|spec| with_segments(spec, 1, 2), |spec| with_segments(spec, 2, 1)],
    },
    Row {
        key: "electronics.overheads",
        by: "half and twice as long",
        moves: [|spec| with_overheads(spec, 1, 2), |spec| with_overheads(spec, 2, 1)],
    },
    Row {
        key: "electronics.read_write_switch",
        by: "half, and half as long again",
        moves: [
            |spec| with_read_write_switch(spec, 1, 2),
            |spec| with_read_write_switch(spec, 3, 2),
        ],
    },
    Row {
        key: "electronics.queue",
        by: "ageing a third and three times as strong",
        moves: [|spec| with_ageing(spec, 1.0 / 3.0), |spec| with_ageing(spec, 3.0)],
    },
    Row {
        key: "electronics.bus",
        by: "a fifth faster and slower",
        moves: [|spec| with_bus(spec, 4, 5), |spec| with_bus(spec, 6, 5)],
    },
];

fn with(spec: &DriveSpec, change: impl FnOnce(&mut DriveSpec)) -> Option<DriveSpec> {
    let mut changed = spec.clone();
    change(&mut changed);
    (changed != *spec).then_some(changed)
}

/// Cylinders need no skews from band to band.
fn without_bands(spec: &DriveSpec, mapping: Mapping) -> Option<DriveSpec> {
    with(spec, |spec| {
        spec.mapping = mapping;
        spec.zones.iter_mut().for_each(|zone| zone.band_skews.clear());
    })
}

/// Bands four times as wide, each surface from the same cylinder on; by cylinder where there are none.
fn with_wide_bands(spec: &DriveSpec) -> Option<DriveSpec> {
    let Mapping::Band { cylinders, .. } = spec.mapping else {
        return without_bands(spec, Mapping::Cylinder);
    };
    let mapping = Mapping::Band {
        cylinders: cylinders * 4,
        cylinder_order: Direction::Forward,
        surface_order: Direction::Forward,
    };
    with(spec, |spec| spec.mapping = mapping)
}

fn times(time: SimDuration, factor: u64, divisor: u64) -> SimDuration {
    SimDuration::from_ns(time.ns() * factor / divisor)
}

fn scaled(spec: &DriveSpec, scaling: Scaling) -> Option<DriveSpec> {
    scaling.apply(spec).ok()
}

/// Skews of all zones times `fifths` / 5, where they stay below a turn.
fn with_skews(
    spec: &DriveSpec,
    skew: fn(&mut ZoneSpec) -> &mut Turn,
    fifths: u64,
) -> Option<DriveSpec> {
    with(spec, |spec| {
        for zone in &mut spec.zones {
            let skew = skew(zone);
            let (numerator, denominator) = skew.ratio();
            *skew = Turn::from_ratio(numerator * fifths, denominator * 5).unwrap_or(*skew);
        }
    })
}

fn with_segments(spec: &DriveSpec, factor: u32, divisor: u32) -> Option<DriveSpec> {
    with(spec, |spec| {
        if let Some(buffer) = &mut spec.electronics.buffer {
            buffer.segments = (buffer.segments * factor / divisor).max(1);
            let most = buffer.segments - u32::from(buffer.separate_write_segments);
            buffer.write_segments =
                (buffer.write_segments * factor / divisor).clamp(1, most.max(1));
            if let Some(dirty) = &mut buffer.dirty {
                buffer.write_segments = 1;
                dirty.extents = dirty.extents * factor / divisor;
                dirty.bytes =
                    Bytes::new(dirty.bytes.get() * u64::from(factor) / u64::from(divisor));
            }
        }
    })
}

fn with_overheads(spec: &DriveSpec, factor: u64, divisor: u64) -> Option<DriveSpec> {
    let of = |by: AfterOp| AfterOp {
        after_read: times(by.after_read, factor, divisor),
        after_write: times(by.after_write, factor, divisor),
    };
    with(spec, |spec| {
        spec.electronics.overheads = spec.electronics.overheads.map(|old| OverheadSpec {
            read_hit: of(old.read_hit),
            read_miss: of(old.read_miss),
            write_hit: of(old.write_hit),
            write_miss: of(old.write_miss),
            read_completion: times(old.read_completion, factor, divisor),
            write_completion: times(old.write_completion, factor, divisor),
        });
    })
}

fn with_read_write_switch(spec: &DriveSpec, factor: u64, divisor: u64) -> Option<DriveSpec> {
    with(spec, |spec| {
        let switch = &mut spec.electronics.read_write_switch;
        *switch = times(*switch, factor, divisor);
    })
}

fn with_ageing(spec: &DriveSpec, factor: f64) -> Option<DriveSpec> {
    with(spec, |spec| {
        if let Some(queue) = &mut spec.electronics.queue
            && let PolicySpec::Asatf { age_factor } = &mut queue.scheduler
        {
            *age_factor *= factor;
        }
    })
}

fn with_bus(spec: &DriveSpec, factor: u64, divisor: u64) -> Option<DriveSpec> {
    with(spec, |spec| {
        if let Some(bus) = &mut spec.electronics.bus {
            bus.block_time = times(bus.block_time, factor, divisor);
        }
    })
}

/// The row of a key; None where there is no way to move it.
fn row_of(key: &str) -> Option<&'static Row> {
    let rows = ROWS.iter().filter(|row| {
        key.strip_prefix(row.key).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    });
    rows.max_by_key(|row| row.key.len())
}

fn rows_of(keys: &[&str]) -> Vec<&'static Row> {
    ROWS.iter()
        .filter(|row| keys.iter().any(|key| row_of(key).is_some_and(|of| of.key == row.key)))
        .collect()
}

/// The most runs of [`move_values`].
pub(crate) fn count_moves(spec: &DriveSpec, keys: &[&str]) -> usize {
    rows_of(keys).into_iter().map(|row| row.moves.iter().filter_map(|by| by(spec)).count()).sum()
}

/// A goal and its quantity.
#[derive(Clone, Copy)]
pub(crate) struct GoalValue {
    pub goal: Goal,
    pub ns: f64,
}

/// Runs the experiment once for each move of its assumed values, on all cores. `keys` are those of assumed
/// values, `today` is the value as it is.
pub(crate) fn move_values(
    experiment: &Experiment,
    keys: &[&str],
    today: GoalValue,
    work: &WorkCounter<'_>,
) -> Result<AssumedValues, ConfigError> {
    let moved = rows_of(keys).into_par_iter().map(|row| moved(experiment, row, today, work));
    let mut moved = moved.collect::<Result<Vec<MovedValue>, ConfigError>>()?;
    moved.sort_by(|a, b| b.most().total_cmp(&a.most()));
    let (moved, fixed): (Vec<_>, Vec<_>) =
        moved.into_iter().partition(|value| !value.changes.is_empty());
    let unknown = keys.iter().filter(|key| row_of(key).is_none()).map(|key| (*key).to_owned());
    let not_moved = unknown.chain(fixed.into_iter().map(|value| value.key.to_owned())).collect();
    Ok(AssumedValues { moved, not_moved })
}

fn moved(
    experiment: &Experiment,
    row: &Row,
    today: GoalValue,
    work: &WorkCounter<'_>,
) -> Result<MovedValue, ConfigError> {
    let mut changes: Vec<f64> = Vec::new();
    let mut largest = None;
    for (by, spec) in row.moves.iter().filter_map(|by| Some((*by, by(&experiment.spec)?))) {
        let run = work.begin(1);
        // A smaller drive may be too small for the trace.
        let Ok(other) = experiment.on_drive(spec) else { continue };
        let result =
            other.new_run().with_progress(&mut |done, total| run.at(done, total)).simulate()?;
        let change = relative(today.ns, today.goal.ns(&result));
        if changes.iter().all(|other| other.abs() < change.abs()) {
            largest = Some(by);
        }
        changes.push(change);
    }
    Ok(MovedValue { key: row.key, by: row.by, changes, largest })
}

#[cfg(test)]
mod tests {
    use freewheel_sim::library;

    use super::*;

    #[test]
    fn assumed_value_longest_key_counts() {
        assert_eq!(row_of("seek.read.full_ms").unwrap().key, "seek");
        assert_eq!(row_of("seek.write_settle").unwrap().key, "seek.write_settle");
        assert_eq!(row_of("electronics.buffer.almost_hits").unwrap().key, "electronics.buffer");
        assert!(row_of("zoned.zone_blocks").is_none() && row_of("seeks").is_none());
    }

    #[test]
    fn assumed_value_moves_build_other_drives() {
        let spec = library::spec(library::DEFAULT_DRIVE).unwrap();
        for row in ROWS {
            for moved in row.moves.iter().filter_map(|by| by(&spec)) {
                assert_ne!(moved, spec, "{}", row.key);
                library::build(&moved, row.key).unwrap();
            }
        }
        let moves = |key: &str| {
            let row = row_of(key).unwrap();
            row.moves.iter().filter_map(|by| by(&spec)).count()
        };
        // Its zero latency is on, so one move is none.
        assert_eq!(
            ["seek", "mapping", "zero_latency", "electronics.queue"].map(moves),
            [2, 2, 1, 2]
        );
    }
}
