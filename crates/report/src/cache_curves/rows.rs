//! The curves as tables by size.

use freewheel_study::{CacheCurves, MissRatio, PolicyResponses, ResponsePoint, Responses};

use super::words::response_ms;
use crate::numbers::{miss_percent, size};
use crate::rows::Rows;

/// Miss ratio that a cell shows.
#[derive(Clone, Copy)]
pub(super) enum Unit {
    /// By request; of a sample by cache block.
    Main,
    Bytes,
}

fn miss_cell(miss_ratio: &MissRatio, unit: Unit) -> String {
    let share = match unit {
        Unit::Main => miss_ratio.main(),
        Unit::Bytes => miss_ratio.bytes,
    };
    let error = miss_ratio.standard_error.map(|error| format!(" ±{}", miss_percent(error)));
    miss_percent(share) + &error.unwrap_or_default()
}

/// Miss ratios in per cent, a row for each size and a column for each policy.
pub(super) fn miss_ratios(curves: &CacheCurves, unit: Unit) -> Rows {
    let titles = curves.curves.iter().map(|curve| curve.title.clone());
    Rows {
        head: std::iter::once("memory".to_owned()).chain(titles).collect(),
        rows: curves
            .sizes_bytes
            .iter()
            .enumerate()
            .map(|(at, &bytes)| {
                let cells =
                    curves.curves.iter().map(|curve| miss_cell(&curve.miss_ratios[at], unit));
                std::iter::once(size(bytes)).chain(cells).collect()
            })
            .collect(),
    }
}

/// The policies that were run with a drive; empty without responses.
pub(super) fn responding(curves: &CacheCurves) -> &[PolicyResponses] {
    match &curves.responses {
        Responses::Simulated(simulated) => &simulated.policies,
        Responses::NoTiming { .. } | Responses::NotAsked => &[],
    }
}

/// LRU, or else the first policy, and the best of the others by its responses: what a terminal has room for.
fn shown(curves: &CacheCurves) -> Vec<&PolicyResponses> {
    let Some((first, others)) = responding(curves).split_first() else { return Vec::new() };
    let best = others.iter().min_by(|a, b| mean(a).total_cmp(&mean(b)));
    std::iter::once(first).chain(best).collect()
}

fn mean(of: &PolicyResponses) -> f64 {
    of.points.iter().map(|at| at.reads.mean_ns).sum::<f64>()
}

fn response_cells(point: &ResponsePoint) -> [String; 2] {
    [response_ms(point.reads.mean_ns), response_ms(point.reads.p99_ns as f64)]
}

/// Miss ratios with the responses of two policies beside them; the first row is without a cache.
pub(super) fn summary(curves: &CacheCurves) -> Rows {
    let Rows { mut head, mut rows } = miss_ratios(curves, Unit::Main);
    let shown = shown(curves);
    for of in &shown {
        head.extend([format!("{} mean", of.title), "p99".to_owned()]);
        for (row, point) in rows.iter_mut().zip(&of.points) {
            row.extend(response_cells(point));
        }
    }
    if let Responses::Simulated(simulated) = &curves.responses {
        let misses = curves.curves.iter().map(|_| miss_percent(1.0));
        let responses = shown.iter().flat_map(|_| response_cells(&simulated.without_cache));
        rows.insert(0, std::iter::once("none".into()).chain(misses).chain(responses).collect());
    }
    Rows { head, rows }
}

/// Responses of one policy: reads, writes and both, in ms.
pub(super) fn responses(without_cache: &ResponsePoint, of: &PolicyResponses) -> Rows {
    let head = ["memory", "reads: mean", "p99", "writes: mean", "p99", "both: mean", "p99"];
    Rows {
        head: head.map(str::to_owned).into(),
        rows: std::iter::once(without_cache)
            .chain(&of.points)
            .map(|point| {
                let label =
                    if point.size_bytes == 0 { "none".into() } else { size(point.size_bytes) };
                let all = [&point.reads, &point.writes, &point.all];
                let cells =
                    all.into_iter().flat_map(|of| [of.mean_ns, of.p99_ns as f64].map(response_ms));
                std::iter::once(label).chain(cells).collect()
            })
            .collect(),
    }
}
