//! The analytic model of tr96: its choices, and its predictions against the simulation.

use freewheel_array::partition::{ForkJoin, Load, LoadLimit};
use freewheel_sim::config::ConfigError;
use freewheel_study::figure::Figure;
use rayon::prelude::*;

use super::workload::{Array, DISKS, MEAN_KB, Method};
use crate::tr03::{line, lines};
use crate::{Context, Outcome, Row};

pub(crate) fn model(context: &Context<'_>) -> Result<Outcome, ConfigError> {
    let array = Array::new(context.seed)?;
    let rules = Array::rules();
    let alone = array.model.disk.optimal_parallelism(MEAN_KB, DISKS, rules.service);
    let load = Load { rate: 140.0, request: MEAN_KB };
    let limited = LoadLimit::of(&array.model, &load, &rules).map_or(0, |limit| limit.parallelism);
    let mut rows = vec![
        context
            .row("Gopt: unit for requests of 260 KB", "KB", 8.0, 0.0, unit(alone) as f64)
            .deviates(9.0, 0.0, ROUNDED_UP),
        context.row_of("lambda 140: disks a request", "", [3.0; 2], [2.0, 3.0], f64::from(limited)),
    ];
    for (rate, disks, paper_kb) in [(1.0, alone, 5), (140.0, limited, 70)] {
        rows.extend(unit_rows(context, &array, rate, unit(disks), paper_kb)?);
    }
    let grid =
        Grid { array: &array, requests: if context.options.quick { SHORT_CELL } else { CELL } };
    rows.push(choice_row(context, &grid)?);
    rows.extend(errors(context, &grid)?);
    Ok(Outcome { rows, figures: vec![figure_1(&array)] })
}

fn unit(disks: u32) -> u64 {
    libm::ceil(MEAN_KB / f64::from(disks.max(1))) as u64
}

/// What figure 1 sketches: the more disks, the shorter the service of a request and the longer the time for
/// which it keeps disks busy. The paper's has no scale; here it is a request of the mean size.
fn figure_1(array: &Array) -> Figure {
    let disk = &array.model.disk;
    let drawn = vec![
        line(
            "service time",
            points(&|disks: u32| disk.service_s(MEAN_KB, disks, Array::rules().service)),
        ),
        line(
            "device-busy time",
            points(&|disks: u32| f64::from(disks) * disk.service(MEAN_KB / f64::from(disks)).mean),
        ),
    ];
    lines("disks that serve a request of 260 KB", "ms", drawn)
}

fn points(of: &dyn Fn(u32) -> f64) -> Vec<(f64, f64)> {
    (1..=DISKS).map(|disks| (f64::from(disks), 1e3 * of(disks))).collect()
}

const ROUNDED_UP: &str = "The model's best is all 32 disks, and ceil(260 / 32) is 9. The paper's 8 needs 33 to 37 disks, or rounding down.";

/// Units in KB that are tried.
const TRIED: [u64; 11] = [3, 5, 8, 9, 12, 20, 35, 52, 70, 87, 130];

/// Requests of a trial, in short runs too: units near the best differ by a few per cent.
const TRIAL: u64 = 40_000;

/// Response that the paper reaches with the best unit at 140 requests a second, in ms.
const BEST_AT_140: f64 = 110.0;

/// The response with the unit of the model beside the best of those that are tried, and with the unit that the
/// paper found best.
fn unit_rows(
    context: &Context<'_>,
    array: &Array,
    rate: f64,
    unit_kb: u64,
    paper_kb: u64,
) -> Result<Vec<Row>, ConfigError> {
    let runs: Vec<(u64, f64)> = TRIED
        .par_iter()
        .map(|&kb| {
            let files = array.place(Method::Unit(kb));
            let run = array.run(&files, &array.uniform(rate), TRIAL, &mut |_| {})?;
            Ok((kb, run.response.mean_ns / 1e6))
        })
        .collect::<Result<_, ConfigError>>()?;
    let best = runs.iter().min_by(|a, b| a.1.total_cmp(&b.1)).expect("some are tried");
    let ms = |kb: u64| runs.iter().find(|run| run.0 == kb).expect("it is tried").1;
    let quantity = format!("lambda {rate}: response with the model's unit above the best unit's");
    let above = 100.0 * (ms(unit_kb) / best.1 - 1.0);
    let row = context.row_in(&quantity, "%", [0.0, 5.0], above);
    let mut rows =
        vec![row.noted(format!("{unit_kb} KB; best by trial {} KB, paper {paper_kb} KB", best.0))];
    if rate > 1.0 {
        let quantity = format!("lambda {rate}: response with units of {paper_kb} KB");
        rows.push(context.row(&quantity, "ms", BEST_AT_140, 0.2 * BEST_AT_140, ms(paper_kb)));
    }
    Ok(rows)
}

/// Sizes of requests in KB: every width cuts them into whole KB.
const SIZES_KB: [u64; 6] = [1, 4, 32, 256, 1024, 4096];

/// Disks that a file lies on.
const WIDTHS: [u32; 6] = [1, 2, 4, 8, 16, 32];

/// Shares of the load that saturates the disks.
const LOADS: [f64; 5] = [0.05, 0.3, 0.6, 0.8, 0.9];

/// Runs of the grids.
struct Grid<'a> {
    array: &'a Array,
    requests: [u64; 2],
}

/// Sizes and loads, with the widths that a file of the size can have.
fn sizes_and_loads() -> Vec<(u64, f64, Vec<u32>)> {
    SIZES_KB
        .into_iter()
        .flat_map(|kb| {
            LOADS.map(|load| {
                (kb, load, WIDTHS.into_iter().filter(|&disks| u64::from(disks) <= kb).collect())
            })
        })
        .collect()
}

/// The worst choice of the model over all sizes and loads: how much longer responses are than with the
/// best width. The load is that of files on one disk each, which sustain the most.
fn choice_row(context: &Context<'_>, grid: &Grid<'_>) -> Result<Row, ConfigError> {
    let array = grid.array;
    let cells: Vec<(f64, String)> = sizes_and_loads()
        .par_iter()
        .map(|(kb, load, widths)| {
            let rate = saturation(array, *kb, 1) * load;
            let possible: Vec<(u32, f64)> = widths
                .iter()
                .filter_map(|&disks| {
                    let load = Load { rate, request: *kb as f64 };
                    let seconds = array.model.response_s(&load, disks, ForkJoin::SharedWaits);
                    seconds.map(|seconds| (disks, seconds))
                })
                .collect();
            let chosen = possible.iter().min_by(|a, b| a.1.total_cmp(&b.1)).expect("one disk can");
            let mut simulated = Vec::new();
            for &(disks, _) in &possible {
                simulated.push((disks, grid.simulated_s(*kb, disks, rate)?));
            }
            let best = simulated.iter().min_by(|a, b| a.1.total_cmp(&b.1)).expect("one disk can");
            let own = simulated.iter().find(|run| run.0 == chosen.0).expect("it is possible");
            let above = 100.0 * (own.1 / best.1 - 1.0);
            let at = format!(
                "{kb} KB at {:.0} %: {} disks a file, best {}",
                100.0 * load,
                own.0,
                best.0
            );
            Ok((above, at))
        })
        .collect::<Result<_, ConfigError>>()?;
    let worst = cells.iter().max_by(|a, b| a.0.total_cmp(&b.0)).expect("a grid");
    let quantity = "all sizes and loads: response with the model's width above the best width's";
    Ok(context.row_in(quantity, "%", [0.0, 5.0], worst.0).own().noted(worst.1.clone()))
}

/// Responses of both corrections for fork and join against the simulation.
fn errors(context: &Context<'_>, grid: &Grid<'_>) -> Result<[Row; 4], ConfigError> {
    let array = grid.array;
    let cells: Vec<(u64, f64, u32)> = sizes_and_loads()
        .into_iter()
        .flat_map(|(kb, load, widths)| widths.into_iter().map(move |disks| (kb, load, disks)))
        .collect();
    let errors: Vec<[f64; 2]> = cells
        .par_iter()
        .map(|&(kb, load, disks)| {
            let rate = saturation(array, kb, disks) * load;
            let simulated = grid.simulated_s(kb, disks, rate)?;
            let load = Load { rate, request: kb as f64 };
            let error = |correction| {
                let predicted = array.model.response_s(&load, disks, correction);
                100.0 * (predicted.unwrap_or(f64::INFINITY) / simulated - 1.0)
            };
            Ok([error(ForkJoin::Paper), error(ForkJoin::SharedWaits)])
        })
        .collect::<Result<_, ConfigError>>()?;
    let mean =
        |of: usize| errors.iter().map(|error| error[of].abs()).sum::<f64>() / errors.len() as f64;
    let worst = |of: usize| {
        let all = errors.iter().zip(&cells);
        let (error, (kb, load, disks)) =
            all.max_by(|a, b| a.0[of].abs().total_cmp(&b.0[of].abs())).expect("a grid");
        let share = 100.0 * load;
        let at = format!("{:+.1} % with {kb} KB on {disks} disks at {share:.0} %", error[of]);
        (error[of].abs(), at)
    };
    let ([paper, ours], [paper_at, ours_at]) = {
        let (paper, ours) = (worst(0), worst(1));
        ([paper.0, ours.0], [paper.1, ours.1])
    };
    Ok([
        context.measured("equation 25 against simulation: mean error", "%", mean(0)),
        context
            .measured("equation 25 against simulation: largest error", "%", paper)
            .noted(paper_at),
        context.row_in("ours against simulation: mean error", "%", [0.0, 5.4], mean(1)).own(),
        context
            .row_in("ours against simulation: largest error", "%", [0.0, 19.0], ours)
            .own()
            .noted(ours_at),
    ])
}

/// Requests a second at which the disks are always busy.
fn saturation(array: &Array, kb: u64, disks: u32) -> f64 {
    let service = array.model.disk.service(kb as f64 / f64::from(disks));
    f64::from(DISKS) / (f64::from(disks) * service.mean)
}

/// Share of the load from which on a mean needs many requests.
const BUSY: f64 = 0.7;

/// Requests of each cell of the grids, below that share and above it.
const CELL: [u64; 2] = [10_000, 50_000];

/// The same in short runs.
const SHORT_CELL: [u64; 2] = [5_000, 20_000];

impl Grid<'_> {
    /// Mean response of files of `kb` that each lie on `disks` disks.
    fn simulated_s(&self, kb: u64, disks: u32, rate: f64) -> Result<f64, ConfigError> {
        let is_busy = rate > BUSY * saturation(self.array, kb, disks);
        let (files, loads) = self.array.alike(kb, disks, rate);
        let requests = self.requests[usize::from(is_busy)];
        let run = self.array.run(&files, &loads, requests, &mut |_| {})?;
        Ok(run.response.mean_ns / 1e9)
    }
}
