//! The analytic model of tr96: its choices, and its predictions against the simulation.

use freewheel_model::array::partition::{ForkJoin, Load, LoadLimit, Rules};
use freewheel_sim::config::ConfigError;
use rayon::prelude::*;

use super::tables::requests;
use super::workload::{Array, DISKS, MEAN_KB, Method};
use crate::{Context, Outcome};

pub(crate) fn model(context: &Context<'_>) -> Result<Outcome, ConfigError> {
    let array = Array::new(context.options.seed)?;
    let disk = &array.model.disk;
    let rules = Rules { fork_join: ForkJoin::SharedWaits, ..Rules::default() };
    let parallelism = disk.optimal_parallelism(MEAN_KB, DISKS, rules.service);
    let unit = libm::ceil(MEAN_KB / f64::from(parallelism));
    let load = Load { rate: 140.0, request: MEAN_KB };
    let limit = LoadLimit::of(&array.model, &load, &rules);
    let limited = limit.map_or(f64::NAN, |limit| f64::from(limit.parallelism));
    let mut rows = vec![
        context
            .row("Gopt: unit for requests of 260 KB", "KB", 8.0, 1.0, unit)
            .noted(format!("{parallelism} disks a request; ceil(260 / 32) is 9")),
        context.row("lambda 140: disks a request", "", 3.0, 1.0, limited),
    ];
    let best = |rate| best_unit(&array, rate, TRIAL);
    for (rate, paper_kb, method) in [(1.0, 5.0, Method::GOPT), (140.0, 70.0, Method::GOPT_140)] {
        let (best_kb, best_ms) = best(rate)?;
        let files = array.place(method);
        let load = array.uniform(rate);
        let ms = array.run(&files, &load, TRIAL, &mut |_| {})?.response.mean_ns / 1e6;
        let above = 100.0 * (ms / best_ms - 1.0);
        let quantity =
            format!("lambda {rate}: response with the model's unit above the best unit's");
        let note = format!("best by trial {best_kb} KB, paper {paper_kb} KB");
        rows.push(context.row_in(&quantity, "%", [-1.0, 5.0], above).noted(note));
    }
    rows.extend(errors(context, &array)?);
    Ok(Outcome { rows, figures: Vec::new() })
}

/// Requests of a trial, in short runs too: units near the best differ by a few per cent.
const TRIAL: u64 = 100_000;

/// Units in KB that are tried.
const TRIED: [u64; 10] = [3, 5, 8, 12, 20, 35, 52, 70, 87, 130];

/// The unit with the least mean response, and that response in ms.
fn best_unit(array: &Array, rate: f64, requests: u64) -> Result<(u64, f64), ConfigError> {
    let runs: Vec<(u64, f64)> = TRIED
        .par_iter()
        .map(|&kb| {
            let files = array.place(Method::Unit(kb));
            let run = array.run(&files, &array.uniform(rate), requests, &mut |_| {})?;
            Ok((kb, run.response.mean_ns / 1e6))
        })
        .collect::<Result<_, ConfigError>>()?;
    Ok(runs.into_iter().min_by(|a, b| a.1.total_cmp(&b.1)).expect("some are tried"))
}

/// Sizes in KB, disks a request, and shares of the load that saturates the disks.
const GRID: ([u64; 5], [u32; 5], [f64; 4]) =
    ([4, 32, 260, 1024, 4096], [1, 2, 4, 8, 32], [0.05, 0.3, 0.6, 0.8]);

/// Responses of both corrections for fork and join against the simulation.
fn errors(context: &Context<'_>, array: &Array) -> Result<[crate::Row; 4], ConfigError> {
    let (sizes, disks, shares) = GRID;
    let cells: Vec<(u64, u32, f64)> = sizes
        .iter()
        .flat_map(|&kb| disks.iter().map(move |&disks| (kb, disks)))
        .filter(|&(kb, disks)| kb >= u64::from(disks))
        .flat_map(|(kb, disks)| shares.iter().map(move |&share| (kb, disks, share)))
        .collect();
    let errors: Vec<[f64; 2]> = cells
        .par_iter()
        .map(|&cell| {
            let simulated = simulated_s(context, array, cell)?;
            let (kb, disks, share) = cell;
            let load = Load { rate: rate_of_share(array, kb, disks, share), request: kb as f64 };
            let error = |correction| {
                let predicted = array.model.response_s(&load, disks, correction);
                100.0 * (predicted.unwrap_or(f64::INFINITY) / simulated - 1.0)
            };
            Ok([error(ForkJoin::Paper), error(ForkJoin::SharedWaits)])
        })
        .collect::<Result<_, ConfigError>>()?;
    let mean =
        |of: usize| errors.iter().map(|error| error[of].abs()).sum::<f64>() / errors.len() as f64;
    let worst = |of: usize| errors.iter().map(|error| error[of].abs()).fold(0.0, f64::max);
    let at = |of: usize| {
        let all = errors.iter().zip(&cells);
        let (error, (kb, disks, share)) =
            all.max_by(|a, b| a.0[of].abs().total_cmp(&b.0[of].abs())).expect("a grid");
        format!("{:+.1} % with {kb} KB on {disks} disks at {:.0} %", error[of], 100.0 * share)
    };
    Ok([
        context.measured("equation 25 against simulation: mean error", "%", mean(0)),
        context
            .measured("equation 25 against simulation: largest error", "%", worst(0))
            .noted(at(0)),
        context.row_in("ours against simulation: mean error", "%", [0.0, 5.4], mean(1)),
        context
            .row_in("ours against simulation: largest error", "%", [0.0, 19.0], worst(1))
            .noted(at(1)),
    ])
}

/// Requests a second at which each disk is busy for `share` of the time.
fn rate_of_share(array: &Array, kb: u64, disks: u32, share: f64) -> f64 {
    let service = array.model.disk.service(kb as f64 / f64::from(disks));
    share * f64::from(DISKS) / (f64::from(disks) * service.mean)
}

/// Mean response of files of `kb` that each lie on `disks` disks.
fn simulated_s(
    context: &Context<'_>,
    array: &Array,
    (kb, disks, share): (u64, u32, f64),
) -> Result<f64, ConfigError> {
    let (files, loads) = array.alike(kb, disks, rate_of_share(array, kb, disks, share));
    let run = array.run(&files, &loads, (requests(context) / 4).max(25_000), &mut |_| {})?;
    Ok(run.response.mean_ns / 1e9)
}
