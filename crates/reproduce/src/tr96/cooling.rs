//! Table 6: skewed access, with and without disk cooling. Medians over seeds, as rank 1 alone gets a tenth
//! of the requests, and results hang on the size of its file.

use freewheel_model::array::cooling::{CoolingSpec, CoolingUnit, MoverSpec};
use freewheel_model::array::heat::{HeatAmount, HeatSpec, History};
use freewheel_sim::config::ConfigError;
use freewheel_sim::files::{Cooling, FilesResult};
use freewheel_units::Blocks;
use rayon::prelude::*;

use super::tables::requests;
use super::workload::{Array, Method};
use crate::tr03::{dots, line, lines};
use crate::{Context, Outcome, Row};

const METHODS: [(&str, Method); 2] = [("Gopt140", Method::GOPT_140), ("Track", Method::TRACK)];

/// Rates of table 6 from where skew matters, with the paper's responses in ms: uncooled, then cooled.
const BY_RATE: [(f64, [[f64; 2]; 2]); 4] = [
    (100.0, [[111.87, 87.52], [110.63, 87.20]]),
    (110.0, [[176.13, 117.80], [117.20, 109.72]]),
    (120.0, [[f64::INFINITY, 203.30], [152.74, 163.72]]),
    (125.0, [[f64::INFINITY, 438.65], [188.88, 221.42]]),
];

/// tr96 section 4.1.2: a step every 100 requests, whole extents, delta of 5 %. The paper does not state k.
pub(super) fn cooling() -> Cooling {
    Cooling {
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
        step_requests: 100,
        mover: MoverSpec { piece: Blocks::new(770), rate: None },
    }
}

const SEEDS: u64 = 5;

/// One run of a seed.
struct Cell {
    result: FilesResult,
    moves: u64,
    moved_mib: f64,
}

fn run(
    context: &Context<'_>,
    method: Method,
    rate: f64,
    seed: u64,
    cooled: bool,
) -> Result<Cell, ConfigError> {
    let array = Array::new(context.options.seed + seed)?;
    let files = array.place(method);
    let loads = array.skewed(rate);
    let (result, work) =
        array.run_reads(&files, &loads, requests(context), cooled.then(cooling))?;
    let moved_mib = work.blocks.get() as f64 / 2048.0;
    Ok(Cell { result, moves: work.moves, moved_mib })
}

pub(crate) fn tab6(context: &Context<'_>) -> Result<Outcome, ConfigError> {
    let all: Vec<(usize, usize, bool, u64)> = (0..BY_RATE.len())
        .flat_map(|rate| (0..METHODS.len()).map(move |method| (rate, method)))
        .flat_map(|(rate, method)| [false, true].map(|cooled| (rate, method, cooled)))
        .flat_map(|(rate, method, cooled)| (0..SEEDS).map(move |s| (rate, method, cooled, s)))
        .collect();
    let cells: Vec<Cell> = all
        .par_iter()
        .map(|&(rate, method, cooled, seed)| {
            run(context, METHODS[method].1, BY_RATE[rate].0, seed, cooled)
        })
        .collect::<Result<_, _>>()?;
    let of = |rate: usize, method: usize, cooled: bool| -> Vec<&Cell> {
        let same =
            |key: &(usize, usize, bool, u64)| (key.0, key.1, key.2) == (rate, method, cooled);
        all.iter().zip(&cells).filter(|(key, _)| same(key)).map(|(_, cell)| cell).collect()
    };
    let mut rows = utilisation(context, &of(2, 1, false), &of(2, 1, true));
    let mut series = Vec::new();
    for (method, (name, _)) in METHODS.iter().enumerate() {
        for cooled in [false, true] {
            let points =
                |rate: usize| (BY_RATE[rate].0, median(&of(rate, method, cooled), RESPONSE));
            let ours = (0..BY_RATE.len()).map(points);
            let what = if cooled { "cooled" } else { "not cooled" };
            series
                .push(line(&format!("{name}, {what}"), ours.filter(|at| at.1 < 1000.0).collect()));
            let paper = BY_RATE.iter().map(|(rate, ms)| (*rate, ms[usize::from(cooled)][method]));
            let paper = paper.filter(|at| at.1 < 1000.0).collect();
            series.push(dots(&format!("{name}, {what}, paper"), paper));
        }
        for rate in 0..BY_RATE.len() {
            let (old, new) = (of(rate, method, false), of(rate, method, true));
            rows.push(gain(context, name, BY_RATE[rate].0, &old, &new));
        }
    }
    Ok(Outcome { rows, figures: vec![lines("requests a second", "mean response, ms", series)] })
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
fn utilisation(context: &Context<'_>, old: &[&Cell], new: &[&Cell]) -> Vec<Row> {
    let row = |what: &str, paper, cells: &[&Cell], of| {
        let quantity = format!("Track, lambda 120: {what}");
        let row = context.row(&quantity, "", paper, 0.06, median(cells, of));
        row.noted(range(cells, of))
    };
    vec![
        row("mean utilisation", 0.79, old, MEAN),
        row("hottest disk's utilisation", 0.94, old, HOTTEST),
        row("hottest disk's utilisation, cooled", 0.89, new, HOTTEST),
    ]
}

/// Cooling must help where the hottest disk is busy for more than 85 % of the time.
fn gain(context: &Context<'_>, name: &str, rate: f64, old: &[&Cell], new: &[&Cell]) -> Row {
    let (before, after) = (median(old, RESPONSE), median(new, RESPONSE));
    let hottest = median(old, HOTTEST);
    let most = if hottest > 0.85 { 1.0 } else { 1.05 };
    let quantity = format!("{name}, lambda {rate}: response cooled over not cooled");
    let moves = median(new, |cell| cell.moves as f64);
    let mib = median(new, |cell| cell.moved_mib);
    context.row_in(&quantity, "", [0.0, most], after / before).noted(format!(
        "{before:.0} to {after:.0} ms; {} and {} ms; hottest disk {:.2} busy; {moves:.0} moves, {mib:.0} MiB",
        range(old, RESPONSE),
        range(new, RESPONSE),
        hottest
    ))
}
