//! Read caches of tr03 by size and block size (figures 4, 8 and A-1).

use freewheel_sim::config::ConfigError;
use freewheel_study::fit::{Fit, Form, fit};
use freewheel_units::Bytes;

use super::tr03::{Bench, Expected, Runs, Variant, dots, line, lines_log, values, with_traces};
use super::tr03_measure::READ_MISSES;
use super::tr03_system::{Base, System};
use super::tr03_traces::TraceHere;
use super::{Context, Outcome, Row};

/// Cache sizes in MiB.
const MEBIBYTES: [f64; 7] = [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0];

/// Cache sizes in per cent of the storage used.
const PERCENTAGES: [f64; 8] = [0.06, 0.12, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0];

fn mebibytes(size: f64) -> Bytes {
    Bytes::new((size * 1024.0 * 1024.0) as u64)
}

/// This much of the storage used, in blocks of 4 KiB.
pub(super) fn share(trace: &TraceHere, percent: f64) -> Bytes {
    let blocks = (trace.storage_used.get() as f64 * percent / 100.0 / 4096.0) as u64;
    Bytes::new(blocks.max(1) * 4096)
}

/// A base for each size.
fn of_sizes<'a>(
    base: Base,
    sizes: &'a [f64],
    change: impl Fn(&mut System, &TraceHere, f64) + Sync + Copy + 'a,
) -> impl Iterator<Item = Variant<'a>> {
    sizes
        .iter()
        .map(move |&size| Variant::new(base, move |system, trace| change(system, trace, size)))
}

/// Mean misses in per cent by size.
fn misses(bench: &Bench<'_>, sizes: &[f64], runs: &[Runs]) -> Vec<(f64, f64)> {
    sizes
        .iter()
        .zip(runs)
        .map(|(&size, runs)| (size, 100.0 * bench.mean(&values(runs, READ_MISSES))))
        .collect()
}

pub(super) fn fig4(context: &Context<'_>) -> Result<Outcome, ConfigError> {
    with_traces(context, |bench| {
        let absolute = of_sizes(Base::Poor, &MEBIBYTES, |system, _, size| {
            system.without_prefetch();
            system.cache.size = mebibytes(size);
        });
        let relative = of_sizes(Base::Rich, &PERCENTAGES, |system, trace, size| {
            system.without_prefetch();
            system.cache.size = share(trace, size);
        });
        let runs = bench.run(&absolute.chain(relative).collect::<Vec<Variant<'_>>>())?;
        let (absolute, relative) = runs.split_at(MEBIBYTES.len());
        let [by_size, by_share] =
            [misses(bench, &MEBIBYTES, absolute), misses(bench, &PERCENTAGES, relative)];
        let saved = differences(&absolute[0], &absolute[MEBIBYTES.len() - 1]);
        let beyond =
            differences(&relative[PERCENTAGES.len() - 2], &relative[PERCENTAGES.len() - 1]);
        let mut rows = vec![
            // Figure 4a: "not very useful for sizes up to 32 MB". A tenth of the reads is more than that.
            bench.at_most("reads that 32 MB serve and 512 KB do not", 10.0, &saved),
            bench
                .holds(
                    "misses still fall beyond 4 % of the storage used",
                    bench.mean(&beyond) > 0.0,
                )
                .noted(bench.each(&beyond)),
        ];
        let curve = fit(Form::Power, &by_share);
        rows.extend(curve.as_ref().map(|fit| power_row(bench, "misses over size", -1.0, fit)));
        let fitted = curve.map(|fit| dots("fitted power law", sampled(&by_share, &fit)));
        let figures = vec![
            lines_log("cache, MiB", "reads that miss, %", vec![line("ours", by_size)]),
            lines_log(
                "cache, % of the storage used",
                "reads that miss, %",
                [line("ours", by_share)].into_iter().chain(fitted).collect(),
            ),
        ];
        rows.push(block_sizes(bench)?);
        Ok(Outcome { rows, figures })
    })
}

/// Points of reads that one system serves from memory and another does not, by trace.
fn differences(more: &Runs, fewer: &Runs) -> Vec<f64> {
    let pairs = values(more, READ_MISSES).into_iter().zip(values(fewer, READ_MISSES));
    pairs.map(|(more, fewer)| 100.0 * (more - fewer)).collect()
}

/// The exponent of a power law, which the paper gives without an error.
pub(super) fn power_row(bench: &Bench<'_>, what: &str, paper: f64, fit: &Fit) -> Row {
    let quantity = format!("{what}: exponent of the power law");
    bench.single_in(&quantity, "", Expected::near(paper), fit.parameters[2]).also(&fit.words())
}

/// The curve where the points are.
pub(super) fn sampled(points: &[(f64, f64)], fit: &Fit) -> Vec<(f64, f64)> {
    points.iter().map(|&(x, _)| (x, fit.at(x))).collect()
}

/// Cache blocks in bytes (figure A-1).
const BLOCKS: [u64; 4] = [512, 1024, 4096, 16_384];

/// The place of 4 KB among them.
const CHOSEN: usize = 2;

fn block_sizes(bench: &Bench<'_>) -> Result<Row, ConfigError> {
    let runs = bench.run(&BLOCKS.map(|block| {
        Variant::new(Base::Poor, move |system, _| {
            system.without_prefetch();
            system.cache.block_size = Bytes::new(block);
        })
    }))?;
    let worse: Vec<f64> = (0..bench.traces.len())
        .map(|trace| {
            let best =
                runs.iter().map(|runs| READ_MISSES(&runs[trace])).fold(f64::INFINITY, f64::min);
            100.0 * (READ_MISSES(&(&runs[CHOSEN])[trace]) / best - 1.0)
        })
        .collect();
    Ok(bench.at_most("misses of 4 KB blocks above those of the best size", 10.0, &worse))
}

pub(super) fn fig8(context: &Context<'_>) -> Result<Outcome, ConfigError> {
    with_traces(context, |bench| {
        let variants: Vec<Variant<'_>> =
            of_sizes(Base::Poor, &MEBIBYTES, |system, _, size| system.cache.size = mebibytes(size))
                .collect();
        let runs = bench.run(&variants)?;
        let served = values(&runs[3], |run| 100.0 * (1.0 - run.reads.miss_ratio));
        let expected = Expected { paper: [50.0, 65.0], band: [35.0, 75.0] };
        // "Diminishing returns": eightfold from 512 KB, and eightfold again.
        let [to_4, to_32] = [(0, 3), (3, 6)].map(|(from, to)| differences(&runs[from], &runs[to]));
        let diminishes = bench.mean(&to_32) < bench.mean(&to_4);
        let rows = vec![
            bench.row("reads served by 4 MB with prefetching", "%", expected, &served),
            bench
                .holds("4 MB to 32 MB serve fewer more reads than 512 KB to 4 MB", diminishes)
                .noted(format!(
                    "512 KB to 4 MB: {} % of reads; 4 MB to 32 MB: {} %",
                    bench.each(&to_4),
                    bench.each(&to_32)
                )),
        ];
        let served =
            misses(bench, &MEBIBYTES, &runs).into_iter().map(|(size, it)| (size, 100.0 - it));
        let paper = dots("paper: more than", vec![(4.0, 50.0)]);
        let lines = vec![line("ours", served.collect()), paper];
        let figures = vec![lines_log("cache, MiB", "reads served from memory, %", lines)];
        Ok(Outcome { rows, figures })
    })
}
