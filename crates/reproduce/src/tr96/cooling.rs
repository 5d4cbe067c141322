//! Table 6: skewed access, with and without disk cooling. Medians over seeds, as rank 1 alone gets a tenth
//! of the requests, and results hang on the size of its file.

use freewheel_model::array::cooling::{CoolingSpec, CoolingUnit, MoverSpec};
use freewheel_model::array::heat::{HeatAmount, HeatSpec, History};
use freewheel_sim::config::ConfigError;
use freewheel_sim::files::{Cooling, CoolingRule, CoolingStep, FilesResult};
use freewheel_units::Blocks;
use rayon::prelude::*;

use super::workload::{Array, Method};
use crate::tr03::{dots, line, lines};
use crate::{Context, Outcome, Row};

const METHODS: [(&str, Method); 2] = [("Gopt140", Method::GOPT_140), ("Track", Method::TRACK)];

/// Rates of table 6 where skew matters, with the paper's responses in ms: uncooled, then cooled.
const BY_RATE: [(f64, [[f64; 2]; 2]); 3] = [
    (110.0, [[176.13, 117.80], [117.20, 109.72]]),
    (120.0, [[f64::INFINITY, 203.30], [152.74, 163.72]]),
    (125.0, [[f64::INFINITY, 438.65], [188.88, 221.42]]),
];

/// 120 requests a second: the rate of which the paper states utilisations.
const AT_120: usize = 1;

/// tr96 section 4.1.2: a step every 100 requests, whole extents, delta of 5 %. The paper does not state k.
pub(super) fn cooling() -> Cooling {
    Cooling {
        rule: CoolingRule::default(),
        daemon: CoolingSpec {
            threshold: 0.05,
            queue_veto: false,
            unit: CoolingUnit::Extents,
            candidates_max: 32,
        },
        heat: HeatSpec {
            accesses: 25,
            accesses_min: 10,
            history: History::Accesses,
            extents_max: 1_000_000,
        },
        amount: HeatAmount::Blocks,
        step: CoolingStep::Requests(100),
        near_hot: false,
        waits: false,
        copies_first: false,
        mover: MoverSpec { piece: Blocks::new(770), rate: None },
    }
}

const SEEDS: u64 = 5;

/// Requests of a run. The first fifth, in which most moves happen, counts in no response.
const REQUESTS: u64 = 80_000;

/// One run of a seed.
struct Cell {
    result: FilesResult,
    moves: u64,
    moved_mib: f64,
}

/// Runs of a rate, a method and a seed: not cooled, and cooled.
struct Pair {
    rate: usize,
    method: usize,
    cells: [Cell; 2],
}

/// All rates of a method and a seed, for which files are placed once.
fn run(
    context: &Context<'_>,
    method: usize,
    seed: u64,
    rates: &[usize],
) -> Result<Vec<Pair>, ConfigError> {
    let array = Array::new(context.seed + seed)?;
    let map = array.place(METHODS[method].1);
    let cell = |rate: usize, cooling: Option<Cooling>| {
        let loads = array.skewed(BY_RATE[rate].0);
        let (result, work) = array.run_cooled(&map.clone(), &loads, REQUESTS, cooling)?;
        let moved_mib = work.blocks.get() as f64 / 2048.0;
        Ok::<Cell, ConfigError>(Cell { result, moves: work.moves, moved_mib })
    };
    let pair = |&rate: &usize| {
        Ok(Pair { rate, method, cells: [cell(rate, None)?, cell(rate, Some(cooling()))?] })
    };
    rates.iter().map(pair).collect()
}

pub(crate) fn tab6(context: &Context<'_>) -> Result<Outcome, ConfigError> {
    // In short runs one rate alone, with all its requests: cooling takes time.
    let rates: &[usize] = if context.options.quick { &[AT_120] } else { &[0, AT_120, 2] };
    let all: Vec<(usize, u64)> =
        (0..METHODS.len()).flat_map(|method| (0..SEEDS).map(move |seed| (method, seed))).collect();
    let pairs: Vec<Vec<Pair>> = all
        .par_iter()
        .map(|&(method, seed)| run(context, method, seed, rates))
        .collect::<Result<_, _>>()?;
    let of = |rate: usize, method: usize| -> Vec<&Pair> {
        let all = pairs.iter().flatten();
        all.filter(|pair| (pair.rate, pair.method) == (rate, method)).collect()
    };
    let mut rows = utilisation(context, &of(AT_120, 1));
    let mut series = Vec::new();
    for (method, (name, _)) in METHODS.iter().enumerate() {
        for (cooled, what) in ["not cooled", "cooled"].into_iter().enumerate() {
            let point = |&rate: &usize| {
                (BY_RATE[rate].0, median(&of_cells(&of(rate, method), cooled), RESPONSE))
            };
            let ours = rates.iter().map(point).filter(|at| at.1 < 1000.0).collect();
            series.push(line(&format!("{name}, {what}"), ours));
            let paper = BY_RATE.iter().map(|(rate, ms)| (*rate, ms[cooled][method]));
            let paper = paper.filter(|at| at.1 < 1000.0).collect();
            series.push(dots(&format!("{name}, {what}, paper"), paper));
        }
        for &rate in rates {
            rows.push(gain(context, name, BY_RATE[rate].0, &of(rate, method)));
        }
    }
    Ok(Outcome { rows, figures: vec![lines("requests a second", "mean response, ms", series)] })
}

/// Cells of pairs: 0 not cooled, 1 cooled.
fn of_cells<'a>(pairs: &[&'a Pair], cooled: usize) -> Vec<&'a Cell> {
    pairs.iter().map(|pair| &pair.cells[cooled]).collect()
}

type Of = fn(&Cell) -> f64;

const RESPONSE: Of = |cell| cell.result.response.mean_ns / 1e6;
const HOTTEST: Of =
    |cell| cell.result.disks.iter().map(|disk| disk.utilisation).fold(0.0, f64::max);
const MEAN: Of = |cell| {
    let disks = &cell.result.disks;
    disks.iter().map(|disk| disk.utilisation).sum::<f64>() / disks.len() as f64
};

fn sorted(cells: &[&Cell], of: Of) -> Vec<f64> {
    let mut values: Vec<f64> = cells.iter().map(|cell| of(cell)).collect();
    values.sort_by(f64::total_cmp);
    values
}

fn median(cells: &[&Cell], of: Of) -> f64 {
    sorted(cells, of)[cells.len() / 2]
}

fn range(cells: &[&Cell], of: Of) -> String {
    let values = sorted(cells, of);
    format!("{:.4} to {:.4} over {} seeds", values[0], values[values.len() - 1], values.len())
}

/// Utilisation under Track at 120 requests a second.
fn utilisation(context: &Context<'_>, pairs: &[&Pair]) -> Vec<Row> {
    let [old, new] = [0, 1].map(|cooled| of_cells(pairs, cooled));
    let row = |what: &str, paper, cells: &[&Cell], of| {
        let quantity = format!("Track, lambda 120: {what}");
        let row = context.row(&quantity, "", paper, 0.06, median(cells, of));
        row.noted(range(cells, of))
    };
    vec![
        row("mean utilisation", 0.79, &old, MEAN),
        row("hottest disk's utilisation", 0.94, &old, HOTTEST),
        row("hottest disk's utilisation, cooled", 0.89, &new, HOTTEST),
    ]
}

/// Cooling must help where the hottest disk is busy for more than 85 % of the time. Seeds differ a
/// hundredfold, so each is compared with itself, and the median of these ratios counts.
fn gain(context: &Context<'_>, name: &str, rate: f64, pairs: &[&Pair]) -> Row {
    let [old, new] = [0, 1].map(|cooled| of_cells(pairs, cooled));
    let mut ratios: Vec<f64> =
        old.iter().zip(&new).map(|(old, new)| RESPONSE(new) / RESPONSE(old)).collect();
    ratios.sort_by(f64::total_cmp);
    let hottest = median(&old, HOTTEST);
    let most = if hottest > 0.85 { 1.0 } else { 1.05 };
    let quantity = format!("{name}, lambda {rate}: response cooled over not cooled");
    let moves = median(&new, |cell| cell.moves as f64);
    let mib = median(&new, |cell| cell.moved_mib);
    context.row_in(&quantity, "", [0.0, most], ratios[ratios.len() / 2]).noted(format!(
        "{:.2} to {:.2} over {SEEDS} seeds; medians {:.0} and {:.0} ms; hottest disk {hottest:.2} busy; {moves:.0} moves, {mib:.0} MiB",
        ratios[0],
        ratios[ratios.len() - 1],
        median(&old, RESPONSE),
        median(&new, RESPONSE)
    ))
}
