//! Seek curves made lower and wider.

use crate::drive::build::evaluator;
use crate::drive::error::BuildDriveError;
use crate::spec::drive::CurveSpec;

/// The curve with every time multiplied: vertical scaling, tr03 section 5.1.1. Exact to the
/// nanosecond in every form, for all of them are linear in their times.
pub fn multiply(curve: CurveSpec, factor: f64) -> CurveSpec {
    if factor == 1.0 {
        return curve;
    }
    match curve {
        CurveSpec::Table { cylinders_ms } => CurveSpec::Table {
            cylinders_ms: cylinders_ms.into_iter().map(|(d, time)| (d, ms(time, factor))).collect(),
        },
        CurveSpec::ThreePoint { single_ms, average_ms, full_ms } => CurveSpec::ThreePoint {
            single_ms: ms(single_ms, factor),
            average_ms: ms(average_ms, factor),
            full_ms: ms(full_ms, factor),
        },
        CurveSpec::Hp {
            first_ms,
            break_cylinders,
            short_ms,
            short_sqrt_ms,
            long_ms,
            long_slope_ms,
        } => CurveSpec::Hp {
            first_ms: first_ms.into_iter().map(|time| ms(time, factor)).collect(),
            break_cylinders,
            short_ms: ms(short_ms, factor),
            short_sqrt_ms: short_sqrt_ms * factor,
            long_ms: ms(long_ms, factor),
            long_slope_ms: long_slope_ms * factor,
        },
        CurveSpec::PowerLinear { single_ms, break_cylinders, break_ms, full_ms } => {
            CurveSpec::PowerLinear {
                single_ms: ms(single_ms, factor),
                break_cylinders,
                break_ms: ms(break_ms, factor),
                full_ms: ms(full_ms, factor),
            }
        }
    }
}

fn ms(time: f64, factor: f64) -> f64 {
    to_nanoseconds(time * factor)
}

/// The curve of an arm that passes `density` times the tracks in the same time: horizontal scaling,
/// tr03 section 5.1.1. What took a seek of d of the old `cylinders` now takes one of d times `density`,
/// and no seek takes less than that of one old cylinder.
///
/// A power with a line becomes a table, for no power stays at its first value over the shortest
/// distances. Three points stay as they are and are joined anew over the new cylinders, which moves a
/// time by at most one cylinder's, old or new.
pub fn stretch(
    curve: CurveSpec,
    cylinders: u32,
    density: f64,
) -> Result<CurveSpec, BuildDriveError> {
    if density == 1.0 {
        return Ok(curve);
    }
    Ok(match curve {
        CurveSpec::Table { cylinders_ms } => {
            CurveSpec::Table { cylinders_ms: stretch_table(&cylinders_ms, density) }
        }
        CurveSpec::ThreePoint { .. } => curve,
        CurveSpec::Hp {
            first_ms,
            break_cylinders,
            short_ms,
            short_sqrt_ms,
            long_ms,
            long_slope_ms,
        } => {
            let one = if break_cylinders > 1 {
                short_ms + short_sqrt_ms
            } else {
                long_ms + long_slope_ms
            };
            CurveSpec::Hp {
                first_ms: stretch_first(&first_ms, one, density),
                break_cylinders: (f64::from(break_cylinders) * density).ceil() as u32,
                short_ms,
                short_sqrt_ms: short_sqrt_ms / density.sqrt(),
                long_ms,
                long_slope_ms: long_slope_ms / density,
            }
        }
        CurveSpec::PowerLinear { break_cylinders, .. } => {
            let points = sample(&curve, break_cylinders, cylinders)?;
            CurveSpec::Table { cylinders_ms: stretch_table(&points, density) }
        }
    })
}

/// Points of a power with a line: one by one up to 20 cylinders, then a tenth farther each up to
/// the break, where straight lines between them are off by less than a thousandth.
fn sample(
    curve: &CurveSpec,
    break_cylinders: u32,
    cylinders: u32,
) -> Result<Vec<(u32, f64)>, BuildDriveError> {
    let time_at = evaluator(curve, cylinders, "seek")?;
    let below = std::iter::successors(Some(1), |d| Some(d + (d / 10).max(1)))
        .take_while(|d| *d < break_cylinders);
    let distances = below.chain([break_cylinders, cylinders - 1]);
    Ok(distances.map(|d| (d, time_at(d))).collect())
}

/// Every new point lies on the stretched curve. Points are rounded away from the shorter distances, so
/// that the last straight line, which extends beyond the table, keeps its slope.
fn stretch_table(points: &[(u32, f64)], density: f64) -> Vec<(u32, f64)> {
    let new = |old: u32| (f64::from(old) * density).ceil() as u32;
    // All that is no longer than one old cylinder takes as long.
    let mut distances = vec![1, (density.floor() as u32).max(1)];
    distances.extend(points.iter().map(|&(old, _)| new(old)));
    if let [.., (before, _), (last, _)] = points
        && new(*before) == new(*last)
    {
        distances.push(new(*last).saturating_add(1));
    }
    distances.sort_unstable();
    distances.dedup();
    distances.into_iter().map(|d| (d, time_at(d, points, density))).collect()
}

fn time_at(d: u32, points: &[(u32, f64)], density: f64) -> f64 {
    to_nanoseconds(on_lines(points, (f64::from(d) / density).max(1.0)))
}

/// The times given one by one, or that of a single cylinder, for as far as they reach now.
fn stretch_first(first_ms: &[f64], one_ms: f64, density: f64) -> Vec<f64> {
    let given = if first_ms.is_empty() { &[one_ms][..] } else { first_ms };
    let points: Vec<(u32, f64)> = (1..).zip(given.iter().copied()).collect();
    let reach = (points.len() as f64 * density).floor() as u32;
    (1..=reach)
        .map(|d| to_nanoseconds(on_lines(&points, (f64::from(d) / density).max(1.0))))
        .collect()
}

/// The time on the straight lines through these points, which begin at distance 1. A single point
/// holds everywhere.
fn on_lines(points: &[(u32, f64)], distance: f64) -> f64 {
    if let [(_, only)] = points {
        return *only;
    }
    let above = points.partition_point(|(d, _)| f64::from(*d) < distance);
    let above = above.clamp(1, points.len() - 1);
    let ((d1, t1), (d2, t2)) = (points[above - 1], points[above]);
    t1 + (t2 - t1) * (distance - f64::from(d1)) / f64::from(d2 - d1)
}

/// Milliseconds without what is finer than the model's time.
fn to_nanoseconds(ms: f64) -> f64 {
    (ms * 1e6).round() / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    const CYLINDERS: u32 = 4001;

    fn every_form() -> Vec<CurveSpec> {
        let hp = |first_ms| CurveSpec::Hp {
            first_ms,
            break_cylinders: 900,
            short_ms: 1.0,
            short_sqrt_ms: 0.1,
            long_ms: 3.1,
            long_slope_ms: 0.001,
        };
        vec![
            CurveSpec::Table {
                cylinders_ms: vec![(1, 1.2), (2, 1.1), (3, 1.3), (50, 2.0), (1000, 4.0)],
            },
            CurveSpec::ThreePoint { single_ms: 1.0, average_ms: 6.0, full_ms: 11.0 },
            hp(vec![]),
            hp(vec![0.9, 1.05]),
            CurveSpec::PowerLinear {
                single_ms: 0.6,
                break_cylinders: 1000,
                break_ms: 3.7,
                full_ms: 10.5,
            },
        ]
    }

    fn times(curve: &CurveSpec, cylinders: u32) -> Vec<f64> {
        let time_at = evaluator(curve, cylinders, "seek").unwrap();
        (1..cylinders).map(time_at).collect()
    }

    #[test]
    fn curve_forms_multiplied_at_every_distance() {
        for curve in every_form() {
            let before = times(&curve, CYLINDERS);
            let after = times(&multiply(curve.clone(), 0.8), CYLINDERS);
            for (d, (before, after)) in (1..).zip(before.iter().zip(&after)) {
                assert!((after - before * 0.8).abs() < 2e-6, "{curve:?} at {d}: {after}");
            }
        }
    }

    #[test]
    fn seek_over_same_breadth_takes_same_time() {
        for (curve, density) in every_form().into_iter().flat_map(|c| [(c.clone(), 3.0), (c, 2.0)])
        {
            let before = times(&curve, CYLINDERS);
            let cylinders = (f64::from(CYLINDERS) * density) as u32;
            let after = times(&stretch(curve.clone(), CYLINDERS, density).unwrap(), cylinders);
            let one_cylinder = |d: usize| (before[d] - before[d - 1]).abs() + 1e-3;
            for d in 1..before.len() {
                let now = after[(d as f64 * density) as usize - 1];
                let apart = (now - before[d - 1]).abs();
                assert!(apart < one_cylinder(d), "{curve:?} x{density} at {d}: {now}");
            }
        }
    }

    #[test]
    fn seek_never_below_old_single_cylinder() {
        for curve in every_form() {
            let single = times(&curve, CYLINDERS)[0];
            let after = times(&stretch(curve.clone(), CYLINDERS, 4.0).unwrap(), 4 * CYLINDERS);
            assert_eq!(after[0], to_nanoseconds(single), "{curve:?}");
            if !matches!(curve, CurveSpec::ThreePoint { .. }) {
                assert!(after[..4].iter().all(|t| (t - single).abs() < 1e-6), "{curve:?}");
            }
        }
    }

    #[test]
    fn curve_shortens_with_tracks_farther_apart() {
        for curve in every_form() {
            let before = times(&curve, CYLINDERS);
            let after = times(&stretch(curve.clone(), CYLINDERS, 0.5).unwrap(), CYLINDERS / 2);
            for d in 1..after.len() {
                let (old, shorter) = (2 * d - 1, (2 * d).max(3) - 3);
                let a_new_cylinder = (before[old] - before[shorter]).abs() + 1e-3;
                let apart = (after[d - 1] - before[old]).abs();
                assert!(apart < a_new_cylinder, "{curve:?} at {d}: {apart}");
            }
        }
    }

    #[test]
    fn curve_table_of_one_keeps_slope() {
        let table = CurveSpec::Table { cylinders_ms: vec![(1, 1.0), (2, 2.0), (4, 3.0)] };
        let shrunk = stretch(table, 100, 0.2).unwrap();
        // Distance d becomes 5 d: half a millisecond a cylinder from 3 ms at 4.
        assert_eq!(shrunk, CurveSpec::Table { cylinders_ms: vec![(1, 3.5), (2, 6.0)] });
    }
}
